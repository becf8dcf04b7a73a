package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	discoveryv1 "k8s.io/api/discovery/v1"
	kjson "sigs.k8s.io/json"
)

// quick tells whether a slice's endpoints were read by hand.
func quick(object string) bool {
	_, list, found := strings.Cut(object, `"endpoints":`)
	_, ok := readEndpoints([]byte(strings.TrimSuffix(list, "}")))
	return found && ok
}

// twin reads a slice the slow way, without what the quick one leaves out.
func twin(object string) (*discoveryv1.EndpointSlice, error) {
	s := new(discoveryv1.EndpointSlice)
	err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(object), s)
	for i := range s.Endpoints {
		s.Endpoints[i].TargetRef = nil
	}
	return s, err
}

func samples() map[string]bool {
	return map[string]bool{ // whether they are read by hand
		`{"kind":"EndpointSlice","metadata":{"name":"a"},"endpoints":[{"addresses":["10.0.0.1","10.0.0.2"],"conditions":{"ready":true,"serving":false,"terminating":true},"targetRef":{"kind":"Pod","name":"\"}]"},"nodeName":"n","zone":"z","hints":{"forZones":[{"name":"a"},{"name":"b"}],"forNodes":[{"name":"n"}]}}]}`: true,
		`{"endpoints": [ { "addresses" : [ "10.0.0.1" ] , "conditions" : { } , "hints" : { } } , { } ] }`: true,
		`{"endpoints":[]}`:                                                      true,
		`{"endpoints":null}`:                                                    false,
		`{"endpoints":{}}`:                                                      false,
		`{"endpoints":[{"zone":"\u0061"}]}`:                                     false,
		`{"endpoints":[{"zone":"ä"}]}`:                                          false,
		`{"endpoints":[{"zone":null}]}`:                                         false,
		`{"endpoints":[{"zone":7}]}`:                                            false,
		`{"endpoints":[{"zone":"a","zone":"b"}]}`:                               false,
		`{"endpoints":[{"hostname":"h","zone":"b"}]}`:                           false,
		`{"endpoints":[{"targetRef":"web"}]}`:                                   false,
		`{"endpoints":[{"conditions":{"ready":"true"}}]}`:                       false,
		`{"endpoints":[{"conditions":{"ready":null}}]}`:                         false,
		`{"endpoints":[{"hints":{"forZones":[{"zone":"a"}]}}]}`:                 false,
		`{"endpoints":[{"hints":{"forZones":["a"]}}]}`:                          false,
		`{"endpoints":[{"addresses":["10.0.0.1"]}],"endpoints":[{"zone":"b"}]}`: false,
		`{"endpoints":[{}`:                                                      false,
		`{"endpoints":["`:                                                       false,
		`{"endpoints":[{"`:                                                      false,
		`{"endpoints":[{"a`:                                                     false,
	}
}

func TestWhatAnAPIServerWritesIsReadByHandAndAllElseTheSlowWay(t *testing.T) {
	for sample, want := range samples() {
		if got := quick(sample); got != want {
			t.Errorf("%s: want it read by hand %t, got %t", sample, want, got)
		}
	}
}

// FuzzRead compares reading by hand with encoding/json.
func FuzzRead(f *testing.F) {
	for sample := range samples() {
		f.Add(sample)
	}
	f.Fuzz(func(t *testing.T, object string) {
		got, err := read([]byte(object))
		want, wantErr := twin(object)
		if err == nil && wantErr != nil && strings.Contains(object, "targetRef") {
			return // what is wrong may be in there
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("want the error %v, got %v", wantErr, err)
		}
		if err != nil {
			return
		}
		for i := range got.Endpoints {
			got.Endpoints[i].TargetRef = nil
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("want as encoding/json reads it (-want +got):\n%s", diff)
		}
	})
}
