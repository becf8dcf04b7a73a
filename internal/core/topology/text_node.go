package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// parseNodes reads the arguments of a nodes statement; the nodes come sorted by name.
func parseNodes(args []token) ([]Node, error) {
	var nodes []Node
	ordinals := make(map[Zone]int)
	names := make(map[string]bool)
	for _, arg := range args {
		n, count, err := parseNode(arg)
		if err != nil {
			return nil, err
		}
		if len(nodes)+count > maxTotal {
			return nil, arg.errorf("more than %d nodes: write fewer", maxTotal)
		}
		for range count {
			named := n
			if n.Name == "" {
				ordinals[n.Zone]++
				named.Name = generatedNode(n.Zone, ordinals[n.Zone])
			}
			if names[named.Name] {
				return nil, arg.errorf("node %s is there already: give this one another name", named.Name)
			}
			names[named.Name] = true
			nodes = append(nodes, named)
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

// parseNode reads one NODE; its name is empty when none is written.
func parseNode(arg token) (Node, int, error) {
	var n Node
	rest := arg
	var err error
	if name, after, found := arg.cut("="); found {
		if n.Name, err = name.word("node", "-_."); err != nil {
			return Node{}, 0, err
		}
		rest = after
	}
	place, size, found := rest.cut(":")
	if !found {
		return Node{}, 0, arg.errorf("bad node %q: want ZONE:CPU, as in a:4, a:4x2, a:? or n1=-:4", arg.text)
	}
	if err := n.parsePlace(place); err != nil {
		return Node{}, 0, err
	}
	count, err := n.parseSize(size)
	if err != nil {
		return Node{}, 0, err
	}
	if n.Name == "" && n.Zone == "" {
		return Node{}, 0, arg.errorf("a node without zone needs a name: write it as in n1=%s", arg.text)
	}
	if n.Name != "" && count > 1 {
		return Node{}, 0, arg.errorf("%d nodes with one name: leave the name out or write each", count)
	}
	return n, count, nil
}

// parsePlace reads [REGION/]ZONE.
func (n *Node) parsePlace(place token) error {
	zone := place
	if region, after, found := place.cut("/"); found {
		if err := checkLabel("region", region.text); err != nil {
			return region.wrap(err)
		}
		n.Region = region.text
		zone = after
	}
	if zone.text == none {
		return nil
	}
	var err error
	n.Zone, err = zone.zone()
	return err
}

// parseSize reads CPU[xCOUNT][!][^] and gives the count.
func (n *Node) parseSize(size token) (int, error) {
	text, isControlPlane := strings.CutSuffix(size.text, "^")
	text, isUnready := strings.CutSuffix(text, "!")
	n.ControlPlane, n.Ready = isControlPlane, !isUnready
	cpu, times, found := size.sub(0, text).cut("x")
	count := 1
	var err error
	if found {
		if count, err = times.count("number of nodes", 1, maxRun); err != nil {
			return 0, err
		}
	}
	n.CPU, err = parseCPU(cpu)
	return count, err
}

// parseCPU reads cores with at most three decimals, or ? for a node that does not say.
func parseCPU(t token) (MilliCPU, error) {
	if t.text == "?" {
		return 0, nil
	}
	whole, decimals, hasPoint := strings.Cut(t.text, ".")
	cores, err := strconv.ParseUint(whole, 10, 32)
	if err == nil && cores <= uint64(MaxCPU)/1000 && len(decimals) <= 3 && hasPoint == (decimals != "") {
		thousandths, err := strconv.ParseUint((decimals + "000")[:3], 10, 32)
		if cpu := MilliCPU(cores*1000 + thousandths); err == nil && cpu <= MaxCPU { //nolint:gosec // bounded above.
			return cpu, nil
		}
	}
	return 0, t.errorf("bad CPU %q: want cores, as in 4 or 0.25, or ? when not reported", t.text)
}

func generatedNode(z Zone, ordinal int) string { return string(z) + none + strconv.Itoa(ordinal) }

// String gives the node as ParseSnapshot reads it, with its name.
func (n Node) String() string { return n.Name + "=" + n.format(1) }

func (n Node) format(count int) string {
	var b strings.Builder
	if n.Region != "" {
		b.WriteString(n.Region + "/")
	}
	b.WriteString(cmp.Or(string(n.Zone), none) + ":" + n.CPU.String())
	if count > 1 {
		b.WriteString("x" + strconv.Itoa(count))
	}
	if !n.Ready {
		b.WriteByte('!')
	}
	if n.ControlPlane {
		b.WriteByte('^')
	}
	return b.String()
}

// String gives the cores, "4" or "0.25", and "?" when none is reported.
func (c MilliCPU) String() string {
	if c == 0 {
		return "?"
	}
	s := fmt.Sprintf("%d.%03d", c/1000, c%1000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// formatNodes is the inverse of parseNodes: runs of equal unnamed nodes by zone, then the named ones by name. The order
// of nodes does not matter.
func formatNodes(nodes []Node) string {
	byName := make(map[string]Node, len(nodes))
	var zones []Zone
	for _, n := range nodes {
		byName[n.Name] = n
		zones = append(zones, n.Zone)
	}
	slices.Sort(zones)
	var words []string
	for _, z := range slices.Compact(zones) {
		if z != "" {
			words = append(words, takeGenerated(byName, z)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		words = append(words, byName[name].String())
	}
	return strings.Join(words, " ")
}

// takeGenerated takes the nodes of zone z that are called z-1, z-2 and so on without a gap, and formats them.
func takeGenerated(byName map[string]Node, z Zone) []string {
	var words []string
	var run Node
	count := 0
	flush := func() {
		if count > 0 {
			words = append(words, run.format(count))
		}
	}
	for ordinal := 1; ; ordinal++ {
		name := generatedNode(z, ordinal)
		n, ok := byName[name]
		if !ok || n.Zone != z {
			break
		}
		delete(byName, name)
		n.Name = ""
		if n != run || count == maxRun {
			flush()
			run, count = n, 0
		}
		count++
	}
	flush()
	return words
}
