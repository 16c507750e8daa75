#!/usr/bin/env python3
"""examples/python/torch_models.py on its own, and fullrank's models against it. Run by cli/torch_models.sh.

    tests/torch_models.py SCRIPT FULLRANK DIR...    in an empty directory

Every DIR is an imported stream. Prints "ok NAME", "skip NAME: REASON" or "no NAME: FINDING" lines.

From the same initial parameters both train without random choices: the losses agree. Then each
scores test events from the other's checkpoint, memories included: the scores agree.
"""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import torch

SCRIPT, FULLRANK, *FOLDERS = sys.argv[1:]
spec = importlib.util.spec_from_file_location("torch_models", SCRIPT)
rival = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rival)
torch.set_num_threads(1)
FORMS = (("craft", {"history": 20}), ("craft-r", {"history": 30, "attend": 7, "empty": "pad"}),
         ("graphmixer", {"tokens": 12}), ("tgn", {}), ("tgn", {"embedding": "identity"}),
         ("tgn", {"identities": 1}), ("dygformer", {"history": 45}),
         ("dygformer-lha", {"history": 45}), ("dygformer", {"history": 45, "identities": 1}),
         ("patch", {"history": 45}), ("patch-lha", {"history": 45, "patch": 4}))
SMALL = {"dim": 16}
PRESETS = os.path.join(os.path.dirname(SCRIPT), "../../src/study/presets/settings.json")
with open(PRESETS, encoding="utf-8") as presets:
    PUBLISHED = json.load(presets)["published"]


class Found(Exception):
    """A test has failed, with this message."""


def expect(truth, text):
    if not truth:
        raise Found(text)


def test(name, function, *arguments):
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # epochs
            function(*arguments)
        print(f"ok {name}", flush=True)
    except Found as found:
        print(f"no {name}: {found}", flush=True)


def options(action, folder, **more):
    plain = dict(action=action, data=folder, model=None, set=[], epochs=1, init=None, losses=3,
                 deterministic=True, batches="all", save=None, checkpoint=None, events="every:40",
                 out=None, double=False, granularity=1)
    return argparse.Namespace(**{**plain, **more})


def text(settings):
    return [f"{key}={value}" for key, value in settings.items()]


def made(folder, model, settings, double=False):
    """Model and window with initial parameters."""
    args = options("train", folder, model=model, set=text(settings), double=double)
    _, window, m, _ = rival.prepare(args)
    return m.eval(), window


def scores_of(folder, checkpoint, prepared=None, events="every:15", granularity=1):
    args = options("score", folder, checkpoint=checkpoint, out="scores.npy", events=events,
                   granularity=granularity)
    rival.score(args, *(prepared or rival.prepare(args)))
    return np.load("scores.npy")


# ---- alone ----


def count_parameters(folder, model, settings):
    """MODELS 7: at the default widths."""
    form = {k: v for k, v in settings.items() if k in ("embedding", "identities")}
    m, w = made(folder, model, form)
    f, items = w.features.shape[1], 64 * (w.nodes - w.first_dst)
    identities = 64 * w.nodes if "identities" in form else 0
    named = 16 * 640 if identities else 0  # what DyGFormer's patches make of them
    want = {"craft": 137474 + items, "craft-r": 158338 + items,
            "dygformer": 120497 + 160 * f + identities + named,
            "dygformer-lha": 120561 + 160 * f,
            "tgn": (51713 + 192 * f if "embedding" in form else 103329 + 384 * f) + identities,
            "graphmixer": 100879 + 64 * f + 64 * w.nodes,
            "patch": 187009 + 64 * w.nodes, "patch-lha": 178881 + 64 * w.nodes}[model]
    found = sum(p.numel() for p in m.parameters() if p.requires_grad)
    expect(found == want, f"{found}, expected {want}")


def save_and_load(folder, model, settings):
    """MODELS 11.10: trained, saved, loaded: the same bits from the first test event on."""
    args = options("train", folder, model=model, set=text({**SMALL, **settings}), epochs=2,
                   save="saved.safetensors")
    prepared = rival.prepare(args)
    losses = rival.train(args, *prepared)["first_losses"]
    near = 0.5 if model == "patch" else 0.02  # its scores have a product of identities, N(0, 1)
    expect(abs(losses[0] - 0.693) < near, f"the first loss is {losses[0]}")
    before = scores_of(folder, None, prepared)
    after = scores_of(folder, "saved.safetensors")
    expect((before == after).all() and before.std() > 0, "scores after loading differ")


