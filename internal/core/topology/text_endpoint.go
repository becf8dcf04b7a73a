package topology

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// generatedV6 is written before an endpoint in place of an address when the generated one is to be IPv6.
const generatedV6 = "v6"

// generatedAddr gives the address of the n-th endpoint, counted from 1, when none is written.
func generatedAddr(f Family, n int) netip.Addr {
	ordinal := binary.BigEndian.AppendUint32(nil, uint32(n)) //nolint:gosec // n is at most maxTotal.
	if f == IPv6 {
		addr := [16]byte{0: 0xfd}
		copy(addr[12:], ordinal)
		return netip.AddrFrom16(addr)
	}
	return netip.AddrFrom4([4]byte{10, ordinal[1], ordinal[2], ordinal[3]})
}

// parseEndpoints reads the arguments of an endpoints statement. An endpoint without written ports gets a copy of
// defaults.
func parseEndpoints(args []token, defaults []EndpointPort) ([]Endpoint, error) {
	var endpoints []Endpoint
	seen := make(map[string]bool)
	for _, arg := range args {
		run, err := parseRun(arg, defaults)
		if err != nil {
			return nil, err
		}
		if len(endpoints)+run.count > maxTotal {
			return nil, arg.errorf("more than %d endpoints: write fewer", maxTotal)
		}
		for range run.count {
			e := run.next(len(endpoints) + 1)
			if !e.Addr.IsValid() {
				return nil, arg.errorf("%d addresses from the first do not exist: write a smaller number", run.count)
			}
			key := e.Addr.String() + "|" + e.Cluster + "|" + formatEndpointPorts(e.Ports)
			if seen[key] {
				return nil, arg.errorf("endpoint %s is there already: give this one another address", e.Addr)
			}
			seen[key] = true
			endpoints = append(endpoints, e)
		}
	}
	sortEndpoints(endpoints)
	return endpoints, nil
}

// endpointRun is what one ENDPOINT stands for: count endpoints that differ in their addresses only.
type endpointRun struct {
	endpoint  Endpoint
	count     int
	generated bool
	family    Family
}

// next gives the run's next endpoint, which is the ordinal-th of its service.
func (r *endpointRun) next(ordinal int) Endpoint {
	e := r.endpoint
	if r.generated {
		e.Addr = generatedAddr(r.family, ordinal)
	} else {
		r.endpoint.Addr = r.endpoint.Addr.Next()
	}
	e.Ports = slices.Clone(e.Ports)
	e.Hints = Hints{Zones: slices.Clone(e.Hints.Zones), Nodes: slices.Clone(e.Hints.Nodes)}
	return e
}

// parseRun reads one ENDPOINT.
func parseRun(arg token, defaults []EndpointPort) (endpointRun, error) {
	r := endpointRun{generated: true, endpoint: Endpoint{Ports: defaults}}
	e := &r.endpoint
	rest, err := e.parseDetails(arg)
	if err != nil {
		return endpointRun{}, err
	}
	if addr, after, found := rest.cut("="); found {
		if err := r.parseAddr(addr); err != nil {
			return endpointRun{}, err
		}
		rest = after
	}
	if before, hints, found := rest.cut(">"); found {
		if err := e.Hints.parse(hints); err != nil {
			return endpointRun{}, err
		}
		rest = before
	}
	if before, node, found := rest.cut("@"); found {
		if e.Node, err = node.word("node", "-_."); err != nil {
			return endpointRun{}, err
		}
		rest = before
	}
	zone, size, found := rest.cut(":")
	if !found {
		return endpointRun{}, arg.errorf("bad endpoint %q: want ZONE:COUNT, as in a:3, b:1! or -:1", arg.text)
	}
	if zone.text != none {
		if e.Zone, err = zone.zone(); err != nil {
			return endpointRun{}, err
		}
	}
	number, condition := size.digits()
	if r.count, err = number.count("number of endpoints", 1, maxRun); err != nil {
		return endpointRun{}, err
	}
	e.Conditions, err = parseConditions(condition)
	return r, err
}

func (r *endpointRun) parseAddr(t token) error {
	if t.text == generatedV6 {
		r.family = IPv6
		return nil
	}
	r.generated = false
	var err error
	r.endpoint.Addr, err = parseAddr(t)
	return err
}

func (h *Hints) parse(t token) error {
	for _, part := range t.split(",") {
		if _, node, found := part.cut("@"); found && strings.HasPrefix(part.text, "@") {
			name, err := node.word("node", "-_.")
			if err != nil {
				return err
			}
			h.Nodes = append(h.Nodes, name)
			continue
		}
		z, err := part.zone()
		if err != nil {
			return err
		}
		h.Zones = append(h.Zones, z)
	}
	return nil
}

// conditionMarks are the conditions that have a short mark of their own, longest mark first.
func conditionMarks() []struct {
	mark       string
	conditions Conditions
} {
	return []struct {
		mark       string
		conditions Conditions
	}{
		{"~!", Conditions{Ready: False, Serving: False, Terminating: True}},
		{"~", Conditions{Ready: False, Serving: True, Terminating: True}},
		{"!", Conditions{Ready: False, Serving: False, Terminating: False}},
		{"?", Conditions{}},
		{"", Conditions{Ready: True, Serving: True, Terminating: False}},
	}
}

// conditionLetters writes a Condition as a letter, at its value's place.
const conditionLetters = "?tf"

