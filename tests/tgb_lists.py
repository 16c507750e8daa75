#!/usr/bin/env python3
"""tgb_lists.py - compares our expectations of TGB's lists, and ranks against one of them, with the real py-tgb (prints TAP).

For each stream (random; Wikipedia and MOOC where they are) the test part is ranked with TGB's settings. TGB's own
NegativeEdgeGenerator then makes lists of both kinds with many seeds, and TGB's own Evaluator ranks the scores that
`rank --dump-scores` wrote.

- The mean over seeds lies within 4 standard errors of `metrics --sampler tgb-rnd-K,tgb-hist-K`.
- With the lists of one seed, through tools/negatives.py and `rank --negatives`, every rank is the Evaluator's. Its
  reciprocal ranks are float32, so the rank is read off them (2/RR is a whole number), and MRR is compared in double.

Times are those of the file, and the parts are computed here by numpy.quantile. With --events the generator
sees only some of the test events: all of a source and a time, or none, because what it does for an event depends only on these.
"""
import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile

import numpy as np
from tgb.linkproppred.evaluate import Evaluator
from tgb.linkproppred.negative_generator import NegativeEdgeGenerator

SETTINGS = ["--window", "0", "--split", "quantile", "--train-share", "0.7", "--val-share", "0.15", "--catalog", "range",
            "--filter", "same-time"]
SCORERS = ["baseline:edgebank", "baseline:recency"]  # almost all tied, and hardly any
STRATEGIES = {"rnd": "tgb-rnd", "hist_rnd": "tgb-hist"}
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
evaluator = Evaluator("tgbl-wiki")
tests = failures = 0


def result(good, name, detail=""):
    global tests, failures
    tests += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {tests} - {name}" + (f": {detail}" if detail else ""), flush=True)


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        print(f"Bail out! {' '.join(command)}: {done.stderr.strip()}")
        sys.exit(1)
    return done.stdout


class Column:
    """As much of a tensor as the generator asks for."""

    def __init__(self, values):
        self.values = values

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Data:
    def __init__(self, src, dst, t):
        self.src, self.dst, self.t = Column(src), Column(dst), Column(t)


# ---- streams ----

def random_stream(folder):
    """Ids with gaps, many events of one time, sources that begin late."""
    r = np.random.default_rng(11)
    n = 1500
    time = np.sort(r.integers(0, 400, n))
    source = r.integers(0, 5 + 25 * np.arange(n) // n)
    destination = 10 + 3 * (r.zipf(1.3, n) % 30)
    path = os.path.join(folder, "random.csv")
    np.savetxt(path, np.stack([source, destination, time], 1), "%d", ",", header="source,destination,time", comments="")
    return path, source, destination, time


def real_stream(folder, name, rows):
    path = os.path.join(os.environ.get("FULLRANK_DATA", os.path.join(ROOT, "..", "shared", "data")), name + ".csv.gz")
    if not os.path.exists(path):
        return None
    with gzip.open(path, "rt") as file:
        lines = [line.split(",", 4)[:3] for line in file][1:]
    lines = lines[:rows or len(lines)]
    table = np.array(lines, dtype=np.float64)
    path = os.path.join(folder, name + ".csv")
    with open(path, "w", encoding="ascii") as file:
        file.write("source,destination,time\n" + "".join(",".join(line) + "\n" for line in lines))
    return path, table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]


# ---- TGB ----

def lists_of(strategy, k, seed, stream, chosen, folder):
    """The generator's dict, and the events it was asked about as its ids."""
    generator = NegativeEdgeGenerator("made", stream["first"], stream["last"], k, strategy, seed,
                                      historical_data=stream["train"])
    test = Data(*(column[chosen] for column in stream["test"]))
    file = os.path.join(folder, "made_test_ns.pkl")
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        generator.generate_negative_samples(test, "test", folder)
    with open(file, "rb") as saved:
        lists = pickle.load(saved)
    return lists, file


def reciprocal_ranks(lists, stream, chosen, scores):
    out = np.empty(len(chosen))
    for place, e in enumerate(chosen):
        key = tuple(column[e] for column in stream["test"])
        row, ids = scores[e], lists[key].astype(np.int64)
        found = evaluator.eval({"y_pred_pos": row[[key[1] - stream["first"]]], "eval_metric": ["mrr"],
                                "y_pred_neg": row[ids - stream["first"]][None, :]})
        out[place] = found["mrr"]
    return out


# ---- one stream ----

def some_events(stream, wanted):
    """About as many, spread over the test part, with all events of the same source and time."""
    source, _, time = stream["test"]
    if not wanted or wanted >= len(source):
        return np.arange(len(source))
    groups = set((source[e], time[e]) for e in np.linspace(0, len(source) - 1, wanted).astype(int))
    return np.array([e for e in range(len(source)) if (source[e], time[e]) in groups])


def part_of(ranks, chosen, to):
    """Rank records of some events: a file that `metrics` reads."""
    np.save(to, np.load(ranks)[chosen])
    with open(ranks[:-4] + ".json", encoding="utf-8") as file:
        about = json.load(file)
    with open(to, "rb") as file:
        about["sha256"] = hashlib.sha256(file.read()).hexdigest()
    with open(to[:-4] + ".json", "w", encoding="utf-8") as file:
        json.dump(about, file)
    return to


