package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"github.com/weir-lb/weir/internal/ops"
)

// logFlags say how to log.
type logFlags struct {
	format string
	level  string
}

func (f *logFlags) addTo(g flagGroup) {
	g.StringVar(&f.format, "log-format", "", "text or json (default: text on a terminal, else json)")
	g.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
}

// logger makes the logger that is asked for.
func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	level, err := ops.ParseLogLevel(f.level)
	if err != nil {
		return nil, &usageError{err}
	}
	format := ops.LogJSON
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) { //nolint:gosec // a file descriptor.
		format = ops.LogText
	}
	if f.format != "" {
		if format, err = ops.ParseLogFormat(f.format); err != nil {
			return nil, &usageError{err}
		}
	}
	return ops.NewLogger(w, format, level), nil
}
