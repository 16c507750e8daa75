"""A loop written for TGB, against the whole catalog: two calls of it are needed, and nothing of the model changes.

    window = fr.events(LinkPropPredDataset("tgbl-wiki")).window(0, split="column")
    mine = rank(window, score, update)

score(src, dst, t)        one number per pair: what the loop hands to Evaluator.eval for a positive and its negatives
update(src, dst, t, msg)  what the loop does after a batch, such as model["memory"].update_state
Both get NumPy arrays of TGB's own node numbers.
"""
import numpy as np


def rank(window, score, update=None, batch=200, name="tgb-model"):
    feed, n = window.feed(name), len(window.catalog)
    for queries in feed.batches(batch):
        src = np.repeat(window.sources[queries.source], n)
        scores = score(src, np.tile(window.catalog, len(queries)), np.repeat(queries.time, n))
        truth = feed.submit(scores.reshape(len(queries), n))
        if update is not None:
            update(window.sources[truth.source], window.candidates[truth.destination], truth.time, truth.features)
    return feed.finish()