def check_stream(fullrank, name, made, options, folder):
    path, source, destination, time = made
    offset = int(source.max()) + 1  # as TGB numbers them
    val_time, test_time = np.quantile(time, [0.7, 0.85])
    train, test = time <= val_time, time > test_time
    stream = {"first": int(destination.min()) + offset, "last": int(destination.max()) + offset,
              "train": Data(source[train], destination[train] + offset, time[train]),
              "test": (source[test], destination[test] + offset, time[test])}
    data = os.path.join(folder, name)
    call(fullrank, "data", "import", path, "-o", data)
    files = {}
    for s in SCORERS:
        base = os.path.join(folder, name + "-" + s.split(":")[1])
        call(fullrank, "rank", "--data", data, *SETTINGS, "--scorer", s, "-o", base + ".npy", "--dump-scores",
             base + "-scores.npy")
        files[s] = base + ".npy", np.load(base + "-scores.npy", mmap_mode="r")
    records = np.load(files[SCORERS[0]][0])
    result(np.array_equal(records["source"], source[test]) and np.array_equal(records["destination"], destination[test])
           and np.array_equal(records["time"], time[test]) and records["covered"].all(),
           f"{name}: the test part", f"{len(records)} events, {records['filtered'].sum()} candidates filtered")
    chosen = some_events(stream, options.events)
    for k in options.k:
        for strategy, sampler in STRATEGIES.items():
            expectation(fullrank, f"{name} {sampler}-{k}", (strategy, k, sampler), stream, chosen, files, options, folder)
            one_seed(fullrank, f"{name} {strategy} {k}", (strategy, k), stream, files, data, offset, folder)


def expectation(fullrank, title, how, stream, chosen, files, options, folder):
    strategy, k, sampler = how
    found = {s: [] for s in SCORERS}
    for seed in range(options.seeds):
        lists, file = lists_of(strategy, k, seed, stream, chosen, folder)
        os.unlink(file)
        for s in SCORERS:
            found[s].append(reciprocal_ranks(lists, stream, chosen, files[s][1]).mean())
    for s in SCORERS:
        part = part_of(files[s][0], chosen, os.path.join(folder, "part.npy"))
        ours = json.loads(call(fullrank, "metrics", part, "--sampler", f"{sampler}-{k}", "--json"))
        ours = ours["sampled"][sampler][str(k)]
        mean, error = np.mean(found[s]), np.std(found[s], ddof=1) / len(found[s]) ** 0.5
        away = abs(ours["mrr"] - mean)
        result(away <= 4 * error + 1e-7 and ours["events"] == len(chosen), f"{title}, {s}",
               f"expected {ours['mrr']:.6f}, mean of {options.seeds} seeds over {len(chosen)} events {mean:.6f}, "
               f"{away / error if error > 1e-9 else 0:.2f} standard errors of {error:.1e}")


def one_seed(fullrank, title, how, stream, files, data, offset, folder):
    everything = np.arange(len(stream["test"][0]))
    lists, file = lists_of(*how, 123, stream, everything, folder)
    negatives, out = os.path.join(folder, "negatives.npy"), os.path.join(folder, "against.npy")
    call(sys.executable, os.path.join(ROOT, "tools", "negatives.py"), files[SCORERS[0]][0], file, "-o", negatives,
         "--destination-offset", str(offset), "--force")
    os.unlink(file)
    for s in SCORERS:
        call(fullrank, "rank", "--data", data, *SETTINGS, "--scorer", s, "--negatives", negatives, "-o", out, "--force")
        ours = json.loads(call(fullrank, "metrics", out, "--json"))["mrr"]
        r = np.load(out)
        single = reciprocal_ranks(lists, stream, everything, files[s][1])
        rank = np.rint(2 / single) / 2
        same = np.array_equal(rank, 1 + r["above"] + r["tied"] / 2)
        result(same and abs(ours - (1 / rank).mean()) < 1e-12, f"{title}, one seed, {s}",
               f"MRR {ours:.12f}, theirs {(1 / rank).mean():.12f} ({single.mean():.9f} from float32), {len(r)} ranks")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("fullrank")
    p.add_argument("--seeds", type=int, default=200)
    p.add_argument("--rows", type=int, default=0, help="of the real streams; 0 = all")
    p.add_argument("--events", type=int, default=0, help="of the test part for expectations; 0 = all")
    p.add_argument("--k", type=lambda text: [int(k) for k in text.split(",")], default=[20, 100])
    p.add_argument("--streams", default="random,wikipedia,mooc")
    options = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.streams.split(","):
            made = random_stream(folder) if name == "random" else real_stream(folder, name, options.rows)
            if made:
                check_stream(os.path.abspath(options.fullrank), name, made, options, folder)
            else:
                print(f"# SKIP {name}: not in $FULLRANK_DATA or ../shared/data")
    print(f"1..{tests}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
