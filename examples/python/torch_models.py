#!/usr/bin/env python3
"""All models in PyTorch, written from their description: a check of ours, and the rival in benchmarks.

    examples/python/torch_models.py train --data DIR --model tgn [--set embedding=identity] [--epochs 3]
        [--init C] [--deterministic] [--batches first:40] [--save C]
    examples/python/torch_models.py score --data DIR --checkpoint C --events first:40 [-o scores.npy]

DIR is made by `fullrank data import`. Both print one JSON document.

train  --deterministic leaves out dropout and takes negatives from the formula, so that from the
       same parameters (--init) two implementations print the same losses. --batches first:N stops
       every epoch after N batches, every:N takes each Nth (models without memory only): for times.
score  writes the scores of all catalog items (float32, events x N) for chosen test events, each
       from the state right before it; the stream is replayed from the end of training. Events are
       chosen as by `fullrank rank --events`: first:N, every:N, all or rows of the stream. Its time
       per event is that of scoring one and observing it; replaying the others does not count.

GraphMixer, TGN and DyGFormer (+LHA) are in this file, CRAFT (-R) in torch_craft.py, the patch
transformer (+LHA) in torch_patch.py. Checkpoints have the tensors, settings, memories and
vocabularies of our own. A checkpoint overrides the command line for model and window; training
always follows the command line. --double computes in float64, to distinguish rounding from errors.
Needs torch and numpy. Nodes are indexed as one space: sources, then destinations; with shared ids
(of the imported data) destinations, then the sources that are none. Histories are ragged: what a
model computes per entry or per patch is one product over all entries of a batch, no padding.
"""
import argparse
import hashlib
import json
import os
import struct
import sys
import time

# PyTorch allocates and frees megabytes per batch; by default, free returns them to the system every time.
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in ALLOCATOR.items()):
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # the tests load this file from elsewhere
from torch_common import (Model, PairHead, PairModel, TransformerLayer, Window, loss_of, negatives,
                          spans, tensor)
from torch_craft import Craft
from torch_patch import Patch

# ---- GraphMixer ----


