package kube

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tailLines is how much of a log a failed test shows of each program: enough for a start that went wrong.
const tailLines = 40

// A Process is a running program whose output is kept. It is safe for concurrent use.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the program has ended
	err  error         // how it ended; to be read after done is closed
}

// command is what to start.
type command struct {
	name    string // of the process, unique in a cluster
	program string
	args    []string
	inside  *Namespace // nil: where the test runs
}

// start starts the program. It ends with the test, or when the test's process dies.
func (c *Cluster) start(what command) *Process {
	c.tb.Helper()
	p := &Process{Name: what.name, log: filepath.Join(c.logs, what.name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.tb.Fatal(err)
	}
	defer func() { _ = log.Close() }()               // the child has its own copy
	p.cmd = exec.Command(what.program, what.args...) //nolint:noctx // ended by the cleanup, with its whole group.
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := what.inside.Do(p.cmd.Start); err != nil {
		c.tb.Fatalf("start %s: %v", what.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	c.tb.Cleanup(func() { c.end(p) })
	return p
}

// end kills the process and shows the end of its log when the test failed.
func (c *Cluster) end(p *Process) {
	c.tb.Helper()
	p.Kill()
	if !c.tb.Failed() {
		return
	}
	// A program that was started several times appends to one log, which is shown once.
	text := p.Log()
	if err := os.Remove(p.log); err == nil {
		c.tb.Logf("the last lines of %s:\n%s", p.Name, tail(text))
	}
}

// Kill ends the process and its group at once and waits until it is gone. It does nothing to one that has ended.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Terminate asks the process to end as a kubelet does and waits for at most limit, after which it is killed.
//
// Errors: how the process ended when that was not with exit code 0, or that it had to be killed.
func (p *Process) Terminate(limit time.Duration) error {
	p.Signal(syscall.SIGTERM)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("%s had not ended %s after SIGTERM", p.Name, limit)
	}
}

// Signal sends a signal to the process and its group unless it has ended.
func (p *Process) Signal(signal syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, signal) // it may be ending just now
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Log is all that the process has written so far, and that its namesakes before it wrote.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Memory is how much of the process is resident now, and was at most, in bytes.
func (p *Process) Memory() (resident, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kibibytes int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kibibytes); err == nil {
			resident = kibibytes << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kibibytes); err == nil {
			peak = kibibytes << 10
		}
	}
	if resident == 0 || peak == 0 {
		return 0, 0, fmt.Errorf("%s tells no resident memory", p.Name)
	}
	return resident, peak, nil
}

// Running is an error when the process has ended.
func (p *Process) Running() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %w", p.Name, errors.Join(p.err, errors.New("see its log")))
	default:
		return nil
	}
}

func tail(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// until asks holds until it gives nil, and fails the test with its last error after limit.
func until(tb testing.TB, what string, limit time.Duration, holds func() error) time.Duration {
	tb.Helper()
	started := time.Now()
	for {
		err := holds()
		waited := time.Since(started)
		if err == nil {
			return waited
		}
		if waited > limit {
			tb.Fatalf("waited %s until %s: %v", limit, what, err)
		}
		time.Sleep(pollPause)
	}
}

// pollPause is how long a wait sleeps between two questions: short against what it measures, seconds, and long against
// what a question to the API server costs, a millisecond.
const pollPause = 25 * time.Millisecond