func parseConditions(t token) (Conditions, error) {
	for _, m := range conditionMarks() {
		if t.text == m.mark {
			return m.conditions, nil
		}
	}
	var c Conditions
	if len(t.text) == len("(tf?)") && t.text[0] == '(' && t.text[4] == ')' {
		ready := strings.IndexByte(conditionLetters, t.text[1])
		serving := strings.IndexByte(conditionLetters, t.text[2])
		terminating := strings.IndexByte(conditionLetters, t.text[3])
		if ready >= 0 && serving >= 0 && terminating >= 0 {
			c = Conditions{Condition(ready), Condition(serving), Condition(terminating)} //nolint:gosec // 0 to 2.
			return c, nil
		}
	}
	return c, t.errorf("unknown mark %q: want !, ?, ~, ~! or (RST), each letter of t, f and ?", t.text)
}

func (c Conditions) format() string {
	for _, m := range conditionMarks() {
		if c == m.conditions {
			return m.mark
		}
	}
	letter := func(c Condition) string { return conditionLetters[c : c+1] }
	return "(" + letter(c.Ready) + letter(c.Serving) + letter(c.Terminating) + ")"
}

// parseDetails reads {cluster=NAME,pod=NAMESPACE/NAME,ports=PORT|PORT} from the end of arg and gives what is before.
func (e *Endpoint) parseDetails(arg token) (token, error) {
	before, details, found := arg.cut("{")
	if !found {
		return arg, nil
	}
	inner, isClosed := strings.CutSuffix(details.text, "}")
	if !isClosed {
		return token{}, arg.errorf("%q has no closing brace at its end: write {KEY=VALUE,…}", arg.text)
	}
	seen := make(map[string]bool)
	for _, part := range details.sub(0, inner).split(",") {
		key, value, _ := part.cut("=")
		if seen[key.text] {
			return token{}, key.errorf("%s is there already: remove one", key.text)
		}
		seen[key.text] = true
		var err error
		switch key.text {
		case "cluster":
			e.Cluster, err = value.word("cluster", "-_.")
		case "pod":
			e.Pod, err = value.word("pod", "-_./")
		case "ports":
			e.Ports, err = parseEndpointPorts(value)
		default:
			err = key.errorf("unknown detail %q: want cluster=, pod= or ports=", key.text)
		}
		if err != nil {
			return token{}, err
		}
	}
	return before, nil
}

func parseEndpointPorts(t token) ([]EndpointPort, error) {
	if t.text == none {
		return nil, nil
	}
	ports, err := list(t, "|", func(part token) (p EndpointPort, err error) {
		number, err := parsePortEnds(part, &p.Name, &p.Protocol, &p.AppProtocol)
		if err == nil {
			p.Port, err = parsePortNumber(number)
		}
		return p, err
	})
	slices.SortFunc(ports, compareEndpointPorts)
	return ports, err
}

// FormatEndpoints gives endpoints, in the order of Service.Endpoints, as ParseSnapshot reads them after the word endpoints;
// port 80/TCP is not written.
func FormatEndpoints(endpoints []Endpoint) string {
	return formatEndpoints(endpoints, targetPorts(defaultPorts(), nil))
}

func formatEndpoints(endpoints []Endpoint, defaults []EndpointPort) string {
	var words []string
	for i := 0; i < len(endpoints); {
		first := &endpoints[i]
		address, rest := formatAddr(first.Addr, i+1), first.format(defaults)
		count := 1
		next := first.Addr
		for i+count < len(endpoints) && count < maxRun {
			e := &endpoints[i+count]
			if next = next.Next(); e.Addr != next || !e.hasKindOf(first) {
				break
			}
			count++
		}
		words = append(words, address+strings.Replace(rest, ":", ":"+strconv.Itoa(count), 1))
		i += count
	}
	return strings.Join(words, " ")
}

// hasKindOf tells whether both differ in their addresses at most.
func (e *Endpoint) hasKindOf(o *Endpoint) bool {
	return e.Zone == o.Zone && e.Node == o.Node && e.Cluster == o.Cluster && e.Pod == o.Pod &&
		e.Conditions == o.Conditions && e.Hints.Equal(o.Hints) && slices.Equal(e.Ports, o.Ports)
}

// formatAddr writes the address of the ordinal-th endpoint as it stands before the zone; nothing if it is generated.
func formatAddr(addr netip.Addr, ordinal int) string {
	switch addr {
	case generatedAddr(IPv4, ordinal):
		return ""
	case generatedAddr(IPv6, ordinal):
		return generatedV6 + "="
	default:
		return addr.String() + "="
	}
}

// format writes everything but the address and the count, which belongs after the first colon.
func (e *Endpoint) format(defaults []EndpointPort) string {
	text := cmp.Or(string(e.Zone), none) + ":" + e.Conditions.format()
	if e.Node != "" {
		text += "@" + e.Node
	}
	var hints []string
	for _, z := range e.Hints.Zones {
		hints = append(hints, string(z))
	}
	for _, n := range e.Hints.Nodes {
		hints = append(hints, "@"+n)
	}
	if len(hints) > 0 {
		text += ">" + strings.Join(hints, ",")
	}
	var details []string
	if e.Cluster != "" {
		details = append(details, "cluster="+e.Cluster)
	}
	if e.Pod != "" {
		details = append(details, "pod="+e.Pod)
	}
	if !slices.Equal(e.Ports, defaults) {
		details = append(details, "ports="+formatEndpointPorts(e.Ports))
	}
	if len(details) > 0 {
		text += "{" + strings.Join(details, ",") + "}"
	}
	return text
}

func formatEndpointPorts(ports []EndpointPort) string {
	if len(ports) == 0 {
		return none
	}
	var words []string
	for _, p := range ports {
		words = append(words, formatPortEnds(p.Name, strconv.Itoa(int(p.Port)), p.Protocol, p.AppProtocol))
	}
	return strings.Join(words, "|")
}
