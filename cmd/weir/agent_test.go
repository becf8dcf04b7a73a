package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/patience"
	"github.com/weir-lb/weir/test/local"
)

// started is a weir agent that runs in this process.
type started struct {
	url   string // of the service
	admin string // of the admin pages
	log   *patience.Log
	stop  func() int // gives the exit status
}

// startAgent serves a fixture on node-a until the test ends.
func startAgent(t *testing.T, w fixture, folder string, args ...string) *started {
	t.Helper()
	return launchAgent(t, w, append([]string{"-f", folder}, args...)...)
}

// launchAgent serves what the arguments lead to on node-a until the test ends; w says where.
func launchAgent(t *testing.T, w fixture, args ...string) *started {
	t.Helper()
	s := &started{
		url: fmt.Sprintf("http://%s:%d", w.ip, w.port),
		log: &patience.Log{},
	}
	adminPort := local.FreePort(t, w.ip)
	s.admin = fmt.Sprintf("http://%s:%d", w.ip, adminPort)
	args = append([]string{
		"agent", "--node", "node-a",
		"--admin-bind-address", fmt.Sprintf("%s:%d", w.ip, adminPort),
	}, args...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, streams{in: strings.NewReader(""), out: s.log, err: s.log}) }()
	s.stop = sync.OnceValue(func() int {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if status := s.stop(); status != exitOK {
			t.Errorf("the agent ended with status %d", status)
		}
		if t.Failed() {
			t.Logf("log:\n%s", s.log)
		}
	})
	patience.Until(t, "the agent is ready", func() bool {
		status, _ := get(t, s.admin+"/readyz")
		return status == http.StatusOK
	})
	return s
}

