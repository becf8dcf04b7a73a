package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weir-lb/weir/internal/core/reason"
)

const (
	// pollEvery is how often files are looked at when nothing was heard of them: mounted ConfigMaps, network file
	// systems and editors that replace files keep some changes from the watcher. Twice a second finds every change
	// within a second.
	pollEvery = 500 * time.Millisecond
	// quietPeriod is how long files have to rest before they are read, so that a file is seldom read half written. It ends
	// after one pollEvery at the latest: files that are written all the time are read all the same.
	quietPeriod = 100 * time.Millisecond
)

// Events are what a watch tells. Both functions are called from Watch's own goroutine, one at a time.
type Events struct {
	// Publish is given the first Result and every one after a change.
	Publish func(Result)
	// Report is given what keeps the files from being read, once for as long as it stays the same. The Result published
	// last is still the one that counts; the next Publish says that all is well again.
	Report func(error)
}

// Watch reads the manifests of s and reads them again within a second of a change, until ctx is done. Files that cannot
// be read at first are reported like those that break later.
//
// Errors: standard input, which cannot be watched; and never again after that, it returns nil when ctx is done. A pipe
// or a device is reported, and never read: see Source.CanWatch.
func Watch(ctx context.Context, s Source, o Options, events Events) error {
	if slices.Contains(s.Paths, Stdin) {
		return errors.New("watch manifests: standard input cannot be watched")
	}
	w := watcher{source: s, options: o, events: events, watched: make(map[string]bool)}
	var changes <-chan fsnotify.Event
	var lost <-chan error
	if notify, err := fsnotify.NewWatcher(); err == nil {
		// Without it (no inotify instance left), polling alone still keeps the promise.
		defer notify.Close() //nolint:errcheck // nothing can be done about it, and nothing depends on it.
		w.notify, changes, lost = notify, notify.Events, notify.Errors
	}
	w.run(ctx, changes, lost)
	return nil
}

type watcher struct {
	source  Source
	options Options
	events  Events
	notify  *fsnotify.Watcher // nil: polling alone
	watched map[string]bool   // folders that notify watches

	seen     []fileState // the files as they were at the last look
	digest   [sha256.Size]byte
	read     bool            // whether digest is of anything
	filled   map[string]bool // files that had content in what was published last
	reported string          // the error reported last, until all is well
}

// fileState is what stat gives of a file.
type fileState struct {
	name string
	info fs.FileInfo // nil: it is listed, but leads nowhere
}

func (w *watcher) run(ctx context.Context, changes <-chan fsnotify.Event, lost <-chan error) {
	w.seen = w.stat()
	w.reload(ctx)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	rest := time.NewTimer(quietPeriod)
	defer rest.Stop()
	var since time.Time // of the first change that is not read yet; zero: none
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-lost: //nolint:errcheck // whatever was lost, looking at everything finds it.
		case <-poll.C:
			seen := w.stat()
			if since.IsZero() && w.reported == "" && slices.EqualFunc(seen, w.seen, sameFile) {
				continue
			}
			w.seen = seen
		case <-rest.C:
			if !since.IsZero() {
				since = time.Time{}
				w.seen = w.stat()
				w.reload(ctx)
			}
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		rest.Reset(min(quietPeriod, max(0, pollEvery-time.Since(since))))
	}
}

// stat watches all folders and gives the files as they are now; those that are not there are left out, but for links
// that lead nowhere, which reload has to report.
func (w *watcher) stat() []fileState {
	var states []fileState
	for _, path := range w.source.Paths {
		w.watch(path)
		names, err := list(path, w.source.Recursive)
		if err != nil {
			continue // reload reports it
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				info = nil
			}
			states = append(states, fileState{name, info})
		}
	}
	return states
}

// watch has changes in path announced; a file by its folder, because editors put a new file in its place.
func (w *watcher) watch(path string) {
	if w.notify == nil {
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		path = filepath.Dir(path)
	}
	if !w.watched[path] && w.notify.Add(path) == nil {
		w.watched[path] = true
	}
	// Folders within folders are left to polling: one that comes and goes would need care, and a second is enough.
}

func sameFile(a, b fileState) bool {
	if a.name != b.name || a.info == nil || b.info == nil {
		return a == b
	}
	return os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime())
}

// reload reads the files and tells what came of it, unless that was told already.
func (w *watcher) reload(ctx context.Context) {
	files, err := w.load()
	if err != nil {
		w.read = false
		w.report(err)
		return
	}
	digest := digestOf(files)
	if w.read && digest == w.digest {
		return
	}
	w.digest, w.read = digest, true
	result, err := build(ctx, files, w.options)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.report(err)
		return
	}
	w.reported = ""
	w.filled = make(map[string]bool)
	for _, f := range files {
		w.filled[f.name] = len(f.data) > 0
	}
	w.events.Publish(result)
}

// load reads the files, unless that would wait for a writer or take a file for finished that is not: a shell empties a
// file before the command begins that writes it.
func (w *watcher) load() ([]file, error) {
	for _, path := range w.source.Paths {
		if !isLasting(path) {
			return nil, fmt.Errorf("read manifest: %s is a pipe or a device, which cannot be read twice: put a file there", path)
		}
	}
	files, err := load(w.source, w.options.maxBytes())
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if len(f.data) == 0 && w.filled[f.name] {
			return nil, broken(reason.Position{File: f.name}, "", "the file became empty, as while it is written: "+
				"if nothing is meant to be in it, remove it or leave a comment there")
		}
	}
	return files, nil
}

func (w *watcher) report(err error) {
	if text := err.Error(); text != w.reported {
		w.reported = text
		w.events.Report(err)
	}
}

// digestOf tells contents apart; names and where one file ends count too, because problems name them.
func digestOf(files []file) [sha256.Size]byte {
	hash := sha256.New()
	for _, f := range files {
		for _, part := range [][]byte{[]byte(f.name), f.data} {
			hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash never fails to be written
			hash.Write(part)
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
