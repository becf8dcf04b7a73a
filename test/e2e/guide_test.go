package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-lb/weir/internal/patience"
)

// The guide's sessions are read as people do: a line that begins with a dollar sign is a command, what follows it is what the
// command prints. In that, … stands for anything, and on a line of its own for any number of lines. A command that ends with
// & goes on in the background until "kill" names it by its number; one after a "sleep" is tried until it prints what
// the page says, because what the page waits for takes longer on a busy machine.

// command is one of a session.
type command struct {
	text string
	want []string // lines
}

// sessionOf reads the commands of a page.
func sessionOf(page string) []command {
	var session []command
	reading := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, " \n")
		text, isCommand := strings.CutPrefix(line, "    $ ")
		inside, isIndented := strings.CutPrefix(line, "    ")
		switch {
		case isCommand:
			session = append(session, command{text: text})
			reading = true
		case reading && (isIndented || line == ""):
			last := &session[len(session)-1]
			if before, goesOn := strings.CutSuffix(last.text, `\`); goesOn {
				last.text = before + inside
			} else {
				last.want = append(last.want, inside)
			}
		default:
			reading = false
		}
	}
	return session
}

// pattern matches the output that a page shows, with spaces at the ends of lines cut off.
func (c *command) pattern() *regexp.Regexp {
	var text strings.Builder
	for line := range strings.Lines(strings.TrimSpace(strings.Join(c.want, "\n")) + "\n") {
		if line == "…\n" {
			text.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		text.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", `[^\n]*`))
	}
	return regexp.MustCompile(`^\s*` + text.String() + `\s*$`)
}

// trim cuts spaces, and what else ends lines of HTTP, off the ends of lines.
func trim(output string) string {
	return regexp.MustCompile(`(?m)[ \r]+$`).ReplaceAllString(output, "") + "\n"
}

// reader follows a page.
type reader struct {
	t          *testing.T
	background []*exec.Cmd // by their number - 1
	waited     bool        // the command before was a sleep
}

func (r *reader) shell(text string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), "bash", "-o", "pipefail", "-c", text)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	return cmd
}

// follow does what a command says and compares what it prints with the page.
func (r *reader) follow(c command) {
	r.t.Helper()
	if text, ok := strings.CutSuffix(c.text, " &"); ok {
		r.start(text, c.pattern())
		return
	}
	if jobs, ok := strings.CutPrefix(c.text, "kill "); ok {
		for job := range strings.FieldsSeq(jobs) {
			var number int
			if _, err := fmt.Sscanf(job, "%%%d", &number); err != nil || number < 1 || number > len(r.background) {
				r.t.Fatalf("%s: no such job %s", c.text, job)
			}
			r.stop(r.background[number-1])
		}
		return
	}
	want := c.pattern()
	attempt := func() (string, bool) {
		output, err := r.shell(c.text).CombinedOutput()
		got := trim(string(output))
		return fmt.Sprintf("%s (%v)", got, err), err == nil && want.MatchString(got)
	}
	got, ok := attempt()
	if !ok && r.waited {
		patience.Until(r.t, fmt.Sprintf("%s prints what the page says", c.text), func() bool {
			got, ok = attempt()
			return ok
		})
	}
	if !ok {
		r.t.Fatalf("%s prints\n%s\nwant\n%s", c.text, got, strings.Join(c.want, "\n"))
	}
	r.waited = strings.HasPrefix(c.text, "sleep ")
}

// start runs a command in the background and waits until it prints what the page says and, if it is an agent, is ready.
func (r *reader) start(text string, want *regexp.Regexp) {
	r.t.Helper()
	log := &patience.Log{}
	cmd := r.shell("exec " + text)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run has a child
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.background = append(r.background, cmd)
	r.t.Cleanup(func() {
		r.stop(cmd)
		if r.t.Failed() {
			r.t.Logf("%s printed\n%s", text, log)
		}
	})
	admin := regexp.MustCompile(`--admin-bind-address (\S+)`).FindStringSubmatch(text)
	patience.Until(r.t, text+" is up", func() bool {
		if admin == nil {
			return want.MatchString(trim(log.String()))
		}
		resp, err := http.Get("http://" + admin[1] + "/readyz") //nolint:noctx // ends with the agent.
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// stop ends a command and its children; once is enough.
func (r *reader) stop(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
	}
}

// TestTheGuidesSnippetsAreAccepted checks what pages show of a policy's spec.
func TestTheGuidesSnippetsAreAccepted(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	snippet := regexp.MustCompile(`(?m)^\n((?:    .+\n)+)`)
	ofSpec := regexp.MustCompile(`^    (?:loadBalancer|hashPolicies|locality|outlierDetection|slowStart|panicThreshold):`)
	found := 0
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range snippet.FindAllStringSubmatch(string(page), -1) {
			if !ofSpec.MatchString(match[1]) {
				continue
			}
			found++
			check := exec.CommandContext(t.Context(), program, "policy", "check", "-")
			check.Stdin = strings.NewReader(`apiVersion: weir.dev/v1alpha1
kind: LoadBalancingPolicy
metadata: {name: snippet, namespace: shop}
spec:
    targetRefs: [{group: "", kind: Service, name: cart}]
` + match[1])
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s shows\n%s\nof which weir policy check says\n%s", path, match[1], out)
			}
		}
	}
	if found == 0 {
		t.Error("no snippet found on any page: the pattern is broken")
	}
}

// TestTheGuidesSessionsAreTrue follows each page that has a session from the first command to the last.
func TestTheGuidesSessionsAreTrue(t *testing.T) {
	// The pages name their addresses, so only one reader at a time can follow them on a machine.
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "weir-guide.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // a file's number.
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	var all bytes.Buffer
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		session := sessionOf(string(page))
		if name := filepath.Base(path); len(session) == 0 && strings.HasPrefix(name, "policy") {
			t.Errorf("%s has no session: each feature of policies has an example that runs", name)
		}
		if len(session) == 0 {
			continue
		}
		all.Write(page)
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := &reader{t: t}
			for _, c := range session {
				r.follow(c)
			}
		})
	}
	clusters, err := os.ReadFile("../../docs/clusters.md") // test/kube runs its commands on two clusters
	if err != nil {
		t.Fatal(err)
	}
	all.Write(clusters)
	examples, err := filepath.Glob("../../docs/examples/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range examples {
		if name := "docs/examples/" + filepath.Base(path); !strings.Contains(all.String(), name) {
			t.Errorf("no page has %s in a session", name)
		}
	}
}
