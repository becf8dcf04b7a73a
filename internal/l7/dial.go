package l7

import (
	"errors"
	"net"
	"syscall"
)

// isStarved tells whether an error is our own want of file descriptors, ports or memory, of which no endpoint is guilty.
func isStarved(err error) bool {
	for _, own := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// endingOf tells what it means that there is no connection.
func endingOf(err error) ending {
	if isStarved(err) {
		return starved
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return connectTimedOut
	}
	return connectFailed
}