// As with a shell's <(kubectl get …), which has nothing more to say when it is read again.
func TestManifestsFromAPipeAreServedUntilTheEnd(t *testing.T) {
	w := fixture{ip: "127.78.60.1", mode: "PreferSameZone", port: local.FreePort(t, "127.78.60.1")}
	w.endpoints = []member{serve(t, "127.78.60.2", "zone-a", says("yes"))}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // nothing was written.
	folder := writeManifests(t, w)
	for _, name := range []string{"nodes.yaml", "web.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writer.WriteString("---\n" + string(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	s := launchAgent(t, w, "-f", fmt.Sprintf("/proc/self/fd/%d", reader.Fd()))
	const looks = 20 // over a second: twice what a watch takes to see a change
	for range looks {
		if status, body := get(t, s.url); status != http.StatusOK || body != "yes" {
			t.Fatalf("want the service served, got %d %q", status, body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestAChangeOfAManifestIsServedWithinASecond(t *testing.T) {
	w := fixture{ip: "127.78.1.1", mode: "PreferSameZone", port: local.FreePort(t, "127.78.1.1")}
	w.endpoints = []member{serve(t, "127.78.1.2", "zone-a", says("old"))}
	fresh := serve(t, "127.78.1.3", "zone-a", says("new"))
	folder := writeManifests(t, w)
	s := startAgent(t, w, folder)
	if status, body := get(t, s.url); status != http.StatusOK || body != "old" {
		t.Fatalf("before the change: %d %q", status, body)
	}
	w.endpoints = []member{fresh}
	w.write(t, folder)
	isNew := func() bool {
		_, body := get(t, s.url)
		return body == "new"
	}
	patience.Within(t, time.Second, "the new endpoint answers", isNew)
	patience.Stays(t, time.Second, "the new endpoint answers", isNew)
}

func TestABrokenManifestKeepsTheLastGoodState(t *testing.T) {
	w := fixture{ip: "127.78.2.1", port: local.FreePort(t, "127.78.2.1")}
	w.endpoints = []member{serve(t, "127.78.2.2", "zone-a", says("here"))}
	folder := writeManifests(t, w)
	s := startAgent(t, w, folder)
	write(t, filepath.Join(folder, "web.yaml"), "kind: Service\nspec: {ports: [{port: many}]}\n")
	patience.Until(t, "the error is counted", func() bool {
		_, body := get(t, s.admin+"/metrics")
		return strings.Contains(body, "weir_manifest_errors_total 1")
	})
	patience.Stays(t, time.Second, "the last good state is served", func() bool {
		status, body := get(t, s.url)
		return status == http.StatusOK && body == "here"
	})
	if log := s.log.String(); !strings.Contains(log, "web.yaml") || !strings.Contains(log, "last good state") {
		t.Errorf("the log does not name the file:\n%s", log)
	}
	w.endpoints[0] = serve(t, "127.78.2.3", "zone-a", says("mended"))
	w.write(t, folder)
	patience.Within(t, time.Second, "the mended manifest is served", func() bool {
		_, body := get(t, s.url)
		return body == "mended"
	})
}

func TestTheLogTellsOfEachReadingThatMatters(t *testing.T) {
	w := fixture{ip: "127.78.6.1", port: local.FreePort(t, "127.78.6.1")}
	w.endpoints = []member{serve(t, "127.78.6.2", "zone-a", says("here"))}
	folder := writeManifests(t, w)
	s := startAgent(t, w, folder)
	readings := func() int { return strings.Count(s.log.String(), "manifests read") }
	write(t, filepath.Join(folder, "web.yaml"), "kind: Service\n")
	patience.Until(t, "the error is logged", func() bool { return strings.Contains(s.log.String(), "last good state") })
	if got := readings(); got != 1 {
		t.Errorf("%d readings are logged before the manifests broke, want 1:\n%s", got, s.log)
	}
	w.write(t, folder)
	patience.Until(t, "the log tells that they can be read again", func() bool { return readings() == 2 })
	if got := strings.Count(s.log.String(), `"msg":"serving"`); got != 1 {
		t.Errorf("%d changes are logged, want 1: the mended manifests are as before\n%s", got, s.log)
	}
}

func TestTheAgentAnswersForWhatItDoes(t *testing.T) {
	w := fixture{ip: "127.78.3.1", port: local.FreePort(t, "127.78.3.1")}
	w.endpoints = []member{
		serve(t, "127.78.3.2", "zone-a", says("a")),
		serve(t, "127.78.3.3", "zone-b", says("b")),
		serve(t, "127.78.3.4", "zone-c", says("c")),
	}
	s := startAgent(t, w, writeManifests(t, w), "--profiling", "--log-format", "text")
	get(t, s.url)
	for path, want := range map[string]string{
		"/":                              "/pools/{namespace}/{name}\n",
		"/livez?verbose":                 "[+]pools ok",
		"/readyz?verbose":                "[+]agent ok",
		"/services":                      `"service": "shop/web"`,
		"/plans":                         `"hinted": true`,
		"/pools":                         `"state": "calm"`,
		"/pools/shop/web":                `"home": true`,
		"/debug/pprof/cmdline":           "",
		"/metrics":                       `weir_requests_total{client_zone="zone-a",code="2xx",endpoint_zone="zone-a",protocol="http",service="shop/web"} 1`,
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
	} {
		if status, body := get(t, s.admin+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, want 200 and %q in\n%.2000s", path, status, want, body)
		}
	}
	if status, _ := get(t, s.admin+"/pools/shop/moon"); status != http.StatusNotFound {
		t.Errorf("/pools/shop/moon: %d, want 404", status)
	}
	if log := s.log.String(); !strings.Contains(log, "config.node=node-a") || !strings.Contains(log, "code=ProtocolNotServed") {
		t.Errorf("the log lacks the config or the problem with UDP:\n%s", log)
	}
}

func TestADryRunPrintsWhatWouldBeServed(t *testing.T) {
	w := fixture{ip: "127.78.4.1", endpoints: []member{{"127.78.4.2", 8080, "zone-a"}, {"127.78.4.3", 8080, "zone-b"}}}
	folder := writeManifests(t, w)
	status, out, err := weir(t, "", "agent", "-f", folder, "--node", "node-b", "--dry-run", "--map", "shop/web=127.78.4.9")
	if status != exitOK || err != "" {
		t.Fatalf("status %d, error %q", status, err)
	}
	golden.Check(t, "dry-run.golden", out)
	status, out, _ = weir(t, "", "agent", "-f", folder, "--node", "node-b", "--dry-run", "-o", "json")
	if status != exitOK || !strings.Contains(out, `"address": "127.78.4.1:80"`) {
		t.Errorf("status %d, output %q", status, out)
	}
}

func TestASignalDrainsAndASecondOneEndsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		signals int
		status  int
		body    string // what the request in flight gets
	}{
		"one": {signals: 1, status: 0, body: "late"},
		"two": {signals: 2, status: 128 + int(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			w := fixture{ip: "127.78.5.1", port: local.FreePort(t, "127.78.5.1")}
			entered, release := make(chan struct{}), make(chan struct{})
			free := sync.OnceFunc(func() { close(release) })
			defer free()
			w.endpoints = []member{serve(t, "127.78.5.2", "zone-a", func(w http.ResponseWriter, _ *http.Request) {
				close(entered)
				<-release
				_, _ = io.WriteString(w, "late")
			})}
			process, log := spawn(t, "agent", "-f", writeManifests(t, w), "--node", "node-a", "--admin-bind-address", "")
			patience.Until(t, "it serves", func() bool { return strings.Contains(log.String(), `"msg":"serving"`) })
			answered := make(chan string, 1)
			go func() {
				_, body := get(t, "http://"+w.ip+":"+strconv.Itoa(int(w.port)))
				answered <- body
			}()
			<-entered
			signal(t, process)
			patience.Until(t, "it drains", func() bool { return strings.Contains(log.String(), "draining") })
			if c.signals == 2 {
				signal(t, process)
			} else {
				free()
			}
			if body := <-answered; c.body != "" && body != c.body {
				t.Errorf("the request in flight got %q, want %q", body, c.body)
			}
			_ = process.Wait()
			if got := process.ProcessState.ExitCode(); got != c.status {
				t.Errorf("exit status %d, want %d; log:\n%s", got, c.status, log)
			}
		})
	}
}

// spawn runs weir as a process of its own, which is killed at the end of the test if it still runs.
func spawn(t *testing.T, args ...string) (*exec.Cmd, *patience.Log) {
	t.Helper()
	l := &patience.Log{}
	c := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	c.Env = append(os.Environ(), asWeir+"=1")
	c.Stdout, c.Stderr = l, l
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return c, l
}

func signal(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
