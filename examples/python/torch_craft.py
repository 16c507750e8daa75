#!/usr/bin/env python3
"""CRAFT and CRAFT-R in PyTorch, written from the models' description alone: reference and rival.

    examples/python/torch_craft.py init  --data CSV --model craft-r --out first.safetensors
    examples/python/torch_craft.py score --data CSV --checkpoint C --events first:n --out scores.npy
    examples/python/torch_craft.py train --data CSV [--checkpoint C] [--deterministic] [--batches 5] [--out C]
    examples/python/torch_craft.py speed --data CSV --model craft

init   writes a random initial checkpoint.
score  writes the logits of all catalog items for window events first..first+n-1 (float32, n x N),
       each from the state right before the event, by a plain forward.
train  trains; --deterministic prints every batch's loss, for comparison step by step. With
       --evaluate it ranks the test events.
speed  is the rival of our own training and ranking: seconds per epoch, milliseconds per event.

Checkpoints have the tensors, settings and vocabularies of our own. What a checkpoint says about
model and window wins over the command line; how to train is always the command line's. --double
computes in float64 from the float32 parameters, to tell rounding from error.
Needs torch, numpy, safetensors. Histories are ragged, not padded; the allocator keeps its pages.
Time it with --threads 1 and with all cores of an idle machine: more threads can be faster, but
PyTorch's collapse when they must share a core with anything else.
"""
import argparse
import gzip
import json
import math
import os
import struct
import sys
import time

# PyTorch allocates and frees megabytes per batch; by default each goes back to the system.
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in ALLOCATOR.items()):
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import nn

from torch_common import loss_of, negatives

NEVER = -100000.0  # "elapsed time" of a destination without any event
EPS = 1e-12


# ---- the stream ----


