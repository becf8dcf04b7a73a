package topology

import (
	"fmt"
	"strings"
)

// ParseSnapshot reads the compact text form of a Snapshot.
//
// A text is a list of statements, separated by line ends or semicolons; # begins a comment that runs to the end of the
// line. A whole cluster fits on one line:
//
//	nodes a:4 b:4x2 c:2; service shop/web mode=Auto; endpoints a:3 b:1!
//
// Statements, in any order but that endpoints follow their service:
//
//	costs KEY=COST…            see below; what is not written has its default
//	nodes NODE…                several statements count as one
//	service [NAMESPACE/]NAME FIELD…
//	endpoints ENDPOINT…        of the service before; several count as one
//
// A NODE is [NAME=][REGION/]ZONE:CPU[xCOUNT][!][^].
//
//	a:4         a node of zone a with 4 allocatable cores, ready
//	a:0.5x3     three nodes of half a core
//	a:?         a node that reports no CPU
//	eu/a:4!^    in region eu, not ready (!), a control plane node (^)
//	n1=-:4      a node called n1 that carries no zone label
//
// A node without a name is called ZONE-N, N counting the unnamed nodes of its zone from 1.
//
// An ENDPOINT is [ADDRESS=]ZONE:COUNT[CONDITION][@NODE][>HINTS][{DETAILS}].
//
//	a:3         three ready endpoints in zone a
//	b:1!        one that is neither ready nor serving
//	b:1?        one whose conditions are all unknown
//	b:1~        one that terminates and still serves; b:1~! one that terminates and does not
//	b:1(tf?)    any other conditions: ready, serving and terminating, each t, f or ?
//	-:1         one whose zone is not known
//	a:1@n1      on node n1
//	a:1>a,b,@n1 hinted to the zones a and b and to the node n1
//	v6=a:2      with IPv6 addresses; 10.1.0.7=a:2 has 10.1.0.7 and 10.1.0.8
//	a:1{cluster=west,pod=shop/web-0,ports=http:8080|dns:53/UDP}
//
// The n-th endpoint of a service, counted from 1, has the address 10.0.0.0 + n (fd00:: + n with v6=) unless one is
// written. Its ports are those of the service, unless they are written; ports=- says that it has none.
//
// The FIELDs of a service are, each with what is meant when it is missing:
//
//	port=[NAME:]PORT[+NODEPORT][->TARGET][/PROTOCOL][@APPPROTOCOL]   port=80; repeat it for more; port=- for none
//	ip=ADDRESS,…                 no cluster IP
//	mode=MODE                    ModeUnset
//	internal=POLICY              Cluster; - for no policy; external= likewise
//	exposed, headless, sticky    not externally accessible, not headless, no session affinity
//	proxy=NAME                   not given to a proxy
//	strategy=NAME prefer=NAME shed drain=ZONE@TIME   the zero OverflowSettings; drain may be repeated
//	overload-limit=RATIO         0, the default
//	demand=ZONE:SHARE,…          nil
//
// TARGET is the port number of the endpoints; a service without a namespace is in "default"; TCP is the protocol when
// none is written.
//
// The KEYs of costs are same-region, other-region, other-cluster, and FROM>TO for a pair of zones.
//
// ParseSnapshot and String are inverse: for every s that NewSnapshot made from unique, valid names, parsing s.String()
// gives s, and for every text t that String wrote, t comes back. Errors are *SyntaxError: line, column and how to mend it.
// Node names, service names and endpoints (address, ports and cluster) that occur twice are refused.
func ParseSnapshot(text string) (Snapshot, error) {
	p := snapshotParser{services: make(map[ServiceName]bool)}
	statements, err := scan(text)
	if err != nil {
		return Snapshot{}, err
	}
	for _, st := range statements {
		if err := p.statement(st); err != nil {
			return Snapshot{}, err
		}
	}
	if err := p.endService(); err != nil {
		return Snapshot{}, err
	}
	nodes, err := parseNodes(p.nodes)
	if err != nil {
		return Snapshot{}, err
	}
	return NewSnapshot(nodes, p.parsed, p.costs), nil
}

