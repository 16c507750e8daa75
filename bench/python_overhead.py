"""What the ways of the Python package cost: ready scores through a feed, at once, by a function, and as a score file.

    python bench/python_overhead.py wikipedia.csv.gz

Ratios are of processor time (best of several), for the machine may have other work. With py-tgb installed, TGB's
Evaluator is timed on the same scores, in the loop of its examples: one event and its negatives at a time.
"""

import os
import sys
import tempfile
import time

import numpy as np

import fullrank as fr


def best(work, repeats=7):
    """The least processor time of several, after one that does not count."""
    work()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main():
    window = fr.read(sys.argv[1]).window()
    covered = np.isin(window.candidates[window.ranked.destination], window.catalog)
    scores = np.random.default_rng(0).random((len(window.ranked), len(window.catalog)), dtype=np.float32)

    def feed(size):
        feed = window.feed("m")
        for batch in feed.batches(size):
            first = batch.event[0] - window.ranked.start
            feed.submit(scores[first:first + len(batch)])
        return feed.finish()

    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "m.npy")
        np.save(path, scores[covered])
        want = window.rank("scores:" + path).records.tobytes()
        assert feed(200).records.tobytes() == want and window.rank(scores).records.tobytes() == want
        file = best(lambda: window.rank("scores:" + path))
    print(f"{int(covered.sum()):,} x {len(window.catalog)} scores")
    print(f"score file             {file * 1e3:8.1f} ms")
    for name, work in (("feed, 200 at a time", lambda: feed(200)), ("feed, one at a time", lambda: feed(1)),
                       ("one matrix", lambda: window.rank(scores)),
                       ("a function", lambda: window.rank(lambda b: scores[b.event - window.ranked.start]))):
        took = best(work, 5)
        print(f"{name:22} {took * 1e3:8.1f} ms   {took / file:6.2f} times the score file")
    try:
        from tgb.linkproppred.evaluate import Evaluator
    except ImportError:
        print("no py-tgb here")
        return
    evaluator = Evaluator(name="tgbl-wiki")
    place = np.searchsorted(window.catalog, window.candidates[window.ranked.destination])

    def tgb():
        for row, at in zip(scores[covered], place[covered]):
            evaluator.eval({"y_pred_pos": row[at:at + 1], "y_pred_neg": np.delete(row, at), "eval_metric": ["mrr"]})

    took = best(tgb, 2)
    print(f"{'TGB Evaluator':22} {took * 1e3:8.1f} ms   {took / best(lambda: feed(200)):6.2f} times the feed of 200")


main()
