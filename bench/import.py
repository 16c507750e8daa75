#!/usr/bin/python3
"""Compares import with pandas' C reader on the same files in the same run, one thread each.

    bench/import.py BUILD [--folder DIR] [--rounds 5] [--rows N] [--wide-rows N]

BUILD is a build directory made with -DFULLRANK_BENCH=ON; files are made in DIR (default $TMPDIR)
and removed. Every round runs each contestant once. The best time of each counts, and the ratios are
those of the best times, so other work on the machine affects both sides. The order is shuffled in
every round, because a run changes caches and memory. Contestants:

    read     our reader alone, into blocks in memory (hashing the file as it always does)
    import   the whole `fullrank data import`: columns written, synced, hashed
    pandas   read_csv into a DataFrame, as it comes (float_precision "high", or None)
    legacy   the same with the older, less exact conversion, for information
    saved    read_csv (a second chance for "pandas") plus numpy.save of the same columns, not synced

pandas/read should be at least 3 on every file; otherwise the exit code is 1. Use the pandas of the
system (python3-pandas), and measure on an idle machine.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import numpy
import pandas

MARK = 3.0
JODIE_HEADER = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n"
WIDTH = 172


def skewed(draws, low, count, size):
    """Ids from low on, small ones more often: lengths are mixed as in real files."""
    return low + (draws.random(size) ** 3 * count).astype(numpy.int64)


def make_narrow(path, rows):
    draws = numpy.random.default_rng(1)
    source = skewed(draws, 0, 200000, rows)
    destination = skewed(draws, 0, 50000, rows)
    seconds = numpy.cumsum(draws.integers(0, 4, rows))
    with open(path, "w") as out:
        out.write("user_id,item_id,timestamp\n")
        for at in range(0, rows, 100000):
            part = slice(at, at + 100000)
            out.writelines("%d,%d,%d\n" % row for row in
                           zip(source[part].tolist(), destination[part].tolist(),
                               seconds[part].tolist()))


def make_wide(path, rows, text_of):
    """172 features a row. The feature texts of 4,000 rows repeat: too many for a CPU to predict."""
    draws = numpy.random.default_rng(2)
    texts = []
    for _ in range(4000):
        values = draws.normal(-0.1, 0.4, WIDTH)
        texts.append(",".join(text_of(v) for v in values.tolist()))
    source = skewed(draws, 0, 8000, rows).tolist()
    destination = skewed(draws, 0, 1000, rows).tolist()
    seconds = numpy.cumsum(draws.integers(0, 40, rows)).tolist()
    with open(path, "w") as out:
        out.write(JODIE_HEADER)
        out.writelines("%d,%d,%d.0,0,%s\n" % (source[k], destination[k], seconds[k],
                                              texts[k * 2654435761 % 4000]) for k in range(rows))


def read_pandas(path, precision=None):
    # The header of a JODIE file has fewer names than columns, so it is passed over.
    return pandas.read_csv(path, engine="c", header=None, skiprows=1, float_precision=precision)


def save_columns(frame, wide, folder):
    os.makedirs(folder)
    columns = {"source": frame[0].to_numpy("int32"), "destination": frame[1].to_numpy("int32"),
               "time": frame[2].to_numpy("float64")}
    if wide:
        columns["features"] = frame.iloc[:, 4:].to_numpy("float32")
    for name, values in columns.items():
        numpy.save(os.path.join(folder, name + ".npy"), values)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def contest(build, path, wide, rounds, folder):
    columns = os.path.join(folder, "columns")

    def ours():
        out = subprocess.run([os.path.join(build, "bench", "bench_read"), path], check=True,
                             capture_output=True, text=True)
        return float(out.stdout)

    def whole():
        shutil.rmtree(columns, ignore_errors=True)
        command = [os.path.join(build, "fullrank"), "data", "import", path, "-o", columns]
        return timed(lambda: subprocess.run(command, check=True, capture_output=True))

    def saved():
        shutil.rmtree(columns, ignore_errors=True)
        start = time.perf_counter()
        frame = read_pandas(path)
        best["pandas"] = min(best["pandas"], time.perf_counter() - start)
        save_columns(frame, wide, columns)
        return time.perf_counter() - start

    contestants = {"read": ours, "import": whole,
                   "pandas": lambda: timed(lambda: read_pandas(path)),
                   "legacy": lambda: timed(lambda: read_pandas(path, "legacy")),
                   "saved": saved}
    best = dict.fromkeys(contestants, float("inf"))
    names = list(contestants)
    shuffle = random.Random(1).shuffle
    for _ in range(rounds):
        shuffle(names)
        for name in names:
            best[name] = min(best[name], contestants[name]())
    shutil.rmtree(columns, ignore_errors=True)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000000)
    parser.add_argument("--wide-rows", type=int, default=100000)
    parser.add_argument("--only", default="", help="3-column, 6-decimal or 17-digit")
    options = parser.parse_args()
    files = [("3-column", False, lambda p: make_narrow(p, options.rows)),
             ("6-decimal", True, lambda p: make_wide(p, options.wide_rows, "{:.6f}".format)),
             ("17-digit", True, lambda p: make_wide(p, options.wide_rows // 2, repr))]
    print("pandas %s, numpy %s; best of %d alternating rounds, seconds"
          % (pandas.__version__, numpy.__version__, options.rounds))
    print("%-10s %6s %7s %7s %7s %7s %7s | %11s %11s %13s %12s"
          % ("file", "MB", "read", "import", "pandas", "legacy", "saved", "pandas/read",
             "legacy/read", "pandas/import", "saved/import"))
    good = True
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, wide, make in files:
            if options.only and options.only != name:
                continue
            path = os.path.join(folder, "table.csv")
            make(path)
            t = contest(options.build, path, wide, options.rounds, folder)
            ratio = t["pandas"] / t["read"]
            good = good and ratio >= MARK
            print("%-10s %6.0f %7.3f %7.3f %7.3f %7.3f %7.3f | %11.2f %11.2f %13.2f %12.2f"
                  % (name, os.path.getsize(path) / 1e6, t["read"], t["import"], t["pandas"],
                     t["legacy"], t["saved"], ratio, t["legacy"] / t["read"],
                     t["pandas"] / t["import"], t["saved"] / t["import"]), flush=True)
    if not good:
        print("missed: the reader is to be at least %g times as fast as pandas" % MARK)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
