#!/usr/bin/env python3
"""Cost against events and destinations, measured and drawn.

    bench/scale.py measure BUILD DIR [--events N,...] [--destinations N,...] [--baselines NAME,...]
                   [--edgebank edgebank_predictor.py] >> points.csv
    bench/scale.py draw points.csv FIGURE.svg

`measure` makes heavy-tailed streams (bench/scale_stream.c) below DIR. Against events (with a million sources and
destinations): processor seconds and peak memory of the import, of opening the window of everything (`data info`) and of
ranking all its test events. Against destinations (200,000 events, 2,000 sources, catalog of all ids): microseconds of
processor time per ranked event, of baselines and of TGN, trained for one epoch on the last 32,768 events. What a run
costs before it ranks is taken off by a second run of few events. --edgebank is TGB's file of that name: its predictor
and py-tgb's Evaluator are timed on the same events, as TGB's own example calls them, against all destinations.
One thread throughout. Lines are "kind,name,x,seconds,megabytes"; one that fails is left out, with a note on stderr.
"""
import argparse
import csv
import importlib.util
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

MODELS = {"TGN (identity)": ["--embedding", "identity"], "TGN": []}


# ---- measuring ----

def put(*point):
    print(",".join("%.6g" % f if isinstance(f, float) else str(f) for f in point), flush=True)


def run(command, output=subprocess.DEVNULL):
    """Processor seconds and peak megabytes of one process; None if it failed."""
    child = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
    message = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        print("scale.py: %s: %s" % (" ".join(command), message.decode().strip()), file=sys.stderr)
        return None
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def make(tools, folder, events, sources, destinations):
    """An imported stream; the cost of its import."""
    table, data = folder + "/table.csv", folder + "/data"
    with open(table, "wb") as out:
        subprocess.run([tools + "/bench/scale_stream", str(events), str(sources), str(destinations)], stdout=out,
                       check=True)
    cost = run([tools + "/fullrank", "data", "import", table, "-o", data, "--force", "-q"])
    os.remove(table)
    return data, cost


def rank(tools, folder, data, scorer, sample, *more):
    return run([tools + "/fullrank", "rank", "--data", data, "--scorer", scorer, "--threads", "1", "--sample-events",
                str(sample), "-o", folder + "/ranks.npy", "--force", "-q", *more])


def against_events(tools, folder, events, baselines):
    data, cost = make(tools, folder, events, 1000000, 1000000)
    put("events", "import", events, *cost)
    cost = run([tools + "/fullrank", "data", "info", data, "--window", "0", "-q"])
    if cost:
        put("events", "open", events, *cost)
    for name in baselines:
        cost = rank(tools, folder, data, "baseline:" + name, 0, "--window", "0")
        if cost:
            put("events", name, events, *cost)


def per_event(tools, folder, data, scorer, few, many, *more):
    """Seconds per event: a run of many minus a run of few, the best of three each."""
    least = []
    for sample in (few, many):
        costs = [rank(tools, folder, data, scorer, sample, *more) for _ in range(3)]
        if None in costs:
            return None
        least.append(min(costs))
    return (least[1][0] - least[0][0]) / (many - few), least[1][1]


