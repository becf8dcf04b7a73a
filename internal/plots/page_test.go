package plots_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/weir-lb/weir/internal/golden"
	"github.com/weir-lb/weir/internal/plots"
)

// void are the elements that have no end.
var void = map[string]bool{"meta": true, "br": true, "hr": true, "link": true, "img": true}

// write is the page of a report.
func write(t *testing.T, r plots.Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := plots.Page(&page, r); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// elements goes over the tags of a page and reports those that are not closed in order.
func elements(t *testing.T, page string) []html.Token {
	t.Helper()
	var all []html.Token
	var open []string
	tokens := html.NewTokenizer(strings.NewReader(page))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if len(open) > 0 {
				t.Errorf("never closed: %v", open)
			}
			return all
		case html.StartTagToken:
			token := tokens.Token()
			all = append(all, token)
			if !void[token.Data] {
				open = append(open, token.Data)
			}
		case html.SelfClosingTagToken:
			all = append(all, tokens.Token())
		case html.EndTagToken:
			token := tokens.Token()
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> closes %v", token.Data, open)
			}
			open = open[:len(open)-1]
		default:
		}
	}
}

// attribute reads an attribute of a tag.
func attribute(token html.Token, name string) (string, bool) {
	for _, a := range token.Attr {
		if strings.EqualFold(a.Key, name) {
			return a.Val, true
		}
	}
	return "", false
}

func TestPageIsWellFormedSelfContainedAndAccessible(t *testing.T) {
	for name, r := range oddities() {
		t.Run(name, func(t *testing.T) {
			page := write(t, r)
			ids, links := map[string]int{}, []string{}
			for _, token := range elements(t, page) {
				if id, ok := attribute(token, "id"); ok {
					ids[id]++
				}
				for _, key := range []string{"src", "href", "xlink:href", "srcset", "action", "data"} {
					if to, ok := attribute(token, key); ok {
						links = append(links, to)
					}
				}
				switch token.Data {
				case "script", "link", "iframe", "object", "img", "image":
					t.Errorf("the page has <%s>", token.Data)
				case "svg":
					if label, _ := attribute(token, "aria-label"); len(label) < 10 {
						t.Errorf("a picture says only %q", label)
					}
				case "th":
					if scope, _ := attribute(token, "scope"); scope != "row" && scope != "col" {
						t.Errorf("the head of a table has scope %q", scope)
					}
				}
			}
			for id, times := range ids {
				if times > 1 {
					t.Errorf("id %s is there %d times", id, times)
				}
			}
			for _, to := range links {
				if !strings.HasPrefix(to, "#") || ids[to[1:]] != 1 {
					t.Errorf("a link leads to %s", to)
				}
			}
			if strings.Contains(page, "http://") || strings.Contains(page, "https://") || strings.Contains(page, "@import") || strings.Contains(page, "url(") {
				t.Error("the page refers to what is not in it")
			}
			if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || strings.Contains(page, "%!") {
				t.Error("the page shows what is not a number")
			}
			if n := strings.Count(page, "Simulation, not a measurement."); n != 2 {
				t.Errorf("the page says %d times that it is a simulation, want at the top and at the bottom", n)
			}
		})
	}
}

func TestWhatOthersWroteIsEscaped(t *testing.T) {
	const evil = `<script>alert("&")</script>`
	sc := brownout()
	sc.Title, sc.About = evil, evil
	all := habits()[6:]
	all[0].title = evil
	r := report(all, sc)
	r.Assumptions = []string{evil}
	r.Strategies[0].Source = evil
	page := write(t, r)
	if strings.Contains(page, "<script") || strings.Contains(page, `alert("`) {
		t.Error("the page has a script in it")
	}
	elements(t, page)
	if n := strings.Count(page, "&lt;script&gt;"); n < 10 {
		t.Errorf("the words are there %d times, want in titles, tables, texts and pictures", n)
	}
}

func TestPageReadsWell(t *testing.T) {
	second := brownout()
	second.Name, second.Title = "second", "The same again"
	page := write(t, report(habits()[5:], brownout(), second))
	page = regexp.MustCompile(`(?s)<svg.*?</svg>`).ReplaceAllString(page, "(picture)")
	page = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(page, "(style)")
	golden.Check(t, "page.golden", page)
}

func TestPageStaysSmall(t *testing.T) {
	page := write(t, report(habits(), brownout()))
	if size := len(page); size > 100_000 {
		t.Errorf("a scenario with eight strategies and 100 seconds takes %d bytes, want at most 100 kB", size)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestPageTellsOfTheWritersError(t *testing.T) {
	if err := plots.Page(full{}, report(habits()[:1], brownout())); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the writer's error", err)
	}
}
