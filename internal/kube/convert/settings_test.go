package convert_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-lb/weir/internal/core/topology"
	"github.com/weir-lb/weir/internal/kube/convert"
)

func TestAnnotationsOfWeir(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"strategy", "hazl", "strategy=hazl"},
		{"strategy", "magic", ""},
		{"prefer", "cost", "prefer=cost"},
		{"prefer", "Cost", ""},
		{"overload", "shed", "shed"},
		{"overload", "queue", ""},
		{
			"drain-zone", "a=2026-11-20T12:00:00Z, b=2026-11-20T14:00:00+01:00",
			"drain=a@2026-11-20T12:00:00Z drain=b@2026-11-20T13:00:00Z",
		},
		{"drain-zone", "a=noon,b=2026-11-20T12:00:00Z", "drain=b@2026-11-20T12:00:00Z"},
		{"drain-zone", "", ""},
		{"overload-limit", "0.25", "overload-limit=0.25"},
		{"overload-limit", "20%", "overload-limit=0.2"},
		{"overload-limit", "0", ""},
		{"overload-limit", "-1", ""},
		{"overload-limit", "NaN", ""},
		{"overload-limit", "1100%", ""},
		{"demand", "b=0.3, a=0.7", "demand=a:0.7,b:0.3"},
		{"demand", "a=0.7,a=0.3", ""},
		{"demand", "a=0", ""},
		{"demand", "a=-1,b=1", ""},
		{"demand", "a", ""},
		{"demand", "/=1", ""},
	} {
		t.Run(c.key+" "+c.value, func(t *testing.T) {
			s := object[corev1.Service](t, "metadata: {name: web}\nspec: {ports: [{port: 80}]}")
			s.Annotations = map[string]string{"weir.dev/" + c.key: c.value}
			svc, problems := convert.Service(s, convert.Options{Strategies: []string{"Weir", "Hazl"}})
			svc.Mode = ""
			want := "service web"
			if c.want != "" {
				want += " " + c.want
			}
			equal(t, "service", want, topology.NewSnapshot(nil, []*topology.Service{svc}, topology.Costs{}).String())
			if c.want == "" && len(problems) != 1 {
				t.Errorf("want the bad value reported once, got %q", lines(problems))
			}
		})
	}
}

func TestKeysOfWeirThatMeanNothingWhereTheyAreAreReported(t *testing.T) {
	s := object[corev1.Service](t, `
metadata:
  name: web
  labels: {weir.dev/distribution: Auto, weir.dev/prefer: cost, app: web}
  annotations: {weir.dev/distribution: Auto, weir.dev/stategy: Hazl, weir.dev/prefer: cost, example.com/strategy: x}
spec: {ports: [{port: 80}]}`)
	_, problems := convert.Service(s, convert.Options{})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	equal(t, "fields", []string{
		"metadata.annotations[weir.dev/distribution]", "metadata.annotations[weir.dev/stategy]",
		"metadata.labels[weir.dev/prefer]",
	}, fields)
}
