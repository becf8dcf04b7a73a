package kube

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Samples are what a program's metrics page says: the value by series, written as on the page, labels and all.
type Samples map[string]float64

// Scrape reads a metrics page. The token may be empty; a server's certificate is not checked.
func (c *Cluster) Scrape(url, token string) (Samples, error) {
	text, err := c.Fetch(url, token)
	if err != nil {
		return nil, err
	}
	samples := make(Samples)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 {
			return nil, fmt.Errorf("%s: line %q is not a sample", url, line)
		}
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", url, line, err)
		}
		samples[line[:cut]] = value
	}
	return samples, nil
}

// Sum adds the series of a metric that carry all of these labels, each written as label="value".
func (s Samples) Sum(metric string, labels ...string) float64 {
	var sum float64
	for series, value := range s {
		name, rest, _ := strings.Cut(series, "{")
		if name == metric && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			sum += value
		}
	}
	return sum
}

// Fetch reads a page of a program of the test. The token may be empty; a server's certificate is not checked. A status
// other than 200 is an error.
func (c *Cluster) Fetch(url, token string) (string, error) {
	request, err := http.NewRequestWithContext(c.tb.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the test started the server on this port
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), nil
}
