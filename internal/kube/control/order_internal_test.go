package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheOrderLeavesNoZoneWithLessThanBeforeAndAfter(t *testing.T) {
	for text, want := range map[string]phase{
		"a>- b>-":     opens,
		"a>- b>b":     opens,
		"a>ab b>b":    widens,
		"a>b":         moves,
		"a>ab bc>c":   moves,
		"->a b>-":     moves, // nobody follows these hints before or after
		"ab>a b>b":    narrows,
		"->a ->b":     closes,
		"->a b>bc":    closes,
		"->a bc>b":    closes,
		"a>- bc>b":    opens,
		"abc>ab a>ab": moves,
	} {
		t.Run(text, func(t *testing.T) {
			e := edits(decide(t, nil, text+" c>c"))
			if len(e) != 1 {
				t.Fatalf("%d edits, want 1", len(e))
			}
			if diff := cmp.Diff(want, e[0].phase()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
