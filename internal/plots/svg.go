package plots

import (
	"bytes"
	"fmt"
	"html"
	"image"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// svg is a canvas that writes SVG to be put into a page. Coordinates are rounded to a tenth of a point and relative,
// and fonts are left to the page: a third of the bytes that a file of its own would need.
//
// It draws what this package draws: straight lines, arcs, text. Images panic.
type svg struct {
	width, height vg.Length
	body          bytes.Buffer
	pens          []pen
}

// pen is what Push saves.
type pen struct {
	color  color.Color
	width  vg.Length
	dashes []vg.Length
	offset vg.Length
	at     matrix
}

// matrix maps a drawing's points to the picture's: x' = xx·x + xy·y + x0, y' = yx·x + yy·y + y0.
type matrix struct{ xx, xy, yx, yy, x0, y0 float64 }

// apply maps a point.
func (m matrix) apply(x, y float64) (float64, float64) {
	return m.xx*x + m.xy*y + m.x0, m.yx*x + m.yy*y + m.y0
}

// times is the matrix that first does n.
func (m matrix) times(n matrix) matrix {
	x0, y0 := m.apply(n.x0, n.y0)
	return matrix{
		xx: m.xx*n.xx + m.xy*n.yx, xy: m.xx*n.xy + m.xy*n.yy,
		yx: m.yx*n.xx + m.yy*n.yx, yy: m.yx*n.xy + m.yy*n.yy,
		x0: x0, y0: y0,
	}
}

// svg draws as an element to be put into a page.
func (d *drawing) svg() string {
	canvas := &svg{width: d.width, height: d.height}
	canvas.pens = []pen{{color: color.Black, width: 1, at: matrix{xx: 1, yy: -1, y0: d.height.Points()}}}
	d.draw(draw.NewCanvas(canvas, d.width, d.height))
	return fmt.Sprintf("<svg viewBox=\"0 0 %s %s\" role=\"img\" aria-label=\"%s\">\n%s</svg>",
		tenth(d.width.Points()), tenth(d.height.Points()), html.EscapeString(d.alt), canvas.body.Bytes())
}

// tenth writes a number with at most one decimal.
func tenth(v float64) string { return tenths(int(math.Round(v * 10))) }

// tenths writes a number of tenths.
func tenths(n int) string {
	text := strconv.FormatFloat(float64(n)/10, 'f', -1, 64)
	switch {
	case len(text) > 2 && text[:2] == "0.":
		return text[1:]
	case len(text) > 3 && text[:3] == "-0.":
		return "-" + text[2:]
	default:
		return text
	}
}

// pen is the one in use.
func (s *svg) pen() *pen { return &s.pens[len(s.pens)-1] }

// Size is as vg.CanvasSizer has it.
func (s *svg) Size() (x, y vg.Length) { return s.width, s.height }

// SetLineWidth is as vg.Canvas has it.
func (s *svg) SetLineWidth(w vg.Length) { s.pen().width = w }

// SetLineDash is as vg.Canvas has it.
func (s *svg) SetLineDash(dashes []vg.Length, offset vg.Length) {
	s.pen().dashes, s.pen().offset = dashes, offset
}

// SetColor is as vg.Canvas has it.
func (s *svg) SetColor(c color.Color) {
	if c == nil {
		c = color.Black
	}
	s.pen().color = c
}

// Rotate is as vg.Canvas has it.
func (s *svg) Rotate(angle float64) {
	sin, cos := math.Sincos(angle)
	s.pen().at = s.pen().at.times(matrix{xx: cos, xy: -sin, yx: sin, yy: cos})
}

// Translate is as vg.Canvas has it.
func (s *svg) Translate(p vg.Point) {
	s.pen().at = s.pen().at.times(matrix{xx: 1, yy: 1, x0: p.X.Points(), y0: p.Y.Points()})
}

// Scale is as vg.Canvas has it.
func (s *svg) Scale(x, y float64) { s.pen().at = s.pen().at.times(matrix{xx: x, yy: y}) }

// Push is as vg.Canvas has it.
func (s *svg) Push() { s.pens = append(s.pens, *s.pen()) }

// Pop is as vg.Canvas has it.
func (s *svg) Pop() { s.pens = s.pens[:len(s.pens)-1] }

// Stroke is as vg.Canvas has it.
func (s *svg) Stroke(path vg.Path) {
	p := s.pen()
	if p.width <= 0 {
		return
	}
	fmt.Fprintf(&s.body, `<path d="%s" fill="none" stroke="%s"`, s.data(path), hex(p.color))
	if p.width != 1 {
		fmt.Fprintf(&s.body, ` stroke-width="%s"`, tenth(p.width.Points()))
	}
	for i, dash := range p.dashes {
		if i == 0 {
			s.body.WriteString(` stroke-dasharray="`)
		} else {
			s.body.WriteByte(' ')
		}
		s.body.WriteString(tenth(dash.Points()))
	}
	if len(p.dashes) > 0 {
		s.body.WriteByte('"')
		if p.offset != 0 {
			fmt.Fprintf(&s.body, ` stroke-dashoffset="%s"`, tenth(p.offset.Points()))
		}
	}
	s.body.WriteString("/>\n")
}

// Fill is as vg.Canvas has it.
func (s *svg) Fill(path vg.Path) {
	fmt.Fprintf(&s.body, "<path d=\"%s\" fill=\"%s\"/>\n", s.data(path), hex(s.pen().color))
}

// FillString is as vg.Canvas has it. The page says which fonts stand for the one that was measured.
func (s *svg) FillString(face font.Face, at vg.Point, words string) {
	if face.Font.Size == 0 {
		return
	}
	m := s.pen().at
	x, y := m.apply(at.X.Points(), at.Y.Points())
	fmt.Fprintf(&s.body, `<text x="%s" y="%s" font-size="%s"`, tenth(x), tenth(y), tenth(face.Font.Size.Points()))
	if face.Font.Weight > 0 {
		s.body.WriteString(` font-weight="bold"`)
	}
	if c := hex(s.pen().color); c != hex(ink()) { // the page's own
		fmt.Fprintf(&s.body, ` fill="%s"`, c)
	}
	if angle := math.Round(math.Atan2(m.yx, m.xx) * 180 / math.Pi); angle != 0 {
		fmt.Fprintf(&s.body, ` transform="rotate(%.0f %s %s)"`, angle, tenth(x), tenth(y))
	}
	fmt.Fprintf(&s.body, ">%s</text>\n", html.EscapeString(words))
}

// DrawImage panics: no picture here has an image in it.
func (*svg) DrawImage(vg.Rectangle, image.Image) { panic("plots: an image on a canvas of lines") }

// data is a path in SVG's words.
func (s *svg) data(path vg.Path) []byte {
	var d bytes.Buffer
	var lastX, lastY int
	at := s.pen().at
	to := func(command string, x, y float64) {
		x, y = at.apply(x, y)
		nextX, nextY := int(math.Round(x*10)), int(math.Round(y*10))
		d.WriteString(command)
		if command == "M" {
			d.WriteString(tenths(nextX) + " " + tenths(nextY))
		} else {
			d.WriteString(tenths(nextX-lastX) + " " + tenths(nextY-lastY))
		}
		lastX, lastY = nextX, nextY
	}
	for i := range path {
		switch c := &path[i]; c.Type {
		case vg.MoveComp:
			to("M", c.Pos.X.Points(), c.Pos.Y.Points())
		case vg.LineComp:
			to("l", c.Pos.X.Points(), c.Pos.Y.Points())
		case vg.ArcComp:
			start := "l"
			if i == 0 {
				start = "M"
			}
			arc(c, start, to)
		case vg.CurveComp:
			panic("plots: a curve on a canvas of lines")
		case vg.CloseComp:
			d.WriteByte('z')
		}
	}
	return d.Bytes()
}

// arc goes to the start of an arc and along it in two halves, as SVG cannot say a full circle at once; y grows
// downwards there.
func arc(c *vg.PathComp, start string, to func(command string, x, y float64)) {
	radius := c.Radius.Points()
	place := func(angle float64) (x, y float64) {
		sin, cos := math.Sincos(angle)
		return c.Pos.X.Points() + radius*cos, c.Pos.Y.Points() + radius*sin
	}
	x, y := place(c.Start)
	to(start, x, y)
	sweep := 0
	if c.Angle < 0 {
		sweep = 1
	}
	command := fmt.Sprintf("a%s %s 0 0 %d ", tenth(radius), tenth(radius), sweep)
	for _, part := range []float64{0.5, 1} {
		x, y = place(c.Start + part*c.Angle)
		to(command, x, y)
	}
}

// hex is a colour in SVG's words. All of this package's are opaque.
func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
