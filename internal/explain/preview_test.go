package explain_test

import (
	"bytes"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/golden"
)

func previewAll(t *testing.T, text string, to topology.Mode) []explain.Preview {
	t.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	survey := plan.SurveyNodes(s.Nodes)
	var all []explain.Preview
	for _, svc := range s.Services {
		all = append(all, explain.Previews(&s, &survey, svc, to)...)
	}
	return all
}

func TestAModeIsPreviewed(t *testing.T) {
	const text = nodes + "service shop/web mode=PreferSameZone port=http:80; " +
		"endpoints zone-a:3>zone-a zone-b:1>zone-b zone-b:1! zone-c:1 v6=zone-a:1"
	all := previewAll(t, text, topology.ModeBalanced)
	var got bytes.Buffer
	if err := explain.PrintPreview(&got, all, explain.Style{Wide: true, Colour: true}); err != nil {
		t.Fatal(err)
	}
	got.WriteString("\n")
	if err := explain.PrintPreviews(&got, all, explain.Style{Wide: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "preview.golden", got.String())
}

func TestAModeThatIsThereAlreadyChangesNothing(t *testing.T) {
	const hinted = nodes + "service shop/web mode=PreferSameZone; endpoints zone-a:2>zone-a zone-b:1>zone-b zone-c:1>zone-c"
	all := previewAll(t, hinted, topology.ModePreferSameZone)
	if n := len(all[0].Endpoints); n != 0 {
		t.Errorf("%d endpoints change", n)
	}
	if all[0].Now.InZone != all[0].Then.InZone || !all[0].Now.Hinted || !all[0].Then.Hinted {
		t.Errorf("now %+v, then %+v", all[0].Now, all[0].Then)
	}
}

func TestAServiceOfTwoFamiliesCountsOnce(t *testing.T) {
	all := previewAll(t, nodes+"service a/x; endpoints zone-a:1 zone-b:1 v6=zone-a:1; service a/y; endpoints zone-b:1>zone-b",
		topology.ModePreferSameZone)
	all[0].Writes, all[1].Writes = 2, 1
	if want, got := (explain.Total{Services: 2, Changed: 1, Endpoints: 3, Writes: 3}), explain.Sum(all); got != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
}
