package topology

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// defaultNamespace is the namespace of a service that is written without one.
const defaultNamespace = "default"

type serviceParser struct {
	service *Service
	ports   []token
	seen    map[string]bool
}

// parseService reads a service statement, and gives the ports of those of its endpoints that have none written.
func parseService(st statement) (*Service, []EndpointPort, error) {
	if len(st.args) == 0 {
		return nil, nil, st.verb.errorf("service without a name: write service NAMESPACE/NAME")
	}
	p := serviceParser{
		service: &Service{InternalPolicy: PolicyCluster, ExternalPolicy: PolicyCluster},
		seen:    make(map[string]bool),
	}
	if err := p.name(st.args[0]); err != nil {
		return nil, nil, err
	}
	for _, arg := range st.args[1:] {
		if err := p.field(arg); err != nil {
			return nil, nil, err
		}
	}
	targets, err := p.parsePorts()
	if err != nil {
		return nil, nil, err
	}
	defaults := targetPorts(p.service.Ports, targets)
	p.service.sort()
	return p.service, defaults, nil
}

func (p *serviceParser) name(arg token) error {
	namespace, name, found := arg.cut("/")
	if !found {
		namespace, name = token{text: defaultNamespace}, arg
	}
	var err error
	if p.service.Namespace, err = namespace.word("namespace", "-_."); err != nil {
		return err
	}
	p.service.Name, err = name.word("service", "-_.")
	return err
}

func (p *serviceParser) field(arg token) error {
	key, value, hasValue := arg.cut("=")
	if p.seen[key.text] && key.text != "port" && key.text != "drain" {
		return key.errorf("%s is there already: remove one", key.text)
	}
	p.seen[key.text] = true
	if !hasValue {
		return p.flag(key)
	}
	s := p.service
	var err error
	switch key.text {
	case "port":
		p.ports = append(p.ports, value)
	case "ip":
		s.ClusterIPs, err = list(value, ",", parseAddr)
	case "mode":
		if s.Mode, err = ParseMode(value.text); err != nil {
			err = value.wrap(err)
		}
	case "internal":
		s.InternalPolicy, err = parsePolicy(value)
	case "external":
		s.ExternalPolicy, err = parsePolicy(value)
	case "proxy":
		s.Proxy, err = value.word("proxy", "-_./")
	case "plane":
		if value.text != string(DataPlaneKernel) {
			return value.errorf("unknown data plane %q: want kernel", value.text)
		}
		s.DataPlane = DataPlaneKernel
	case "strategy":
		s.Overflow.Strategy, err = value.word("strategy", "-_.")
	case "prefer":
		s.Overflow.Prefer, err = value.word("preference", "-_.")
	case "drain":
		err = p.drain(value)
	case "overload-limit":
		s.OverloadLimit, err = value.ratio("overload limit")
	case "demand":
		s.Demand, err = parseDemand(value)
	default:
		err = key.errorf("unknown field %q of a service: want port, ip, mode, internal, external, proxy, plane, strategy, "+
			"prefer, drain, overload-limit or demand", key.text)
	}
	return err
}

func (p *serviceParser) flag(arg token) error {
	switch arg.text {
	case "exposed":
		p.service.ExternallyAccessible = true
	case "headless":
		p.service.Headless = true
	case "shed":
		p.service.Overflow.Shed = true
	case "sticky":
		p.service.Sticky = true
	default:
		return arg.errorf("unknown word %q of a service: want exposed, headless, shed, sticky or FIELD=VALUE", arg.text)
	}
	return nil
}

func parseAddr(t token) (netip.Addr, error) {
	addr, err := netip.ParseAddr(t.text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, t.errorf("bad address %q: want IPv4 or IPv6, as in 10.0.0.1 or fd00::1", t.text)
	}
	return addr, nil
}

func parsePolicy(t token) (TrafficPolicy, error) {
	switch policy := TrafficPolicy(t.text); policy {
	case PolicyCluster, PolicyLocal:
		return policy, nil
	case none:
		return "", nil
	default:
		return "", t.errorf("bad traffic policy %q: want Cluster or Local", t.text)
	}
}

