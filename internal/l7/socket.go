package l7

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// socket reads and writes one connection without blocking a writer, and holds a buffer only while something is there to read. What is no
// system socket, as in tests, blocks in Read, and never writes in place.
type socket struct {
	net.Conn
	raw syscall.RawConn // nil: no system socket

	wake   chan struct{} // has a reader that waits for something else than bytes look again; nil: it never does
	closed atomic.Bool

	// The reader's own.
	buffer  *readBuffer // nil while there is nothing to read
	have    int         // bytes in buffer, or in rest while there is no buffer
	rest    []byte      // an incomplete frame, while the reader waits for the rest of it
	fault   error
	tryRead func(uintptr) bool

	// The writer's own.
	sending  []byte
	taken    atomic.Int64 // bytes that the system took
	wfault   error
	tryWrite func(uintptr) bool
	endWrite func(uintptr) bool
}

// readSize is what is read at once: four frames of the usual size. Only connections with something to read hold so much.
const readSize = 64 << 10

type readBuffer [readSize]byte

// readBuffers and outBuffers are shared by all connections of a server.
type buffers struct {
	read sync.Pool // of *readBuffer
	out  sync.Pool // of *outBuffer
}

type outBuffer struct{ b []byte }

const (
	// outSize is what a buffer for output begins with: some dozens of small answers.
	outSize = 16 << 10
	// outKept is the largest buffer for output that is kept.
	outKept = 512 << 10
)

func newSocket(conn net.Conn, early []byte) *socket {
	s := &socket{Conn: conn, rest: early, have: len(early)}
	if system, ok := conn.(syscall.Conn); ok {
		if raw, err := system.SyscallConn(); err == nil {
			s.raw = raw
		}
	}
	return s
}

// bind prepares the calls on the socket once, so that none of them makes garbage.
func (s *socket) bind(pool *buffers) {
	s.tryRead = func(fd uintptr) bool { return s.readOnce(int(fd), pool) }
	s.tryWrite = func(fd uintptr) bool {
		s.writeSome(int(fd))
		return true
	}
	s.endWrite = func(fd uintptr) bool { return s.writeSome(int(fd)) }
}

// fill waits for bytes and reads them behind those that are there already.
func (s *socket) fill(pool *buffers) error {
	if s.raw == nil {
		s.take(pool)
		n, err := s.Read(s.buffer[s.have:])
		s.have += n
		if n > 0 {
			return nil
		}
		return err
	}
	if err := s.raw.Read(s.tryRead); err != nil {
		return err
	}
	return s.fault
}

// readOnce reads what is there; false if nothing is. RawConn.Read forgets that the socket is readable before it calls: each call has to try.
func (s *socket) readOnce(fd int, pool *buffers) bool {
	s.take(pool)
	for {
		n, err := syscall.Read(fd, s.buffer[s.have:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			s.stash(pool)
			return false
		case err != nil:
			s.fault = err
		case n == 0:
			s.fault = io.EOF
		default:
			s.have += n
			s.fault = nil
		}
		return true
	}
}

// take gets a buffer and puts there what has been read before.
func (s *socket) take(pool *buffers) {
	if s.buffer != nil {
		return
	}
	s.buffer, _ = pool.read.Get().(*readBuffer)
	if s.buffer == nil {
		s.buffer = new(readBuffer)
	}
	copy(s.buffer[:], s.rest[:s.have])
	if cap(s.rest) > 1<<10 {
		s.rest = nil
	}
}

// stash gives the buffer back and keeps what it held of an incomplete frame.
func (s *socket) stash(pool *buffers) {
	if s.buffer == nil {
		return
	}
	s.rest = append(s.rest[:0], s.buffer[:s.have]...)
	pool.read.Put(s.buffer)
	s.buffer = nil
}

// bytes are those that were read and not consumed.
func (s *socket) bytes() []byte {
	if s.buffer == nil {
		return s.rest[:s.have]
	}
	return s.buffer[:s.have]
}

// consume drops the first n bytes.
func (s *socket) consume(n int) {
	b := s.bytes()
	copy(b, b[n:])
	s.have -= n
}

// writeSome writes what it can of sending; false if the socket takes no more for now.
func (s *socket) writeSome(fd int) bool {
	for len(s.sending) > 0 {
		n, err := syscall.Write(fd, s.sending)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return false
		case err != nil:
			s.wfault = err
			return true
		}
		s.sending = s.sending[n:]
		s.taken.Add(int64(n))
	}
	return true
}

// Close closes the connection, and wakes its reader.
func (s *socket) Close() error {
	s.closed.Store(true)
	s.signal()
	return s.Conn.Close()
}

// signal wakes the reader if it waits for something else than bytes.
func (s *socket) signal() {
	if s.wake != nil {
		select {
		case s.wake <- struct{}{}:
		default: // it is about to look
		}
	}
}

// closeWrite ends this side; what cannot be closed by half is closed whole.
func (s *socket) closeWrite() {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.Close()
}
