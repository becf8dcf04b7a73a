package grid_test

import (
	"strings"
	"testing"

	"github.com/weir-lb/weir/internal/grid"
)

func table() *grid.Table {
	t := &grid.Table{Columns: grid.Columns{Gap: 2, Right: func(column int) bool { return column == 1 }}}
	t.Add(grid.Text("zone"), grid.Text("load"), grid.Text("why"))
	t.Add(grid.Cell{Text: "a", Tone: grid.Bold}, grid.Cell{Text: "7", Tone: grid.Red}, grid.Text("übervoll"))
	t.Add(grid.Text("long name"), grid.Text("12345"))
	t.Add(grid.Text("all"))
	return t
}

func TestCellsStandUnderEachOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		width  int
		colour bool
		want   string
	}{
		{"without limit", 0, false, "zone        load  why\na              7  übervoll\nlong name  12345\nall\n"},
		{"cut", 20, false, "zone        load  w…\na              7  ü…\nlong name  12345\nall\n"},
		{"cut within the first column", 3, false, "zo…\na …\nlo…\nall\n"},
		{
			"in colours, which take no room", 20, true,
			"zone        load  w…\n\x1b[1ma\x1b[0m              \x1b[31m7\x1b[0m  ü…\nlong name  12345\nall\n",
		},
	} {
		if got := strings.Join(table().Lines(c.width, grid.Painter{Colour: c.colour}), "\n") + "\n"; got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestGivenWidthsCutTextsAndNotNumbers(t *testing.T) {
	columns := grid.Columns{Gap: 1, Right: func(column int) bool { return column > 0 }, Widths: []int{4, 2}}
	got := grid.Painter{}.Line(0, columns.Align([]grid.Cell{grid.Text("endpoint"), grid.Text("12345")})...)
	if want := "end… 12345"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSpacesAreNotPainted(t *testing.T) {
	painter := grid.Painter{Colour: true}
	got := painter.Line(0, grid.Cell{Text: "  ", Tone: grid.Red}, grid.Cell{Text: "x ", Tone: grid.Green}, grid.Cell{Text: " ", Tone: grid.Dim})
	if want := "  \x1b[32mx \x1b[0m "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCutShowsThatThereWasMore(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"weir", 4, "weir"}, {"weir", 3, "we…"}, {"größe", 4, "grö…"}, {"weir", 1, "…"}, {"weir", 0, ""}, {"weir", -1, ""}, {"", 0, ""}} {
		if got := grid.Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
