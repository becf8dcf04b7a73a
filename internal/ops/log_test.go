package ops_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/ops"
)

func TestLogFormatAndLevelAreReadAndRefused(t *testing.T) {
	if f, err := ops.ParseLogFormat("JSON"); err != nil || f != ops.LogJSON {
		t.Errorf("ParseLogFormat(JSON) = %v, %v", f, err)
	}
	if _, err := ops.ParseLogFormat("xml"); err == nil {
		t.Error("ParseLogFormat takes xml")
	}
	if l, err := ops.ParseLogLevel("warn"); err != nil || l != slog.LevelWarn {
		t.Errorf("ParseLogLevel(warn) = %v, %v", l, err)
	}
	if _, err := ops.ParseLogLevel("loud"); err == nil {
		t.Error("ParseLogLevel takes loud")
	}
}

func TestALoggerWritesItsFormatFromItsLevelOn(t *testing.T) {
	var text, lines bytes.Buffer
	logger := ops.NewLogger(&text, ops.LogText, slog.LevelInfo)
	logger.Debug("not shown")
	logger.Info("agent started", "node", "a1")
	if got := text.String(); !strings.HasSuffix(got, "level=INFO msg=\"agent started\" node=a1\n") {
		t.Errorf("text: %q", got)
	}
	ops.NewLogger(&lines, ops.LogJSON, slog.LevelInfo).Info("agent started", "node", "a1")
	var line struct{ Msg, Node string }
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Msg != "agent started" || line.Node != "a1" {
		t.Errorf("json: %q: %v", lines.String(), err)
	}
}
