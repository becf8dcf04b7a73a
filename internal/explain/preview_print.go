package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// PrintPreview writes what would change for one service, as tables.
func PrintPreview(w io.Writer, all []Preview, s Style) error {
	p := &printer{w: w, colour: s.Colour}
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
	p := &printer{w: w, colour: s.Colour}
	rows := [][]cell{head("NAMESPACE", "NAME", "FAMILY", "MODE", "HINTS", "IN ZONE", "OVERLOAD", "ENDPOINTS", "WRITES", "ZONES")}
	for i := range all {
		v := &all[i]
		namespace, name, _ := strings.Cut(v.Service, "/")
		rows = append(rows, []cell{
			text(namespace), text(name), text(v.Family),
			text(becomes(string(v.From), string(v.To))),
			text(becomes(v.Now.hinted(), v.Then.hinted())),
			text(becomes(percent(v.Now.InZone), percent(v.Then.InZone))),
			v.overload(),
			text(fmt.Sprintf("%d of %d", len(v.Endpoints), v.Ready)),
			text(fmt.Sprintf("%d of %d", v.Writes, v.Slices)),
			text(v.zones()),
		})
	}
	p.table(rows)
	t := Sum(all)
	p.print(fmt.Sprintf("\n%s: %d, of which %d change; %d endpoints change their hints, %d EndpointSlices are patched\n",
		p.paint(cell{text: "SERVICES", tone: bold}), t.Services, t.Changed, t.Endpoints, t.Writes))
	if s.Wide {
		for i := range all {
			p.changes(&all[i], all[i].Service+" ("+all[i].Family+")")
		}
	}
	return p.err
}

// preview writes one service in one family.
func (p *printer) preview(v *Preview, s Style) {
	title := func(name string) cell { return cell{text: name, tone: bold} }
	p.table([][]cell{
		{title("SERVICE"), text(v.Service + " (" + v.Family + ")")},
		{title("MODE"), text(becomes(string(v.From), string(v.To)))},
		{title("HINTS"), text(becomes(v.Now.hinted(), v.Then.hinted()))},
		{title("IN ZONE"), text(becomes(percent(v.Now.InZone), percent(v.Then.InZone)))},
		{title("OVERLOAD"), v.overload()},
		{title("COST"), text(becomes(fmt.Sprintf("%.2f", v.Now.Cost), fmt.Sprintf("%.2f", v.Then.Cost)) + " per request")},
		{title("ENDPOINTS"), text(fmt.Sprintf("%d of %d ready ones change their hints", len(v.Endpoints), v.Ready))},
		{title("WRITES"), text(fmt.Sprintf("%d of %d EndpointSlices are patched", v.Writes, v.Slices))},
	})
	if len(v.Zones) > 0 {
		p.print("\n")
		rows := [][]cell{head("ZONE", "ENDPOINTS", "IN ZONE", "OVERLOAD")}
		for _, z := range v.Zones {
			rows = append(rows, []cell{
				text(string(z.Zone)),
				text(becomes(strconv.Itoa(z.Now.Endpoints), strconv.Itoa(z.Then.Endpoints))),
				text(becomes(percent(z.Now.InZone), percent(z.Then.InZone))),
				text(becomes(overload(z.Now.Overload).text, overload(z.Then.Overload).text)),
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
		p.print(p.paint(cell{text: title, tone: bold}) + "\n")
	}
	rows := [][]cell{head("ENDPOINT", "POD", "ZONE", "NODE", "HINTS NOW", "THEN")}
	for i := range v.Endpoints {
		e := &v.Endpoints[i]
		rows = append(rows, []cell{
			text(e.Address), text(orDash(e.Pod)), text(zoneName(e.Zone)), text(orDash(e.Node)),
			text(e.Now.String()), text(e.Then.String()),
		})
	}
	p.table(rows)
}

// overload paints the overload that would be.
func (v *Preview) overload() cell {
	then := overload(v.Then.Overload)
	then.text = becomes(overload(v.Now.Overload).text, then.text)
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

func (f *Figures) hinted() string {
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
