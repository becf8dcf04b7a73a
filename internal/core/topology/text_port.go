package topology

import (
	"slices"
	"strconv"
)

// defaultPorts are the ports of a service that is written without any.
func defaultPorts() []Port { return []Port{{Protocol: TCP, Port: 80}} }

// targetPorts gives the ports that endpoints have when none are written: those of the service, with the port numbers of
// targets where that names a service port by its index.
func targetPorts(ports []Port, targets map[int]uint16) []EndpointPort {
	var eps []EndpointPort
	for i, p := range ports {
		ep := EndpointPort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port}
		if target, ok := targets[i]; ok {
			ep.Port = target
		}
		eps = append(eps, ep)
	}
	slices.SortFunc(eps, compareEndpointPorts)
	return eps
}

// parsePort reads [NAME:]PORT[+NODEPORT][->TARGET][/PROTOCOL][@APPPROTOCOL]; target is 0 when it is not written.
func parsePort(t token) (port Port, target uint16, err error) {
	rest, err := parsePortEnds(t, &port.Name, &port.Protocol, &port.AppProtocol)
	if err != nil {
		return Port{}, 0, err
	}
	if before, after, found := rest.cut("->"); found {
		if target, err = parsePortNumber(after); err != nil {
			return Port{}, 0, err
		}
		rest = before
	}
	if before, after, found := rest.cut("+"); found {
		if port.NodePort, err = parsePortNumber(after); err != nil {
			return Port{}, 0, err
		}
		rest = before
	}
	port.Port, err = parsePortNumber(rest)
	return port, target, err
}

// parsePortEnds reads what is around the numbers of a port, and gives the middle.
func parsePortEnds(t token, name *string, protocol *Protocol, app *string) (token, error) {
	*protocol = TCP
	rest, after, found := t.cut("@")
	if found {
		word, err := after.word("application protocol", "-_./")
		if err != nil {
			return token{}, err
		}
		*app = word
	}
	rest, after, found = rest.cut("/")
	if found {
		*protocol = Protocol(after.text)
		if *protocol != TCP && *protocol != UDP && *protocol != SCTP {
			return token{}, after.errorf("bad protocol %q: want TCP, UDP or SCTP", after.text)
		}
	}
	before, after, found := rest.cut(":")
	if !found {
		return rest, nil
	}
	word, err := before.word("port", "-_.")
	*name = word
	return after, err
}

func parsePortNumber(t token) (uint16, error) {
	n, err := t.count("port number", 1, 65535)
	return uint16(n), err //nolint:gosec // count bounds it.
}

// targets finds the target numbers to write with the service's ports, by their index, so that its first endpoint need
// not write its own; none when that cannot be had.
func (s *Service) targets() map[int]uint16 {
	if len(s.Endpoints) == 0 {
		return nil
	}
	first := &s.Endpoints[0]
	targets := make(map[int]uint16)
	for i, p := range s.Ports {
		if ep, ok := first.Port(p); ok && ep.Port != p.Port {
			targets[i] = ep.Port
		}
	}
	if !slices.Equal(targetPorts(s.Ports, targets), first.Ports) {
		return nil
	}
	return targets
}

func (p Port) format(target uint16) string {
	middle := strconv.Itoa(int(p.Port))
	if p.NodePort != 0 {
		middle += "+" + strconv.Itoa(int(p.NodePort))
	}
	if target != 0 {
		middle += "->" + strconv.Itoa(int(target))
	}
	return formatPortEnds(p.Name, middle, p.Protocol, p.AppProtocol)
}

func formatPortEnds(name, middle string, protocol Protocol, app string) string {
	if name != "" {
		middle = name + ":" + middle
	}
	if protocol != TCP {
		middle += "/" + string(protocol)
	}
	if app != "" {
		middle += "@" + app
	}
	return middle
}
