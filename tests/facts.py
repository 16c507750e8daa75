#!/usr/bin/env python3
"""The facts of a stream computed a second time, from docs/PROTOCOL.md alone, to check `data info`.

    facts.py make SEED FILE [shared] [loops]     a synthetic CSV and FILE.catalog, a list of ids
    facts.py check TOOL FILE [OPTION VALUE]...   compares with TOOL data info FILE --json OPTIONS
    facts.py published TOOL FILE NAME            compares with the table of PROTOCOL 13

Prints the differences, one per line; the exit code is 1 if there are any. Uses only the standard
library. In short windows every history is rebuilt from its definition; long windows use growing
sets, because rebuilding would take too long.

Shared ids: the source itself is never a candidate (PROTOCOL 3), so it is not counted among seen,
unseen or available destinations either, and an event of a source with itself is not covered.
"""
import csv
import gzip
import hashlib
import json
import math
import random
import struct
import subprocess
import sys

LITERAL = 1500  # events of a window up to which every history is rebuilt
ENOUGH = 20  # negatives of an eligible event (PROTOCOL 8, 9)

# PROTOCOL 13; q1 and beta* are rounded there.
PUBLISHED = {
    "wikipedia": {
        "events": 157474, "catalog.size": 822, "coverage.events": 4852, "coverage.share": 0.987,
        "repeated": 4171, "new": 681, "time_available.ranked": 4897,
        "window.events": 32768, "window.train": 27852, "window.test": 4916,
        "diagnostic_window.events": 131072, "diagnostic_window.catalog_size": 982,
        "minimal.eligible": 971, "minimal.repeated": 698, "minimal.p1": 0.719,
        "minimal.q1": 0.0931, "minimal.beta_star": 3.2155,
        "membership.repeated": 698, "membership.new": 273,
        "membership.unavailable": 0},
    "mooc": {
        "events": 411749, "catalog.size": 97, "coverage.events": 4916, "coverage.share": 1.0,
        "repeated": 2877, "new": 2039, "time_available.ranked": 4916,
        "window.events": 32768, "window.train": 27852, "window.test": 4916,
        "diagnostic_window.events": 131072, "diagnostic_window.catalog_size": 97,
        "minimal.eligible": 10195, "minimal.repeated": 6184, "minimal.p1": 0.607,
        "minimal.q1": 0.3449, "minimal.beta_star": 1.0743,
        "membership.repeated": 6106, "membership.new": 3981,
        "membership.unavailable": 0},
}
ROUNDED = {"coverage.share": 3, "minimal.p1": 3, "minimal.q1": 4, "minimal.beta_star": 4}


