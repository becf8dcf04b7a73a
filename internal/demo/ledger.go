package demo

import (
	"net/http"
	"strconv"
	"sync"
)

// What clients tell endpoints through the proxy in between: which request this is, where it comes from, and how many
// nanoseconds it takes a slot.
const (
	requestHeader = "X-Demo-Request"
	fromHeader    = "X-Demo-From"
	workHeader    = "X-Demo-Work"
)

// ledger notes which endpoints each request arrived at. An answer says who gave it; of a request that nobody answered
// only this can tell who swallowed it. Clients and endpoints share a process, so they share the ledger. The zero value
// is empty. It is safe for concurrent use.
type ledger struct {
	mu   sync.Mutex
	last uint64
	open map[uint64][]int // where each request under way arrived
}

// begin opens an account for one request.
func (l *ledger) begin() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[uint64][]int)
	}
	l.last++
	l.open[l.last] = nil
	return l.last
}

// arrived notes that the request r reached an endpoint in the given place. What arrives after its client has left is not
// noted.
func (l *ledger) arrived(r *http.Request, place int) {
	id, err := strconv.ParseUint(r.Header.Get(requestHeader), 10, 64)
	if err != nil {
		return // not one of the clients'
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if places, ok := l.open[id]; ok {
		l.open[id] = append(places, place)
	}
}

// end closes the account and gives the places in order of arrival.
func (l *ledger) end(id uint64) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	places := l.open[id]
	delete(l.open, id)
	return places
}
