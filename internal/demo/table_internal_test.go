package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/grid"
)

// drowning is a frame from the middle of a surge.
func drowning() *frame {
	sc, err := Script(ScriptOptions{})
	if err != nil {
		panic(err)
	}
	return &frame{
		Title: "Weir", Phases: Phases(sc), Elapsed: 14500 * time.Millisecond,
		Zones: []zoneFrame{
			{"zone-a", Measures{
				Rate: 618, InZone: 0.7812, Success: 0.9961, P50: 24.2, P99: 131, Cost: 0.2188,
			}, poolState{"overflow", "zone-a is 1.62 times slower than normal, so 22 % go to zone-b"}},
			{"zone-b", Measures{Rate: 203, InZone: 1, Success: 0.93, P50: 19.4, P99: 1034}, poolState{"calm", ""}},
			{"zone-c", Measures{Rate: 199, InZone: 0, Success: 0.5, P50: 0.41, P99: 54, Cost: 1}, poolState{
				"evacuated", "nothing answers",
			}},
		},
	}
}

func TestLiveTable(t *testing.T) {
	var text strings.Builder
	for _, width := range []int{120, 80, 30} {
		fmt.Fprintf(&text, "%d wide:\n%s\n", width, joined(drowning().live(width, grid.Painter{})))
	}
	golden.Check(t, "live.txt", text.String())
}

func TestLiveTableNeverWraps(t *testing.T) {
	for width := 1; width < 150; width++ {
		for _, line := range drowning().live(width, grid.Painter{}) {
			if n := utf8.RuneCountInString(line); n > width {
				t.Fatalf("%d wide: %q has %d", width, line, n)
			}
		}
	}
}

func TestColoursChangeNoLetter(t *testing.T) {
	for width := range 140 {
		coloured := drowning().live(width, grid.Painter{Colour: true})
		if width > 0 && !strings.Contains(joined(coloured), "\x1b[") {
			t.Fatalf("%d wide: no colour", width)
		}
		for i, line := range drowning().live(width, grid.Painter{}) {
			if i == 1 {
				continue // the bar shows with letters what it else shows with colours
			}
			if got := uncoloured(coloured[i]); got != line {
				t.Fatalf("%d wide: with colours %q, without %q", width, got, line)
			}
		}
	}
}

func uncoloured(s string) string {
	var b strings.Builder
	for s != "" {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			break
		}
		_, s, _ = strings.Cut(after, "m")
	}
	return b.String()
}

func TestPlainLine(t *testing.T) {
	golden.Check(t, "plain.txt", drowning().plain()+"\n")
}

func TestTerminalIsRedrawnInPlace(t *testing.T) {
	var out strings.Builder
	d := &Display{out: &out, width: func() int { return 100 }}
	d.show(drowning())
	lines := d.drawn
	first := out.Len()
	d.show(drowning())
	if up := fmt.Sprintf("\x1b[%dA", lines); !strings.HasPrefix(out.String()[first:], up) {
		t.Errorf("the second frame begins with %q, want %q", out.String()[first:first+6], up)
	}
	if n := strings.Count(out.String()[:first], "\n"); n != lines || n == 0 {
		t.Errorf("%d lines drawn, %d counted", n, lines)
	}
}

func TestLogGetsALineEachSecond(t *testing.T) {
	var out strings.Builder
	d := &Display{out: &out}
	for elapsed := time.Duration(0); elapsed <= 5*time.Second; elapsed += liveEvery {
		f := drowning()
		f.Elapsed = elapsed
		d.show(f)
	}
	if n := strings.Count(out.String(), "\n"); n != 5 {
		t.Errorf("%d lines in 5 s, want 5:\n%s", n, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a log has escape sequences")
	}
}

func TestLatenciesReadShort(t *testing.T) {
	for m, want := range map[Millis]string{
		0: "0.0 ms", 0.412: "0.4 ms", 9.94: "9.9 ms", 9.96: "10 ms", 131.4: "131 ms", 999.6: "1.00 s", 1034: "1.03 s",
	} {
		if got := m.String(); got != want {
			t.Errorf("%v ms reads %q, want %q", float64(m), got, want)
		}
	}
}
