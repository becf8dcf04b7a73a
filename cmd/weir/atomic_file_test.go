package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func TestALinkIsWrittenThroughAndStaysALink(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(target, []byte("old"), 0o600), os.Symlink("target", link)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(canWrite(link), writeAtomically(link, writeText("new"))); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "new" {
		t.Errorf("want the link's target written, got %q, error %v", got, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("want the link to stay one, got %v, error %v", info.Mode(), err)
	}
}

// A pipe stands for devices, which a test cannot make without being root.
func TestAPipeIsWrittenToAndNotReplaced(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // nothing was written.
	if err := errors.Join(canWrite(pipe), writeAtomically(pipe, writeText("page"))); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Fatalf("want the pipe to stay one, got %v, error %v", info.Mode(), err)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != "page" {
		t.Errorf("want the page in the pipe, got %q, error %v", got, err)
	}
}

// fullDevice is a device that takes nothing; the test is skipped on systems other than Linux, which have none.
func fullDevice(t *testing.T) string {
	t.Helper()
	const path = "/dev/full"
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has " + path)
	}
	return path
}

func TestAFailedWriteToADeviceIsReported(t *testing.T) {
	if err := writeStream(fullDevice(t), writeText("page")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("want no space left, got %v", err)
	}
}

func TestAFullDiskIsNoMistakeOfTheCommand(t *testing.T) {
	full, err := os.OpenFile(fullDevice(t), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close() //nolint:errcheck // nothing can be written.
	for _, line := range []string{"version", "simulate --list", "simulate --show brownout", "completion bash"} {
		var said strings.Builder
		status := run(t.Context(), strings.Fields(line), streams{in: strings.NewReader(""), out: full, err: &said})
		if status != exitFailed || strings.Contains(said.String(), "--help") {
			t.Errorf("weir %s: status %d, error %q", line, status, said.String())
		}
	}
}
