package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// String names the document for people: its kind, namespace/name, and where it was read.
func (o Origin) String() string {
	name := string(o.Dialect) + " " + o.Name
	if o.Namespace != "" {
		name = string(o.Dialect) + " " + o.Namespace + "/" + o.Name
	}
	if o.Source != "" {
		name += " (" + o.Source + ")"
	}
	return name
}

// isSameDocument tells whether both are entries of one document.
func (o Origin) isSameDocument(other Origin) bool { return o.document() == other.document() }

// String gives the type, the name and what else was said.
func (h HashPolicy) String() string {
	text := string(h.Type)
	if h.Name != "" {
		text += " " + h.Name
	}
	if h.TTL != nil {
		text += " ttl=" + durationText(*h.TTL)
	}
	if h.Path != "" {
		text += " path=" + h.Path
	}
	if h.Terminal {
		text += " (terminal)"
	}
	return text
}

// String gives the key, and its weight if it has one.
func (a Affinity) String() string {
	if a.Weight == nil {
		return a.Key
	}
	return a.Key + " " + strconv.FormatUint(uint64(*a.Weight), 10)
}

// String gives key=value and the weight.
func (w Weight) String() string {
	return w.Key + "=" + w.Value + " " + strconv.FormatUint(uint64(w.Weight), 10)
}

// String gives the rule as a sentence would: from a, b to Only c.
func (f Failover) String() string {
	text := "to " + string(f.To)
	if len(f.Zone) > 0 {
		text += " " + zonesText(f.Zone)
	}
	if f.From != nil {
		text = "from " + zonesText(f.From) + " " + text
	}
	return text
}

// String gives a>b=cost, as the text form of a topology does.
func (c Cost) String() string { return fmt.Sprintf("%s>%s=%s", c.From, c.To, numberText(c.Cost)) }

// String gives low to high.
func (b LoadBand) String() string { return numberText(b.Low) + " to " + numberText(b.High) }

// String gives the type and the key.
func (k EndpointHashKey) String() string { return strings.TrimSpace(string(k.Type) + " " + k.Key) }

// String gives the window and what else was said.
func (s SlowStart) String() string {
	text := durationText(s.Window)
	if s.MinWeightPercent != nil {
		text += " minWeightPercent=" + numberText(*s.MinWeightPercent)
	}
	if s.Aggression != nil {
		text += " aggression=" + numberText(*s.Aggression)
	}
	return text
}

// listText joins what the entries say; an empty list says so.
func listText[T fmt.Stringer](list []T) string {
	if len(list) == 0 {
		return "none"
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].String()
	}
	return strings.Join(texts, ", ")
}

func zonesText(zones []topology.Zone) string {
	texts := make([]string, len(zones))
	for i, z := range zones {
		texts[i] = string(z)
	}
	return strings.Join(texts, ", ")
}

func numberText(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// durationText is the shortest form: 1h, not 1h0m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
