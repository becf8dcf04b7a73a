package demo

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func joined(lines []string) string { return strings.Join(lines, "\n") + "\n" }
