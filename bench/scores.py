#!/usr/bin/env python3
"""The time of ranking a ready score matrix, against one NumPy pass and against TGB's Evaluator.

    bench/scores.py wikipedia.csv [BENCH_SCORES]

Needs the package fullrank and NumPy; with py-tgb its Evaluator is timed too, called once per event as in TGB's examples,
on the same scores. BENCH_SCORES is the program of that name (bench/bench_scores.c). Times are processor times of one
thread, best of many; within a round the contestants run one after the other.
"""
import subprocess
import sys
import tempfile
import time

import numpy as np

import fullrank as fr


def timed(best, name, function):
    start = time.process_time()
    result = function()
    best[name] = min(best.get(name, 9e9), time.process_time() - start)
    return result


def count(scores, positive):
    """Candidates above and equal to the positive, and no more."""
    own = scores[np.arange(len(scores)), positive][:, None]
    return (scores > own).sum(axis=1), (scores == own).sum(axis=1)


def evaluate(evaluator, scores, positive):
    mrr = []
    for row, own in zip(scores, positive):
        given = {"y_pred_pos": row[own:own + 1], "y_pred_neg": np.delete(row, own), "eval_metric": ["mrr"]}
        mrr.append(evaluator.eval(given)["mrr"])
    return np.mean(mrr)


def main():
    window = fr.read(sys.argv[1]).window()
    part, catalog = window.ranked, window.catalog_numbers
    covered = np.isin(part.destination, catalog)
    positive = np.searchsorted(catalog, part.destination[covered])
    scores = np.random.default_rng(1).random((len(part), len(catalog)), dtype=np.float32)
    some, best = np.ascontiguousarray(scores[covered]), {}
    with tempfile.TemporaryDirectory() as place:
        path = place + "/scores.npy"
        np.save(path, some)
        for _ in range(20):
            above, tied = timed(best, "NumPy: above and equal", lambda: count(some, positive))
            mine = timed(best, "submit: all rows", lambda: window.rank(scores))
            file = timed(best, "scores: open, hash, rank", lambda: window.rank("scores:" + path, threads=1))
        if len(sys.argv) > 2:
            print(subprocess.run([sys.argv[2], sys.argv[1], place], capture_output=True, text=True).stdout, end="")
    records = mine.records[covered]
    assert (records["above"] == above).all() and (records["tied"] == tied - 1).all()
    assert mine.records.tobytes() == file.records.tobytes()
    print(f"{len(some)} x {len(catalog)} scores")
    for name, seconds in best.items():
        print(f"{name:26}{seconds:.4f} s, {seconds / best['NumPy: above and equal']:.2f} of NumPy")
    try:
        from tgb.linkproppred.evaluate import Evaluator
    except ImportError:
        return print("no py-tgb here")
    for _ in range(3):
        mrr = timed(best, "tgb", lambda: evaluate(Evaluator("tgbl-wiki"), some, positive))
    assert abs(mrr - mine.mrr) < 1e-6
    print(f"TGB's Evaluator per event {best['tgb']:.4f} s, {best['tgb'] / best['submit: all rows']:.0f} times submit")


if __name__ == "__main__":
    main()
