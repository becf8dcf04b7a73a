package kube

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A Namespace is a network namespace of the test. It has no name and no link to the outside, and is gone when the test's
// processes are.
type Namespace struct {
	file *os.File
}

func newNamespace(tb testing.TB) *Namespace {
	tb.Helper()
	n := &Namespace{}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace (as root?): %w", err)
		}
		var err error
		n.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = n.file.Close() })
	return n
}

// Do runs f in the namespace: the sockets that it makes in this goroutine, and the programs that it starts, belong there.
// A nil Namespace is that of the test.
func (n *Namespace) Do(f func() error) error {
	if n == nil {
		return f()
	}
	return onThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network namespace: %w", err)
		}
		return f()
	})
}

// onThread runs f, which may change the network namespace of its thread, and brings the thread back. Programs that f
// starts live as long as the thread, so it must not end; one that cannot be brought back is our bug, and would be lost.
func onThread(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = home.Close() }()
	problem := f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		return errors.Join(problem, fmt.Errorf("leave the network namespace: %w", err)) // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return problem
}