class MixerLayer(nn.Module):
    def __init__(self, C, K, drop):
        super().__init__()
        self.token_norm = nn.LayerNorm(C)
        self.token_fc1, self.token_fc2 = nn.Linear(K, K // 2), nn.Linear(K // 2, K)
        self.channel_norm = nn.LayerNorm(C)
        self.channel_fc1, self.channel_fc2 = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
        self.drop = drop

    def forward(self, x, place, nodes):
        """x (R,C): the real slots; place: where each lies in (nodes, K)."""
        K, C = self.token_fc2.out_features, x.shape[1]
        y = x.new_zeros(nodes * K, C).index_copy(0, place, self.token_norm(x)).view(nodes, K, C)
        u = self.drop(F.gelu(self.token_fc1.weight @ y + self.token_fc1.bias[:, None]))
        y = self.token_fc2.weight @ u + self.token_fc2.bias[:, None]
        x = x + self.drop(y.view(-1, C).index_select(0, place))
        y = self.drop(F.gelu(self.channel_fc1(self.channel_norm(x))))
        return x + self.drop(self.channel_fc2(y))


class GraphMixer(Model):
    def __init__(self, window, settings):
        super().__init__(window, {**settings, "time_trainable": 0})
        d, self.K, width = settings["dim"], settings["tokens"], settings["head_width"]
        self.proj = nn.Linear(self.edges + settings["time_dim"], d)
        self.layers = nn.ModuleList(
            MixerLayer(d, self.K, self.drop) for _ in range(settings["layers"]))
        self.norm = nn.LayerNorm(d)
        self.output = nn.Linear(d, d)
        self.add_identities(d, 0.02)
        self.head = nn.ModuleDict({"src": nn.Linear(2 * d, width), "dst": nn.Linear(2 * d, width),
                                   "out": nn.Linear(width, 1)})
        self.pool_slots = settings["pool"] == "slots"
        self.padded, self.newest_last = settings["padded"], settings["newest"] == "last"

    def embed(self, nodes, events):
        w, n = self.w, len(nodes)
        end, m = w.newest(nodes, events, self.K)
        past = w.event[spans(end - m, m)]
        row = np.repeat(np.arange(n), m)
        slots = np.full(n, self.K) if self.padded else m  # that exist, from slot 0 on
        age = np.repeat(m - 1, m) - spans(np.zeros_like(m), m)  # 0 = newest
        slot = np.repeat(slots - 1, m) - age if self.newest_last else age
        code = self.time(tensor(w.time[events[row]] - w.time[past]))
        x = self.proj(torch.cat([self.features[tensor(past)], code], 1))
        place = tensor(row * self.K + slot)
        if self.padded:  # the others are rows of zeros
            x = self.zeros(n * self.K, x.shape[1]).index_copy(0, place, x)
            place, row = torch.arange(n * self.K), np.repeat(np.arange(n), self.K)
        for layer in self.layers:
            x = layer(x, place, n)
        total = self.zeros(n, x.shape[1]).index_add(0, tensor(row), self.norm(x))
        if self.pool_slots:
            return self.output(total / self.K)
        return self.output(total / tensor(np.maximum(m, 1)).to(x.dtype)[:, None])

    def forward(self, events, candidates):
        b, C = candidates.shape
        h = self.embed(*self.w.pairs(events, candidates))
        source, target = self.identities()
        source = torch.cat([h[:b], source(tensor(self.w.ends(events)[0]))], 1)
        target = torch.cat([h[b:], target(tensor(candidates.reshape(-1)))], 1)
        sum_ = self.head["src"](source)[:, None] + self.head["dst"](target).view(b, C, -1)
        return self.head["out"](torch.relu(sum_)).squeeze(-1)


# ---- TGN ----


class TGN(Model):
    def __init__(self, window, settings):
        super().__init__(window, settings)
        d, dt = settings["dim"], settings["time_dim"]
        self.K, self.heads = settings["neighbors"], settings["heads"]
        self.raw = 2 * d + dt + self.edges  # width of a message
        self.mlp = settings["message"] == "mlp"
        self.clock = window.clock if settings["clock"] == "file" else window.time
        if self.mlp:
            self.message = nn.ModuleDict({"fc1": nn.Linear(self.raw, self.raw // 2),
                                          "fc2": nn.Linear(self.raw // 2, d)})
        self.gru = nn.GRUCell(d if self.mlp else self.raw, d)
        if settings["identities"]:
            self.node = nn.Embedding(window.nodes, d)
            nn.init.normal_(self.node.weight, 0, 0.02)
        self.attention = settings["embedding"] == "attention"
        if self.attention:
            self.attn = nn.ModuleDict({
                "query": nn.Linear(d + dt, d + dt, bias=False),
                "key": nn.Linear(d + self.edges + dt, d + dt, bias=False),
                "value": nn.Linear(d + self.edges + dt, d + dt, bias=False),
                "out": nn.Linear(d + dt, d + dt), "norm": nn.LayerNorm(d + dt)})
            self.merge = nn.ModuleDict({"fc1": nn.Linear(2 * d + dt, d), "fc2": nn.Linear(d, d)})
        self.head = PairHead(d)
        self.reset()

    def reset(self):
        n = self.w.nodes
        self.memory, self.last = self.zeros(n, self.gru.hidden_size), np.zeros(n)
        self.due, self.due_time = self.zeros(n, self.raw), np.zeros(n)  # messages
        self.pending = np.zeros(n, bool)

    def double(self):
        super().double()
        self.reset()
        return self

    def updated(self, needed):
        """Memories of these distinct nodes with their pending messages taken in."""
        s = self.memory[tensor(needed)]
        at = np.flatnonzero(self.pending[needed])
        if len(at) == 0:
            return s
        node = tensor(needed[at])
        return s.index_copy(0, tensor(at), self.take_in(self.due[node], self.memory[node]))

    def take_in(self, message, memory):
        if self.mlp:
            message = self.message["fc2"](torch.relu(self.message["fc1"](message)))
        return self.gru(message, memory)

    def embed(self, nodes, events):
        w, n = self.w, len(nodes)
        if self.attention:
            end, m = w.newest(nodes, events, self.K)
            real = np.arange(self.K) < m[:, None]
            entry = np.where(real, end[:, None] - 1 - np.arange(self.K), 0)
            other = np.where(real, w.other[entry], nodes[:, None])
        # states to read: in training each node once, with its pending message
        if self.pending.any():
            used = np.zeros(w.nodes, bool)
            used[nodes] = True
            if self.attention:
                used[other] = True
            self.needed = np.flatnonzero(used)
            self.fresh = self.updated(self.needed)
            place = np.cumsum(used) - 1
        else:
            self.needed, self.fresh, place = None, self.memory, np.arange(w.nodes)
        shown = self.fresh
        if hasattr(self, "node"):
            shown = shown + self.node(tensor(np.arange(w.nodes) if self.needed is None else self.needed))
        s = F.embedding(tensor(place[nodes]), shown)
        if not self.attention:
            return s
        past = w.event[entry]
        code = self.time(tensor(w.time[events][:, None] - w.time[past]))
        k = torch.cat([F.embedding(tensor(place[other]), shown),
                       self.features[tensor(past)], code], 2)
        zero = self.time(torch.zeros(1, dtype=torch.float64)).expand(n, -1)
        q0 = torch.cat([s, zero], 1)
        Q = self.attn["query"](q0).view(n, 1, self.heads, -1)
        K, V = (self.attn[x](k).view(n, self.K, self.heads, -1) for x in ("key", "value"))
        mask = tensor(real)[:, :, None]
        logit = (Q * K).sum(3) / K.shape[3] ** 0.5
        a = torch.softmax(logit.masked_fill(~mask, -1e30), 1) * mask  # no neighbour: all 0
        c = (self.attention_drop(a)[..., None] * V).sum(1).view(n, -1)
        o = self.attn["norm"](self.drop(self.attn["out"](c)) + q0)
        return self.merge["fc2"](torch.relu(self.merge["fc1"](torch.cat([o, s], 1))))

    def forward(self, events, candidates):
        b, C = candidates.shape
        z = self.embed(*self.w.pairs(events, candidates))
        source, target = self.head.fc1.weight.chunk(2, 1)
        hidden = F.linear(z[:b], source, self.head.fc1.bias)[:, None]
        hidden = hidden + F.linear(z[b:], target).view(b, C, -1)
        return self.head.fc2(torch.relu(hidden)).squeeze(-1)

    def messages(self, nodes, others, events):
        code = self.time(tensor(self.clock[events] - self.last[nodes]))
        return torch.cat([self.memory[tensor(nodes)], self.memory[tensor(others)], code,
                          self.features[tensor(events)]], 1)

    @torch.no_grad()
    def learned(self, events):
        w = self.w
        # the last entry of every node in the batch
        both = np.stack(w.ends(events), 1).reshape(-1)  # by event, then by end
        nodes, at = np.unique(both[::-1], return_index=True)
        at = len(both) - 1 - at
        if self.needed is not None:
            self.memory[tensor(nodes)] = self.fresh.detach()[
                tensor(np.searchsorted(self.needed, nodes))]
        taken = nodes[self.pending[nodes]]
        self.last[taken] = self.due_time[taken]
        event, others = events[at // 2], both[at ^ 1]
        self.due[tensor(nodes)] = self.messages(nodes, others, event)
        self.due_time[nodes] = self.clock[event]
        self.pending[nodes] = True
        self.fresh = None

    @torch.no_grad()
    def flush(self):
        nodes = np.flatnonzero(self.pending)
        self.memory[tensor(nodes)] = self.updated(nodes)
        self.last[nodes] = self.due_time[nodes]
        self.pending[:] = False

    @torch.no_grad()
    def observe(self, event):
        nodes = np.array(self.w.ends(event))
        message = self.messages(nodes, nodes[::-1].copy(), np.array([event, event]))
        self.memory[tensor(nodes)] = self.take_in(message, self.memory[tensor(nodes)])
        self.last[nodes] = self.clock[event]

    def state(self):
        return {"state.memory": self.memory.float().numpy(), "state.last_update": self.last}

    def load_state(self, tensors):
        self.memory = tensor(tensors["state.memory"].copy()).to(self.memory.dtype)
        self.last = tensors["state.last_update"].copy()


# ---- DyGFormer, with or without LHA ----


class Patches(nn.Module):
    def __init__(self, ch, P, identities, edges, dt):
        super().__init__()
        if identities:
            self.node = nn.Linear(P * identities, ch)
        else:
            self.node = nn.ParameterDict({"bias": torch.zeros(ch)})
        if edges:
            self.edge = nn.Linear(P * edges, ch)
        else:
            self.edge = nn.ParameterDict({"bias": torch.zeros(ch)})
        self.time, self.cooc = nn.Linear(P * dt, ch), nn.Linear(P * ch, ch)


class Side:
    """Token sequences of nodes: their kept entries, which patch slots they fill."""

    def __init__(self, w, nodes, events, L, P):
        self.nodes = nodes
        end, self.m = w.newest(nodes, events, L - 1)
        self.row = np.repeat(np.arange(len(nodes)), self.m)
        self.begin = np.cumsum(self.m) - self.m  # of a node's entries
        entry = spans(end - self.m, self.m)
        self.event, self.other = w.event[entry], w.other[entry]
        self.patches = (self.m + P) // P  # ceil of entries and self, by P
        self.patch = np.cumsum(self.patches) - self.patches  # a node's first
        self.slot = spans(self.patch * P + 1, self.m)
        self.delta = w.time[events[self.row]] - w.time[self.event]


class DyGFormer(PairModel):
    def __init__(self, window, settings):
        super().__init__(window, settings)
        d, dt, self.L, self.P = (settings[k] for k in ("dim", "time_dim", "history", "patch"))
        ch = d // 4
        self.cooc = nn.ModuleDict({"fc1": nn.Linear(1, ch), "fc2": nn.Linear(ch, ch)})
        if settings["identities"]:
            self.node = nn.Embedding(window.nodes, d)
            nn.init.normal_(self.node.weight, 0, 0.02)
        self.patch = Patches(ch, self.P, d if settings["identities"] else 0, self.edges, dt)
        self.layers = nn.ModuleList(
            TransformerLayer(d, settings["heads"], self.drop, self.attention_drop)
            for _ in range(settings["layers"]))
        self.output = nn.Linear(d, d)
        self.head = PairHead(d, d if "gamma" in settings else 0)
        self.remember_pairs(settings, d)

    # the sequences

    def known(self, side):
        """(patches, 3 ch): channels that do not depend on the partner."""
        P, n = self.P, int(side.patches.sum())
        slot, own = tensor(side.slot), tensor(side.patch * P)
        zero = self.time(torch.zeros(1, dtype=torch.float64)).expand(len(own), -1)
        code = self.zeros(n * P, zero.shape[1])
        code = code.index_copy(0, slot, self.time(tensor(side.delta))).index_copy(0, own, zero)
        if hasattr(self, "node"):
            node = self.zeros(n * P, self.node.embedding_dim)
            node = node.index_copy(0, slot, self.node(tensor(side.other)))
            node = node.index_copy(0, own, self.node(tensor(side.nodes)))
            node = self.patch.node(node.view(n, -1))
        else:
            node = self.patch.node["bias"].expand(n, -1)
        if self.edges:
            edge = self.zeros(n * P, self.edges)
            edge[slot] = self.features[tensor(side.event)]
            edge = self.patch.edge(edge.view(n, -1))
        else:
            edge = self.patch.edge["bias"].expand(n, -1)
        return torch.cat([node, edge, self.patch.time(code.view(n, -1))], 1)

    def encode(self, most):
        """(most + 2, ch): codes of counts 0..most, and zeros for a slot that is not there."""
        c = torch.arange(most + 1, dtype=self.time.weight.dtype)[:, None]
        code = self.cooc["fc2"](torch.relu(self.cooc["fc1"](c)))
        return torch.cat([code, code.new_zeros(1, code.shape[1])])

    def sequences(self, source, target, partner):
        """Pair p joins source row partner[p] and target row p. X (patches, d), the sides' segment
        of every patch (2p or 2p + 1), groups of sequences of equal length."""
        P, pairs = self.P, len(partner)
        u, v = source.nodes[partner], target.nodes
        n_u, n_v = source.patches[partner], target.patches
        T = n_u + n_v
        order = np.argsort(T, kind="stable")
        at = np.empty_like(T)  # a pair's first patch; pairs of equal length side by side
        at[order] = np.cumsum(T[order]) - T[order]
        patches = int(T.sum())
        left, right = spans(at, n_u), spans(at + n_u, n_v)
        # tokens of either side, the source's once for each of its pairs: (pair, node, slot)
        m = source.m[partner]
        row = np.repeat(np.arange(pairs), m)
        move = [(at - source.patch[partner]) * P, (at + n_u - target.patch) * P]
        pair = [np.concatenate([np.arange(pairs), r]) for r in (row, target.row)]
        node = [np.concatenate([u, source.other[spans(source.begin[partner], m)]]),
                np.concatenate([v, target.other])]
        slot = [np.concatenate([at * P, source.slot[spans(source.begin[partner], m)]
                                + move[0][row]]),
                np.concatenate([(at + n_u) * P, target.slot + move[1][target.row]])]
        counts = np.full((2, patches * P), self.L + 1)  # missing
        for side in range(2):  # how often a token's node is among the tokens of the side
            keys, number = np.unique(pair[side] * self.w.nodes + node[side], return_counts=True)
            for of in range(2):
                key = pair[of] * self.w.nodes + node[of]
                place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
                counts[side, slot[of]] = np.where(keys[place] == key, number[place], 0)
        table = self.encode(self.L)
        cooc = F.embedding(tensor(counts[0]), table) + F.embedding(tensor(counts[1]), table)
        origin, segment = np.empty(patches, int), np.empty(patches, int)
        origin[left] = spans(source.patch[partner], n_u)
        origin[right] = spans(target.patch + source.patches.sum(), n_v)
        segment[left] = np.repeat(2 * np.arange(pairs), n_u)
        segment[right] = np.repeat(2 * np.arange(pairs) + 1, n_v)
        known = F.embedding(tensor(origin), torch.cat([self.known(source), self.known(target)]))
        X = torch.cat([known, self.patch.cooc(cooc.view(patches, -1))], 1)
        length, number = np.unique(T, return_counts=True)
        return X, tensor(segment), list(zip(number.tolist(), length.tolist()))

    def forward(self, events, candidates):
        w, (b, C) = self.w, candidates.shape
        nodes, when = w.pairs(events, candidates)
        source = Side(w, nodes[:b], when[:b], self.L, self.P)
        target = Side(w, nodes[b:], when[b:], self.L, self.P)
        x, segment, groups = self.sequences(source, target, np.repeat(np.arange(b), C))
        for layer in self.layers:
            x = layer(x, groups)
        total = self.zeros(2 * b * C, x.shape[1]).index_add(0, segment, x)
        z = self.output(total / torch.bincount(segment)[:, None]).view(b * C, -1)
        current = torch.relu(self.head.fc1(z))
        return self.head.fc2(self.beside_memory(events, candidates, current)).view(b, C)

# ---- checkpoints ----

BASE = {"window": 32768, "train_fraction": 0.85, "order": "stream", "dim": 64, "dropout": 0.1,
        "lr": 0.001, "batch": 200, "epochs": 3, "loss": "bce", "seed": 7, "weight_decay": 0.0,
        "negatives": "catalog", "shuffle": 0}
ATTENTION = {**BASE, "heads": 2, "attention_dropout": -1.0}
CODED = {"time_dim": 32, "time_trainable": 0, "edge_dim": -1}
CRAFT = {**ATTENTION, "layers": 2, "history": 320, "attend": 0, "empty": "zero", "head_layers": 2,
         "shuffle": 1}
DYGFORMER = {**ATTENTION, **CODED, "layers": 2, "history": 320, "patch": 10, "identities": 0}
PATCH = {**ATTENTION, "layers": 2, "time_dim": 32, "history": 320, "patch": 10, "shuffle": 1}
LHA = {"gamma": 0.9, "write_every": 1, "shuffle": 0}
MODELS = {
    "craft": (Craft, CRAFT),
    "craft-r": (Craft, CRAFT),
    "graphmixer": (GraphMixer, {**BASE, **CODED, "layers": 2, "tokens": 30, "head_width": 100,
                                "pool": "slots", "padded": 0, "newest": "first"}),
    "tgn": (TGN, {**ATTENTION, **CODED, "embedding": "attention", "neighbors": 10,
                  "message": "identity", "clock": "window", "identities": 0}),
    "dygformer": (DyGFormer, DYGFORMER),
    "dygformer-lha": (DyGFormer, {**DYGFORMER, **LHA}),
    "patch": (Patch, PATCH),
    "patch-lha": (Patch, {**PATCH, **LHA}),
}
TRAINING = ("dropout", "attention_dropout", "lr", "batch", "epochs", "loss", "seed", "weight_decay",
            "negatives", "shuffle")
TYPES = {"<f4": "F32", "<f8": "F64", "<i8": "I64"}


def read_checkpoint(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    code = {v: k for k, v in TYPES.items()}
    return metadata, {
        name: np.frombuffer(data[slice(*t["data_offsets"])], code[t["dtype"]]).reshape(t["shape"])
        for name, t in header.items()}


def save_checkpoint(path, model, window, settings, metadata):
    tensors = {name: t.detach().float().numpy() for name, t in model.state_dict().items()}
    tensors.update(model.state())
    tensors["vocab.src"] = window.src_ids.astype("<i8")
    tensors["vocab.dst"] = window.dst_ids.astype("<i8")
    if window.shared:
        tensors["vocab.node"] = window.node_ids.astype("<i8")
    facts = {"n_src": window.sources, "n_dst": len(window.dst_ids),
             "n_catalog": len(window.catalog), "ntrain": window.ntrain,
             "data_sha256": window.sha256, "catalog_sha256": hashlib.sha256(
                 window.dst_ids[window.catalog].astype("<i8").tobytes()).hexdigest()}
    settings = {**settings, "window": window.events, "shuffle": "yes" if settings["shuffle"] else "no"}
    if "edge_dim" in settings:
        settings["edge_dim"] = window.features.shape[1]
    header = {"__metadata__": {k: str(v) for k, v in {**metadata, **settings, **facts}.items()}}
    at = 0
    for name, t in tensors.items():
        header[name] = {"dtype": TYPES[t.dtype.str], "shape": list(t.shape),
                        "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            file.write(np.ascontiguousarray(t).tobytes())


def parsed(text, default):
    if text in ("no", "false", "yes", "true"):
        return int(text in ("yes", "true"))
    return type(default)(text)


def prepare(args):
    """Settings, window, model and the checkpoint's metadata, from it where there is one."""
    path = args.init if args.action == "train" else args.checkpoint
    metadata, tensors = read_checkpoint(path) if path else ({}, {})
    name = metadata.get("model") or args.model
    if name not in MODELS:
        sys.exit(f"model {name}: expected one of {', '.join(MODELS)}")
    kind, defaults = MODELS[name]
    settings = {"model": name, **defaults}
    for key, _, text in (pair.partition("=") for pair in args.set):
        if key not in defaults:
            sys.exit(f"--set {key}: expected one of {', '.join(defaults)}")
        settings[key] = parsed(text, defaults[key])
    for key in defaults:
        if key in metadata and key not in TRAINING:
            settings[key] = parsed(metadata[key], defaults[key])
    if args.action == "train":
        settings["epochs"] = settings["epochs"] if args.epochs is None else args.epochs
        if args.deterministic:
            settings.update(dropout=0.0, attention_dropout=0.0, shuffle=0)
    window = Window(args.data, settings)
    torch.manual_seed(settings["seed"])
    model = kind(window, settings)
    if args.double:
        model.double()
    if tensors:
        vocabulary = {"vocab.src": window.src_ids, "vocab.dst": window.dst_ids}
        if window.shared:
            vocabulary["vocab.node"] = window.node_ids
        for name, ids in vocabulary.items():
            if not np.array_equal(tensors.pop(name), ids):
                sys.exit(f"{path}: {name} is not that of the window")
        model.load_state_dict({name: tensor(t.copy()) for name, t in tensors.items()
                               if not name.startswith("state.")})
        if args.action == "score":
            model.load_state(tensors)
    return settings, window, model, metadata


# ---- work ----


def chosen(text, things):
    """first:N or every:N of an array; None if the text is neither."""
    word, _, number = text.partition(":")
    if text == "all":
        return things
    return {"first": things[:int(number)], "every": things[::int(number)]}[word] if number else None


def train(args, settings, window, model, metadata):
    trainable = [p for p in model.parameters() if p.requires_grad]
    for p in trainable:  # a step moves, and counts for, also what has no gradient yet
        p.grad = torch.zeros_like(p)
    optimiser = torch.optim.AdamW(trainable, settings["lr"], eps=1e-8, fused=True,
                                  weight_decay=settings["weight_decay"])  # 0: it is Adam
    draws = None if args.deterministic else np.random.default_rng(settings["seed"])
    model.train()
    order, starts = np.arange(window.ntrain), np.arange(0, window.ntrain, settings["batch"])
    pool = window.catalog if settings["negatives"] == "catalog" else np.arange(len(window.dst_ids))
    losses, means, seconds, timed = [], [], [], chosen(args.batches, starts)
    if timed is None or (timed is not starts and "every" in args.batches and model.state()):
        sys.exit(f"--batches {args.batches}: expected all, first:N or, without memory, every:N")
    for epoch in range(settings["epochs"]):
        begin, total, count = time.perf_counter(), 0.0, 0
        model.reset()
        if settings["shuffle"]:
            draws.shuffle(order)
        for at in timed:
            events = order[at:at + settings["batch"]]
            pairs = np.stack([window.dst[events], negatives(window, pool, events, epoch, draws)], 1)
            loss = loss_of(model(events, pairs), settings["loss"])
            optimiser.zero_grad(set_to_none=False)
            loss.backward()
            model.learned(events)
            optimiser.step()
            losses.append(loss.item())
            total, count = total + losses[-1] * len(events), count + len(events)
        seconds.append((time.perf_counter() - begin) / len(timed) * len(starts))
        means.append(total / count)
        print(f"epoch {epoch}: loss {means[-1]:.6f}, {seconds[-1]:.2f} s", file=sys.stderr)
    model.eval()
    model.flush()
    if args.save:
        save_checkpoint(args.save, model, window, settings, metadata)
    return {"parameters": sum(p.numel() for p in trainable), "first_losses": losses[:args.losses],
            "loss": means, "seconds_per_epoch": seconds, "batches_timed": len(timed)}


@torch.no_grad()
def score(args, settings, window, model, _):
    test = np.arange(window.ntrain, window.events)
    source, target = window.ends(test)
    loop = source == target  # the source is no candidate
    ranked = test[np.isin(window.dst[test], window.catalog) & ~loop]
    wanted = chosen(args.events, ranked)
    if wanted is None:
        wanted = np.unique([int(r) for r in args.events.split(",")]) - window.first
        if not np.isin(wanted, ranked).all():
            sys.exit(f"--events {args.events}: not all are ranked events")
    if args.granularity > 1:
        window.cut_by_batches(args.granularity)
    model.eval()
    place = {event: row for row, event in enumerate(wanted)}
    scores = np.empty((len(wanted), len(window.catalog)), np.float32)
    seconds = []
    observed = window.ntrain
    for event in range(window.ntrain, wanted[-1] + 1):
        begin = time.perf_counter()
        for earlier in range(observed, window.cut[event]):
            model.observe(earlier)
        observed = max(observed, window.cut[event])
        if event in place:
            s = model(np.array([event]), window.catalog[None])[0]
            scores[place[event]] = s.numpy()
            seconds.append(time.perf_counter() - begin)
    if args.out:
        np.save(args.out, scores)
    own = scores[np.arange(len(wanted)), np.searchsorted(window.catalog, window.dst[wanted])]
    above = (scores > own[:, None]).sum(1)
    ranks = 1 + above + ((scores == own[:, None]).sum(1) - 1) / 2
    return {"events": len(wanted), "candidates": len(window.catalog),
            "event_ms": 1000 * np.mean(seconds), "best_event_ms": 1000 * np.min(seconds),
            "mrr": (1 / ranks).mean(), "hits@10": (ranks <= 10).mean()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["train", "score"])
    parser.add_argument("--data", required=True, help="directory made by `fullrank data import`")
    parser.add_argument("--model", help=", ".join(MODELS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--init", help="train: begin with the parameters of this checkpoint")
    parser.add_argument("--deterministic", action="store_true", help="train: no random choices")
    parser.add_argument("--batches", default="all", help="train: all, first:N or every:N")
    parser.add_argument("--losses", type=int, default=10, help="train: how many batches to tell of")
    parser.add_argument("--save", help="train: checkpoint to write")
    parser.add_argument("--checkpoint", help="score: what to score with")
    parser.add_argument("--events", default="all", help="score: all, first:N, every:N or rows 5,9")
    parser.add_argument("-o", "--out", help="score: scores.npy to write")
    parser.add_argument("--granularity", type=int, default=1, help="score: events of a batch")
    parser.add_argument("--double", action="store_true", help="compute in float64")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    prepared = prepare(args)
    result = (train if args.action == "train" else score)(args, *prepared)
    print(json.dumps({"model": prepared[0]["model"], "torch": torch.__version__,
                      "threads": args.threads, **result}))


if __name__ == "__main__":
    main()
