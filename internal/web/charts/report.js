'use strict';
// The page of a comparison of strategies: it shows the result that is embedded in it, as weir simulate -o json prints it with
// the details of internal/sim/score. Names in it come from users' files: they become text, never markup.
(() => {
  const {html} = charts;
  const FAVOURITE = 'weir';
  const MAIN = ['inZone', 'dollarsPerHour', 'success', 'good', 'p50', 'p99', 'p999', 'react', 'oscillation', 'peakLoad'];
  const SYMBOLS = {fraction: '%', milliseconds: 'ms', seconds: 's', dollarsPerHour: '$/h', ratio: '×', points: 'pt', number: ''};

  // ---- numbers

  // number writes a value without its unit, with the digits that are worth reading. A share is never rounded to nothing or to
  // everything, nor money to nothing.
  function number(unit, v) {
    if (unit === 'fraction' && v > 0 && v < .00005 || unit === 'dollarsPerHour' && v > 0 && v < .005) return '<0.01';
    if (unit === 'fraction' && v >= .99995 && v < 1) return '>99.99';
    return scaled(unit, v).toFixed(digits(unit, v)).replace(/^-(0(\.0*)?)$/, '$1');
  }
  const scaled = (unit, v) => unit === 'fraction' || unit === 'points' ? 100 * v : v;
  const digits = (unit, v) => ({
    fraction: 2, milliseconds: Math.abs(v) < 9.95 ? 1 : 0, seconds: 1, points: 1, dollarsPerHour: Math.abs(v) >= 100 ? 0 : 2, ratio: 2,
  })[unit] ?? (Number.isInteger(v) || Math.abs(v) >= 100 ? 0 : 3);

  const share = v => v === null ? '–' : number('fraction', v) + ' %';
  const dollars = v => number('dollarsPerHour', v).replace(/^(<?)/, '$1$') + '/h';
  const count = (n, thing) => n === 1 ? `1 ${thing}` : `${n} ${thing}s`;
  const seconds = s => s >= 600 && s % 60 === 0 ? `${s / 60} min` : `${s} s`;

  // ---- tables

  function cell(measure, c) {
    if (!c || c.runs === 0) return html('td', {}, '-');
    if (c.known === 0) return html('td', {class: 'never'}, 'never');
    const words = (c.known < c.runs ? '>' : '') + number(measure.unit, c.mean);
    const td = html('td', {}, c.best ? html('strong', {}, html('span', {role: 'img', 'aria-label': 'best'}, '★'), ' ' + words) : words);
    if (c.half !== null) td.append(html('small', {}, '±' + scaled(measure.unit, c.half).toFixed(digits(measure.unit, c.mean))));
    if (c.known < c.runs) td.append(html('small', {}, `${c.known} of ${count(c.runs, 'run')}`));
    return td;
  }

  function table(measures, strategies) {
    const head = html('tr', {}, html('th', {scope: 'col'}, 'Strategy'), ...measures.map(m => {
      const unit = SYMBOLS[m.unit];
      const th = html('th', {scope: 'col'}, unit ? `${m.title} (${unit})` : m.title);
      if (m.better !== 'neither') th.append(html('small', {}, `${m.better} is better`));
      return th;
    }));
    const rows = strategies.map(s => html('tr', s.strategy === FAVOURITE ? {class: 'ours'} : {},
      html('th', {scope: 'row'}, s.title), ...measures.map(m => cell(m, s.cells[m.key]))));
    return html('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of measures'},
      html('table', {}, html('thead', {}, head), html('tbody', {}, ...rows)));
  }

  function tables(result, strategies) {
    const main = result.measures.filter(m => MAIN.includes(m.key)), more = result.measures.filter(m => !MAIN.includes(m.key));
    const legend = 'Under stress, unless a column says otherwise. ★: no strategy is better beyond noise, and some strategy is worse.';
    const all = [html('p', {class: 'legend'}, legend)];
    if (main.length > 0) all.push(table(main, strategies));
    all.push(...distance(strategies));
    if (more.length > 0) all.push(html('details', {}, html('summary', {}, 'More numbers'), table(more, strategies)));
    return all;
  }

  // distance says how far the favourite is from the limit; nothing where that is not known.
  function distance(strategies) {
    const own = strategies.find(s => s.strategy === FAVOURITE && s.distance), limit = strategies.find(s => s.limit);
    if (!own || !limit) return [];
    const {good, cost, dollarsPerHour: more} = own.distance, signed = v => (v < 0 ? '−' : '+') + Math.abs(v).toFixed(2);
    return [html('p', {class: 'legend'}, `${own.title} against ${limit.title}: good ${signed(-100 * good)} points, ` +
      `cost ${signed(more)} $/h${cost > 0 ? ` (× ${cost.toFixed(2)})` : ''}`)];
  }

  // plain is a table of words: the first row is the head, the first cell of each other row its title.
  function plain(label, rows) {
    const head = html('tr', {}, ...rows[0].map(c => html('th', {scope: 'col'}, c)));
    const body = rows.slice(1).map(([title, ...cells]) => html('tr', {}, html('th', {scope: 'row'}, title), ...cells.map(c => html('td', {}, c))));
    return html('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label},
      html('table', {}, html('thead', {}, head), html('tbody', {}, ...body)));
  }

  // drawn is what a comparison of scenarios that were drawn at random has beside the others.
  function drawn(result) {
    const d = result.drawn, points = v => (100 * v).toFixed(1), all = [...result.scenarios, {scenario: 'all', strategies: result.overall.strategies}];
    const good = s => s.cells.good && s.cells.good.known > 0 ? points(s.cells.good.mean) : '–';
    const kinds = result.overall.strategies.map((s, i) => [s.title, ...all.map(t => good(t.strategies[i]))]);
    const rivals = d.rivals.map(r => [r.title, points(r.mean), `${r.better}`, `${r.worse}`,
      r.worst.map(e => `${e.scenario}: ${points(e.good)} for ${points(e.other)}`).join('; ') || '–']);
    const cost = d.calmCost > 0 ? ` Where both ${d.strategy} and the limit answer 98 % well (${count(d.calm, 'scenario')}), it costs ${d.calmCost.toFixed(2)} times as much.` : '';
    return html('section', {id: 'drawn'}, html('h2', {}, `${count(d.scenarios, 'scenario')} drawn at random with seed ${d.seed}`),
      html('h3', {}, 'Good answers by kind (%)'), plain('Good answers by kind', [['Strategy', ...all.map(t => t.scenario)], ...kinds]),
      html('h3', {}, `${d.strategy} against the others, in points of good answers`),
      plain('Against the others', [['Other', 'mean', 'better by 2', 'worse by 2', 'worst scenarios'], ...rivals]),
      html('p', {}, `The spill varies by more than 6 points in ${count(d.oscillating, 'scenario')}.${cost}`));
  }

  // ---- charts

  // known is a measure of a strategy; undefined where no run has the number.
  function known(s, key) {
    const c = s.cells[key];
    return c && c.known > 0 && c.mean !== null ? {mean: c.mean, half: c.half ?? 0} : undefined;
  }

  // cost is what bytes that cross zones cost, and the success that comes with it.
  function cost(name, subtitle, strategies, styles) {
    const entries = strategies.map(s => ({title: s.title, style: styles.get(s.strategy)}));
    const spent = strategies.map(s => known(s, 'dollarsPerHour')), answered = strategies.map(s => known(s, 'success'));
    const told = (values, words) => values.map(v => v && {...v, words: words(v.mean)});
    const conclude = (values, words) =>
      charts.conclusion(entries.map((e, i) => ({...e, value: values[i]?.mean ?? null, words: values[i] ? words(values[i].mean) : '–'})));
    return charts.bars({
      name: `${name}-cost`, title: 'Cost of cross-zone bytes, and success', subtitle, entries,
      alt: `Cost under stress: ${conclude(spent, dollars)}. Success: ${conclude(answered, share)}.`,
      panels: [
        {title: 'cost under stress ($/h)', axis: charts.upTo(extreme(spent, 1), charts.dollars), values: told(spent, v => number('dollarsPerHour', v))},
        {
          title: 'success', isMark: true, axis: charts.fractions(Math.min(.99, extreme(answered, -1)), 4),
          values: told(answered, v => number('fraction', v)),
        },
      ],
    });
  }

  // extreme is the largest upper end of the intervals, or the smallest lower end.
  function extreme(values, sign) {
    const ends = values.filter(v => v).map(v => v.mean + sign * v.half);
    return ends.length === 0 ? sign > 0 ? 1 : 0 : sign > 0 ? Math.max(...ends) : Math.min(...ends);
  }

  // tradeoff sets what is paid against what is got for it.
  function tradeoff(name, subtitle, strategies, styles) {
    const entries = strategies.map(s => {
      const x = known(s, 'dollarsPerHour'), y = known(s, 'good');
      return {title: s.title, style: styles.get(s.strategy), x, y, value: y ? y.mean : null, words: share(y ? y.mean : null)};
    });
    const both = entries.filter(e => e.x && e.y);
    return charts.scatter({
      name: `${name}-tradeoff`, title: 'Trade-off: good answers for the cost (better: up and to the left)', subtitle, entries,
      alt: `Good answers of all clients under stress: ${charts.conclusion(entries)}.`,
      x: charts.upTo(extreme(both.map(e => e.x), 1), charts.dollars), y: charts.fractions(extreme(both.map(e => e.y), -1), 5),
      xTitle: 'cost under stress ($/h)', yTitle: 'good answers', heading: 'good under stress',
    });
  }

  // overTime are the charts of a scenario's timelines.
  function overTime(t, subtitle, styles) {
    const d = t.details, zones = d.zones ?? [];
    const clients = zones.length === 0 ? 'all clients' : `clients in zone${zones.length > 1 ? 's' : ''} ${zones.join(', ')}`;
    const late = zones.length === 1 ? clients : 'all clients';
    const when = d.to > d.from ? `Under stress (${seconds(d.from)} to ${seconds(d.to)})` : 'In this run';
    const lines = (key, title, words, {told, ...rest}) => {
      const series = t.strategies.filter(s => s.timeline).map(s => {
        const value = s.timeline.stress[key];
        return {title: s.title, style: styles.get(s.strategy), points: s.timeline[key] ?? [], value, words: value === null ? '–' : words(value)};
      });
      return charts.lines({
        name: `${t.scenario}-${key}`, title, subtitle, series, every: d.every, length: d.length, steps: d.steps ?? [], from: d.from, to: d.to,
        heading: d.to > d.from ? `${key} under stress` : key, alt: `${when} ${told}: ${charts.conclusion(series)}.`, ...rest,
      });
    };
    const point = d.every > 1 ? `the worst second of each ${d.every}` : 'each second';
    return [
      lines('spill', `Spill: requests that leave their zone, ${clients}`, share, {
        told: `this share of the requests of ${clients} leaves the zone`, yTitle: 'share of requests',
        scale: (_, largest) => charts.upTo(Math.max(Math.min(largest, 1), .05), charts.percent), // below 5 % noise would look like a storm
      }),
      lines('good', `Good answers: in time and no error, ${clients}`, share, {
        told: `this share of the requests of ${clients} is answered well and in time`, yTitle: 'share of requests',
        scale: smallest => charts.fractions(Math.min(smallest, .95), 5),
      }),
      lines('p99', `Latency: p99 of ${point}, ${late}${d.timeout ? `; timeout ${charts.latency(1000 * d.timeout)}` : ''}`, charts.latency, {
        told: `the slowest 1 % of the requests of ${late} take at least this long`, yTitle: 'p99 (logarithmic)', scale: charts.logarithmic,
      }),
    ];
  }

  // loads is how much the endpoints of each zone have to do.
  function loads(t, subtitle, styles) {
    const entries = t.strategies.filter(s => s.zones).map(s => {
      const peak = known(s, 'peakLoad');
      return {title: s.title, style: styles.get(s.strategy), zones: s.zones, value: peak ? peak.mean : null, words: peak ? `${number('ratio', peak.mean)}×` : '–'};
    });
    return charts.loads({
      name: `${t.scenario}-load`, title: 'Load by zone: line = mean of an endpoint, bar = busiest second of any', subtitle, entries,
      alt: `The busiest second of any endpoint brings this many times what it can do: ${charts.conclusion(entries)}.`,
      xTitle: 'load under stress',
    });
  }

  // ---- the page

  const grid = figures => html('div', {class: 'grid'}, ...figures.map(charts.figure));

  function section(result, t, id, styles) {
    const d = t.details, subtitle = `${t.title || t.scenario} · simulation, not a measurement`;
    const s = html('section', {id}, html('h2', {}, t.title || t.scenario), html('p', {}, html('code', {}, t.scenario)));
    for (const paragraph of (d?.about ?? '').split(/\n\n+/)) if (paragraph.trim() !== '') s.append(html('p', {}, paragraph.trim()));
    if (d?.steps) {
      s.append(html('h3', {}, 'What happens'), html('ul', {}, ...d.steps.map(st => html('li', {}, `${seconds(st.at)}: ${st.what}`))));
    }
    const figures = d ? [...overTime(t, subtitle, styles), loads(t, subtitle, styles)] : [];
    s.append(...tables(result, t.strategies), grid([...figures, cost(t.scenario, subtitle, t.strategies, styles), tradeoff(t.scenario, subtitle, t.strategies, styles)]));
    return s;
  }

  function page(result) {
    const strategies = result.overall.strategies, scenarios = result.scenarios;
    const styles = charts.styles(strategies.map(s => s.strategy), FAVOURITE);
    const what = scenarios.length === 1 ? `: ${scenarios[0].title || scenarios[0].scenario}` : ` in ${count(scenarios.length, 'scenario')}`;
    const title = (strategies.length === 1 ? '1 strategy' : `${strategies.length} strategies`) + what;
    const notice = () => html('p', {class: 'notice'}, result.notice);
    const seeds = result.drawn ? 'Each drawn scenario was run once; numbers are means over the scenarios of a kind.' : `Each was run with ${count(result.seeds, 'seed')} of random numbers, the same for all.` + (result.seeds > 1 ?
      ' Numbers are means over the seeds, ± is half of the 95 % confidence interval; lines over time and loads of endpoints are of one seed.' : '');
    const links = [], main = html('main'), add = (id, words, s) => {
      links.push(html('li', {}, html('a', {href: '#' + id}, words)));
      main.append(s);
    };
    if (result.drawn) add('drawn', 'Drawn scenarios', drawn(result));
    if (scenarios.length > 1) {
      const subtitle = `mean over ${count(result.drawn?.scenarios ?? result.common, 'scenario')} · simulation, not a measurement`;
      add('overall', 'All scenarios together', html('section', {id: 'overall'}, html('h2', {}, 'All scenarios together'),
        ...tables(result, strategies), grid([cost('overall', subtitle, strategies, styles), tradeoff('overall', subtitle, strategies, styles)])));
    }
    scenarios.forEach((t, i) => add(`scenario-${i + 1}`, t.title || t.scenario, section(result, t, `scenario-${i + 1}`, styles)));
    add('strategies', 'Strategies', html('section', {id: 'strategies'}, html('h2', {}, 'Strategies'),
      html('ul', {}, ...strategies.map(s => html('li', {}, s.title + ' ', html('code', {}, s.strategy), s.source ? `: written from ${s.source}` : '')))));
    add('assumptions', 'What the model assumes', html('section', {id: 'assumptions'}, html('h2', {}, 'What the model assumes'),
      html('ul', {}, ...(result.assumptions ?? []).map(a => html('li', {}, a)))));
    document.title = `weir simulate: ${title}`;
    document.body.replaceChildren(
      html('header', {}, html('h1', {}, title), notice(), html('p', {}, `Compared: ${strategies.map(s => s.title).join('; ')}. ${seeds}`)),
      html('nav', {'aria-labelledby': 'contents'}, html('h2', {id: 'contents'}, 'Contents'), html('ol', {}, ...links)),
      main, html('footer', {}, notice()));
  }

  try {
    const result = JSON.parse(document.getElementById('result').textContent);
    for (const m of result.measures) if (m.key === 'oscillation') m.unit = 'points'; // of a share, and no share itself
    page(result);
  } catch (err) {
    document.body.prepend(html('p', {class: 'notice', id: 'failure'}, `This page could not be drawn: ${err}`));
    throw err;
  }
})();