class Window:
    """The last events of a file, split, with every node's events found by binary search."""

    def __init__(self, path, settings, shared=False):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8") as file:
            next(file)
            rows = [line.split(",", 3)[:3] for line in file]
        rows = rows[-settings["window"]:]
        self.time = np.array([float(r[2]) for r in rows])
        assert (np.diff(self.time) >= 0).all(), f"{path}: times are not ascending"
        self.time -= self.time[0]
        self.src_ids, self.src = np.unique([int(r[0]) for r in rows], return_inverse=True)
        self.dst_ids, self.dst = np.unique([int(r[1]) for r in rows], return_inverse=True)
        self.events = len(rows)
        self.ntrain = int(settings["train_fraction"] * self.events)
        self.catalog = np.unique(self.dst[:self.ntrain])
        self.cut = np.arange(self.events)  # the past of event i: window events below cut[i]
        if settings["order"] == "strict":
            self.cut = np.searchsorted(self.time, self.time)
        self.history = settings["history"]
        # items are destinations; with shared ids then the other nodes, and roles do not matter
        self.shared, self.node_ids, self.src_node = shared, self.dst_ids, self.src
        every = np.arange(self.events)
        lists = (self.src, self.dst, every), (self.dst, self.src, every)  # owner, other, event
        if shared:
            self.node_ids = np.append(self.dst_ids, np.setdiff1d(self.src_ids, self.dst_ids))
            item = {node: k for k, node in enumerate(self.node_ids.tolist())}
            self.src_node = np.array([item[node] for node in self.src_ids.tolist()])[self.src]
            ends = np.stack([self.src_node, self.dst], 1).reshape(-1)
            other = np.stack([self.dst, self.src_node], 1).reshape(-1)
            lists = ((ends, other, every.repeat(2)),) * 2
        self.by_src, self.src_order, self.src_start, self.src_met = self.sort_by(*lists[0])
        self.by_dst, self.dst_order, _, _ = self.sort_by(*lists[1])

    def barred(self, items, events):
        """Destinations that are no negatives of the events."""
        return (items == self.dst[events]) | (self.shared & (items == self.src_node[events]))

    def cut_by_batches(self, size):
        """Test events see what came before their batch (PROTOCOL 14)."""
        test = np.arange(self.events - self.ntrain)
        self.cut[self.ntrain:] = self.ntrain + test // size * size

    def sort_by(self, node, other, event):
        """Ascending keys node * events + index, the events in that order, each node's first entry,
        the other ends."""
        order = np.argsort(node, kind="stable")
        starts = np.searchsorted(node[order], np.arange(node.max() + 2))
        return node[order] * self.events + event[order], event[order], starts, other[order]

    def histories(self, events):
        """Past destinations of each event's source, oldest first, end to end; their numbers."""
        u = self.src_node[events]
        end = np.searchsorted(self.by_src, u * self.events + self.cut[events])
        m = np.minimum(end - self.src_start[u], self.history)
        position = np.arange(m.sum()) - np.repeat(np.cumsum(m) - m, m)
        return self.src_met[np.repeat(end - m, m) + position], position, m

    def elapsed(self, events, candidates):
        """float32 (events, C): time since each candidate's last event before the row's event."""
        cut = self.cut[events][:, None]
        last = np.searchsorted(self.by_dst, candidates * self.events + cut) - 1
        met = (last >= 0) & (self.by_dst[last] // self.events == candidates)
        x = self.time[events][:, None] - self.time[self.dst_order[last]]
        return np.where(met, x, NEVER).astype(np.float32)

    def inputs(self, events, candidates, dtype=torch.float32):
        """What forward takes, for candidates (events, C) of dense destination indices."""
        items, positions, m = self.histories(events)
        row = np.repeat(np.arange(len(events)), m)
        count = np.zeros(candidates.shape, np.float32)
        if len(events) == 1:
            count[0] = np.bincount(items, minlength=len(self.node_ids))[candidates[0]]
        else:
            for c in range(candidates.shape[1]):
                count[:, c] = np.bincount(row, items == candidates[row, c], len(events))
        tensor = torch.from_numpy
        return (tensor(items), tensor(positions), tensor(row), tensor(m), tensor(candidates),
                tensor(self.elapsed(events, candidates)).to(dtype), tensor(count).to(dtype))


# ---- the model ----


class Layer(nn.Module):
    def __init__(self, d, heads, dropout):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.attn_norm = nn.LayerNorm(d, EPS)
        self.ffn1, self.ffn2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.ffn_norm = nn.LayerNorm(d, EPS)
        self.drop = nn.Dropout(dropout)

    def attend_one(self, q, k, v):
        """One event: q (1,C,d) over its m entries k, v (m,d)."""
        split = lambda x: x.view(-1, self.heads, q.shape[2] // self.heads).transpose(0, 1)
        q_, k_, v_ = split(q), split(k), split(v)
        a = torch.softmax(q_ @ k_.transpose(1, 2) / math.sqrt(q_.shape[2]), 2)
        return (self.drop(a) @ v_).transpose(0, 1).reshape(q.shape)

    def attend_many(self, q, k, v, row, m):
        """q (b,C,d); entry r of k, v (R,d) belongs to event row[r]. Events without any give 0."""
        b, C, d = q.shape
        R, h = len(k), self.heads

        def per_event(x):  # sums rows (R,n) of the same event: (b,n)
            return x.new_zeros(b, x.shape[1]).scatter_add(0, row[:, None].expand_as(x), x)

        q_ = F.embedding(row, q.reshape(b, C * d)).view(R, C, h, d // h)
        logit = (q_ * k.view(R, 1, h, -1)).sum(3).view(R, C * h) / math.sqrt(d // h)
        top = torch.segment_reduce(logit.detach(), "max", lengths=m, axis=0)
        e = torch.exp(logit - F.embedding(row, top))
        a = self.drop(e / F.embedding(row, per_event(e)))
        return per_event((a.view(R, C, h, 1) * v.view(R, 1, h, -1)).view(R, C * d)).view(b, C, d)

    def forward(self, q, x, row, m):
        Q = self.query(q)
        if len(x) == 0:
            c = torch.zeros_like(Q)
        elif len(m) == 1:
            c = self.attend_one(Q, self.key(x), self.value(x))
        else:
            c = self.attend_many(Q, self.key(x), self.value(x), row, m)
        y = self.attn_norm(self.drop(self.out(c))) + q
        return self.ffn_norm(self.drop(self.ffn2(F.gelu(self.ffn1(y))))) + y


class Head(nn.Module):
    def __init__(self, width, layers, dropout):
        super().__init__()
        if layers == 2:
            self.fc1 = nn.Linear(width, width)
            self.prelu = nn.Parameter(torch.tensor([0.15]))
        self.fc2 = nn.Linear(width, 1)
        self.drop = nn.Dropout(dropout)

    def forward(self, z):
        if hasattr(self, "fc1"):
            z = self.drop(F.prelu(self.fc1(z), self.prelu))
        return self.fc2(z).squeeze(-1)


class Craft(nn.Module):
    """Attributes are declared in the order of the checkpoint's tensors."""

    def __init__(self, items, settings):
        super().__init__()
        d, dropout = settings["dim"], settings["dropout"]
        self.item = nn.Embedding(items, d)
        self.position = nn.Embedding(settings["history"], d)
        self.input_norm = nn.LayerNorm(d, EPS)
        self.layers = nn.ModuleList(
            Layer(d, settings["heads"], dropout) for _ in range(settings["layers"]))
        self.elapsed, self.elapsed_norm = nn.Linear(1, d), nn.LayerNorm(d, EPS)
        self.counts = settings["model"] == "craft-r"
        if self.counts:
            self.repeat, self.repeat_norm = nn.Linear(1, d), nn.LayerNorm(d, EPS)
        self.head = Head(d * (3 if self.counts else 2), settings["head_layers"], dropout)
        self.drop = nn.Dropout(dropout)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0, 0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, items, positions, row, m, candidates, elapsed, count):
        """Logits (b,C)."""
        q = self.drop(self.input_norm(self.item(candidates)))
        x = self.drop(self.input_norm(self.item(items) + self.position(positions)))
        for layer in self.layers:
            q = layer(q, x, row, m)
        z = [q, self.drop(self.elapsed_norm(self.elapsed(elapsed[..., None])))]
        if self.counts:
            z.append(self.drop(self.repeat_norm(self.repeat(count[..., None]))))
        return self.head(torch.cat(z, -1))


# ---- checkpoints ----

DEFAULTS = {
    "model": "craft", "window": 32768, "train_fraction": 0.85, "order": "stream", "dim": 64,
    "heads": 2, "layers": 2, "history": 320, "head_layers": 2, "dropout": 0.1, "lr": 0.001,
    "batch": 200, "epochs": 3, "loss": "bce", "seed": 7}
TRAINING = ("dropout", "lr", "batch", "epochs", "loss", "seed")


def save(path, model, window, settings):
    """Written by hand: the package would sort the tensors."""
    tensors = {name: t.detach().float().numpy() for name, t in model.state_dict().items()}
    tensors["vocab.src"] = window.src_ids.astype("<i8")
    tensors["vocab.dst"] = window.dst_ids.astype("<i8")
    facts = {"n_src": len(window.src_ids), "n_dst": len(window.dst_ids),
             "n_catalog": len(window.catalog), "ntrain": window.ntrain}
    header = {"__metadata__": {k: str(v) for k, v in {**settings, **facts}.items()}}
    at = 0
    for name, t in tensors.items():
        header[name] = {"dtype": {"f": "F32", "i": "I64"}[t.dtype.kind], "shape": list(t.shape),
                        "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            file.write(t.tobytes())


def prepare(args):
    """Settings, window and model, from the checkpoint where there is one."""
    settings = {key: getattr(args, key) for key in DEFAULTS}
    tensors = {}
    if args.checkpoint:
        with safe_open(args.checkpoint, "pt") as file:
            metadata = file.metadata()
            for key, value in DEFAULTS.items():
                if key not in TRAINING and key in metadata:
                    settings[key] = type(value)(metadata[key])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    shared = tensors.pop("vocab.node", None)
    window = Window(args.data, settings, shared is not None)
    assert shared is None or (shared.numpy() == window.node_ids).all(), "vocab.node is another"
    torch.manual_seed(settings["seed"])
    model = Craft(len(window.node_ids), settings)
    if tensors:
        for name, ids in (("vocab.src", window.src_ids), ("vocab.dst", window.dst_ids)):
            assert (tensors.pop(name).numpy() == ids).all(), f"{name} is not that of the window"
        model.load_state_dict(tensors)
    return settings, window, model.double() if args.double else model


# ---- work ----


def train_epochs(model, window, settings, epochs, deterministic=False, most=None):
    """Yields (epoch, batch, events, loss) after each step."""
    optimiser = torch.optim.Adam(model.parameters(), settings["lr"], eps=1e-8, fused=True)
    draws = None if deterministic else np.random.default_rng(settings["seed"])
    dtype = model.item.weight.dtype
    model.train(not deterministic)
    for epoch in range(epochs):
        order = np.arange(window.ntrain)
        if not deterministic:
            order = draws.permutation(order)
        for batch, at in enumerate(range(0, len(order), settings["batch"])):
            if most is not None and batch == most:
                break
            events = order[at:at + settings["batch"]]
            negative = negatives(window, events, epoch, draws)
            pairs = np.stack([window.dst[events], negative], 1)
            loss = loss_of(model(*window.inputs(events, pairs, dtype)), settings["loss"])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            yield epoch, batch, len(events), loss.item()
    model.eval()


@torch.inference_mode()
def score(model, window, event):
    inputs = window.inputs(np.array([event]), window.catalog[None], model.item.weight.dtype)
    return model(*inputs)[0]


def rank_of(scores, positive):
    above, equal = (scores > scores[positive]).sum(), (scores == scores[positive]).sum() - 1
    return 1 + above.item() + equal.item() / 2


def rank_test(model, window, events):
    """Ranks of those of the events whose destination is in the catalog; seconds per event."""
    model.eval()
    place = np.searchsorted(window.catalog, window.dst)
    covered = window.catalog[np.minimum(place, len(window.catalog) - 1)] == window.dst
    events = events[covered[events]]
    start = time.perf_counter()
    ranks = np.array([rank_of(score(model, window, e), place[e]) for e in events])
    return ranks, (time.perf_counter() - start) / len(events)


def test_events(window, most):
    count = window.events - window.ntrain
    return window.ntrain + np.linspace(0, count - 1, min(most or count, count)).astype(int)


def run_train(args, settings, window, model):
    total = {}
    for epoch, batch, size, loss in train_epochs(
            model, window, settings, settings["epochs"], args.deterministic, args.batches):
        total.setdefault(epoch, []).append((size, loss))
        if args.deterministic:
            print(f"epoch {epoch} batch {batch} loss {loss:.9g}", flush=True)
        elif batch == (window.ntrain - 1) // settings["batch"]:
            sizes, losses = zip(*total[epoch])
            print(f"epoch {epoch} loss {np.average(losses, weights=sizes):.6f}", flush=True)
    if args.evaluate:
        ranks, _ = rank_test(model, window, test_events(window, args.test_events))
        mrr, hits = (1 / ranks).mean(), (ranks <= 10).mean()
        print(f"ranked {len(ranks)} mrr {mrr:.6f} hits@10 {hits:.6f}")


def run_speed(args, settings, window, model):
    for _ in train_epochs(model, window, settings, 1, most=5):
        pass  # warm
    start, batches = time.perf_counter(), 0
    for _ in train_epochs(model, window, settings, 1, most=args.batches):
        batches += 1
    seconds = (time.perf_counter() - start) / batches
    epoch = seconds * math.ceil(window.ntrain / settings["batch"])
    events = test_events(window, args.test_events or 500)
    rank_test(model, window, events[:10])
    _, each = rank_test(model, window, events)
    print(json.dumps({
        "model": settings["model"], "torch": torch.__version__, "threads": args.threads,
        "epoch_s": round(epoch, 3), "batches_timed": batches, "candidates": len(window.catalog),
        "event_ms": round(1000 * each, 3), "pairs_per_s": round(len(window.catalog) / each)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["init", "score", "train", "speed"])
    parser.add_argument("--data", required=True, help="JODIE-style CSV, may be .gz")
    parser.add_argument("--checkpoint", help="start from, or score with, this file")
    parser.add_argument("--out", help="checkpoint (init, train) or scores.npy to write")
    parser.add_argument("--events", default="", help="first:n, window events to score")
    parser.add_argument("--deterministic", action="store_true", help="no dropout, no draws")
    parser.add_argument("--batches", type=int, help="at most this many per epoch")
    parser.add_argument("--evaluate", action="store_true", help="rank the test events at the end")
    parser.add_argument("--test-events", type=int, help="evenly spaced test events instead of all")
    parser.add_argument("--granularity", type=int, default=1, help="score: events of a batch")
    parser.add_argument("--double", action="store_true", help="compute in float64")
    parser.add_argument("--threads", type=int, default=1)
    for key, value in DEFAULTS.items():
        parser.add_argument("--" + key.replace("_", "-"), type=type(value), default=value)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    settings, window, model = prepare(args)
    if args.action == "score":
        first, n = map(int, args.events.split(":")) if args.events else (
            window.ntrain, window.events - window.ntrain)
        model.eval()
        if args.granularity > 1:
            window.cut_by_batches(args.granularity)
        scores = [score(model, window, e).float().numpy() for e in range(first, first + n)]
        np.save(args.out, np.stack(scores))
    elif args.action == "train":
        run_train(args, settings, window, model)
    elif args.action == "speed":
        run_speed(args, settings, window, model)
    if args.action in ("init", "train") and args.out:
        save(args.out, model, window, settings)


if __name__ == "__main__":
    main()
