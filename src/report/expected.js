/* expected.js - the exact expectation of RR among sampled negatives (PROTOCOL 6), in a browser.
 *
 * The same way as src/eval/expected.c: neighbouring chances of a hypergeometric or binomial law
 * stand in a simple ratio, so a walk from the mode to both sides gives all of them without
 * factorials, and every term is positive: nothing cancels. Dividing by the sum makes them chances.
 */
'use strict';

const expectedRR = (() => {
  const NEGLIGIBLE = 1e-18; // of the weight at the mode; what is left out is far below 1e-12
  let above = new Float64Array(1024), tied = new Float64Array(1024);

  const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

  /* The law of the number of marked negatives among those drawn from `size`. */
  function makeLaw(size, marked, draws, replaced) {
    if (replaced) {
      const middle = Math.floor((draws + 1) * (marked / size));
      return {draws, marked, replaced, low: 0, high: draws, spare: 0,
        odds: marked / Math.max(0, size - marked), mode: clamp(middle, 0, draws)};
    }
    const taken = Math.min(draws, size), spare = size - marked - taken;
    const low = Math.max(0, -spare), high = Math.min(taken, marked);
    const middle = Math.floor((taken + 1) * (marked + 1) / (size + 2));
    return {draws: taken, marked, replaced, low, high, spare, odds: 0,
      mode: clamp(middle, low, high)};
  }

  /* chance(x + 1) / chance(x) */
  function ratio(l, x) {
    if (l.replaced) return (l.draws - x) * l.odds / (x + 1);
    return (l.draws - x) * (l.marked - x) / ((x + 1) * (l.spare + x + 1));
  }

  /* Weights of first..last at weight[x - l.low], and their sum; ends below `least`. */
  function walk(l, least, weight) {
    let first = l.mode, last = l.mode, sum = 1, here = 1;
    weight[l.mode - l.low] = 1;
    while (last < l.high && here >= least) {
      here *= ratio(l, last++);
      weight[last - l.low] = here;
      sum += here;
    }
    here = 1;
    while (first > l.low && here >= least) {
      here /= ratio(l, --first);
      weight[first - l.low] = here;
      sum += here;
    }
    return {first, last, sum};
  }

  const roomFor = (scratch, l) => l.high - l.low < scratch.length
    ? scratch : new Float64Array(2 * (l.high - l.low + 1));

  /* E[1 / (1 + h + g/2)] of a positive with `a` negatives above and `b` tied in a pool of `size`,
   * `draws` of which are drawn. */
  return function (size, a, b, draws, replaced) {
    const outer = makeLaw(size, a, draws, replaced);
    above = roomFor(above, outer);
    const h = walk(outer, NEGLIGIBLE, above);
    let mean = 0;
    if (b <= 0) {
      for (let x = h.first; x <= h.last; x++) mean += above[x - outer.low] / (1 + x);
      return mean / h.sum;
    }
    for (let x = h.first; x <= h.last; x++) {
      const here = above[x - outer.low];
      if (here === 0) continue;
      const inner = makeLaw(size - a, b, outer.draws - x, replaced);
      tied = roomFor(tied, inner);
      const g = walk(inner, NEGLIGIBLE / here, tied);
      let part = 0;
      for (let y = g.first; y <= g.last; y++) part += tied[y - inner.low] / (1 + x + y / 2);
      mean += here * part / g.sum;
    }
    return mean / h.sum;
  };
})();
