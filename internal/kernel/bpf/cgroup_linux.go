package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// FindCgroup gives the folder at which the cgroup2 file system is mounted: /sys/fs/cgroup, or a folder in it where both
// versions are in use.
func FindCgroup() (string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find the cgroup2 file system: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS [OPTIONAL…] - TYPE SOURCE OPTIONS
		fields := strings.Fields(lines.Text())
		if at := slices.Index(fields, "-"); at > 4 && at+1 < len(fields) && fields[at+1] == "cgroup2" {
			return fields[4], nil
		}
	}
	return "", errors.Join(errors.New("no cgroup2 file system is mounted"), lines.Err())
}

// ownCgroup gives the id of the process's cgroup; 0: it cannot be told, as in a container with a cgroup namespace.
func ownCgroup() uint64 {
	root, err := FindCgroup()
	if err != nil {
		return 0
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok || path == "" { // the root of all, or of a namespace: not the process's alone
			continue
		}
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			return 0
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			return stat.Ino // as bpf_get_current_cgroup_id gives it
		}
	}
	return 0
}
