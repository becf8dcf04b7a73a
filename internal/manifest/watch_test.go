package manifest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/manifest"
)

// patience is how long a test waits for what should take a second at most: machines that run tests are busy.
const patience = 20 * time.Second

// watch is a running Watch and what it has told.
type watch struct {
	t         *testing.T
	published chan manifest.Result
	reported  chan error
}

func startWatch(t *testing.T, s manifest.Source) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watch{t: t, published: make(chan manifest.Result, 10), reported: make(chan error, 10)}
	done := make(chan error, 1)
	go func() {
		done <- manifest.Watch(ctx, s, manifest.Options{}, manifest.Events{
			Publish: func(r manifest.Result) { w.published <- r },
			Report:  func(err error) { w.reported <- err },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("want no error at the end, got %v", err)
		}
	})
	return w
}

// wantServices waits for a Result, and checks the names of its services.
func (w *watch) wantServices(names ...string) {
	w.t.Helper()
	select {
	case r := <-w.published:
		var got []string
		for _, s := range r.Snapshot.Services {
			got = append(got, s.Name)
		}
		equal := strings.Join(got, " ") == strings.Join(names, " ")
		if !equal {
			w.t.Fatalf("want services %q, got %q", names, got)
		}
	case err := <-w.reported:
		w.t.Fatalf("want services %q, got the error %v", names, err)
	case <-time.After(patience):
		w.t.Fatalf("services %q were not published", names)
	}
}

// wantError waits for a report that contains part.
func (w *watch) wantError(part string) {
	w.t.Helper()
	select {
	case r := <-w.published:
		w.t.Fatalf("want an error with %q, got %s", part, r.Snapshot)
	case err := <-w.reported:
		if !strings.Contains(err.Error(), part) {
			w.t.Fatalf("want an error with %q, got %v", part, err)
		}
	case <-time.After(patience):
		w.t.Fatalf("no error with %q was reported", part)
	}
}