def against_destinations(tools, folder, destinations, baselines, edgebank):
    data, _ = make(tools, folder, 200000, 2000, destinations)
    for name in baselines:  # 16 events are always compared with score vectors: both runs have them
        cost = per_event(tools, folder, data, "baseline:" + name, 16, 30000, "--window", "0", "--catalog", "range")
        if cost:
            put("destinations", name, destinations, *cost)
    for name, options in MODELS.items():
        trained = run([tools + "/fullrank", "train", "--data", data, "--catalog", "range", "--model", "tgn", *options,
                       "--epochs", "1", "--threads", "1", "-o", folder + "/run", "--force", "-q"])
        many = max(20, min(1000, 20000000 // destinations))
        cost = trained and per_event(tools, folder, data, folder + "/run/model.safetensors", 1, many, "--catalog",
                                     "range")
        if cost:
            put("destinations", name, destinations, *cost)
    if edgebank and destinations <= 100000:
        told = subprocess.run([sys.executable, __file__, "tgb", data, str(destinations), edgebank],
                              stdout=subprocess.PIPE, text=True, check=True).stdout  # its memory is not ours
        put("destinations", "TGB: EdgeBank + Evaluator", destinations, float(told.split()[-1]), "")


def time_tgb(given):
    """Seconds per event of TGB's predictor and Evaluator against all destinations."""
    data, destinations = given.data, given.destinations
    import numpy as np
    from tgb.linkproppred.evaluate import Evaluator
    spec = importlib.util.spec_from_file_location("edgebank_predictor", given.edgebank)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    column = {name: np.load("%s/%s.npy" % (data, name)) for name in ("source", "destination", "time")}
    source, destination = column["source"], column["destination"]
    train, events = int(0.85 * len(source)), max(2, 200000 // destinations)
    evaluator, candidates = Evaluator("tgbl-wiki"), np.arange(destinations)
    bank = module.EdgeBankPredictor(source[:train], destination[:train], column["time"][:train])
    start = time.process_time()
    for k in range(train, train + events):
        others = np.concatenate([destination[k:k + 1], candidates[candidates != destination[k]]])
        scores = bank.predict_link(np.full(len(others), source[k]), others)
        evaluator.eval({"y_pred_pos": scores[:1], "y_pred_neg": scores[1:], "eval_metric": ["mrr"]})
    print((time.process_time() - start) / events)


def measure(given):
    baselines = given.baselines.split(",")
    for kind, sizes in (("events", given.events), ("destinations", given.destinations)):
        for size in filter(None, sizes.split(",")):
            folder = tempfile.mkdtemp(prefix="fullrank-scale-", dir=given.folder)
            try:
                if kind == "events":
                    against_events(given.build, folder, int(size), baselines)
                else:
                    against_destinations(given.build, folder, int(size), baselines, given.edgebank)
            finally:
                shutil.rmtree(folder)


# ---- drawing ----

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999", "#8c510a"]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 300, 300, 58, 30, 14, 44


def number(value):
    if value >= 1000:
        return "10^%d" % round(math.log10(value)) if value >= 1e4 else "%d" % value
    return "%g" % value


def panel(out, x0, title, x_label, y_label, series, colour):
    """One plot with logarithmic axes: series {name: [(x, y)]}."""
    points = [p for line in series.values() for p in line]
    low = [math.floor(math.log10(min(p[axis] for p in points)) + 1e-9) for axis in (0, 1)]
    high = [max(math.ceil(math.log10(max(p[axis] for p in points)) - 1e-9), low[axis] + 1) for axis in (0, 1)]
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x, y):
        return (x0 + LEFT + wide * (math.log10(x) - low[0]) / (high[0] - low[0]),
                TOP + tall * (high[1] - math.log10(y)) / (high[1] - low[1]))

    out.append('<text x="%d" y="18" class="title">%s</text>' % (x0 + LEFT, title))
    for axis in (0, 1):
        for power in range(low[axis], high[axis] + 1):
            x, y = place(10.0 ** (power if axis == 0 else low[0]), 10.0 ** (power if axis else low[1]))
            end = (x, TOP) if axis == 0 else (x0 + LEFT + wide, y)
            out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="grid"/>' % (x, y, *end))
            at = (x, y + 15, "middle") if axis == 0 else (x - 6, y + 4, "end")
            out.append('<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (*at, number(10.0 ** power)))
    out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x0 + LEFT + wide / 2, HEIGHT - 8, x_label))
    out.append('<text transform="translate(%d,%.1f) rotate(-90)" text-anchor="middle">%s</text>'
               % (x0 + 14, TOP + tall / 2, y_label))
    for name, line in series.items():
        places = [place(*p) for p in sorted(line)]
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.6"/>'
                   % (" ".join("%.1f,%.1f" % p for p in places), colour[name]))
        for p in places:
            out.append('<circle cx="%.1f" cy="%.1f" r="2.6" fill="%s"/>' % (*p, colour[name]))


def draw(given):
    with open(given.points) as file:
        rows = [row for row in csv.reader(file) if row]
    names = list(dict.fromkeys(row[1] for row in rows))
    colour = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}

    def series(kind, column, scale):
        lines = {}
        for row in rows:
            if row[0] == kind and row[column]:
                lines.setdefault(row[1], []).append((float(row[2]), scale * float(row[column])))
        return lines

    panels = [("Time", "events", "processor seconds, whole run", series("events", 3, 1)),
              ("Memory", "events", "peak MB", series("events", 4, 1)),
              ("Time per ranked event", "destinations", "microseconds", series("destinations", 3, 1e6))]
    panels = [p for p in panels if p[3]]
    legend = HEIGHT + 18 * ((len(names) + 3) // 4)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">'
           % (WIDTH * len(panels), legend),
           '<style>.grid{stroke:#ddd}.title{font-weight:bold;font-size:13px}</style>',
           '<rect width="100%" height="100%" fill="white"/>']
    for k, (title, x_label, y_label, lines) in enumerate(panels):
        panel(out, k * WIDTH, title, x_label, y_label, lines, colour)
    for k, name in enumerate(names):
        x, y = 20 + (k % 4) * (WIDTH * len(panels) - 30) // 4, HEIGHT + 10 + 18 * (k // 4)
        out.append('<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="3"/>'
                   % (x, y - 4, x + 18, y - 4, colour[name]))
        out.append('<text x="%d" y="%d">%s</text>' % (x + 24, y, name))
    with open(given.figure, "w") as file:
        file.write("\n".join(out) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("measure")
    one.add_argument("build")
    one.add_argument("folder")
    one.add_argument("--events", default="1000000,10000000,50000000")
    one.add_argument("--destinations", default="1000,10000,100000,1000000")
    one.add_argument("--baselines", default="popularity,recency,edgebank,markov")
    one.add_argument("--edgebank")
    one.set_defaults(call=measure)
    tgb = commands.add_parser("tgb", help="used by measure")
    tgb.add_argument("data")
    tgb.add_argument("destinations", type=int)
    tgb.add_argument("edgebank")
    tgb.set_defaults(call=time_tgb)
    two = commands.add_parser("draw")
    two.add_argument("points")
    two.add_argument("figure")
    two.set_defaults(call=draw)
    given = parser.parse_args()
    given.call(given)


if __name__ == "__main__":
    main()