type snapshotParser struct {
	costs    Costs
	hasCosts bool
	nodes    []token
	services map[ServiceName]bool
	parsed   []*Service

	// The service that is being read: its endpoints are parsed when they are all known.
	service   *Service
	defaults  []EndpointPort
	endpoints []token
}

func (p *snapshotParser) statement(st statement) error {
	switch st.verb.text {
	case "costs":
		if p.hasCosts {
			return st.verb.errorf("a second costs statement: write all costs into one")
		}
		p.hasCosts = true
		var err error
		p.costs, err = parseCosts(st)
		return err
	case "nodes":
		p.nodes = append(p.nodes, st.args...)
		return nil
	case "service":
		return p.beginService(st)
	case "endpoints":
		if p.service == nil {
			return st.verb.errorf("endpoints of no service: write a service statement before")
		}
		p.endpoints = append(p.endpoints, st.args...)
		return nil
	default:
		return st.verb.errorf("unknown statement %q: want costs, nodes, service or endpoints", st.verb.text)
	}
}

func (p *snapshotParser) beginService(st statement) error {
	if err := p.endService(); err != nil {
		return err
	}
	s, defaults, err := parseService(st)
	if err != nil {
		return err
	}
	if p.services[s.ServiceName] {
		return st.args[0].errorf("service %s is there already: give this one another name", s.ServiceName)
	}
	p.services[s.ServiceName] = true
	p.service, p.defaults = s, defaults
	return nil
}

func (p *snapshotParser) endService() error {
	if p.service == nil {
		return nil
	}
	var err error
	if p.service.Endpoints, err = parseEndpoints(p.endpoints, p.defaults); err != nil {
		return err
	}
	p.parsed = append(p.parsed, p.service)
	p.service, p.defaults, p.endpoints = nil, nil, nil
	return nil
}

// String gives the text form that ParseSnapshot reads: one statement per line, no line end after the last.
func (s Snapshot) String() string {
	var lines []string
	if costs := s.Costs.String(); costs != "" {
		lines = append(lines, "costs "+costs)
	}
	if nodes := formatNodes(s.Nodes); nodes != "" {
		lines = append(lines, "nodes "+nodes)
	}
	for _, svc := range s.Services {
		lines = append(lines, svc.format())
	}
	return strings.Join(lines, "\n")
}

// ParseZone reads the name of a zone: a label value of Kubernetes that is not empty.
func ParseZone(s string) (Zone, error) {
	if err := checkLabel("zone", s); err != nil {
		return "", err
	}
	return Zone(s), nil
}

// maxLabel is the longest label value that Kubernetes accepts.
const maxLabel = 63

// checkLabel refuses what is no label value of Kubernetes: up to 63 letters, digits, '-', '_' and '.', beginning and
// ending with a letter or digit.
func checkLabel(what, s string) error {
	if len(s) > maxLabel {
		return fmt.Errorf("bad %s name %.20q…: it has %d characters, %d is the most", what, s, len(s), maxLabel)
	}
	return checkWord(what, s, "-_.")
}

// maxWord bounds the names that are not label values; a name of a pod or node has at most 253 characters, a namespace
// 63.
const maxWord = 253 + 1 + 63

// checkWord refuses a name that has other characters than letters, digits and those of inner, or does not begin and end
// with a letter or digit.
func checkWord(what, s, inner string) error {
	if s == "" {
		return fmt.Errorf("a %s name is missing", what)
	}
	if len(s) > maxWord {
		return fmt.Errorf("bad %s name %.20q…: it is too long", what, s)
	}
	for i, r := range s {
		if isAlphanumeric(r) || i > 0 && i < len(s)-1 && strings.ContainsRune(inner, r) {
			continue
		}
		return fmt.Errorf("bad %s name %q: want letters, digits and, inside, any of %q", what, s, inner)
	}
	return nil
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || isDigit(r)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