// put writes a file in one step, so that no test depends on whether it is read half written.
func put(t *testing.T, path, text string) {
	t.Helper()
	half := filepath.Join(filepath.Dir(path), ".half")
	if err := os.WriteFile(half, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rename(t, half, path)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestChangesArePublished(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": service("a", "80")})
	w := startWatch(t, manifest.Source{Paths: []string{dir}})
	w.wantServices("a")
	put(t, filepath.Join(dir, "b.yaml"), service("b", "80"))
	w.wantServices("a", "b")
	put(t, filepath.Join(dir, "b.yaml"), service("b", "80")) // nothing new
	put(t, filepath.Join(dir, "b.txt"), service("x", "80"))  // no manifest
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	w.wantServices("b")
}

func TestBrokenFileIsReportedOnceAndTheLastGoodStateStays(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": service("a", "80")})
	w := startWatch(t, manifest.Source{Paths: []string{dir}})
	w.wantServices("a")
	put(t, filepath.Join(dir, "a.yaml"), service("a", "eighty"))
	w.wantError("a.yaml:4: spec.ports[0].port: want a whole number (int32), got text")
	// The change of another file has all read again, and the same error found.
	put(t, filepath.Join(dir, "b.yaml"), service("b", "80"))
	put(t, filepath.Join(dir, "c.yaml"), "{")
	w.wantError("c.yaml")
	if err := os.Remove(filepath.Join(dir, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	w.wantError("a.yaml:4")
	put(t, filepath.Join(dir, "a.yaml"), service("a", "80"))
	w.wantServices("a", "b")
}

func TestFileThatAnEditorReplacesIsReadAgain(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": service("a", "80")})
	w := startWatch(t, manifest.Source{Paths: []string{filepath.Join(dir, "a.yaml")}})
	w.wantServices("a")
	for _, name := range []string{"b", "c"} {
		put(t, filepath.Join(dir, "a.yaml"), service(name, "80"))
		w.wantServices(name)
	}
}

func TestMountedConfigMapIsReadAgain(t *testing.T) {
	dir := write(t, map[string]string{"..1/a.yaml": service("a", "80"), "..2/a.yaml": service("b", "80")})
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "..data")
	link(filepath.Join("..data", "a.yaml"), "a.yaml")
	w := startWatch(t, manifest.Source{Paths: []string{dir}})
	w.wantServices("a")
	link("..2", "..data_tmp")
	rename(t, filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
	w.wantServices("b")
}

func TestPollingFindsWhatIsNotAnnounced(t *testing.T) {
	dir := write(t, map[string]string{"sub/a.yaml": service("a", "80")})
	w := startWatch(t, manifest.Source{Paths: []string{dir}, Recursive: true})
	w.wantServices("a")
	put(t, filepath.Join(dir, "sub", "a.yaml"), service("other", "80")) // folders within folders are polled
	w.wantServices("other")
}

func TestFolderThatComesLateIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "late")
	w := startWatch(t, manifest.Source{Paths: []string{dir}})
	w.wantError("no such file")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.wantServices()
	put(t, filepath.Join(dir, "a.yaml"), service("a", "80"))
	w.wantServices("a")
}

func TestStandardInputIsNotWatched(t *testing.T) {
	err := manifest.Watch(t.Context(), manifest.Source{Paths: []string{"-"}}, manifest.Options{}, manifest.Events{})
	if err == nil || !strings.Contains(err.Error(), "standard input cannot be watched") {
		t.Errorf("got %v", err)
	}
}

// A shell empties a file before the command begins that writes it, which may take seconds.
func TestAFileThatBecomesEmptyKeepsTheLastState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	put(t, path, service("one", "80"))
	w := startWatch(t, manifest.Source{Paths: []string{path}})
	w.wantServices("one")
	put(t, path, "")
	w.wantError("the file became empty")
	put(t, path, service("two", "80"))
	w.wantServices("two")
	put(t, path, "# nothing, on purpose\n")
	w.wantServices()
}

func TestAFileThatWasAlwaysEmptyIsNoMistake(t *testing.T) {
	folder := t.TempDir()
	put(t, filepath.Join(folder, "a.yaml"), service("one", "80"))
	put(t, filepath.Join(folder, "b.yaml"), "")
	w := startWatch(t, manifest.Source{Paths: []string{folder}})
	w.wantServices("one")
	put(t, filepath.Join(folder, "a.yaml"), service("two", "80"))
	w.wantServices("two")
}

// Opening a pipe waits for a writer, and would keep the watch from ending.
func TestAPipeInPlaceOfAFileIsReportedAndNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	put(t, path, service("one", "80"))
	w := startWatch(t, manifest.Source{Paths: []string{path}})
	w.wantServices("one")
	pipe := filepath.Join(filepath.Dir(path), ".pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	rename(t, pipe, path)
	w.wantError("a pipe or a device")
	put(t, path, service("two", "80"))
	w.wantServices("two")
}

func TestWhatCanBeWatched(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		folder: true, filepath.Join(folder, "later.yaml"): true, pipe: false, os.DevNull: false, manifest.Stdin: false,
	} {
		if got := (manifest.Source{Paths: []string{folder, path}}).CanWatch(); got != want {
			t.Errorf("%s: want %v, got %v", path, want, got)
		}
	}
}

// Nothing is heard of folders within folders: looking at them has to find the link.
func TestALinkThatLeadsNowhereIsReported(t *testing.T) {
	folder := t.TempDir()
	below := filepath.Join(folder, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(below, "a.yaml"), service("one", "80"))
	w := startWatch(t, manifest.Source{Paths: []string{folder}, Recursive: true})
	w.wantServices("one")
	link := filepath.Join(below, "b.yaml")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	w.wantError("b.yaml")
	put(t, filepath.Join(below, "nowhere"), service("two", "80"))
	w.wantServices("one", "two")
}
