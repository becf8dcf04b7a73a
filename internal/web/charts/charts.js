'use strict';
// charts draws pictures as SVG in the browser: lines over time, bars, marks in two dimensions, loads by zone.
//
// A chart is {name, title, subtitle, alt, height(width), draw(g, width)}: lines, bars, scatter and loads make one of plain
// values; figure shows it at the width of its container, with buttons that save it. A style is how a series is drawn in
// every chart: it differs by colour, and for readers without colours by dashes and shape. Texts become text nodes and never
// markup. Colours are CSS variables, so that pictures follow the theme of the page; saved pictures have them resolved.
const charts = (() => {
  const NS = 'http://www.w3.org/2000/svg';
  const FONT = 'system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif';
  const MARGIN = 8, ROW = 16, LEGEND = 214, BESIDE = 560; // pixels; from BESIDE on the legend is beside the chart

  // ---- elements and text

  function node(e, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) e.setAttribute(name, typeof value === 'number' ? Math.round(value * 10) / 10 : value);
    }
    e.append(...children);
    return e;
  }
  const svg = (name, attributes = {}, ...children) => node(document.createElementNS(NS, name), attributes, children);
  const html = (name, attributes = {}, ...children) => node(document.createElement(name), attributes, children);

  const ruler = document.createElement('canvas').getContext('2d');

  function widthOf(words, size, bold) {
    ruler.font = `${bold ? 'bold ' : ''}${size}px ${FONT}`;
    return ruler.measureText(words).width;
  }

  // fit cuts words at their end until they are at most that wide.
  function fit(words, room, size = 10.5, bold = false) {
    const most = 200; // letters; no chart has room for more
    if (words.length <= most && widthOf(words, size, bold) <= room) return words;
    const letters = [...words.slice(0, most)];
    while (letters.length > 0 && widthOf(letters.join('') + '…', size, bold) > room) letters.pop();
    return letters.join('') + '…';
  }

  // wrap breaks words into at most three lines.
  function wrap(words, room, size, bold) {
    const lines = [''];
    for (const word of words.split(/\s+/)) {
      const longer = (lines.at(-1) + ' ' + word).trim();
      if (lines.length < 3 && lines.at(-1) !== '' && widthOf(longer, size, bold) > room) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
    return lines.map(line => fit(line, room, size, bold));
  }

  // text is words whose middle is at a height; cut to room if there is one.
  function text(x, y, words, {size = 10.5, anchor = 'start', bold = false, faint = false, room = 0} = {}) {
    const shown = room > 0 ? fit(words, room, size, bold) : words;
    const e = svg('text', {
      x, y: y + 0.35 * size, 'font-size': size, 'text-anchor': anchor, 'font-weight': bold ? 'bold' : undefined,
      fill: faint ? 'var(--faint)' : 'var(--ink)',
    }, shown);
    if (shown !== words) e.append(svg('title', {}, words));
    return e;
  }

  const line = (x1, y1, x2, y2, stroke, width, dashes) =>
    svg('line', {x1, y1, x2, y2, stroke, 'stroke-width': width, 'stroke-dasharray': dashes});
  const box = (x, y, width, height, fill, attributes = {}) =>
    svg('rect', {x, y, width: Math.max(0, width), height: Math.max(0, height), fill, ...attributes});

  // ---- styles

  const DASHES = ['6 2', '2 1.6', '9 2 2 2', '4 1.5', '12 3', '5 2 1 2 1 2', '1 1', '7 1.5 1 1.5', '3 3'];
  const SHAPES = ['square', 'up', 'plus', 'diamond', 'down', 'cross', 'pentagon'];
  const COLOURS = 7;

  // styles gives each name its style, in their order; the favourite's is thicker, solid and drawn over all others. With more
  // names than colours these come again with other dashes and shapes.
  function styles(names, favourite) {
    let others = 0;
    return new Map(names.map(name => {
      if (name === favourite) return [name, {colour: 'var(--favourite)', width: 2.6, shape: 'disc', favourite: true}];
      const i = others++;
      return [name, {
        colour: `var(--series-${i % COLOURS})`, width: 1.5, dashes: DASHES[i % DASHES.length],
        shape: SHAPES[(i + Math.floor(i / COLOURS)) % SHAPES.length], favourite: false,
      }];
    }));
  }

  // regular gives the corners of a polygon with equal sides, the first one at an angle in quarter turns from the right.
  const regular = (corners, turn) => Array.from({length: corners}, (_, i) => {
    const angle = turn * Math.PI / 2 + 2 * Math.PI * i / corners;
    return [Math.cos(angle), -Math.sin(angle)];
  });
  const PLUS = [[.36, .36], [.36, 1.1], [-.36, 1.1], [-.36, .36], [-1.1, .36], [-1.1, -.36], [-.36, -.36], [-.36, -1.1],
    [.36, -1.1], [.36, -.36], [1.1, -.36], [1.1, .36]];
  const OUTLINES = {
    disc: regular(32, 0), square: regular(4, .5), up: regular(3, 1), down: regular(3, -1), diamond: regular(4, 0),
    pentagon: regular(5, 1), plus: PLUS, cross: PLUS.map(([x, y]) => [(x - y) * .707, (x + y) * .707]),
  };

  // mark is a style's shape, with a rim that parts it from what it covers.
  function mark(x, y, style, words) {
    const radius = style.favourite ? 6 : 4.8;
    const points = OUTLINES[style.shape].map(([dx, dy]) => `${(x + radius * dx).toFixed(1)},${(y + radius * dy).toFixed(1)}`);
    const e = svg('polygon', {class: 'mark', points: points.join(' '), fill: style.colour, stroke: 'var(--page)', 'stroke-width': .7});
    if (words) e.append(svg('title', {}, words));
    return e;
  }

  // ---- scales and ticks

  // step is the smallest of 1, 2 and 5 times a power of ten with which at most that many steps cover a span.
  function step(span, most) {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return power * ([1, 2, 5].find(f => span <= f * power * most * (1 + 1e-9)) ?? 10);
  }

  const short = v => String(Math.round(v * 1e6) / 1e6);
  const percent = v => short(100 * v) + ' %';
  const dollars = v => '$' + short(v);

  // axis has ticks at multiples of a step, and place puts a value between two ends.
  function axis(min, max, every, label) {
    const ticks = [];
    for (let i = Math.ceil(min / every - 1e-9); i * every <= max * (1 + 1e-9) + 1e-12; i++) {
      ticks.push({value: i * every, label: label(i * every + 0)});
    }
    const clamped = v => Math.min(Math.max(v, min), max);
    return {min, max, ticks, place: (v, from, to) => from + (clamped(v) - min) / (max - min) * (to - from)};
  }

  // upTo goes from zero to the first tick at or above the largest value.
  function upTo(largest, label) {
    const top = largest > 0 ? largest : 1, every = step(top, 5);
    return axis(0, Math.ceil(top / every - 1e-9) * every, every, label);
  }

  // fractions is of shares that are best at 1, from a round number below the smallest.
  function fractions(smallest, most) {
    const min = [.99, .96, .9, .8, .6].find(floor => smallest >= floor) ?? 0;
    return axis(min, 1, step(1 - min, most), percent);
  }

  // overTime is the seconds of a run, or minutes and hours when it is long.
  function overTime(length, most) {
    const [per, unit] = length >= 5 * 3600 ? [3600, 'h'] : length >= 600 ? [60, 'min'] : [1, 's'];
    const units = Math.max(length, 1) / per;
    const every = unit === 'h' && units <= 48 ? [1, 2, 3, 6].find(n => units <= most * n) ?? 12 : step(units, most);
    return {...axis(0, Math.max(length, 1), per * every, v => short(v / per)), title: `time since the start (${unit})`};
  }

  // latency writes milliseconds as people say them: 850 µs, 110 ms, 1.5 s.
  function latency(ms) {
    const digits = v => String(Number(v.toPrecision(3)));
    return ms < 1 ? digits(ms * 1000) + ' µs' : ms < 1000 ? digits(ms) + ' ms' : digits(ms / 1000) + ' s';
  }

  // logarithmic goes from the tick below the smallest to the tick above the largest value, with ticks at 1, 2 and 5.
  function logarithmic(smallest, largest) {
    if (!(smallest > 0) || !Number.isFinite(largest)) [smallest, largest] = [10, 1000];
    const all = [];
    for (let power = 10 ** Math.floor(Math.log10(smallest) - 1); power <= largest * 10; power *= 10) {
      all.push(power, 2 * power, 5 * power);
    }
    const min = all.findLast(v => v <= smallest * .98), max = all.find(v => v >= largest * 1.02);
    const ticks = all.filter(v => v >= min && v <= max).map(value => ({
      value, label: max / min > 1000 && !/^1/.test(value.toExponential()) ? '' : latency(value),
    }));
    const span = Math.log(max / min);
    return {min, max, ticks, place: (v, from, to) => from + Math.log(Math.min(Math.max(v, min), max) / min) / span * (to - from)};
  }

  // ---- parts of charts

  // plot draws axes into an area and gives the places of values in it.
  function plot(g, area, {x, y, xTitle, yTitle, xLines, yLines}) {
    const at = {x: v => x.place(v, area.left, area.right), y: y && (v => y.place(v, area.bottom, area.top))};
    for (const t of x.ticks) {
      if (xLines) g.append(line(at.x(t.value), area.top, at.x(t.value), area.bottom, 'var(--rule)', .6));
      g.append(line(at.x(t.value), area.bottom, at.x(t.value), area.bottom + 3, 'var(--faint)', .8));
      g.append(text(at.x(t.value), area.bottom + 10, t.label, {anchor: 'middle'}));
    }
    g.append(line(area.left, area.bottom, area.right, area.bottom, 'var(--faint)', .8));
    if (xTitle) g.append(text((area.left + area.right) / 2, area.bottom + 26, xTitle, {anchor: 'middle', faint: true, room: area.right - area.left + 40}));
    if (!y) return at;
    for (const t of y.ticks) {
      if (yLines) g.append(line(area.left, at.y(t.value), area.right, at.y(t.value), 'var(--rule)', .6));
      g.append(text(area.left - 5, at.y(t.value), t.label, {anchor: 'end'}));
    }
    g.append(line(area.left, area.top, area.left, area.bottom, 'var(--faint)', .8));
    if (yTitle) {
      const words = text(0, 0, yTitle, {anchor: 'middle', faint: true});
      words.setAttribute('transform', `translate(${MARGIN + 2} ${(area.top + area.bottom) / 2}) rotate(-90)`);
      g.append(words);
    }
    return at;
  }

  // sorted has the largest value first, and what has none last.
  const sorted = entries => [...entries].sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity) || 0);

  // legend lists entries from top to bottom in the order of their values, beside the chart or below it, so that it covers no data.
  function legend(g, left, top, right, heading, entries, marks) {
    g.append(text(right, top + ROW / 2, heading, {anchor: 'end', faint: true}));
    sorted(entries).forEach((e, i) => {
      const y = top + (i + 1.5) * ROW, bold = e.style.favourite;
      g.append(marks ? mark(left + 13, y, e.style) : line(left, y, left + 26, y, e.style.colour, e.style.width, e.style.dashes));
      const room = right - left - 38 - widthOf(e.words, 10.5, bold);
      g.append(text(left + 32, y, e.title, {bold, room}), text(right, y, e.words, {anchor: 'end', bold}));
    });
  }

  // split divides a chart between its plot and its legend.
  function split(width, top, entries, height) {
    const beside = width >= BESIDE, size = (entries.length + 1) * ROW;
    const right = beside ? width - LEGEND - 2 * MARGIN : width - MARGIN;
    return {
      height: beside ? Math.max(height, size + top + MARGIN) : height + size,
      area: {left: MARGIN + 58, right: right - MARGIN, top: top + 20, bottom: (beside ? Math.max(height, size + top + MARGIN) : height) - 36},
      legend: beside ? [width - LEGEND - MARGIN, top, width - MARGIN] : [MARGIN, height, width - MARGIN],
    };
  }

  // conclusion says in words what values come to. What looks alike is not told apart by digits that are not shown.
  function conclusion(entries) {
    const known = sorted(entries).filter(e => e.value !== null);
    const tell = e => `${e.title} (${e.words})`;
    if (known.length === 0) return 'no data';
    if (known.length === 1) return tell(known[0]);
    const first = known[0], last = known.at(-1);
    if (first.words === last.words) return `${first.words} with each`;
    const extreme = e => {
      const others = known.filter(k => k.words === e.words).length - 1;
      return others === 0 ? tell(e) : `${e.title} and ${others} more (${e.words})`;
    };
    const ours = known.find(e => e.style.favourite && e.words !== first.words && e.words !== last.words);
    return (ours ? tell(ours) + '; ' : '') + `most with ${extreme(first)}, least with ${extreme(last)}`;
  }

  const note = (g, x, y, words) => g.append(text(x, y, words, {anchor: 'middle', faint: true}));

  // interval draws a confidence interval with a short line across each end, and a rim so that it shows on every colour.
  function interval(g, x1, y1, x2, y2) {
    const [dx, dy] = y1 === y2 ? [0, 3] : [3, 0];
    const d = `M${x1} ${y1}L${x2} ${y2}M${x1 - dx} ${y1 - dy}L${x1 + dx} ${y1 + dy}M${x2 - dx} ${y2 - dy}L${x2 + dx} ${y2 + dy}`;
    for (const [stroke, width] of [['var(--page)', 2.4], ['var(--ink)', .9]]) {
      g.append(svg('path', {d, stroke, 'stroke-width': width, fill: 'none'}));
    }
  }

  // ---- the charts

  // lines is a line for each series over time: {series: [{title, style, points, value, words}], every, length, steps, from, to,
  // scale, yTitle, heading}. scale makes an axis for the smallest and the largest value. A point is null where there is nothing to show; it stands at the end of its time, when it is known, as an effect
  // must not be drawn before its cause.
  function lines({series, every, length, scale, steps, from, to, yTitle, heading, ...rest}) {
    const values = series.flatMap(s => s.points).filter(v => v !== null);
    const y = scale(values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity));
    return chart(rest, 300, (g, width, top, height) => {
      const parts = split(width, top, series, height), {area} = parts;
      const x = overTime(length, width >= 480 ? 10 : 5);
      if (to > from) {
        g.append(box(x.place(from, area.left, area.right), area.top, x.place(to, area.left, area.right) - x.place(from, area.left, area.right),
          area.bottom - area.top, 'var(--shade)', {class: 'stress'}));
      }
      const at = plot(g, area, {x, y, xTitle: x.title, yTitle, yLines: true});
      faults(g, area, at, steps);
      for (const s of [...series].sort((a, b) => a.style.favourite - b.style.favourite)) g.append(path(s, every, length, at));
      if (values.length === 0) note(g, (area.left + area.right) / 2, (area.top + area.bottom) / 2, 'no data over time');
      legend(g, ...parts.legend, heading, series);
      return parts.height;
    });
  }

  function path(s, every, length, at) {
    let d = '', pen = false;
    s.points.forEach((v, i) => {
      if (v !== null) {
        const x = at.x(Math.min((i + 1) * every, length)), y = at.y(v);
        const alone = !pen && (s.points[i + 1] ?? null) === null; // between two gaps it would have no length
        d += `${pen ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}${alone ? 'h1' : ''}`;
      }
      pen = v !== null;
    });
    return svg('path', {
      class: 'series', d, stroke: s.style.colour, 'stroke-width': s.style.width, 'stroke-dasharray': s.style.dashes, fill: 'none',
      'stroke-linejoin': 'round',
    }, svg('title', {}, `${s.title}: ${s.words}`));
  }

  // faults marks what happens, with names as far as there is room for them.
  function faults(g, area, at, steps) {
    let free = 0;
    for (const [when, what] of Map.groupBy(steps, s => s.at)) {
      const words = fit([...new Set(what.map(s => s.what))].join(', '), 110, 9.5), width = widthOf(words, 9.5);
      g.append(line(at.x(when), area.top - 3, at.x(when), area.bottom, 'var(--faint)', .7, '1 2'));
      const start = Math.min(Math.max(at.x(when) - width / 2, area.left), area.right - width);
      if (start < free) continue;
      g.append(text(start, area.top - 9, words, {size: 9.5, faint: true}));
      free = start + width + 6;
    }
  }

  // rows is a row for each entry with its name at the left: what bars and loads have in common.
  const nameWidth = width => width >= BESIDE ? 158 : Math.round(width * .3);

  // bars is one number of each entry and its confidence interval, in panels side by side: {panels: [{title, axis, unit, isMark,
  // values: [{mean, half, words}]}], entries: [{title, style}]}. isMark: only the end is drawn, as the axis does not begin at zero.
  function bars({entries, panels, ...rest}) {
    const height = 88 + 24 * entries.length;
    return chart(rest, height, (g, width, top, full) => {
      const wide = width >= 480, names = nameWidth(width), bottom = full - 36;
      const each = wide ? (width - 2 * MARGIN - names) / panels.length : width - 2 * MARGIN - names;
      const tall = full - top;
      panels.forEach((p, i) => {
        const down = wide ? 0 : i * tall, left = MARGIN + names + (wide ? i * each : 0);
        const area = {left, right: left + each - 58, top: top + down + 4, bottom: bottom + down};
        const at = plot(g, area, {x: p.axis, xTitle: p.title, xLines: true});
        entries.forEach((e, k) => {
          const y = area.top + (area.bottom - area.top) * (k + .5) / entries.length, v = p.values[k], bold = e.style.favourite;
          if (i === 0 || !wide) g.append(text(MARGIN, y, e.title, {bold, room: names - 6}));
          g.append(text(left + each - 4, y, v ? v.words : '–', {anchor: 'end', bold}));
          if (!v) return;
          const x = at.x(v.mean), low = at.x(v.mean - v.half), high = at.x(v.mean + v.half), words = `${e.title}: ${v.words}`;
          if (!p.isMark) g.append(box(area.left, y - 6, x - area.left, 12, e.style.colour, {class: 'mark'}));
          if (v.half > 0 && (!p.isMark || high - low > 12)) interval(g, low, y, high, y);
          if (p.isMark) g.append(mark(x, y, e.style, words));
        });
      });
      return wide ? full : full + tall * (panels.length - 1);
    });
  }

  // scatter sets two numbers of each entry against each other: {entries: [{title, style, x: {mean, half}, y: {mean, half}, value,
  // words}], x, y: axes, xTitle, yTitle, heading}. Marks at one place are told by the legend.
  function scatter({entries, x, y, xTitle, yTitle, heading, ...rest}) {
    return chart(rest, 300, (g, width, top, height) => {
      const parts = split(width, top, entries, height), {area} = parts;
      const at = plot(g, area, {x, y, xTitle, yTitle, xLines: true, yLines: true});
      for (const e of [...entries].sort((a, b) => a.style.favourite - b.style.favourite)) {
        if (!e.x || !e.y) continue;
        const px = at.x(e.x.mean), py = at.y(e.y.mean);
        const [left, right] = [at.x(e.x.mean - e.x.half), at.x(e.x.mean + e.x.half)];
        const [low, high] = [at.y(e.y.mean - e.y.half), at.y(e.y.mean + e.y.half)];
        if (right - left > 12) interval(g, left, py, right, py); // a shorter one is covered by the mark
        if (low - high > 12) interval(g, px, low, px, high);
        g.append(mark(px, py, e.style, `${e.title}: ${e.words}`));
      }
      legend(g, ...parts.legend, heading, entries, true);
      return parts.height;
    });
  }

  // loads is the load of the endpoints of each zone: {entries: [{title, style, zones: [{cluster, zone, means, peak}], words}]}. A
  // bar goes to the busiest second of any endpoint, a line across it is the mean of one. The axis ends at three times what an
  // endpoint can do: how much more it is, its number tells.
  function loads({entries, xTitle, ...rest}) {
    const BAND = 11, GAP = 7, MOST = 3;
    const down = entries.reduce((sum, e) => sum + e.zones.length * BAND + GAP, 0);
    return chart(rest, 102 + down, (g, width, top, height) => {
      const names = nameWidth(width), zones = width >= BESIDE ? 70 : 48;
      const area = {left: MARGIN + names + zones, right: width - MARGIN - 50, top: top + 18, bottom: height - 36};
      const peaks = entries.flatMap(e => e.zones.map(z => z.peak));
      const x = upTo(Math.min(Math.max(1.2, ...peaks), MOST), short);
      const at = plot(g, area, {x, xTitle, xLines: true});
      let y = area.top + GAP / 2;
      for (const e of entries) {
        const middle = y + e.zones.length * BAND / 2, bold = e.style.favourite;
        g.append(text(MARGIN, middle, e.title, {bold, room: names - 6}), text(width - MARGIN, middle, e.words, {anchor: 'end', bold}));
        for (const z of e.zones) {
          band(g, area, at, y + BAND / 2, z, e.style, x.max);
          const label = (z.cluster ? z.cluster + '/' : '') + z.zone;
          g.append(text(area.left - 5, y + BAND / 2, label, {size: 9.5, anchor: 'end', faint: true, room: zones - 6}));
          y += BAND;
        }
        y += GAP;
      }
      g.append(line(at.x(1), area.top - 3, at.x(1), area.bottom, 'var(--ink)', 1.1));
      g.append(text(at.x(1), area.top - 9, '1 = all it can do', {size: 9.5, anchor: 'middle', faint: true}));
      g.append(text(width - MARGIN, area.top - 9, 'peak', {size: 9.5, anchor: 'end', faint: true}));
      return height;
    });
  }

  function band(g, area, at, y, zone, style, most) {
    g.append(box(area.left, y - 3.5, at.x(zone.peak) - area.left, 7, style.colour, {class: 'mark', 'fill-opacity': '0.35'}));
    for (const mean of zone.means) {
      if (mean <= most) g.append(line(at.x(mean), y - 4.5, at.x(mean), y + 4.5, style.colour, 1.4));
    }
    if (zone.peak > most) { // it goes on
      g.append(svg('polygon', {points: `${area.right},${y - 4} ${area.right + 5},${y} ${area.right},${y + 4}`, fill: style.colour}));
    }
  }

  // chart frames a picture: paper, title and subtitle. The height is of a picture with a title of one line.
  function chart({name, title, subtitle, alt}, height, paint) {
    return {name, title, alt, draw(width) {
      const g = svg('g'), room = width - 2 * MARGIN;
      let top = MARGIN + 7;
      const write = (words, size, options) => {
        for (const shown of wrap(words, room, size, options.bold)) {
          g.append(text(MARGIN, top, shown, {size, ...options}));
          top += size + 4;
        }
      };
      write(title, 13, {bold: true});
      write(subtitle, 10.5, {faint: true});
      const full = paint(g, width, top, height + Math.max(0, top - 47));
      return svg('svg', {
        xmlns: NS, viewBox: `0 0 ${width} ${Math.round(full)}`, width, height: full, role: 'img', 'aria-label': `${title}. ${alt}`,
        'font-family': FONT,
      }, box(0, 0, width, full, 'var(--page)'), g);
    }};
  }

  // ---- figures and files

  // figure shows a chart at the width of its container, draws it again when that changes, and offers it as a file.
  function figure(chart) {
    const frame = html('div', {class: 'chart'}), caption = html('figcaption', {}, chart.alt);
    const button = kind => {
      const b = html('button', {type: 'button', 'aria-label': `Save as ${kind}: ${chart.title}`}, kind);
      b.addEventListener('click', () => save(frame.firstChild, chart.name, kind));
      return b;
    };
    const draw = width => frame.replaceChildren(chart.draw(Math.min(Math.max(Math.floor(width), 280), 760)));
    draw(620);
    let drawn = 0;
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width === drawn || width === 0) return;
      drawn = width;
      requestAnimationFrame(() => draw(width)); // drawn at once, its own height would be another change
    }).observe(frame);
    return html('figure', {id: chart.name}, frame, caption, html('p', {class: 'save'}, 'Save as ', button('SVG'), ' ', button('PNG')));
  }

  // standalone is a picture as a file of its own: colours are those that the page has now.
  function standalone(picture) {
    const colours = getComputedStyle(document.documentElement);
    return new XMLSerializer().serializeToString(picture).replace(/="var\((--[\w-]+)\)"/g, (_, name) => `="${colours.getPropertyValue(name).trim()}"`);
  }

  function save(picture, name, kind) {
    const file = new Blob([standalone(picture)], {type: 'image/svg+xml'});
    if (kind === 'SVG') return download(file, `${name}.svg`);
    const address = URL.createObjectURL(file), image = new Image(), scale = 2; // sharp on a dense screen
    image.onload = () => {
      const canvas = html('canvas', {width: image.width * scale, height: image.height * scale});
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(address);
      canvas.toBlob(png => download(png, `${name}.png`), 'image/png');
    };
    image.src = address;
  }

  function download(file, name) {
    const address = URL.createObjectURL(file), link = html('a', {href: address, download: name.replace(/[^\w.-]+/g, '-')});
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  return {
    html, styles, figure, lines, bars, scatter, loads, conclusion, standalone,
    upTo, fractions, logarithmic, latency, percent, dollars, short,
  };
})();
