// Package plots draws a comparison: pictures as PNG, and one HTML page that needs nothing but itself.
//
// Each picture has one function that draws it on a canvas; PNG hands it a raster, Page an SVG, so that both show the
// same. The same Report gives the same bytes. It computes no figure of its own but means over seeds of what the results
// hold.
package plots

import (
	"bytes"
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/weir-lb/weir/internal/sim"
	"github.com/weir-lb/weir/internal/sim/scenario"
	"github.com/weir-lb/weir/internal/sim/score"
	"github.com/weir-lb/weir/internal/sim/strategy"
)

// Report is a comparison to be shown. It is read only.
type Report struct {
	Board      *score.Board         // nil: no tables, and no picture of what only it knows
	Scenarios  []*scenario.Scenario // in the order of the page
	Strategies []strategy.Strategy
	// Results are of any number of seeds, in any order. Of each scenario and strategy the first that has a Line is the
	// one that is drawn over time; numbers are means over all of them.
	Results     []*sim.Result
	Assumptions []string // of the model, a sentence each
}

// Picture is one plot as a file.
type Picture struct {
	Name string // of Names
	Alt  string // what it shows, in words
	PNG  []byte // at twice the size in points
}

// The pictures' names.
const (
	spillName    = "spill"
	goodName     = "good"
	latencyName  = "latency"
	loadName     = "load"
	costName     = "cost"
	tradeoffName = "tradeoff"
)

// Names are the pictures of a scenario, in the order of the page and of PNG.
func Names() []string {
	return []string{spillName, goodName, latencyName, loadName, costName, tradeoffName}
}

// PNG draws the pictures of a scenario, in the order of Names. The empty name stands for all scenarios together, of
// which there is the cost and the trade-off.
//
// Errors: a scenario that is not in the report.
func PNG(r Report, name string) ([]Picture, error) {
	drawings, err := r.drawings(name)
	if err != nil {
		return nil, err
	}
	pictures := make([]Picture, 0, len(drawings))
	for i := range drawings {
		file, err := drawings[i].png()
		if err != nil {
			return nil, fmt.Errorf("draw %s of %q: %w", drawings[i].name, name, err)
		}
		pictures = append(pictures, Picture{Name: drawings[i].name, Alt: drawings[i].alt, PNG: file})
	}
	return pictures, nil
}

// drawings are the pictures of a scenario, or of the whole.
func (r Report) drawings(name string) ([]drawing, error) {
	looks := r.looks()
	if name == "" {
		o := r.overall(looks)
		return []drawing{o.cost(), o.tradeoff()}, nil
	}
	i := slices.IndexFunc(r.Scenarios, func(sc *scenario.Scenario) bool { return sc.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("scenario %q: not in the report", name)
	}
	s := r.story(r.Scenarios[i], looks)
	return s.drawings(), nil
}

// drawings are the pictures of a scenario, in the order of Names.
func (s *story) drawings() []drawing {
	return []drawing{s.spill(), s.good(), s.latency(), s.load(), s.scores.cost(), s.scores.tradeoff()}
}

// pngDPI is twice the 72 of a point: a picture of 620 points is 1,240 pixels wide and sharp on a dense screen.
const pngDPI = 144

// png draws on a raster.
func (d *drawing) png() ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(d.width, d.height), vgimg.UseDPI(pngDPI))
	d.draw(draw.New(canvas))
	var file bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&file); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}
