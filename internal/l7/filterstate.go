package l7

import (
	"strconv"
	"strings"
)

// FilterStateField is the request field by which trusted filters give filter state that weir does not know: a list of
// key=value. Endpoints never see it.
const FilterStateField = "X-Weir-Filter-State"

// filterStateLower is FilterStateField as HTTP/2 spells it.
const filterStateLower = "x-weir-filter-state"

// FilterStateKey is a key of filter state that weir knows by itself. A filter cannot say anything else of it.
type FilterStateKey struct {
	Name        string
	Description string
	Connection  bool // it is there for TCP, too
	key         stateKey
}

// stateKey is an index into FilterStateKeys, or told.
type stateKey uint8

const (
	told stateKey = iota // by a filter, in FilterStateField
	clientAddress
	clientPort
	listenerAddress
	listenerPort
	connectionNumber
	requestProtocol
	requestHost
	requestPath
	requestMethod
)

// FilterStateKeys lists every key that weir knows by itself, sorted by name. The guide has the same list.
func FilterStateKeys() []FilterStateKey {
	return []FilterStateKey{
		{"io.grpc.channel_id", "number of the client's connection, as weir.connection.id: what a gRPC channel is to a proxy", true, connectionNumber},
		{"weir.client.address", "IP address of the client, as text; hashed as SourceIP is", true, clientAddress},
		{"weir.client.port", "port of the client", true, clientPort},
		{"weir.connection.id", "number of the client's connection, which no other connection has", true, connectionNumber},
		{"weir.listener.address", "IP address that the client connected to", true, listenerAddress},
		{"weir.listener.port", "port that the client connected to", true, listenerPort},
		{"weir.request.host", "host that the request asks for, with its port if it names one", false, requestHost},
		{"weir.request.method", "method, such as GET", false, requestMethod},
		{"weir.request.path", "path as it was sent, without the query", false, requestPath},
		{"weir.request.protocol", "HTTP/1.0, HTTP/1.1 or HTTP/2.0: what the client speaks", false, requestProtocol},
	}
}

func stateKeyOf(name string) stateKey {
	for _, known := range FilterStateKeys() {
		if known.Name == name {
			return known.key
		}
	}
	return told
}

// hashState hashes a filter state's text; false if there is none, as for what only requests have if r is nil.
func (s *step) hashState(c *client, r *request) (uint64, bool) {
	var text [textBytes]byte
	switch s.state {
	case clientAddress:
		return c.hashAddr()
	case clientPort:
		return hashBytes(strconv.AppendUint(text[:0], uint64(c.remote.Port()), 10)), c.remote.IsValid()
	case listenerAddress:
		return hashBytes(c.local.Addr().AppendTo(text[:0])), c.local.IsValid()
	case listenerPort:
		return hashBytes(strconv.AppendUint(text[:0], uint64(c.local.Port()), 10)), c.local.IsValid()
	case connectionNumber:
		return hashBytes(strconv.AppendUint(text[:0], c.number, 10)), true
	default:
		if r == nil {
			return 0, false
		}
		return s.hashRequestState(c, r)
	}
}

func (s *step) hashRequestState(c *client, r *request) (uint64, bool) {
	switch s.state {
	case requestProtocol:
		return hashText(r.version), true
	case requestHost:
		return hashText(r.authority), true
	case requestPath:
		return hashText(r.path()), true
	case requestMethod:
		return hashText(r.method), true
	default:
		value, ok := c.told(r, s.name)
		return hashText(value), ok
	}
}

// told finds what a filter said of a key: the first value, without the white space around it. Clients that are no trusted
// filters say nothing.
func (c *client) told(r *request, key string) (string, bool) {
	if !c.isFilter {
		return "", false
	}
	var few [fewValues]string
	for _, rest := range r.fields.values(fieldName{FilterStateField, filterStateLower}, few[:0]) {
		for rest != "" {
			var pair string
			pair, rest, _ = strings.Cut(rest, ",")
			name, value, ok := strings.Cut(pair, "=")
			if ok && strings.Trim(name, " \t") == key {
				return strings.Trim(value, " \t"), true
			}
		}
	}
	return "", false
}
