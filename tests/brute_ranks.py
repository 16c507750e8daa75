#!/usr/bin/env python3
"""Ranks small random streams with the tool and by a plain computation, and compares every field of every record.

    brute_ranks.py FULLRANK [--runs N] [--seed S]     prints TAP; N rank commands (default 60)

Nothing is shared with src/: events are lists, "before" is a loop over them, a rank is a count over the
candidates, and each baseline is written from its definition (`fullrank baselines`). NumPy only reads and
writes .npy. Streams have tied times, tied scores, subnormal times, scores and features, ids up to 2^63-1, rows
out of order, shared ids with loops; all catalogs, orders, oov rules and --met occur. On small catalogs
MRR, Hits and expected-K are compared with an enumeration of all subsets.

Sums of powers of 1/2 (decayed-frequency, recent-popularity) and quantiles of times (edgebank) are computed
exactly here. If two of them are so close that float64 cannot distinguish them, the event's counts are skipped;
the last line says how many events there were.
"""

import argparse
import decimal
import fractions
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

decimal.getcontext().prec = 60
Fraction = fractions.Fraction
BASELINES = ["recency", "frequency", "decayed-frequency", "edgebank", "membership", "markov", "popularity",
             "recent-popularity", "random"]
SPECIAL = [0.0, -0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1.5, 1e300, -1e300, -5e-324, 1e-45, 3e-39]


class Unclear(Exception):
    """Raised if float64 cannot decide a comparison."""


# ---- streams ----

def make_stream(r, path):
    count = r.randint(8, 60)
    shared = r.random() < 0.3
    top = r.choice([0, 0, 2**63 - 40])
    width = r.choice([3, 8, 30])
    sources = [top + k for k in r.sample(range(width + 5), r.randint(1, min(6, width)))]
    destinations = [top + k for k in r.sample(range(width + 5), r.randint(2, width))]
    kind = r.choice(["plain", "tied", "subnormal", "wild", "one"])
    times = []
    now = r.choice([0.0, -50.0, 1e9])
    for _ in range(count):
        if kind == "plain":
            now += r.random() * 10
        elif kind == "tied":
            now += r.choice([0, 0, 1])
        elif kind == "subnormal":
            now = r.randint(0, 30) * 5e-324
        elif kind == "wild":
            now = r.choice(SPECIAL)
        times.append(now)
    rows = [(r.choice(sources), r.choice(destinations), t) for t in times]
    if r.random() < 0.4:  # sources that come back to what they have met
        rows = [(u, v if r.random() < 0.5 else rows[r.randrange(k + 1)][1], t) for k, (u, v, t) in enumerate(rows)]
    if r.random() < 0.7:
        rows.sort(key=lambda row: row[2])
    features = [[r.choice(SPECIAL[:5] + [1e-40, 7.25]) for _ in range(2)] for _ in rows] if r.random() < 0.3 else None
    with open(path + ".csv", "w") as file:
        file.write("source,destination,time" + (",f1,f2" if features else "") + "\n")
        for k, (u, v, t) in enumerate(rows):
            file.write(",".join([str(u), str(v), repr(t)] + [repr(f) for f in (features[k] if features else [])]) + "\n")
    order = sorted(range(count), key=lambda k: rows[k][2])  # stable
    return [rows[k] for k in order], [features[k] for k in order] if features else None, shared


def parts(events, s):
    """How many events are for training and for validation (PROTOCOL 14)."""
    both = s["share"] + s["val"]
    if s["split"] == "quantile":
        first, second = np.quantile([t for _, _, t in events], [s["share"], both])
        train, end = sum(t <= first for _, _, t in events), sum(t <= second for _, _, t in events)
    else:
        train, end = math.floor(s["share"] * len(events)), math.floor(both * len(events))
    return train, end - train


