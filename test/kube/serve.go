package kube

import (
	"io"
	"net"
	"sync"
	"testing"
)

// serve answers each connection in a goroutine and ends them all, and waits for them, when the test does. cut ends those that
// are open.
func serve(tb testing.TB, listener net.Listener, answer func(net.Conn)) (cut func()) {
	tb.Helper()
	var (
		mu    sync.Mutex
		open  = make(map[net.Conn]bool)
		ended bool
		group sync.WaitGroup
	)
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed below
			}
			mu.Lock()
			if ended {
				_ = conn.Close()
			} else {
				open[conn] = true
			}
			mu.Unlock()
			group.Go(func() {
				answer(conn)
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
				_ = conn.Close()
			})
		}
	})
	cut = func() {
		mu.Lock()
		defer mu.Unlock()
		for conn := range open {
			_ = conn.Close()
		}
	}
	tb.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		ended = true
		mu.Unlock()
		cut()
		group.Wait()
	})
	return cut
}

// splice copies both ways until either side is done.
func splice(a, b net.Conn) {
	done := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pipe(a, b)
	go pipe(b, a)
	<-done
	_ = a.Close()
	_ = b.Close()
	<-done
}
