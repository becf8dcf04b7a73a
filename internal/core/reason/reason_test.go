package reason_test

import (
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/reason"
)

func TestARenderedReasonNamesItsNumbersAndObjects(t *testing.T) {
	r := reason.New("NotYetKnown", "n1", "n2").With("overload", 0.25, reason.Ratio)
	if want, got := "NotYetKnown n1, n2", r.String(); want != got {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestALongListOfObjectsIsCutShort(t *testing.T) {
	r := reason.New("NotYetKnown", "1", "2", "3", "4", "5", "6", "7")
	if want, got := "NotYetKnown 1, 2, 3, 4, 5 and 2 more", r.String(); want != got {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestValuesPrintInTheirUnits(t *testing.T) {
	for want, v := range map[string]reason.Value{
		"4":     {Number: 4},
		"25 %":  {Number: 0.25, Unit: reason.Ratio},
		"1.40":  {Number: 1.4, Unit: reason.Factor},
		"1.5 s": {Number: 1.5, Unit: reason.Seconds},
	} {
		if got := v.String(); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

func TestWithLeavesTheReasonItStartsFromAlone(t *testing.T) {
	base := reason.New("NotYetKnown").With("a", 1, reason.Count)
	_ = base.With("b", 2, reason.Count)
	if got := len(base.Values); got != 1 {
		t.Errorf("want 1 value, got %d", got)
	}
}

func TestATextMayNameTheFirstAndTheLastObject(t *testing.T) {
	r := reason.New(reason.AdviseMove, "zone-a", "zone-b").With("inZone", 1, reason.Ratio)
	if want, got := "one endpoint moved from zone-a to zone-b: 100 % of", r.String(); !strings.HasPrefix(got, want) {
		t.Errorf("want %q and more, got %q", want, got)
	}
}
