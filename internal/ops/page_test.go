package ops_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/weir-lb/weir/internal/ops"
)

func TestAJSONPageAnswersWithItsValueOrTellsWhyItHasNone(t *testing.T) {
	ask := admin(t, ops.AdminOptions{Pages: ops.JSONPages(map[string]func() (any, error){
		"/good": func() (any, error) { return map[string]int{"services": 3}, nil },
		"/none": func() (any, error) { return nil, errors.New("nothing is known yet") },
		"/bad":  func() (any, error) { return func() {}, nil },
	})})
	if status, body := ask(http.MethodGet, "/good"); status != http.StatusOK || body != "{\n  \"services\": 3\n}\n" {
		t.Errorf("/good: %d %q", status, body)
	}
	if status, body := ask(http.MethodGet, "/none"); status != http.StatusServiceUnavailable || body != "nothing is known yet\n" {
		t.Errorf("/none: %d %q", status, body)
	}
	if status, _ := ask(http.MethodGet, "/bad"); status != http.StatusInternalServerError {
		t.Errorf("/bad: %d", status)
	}
}
