package l7_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/h2"
	"github.com/weir-lb/weir/internal/l7"
)

// FuzzHTTP2Conversation lets a client and an endpoint send whatever they like: the proxy does not fail, every ticket is closed, and another
// client's request is answered.
func FuzzHTTP2Conversation(f *testing.F) {
	settings := h2.AppendSettings(nil)
	head := func(stream uint32, flags h2.Flags, fields ...h2.Field) []byte {
		e := h2.NewEncoder()
		for _, field := range fields {
			e.AddField(field)
		}
		return e.Append(nil, stream, flags, h2.MaxPayload)
	}
	ask := head(1, 0, h2.Field{Name: ":method", Value: "POST"}, h2.Field{Name: ":scheme", Value: "http"}, h2.Field{Name: ":authority", Value: "h"}, h2.Field{Name: ":path", Value: "/"})
	answer := head(1, 0, h2.Field{Name: ":status", Value: "200"})
	body := h2.AppendData(nil, 1, h2.EndStream, []byte("hello"))
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	f.Add(join(settings, ask, body), join(settings, answer, body))
	f.Add(join(settings, ask, h2.AppendReset(nil, 1, h2.Cancel), ask), join(settings, h2.AppendReset(nil, 1, h2.RefusedStream)))
	f.Add(join(settings, ask, h2.AppendWindowUpdate(nil, 1, 1<<31-1)), join(settings, h2.AppendGoAway(nil, 0, h2.NoError, ""), answer))
	f.Add(join(settings, ask, head(1, h2.EndStream, h2.Field{Name: "sum", Value: "1"})), join(settings, answer, head(1, h2.EndStream, h2.Field{Name: "grpc-status", Value: "0"})))
	f.Add(join(settings, ask, h2.AppendPing(nil, h2.Ack, [8]byte{})), []byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	type script struct{ client, endpoint []byte }
	scripts := make(chan script, 1)
	strange := serveTCP(f, func(conn *net.TCPConn) {
		select {
		case s := <-scripts:
			say(conn, string(s.endpoint))
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
			_, _ = io.Copy(io.Discard, conn)
		default:
		}
	})
	p := start(f, l7.Options{Upstreams: only(poolOf(strange), nil), Timeouts: l7.Timeouts{Response: 100 * time.Millisecond, Body: 100 * time.Millisecond}})
	good := start(f, l7.Options{Upstreams: only(poolOf(frugal(f)), nil)})
	f.Fuzz(func(t *testing.T, client, endpoint []byte) {
		select {
		case <-scripts:
		default:
		}
		scripts <- script{client, endpoint}
		conn := dial(t, p.Addr())
		say(conn, h2.Preface)
		say(conn, string(client))
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = io.Copy(io.Discard, conn)
		shut(conn)
		waitFor(t, func() bool { return p.pool.Status().Endpoints[0].InFlight == 0 })
		newAsker(t, good.Addr())
	})
}
