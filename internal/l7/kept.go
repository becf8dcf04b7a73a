package l7

import (
	"slices"
	"time"
)

// keptMost lets the kept HTTP/1 connections of an endpoint grow to the load; what the load does not use any more is closed after EndpointIdle.
const keptMost = 4_096

// use gives the call a kept HTTP/1 connection, or has one made; it tells which. The caller holds the call's lock.
func (o *origin) use(x *call, b *batch) bool {
	for c := o.take(); c != nil; c = o.take() {
		// What can be sent again need not be asked about: if it is lost with the connection, it is. A body that is still coming may grow too
		// large for that.
		if (x.isRepeatable() && x.far.last || !c.isStale()) && c.open(x, b) {
			return true
		}
		_ = c.Close()
	}
	x.applied = true
	life := x.life
	// It does not start after the server's end, when the call's client is being cut.
	_ = o.streams.running.start(func() { o.connect(applicant{x, life}) })
	return false
}

// take gives the kept connection that was used last.
func (o *origin) take() *outbound {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.kept) - 1
	if last < 0 {
		return nil
	}
	c := o.kept[last]
	o.kept[last] = nil
	o.kept = o.kept[:last]
	return c
}

// keep takes a connection back; false if it is not wanted.
func (o *origin) keep(c *outbound) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone.Load() || len(o.kept) >= keptMost {
		return false
	}
	o.kept = append(o.kept, c)
	return true
}

// forget takes a connection out; false if it is used.
func (o *origin) forget(c *outbound) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.kept, c)
	if i < 0 {
		return false
	}
	o.kept = slices.Delete(o.kept, i, i+1)
	return true
}

// connect makes a connection for a call, and reads it.
func (o *origin) connect(a applicant) {
	var b batch
	start := time.Now()
	conn, err := o.streams.dialer.DialContext(o.streams.life, "tcp", o.addr.String())
	if err != nil {
		a.call.notConnected(a.life, endingOf(err), &b)
		b.flush()
		return
	}
	c := o.streams.newOutbound(o, newSocket(conn, nil))
	o.streams.enter(c)
	if !a.call.connectedBy(a.life, c, max(time.Since(start), time.Nanosecond), &b) && !o.keep(c) {
		_ = c.Close()
	}
	b.flush()
	c.read()
}

// connectedBy goes on with a connection; false if the call does not need it any more.
func (x *call) connectedBy(life uint64, c *outbound, took time.Duration, b *batch) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.life != life || !x.applied {
		return false
	}
	x.applied = false
	x.connected(took)
	if !c.open(x, b) { // the server ends
		x.fail(connectFailed, b)
		return true
	}
	x.goOn(&x.far, b)
	return true
}
