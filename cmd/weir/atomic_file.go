package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeAtomically replaces a file: it has all of its new content, or is what it was before. A link stays one, and what it leads
// to is written. A pipe or a device, such as /dev/stdout, is written to and never replaced: renaming a file over it would
// take /dev/null from the whole machine.
func writeAtomically(path string, write func(io.Writer) error) (err error) {
	if isStream(path) {
		return writeStream(path, write)
	}
	path = linked(path)
	file, err := createBeside(path)
	if err != nil {
		return err
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

// createBeside creates the file that is renamed to path when it is whole.
func createBeside(path string) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, cause(err))
	}
	return file, nil
}

// isStream tells whether there is something at path that cannot be replaced as a whole.
func isStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

func writeStream(path string, write func(io.Writer) error) error {
	stream, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	if err := errors.Join(write(stream), stream.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	return nil
}

// linked gives the file that a link leads to; the path itself if it is no link, or leads nowhere.
func linked(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// canWrite tells whether writeAtomically could write path now, and why not.
func canWrite(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("write %s: it is a folder", path)
	}
	if isStream(path) { // opening it now could end it for its reader
		return nil
	}
	file, err := createBeside(linked(path))
	if err != nil {
		return err
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
