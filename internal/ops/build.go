package ops

import (
	"runtime"
	"runtime/debug"
)

// Build tells which program this is.
type Build struct {
	Version  string `json:"version"`  // the module's version, "(devel)" for a build from a working tree
	Revision string `json:"revision"` // the commit, with "-dirty" when files were changed; empty: not known
	Time     string `json:"time"`     // the commit's time, RFC 3339; empty: not known
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild reads what the Go tool recorded in the binary.
func ReadBuild() Build {
	b := Build{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.Revision != "" {
		b.Revision += "-dirty"
	}
	return b
}
