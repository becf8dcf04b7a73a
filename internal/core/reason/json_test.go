package reason_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-lb/weir/internal/core/reason"
)

func TestAReasonInJSONHasItsTextAndItsParts(t *testing.T) {
	r := reason.New(reason.AddressNotBound, "listen on 10.0.0.1:80: permission denied").With("retry", 1.5, reason.Seconds)
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"code":"AddressNotBound","text":"cannot listen, trying again in 1.5 s: listen on 10.0.0.1:80: permission denied",` +
		`"values":{"retry":1.5},"objects":["listen on 10.0.0.1:80: permission denied"]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
