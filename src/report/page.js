/* page.js - the interactive parts of report.html: the leaderboard for any K, and where two models disagree.
 *
 * The rank records inside of the page (layout: page_data.c) are unpacked once. A sampler is a
 * view of them: the pool each event draws from. Equal pools give equal results, so events are
 * grouped by pool, and expectedRR (expected.js) runs once per group.
 */
'use strict';

(() => {
  const byId = (id) => document.getElementById(id);
  const study = JSON.parse(byId('study').textContent);

  /* An element with attributes, classes and children; text is never parsed as HTML. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const count = (n) => n.toLocaleString('en-US');
  const mrrText = (x) => Number.isNaN(x) ? '–' : x.toFixed(4);
  const signed = (x) => (x < 0 ? '−' : '+') + Math.abs(x).toFixed(4);
  const short = (x) => Number.isInteger(x) ? count(x) : String(Number(x.toPrecision(6)));

  /* ---- the records ---- */

  async function inflate(base64) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  class Reader {
    constructor(bytes) {
      this.bytes = bytes;
      this.view = new DataView(bytes.buffer);
      this.at = 0;
    }
    number() {
      let value = 0, scale = 1, byte;
      do {
        byte = this.bytes[this.at++];
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
      return value;
    }
    id() { // up to 64 bits, as text
      let value = 0n, shift = 0n, byte;
      do {
        byte = this.bytes[this.at++];
        value |= BigInt(byte & 127) << shift;
        shift += 7n;
      } while (byte > 127);
      return value & 1n ? -(value >> 1n) - 1n : value >> 1n;
    }
    real() {
      this.at += 8;
      return this.view.getFloat64(this.at - 8, true);
    }
    column(n, read) {
      const out = new Float64Array(n);
      for (let i = 0; i < n; i++) out[i] = read.call(this);
      return out;
    }
  }

  /* Fills a data set with its columns: one entry per event, ranks one per covered event. */
  async function unpack(set) {
    const r = new Reader(await inflate(set.columns)), events = set.events;
    const flags = r.bytes.subarray(0, events);
    r.at = events;
    set.repeated = Array.from(flags, (f) => (f & 2) > 0);
    let row = 0n;
    set.row = Array.from(flags, () => row += r.id());
    set.source = Array.from(flags, () => r.id());
    set.destination = Array.from(flags, () => r.id());
    set.time = r.column(events, r.real);
    set.pairs = r.column(events, r.number);
    set.gap = Float64Array.from(set.repeated, (yes) => yes ? r.real() : NaN);
    set.ranked = []; // numbers of covered events
    flags.forEach((f, i) => { if (f & 1) set.ranked.push(i); });
    const n = set.ranked.length;
    set.n = r.column(n, r.number);
    set.seenN = r.column(n, r.number);
    for (const model of set.models)
      model.runs = model.seeds.map(() => ({
        seenAbove: r.column(n, r.number), seenTied: r.column(n, r.number),
        newAbove: r.column(n, r.number), newTied: r.column(n, r.number)}));
    set.negatives = set.n.reduce((a, b) => Math.max(a, b), 1) - 1;
  }

  /* ---- samplers: the pool an event draws from ---- */

  const whole = (set, run, i) =>
    [set.n[i] - 1, run.seenAbove[i] + run.newAbove[i], run.seenTied[i] + run.newTied[i]];
  const samplers = {
    'uniform': {
      title: 'uniform, without replacement', pool: whole,
      note: 'K different destinations of the catalog, every set of K equally likely. At K = N − 1 ' +
        'this is the full catalog.'},
    'random': {
      title: 'uniform, with replacement', pool: whole, replaced: true,
      note: 'K independent draws from the catalog, as in much evaluation code: even a large ' +
        'K misses some destinations.'},
    'source-history': {
      title: 'source history (met before)',
      pool: (set, run, i) => [set.seenN[i], run.seenAbove[i], run.seenTied[i]],
      note: 'K different destinations that the source has met: historical negatives. Events whose ' +
        'source has met no other destination have no negatives and do not count.'},
    'unseen': {
      title: 'unseen (not met before)',
      pool: (set, run, i) => [set.n[i] - 1 - set.seenN[i], run.newAbove[i], run.newTied[i]],
      note: 'K different destinations that would be new to the source.'},
    'popularity': {
      title: 'popularity, with replacement', grid: true,
      note: 'K independent draws, with probabilities proportional to the number of training events.'},
    'tgb-hist': {
      title: 'half from training history (TGB)', grid: true,
      note: 'TGB’s hist_rnd lists: up to half of K from the destinations that the source has met ' +
        'in the training part, the rest from the others.'},
  };

  /* Events of a model by equal pools: flat size, above, tied, and the events of each seed. */
  function groupsOf(set, model, sampler) {
    model.groups ||= {};
    if (model.groups[sampler]) return model.groups[sampler];
    const place = new Map(), flat = [], base = set.negatives + 2;
    const pool = samplers[sampler].pool, exact = base ** 3 < Number.MAX_SAFE_INTEGER;
    model.runs.forEach((run, r) => {
      for (let i = 0; i < set.ranked.length; i++) {
        const [size, above, tied] = pool(set, run, i);
        const key = exact ? (size * base + above) * base + tied : `${size},${above},${tied}`;
        let at = place.get(key);
        if (at === undefined) {
          place.set(key, at = flat.length);
          flat.push(size, above, tied, ...model.runs.map(() => 0));
        }
        flat[at + 3 + r]++;
      }
    });
    return model.groups[sampler] = Float64Array.from(flat);
  }

  /* Mean and sample standard deviation of a list; one value has no deviation. */
  function spread(values) {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const squares = values.reduce((a, b) => a + (b - mean) ** 2, 0);
    return {mrr: mean, sd: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : NaN};
  }

  /* Expected MRR of a model, mean and deviation over its seeds (all rank the same events). */
  function evaluate(set, model, sampler, k, small) {
    if (samplers[sampler].grid) {
      const [mrr, sd] = model.grid[sampler]?.[study.grid.indexOf(k)] || [null, null];
      return {mrr: mrr ?? NaN, sd: sd ?? NaN, events: set.zero ? set.events : set.ranked.length};
    }
    const groups = groupsOf(set, model, sampler), replaced = samplers[sampler].replaced === true;
    const seeds = model.runs.length, sums = model.runs.map(() => 0);
    let events = 0; // of one seed: pools have the same size for all seeds
    for (let g = 0; g < groups.length; g += 3 + seeds) {
      const size = groups[g];
      if (size <= 0 || (!replaced && small === 'ineligible' && size < k)) continue;
      const rr = expectedRR(size, groups[g + 1], groups[g + 2], k, replaced);
      for (let r = 0; r < seeds; r++) sums[r] += groups[g + 3 + r] * rr;
      events += groups[g + 3];
    }
    if (events && set.zero) events += set.events - set.ranked.length;
    return {...spread(sums.map((sum) => events ? sum / events : NaN)), events};
  }

  const rankOf = (set, run, i) => {
    const [, above, tied] = whole(set, run, i);
    return 1 + above + tied / 2;
  };

  function fullMRR(set, model) {
    const events = set.zero ? set.events : set.ranked.length;
    return spread(model.runs.map((run) =>
      set.ranked.reduce((sum, _, i) => sum + 1 / rankOf(set, run, i), 0) / events));
  }

  const title = (m) =>
    m.objective && m.objective !== 'bce' ? `${m.label} (${m.objective})` : m.label;
  const kindText = {trained: '', external: 'external', baseline: 'no training', oracle: 'knows the truth'};

  /* Kendall's tau-b of two lists of values. */
  function kendall(x, y) {
    let agree = 0, tiedX = 0, tiedY = 0, pairs = 0;
    for (let i = 0; i < x.length; i++)
      for (let j = 0; j < i; j++) {
        const a = Math.sign(x[i] - x[j]), b = Math.sign(y[i] - y[j]);
        agree += a * b;
        tiedX += a === 0;
        tiedY += b === 0;
        pairs++;
      }
    return agree / Math.sqrt((pairs - tiedX) * (pairs - tiedY));
  }

  /* ---- choosing K ---- */

  const state = {k: 20, sampler: 'uniform', small: 'whole', steps: [1], most: 1};

  /* Positions of the slider: every K while small, then steps of about 4 %; with a sampler that was
   * computed beforehand, the K it was computed for. */
  function setSteps(sets) {
    state.most = Math.max(1, ...sets.map((s) => s.negatives));
    const steps = new Set([...study.k.filter((k) => k <= state.most), state.most]);
    for (let k = 1; k <= state.most; k = Math.max(k + 1, Math.round(k * 1.04))) steps.add(k);
    state.steps = samplers[state.sampler].grid ? study.grid : [...steps].sort((a, b) => a - b);
    if (samplers[state.sampler].grid) state.most = study.grid.at(-1);
    byId('k-slider').max = state.steps.length - 1;
    byId('k-number').max = state.most;
  }

  function showK() {
    const slider = byId('k-slider');
    let near = 0;
    state.steps.forEach((k, i) => {
      if (Math.abs(k - state.k) < Math.abs(state.steps[near] - state.k)) near = i;
    });
    slider.value = near;
    slider.setAttribute('aria-valuetext', `K = ${state.k} of at most ${state.most}`);
    if (document.activeElement !== byId('k-number')) byId('k-number').value = state.k;
    for (const button of byId('k-presets').children)
      button.setAttribute('aria-pressed', String(Number(button.dataset.k) === state.k));
  }

  function setK(k) {
    if (!Number.isFinite(k)) return;
    state.k = Math.min(state.most, Math.max(1, Math.round(k)));
    if (samplers[state.sampler].grid)
      state.k = study.grid.reduce((a, b) => Math.abs(b - state.k) < Math.abs(a - state.k) ? b : a);
    showK();
    schedule();
  }

  /* ---- the leaderboard ---- */

  const checked = (id) => new Set(Array.from(document.querySelectorAll(`#${id} input[data-name]`))
    .filter((box) => box.checked).map((box) => box.dataset.name));

  function makeBoard(set) {
    const links = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    links.setAttribute('preserveAspectRatio', 'none');
    links.setAttribute('aria-hidden', 'true');
    const board = {
      set, links, rows: new Map(),
      verdict: make('p', {class: 'verdict'}),
      head: make('h4'), fullHead: make('h4'),
      now: make('ol'), full: make('ol'),
    };
    const seeds = set.seeds === 'first' ? ', first seed of each model' : '';
    board.element = make('article', {'class': 'board card', 'data-set': set.name},
      make('h3', {}, set.name, make('small', {},
        ` N = ${count(set.negatives + 1)} candidates, ${count(set.ranked.length)} ranked events` +
        seeds)),
      board.verdict,
      make('div', {class: 'race'}, board.head, board.fullHead, board.now, links, board.full));
    for (const [side, list] of [['now', board.now], ['full', board.full]])
      for (const model of set.models) {
        const row = {
          place: make('span', {class: 'place'}), value: make('span', {class: 'value'}),
          bar: make('span', {class: `fill ${model.kind}`}), move: make('span', {class: 'move'}),
          error: make('span', {class: 'error'}),
        };
        row.item = make('li', {'data-model': title(model)}, row.place,
          make('span', {class: 'name', title: title(model)}, title(model),
            make('small', {}, kindText[model.kind])),
          row.move, row.value,
          make('span', {class: 'bar', 'aria-hidden': 'true'}, row.bar, row.error));
        row.list = list;
        board.rows.set(`${side} ${title(model)}`, row);
      }
    return board;
  }

  /* Sorted by value; equal values share a place. */
  function rankModels(models, values) {
    const order = models.map((_, i) => i).sort((a, b) => values[b] - values[a] || a - b);
    const place = [];
    order.forEach((m, i) => {
      const tie = i && values[order[i - 1]] - values[m] < 1e-12;
      place[m] = tie ? place[order[i - 1]] : i + 1;
    });
    return {order, place};
  }

  const still = matchMedia('(prefers-reduced-motion: reduce)');

  /* Puts the rows of one side in order; those that move slide to their new place. */
  function arrange(list, items) {
    if (list.children.length === items.length && items.every((li, i) => list.children[i] === li))
      return;
    const before = new Map(items.map((li) => [li, li.isConnected ? li.offsetTop : null]));
    list.replaceChildren(...items);
    if (still.matches) return;
    for (const li of items) {
      const from = before.get(li);
      if (from !== null && from !== li.offsetTop)
        li.animate([{transform: `translateY(${from - li.offsetTop}px)`}, {transform: 'none'}],
          {duration: 220, easing: 'ease-out'});
    }
  }

  function drawLinks(board, now, full, place) {
    const rows = now.order.length, svg = board.links;
    svg.setAttribute('viewBox', `0 0 100 ${rows}`);
    svg.replaceChildren(...now.order.map((m, i) => {
      const j = full.order.indexOf(m);
      const path = document.createElementNS(svg.namespaceURI, 'path');
      path.setAttribute('d', `M0 ${i + .5} C50 ${i + .5} 50 ${j + .5} 100 ${j + .5}`);
      path.setAttribute('class', place.now[m] === place.full[m] ? 'same' : 'moved');
      return path;
    }));
  }

  function moveText(places) {
    if (!places) return ['=', 'same place as over the full catalog'];
    const size = Math.abs(places), higher = places > 0;
    return [`${higher ? '▲' : '▼'} ${size}`, `${size} place${size > 1 ? 's' : ''} ` +
      `${higher ? 'higher' : 'lower'} than over the full catalog`];
  }

  function showBoard(board, models, results) {
    const set = board.set, values = results.map((r) => Number.isNaN(r.mrr) ? -1 : r.mrr);
    const fullResults = models.map((m) => m.full), fulls = fullResults.map((r) => r.mrr);
    const now = rankModels(models, values), full = rankModels(models, fulls);
    const {replaced, grid} = samplers[state.sampler];
    const beyond = !replaced && !grid && state.k > set.negatives;
    board.head.textContent = beyond
      ? `K = ${count(state.k)}, only ${count(set.negatives)} exist`
      : `K = ${count(state.k)} sampled${grid ? ', precomputed' : ''}`;
    board.fullHead.textContent = `Full catalog, ${count(set.negatives)}`;
    for (const [side, ranks, numbers] of [['now', now, results], ['full', full, fullResults]]) {
      const items = ranks.order.map((m) => {
        const row = board.rows.get(`${side} ${title(models[m])}`);
        row.place.textContent = ranks.place[m];
        const {mrr, sd} = numbers[m];
        row.value.textContent = mrrText(mrr);
        row.item.dataset.mrr = String(mrr);
        row.item.title = Number.isNaN(sd) ? '' : `± ${mrrText(sd)} over seeds`;
        row.bar.style.width = `${100 * (mrr || 0)}%`;
        row.error.hidden = Number.isNaN(sd);
        row.error.style.left = `${100 * (mrr - sd)}%`;
        row.error.style.width = `${200 * sd}%`;
        if (side === 'now') {
          const [mark, words] = moveText(full.place[m] - now.place[m]);
          row.item.dataset.events = String(results[m].events);
          row.move.classList.toggle('moved', mark !== '=');
          row.move.replaceChildren(make('span', {'aria-hidden': 'true', title: words}, mark),
            make('span', {class: 'unseen'}, ` ${words}`));
        }
        return row.item;
      });
      arrange(board.rows.get(`${side} ${title(models[0])}`).list, items);
    }
    drawLinks(board, now, full, {now: now.place, full: full.place});
    const moved = models.filter((_, m) => now.place[m] !== full.place[m]).length;
    const judged = models.map((m) => m.kind !== 'oracle' && (m.objective || 'bce') === 'bce');
    const scorers = judged.filter((yes) => yes).length;
    const tau = kendall(values.filter((_, m) => judged[m]), fulls.filter((_, m) => judged[m]));
    const same = now.order[0] === full.order[0];
    const counted = results[0].events;
    board.verdict.textContent =
      (moved ? `${moved} of ${models.length} models have another place than over the full ` +
        `catalog${same ? '' : `; ${title(models[now.order[0]])} comes first instead of ` +
        title(models[full.order[0]])}` : 'Same order as over the full catalog') +
      '.' + (scorers > 1 && !Number.isNaN(tau)
        ? ` Kendall’s τ between the two orders of ${scorers} scorers is ${tau.toFixed(3)}.` : '') +
      (counted < set.ranked.length ? ` ${count(Math.round(counted))} of ` +
        `${count(set.ranked.length)} ranked events count.` : '');
    return `${set.name}: ${board.verdict.textContent}`;
  }

  /* Models are computed one by one with room for input between; a new choice starts over. */
  let turn = 0, announcing = 0;
  const pause = () => new Promise((resume) => setTimeout(resume));
  const PATIENCE = 40; // ms without a chance for input

  async function update() {
    const mine = ++turn, names = checked('model-filter'), sets = checked('data-filter');
    byId('boards').dataset.busy = 'yes';
    const said = [];
    let rested = performance.now();
    for (const board of boards) {
      const models = board.set.models.filter((m) => names.has(title(m)));
      board.element.hidden = !sets.has(board.set.name) || !models.length;
      if (board.element.hidden) continue;
      const results = [];
      for (const model of models) {
        results.push(evaluate(board.set, model, state.sampler, state.k, state.small));
        if (performance.now() - rested < PATIENCE) continue;
        await pause();
        if (mine !== turn) return;
        rested = performance.now();
      }
      said.push(showBoard(board, models, results));
    }
    byId('boards').dataset.busy = 'no';
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      byId('announce').textContent = `K = ${state.k}. ${said.join(' ') || 'Nothing chosen.'}`;
    }, 600);
  }

  let waiting = false;
  function schedule() {
    byId('boards').dataset.busy = 'yes';
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      update();
    });
  }

  const boards = [];

  function checkbox(name, label, extra) {
    const box = make('input', {type: 'checkbox', autocomplete: 'off', ...extra});
    if (name !== null) box.dataset.name = name;
    box.checked = true;
    return make('label', {class: 'check'}, box, label);
  }

  function startExplorer(sets) {
    for (const set of sets) {
      for (const model of set.models) model.full = fullMRR(set, model);
      boards.push(makeBoard(set));
      byId('data-filter').append(checkbox(set.name, set.name));
    }
    byId('boards').append(...boards.map((b) => b.element));
    const models = new Map(sets.flatMap((s) => s.models.map((m) => [title(m), m])));
    for (const kind of ['trained', 'external', 'oracle', 'baseline'])
      for (const [name, model] of models)
        if (model.kind === kind)
          byId('model-filter').append(checkbox(name, name, {'data-kind': kind}));
    if ([...models.values()].some((m) => m.kind === 'baseline')) {
      const all = checkbox(null, 'all baselines', {id: 'all-baselines'});
      all.classList.add('all');
      byId('model-filter').append(all);
      byId('all-baselines').addEventListener('change', (event) => {
        for (const box of document.querySelectorAll('#model-filter [data-kind="baseline"]'))
          box.checked = event.target.checked;
      });
    }
    for (const [name, sampler] of Object.entries(samplers))
      if (!sampler.grid || [...models.values()].some((m) => m.grid[name]))
        byId('sampler').append(make('option', {value: name}, sampler.title));
    setSteps(sets);
    for (const k of [...study.k.filter((x) => x < state.most), state.most]) {
      const button = make('button', {'type': 'button', 'data-k': k},
        k === state.most ? `all ${count(k)}` : count(k));
      button.addEventListener('click', () => setK(k));
      byId('k-presets').append(button);
    }
    byId('k-slider').addEventListener('input', (event) => setK(state.steps[event.target.value]));
    byId('k-number').addEventListener('input', (event) => setK(event.target.valueAsNumber));
    byId('k-number').addEventListener('blur', () => { byId('k-number').value = state.k; });
    const read = () => {
      state.sampler = byId('sampler').value;
      state.small = byId('small').value;
      const {replaced, grid, note} = samplers[state.sampler];
      byId('small').disabled = replaced === true || grid === true;
      byId('sampler-note').textContent = note + (grid ? ` Precomputed for K = ` +
        `${study.grid.join(', ')}: the slider moves between these values.` : '');
      setSteps(sets);
      setK(state.k);
    };
    byId('explorer').addEventListener('change', read);
    byId('filters').open = !matchMedia('(max-width: 40rem)').matches;
    byId('explorer').hidden = false;
    setK(Math.min(20, state.most));
    read();
  }

  /* ---- events ---- */

  function fill(select, entries, chosen) {
    select.replaceChildren(...entries.map(([value, label]) => make('option', {value}, label)));
    select.value = chosen;
  }

  function rankCell(set, run, i) {
    const [, , tied] = whole(set, run, i), rank = rankOf(set, run, i);
    const text = Number.isInteger(rank) ? count(rank) : rank.toFixed(1);
    return tied ? `${text} (${count(tied)} tied)` : text;
  }

  function listEvents(sets) {
    const set = sets[Number(byId('event-data').value)];
    const [first, second] = ['event-first', 'event-second'].map((id) => set.models[byId(id).value]);
    const a = first.runs[0], b = second.runs[0], kind = byId('event-kind').value;
    const found = [];
    let sum = 0;
    set.ranked.forEach((event, i) => {
      if (kind !== 'all' && set.repeated[event] !== (kind === 'repeated')) return;
      const difference = 1 / rankOf(set, a, i) - 1 / rankOf(set, b, i);
      sum += difference;
      found.push({event, i, difference});
    });
    found.sort((x, y) => Math.abs(y.difference) - Math.abs(x.difference) || x.event - y.event);
    const better = found.filter((x) => x.difference > 0).length;
    const worse = found.filter((x) => x.difference < 0).length;
    byId('event-summary').textContent = `${title(first)} ranks the true destination higher in ` +
      `${count(better)} of ${count(found.length)} events, ${title(second)} in ${count(worse)}` +
      (found.length ? `; mean difference of 1/rank ${signed(sum / found.length)}.` : '.');
    const table = byId('event-table');
    const heads = ['event row', 'source', 'destination', 'time', 'kind', 'met before',
      'time since', `rank by ${title(first)}`, `rank by ${title(second)}`, 'difference of 1/rank'];
    table.tHead.replaceChildren(make('tr', {}, ...heads.map((h) => make('th', {scope: 'col'}, h))));
    table.tBodies[0].replaceChildren(...found.slice(0, Number(byId('event-count').value)).map(
      ({event, i, difference}) => {
        const cells = [set.row[event], set.source[event], set.destination[event],
          short(set.time[event]), set.repeated[event] ? 'repeated' : 'new',
          `${count(set.pairs[event])} ×`, set.repeated[event] ? short(set.gap[event]) : '–',
          rankCell(set, a, i), rankCell(set, b, i), signed(difference)];
        return make('tr', {'data-difference': difference, 'data-row': set.row[event]},
          ...cells.map((text) => make('td', {}, String(text))));
      }));
  }

  function startDrilldown(sets) {
    const models = (set) => set.models.map((m, i) => [i, title(m)]);
    const choose = () => { // a useful pair to start with: the best model and the best baseline
      const set = sets[Number(byId('event-data').value)];
      const best = (...kinds) => set.models.reduce((found, m, i) =>
        kinds.includes(m.kind) && (found < 0 || m.full.mrr > set.models[found].full.mrr) ? i : found, -1);
      const first = Math.max(0, best('trained', 'external')), other = best('baseline');
      const second = other >= 0 && other !== first ? other : Math.min(1, set.models.length - 1);
      fill(byId('event-first'), models(set), first);
      fill(byId('event-second'), models(set), second);
    };
    fill(byId('event-data'), sets.map((s, i) => [i, s.name]), 0);
    choose();
    byId('drilldown').addEventListener('change', (event) => {
      if (event.target.id === 'event-data') choose();
      listEvents(sets);
    });
    byId('drilldown').hidden = false;
    listEvents(sets);
  }

  /* ---- tables ---- */

  /* The number of a cell: what comes first in "0.2456±0.0026", "[0.05, 0.08]", "1,486". */
  function numberOf(cell) {
    const found = /[-−+]?[\d,]*\.?\d+/.exec(cell.textContent);
    return found ? Number(found[0].replaceAll(',', '').replace('−', '-')) : NaN;
  }

  /* Sorts the rows of every data set by a column; cells without a number stay last. */
  function sortBy(table, column, down) {
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains('set'));
      const words = rows.every((row) => Number.isNaN(numberOf(row.cells[column])));
      rows.sort((a, b) => {
        if (words || !column) {
          const order = a.cells[column].textContent.localeCompare(b.cells[column].textContent);
          return down ? -order : order;
        }
        const x = numberOf(a.cells[column]), y = numberOf(b.cells[column]);
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return down ? y - x : x - y;
      });
      body.append(...rows);
    }
  }

  /* Heads of columns in the order of cells, with or without groups above them. */
  function columnHeads(table) {
    const [first, second] = table.tHead.rows, heads = [], lower = second ? [...second.cells] : [];
    for (const head of first.cells)
      if (head.colSpan === 1 && !head.classList.contains('group')) heads.push(head);
      else heads.push(...lower.splice(0, head.colSpan));
    return heads;
  }

  function makeSortable(table) {
    const heads = columnHeads(table);
    const longest = Math.max(...Array.from(table.tBodies,
      (body) => [...body.rows].filter((row) => !row.classList.contains('set')).length));
    if (longest > 1) heads.forEach((head, column) => {
      head.setAttribute('aria-sort', 'none');
      head.tabIndex = 0;
      const sort = () => {
        const down = head.getAttribute('aria-sort') === (column ? 'none' : 'ascending') ||
          (column > 0 && head.getAttribute('aria-sort') === 'ascending');
        for (const other of heads) other.setAttribute('aria-sort', 'none');
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        sortBy(table, column, down);
      };
      head.addEventListener('click', sort);
      head.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        sort();
      });
    });
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // not allowed here: use the old way
      const area = make('textarea', {class: 'unseen'});
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
  }

  function startTables() {
    for (const figure of document.querySelectorAll('figure.table')) {
      makeSortable(figure.querySelector('table'));
      const line = make('div', {class: 'copies'}, 'Copy as');
      for (let next = figure.nextElementSibling; next?.dataset.copy; next = next.nextElementSibling) {
        const button = make('button', {type: 'button'}, next.dataset.copy);
        const text = next.content.textContent;
        button.addEventListener('click', async () => {
          await copy(text);
          button.textContent = 'copied';
          setTimeout(() => { button.textContent = next.dataset.copy; }, 1200);
        });
        line.append(button);
      }
      if (line.children.length) figure.append(line);
    }
  }

  /* ---- start ---- */

  function explain(text) {
    byId('explorer').before(make('p', {class: 'hint'}, text));
  }

  async function start() {
    startTables();
    const sets = study.data.filter((s) => s.columns);
    for (const set of study.data.filter((s) => !s.columns))
      explain(`${set.name} has too many events for a page (${count(set.events)}); ` +
        '“fullrank metrics” gives its numbers for any K.');
    if (!sets.length) return;
    if (typeof DecompressionStream === 'undefined') {
      explain('This browser is too old for the interactive parts; all tables are below.');
      return;
    }
    await Promise.all(sets.map(unpack));
    startExplorer(sets);
    startDrilldown(sets);
    document.documentElement.dataset.ready = 'yes';
  }

  start();
})();