def read_events(path):
    """(source, destination, time) by time, ties in file order; and the number of features."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", newline="") as file:
        rows = csv.reader(file)
        header, width, events = next(rows), 0, []
        for row in rows:
            events.append((int(row[0]), int(row[1]), float(row[2])))
            width = len(row) - (4 if header[3:4] == ["state_label"] else 3)
    events.sort(key=lambda event: event[2])
    return events, width


class Window:
    """The last `size` events, their split, and the history before each test event."""

    def __init__(self, events, size, share, strict):
        self.first = max(0, len(events) - size) if size else 0
        self.events = events[self.first:]
        self.train = math.floor(float(share) * len(self.events))  # in double, as everyone computes it
        self.strict = strict

    def cut(self, i):
        """How many events are before event i (PROTOCOL 2)."""
        if self.strict:
            time = self.events[i][2]
            while i and self.events[i - 1][2] == time:
                i -= 1
        return i

    def tests(self):
        """(u, v, events of u before, destinations of u before, all destinations before)."""
        if len(self.events) <= LITERAL:
            for i in range(self.train, len(self.events)):
                u, v, _ = self.events[i]
                past = self.events[:self.cut(i)]
                own = [e[1] for e in past if e[0] == u]
                yield u, v, len(own), set(own), {e[1] for e in past}
            return
        count, own, available, done = {}, {}, set(), 0
        for i in range(self.train, len(self.events)):
            u, v, _ = self.events[i]
            for a, b, _ in self.events[done:self.cut(i)]:
                count[a] = count.get(a, 0) + 1
                own.setdefault(a, set()).add(b)
                available.add(b)
            done = self.cut(i)
            yield u, v, count.get(u, 0), own.get(u, set()), available


def gini(counts):
    """Mean absolute difference over twice the mean."""
    n, total = len(counts), sum(counts)
    if n <= 300:
        return sum(abs(a - b) for a in counts for b in counts) / (2 * n * total)
    counts = sorted(counts)
    return sum((2 * k - n + 1) * c for k, c in enumerate(counts)) / (n * total)


def logit(p):
    return math.log(p / (1 - p))


def mean(values):
    return math.fsum(values) / len(values) if values else None


def catalog_of(window, listed):
    return set(listed) if listed else {e[1] for e in window.events[:window.train]}


def ranking_facts(window, kind, listed, shared):
    catalog = catalog_of(window, listed)
    covered = repeated = ranked = repeated_all = 0
    sizes, lengths = [], []
    for u, v, length, own, available in window.tests():
        excluded = {u} if shared else set()
        ranked_here = v in available and v not in excluded
        candidates = available if kind == "time" else catalog
        if ranked_here:
            ranked += 1
            sizes.append(len(available) - len(available & excluded))
        if v in candidates and v not in excluded:
            covered += 1
            repeated += v in own
        repeated_all += v in own
        lengths.append(length)
    test = len(window.events) - window.train
    times = [e[2] for e in window.events]
    sources = {e[0] for e in window.events}
    popularity = {}
    for _, v, _ in window.events:
        popularity[v] = popularity.get(v, 0) + 1
    digest = hashlib.sha256(b"".join(struct.pack("<q", v) for v in sorted(catalog))).hexdigest()
    occurrences = {}
    for t in times:
        occurrences[t] = occurrences.get(t, 0) + 1
    return {
        "split": None, "window.events": len(window.events), "window.train": window.train, "window.val": 0, "window.test": test,
        "window.first_row": window.first, "window.sources": len(sources),
        "window.destinations": len(popularity),
        "catalog.size": len(catalog), "catalog.sha256": digest,
        "coverage.events": covered, "coverage.share": covered / test,
        "repeated": repeated, "new": covered - repeated,
        "tied_times": sum(n for n in occurrences.values() if n > 1),
        "time_available.ranked": ranked, "time_available.mean_size": mean(sizes),
        "shape.test_repeat_share": repeated_all / test,
        "shape.destinations_per_source": len({e[:2] for e in window.events}) / len(sources),
        "shape.popularity_gini": gini(list(popularity.values())),
        "shape.source_history_mean": mean(lengths)}


def diagnostic_facts(window, kind, listed, shared):
    catalog = catalog_of(window, listed)
    eligible = repeated = table_repeated = table_new = table_unavailable = 0
    shares = []
    for u, v, _, own, available in window.tests():
        excluded = {v, u} if shared else {v}
        seen = own - excluded
        if len(seen) < ENOUGH:
            continue
        eligible += 1
        repeated += v in own
        negatives = (available if kind == "time" else catalog) - excluded
        shares.append(len(seen & negatives) / len(negatives) if negatives else 0.0)
        if len(available - own - excluded) >= ENOUGH:
            if v not in available or (shared and u == v):
                table_unavailable += 1  # the positive is no candidate of its own event
            else:
                table_repeated += v in own
                table_new += v not in own
    p1, q1 = (repeated / eligible, mean(shares)) if eligible else (None, None)
    defined = eligible and 0 < p1 < 1 and 0 < q1 < 1
    return {
        "diagnostic_window.events": len(window.events),
        "diagnostic_window.catalog_size": len(catalog),
        "minimal.eligible": eligible, "minimal.repeated": repeated,
        "minimal.p1": p1, "minimal.q1": q1,
        "minimal.beta_star": logit(p1) - logit(q1) if defined else None,
        "membership.repeated": table_repeated, "membership.new": table_new,
        "membership.unavailable": table_unavailable}


def all_facts(path, options):
    events, width = read_events(path)
    share, kind = options.get("--train-share", "0.85"), options.get("--catalog", "fixed")
    strict, shared = options.get("--order") == "strict", "--shared-ids" in options
    listed = None
    if kind not in ("fixed", "time"):
        with open(kind) as file:
            listed = [int(line) for line in file if line.strip() and not line.startswith("#")]
    facts = {
        "events": len(events), "sources": len({e[0] for e in events}),
        "destinations": len({e[1] for e in events}), "feature_width": width,
        "first_time": events[0][2], "last_time": events[-1][2], "shared_ids": shared, "ids": "numbers",
        "overlapping_ids": len({e[0] for e in events} & {e[1] for e in events}),
        "self_loops": sum(e[0] == e[1] for e in events),
        "order": "strict" if strict else "stream", "catalog.kind": kind}
    if listed is not None:
        facts.update({"catalog.kind": "file", "catalog.file": kind})
    size = int(options.get("--window", 32768))
    facts.update(ranking_facts(Window(events, size, share, strict), kind, listed, shared))
    size = int(options.get("--diagnostic-window", 131072))
    facts.update(diagnostic_facts(Window(events, size, share, strict), kind, listed, shared))
    return facts


def flat(tree, prefix=""):
    out = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            out.update(flat(value, prefix + key + "."))
        else:
            out[prefix + key] = value
    return out


def tool_facts(tool, path, options):
    command = [tool, "data", "info", path, "--json", "--quiet"]
    for key, value in options.items():
        command += [key] if value == "yes" else [key, value]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = flat(json.loads(done.stdout))
    # of the file and the columns, and whether they were checked: import.sh tests these
    del found["name"], found["sha256"], found["data_checked"]
    return found


def same(a, b):
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-11, abs_tol=1e-12)
    return a == b


def check(tool, path, options):
    found, expected = tool_facts(tool, path, options), all_facts(path, options)
    bad = [key for key in sorted(set(found) | set(expected))
           if key not in found or key not in expected or not same(expected[key], found[key])]
    for key in bad:
        print("%s: found %s, expected %s" % (key, found.get(key, "nothing"),
                                             expected.get(key, "nothing")))
    return bool(bad)


def published(tool, path, name):
    found, bad = tool_facts(tool, path, {}), False
    for key, value in PUBLISHED[name].items():
        seen = round(found[key], ROUNDED[key]) if key in ROUNDED else found[key]
        if seen != value:
            print("%s: found %s, expected %s" % (key, found[key], value))
            bad = True
    return bad


def make(seed, path, kinds):
    """Few sources and many destinations, so that histories reach 20; half of all events repeat."""
    draw = random.Random(seed)
    shared, loops = "shared" in kinds, "loops" in kinds
    gap, count = draw.choice([1, 3, 1000003]), draw.randrange(60, 140)
    destinations = [7 + gap * k for k in range(count)]
    sources = destinations[::12] if shared else [5 * k for k in range(draw.randrange(4, 12))]
    met, time, rows = {}, draw.choice([0.0, -50.5, 1.6e9]), []
    # later destinations come late, so that some events are not covered
    for n in range(draw.randrange(700, 1400)):
        u = draw.choice(sources)
        if u in met and draw.random() < 0.5:
            v = draw.choice(met[u])
        else:
            v = destinations[min(count - 1, int(draw.random() ** 2 * (30 + n / 9)))]
        if loops and draw.random() < 0.05:
            v = u
        if shared and v == u and not loops:
            v = destinations[1]
        met.setdefault(u, []).append(v)
        time += draw.choice([0, 0, 0.25, 1, 3.5])
        rows.append("%d,%d,%r,%d" % (u, v, time, n % 3))
    if draw.random() < 0.5:  # some rows out of order
        for _ in range(30):
            i, j = draw.randrange(len(rows)), draw.randrange(len(rows))
            rows[i], rows[j] = rows[j], rows[i]
    with open(path, "w") as file:
        file.write("\n".join(["source,destination,time,f1"] + rows) + "\n")
    listed = draw.sample(destinations, count // 2) + [3, 10 ** 15]
    draw.shuffle(listed)
    with open(path + ".catalog", "w") as file:
        file.write("# candidates\n" + "\n".join(map(str, listed)) + "\n\n")
    return False


def main(arguments):
    if arguments[:1] == ["make"] and len(arguments) >= 3:
        return make(int(arguments[1]), arguments[2], arguments[3:])
    if arguments[:1] == ["check"] and len(arguments) >= 3 and len(arguments) % 2:
        return check(arguments[1], arguments[2], dict(zip(arguments[3::2], arguments[4::2])))
    if arguments[:1] == ["published"] and len(arguments) == 4:
        return published(*arguments[1:])
    sys.exit(__doc__)


sys.exit(main(sys.argv[1:]))
