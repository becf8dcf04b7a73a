package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeAtomically replaces a file: it has all of its new content, or is what it was before.
func writeAtomically(path string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	const readableByAll = 0o644
	err = errors.Join(write(file), file.Chmod(readableByAll), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// canWrite tells whether writeAtomically could write path now, and why not.
func canWrite(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("write %s: it is a folder", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// cause is an error without the name of the file that is only there for a moment.
func cause(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}