func (p *serviceParser) drain(t token) error {
	zone, at, found := t.cut("@")
	if !found {
		return t.errorf("bad drain %q: want ZONE@TIME, as in a@2026-11-20T12:00:00Z", t.text)
	}
	z, err := zone.zone()
	if err != nil {
		return err
	}
	until, err := time.Parse(time.RFC3339Nano, at.text)
	if err != nil {
		return at.errorf("bad time %q: want RFC 3339, as in 2026-11-20T12:00:00Z", at.text)
	}
	p.service.Overflow.Drains = append(p.service.Overflow.Drains, Drain{Zone: z, Until: until.UTC()})
	return nil
}

func parseDemand(t token) ([]ZoneDemand, error) {
	var demand []ZoneDemand
	for _, part := range t.split(",") {
		zone, share, found := part.cut(":")
		if !found {
			return nil, part.errorf("bad demand %q: want ZONE:SHARE, as in a:0.7", part.text)
		}
		z, err := zone.zone()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(demand, func(d ZoneDemand) bool { return d.Zone == z }) {
			return nil, zone.errorf("the demand of zone %s is there already: remove one", z)
		}
		f, err := share.ratio("share")
		if err != nil {
			return nil, err
		}
		demand = append(demand, ZoneDemand{Zone: z, Share: f})
	}
	return demand, nil
}

func (p *serviceParser) parsePorts() (targets map[int]uint16, err error) {
	s := p.service
	if len(p.ports) == 0 {
		s.Ports = defaultPorts()
		return nil, nil
	}
	if len(p.ports) == 1 && p.ports[0].text == none {
		return nil, nil
	}
	targets = make(map[int]uint16)
	for i, t := range p.ports {
		port, target, err := parsePort(t)
		if err != nil {
			return nil, err
		}
		if target != 0 {
			targets[i] = target
		}
		s.Ports = append(s.Ports, port)
	}
	return targets, nil
}

func (s *Service) format() string {
	words := []string{"service", s.formatName()}
	targets := s.targets()
	if defaults := defaultPorts(); !slices.Equal(s.Ports, defaults) || targets[0] != 0 {
		if len(s.Ports) == 0 {
			words = append(words, "port="+none)
		}
		for i, p := range s.Ports {
			words = append(words, "port="+p.format(targets[i]))
		}
	}
	if len(s.ClusterIPs) > 0 {
		var addrs []string
		for _, addr := range s.ClusterIPs {
			addrs = append(addrs, addr.String())
		}
		words = append(words, "ip="+strings.Join(addrs, ","))
	}
	words = append(words, s.formatPolicies()...)
	words = append(words, s.Overflow.format()...)
	if s.OverloadLimit != 0 {
		words = append(words, "overload-limit="+formatRatio(s.OverloadLimit))
	}
	if len(s.Demand) > 0 {
		var shares []string
		for _, d := range s.Demand {
			shares = append(shares, string(d.Zone)+":"+formatRatio(d.Share))
		}
		words = append(words, "demand="+strings.Join(shares, ","))
	}
	text := strings.Join(words, " ")
	if len(s.Endpoints) > 0 {
		text += "\nendpoints " + formatEndpoints(s.Endpoints, targetPorts(s.Ports, targets))
	}
	return text
}

func (s *Service) formatName() string {
	if s.Namespace == defaultNamespace {
		return s.Name
	}
	return s.String()
}

func (s *Service) formatPolicies() []string {
	var words []string
	if s.Mode != ModeUnset {
		words = append(words, "mode="+string(s.Mode))
	}
	if s.InternalPolicy != PolicyCluster {
		words = append(words, "internal="+cmp.Or(string(s.InternalPolicy), none))
	}
	if s.ExternalPolicy != PolicyCluster {
		words = append(words, "external="+cmp.Or(string(s.ExternalPolicy), none))
	}
	if s.ExternallyAccessible {
		words = append(words, "exposed")
	}
	if s.Headless {
		words = append(words, "headless")
	}
	if s.Sticky {
		words = append(words, "sticky")
	}
	if s.Proxy != "" {
		words = append(words, "proxy="+s.Proxy)
	}
	if s.DataPlane != DataPlaneProxy {
		words = append(words, "plane="+string(s.DataPlane))
	}
	return words
}

func (o OverflowSettings) format() []string {
	var words []string
	if o.Strategy != "" {
		words = append(words, "strategy="+o.Strategy)
	}
	if o.Prefer != "" {
		words = append(words, "prefer="+o.Prefer)
	}
	if o.Shed {
		words = append(words, "shed")
	}
	for _, d := range o.Drains {
		words = append(words, "drain="+string(d.Zone)+"@"+d.Until.UTC().Format(time.RFC3339Nano))
	}
	return words
}
