package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weir-lb/weir/internal/grid"
)

// PrintPreview writes what would change for one service, as tables.
func PrintPreview(w io.Writer, all []Preview, s Style) error {
	p := &printer{w: w, painter: grid.Painter{Colour: s.Colour}}
	for i := range all {
		if i > 0 {
			p.print("\n")
		}
		p.preview(&all[i], s)
	}
	return p.err
}

// PrintPreviews writes a line for each service and family, and the sum.
func PrintPreviews(w io.Writer, all []Preview, s Style) error {
	p := &printer{w: w, painter: grid.Painter{Colour: s.Colour}}
	rows := [][]grid.Cell{head("NAMESPACE", "NAME", "FAMILY", "MODE", "HINTS", "IN ZONE", "OVERLOAD", "ENDPOINTS", "WRITES", "ZONES")}
	for i := range all {
		v := &all[i]
		namespace, name, _ := strings.Cut(v.Service, "/")
		rows = append(rows, []grid.Cell{
			grid.Text(namespace), grid.Text(name), grid.Text(v.Family),
			grid.Text(becomes(string(v.From), string(v.To))),
			grid.Text(becomes(v.Now.hinted(), v.Then.hinted())),
			grid.Text(becomes(percent(v.Now.InZone), percent(v.Then.InZone))),
			v.overload(),
			grid.Text(fmt.Sprintf("%d of %d", len(v.Endpoints), v.Ready)),
			grid.Text(fmt.Sprintf("%d of %d", v.Writes, v.Slices)),
			grid.Text(v.zones()),
		})
	}
	p.table(rows)
	t := Sum(all)
	p.print(fmt.Sprintf("\n%s: %d, of which %d change; %d endpoints change their hints, %d EndpointSlices are patched\n",
		p.bold("SERVICES"), t.Services, t.Changed, t.Endpoints, t.Writes))
	if s.Wide {
		for i := range all {
			p.changes(&all[i], all[i].Service+" ("+all[i].Family+")")
		}
	}
	return p.err
}

// preview writes one service in one family.
func (p *printer) preview(v *Preview, s Style) {
	title := func(name string) grid.Cell { return grid.Cell{Text: name, Tone: grid.Bold} }
	p.table([][]grid.Cell{
		{title("SERVICE"), grid.Text(v.Service + " (" + v.Family + ")")},
		{title("MODE"), grid.Text(becomes(string(v.From), string(v.To)))},
		{title("HINTS"), grid.Text(becomes(v.Now.hinted(), v.Then.hinted()))},
		{title("IN ZONE"), grid.Text(becomes(percent(v.Now.InZone), percent(v.Then.InZone)))},
		{title("OVERLOAD"), v.overload()},
		{title("COST"), grid.Text(becomes(fmt.Sprintf("%.2f", v.Now.Cost), fmt.Sprintf("%.2f", v.Then.Cost)) + " per request")},
		{title("ENDPOINTS"), grid.Text(fmt.Sprintf("%d of %d ready ones change their hints", len(v.Endpoints), v.Ready))},
		{title("WRITES"), grid.Text(fmt.Sprintf("%d of %d EndpointSlices are patched", v.Writes, v.Slices))},
	})
	if len(v.Zones) > 0 {
		p.print("\n")
		rows := [][]grid.Cell{head("ZONE", "ENDPOINTS", "IN ZONE", "OVERLOAD")}
		for _, z := range v.Zones {
			rows = append(rows, []grid.Cell{
				grid.Text(string(z.Zone)),
				grid.Text(becomes(strconv.Itoa(z.Now.Endpoints), strconv.Itoa(z.Then.Endpoints))),
				grid.Text(becomes(percent(z.Now.InZone), percent(z.Then.InZone))),
				grid.Text(becomes(overload(z.Now.Overload).Text, overload(z.Then.Overload).Text)),
			})
		}
		p.table(rows)
	}
	if s.Wide {
		p.changes(v, "")
	}
	p.list("WHY", v.Then.Reasons)
}

// changes writes the endpoints whose hints change.
func (p *printer) changes(v *Preview, title string) {
	if len(v.Endpoints) == 0 {
		return
	}
	p.print("\n")
	if title != "" {
		p.print(p.bold(title) + "\n")
	}
	rows := [][]grid.Cell{head("ENDPOINT", "POD", "ZONE", "NODE", "HINTS NOW", "THEN")}
	for i := range v.Endpoints {
		e := &v.Endpoints[i]
		rows = append(rows, []grid.Cell{
			grid.Text(e.Address), grid.Text(orDash(e.Pod)), grid.Text(zoneName(e.Zone)), grid.Text(orDash(e.Node)),
			grid.Text(e.Now.String()), grid.Text(e.Then.String()),
		})
	}
	p.table(rows)
}

// overload paints the overload that would be.
func (v *Preview) overload() grid.Cell {
	then := overload(v.Then.Overload)
	then.Text = becomes(overload(v.Now.Overload).Text, then.Text)
	return then
}

// zones names the zones whose clients gain or lose endpoints, and how many.
func (v *Preview) zones() string {
	var parts []string
	for _, z := range v.Zones {
		if n := z.Then.Endpoints - z.Now.Endpoints; n != 0 {
			parts = append(parts, fmt.Sprintf("%s %+d", z.Zone, n))
		}
	}
	return orDash(strings.Join(parts, ", "))
}

func (f *Summary) hinted() string {
	if f.Hinted {
		return "yes"
	}
	return "no"
}

// becomes prints what is and what would be, once where both are the same.
func becomes(now, then string) string {
	if now == then {
		return now
	}
	return now + " → " + then
}

// String gives the zones, and the nodes with an @ before them; - for none.
func (h Hints) String() string {
	names := make([]string, 0, len(h.ForZones)+len(h.ForNodes))
	for _, z := range h.ForZones {
		names = append(names, string(z))
	}
	for _, n := range h.ForNodes {
		names = append(names, "@"+n)
	}
	return orDash(strings.Join(names, ","))
}
