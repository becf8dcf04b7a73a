package l7_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/l7"
)

// BenchmarkGet compares kept connections with 100-byte answers: direct, through the proxy, and through the standard
// library's proxy. Compare ratios of one run.
func BenchmarkGet(b *testing.B) {
	text := strings.Repeat("x", 100)
	endpoint := serve(b, func(w http.ResponseWriter, _ *http.Request) { say(w, text) })
	direct := &url.URL{Scheme: "http", Host: endpoint.String()}
	b.Run("path=direct", func(b *testing.B) { get(b, direct.String()) })
	b.Run("path=weir", func(b *testing.B) {
		get(b, start(b, l7.Options{Upstreams: only(poolOf(endpoint), nil)}).url)
	})
	b.Run("path=weir by source", func(b *testing.B) {
		upstreams := only(poolOf(endpoint), nil)
		upstreams.Default.Hash = compiled(b, header("absent"), sourceIP())
		get(b, start(b, l7.Options{Upstreams: upstreams}).url)
	})
	b.Run("path=ReverseProxy", func(b *testing.B) {
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(direct); r.SetXForwarded() },
			Transport: &http.Transport{MaxIdleConnsPerHost: 1_000, DisableCompression: true},
		}
		s := httptest.NewServer(proxy)
		b.Cleanup(s.Close)
		b.Cleanup(proxy.Transport.(*http.Transport).CloseIdleConnections)
		get(b, s.URL)
	})
}

func get(b *testing.B, url string) {
	b.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 1_000, DisableCompression: true}
	defer tr.CloseIdleConnections()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, _ := http.NewRequest("GET", url, nil) //nolint:noctx // a benchmark
			resp, err := tr.RoundTrip(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
