package explain_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/core/plan"
	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/explain"
	"github.com/weir-lb/weir/internal/golden"
)

const nodes = "nodes a=eu/zone-a:4 b=eu/zone-b:4 c=eu/zone-c:4; "

func explainAll(t *testing.T, text string, o explain.Options) []explain.Explanation {
	t.Helper()
	s, err := topology.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	survey := plan.SurveyNodes(s.Nodes)
	var all []explain.Explanation
	for _, svc := range s.Services {
		all = append(all, explain.Explain(&s, &survey, svc, o)...)
	}
	return all
}

func TestAServiceIsExplained(t *testing.T) {
	const lopsided = nodes + "service shop/web mode=Auto port=http:80; endpoints zone-a:4 zone-b:4 zone-c:3"
	for name, c := range map[string]struct {
		text    string
		options explain.Options
		style   explain.Style
	}{
		"auto without hints":   {text: lopsided},
		"auto beside balanced": {text: lopsided, options: explain.Options{Mode: topology.ModeBalanced}},
		"in colour":            {text: lopsided, style: explain.Style{Colour: true}},
		"with traffic and a node": {
			text:    nodes + "service shop/web mode=Balanced port=http:80; endpoints zone-a:5 zone-b:1 zone-c:1",
			options: explain.Options{Node: "b", Traffic: 10_000, Price: explain.DefaultPrice},
		},
		"wide": {
			text: nodes + "service shop/web mode=PreferSameZone port=http:80; " +
				"endpoints zone-a:2@a zone-b:1@b zone-b:1! zone-c:1@c",
			options: explain.Options{Node: "a"},
			style:   explain.Style{Wide: true},
		},
		"no endpoints":  {text: nodes + "service shop/web mode=Auto"},
		"both families": {text: nodes + "service shop/web mode=PreferClose; endpoints zone-a:1 v6=zone-b:1"},
		"local policy": {
			text:    nodes + "service shop/web internal=Local; endpoints zone-a:1@a",
			options: explain.Options{Node: "b"},
		},
		"no zone at all": {text: "nodes n1=-:4; service shop/web; endpoints -:2"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := explain.Print(&got, explainAll(t, c.text, c.options), c.style); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, strings.ReplaceAll(name, " ", "-")+".golden", got.String())
		})
	}
}

const several = nodes +
	"service shop/cart mode=Auto; endpoints zone-a:3 zone-b:3 zone-c:3; " +
	"service shop/pay mode=Auto; endpoints zone-a:1 zone-b:1; " +
	"service web; endpoints zone-a:4 zone-b:4 zone-c:3; " +
	"service off mode=Disabled; endpoints zone-a:2"

func TestAllServicesAreListed(t *testing.T) {
	for name, c := range map[string]struct {
		options explain.Options
		style   explain.Style
	}{
		"list":              {},
		"list with traffic": {options: explain.Options{Traffic: 1000, Price: 0.02}},
		"list wide beside balanced": {
			options: explain.Options{Mode: topology.ModeBalanced}, style: explain.Style{Wide: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := explain.PrintList(&got, explainAll(t, several, c.options), c.style); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, strings.ReplaceAll(name, " ", "-")+".golden", got.String())
		})
	}
}

func TestTheJSONNamesAreStable(t *testing.T) {
	all := explainAll(t, nodes+"service shop/web mode=Auto port=http:80; endpoints zone-a:1 zone-b:1 zone-c:2",
		explain.Options{Mode: topology.ModePreferSameNode, Node: "a", Traffic: 100, Price: 0.02})
	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "json.golden", string(got)+"\n")
}

func TestListsWithoutAnElementAreEmptyInJSON(t *testing.T) {
	for _, text := range []string{
		"service shop/web port=-",
		nodes + "service shop/web mode=Balanced internal=Local; endpoints zone-a:1@a",
	} {
		data, err := json.Marshal(explainAll(t, text, explain.Options{Node: "c"}))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("null")) {
			t.Errorf("a program that ranges over a list meets null:\n%s", data)
		}
	}
}
