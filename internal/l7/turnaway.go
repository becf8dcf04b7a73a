package l7

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/core/reason"
)

// refusalsAtOnce bounds how many clients above the limit of connections are refused with an answer at the same time; the others are
// reset. Politeness must not be what a flood feeds on.
const refusalsAtOnce = 64

// turnAway refuses a client above the limit of connections: with 503 if it speaks HTTP/1, else with a reset.
func (s *Server) turnAway(conn net.Conn) {
	r := refusalFor(reason.ConnectionLimit)
	s.shared.upstreams.Load().of(addrPortOf(conn.RemoteAddr()).Addr()).observer().Request(Result{
		Protocol: s.options.Protocol,
		Status:   NoStatus,
		Code:     r.status,
		Outcome:  pick.Failure,
		Reason:   r.code,
	})
	select {
	case s.refusals <- struct{}{}:
		if !s.running.start(func() {
			defer func() { <-s.refusals }()
			s.tell(conn, r)
		}) {
			<-s.refusals
			_ = conn.Close()
		}
	default:
		reject(conn)
		_ = conn.Close()
	}
}

// tell waits for the client's request: an answer that comes before it is lost when the connection is closed.
func (s *Server) tell(conn net.Conn, r refusal) {
	defer func() { _ = conn.Close() }()
	s.open.add(conn)
	defer s.open.remove(conn)
	p, early := TCP, []byte(nil)
	if s.options.Protocol != TCP {
		p, early = detect(conn, defaultDetect)
	}
	if p != HTTP || strings.HasPrefix(string(early), "PRI") {
		reject(conn)
		return
	}
	text := "weir: " + s.streams.texts[r.code] + "\n"
	_ = conn.SetDeadline(time.Now().Add(lingerTime))
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nWeir-Reason: %s\r\nRetry-After: 1\r\nConnection: close\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s",
		r.status, http.StatusText(r.status), r.code, len(text), text)
	half, ok := conn.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, lingerBytes)
}
