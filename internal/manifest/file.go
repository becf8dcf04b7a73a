package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-lb/weir/internal/core/reason"
)

// file is one loaded file.
type file struct {
	name string // as in errors: the path as it was given, below a folder joined to it
	data []byte
}

// load reads every file of s.
func load(s Source, maxBytes int64) ([]file, error) {
	var files []file
	left := maxBytes
	for _, path := range s.Paths {
		names := []string{path}
		if path != Stdin {
			var err error
			if names, err = list(path, s.Recursive); err != nil {
				return nil, fmt.Errorf("list manifests: %w", err)
			}
		}
		for _, name := range names {
			f, err := loadFile(name, s.Stdin, left)
			if errors.Is(err, errTooLarge) {
				return nil, broken(reason.Position{File: f.name}, "", "with it the manifests exceed %d bytes: "+
					"leave out kinds that weir does not read, or raise the limit", maxBytes)
			}
			if err != nil {
				return nil, fmt.Errorf("read manifest: %w", err)
			}
			left -= int64(len(f.data))
			files = append(files, f)
		}
	}
	return files, nil
}

var errTooLarge = errors.New("too large")

// loadFile reads one file of at most limit bytes.
func loadFile(name string, stdin io.Reader, limit int64) (file, error) {
	f := file{name: name}
	var from io.Reader
	if name == Stdin {
		if stdin == nil {
			return f, errors.New("there is no standard input")
		}
		f.name, from = "stdin", stdin
	} else {
		opened, err := os.Open(name)
		if err != nil {
			return f, err
		}
		defer opened.Close() //nolint:errcheck // nothing was written.
		from = opened
	}
	var err error
	if f.data, err = io.ReadAll(io.LimitReader(from, limit+1)); err != nil {
		return f, err
	}
	if int64(len(f.data)) > limit {
		return f, errTooLarge
	}
	return f, nil
}

// isLasting tells whether what a path stands for is there to be read again. One that is not there at all may come back.
func isLasting(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir() || info.Mode().IsRegular()
}

// list gives the files that a path stands for: itself, or the manifests of a folder sorted by name.
//
//nolint:revive // recursive is what the user asked for, and passed through.
func list(path string, recursive bool) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		switch {
		case isHidden(entry.Name()):
		case entry.IsDir():
			if !recursive {
				continue
			}
			below, err := list(name, recursive)
			if err != nil {
				return nil, err
			}
			names = append(names, below...)
		case isManifest(name, entry):
			names = append(names, name)
		}
	}
	return names, nil
}

// isHidden tells whether a name is not meant to be read: lock and swap files of editors, and the ..data of a mounted
// ConfigMap, whose files are linked to by plain names beside it.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

func isManifest(name string, entry fs.DirEntry) bool {
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		return false
	}
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(name)
	return err != nil || info.Mode().IsRegular() // a broken link is an error of its own when it is read
}
