package scenario

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/topology"
)

// clientsOf finds the clients of a zone; nil when there are none.
func (s *Scenario) clientsOf(zone topology.Zone) *Clients {
	for i := range s.Clients {
		if s.Clients[i].Zone == zone {
			return &s.Clients[i]
		}
	}
	return nil
}

// parseClients reads ZONE:COUNT… [shares=PERCENT,…].
func parseClients(p *parser, words []string) {
	var shares []float64
	for _, word := range words {
		if list, found := strings.CutPrefix(word, "shares="); found {
			if shares != nil {
				p.refuse("shares", "is there already: remove one")
			}
			shares = p.shares(list)
		}
	}
	for _, word := range words {
		if strings.HasPrefix(word, "shares=") {
			continue
		}
		zone, value, ok := p.zoneValue(word, "8")
		if !ok {
			continue
		}
		count, err := parseInt(value)
		if err != nil {
			p.refuse(string(zone), "%v", err)
			continue
		}
		p.s.Clients = append(p.s.Clients, Clients{Zone: zone, Count: count, Shares: slices.Clone(shares)})
	}
}

func (p *parser) shares(list string) []float64 {
	shares := []float64{}
	for part := range strings.SplitSeq(list, ",") {
		share, err := parsePercent(part)
		if err != nil {
			p.refuse("shares", "%v; shares are percentages, as in shares=50,30,20", err)
		}
		shares = append(shares, share)
	}
	return shares
}

// zoneValue reads ZONE:VALUE, once for each zone.
func (p *parser) zoneValue(word, example string) (topology.Zone, string, bool) {
	name, value, found := strings.Cut(word, ":")
	if !found {
		p.refuse("", "bad %q: want ZONE:VALUE, as in a:%s", word, example)
		return "", "", false
	}
	zone, err := topology.ParseZone(name)
	if err != nil {
		p.refuse("", "%v", err)
		return "", "", false
	}
	return zone, value, p.note(name)
}

// printClients writes zones with equal shares on one line.
func printClients(s *Scenario) []string {
	var lines []string
	for i := 0; i < len(s.Clients); {
		var words []string
		shares := s.Clients[i].Shares
		for i < len(s.Clients) && slices.Equal(s.Clients[i].Shares, shares) {
			words = append(words, string(s.Clients[i].Zone)+":"+strconv.Itoa(s.Clients[i].Count))
			i++
		}
		if len(shares) > 0 {
			var parts []string
			for _, share := range shares {
				parts = append(parts, formatPercent(share))
			}
			words = append(words, "shares="+strings.Join(parts, ","))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// parseRate reads ZONE:RATE…; the rates go to their clients when all lines are read.
func parseRate(p *parser, words []string) {
	for _, word := range words {
		zone, value, ok := p.zoneValue(word, "660")
		if !ok {
			continue
		}
		rate, err := parseNumber(value)
		if err != nil {
			p.refuse(string(zone), "%v", err)
			continue
		}
		p.rates = append(p.rates, zoneRate{zone, rate})
	}
}

func printRate(s *Scenario) []string {
	var words []string
	for _, c := range s.Clients {
		words = append(words, string(c.Zone)+":"+formatNumber(c.Rate))
	}
	if len(words) == 0 {
		return nil
	}
	return []string{strings.Join(words, " ")}
}

// parseSpeed reads PLACE:FACTOR….
func parseSpeed(p *parser, words []string) {
	for _, word := range words {
		place, value, found := strings.Cut(word, ":")
		if !found {
			p.refuse("", "bad %q: want PLACE:FACTOR, as in a/1-3:0.5", word)
			continue
		}
		where, err := parseWhere(place)
		if err == nil {
			var factor float64
			if factor, err = parseNumber(value); err == nil {
				p.s.Server.Speeds = append(p.s.Server.Speeds, Speed{where, factor})
				p.line("speed." + where.String())
				continue
			}
		}
		p.refuse("", "%v", err)
	}
}

func printSpeed(s *Scenario) []string {
	var words []string
	for _, sp := range s.Server.Speeds {
		words = append(words, sp.Where.String()+":"+formatNumber(sp.Factor))
	}
	if len(words) == 0 {
		return nil
	}
	return []string{strings.Join(words, " ")}
}

// parseWarmup reads the only word that there is.
func parseWarmup(p *parser, words []string) {
	if len(words) != 1 || words[0] != "none" {
		p.refuse("", "want warmup none, or no such statement: then the first %s are not counted", formatTime(Warmup))
		return
	}
	p.s.NoWarmup = true
}

func printWarmup(s *Scenario) []string {
	if !s.NoWarmup {
		return nil
	}
	return []string{"none"}
}

// parseLength reads the run's length.
func parseLength(p *parser, words []string) {
	if len(words) != 1 {
		p.refuse("", "want one time, as in length 100s")
		return
	}
	length, err := parseTime(words[0])
	if err != nil {
		p.refuse("", "%v", err)
		return
	}
	p.s.Length = length
}

func printLength(s *Scenario) []string {
	if s.Length == defaults().Length {
		return nil
	}
	return []string{formatTime(s.Length)}
}

// parseStress reads FROM..TO.
func parseStress(p *parser, words []string) {
	from, to, found := "", "", false
	if len(words) == 1 {
		from, to, found = strings.Cut(words[0], "..")
	}
	if !found {
		p.refuse("", "want FROM..TO, as in stress 30s..70s")
		return
	}
	var w Window
	for _, end := range []struct {
		text string
		at   *time.Duration
	}{{from, &w.From}, {to, &w.To}} {
		var err error
		if *end.at, err = parseTime(end.text); err != nil {
			p.refuse("", "%v", err)
			return
		}
	}
	p.s.Stress = w
}

func printStress(s *Scenario) []string {
	if s.Stress == defaultStress(s.Length) {
		return nil
	}
	return []string{formatTime(s.Stress.From) + ".." + formatTime(s.Stress.To)}
}

// parseAffected reads ZONE….
func parseAffected(p *parser, words []string) {
	if len(words) == 0 {
		p.refuse("", "names no zone: write one, or leave the statement out for all of them")
	}
	for _, word := range words {
		zone, err := topology.ParseZone(word)
		if err != nil {
			p.refuse("", "%v", err)
			continue
		}
		if p.note(word) {
			p.s.Affected = append(p.s.Affected, zone)
		}
	}
}

func printAffected(s *Scenario) []string {
	if len(s.Affected) == 0 {
		return nil
	}
	var words []string
	for _, zone := range s.Affected {
		words = append(words, string(zone))
	}
	return []string{strings.Join(words, " ")}
}
