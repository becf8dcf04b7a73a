package plots

import (
	"image/color"
	"math"
	"sort"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how a strategy is drawn in every picture: it tells by colour, and without colours by its dashes and its
// shape.
type look struct {
	name, title string
	color       color.RGBA
	dashes      []vg.Length
	width       vg.Length
	shape       draw.GlyphDrawer
}

// favourite is the strategy that is drawn thicker and over all others: ours.
const favourite = "weir"

// rgb is an opaque colour.
func rgb(hex uint32) color.RGBA {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff} //nolint:gosec // bytes are meant.
}

// Colours that are no strategy's.
func ink() color.RGBA   { return rgb(0x1a1a1a) }
func faint() color.RGBA { return rgb(0x5f5f5f) } // 6:1 on white
func rule() color.RGBA  { return rgb(0xe3e3e3) }
func shade() color.RGBA { return rgb(0xf3f1ea) }

// shape is a filled polygon around the origin with a white rim, which parts it from what it covers.
type shape []vg.Point

// DrawGlyph is as draw.GlyphDrawer has it.
func (s shape) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	points := make([]vg.Point, 0, len(s)+1)
	for _, p := range s {
		points = append(points, at.Add(p.Scale(style.Radius)))
	}
	c.FillPolygon(style.Color, points)
	c.StrokeLines(draw.LineStyle{Color: rgb(0xffffff), Width: 0.7}, append(points, points[0]))
}

// regular is a polygon with equal sides; turn is of its first corner, in radians from the right.
func regular(corners int, turn float64) shape {
	s := make(shape, 0, corners)
	for i := range corners {
		sin, cos := math.Sincos(turn + 2*math.Pi*float64(i)/float64(corners))
		s = append(s, vg.Point{X: vg.Length(cos), Y: vg.Length(sin)})
	}
	return s
}

// cross is a plus sign of five squares, turned.
func cross(turn float64) shape {
	const arm = 0.36
	sin, cos := math.Sincos(turn)
	var s shape
	for i := range 4 {
		for _, p := range []vg.Point{{X: arm, Y: arm}, {X: arm, Y: 1.1}, {X: -arm, Y: 1.1}} {
			for range i {
				p.X, p.Y = -p.Y, p.X
			}
			x, y := p.X*vg.Length(cos)-p.Y*vg.Length(sin), p.X*vg.Length(sin)+p.Y*vg.Length(cos)
			s = append(s, vg.Point{X: x, Y: y})
		}
	}
	return s
}

// shapes are those of all but the favourite, whose is a disc.
func shapes() []shape {
	const quarter = math.Pi / 2
	return []shape{
		regular(4, quarter/2), regular(3, quarter), cross(0), regular(4, 0), regular(3, -quarter), cross(quarter / 2), regular(5, quarter),
	}
}

// palette is Okabe and Ito's of 2008, which people with any of the common colour blindnesses can tell apart. Its blue
// is the favourite's; its yellow is left out, as it is too pale for a line on white, and a grey stands in.
func palette() []color.RGBA {
	return []color.RGBA{
		rgb(0xe69f00), rgb(0x56b4e9), rgb(0x009e73), rgb(0xd55e00), rgb(0xcc79a7), rgb(0x000000), rgb(0x8c8c8c),
	}
}

// looks gives each strategy its look, in their order. With more strategies than colours these come again with other
// dashes and shapes.
func (r Report) looks() []look {
	colors := palette()
	dashes := [][]vg.Length{{6, 2}, {2, 1.6}, {9, 2, 2, 2}, {4, 1.5}, {12, 3}, {5, 2, 1, 2, 1, 2}, {1, 1}, {7, 1.5, 1, 1.5}, {3, 3}}
	shapes := shapes()
	looks := make([]look, 0, len(r.Strategies))
	others := 0
	for i := range r.Strategies {
		l := look{name: r.Strategies[i].Name, title: r.Strategies[i].Title}
		if l.title == "" {
			l.title = l.name
		}
		if l.name == favourite {
			l.color, l.width, l.shape = rgb(0x0072b2), 2.6, regular(32, 0)
		} else {
			l.color, l.width = colors[others%len(colors)], 1.3
			l.dashes, l.shape = dashes[others%len(dashes)], shapes[(others+others/len(colors))%len(shapes)]
			others++
		}
		looks = append(looks, l)
	}
	return looks
}

// line is the style of the strategy's line.
func (l *look) line() draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: l.width, Dashes: l.dashes}
}

// glyph is the style of the strategy's mark.
func (l *look) glyph() draw.GlyphStyle {
	radius := vg.Length(4.8)
	if l.name == favourite {
		radius = 6
	}
	return draw.GlyphStyle{Color: l.color, Radius: radius, Shape: l.shape}
}

// words is the style of what belongs to the strategy.
func (l *look) words() text.Style {
	if l.name == favourite {
		return bold(smallSize)
	}
	return plain(smallSize)
}

// tint is the colour mixed with white, opaque, so that it looks the same in print.
func (l *look) tint() color.RGBA {
	mix := func(v uint8) uint8 { return uint8((int(v) + 2*0xff) / 3) } //nolint:gosec // at most 255.
	return color.RGBA{R: mix(l.color.R), G: mix(l.color.G), B: mix(l.color.B), A: 0xff}
}

// Sizes of text in points, for a picture that is shown at about one pixel per point.
const (
	titleSize = 13
	textSize  = 11
	smallSize = 10.5
)

// plain is text in ink that begins at its anchor.
func plain(size vg.Length) text.Style {
	return text.Style{
		Color:   ink(),
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		XAlign:  text.XLeft,
		YAlign:  text.YCenter,
		Handler: plot.DefaultTextHandler,
	}
}

// bold is plain, heavier.
func bold(size vg.Length) text.Style {
	s := plain(size)
	s.Font.Weight = xfont.WeightBold
	return s
}

// aligned is the style with another place of its anchor.
func aligned(s text.Style, x text.XAlignment) text.Style {
	s.XAlign = x
	return s
}

// muted is the style in grey.
func muted(s text.Style) text.Style {
	s.Color = faint()
	return s
}

// write puts words at a point: their middle, of the height of a capital letter, is at its height.
func write(c draw.Canvas, s text.Style, at vg.Point, words string) {
	c.FillText(s, at.Add(vg.Point{Y: 0.14 * s.Font.Size}), words)
}

// fit cuts words at their end until they are at most that wide. A long text takes no longer than what is shown of it.
func fit(s text.Style, words string, width vg.Length) string {
	letters := []rune(words)
	end := 1
	for end < len(letters) && s.Width(string(letters[:end])) <= width {
		end *= 2
	}
	if end >= len(letters) {
		if s.Width(words) <= width {
			return words
		}
		end = len(letters)
	}
	shown := sort.Search(end, func(i int) bool { return s.Width(string(letters[:i+1])+"…") > width })
	return string(letters[:shown]) + "…"
}
