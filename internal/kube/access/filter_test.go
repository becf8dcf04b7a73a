package access_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-lb/weir/internal/kube/access"
)

// reviewer is an API server that answers reviews: it knows the tokens "reader" and "other", of which only the first may get
// /metrics, and "contradiction", which is allowed and denied.
type reviewer struct {
	mu      sync.Mutex
	reviews []string                                // kind and token or user, in order
	spec    authorizationv1.SubjectAccessReviewSpec // of the last review of access
	fail    int                                     // how many reviews are answered with status first
	status  int
}

func (v *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if v.fail > 0 {
		v.fail--
		v.reviews = append(v.reviews, "failure")
		w.WriteHeader(v.status)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(v.status),
			Reason: map[int]metav1.StatusReason{500: metav1.StatusReasonInternalError, 403: metav1.StatusReasonForbidden}[v.status],
		})
		return
	}
	w.WriteHeader(http.StatusCreated)
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var t authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&t)
		v.reviews = append(v.reviews, "token "+t.Spec.Token)
		if slices.Contains([]string{"reader", "other", "contradiction"}, t.Spec.Token) {
			t.Status.Authenticated = true
			t.Status.User = authenticationv1.UserInfo{
				Username: t.Spec.Token, UID: "u1", Groups: []string{"people"}, Extra: map[string]authenticationv1.ExtraValue{"node": {"n1"}},
			}
		}
		_ = json.NewEncoder(w).Encode(t)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var a authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&a)
		v.reviews, v.spec = append(v.reviews, "access "+a.Spec.User), a.Spec
		isRead := a.Spec.NonResourceAttributes != nil && *a.Spec.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		a.Status.Allowed = isRead && a.Spec.User != "other"
		a.Status.Denied = a.Spec.User == "contradiction"
		_ = json.NewEncoder(w).Encode(a)
	}
}

// guarded is a server of metrics behind the filter, and what it asks.
func guarded(t *testing.T) (url string, asked *reviewer) {
	t.Helper()
	asked = new(reviewer)
	api := httptest.NewServer(asked)
	t.Cleanup(api.Close)
	filter, err := access.NewFilter(&rest.Config{Host: api.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	handler := filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("metrics" + r.Header.Get("Authorization")))
	}))
	metrics := httptest.NewServer(handler)
	t.Cleanup(metrics.Close)
	return metrics.URL, asked
}

// request gives the status and the text of an answer.
func request(t *testing.T, method, url, authorization string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	var text strings.Builder
	if err := w.Write(&text); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(text.String(), "\r\n\r\n")
	return w.StatusCode, strings.TrimSpace(body)
}

func TestMetricsAreServedToThoseWhomTheAPIServerLetsReadThem(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, authorization string
		status                      int
		body                        string
	}{
		"who may read":                      {"GET", "/metrics", "Bearer reader", 200, "metrics"},
		"whatever the case":                 {"GET", "/metrics", "bearer reader", 200, "metrics"},
		"who may not":                       {"GET", "/metrics", "Bearer other", 403, "Authorization denied for user other"},
		"another verb":                      {"POST", "/metrics", "Bearer reader", 403, "Authorization denied for user reader"},
		"another path":                      {"GET", "/debug", "Bearer reader", 403, "Authorization denied for user reader"},
		"no token":                          {"GET", "/metrics", "", 401, "Unauthorized"},
		"another scheme":                    {"GET", "/metrics", "Basic reader", 401, "Unauthorized"},
		"a token after two spaces":          {"GET", "/metrics", "Bearer  reader", 401, "Unauthorized"},
		"a token that is not known":         {"GET", "/metrics", "Bearer wrong", 500, "Authentication failed"},
		"an answer that contradicts itself": {"GET", "/metrics", "Bearer contradiction", 500, "Authorization for user contradiction failed"},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := guarded(t)
			for range 2 { // the second answer is a remembered one
				if status, body := request(t, c.method, url+c.path, c.authorization); status != c.status || !strings.HasSuffix(body, c.body) {
					t.Errorf("want %d %q, got %d %q", c.status, c.body, status, body)
				}
			}
		})
	}
}

func TestTheWholeIdentityIsReviewed(t *testing.T) {
	url, asked := guarded(t)
	request(t, "GET", url+"/metrics", "Bearer reader")
	want := authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		User:                  "reader", UID: "u1", Groups: []string{"people", "system:authenticated"},
		Extra: map[string]authorizationv1.ExtraValue{"node": {"n1"}},
	}
	if diff := cmp.Diff(want, asked.spec); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersOfTheAPIServerAreRemembered(t *testing.T) {
	url, asked := guarded(t)
	for range 3 {
		for _, token := range []string{"reader", "other", "wrong"} {
			request(t, "GET", url+"/metrics", "Bearer "+token)
		}
	}
	want := []string{"token reader", "access reader", "token other", "access other", "token wrong"}
	if diff := cmp.Diff(want, asked.reviews); diff != "" {
		t.Error(diff)
	}
}

func TestAReviewThatFailsRefusesAndIsNotRemembered(t *testing.T) {
	url, asked := guarded(t)
	asked.fail, asked.status = 1, http.StatusForbidden
	if status, _ := request(t, "GET", url+"/metrics", "Bearer reader"); status != http.StatusInternalServerError {
		t.Errorf("want 500, got %d", status)
	}
	if status, _ := request(t, "GET", url+"/metrics", "Bearer reader"); status != http.StatusOK {
		t.Errorf("want 200 when the review succeeds, got %d", status)
	}
}

func TestAReviewIsRetriedAfterAFailureThatPasses(t *testing.T) {
	url, asked := guarded(t)
	asked.fail, asked.status = 1, http.StatusInternalServerError
	if status, _ := request(t, "GET", url+"/metrics", "Bearer reader"); status != http.StatusOK {
		t.Errorf("want 200, got %d", status)
	}
	if want := []string{"failure", "token reader", "access reader"}; !slices.Equal(want, asked.reviews) {
		t.Errorf("want %v, got %v", want, asked.reviews)
	}
}