class Window:
    """What a protocol sees: events (source, destination, time) with numbers from 0."""

    def __init__(self, rows, shared, s, ids):
        size = s["size"] or len(rows)
        self.first = max(0, len(rows) - size)
        self.events = rows[self.first:]
        self.train, self.val = parts(self.events, s)
        self.ranked = range(self.train, self.train + self.val) if s["part"] == "val" else \
            range(self.train + self.val, len(self.events))
        self.order, self.filter, self.shared = s["order"], s["filter"], shared
        self.kind = s["catalog"]
        until = {"train+val": self.train + self.val, "all": len(self.events)}.get(self.kind, self.train)
        everything = sorted(v for _, v, _ in rows)
        listed = set(ids) if self.kind == "file" else set()
        if self.kind == "range":
            listed = set(range(everything[0], everything[-1] + 1))
        self.fixed = listed or {v for _, v, _ in self.events[:until]}
        self.universe = sorted({v for _, v, _ in self.events} | listed)

    def past(self, i):
        """The numbers of the events before event i."""
        if self.order == "strict":
            return [j for j in range(i) if self.events[j][2] < self.events[i][2]]
        if self.order == "stream" or i < self.train:
            return range(i)
        part = self.train if i < self.train + self.val else self.train + self.val
        batch = int(self.order.split(":")[1])
        return range(part + (i - part) // batch * batch)

    def left_out(self, i):
        """What is never a candidate of event i: its source, and what the filter takes out."""
        u, v, t = self.events[i]
        rivals = {b for a, b, at in (self.events[j] for j in self.ranked) if (a, at) == (u, t)} - {v}
        return ({u} if self.shared else set()) | (rivals if self.filter == "same-time" else set())

    def filtered(self, i):
        before = {self.events[j][1] for j in self.past(i)} if self.kind == "time" else self.fixed
        return len(before & self.left_out(i) - ({self.events[i][0]} if self.shared else set()))

    def available(self, i):
        return {self.events[j][1] for j in self.past(i)} - self.left_out(i)

    def candidates(self, i):
        return self.available(i) if self.kind == "time" else self.fixed - self.left_out(i)


# ---- baselines: a key per destination, more is better ----

def last_positions(w, past):
    return {w.events[j][1]: j for j in past}


def own_first(w, i, key):
    """Own destinations by `key`, then all others by their last position, then those never seen."""
    u, past = w.events[i][0], w.past(i)
    last = last_positions(w, past)
    own = {}
    for j in past:
        if w.events[j][0] == u:
            own.setdefault(w.events[j][1], []).append(j)
    return {v: (2, key(own[v])) if v in own else (1, last[v]) if v in last else (0, 0) for v in w.universe}


class Decayed:
    """A sum of 2^(-age / half-life); comparing sums that are too close raises Unclear."""

    def __init__(self, times, now, half):
        self.times = sorted(times)
        self.sum = sum(decimal.Decimal(2) ** (-(decimal.Decimal(now) - decimal.Decimal(t)) / half) for t in times)

    def __eq__(self, other):
        if self.times == other.times:
            return True
        if abs(self.sum - other.sum) <= max(self.sum, other.sum) * decimal.Decimal("1e-7"):
            raise Unclear
        return False

    def __gt__(self, other):
        return not self == other and self.sum > other.sum


def half_life(w, given):
    start = decimal.Decimal(w.events[0][2])
    whole, trained = decimal.Decimal(w.events[-1][2]) - start, decimal.Decimal(w.events[w.train - 1][2]) - start
    half = decimal.Decimal(given) if given else trained / 20
    if half < decimal.Decimal("1e-290") or whole / half > 10**7:
        raise Unclear  # the half-life is almost 0, or sums are too small to compare
    return half


def recency(w, i, options):
    return own_first(w, i, lambda met: met[-1])


def frequency(w, i, options):
    return own_first(w, i, lambda met: (len(met), met[-1]))


def decayed_frequency(w, i, options):
    half = half_life(w, options.get("half-life", 0))
    now = w.events[i][2]
    return own_first(w, i, lambda met: Decayed([w.events[j][2] for j in met], now, half))


def recent_popularity(w, i, options):
    half = half_life(w, options.get("half-life", 0))
    met = {}
    for j in w.past(i):
        met.setdefault(w.events[j][1], []).append(w.events[j][2])
    now = w.events[i][2]
    return {v: (1, Decayed(met[v], now, half)) if v in met else (0, 0) for v in w.universe}


def popularity(w, i, options):
    count = dict.fromkeys(w.universe, 0)
    for j in w.past(i):
        count[w.events[j][1]] += 1
    return count


def markov(w, i, options):
    u, count, follow, last = w.events[i][0], popularity(w, i, options), {}, {}
    for j in w.past(i):
        a, b, _ = w.events[j]
        if a in last:
            follow[last[a], b] = follow.get((last[a], b), 0) + 1
        last[a] = b
    return {v: (follow.get((last[u], v), 0) if u in last else 0, count[v]) for v in w.universe}


def membership(w, i, options):
    met = {w.events[j][1] for j in w.past(i) if w.events[j][0] == w.events[i][0]}
    return {v: int(v in met) for v in w.universe}


def at_or_after(time, limit, rounded, size):
    """True if time >= limit. float64 has `rounded` for `limit`, computed from numbers of `size`; too close is Unclear."""
    doubt = size * Fraction(1, 10**9) + Fraction(1e-320)
    if rounded != limit and abs(Fraction(time) - limit) <= doubt:
        raise Unclear
    return Fraction(time) >= limit


def edgebank(w, i, options):
    memory, share = options.get("memory", "unlimited"), Fraction(options.get("share", 0.15))
    past = list(w.past(i))
    met = {}
    for j in past:
        met.setdefault(w.events[j][:2], []).append(w.events[j][2])
    times = [Fraction(w.events[j][2]) for j in past]
    limit = rounded = size = Fraction(0)
    if past and memory == "window":
        place = (len(past) - 1) * (1 - share)
        below = math.floor(place)
        if 0 < abs(place - round(place)) < Fraction(1, 10**9):
            raise Unclear
        above = min(below + 1, len(past) - 1)
        limit = times[below] + (times[above] - times[below]) * (place - below)
        rounded = limit if times[below] == times[above] or place == below else math.inf
        size = max(abs(times[0]), abs(times[-1]))
    if past and memory == "duration":
        first, last = w.events[0][2], w.events[w.train - 1][2]
        limit = times[-1] - share * (Fraction(last) - Fraction(first))
        rounded = w.events[past[-1]][2] - float(share) * (last - first)
        size = max(abs(times[-1]), abs(Fraction(last) - Fraction(first)))
    if past and memory == "interval":  # a pair that met once has an interval of 0
        means = [(Fraction(at[-1]) - Fraction(at[0])) / (len(at) - 1) for at in met.values() if len(at) > 1]
        limit = times[-1] - sum(means, Fraction(0)) / len(met)
        rounded = limit if not any(means) else math.inf
        size = max(abs(times[0]), abs(times[-1])) * len(past)

    def remembered(pair):
        if pair not in met:
            return False
        if memory == "threshold":
            return Fraction(len(met[pair])) >= Fraction(len(past), len(met))
        return memory == "unlimited" or at_or_after(max(met[pair]), limit, rounded, size)

    return {v: int(remembered((w.events[i][0], v))) for v in w.universe}


def philox(counter, key):
    """Philox 4x32-10 of Salmon et al. (2011)."""
    a, b, c, d = counter
    k, l = key
    for _ in range(10):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (y >> 32) ^ b ^ k, y & 0xFFFFFFFF, (x >> 32) ^ d ^ l, x & 0xFFFFFFFF
        k, l = (k + 0x9E3779B9) & 0xFFFFFFFF, (l + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def drawn(w, i, options):
    seed, purpose = options["seed"], 3
    scores = {}
    for k, v in enumerate(w.universe):
        block = philox((k // 4, i, 0, purpose << 24), (seed & 0xFFFFFFFF, seed >> 32))
        scores[v] = (block[k % 4] >> 8) * 2.0**-24
    return scores


SCORERS = {"recency": recency, "frequency": frequency, "decayed-frequency": decayed_frequency, "edgebank": edgebank,
           "membership": membership, "markov": markov, "popularity": popularity,
           "recent-popularity": recent_popularity, "random": drawn}
EXACT_SCORE = {"edgebank", "membership", "popularity", "random", "scores"}


# ---- records ----

def compare(score, v, positive):
    return (1, 0) if score[v] > score[positive] else (0, 1) if score[v] == score[positive] else (0, 0)


def count(score, candidates, positive):
    above = tied = 0
    for v in candidates:
        a, b = compare(score, v, positive)
        above, tied = above + a, tied + b
    return above, tied


def ratio(part, whole):
    return part / whole if whole else math.nan


def make_record(w, i, scorer, name, options, settings, catalog_only):
    """Every field of the record of event i; counts that float64 cannot decide are None."""
    u, v, t = w.events[i]
    past = w.past(i)
    pair = [j for j in past if w.events[j][:2] == (u, v)]
    met = {w.events[j][1] for j in past if w.events[j][0] == u}
    trained = {b for a, b, _ in w.events[:w.train] if a == u}
    nan = math.nan
    record = dict(event=w.first + i, source=u, destination=v, time=t, covered=0, repeated=int(bool(pair)), n=-1, above=-1,
                  tied=-1, seen_n=-1, seen_above=-1, seen_tied=-1, pop_above=nan, pop_tied=nan, pop_self=nan, avail_n=-1,
                  avail_above=-1, avail_tied=-1, score=nan, pair_count=len(pair),
                  source_degree=sum(w.events[j][0] == u for j in past),
                  destination_degree=sum(w.events[j][1] == v for j in past),
                  gap=t - w.events[pair[-1]][2] if pair else nan, filtered=-1, train_n=-1, train_above=-1, train_tied=-1,
                  tied_before=-1)
    candidates, available = w.candidates(i), w.available(i)
    covered, known = v in candidates, v in available and not catalog_only
    if not (covered or known) or len(met - {v}) < settings["met"]:
        return record
    try:
        score = scorer(w, i, options)
        record["score"] = score[v] if name in EXACT_SCORE else None
        if known:
            record["avail_above"], record["avail_tied"] = count(score, available - {v}, v)
            record["avail_n"] = len(available)
        if not covered:
            return record
        others = candidates - {v}
        record["covered"], record["n"] = 1, len(candidates)
        record["filtered"] = w.filtered(i)
        record["above"], record["tied"] = count(score, others, v)
        record["tied_before"] = sum(compare(score, x, v)[1] for x in others if str(x) > str(v))  # as trec_eval
        seen = met & others
        record["seen_n"] = len(seen)
        record["seen_above"], record["seen_tied"] = count(score, seen, v)
        record["train_n"] = len(trained & others)
        record["train_above"], record["train_tied"] = count(score, trained & others, v)
        times = {x: 0 for x in candidates}
        for a, b, _ in w.events[:w.train]:
            if b in times:
                times[b] += 1
        mass = {x: float(c) ** settings["power"] if c else 0.0 for x, c in times.items()}
        total = math.fsum(mass.values())
        record["pop_self"] = ratio(mass[v], total)
        record["pop_above"] = ratio(math.fsum(mass[x] for x in others if score[x] > score[v]), total)
        record["pop_tied"] = ratio(math.fsum(mass[x] for x in others if score[x] == score[v]), total)
    except Unclear:
        for field in record:
            if "above" in field or "tied" in field or field == "score":
                record[field] = None
        if known:
            record["avail_n"] = len(available)
        if covered:
            record["covered"], record["n"] = 1, len(candidates)
            record["filtered"], record["train_n"] = w.filtered(i), len(trained & (candidates - {v}))
            record["seen_n"] = len(met & (candidates - {v}))
            record["pop_self"] = None
    return record


def same(found, expected, power):
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    if isinstance(expected, float) and power != 1:
        return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-15)
    return found == expected


# ---- score files ----

def make_scores(r, w, path, catalog_only):
    """Random scores for what has to be scored, in any order; returns scorer, catalog_only and `bad`."""
    test = w.ranked
    rows = [i for i in test if w.events[i][1] in w.candidates(i)]
    columns = sorted(w.fixed) if w.kind != "time" else list(w.universe)
    if not catalog_only:
        rows = sorted(set(rows) | {i for i in test if w.events[i][1] in w.available(i)})
        columns = sorted(set(columns) | {v for i in test for v in w.available(i)})
    if not rows or not columns:
        return None
    dtype = r.choice(["f2", "f4", "f8"])
    pool = {"f2": [0.0, -0.0, 6e-8, 1.0, -1.0, 65504.0, 0.25], "f4": [0.0, -0.0, 1e-45, -1e-45, 1e-40, 1.0, 3e38, -3e38],
            "f8": [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1.0, 1.0 + 2**-52, 1e300, -1e300]}[dtype]
    listed = r.random() < 0.6 or not catalog_only or w.kind == "time"
    if listed:
        r.shuffle(rows)
        r.shuffle(columns)
    continuous = r.random() < 0.4
    values = np.array([[r.gauss(0, 1) if continuous else r.choice(pool) for _ in columns] for _ in rows], dtype)
    bad = r.random() < 0.08
    if bad:  # every value of a column of the file may be read: one that is no number is refused
        values[r.randrange(len(rows)), r.randrange(len(columns))] = r.choice([math.inf, -math.inf, math.nan])
    np.save(path + ".npy", values)
    for end in (".json", ".events.npy", ".destinations.npy"):
        if os.path.exists(path + end):
            os.remove(path + end)
    numbers = [w.first + i for i in rows]
    if listed and r.random() < 0.5:
        json.dump({"events": numbers, "destinations": columns}, open(path + ".json", "w"))
    elif listed:
        np.save(path + ".events.npy", np.array(numbers, "i8"))
        np.save(path + ".destinations.npy", np.array(columns, "i8"))
    table = {i: dict(zip(columns, map(float, values[k]))) for k, i in enumerate(rows)}
    whole = all(i in table for i in test if w.events[i][1] in w.available(i)) and \
        {w.events[j][1] for j in w.past(test[-1])} <= set(columns)
    exact = dtype != "f8" or all(float(np.float32(x)) == x for x in values.flat if abs(x) < 3e38 or x != x)
    return (lambda w, i, options: table[i]), not whole, bad, exact and dtype != "f8"


# ---- metrics by enumeration ----

def expected_rr(n, above, tied, k):
    """Mean of 1/(1 + h + g/2) over all subsets of k negatives."""
    negatives = [1.0] * above + [0.5] * tied + [0.0] * (n - 1 - above - tied)
    values = [1 / (1 + sum(draw)) for draw in itertools.combinations(negatives, k)]
    return math.fsum(values) / len(values)


def check_chance(found, ranks, sizes, near):
    """PyKEEN's adjusted metrics: under chance every rank of a catalog is equally likely."""
    count = len(ranks)
    if not count:
        return
    laws = [[1 / (j + 1) for j in range(n)] for n in sizes]
    chance = math.fsum(math.fsum(x) / len(x) for x in laws) / count
    variance = math.fsum(math.fsum((y - math.fsum(x) / len(x)) ** 2 for y in x) / len(x) for x in laws) / count**2
    mrr = math.fsum(1 / x for x in ranks) / count
    near("z-mrr", found["z_mrr"], (mrr - chance) / math.sqrt(variance) if variance else None)
    middle = math.fsum((n + 1) / 2 for n in sizes) / count
    near("amri", found["amri"], 1 - (math.fsum(ranks) / count - 1) / (middle - 1) if middle > 1 else None)
    for k in (1, 3, 10):
        hits, luck = (math.fsum(x) / count for x in ([x <= k for x in ranks], [min(k / n, 1) for n in sizes]))
        near(f"hits-adjusted@{k}", found["hits_adjusted"][str(k)], (hits - luck) / (1 - luck) if luck < 1 else None)


def check_metrics(tool, path, records, zero, fail):
    done = run([tool, "metrics", path, "--json", "--k", "1,2,3", "--hits", "1,3,10"])
    if done.returncode:
        return fail(f"metrics: {done.stderr}")
    found = json.loads(done.stdout)
    ranked = [r for r in records if r["covered"]]
    counted = len(records) if zero else len(ranked)

    def mean(values, of):
        return math.fsum(values) / of if of else None

    def near(what, got, want):
        if (got is None) != (want is None) or (want is not None and not math.isclose(got, want, rel_tol=1e-11, abs_tol=1e-13)):
            fail(f"metrics: {what} {got}, expected {want}")

    ranks = [1 + r["above"] + r["tied"] / 2 for r in ranked]
    near("mrr", found["mrr"], mean([1 / x for x in ranks], counted))
    for k in (1, 3, 10):
        near(f"hits@{k}", found["hits"][str(k)], mean([float(x <= k) for x in ranks], counted))
        near(f"ndcg@{k}", found["ndcg"][str(k)], mean([1 / math.log2(1 + x) * (x <= k) for x in ranks], counted))
    contested = [(x, r["n"]) for x, r in zip(ranks, ranked) if r["n"] > 1]
    near("auc", found["auc"], mean([1 - (x - 1) / (n - 1) for x, n in contested],
                                   len(contested) + counted - len(ranked)))
    check_chance(found, ranks, [r["n"] for r in ranked], near)
    rules = found["mrr_by_tie_rule"]
    near("optimistic", rules["optimistic"], mean([1 / (1 + r["above"]) for r in ranked], counted))
    near("pessimistic", rules["pessimistic"], mean([1 / (1 + r["above"] + r["tied"]) for r in ranked], counted))
    near("random", rules["random"], mean([math.fsum(1 / (1 + r["above"] + j) for j in range(r["tied"] + 1)) /
                                          (r["tied"] + 1) for r in ranked], counted))
    near("trec", rules["trec"], mean([1 / (1 + r["above"] + r["tied_before"]) for r in ranked], counted))
    for k in (1, 2, 3):
        drawable = [r for r in ranked if r["n"] > 1]
        if not drawable:
            continue
        values = [expected_rr(r["n"], r["above"], r["tied"], min(k, r["n"] - 1)) for r in drawable]
        of = len(drawable) + (len(records) - len(ranked) if zero else 0)
        near(f"expected-{k}", found["expected"][str(k)]["mrr"], mean(values, of))


# ---- one command ----

def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)


def draw_settings(r, rows):
    while True:
        s = dict(size=r.choice([0, 0, len(rows), r.randint(4, len(rows))]), split=r.choice(["share", "share", "quantile"]),
                 share=r.choice([0.85, 0.5, 0.3, r.uniform(0.1, 0.95)]), val=r.choice([0, 0, 0.15, r.uniform(0, 0.5)]),
                 part=r.choice(["test", "test", "val"]))
        taken = rows[-s["size"]:] if s["size"] else rows
        if s["share"] + s["val"] > 1:
            continue
        train, val = parts(taken, s)
        if train >= 1 and (val if s["part"] == "val" else len(taken) - train - val) >= 1:
            break
    return dict(s, order=r.choice(["stream", "strict", "batch:1", f"batch:{r.randint(2, 12)}"]),
                catalog=r.choice(["fixed", "time", "file", "train+val", "all", "range"]),
                filter=r.choice(["none", "none", "same-time"]), oov=r.choice(["exclude", "zero"]),
                met=r.choice([0, 0, 0, 1, 2]), power=r.choice([1, 1, 0, 0.75]), threads=r.choice([1, 3]))


def one_run(r, tool, folder, stream, tally, fail):
    rows, shared = stream
    s = draw_settings(r, rows)
    ids = []
    if s["catalog"] == "file":
        seen = sorted({v for _, v, _ in rows})
        ids = r.sample(seen, r.randint(1, len(seen)))
        ids += [x for x in {0, 7, 2**63 - 1, seen[0] + 1, rows[0][0]} if x not in seen and r.random() < 0.6]
        r.shuffle(ids)
        if r.random() < 0.5:
            np.save(folder + "/ids.npy", np.array(ids, "i8"))
        else:
            open(folder + "/ids.txt", "w").write("# ids\n" + "".join(f"{x}\n" for x in ids))
    file = folder + ("/ids.npy" if os.path.exists(folder + "/ids.npy") else "/ids.txt")
    w = Window(rows, shared, s, ids)
    name, options, bad, catalog_only, exact = r.choice(BASELINES + ["scores"] * 4), {}, False, False, True
    if name == "scores":
        made = make_scores(r, w, folder + "/scores", r.random() < 0.5)
        if not made:
            return
        scorer, catalog_only, bad, exact = made
        spec = "scores:" + folder + "/scores.npy"
    else:
        scorer = SCORERS[name]
        if name == "edgebank":
            options["memory"] = r.choice(["unlimited", "window", "duration", "threshold", "interval"])
            options["share"] = r.choice([0.15, 0.25, 0.5, 0.0, 1.0])
        if name in ("decayed-frequency", "recent-popularity"):
            options["half-life"] = r.choice([0, 0, 1.37, 3.5e-3, 1000.1])
        spec = "baseline:" + name + "".join(f",{k}={v}" for k, v in options.items())
    options["seed"] = r.choice([0, 7, 2**40 + 3])
    out = folder + "/ranks.npy"
    command = [tool, "rank", "--data", folder + "/data", "--scorer", spec, "-o", out, "--force", "--window", str(s["size"]),
               "--train-share", repr(s["share"]), "--val-share", repr(s["val"]), "--split", s["split"], "--part", s["part"],
               "--filter", s["filter"], "--order", s["order"], "--oov", s["oov"], "--met", str(s["met"]),
               "--popularity-power", str(s["power"]), "--seed", str(options["seed"]), "--threads", str(s["threads"]),
               "--shard", str(r.choice([1, 5, 64])), "--quiet", "--catalog", file if ids else s["catalog"]]
    where = " ".join(command[2:])
    done = run(command)
    if os.path.exists(folder + "/ids.npy"):
        os.remove(folder + "/ids.npy")
    if bad:
        tally["refused"] += 1
        if done.returncode != 1 or "expected a number" not in done.stderr:
            # A value that no record reads may be ignored only if its event is not ranked (--met).
            if s["met"] == 0:
                fail(f"a score that is no number: exit {done.returncode} {done.stderr.strip()}: {where}")
        return
    if done.returncode:
        return fail(f"exit {done.returncode}: {done.stderr.strip()}: {where}")
    found = np.load(out)
    records = [make_record(w, i, scorer, name if exact else "unknown", options, s, catalog_only)
               for i in w.ranked]
    if len(found) != len(records):
        return fail(f"{len(found)} records, expected {len(records)}: {where}")
    clear = True
    for got, want in zip(found, records):
        tally["records"] += 1
        for field, value in want.items():
            if value is None:
                if field == "above":
                    tally["unclear"] += 1
                    clear = False
                continue
            if not same(got[field].item(), value, s["power"] if field.startswith("pop") else 1):
                return fail(f"event {want['event']}: {field} is {got[field]}, expected {value}: {where}")
    if clear and w.train and len(w.universe) <= 12 and r.random() < 0.5:
        tally["metrics"] += 1
        check_metrics(tool, out, records, s["oov"] == "zero", lambda text: fail(f"{text}: {where}"))


def check_import(rows, features, folder, fail):
    data = folder + "/data/"
    source = np.load(data + "source_ids.npy")[np.load(data + "source.npy")]
    destination = np.load(data + "destination_ids.npy")[np.load(data + "destination.npy")]
    time = np.load(data + "time.npy")
    if [(int(u), int(v), float(t)) for u, v, t in zip(source, destination, time)] != rows:
        fail("columns are not the rows of the table")
    if features and not np.array_equal(np.load(data + "features.npy"), np.array(features, "f4")):
        fail("features are not those of the table")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given = parser.parse_args()
    tally = dict(records=0, unclear=0, metrics=0, refused=0, streams=0)
    failures, ran = [], 0
    with tempfile.TemporaryDirectory() as folder:
        while ran < given.runs and len(failures) < 10:
            stream = given.seed + tally["streams"]
            r = random.Random(stream)
            fail = lambda text: failures.append(f"--seed {stream}: {text}")
            rows, features, shared = make_stream(r, folder + "/events")
            tally["streams"] += 1
            done = run([tool_path(given.tool), "data", "import", folder + "/events.csv", "-o", folder + "/data", "--force",
                        "--quiet"] + (["--shared-ids"] if shared else []))
            if done.returncode:
                fail(f"import: {done.stderr}")
                continue
            check_import(rows, features, folder, fail)
            for _ in range(10):
                ran += 1
                one_run(r, tool_path(given.tool), folder, (rows, shared), tally, fail)
    name = f"{ran} runs from --seed {given.seed}: {tally}"
    print(f"{'not ok' if failures else 'ok'} 1 - {name}")
    for text in failures:
        print(f"#   {text}")
    print("1..1")
    sys.exit(bool(failures))


def tool_path(path):
    return os.path.abspath(path)


if __name__ == "__main__":
    main()
