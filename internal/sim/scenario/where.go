package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/core/topology"
)

// everything is how a place is written that has neither zone nor cluster.
const everything = "*"

// almost keeps the rounding of floating point from making one endpoint more: 0.1 of 30 is a little above 3.
const almost = 1e-9

// Has tells whether an endpoint is meant: the place-th, from 1, of the count endpoints that its zone has in its cluster. A
// place of 0 is that of a pod whose zone is not known yet: no number and no part names it.
func (w Where) Has(zone topology.Zone, cluster string, place, count int) bool {
	switch {
	case w.Zone != "" && zone != w.Zone:
		return false
	case w.Cluster != cluster && (w.Zone != "" || w.Cluster != ""):
		return false
	case w.Part > 0:
		return place >= 1 && place <= w.upTo(count)
	case w.First > 0:
		return place >= w.First && place <= w.Last
	default:
		return true
	}
}

// HasClients tells whether the clients of a zone are meant; all clients are in their own cluster.
func (w Where) HasClients(zone topology.Zone) bool { return w.Zone == "" || w.Zone == zone }

// IsWhole tells whether the place is meant as a whole, and not by numbers or a part of its endpoints.
func (w Where) IsWhole() bool { return w.First == 0 && w.Last == 0 && w.Part == 0 }

// upTo gives the number of the last endpoint of count that Part means.
func (w Where) upTo(count int) int { return int(math.Ceil(w.Part*float64(count) - almost)) }

// String gives the place as steps have it: *, ZONE, @CLUSTER or ZONE@CLUSTER, and after it /N, /N-M or /P%.
func (w Where) String() string {
	text := string(w.Zone)
	if w.Cluster != "" {
		text += "@" + w.Cluster
	}
	if text == "" {
		text = everything
	}
	switch {
	case w.Part != 0:
		return text + "/" + formatPercent(w.Part) + "%"
	case w.First == 0 && w.Last == 0:
		return text
	case w.First == w.Last:
		return text + "/" + strconv.Itoa(w.First)
	default:
		return text + "/" + strconv.Itoa(w.First) + "-" + strconv.Itoa(w.Last)
	}
}

// parseWhere reads what Where.String writes.
func parseWhere(text string) (Where, error) {
	place, numbers, isNumbered := strings.Cut(text, "/")
	var w Where
	if place != everything {
		zone, cluster, found := strings.Cut(place, "@")
		if zone != "" || !found {
			z, err := topology.ParseZone(zone)
			if err != nil {
				return Where{}, fmt.Errorf("bad place %q: %w; want *, ZONE, @CLUSTER or ZONE@CLUSTER", text, err)
			}
			w.Zone = z
		}
		if found && !isWord(cluster) {
			return Where{}, fmt.Errorf("bad place %q: want the name of a cluster after @, as in @west or a@west", text)
		}
		w.Cluster = cluster
	}
	if !isNumbered {
		return w, nil
	}
	return w, w.parseNumbers(text, numbers)
}

// parseNumbers reads N, N-M or P%.
func (w *Where) parseNumbers(text, numbers string) error {
	if part, isPart := strings.CutSuffix(numbers, "%"); isPart {
		f, err := parsePercent(part)
		if err != nil || !(f > 0 && f <= 1) {
			return fmt.Errorf("bad place %q: want a part above 0 and up to 100 %%, as in a/50%%", text)
		}
		w.Part = f
		return nil
	}
	first, last, isRange := strings.Cut(numbers, "-")
	if !isRange {
		last = first
	}
	var errs [2]error
	w.First, errs[0] = parseInt(first)
	w.Last, errs[1] = parseInt(last)
	if errs[0] != nil || errs[1] != nil || w.First < 1 || w.Last < w.First {
		return fmt.Errorf("bad place %q: endpoints count from 1, as in a/1, a/1-3 or a/50%%", text)
	}
	return nil
}

// isWord tells whether text can be the name of a cluster.
func isWord(text string) bool {
	for i, r := range text {
		inside := i > 0 && i < len(text)-1 && strings.ContainsRune("-_.", r)
		if !inside && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}
