#!/usr/bin/env python3
"""bench/torch_models.py on its own: what must hold whatever it is compared with.

    tests/torch_models.py SCRIPT DIR SCRATCH

DIR is an imported stream. Prints one line per finding and "done".
"""
import argparse
import importlib.util
import sys

import numpy as np
import torch

spec = importlib.util.spec_from_file_location("torch_models", sys.argv[1])
rival = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rival)
torch.set_num_threads(1)
FOLDER, SCRATCH = sys.argv[2:]
SMALL = ["dim=16", "history=45", "tokens=12"]


def options(action, **more):
    plain = dict(action=action, data=FOLDER, model=None, set=[], epochs=1, init=None, losses=3,
                 deterministic=True, batches="all", save=None, checkpoint=None, events="every:40",
                 out=None, double=False)
    return argparse.Namespace(**{**plain, **more})


def expect(truth, text):
    if not truth:
        print(text)


def settings_of(model, *more):
    known = rival.MODELS[model][1]
    return [s for s in [*SMALL, *more] if s.partition("=")[0] in known]


def made(model, *more, double=False):
    """Model and window with initial parameters."""
    args = options("train", model=model, set=[*more], double=double)
    _, window, m, _ = rival.prepare(args)
    return m.eval(), window


def check_counts():
    """MODELS 7."""
    for model, extra in (("dygformer", []), ("dygformer-lha", []), ("tgn", []),
                         ("tgn", ["embedding=identity"]), ("graphmixer", [])):
        m, w = made(model, *extra)
        f = w.features.shape[1]
        want = {"dygformer": 120497 + 160 * f, "dygformer-lha": 120561 + 160 * f,
                "tgn": 51713 + 192 * f if extra else 103329 + 384 * f,
                "graphmixer": 100879 + 64 * f + 64 * w.nodes}[model]
        found = sum(p.numel() for p in m.parameters() if p.requires_grad)
        expect(found == want, f"{model} {extra}: {found} parameters, expected {want}")


def check_saved(model, *more):
    """MODELS 11.11: trained, saved, loaded: the same bits from the first test event on."""
    path = f"{SCRATCH}/saved.safetensors"
    args = options("train", model=model, set=settings_of(model, *more), epochs=2, save=path)
    prepared = rival.prepare(args)
    losses = rival.train(args, *prepared)["first_losses"]
    expect(abs(losses[0] - 0.693) < 0.02, f"{model} {more}: first loss {losses[0]}")
    scores = []
    for checkpoint in (None, path):
        args = options("score", checkpoint=checkpoint, out=f"{SCRATCH}/scores.npy")
        rival.score(args, *(rival.prepare(args) if checkpoint else prepared))
        scores.append(np.load(args.out))
    expect((scores[0] == scores[1]).all() and scores[0].std() > 0,
           f"{model} {more}: scores after loading differ")


@torch.no_grad()
def check_alone(model, *more):
    """A score does not depend on what else is scored."""
    m, w = made(model, *settings_of(model, *more), double=True)
    for event in (0, 7, w.ntrain // 2, w.events - 1):
        m.observe(event)
        together = m(np.array([event]), w.catalog[None])[0]
        pairs = np.stack([w.catalog[:30], w.catalog[-30:]], 1)
        apart = m(np.repeat(event, len(pairs)), pairs)
        found = (apart - torch.stack([together[:30], together[-30:]], 1)).abs().max().item()
        expect(found < 1e-12, f"{model} {more}: event {event}: alone or not differs by {found}")


@torch.no_grad()
def check_lazy(*more):
    """MODELS 11.7: messages kept for a batch of one are the eager update."""
    m, w = made("tgn", *settings_of("tgn", *more), double=True)
    for event in range(200):
        m.observe(event)
    eager, last = m.memory.clone(), m.last.copy()
    m.reset()
    for event in range(200):
        m(np.array([event]), w.dst[[event]][None])
        m.learned(np.array([event]))
    m.flush()
    expect((m.memory - eager).abs().max() < 1e-12, f"tgn {more}: lazy and eager memories differ")
    expect((m.last == last).all(), f"tgn {more}: lazy and eager times differ")


@torch.no_grad()
def check_counted():
    """MODELS 3.1: the counts of every token, against counting."""
    m, w = made("dygformer", "history=45", "patch=4")
    event = w.events - 1
    # a count is its own code, and stays as it is
    m.encode = lambda most: torch.cat([torch.arange(most + 1.0)[:, None], torch.full((1, 1), -1.0)])
    m.patch.cooc = torch.nn.Identity()
    u, nodes = w.src[event], w.catalog[:20] + w.sources
    side = lambda n: rival.Side(w, n, np.repeat(event, len(n)), m.L, m.P)
    X, segment, _ = m.sequences(side(np.array([u])), side(nodes), np.zeros(len(nodes), int))
    ids = lambda x: [x, *[w.other[k] for k in range(w.start[x], w.start[x + 1])
                          if w.event[k] < event][-(m.L - 1):]]
    for p, v in enumerate(nodes):
        S_u, S_v = ids(u), ids(v)
        for s, S in ((2 * p, S_u), (2 * p + 1, S_v)):
            # each slot holds the sum of its two counts, -2 where it is missing
            found = X[segment == s][:, -m.P:].reshape(-1).tolist()
            want = [S_u.count(x) + S_v.count(x) for x in S]
            expect(found == want + [-2.0] * (len(found) - len(want)), f"counts of side {s}")


check_counts()
check_counted()
check_lazy()
for name, setting in (("graphmixer", ()), ("tgn", ()), ("tgn", ("embedding=identity",)),
                      ("dygformer", ()), ("dygformer-lha", ())):
    check_saved(name, *setting)
    check_alone(name, *setting)
print("done")
