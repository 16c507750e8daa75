"""A model of DyGLib against the whole catalog. `model` is its nn.Sequential(backbone, MergeLayer), with the neighbor sampler of
the full data set; `more` is what its backbone wants beside ids and times: num_neighbors=20, time_gap=2000, ...

    window = fr.read("processed_data/wikipedia").window(0, split="quantile", train=0.7, val=0.15)
    mine = rank(window, model, first=ml["i"].min(), num_neighbors=30, time_gap=2000)

`first` is the number DyGLib gives the first destination (it numbers sources from 1). Models with a memory (JODIE, DyRep,
TGN) get `memory=True`: a query does not change it, the truth does.
"""
import numpy as np
import torch


@torch.no_grad()
def rank(window, model, first, memory=False, batch=20, name="dyglib-model", **more):
    feed, n, shift = window.feed(name), len(window.catalog), first - window.candidates.min()
    embed, model = model[0].compute_src_dst_node_temporal_embeddings, model.eval()
    for queries in feed.batches(batch):
        src, dst = np.repeat(window.sources[queries.source] + 1, n), np.tile(window.catalog + shift, len(queries))
        asked = dict(more, edge_ids=None, edges_are_positive=False) if memory else more
        one, two = embed(src, dst, np.repeat(queries.time, n), **asked)
        truth = feed.submit(model[1](input_1=one, input_2=two).reshape(len(queries), n))
        if memory and len(truth):
            embed(window.sources[truth.source] + 1, window.candidates[truth.destination] + shift, truth.time.copy(),
                  edge_ids=window.facts.first + truth.event + 1, edges_are_positive=True, **more)
    return feed.finish()
