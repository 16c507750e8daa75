"""A link predictor of TGM (EdgeBankPredictor, PopTrackPredictor, ...) against the whole catalog: `model(src, dst)` scores
pairs, `model.update(src, dst, time)` learns. Node numbers and times are those of the data, as in its DGBatch.

    mine = rank(window, EdgeBankPredictor(*training(window)))
"""
import torch


def training(window):
    train = window.train
    columns = window.sources[train.source], window.candidates[train.destination], train.time
    return [torch.tensor(column) for column in columns]


def rank(window, model, batch=200, name="tgm-model"):
    feed, catalog = window.feed(name), torch.tensor(window.catalog)
    for queries in feed.batches(batch):
        src = torch.tensor(window.sources[queries.source]).repeat_interleave(len(catalog))
        truth = feed.submit(model(src, catalog.repeat(len(queries))).reshape(len(queries), len(catalog)))
        model.update(*(torch.tensor(x) for x in (window.sources[truth.source], window.candidates[truth.destination],
                                                 truth.time)))
    return feed.finish()
