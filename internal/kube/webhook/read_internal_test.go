package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	kjson "sigs.k8s.io/json"
)

func TestASliceIsReadWithoutItsTargetReferences(t *testing.T) {
	for _, object := range []string{
		`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"a","labels":{"l":"v"}},"addressType":"IPv4",` +
			`"ports":[{"name":"http","port":80}],"endpoints":[{"addresses":["10.0.0.1","10.0.0.2"],"conditions":{"ready":true,` +
			`"serving":false,"terminating":true},"targetRef":{"kind":"Pod","name":"web"},"nodeName":"n","zone":"z","hostname":"h",` +
			`"deprecatedTopology":{"a":"b"},"hints":{"forZones":[{"name":"a"},{"name":"b"}],"forNodes":[{"name":"n"}]}},{},` +
			`{"targetRef":null,"zone":null,"conditions":{}}]}`,
		`{"endpoints":null}`, `{"endpoints":[]}`, `{}`, `{"Endpoints":[{}]}`,
		`{"endpoints":{}}`, `{"endpoints":[{"zone":7}]}`, `{"endpoints":[{"targetRef":"web"}]}`, `{"endpoints":[{}`,
	} {
		want := new(discoveryv1.EndpointSlice)
		wantErr := kjson.UnmarshalCaseSensitivePreserveInts([]byte(object), want)
		got, err := read([]byte(object))
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: want the error %v, got %v", object, wantErr, err)
		}
		if err != nil || wantErr != nil {
			continue
		}
		want.Endpoints = append([]discoveryv1.Endpoint{}, want.Endpoints...)
		for i := range want.Endpoints {
			want.Endpoints[i].TargetRef = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
}
