package conf

import (
	"strconv"
	"strings"
)

// String gives the type, the name and what else was said.
func (h HashPolicy) String() string {
	text := string(h.Type)
	if name := h.Name(); name != "" {
		text += " " + name
	}
	if c := h.Cookie; c != nil && c.TTL != nil {
		text += " ttl=" + c.TTL.String()
	}
	if c := h.Cookie; c != nil && c.Path != nil {
		text += " path=" + *c.Path
	}
	if h.Terminal != nil && *h.Terminal {
		text += " (terminal)"
	}
	return text
}

// Name is the header, cookie, query parameter or filter state key that is hashed; empty for SourceIP.
func (h *HashPolicy) Name() string {
	switch {
	case h.Header != nil:
		return h.Header.Name
	case h.Cookie != nil:
		return h.Cookie.Name
	case h.QueryParameter != nil:
		return h.QueryParameter.Name
	case h.FilterState != nil:
		return h.FilterState.Key
	default:
		return ""
	}
}

// String gives the key, and its weight if it has one.
func (a Affinity) String() string {
	if a.Weight == nil {
		return a.Key
	}
	return a.Key + " " + strconv.FormatInt(*a.Weight, 10)
}

// String gives key=value and the weight.
func (w Weight) String() string { return w.Key + "=" + w.Value + " " + strconv.FormatInt(w.Weight, 10) }

// String gives the rule as a sentence would: from a, b to Only c.
func (f Failover) String() string {
	text := "to " + string(f.To.Type)
	if len(f.To.Zones) > 0 {
		text += " " + strings.Join(f.To.Zones, ", ")
	}
	if f.From != nil {
		text = "from " + strings.Join(f.From.Zones, ", ") + " " + text
	}
	return text
}

// String gives a>b=cost, as the text form of a topology does.
func (c Cost) String() string { return c.From + ">" + c.To + "=" + c.Cost.String() }

// String gives low to high.
func (b LoadBand) String() string { return b.Low.String() + " to " + b.High.String() }

// String gives the type and the key.
func (k EndpointHashKey) String() string {
	if k.Key == nil {
		return string(k.Type)
	}
	return string(k.Type) + " " + *k.Key
}

// String gives the window and what else was said.
func (s SlowStart) String() string {
	text := s.Window.String()
	if s.MinWeightPercent != nil {
		text += " minWeightPercent=" + s.MinWeightPercent.String()
	}
	if s.Aggression != nil {
		text += " aggression=" + s.Aggression.String()
	}
	return text
}
