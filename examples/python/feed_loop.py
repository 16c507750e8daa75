"""Your own loop around a feed: queries come out, scores go in, the truth comes back afterwards.

    python feed_loop.py
"""
import numpy as np

import fullrank as fr

window = fr.synth("tiny", events=3000).window(0)
seen = np.zeros((len(window.sources), len(window.candidates)), np.float32)  # a model: how often, and who was last
for source, destination in zip(window.train.source, window.train.destination):
    seen[source, destination] += 1

feed = window.feed("pair-counts", seed=7)
for batch in feed.batches(50):
    scores = seen[batch.source][:, window.catalog_numbers]  # a row for each query, a column for each id of the catalog
    truth = feed.submit(scores)
    np.add.at(seen, (truth.source, truth.destination), 1)
mine = feed.finish()

baselines = [window.rank("baseline:recency"), window.rank("baseline:popularity")]
print(f"{mine.mrr:.4f} over the full catalog, {mine.expected('uniform', k=20).mrr:.4f} among 20 sampled negatives")
print(fr.compare(mine, *baselines))