@torch.no_grad()
def score_alone(folder, model, settings):
    """A score does not depend on what else is scored."""
    m, w = made(folder, model, {**SMALL, **settings}, double=True)
    for event in (0, 7, w.ntrain // 2, w.events - 1):
        m.observe(event)
        together = m(np.array([event]), w.catalog[None])[0]
        pairs = np.stack([w.catalog[:30], w.catalog[-30:]], 1)
        apart = m(np.repeat(event, len(pairs)), pairs)
        found = (apart - torch.stack([together[:30], together[-30:]], 1)).abs().max().item()
        expect(found < 1e-12, f"event {event}: alone or not differs by {found}")


@torch.no_grad()
def remember_lazily(folder):
    """MODELS 11.7: messages kept for a batch of one are the eager update."""
    m, w = made(folder, "tgn", SMALL, double=True)
    for event in range(200):
        m.observe(event)
    eager, last = m.memory.clone(), m.last.copy()
    m.reset()
    for event in range(200):
        m(np.array([event]), w.dst[[event]][None])
        m.learned(np.array([event]))
    m.flush()
    expect((m.memory - eager).abs().max() < 1e-12, "memories differ")
    expect((m.last == last).all(), "times differ")


@torch.no_grad()
def count_neighbours(folder):
    """MODELS 3.1: the counts of every token, against counting."""
    m, w = made(folder, "dygformer", {"history": 45, "patch": 4})
    event = w.events - 1
    # the code of a count is the count itself
    m.encode = lambda most: torch.cat([torch.arange(most + 1.0)[:, None], torch.full((1, 1), -1.0)])
    m.patch.cooc = torch.nn.Identity()
    u, nodes = w.ends(event)[0], w.catalog[:20] + w.first_dst
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
            expect(found == want + [-2.0] * (len(found) - len(want)), f"pair {p}, side {s % 2}")


# ---- against fullrank ----


def run(*words):
    done = subprocess.run([FULLRANK, *map(str, words)], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"fullrank {words[0]}: {done.stderr.strip()}")


def train_both(folder, model, settings):
    """Leaves ours/ and theirs.safetensors. With a rate of 0 an epoch keeps initial parameters."""
    for kind in ("first", "ours"):
        shutil.rmtree(kind, ignore_errors=True)
    given = [w for pair in text({**SMALL, **settings}) for w in ("--set", pair)]
    training = published_training() if "settings" in settings else []
    common = ["train", "--data", folder, "--model", model, "--deterministic", "-q", *given]
    run(*common, "--lr", 0, "--epochs", 1, "-o", "first")
    run(*common, "--epochs", 2, "-o", "ours")
    args = options("train", folder, init="first/model.safetensors", epochs=2,
                   save="theirs.safetensors", set=training)
    theirs = rival.train(args, *rival.prepare(args))["loss"]
    with open("ours/train.json", encoding="utf-8") as file:
        ours = json.load(file)["loss"]
    apart = np.abs(np.subtract(ours, theirs)).max()
    expect(apart < 1e-4, f"epoch means {ours} and {theirs}")


def score_both(folder, checkpoint, granularity=1):
    run("rank", "--data", folder, "--scorer", checkpoint, "-o", "ranks.npy", "--force", "-q",
        "--order", f"batch:{granularity}", "--dump-scores", "ours.npy", "--events", "every:15")
    ours = np.load("ours.npy")
    theirs = scores_of(folder, checkpoint, granularity=granularity)
    expect(ours.shape == theirs.shape and theirs.std() > 0, f"shapes {ours.shape}, {theirs.shape}")
    apart = np.abs(ours - theirs).max() / np.abs(theirs).max()
    expect(apart < 1e-5, f"apart by {apart} of the largest")


def published_training():
    """How the family `published` trains, for --set."""
    return [f"{word}={PUBLISHED['all'][key]}" for key, word in
            (("batch-size", "batch"), ("weight-decay", "weight_decay"), ("negatives", "negatives"))]


def main():
    known = subprocess.run([FULLRANK, "models"], capture_output=True, text=True, check=True).stdout
    for folder in FOLDERS:
        test(f"{folder}: TGN remembers lazily or eagerly", remember_lazily, folder)
        test(f"{folder}: DyGFormer's counts", count_neighbours, folder)
        featured = os.path.exists(f"{folder}/features.npy")
        for model, settings in FORMS:
            if featured and "edge_dim" not in rival.MODELS[model][1]:
                continue  # they do not read features
            form = " ".join([folder + ":", model, *text(settings)])
            test(f"{form}: parameters", count_parameters, folder, model, settings)
            test(f"{form}: saved and loaded", save_and_load, folder, model, settings)
            test(f"{form}: scored alone", score_alone, folder, model, settings)
            if f"{model}:" not in known:
                print(f"skip {form}: no such model in this build")
                continue
            test(f"{form}: losses of both", train_both, folder, model, settings)
            test(f"{form}: scores of ours", score_both, folder, "ours/model.safetensors")
            test(f"{form}: scores of theirs", score_both, folder, "theirs.safetensors")
            test(f"{form}: batch:37", score_both, folder, "ours/model.safetensors", 37)
        for model in [] if featured else sorted(PUBLISHED.keys() - {"all"}):
            form = f"{folder}: {model} as published"
            test(f"{form}: losses of both", train_both, folder, model, {"settings": "published"})
            test(f"{form}: scores of ours", score_both, folder, "ours/model.safetensors")
            test(f"{form}: scores of theirs", score_both, folder, "theirs.safetensors")
            # memories of pairs are written once per 128 events
            test(f"{form}: batch:128", score_both, folder, "ours/model.safetensors", 128)


main()
