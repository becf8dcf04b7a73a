package ops

import (
	"encoding/json"
	"net/http"
)

// JSONPages makes admin pages of functions that answer with a value, by pattern. An error, as before anything is known,
// gives 503.
func JSONPages(answers map[string]func() (any, error)) map[string]http.Handler {
	pages := make(map[string]http.Handler, len(answers))
	for pattern, answer := range answers {
		pages[pattern] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			value, err := answer()
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			body, err := json.MarshalIndent(value, "", "  ")
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(append(body, '\n')) // the client is gone
		})
	}
	return pages
}
