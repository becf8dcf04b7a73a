package ops

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// LogFormat is how log lines are written.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text" // key=value, for terminals
	LogJSON LogFormat = "json" // one object per line, for collectors
)

// ParseLogFormat reads a format's name.
func ParseLogFormat(s string) (LogFormat, error) {
	switch f := LogFormat(strings.ToLower(s)); f {
	case LogText, LogJSON:
		return f, nil
	default:
		return "", fmt.Errorf("unknown log format %q: want text or json", s)
	}
}

// ParseLogLevel reads debug, info, warn or error, in any case.
func ParseLogLevel(s string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s)); err != nil {
		return 0, fmt.Errorf("unknown log level %q: want debug, info, warn or error", s)
	}
	return level, nil
}

// NewLogger makes a logger that writes lines of at least level to w. An unknown format writes JSON, which loses nothing.
func NewLogger(w io.Writer, format LogFormat, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == LogText {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}
