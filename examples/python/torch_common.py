"""What the models in PyTorch share: the stream, their interface, a memory of pairs, negatives and losses."""
import json
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

tensor = torch.from_numpy


# ---- the stream ----


def spans(start, count):
    """start[0], start[0]+1, .. (count[0] numbers), start[1], ..: ranges end to end."""
    return np.repeat(start - np.cumsum(count) + count, count) + np.arange(count.sum())


class Window:
    """The last events of an imported directory; the events of every node, of either role."""

    def __init__(self, folder, settings):
        read = lambda name: np.load(f"{folder}/{name}.npy", mmap_mode="r")
        with open(f"{folder}/manifest.json", encoding="utf-8") as file:
            manifest = json.load(file)
        self.sha256, self.shared = manifest["sha256"], manifest.get("shared_ids", False)
        self.time = np.array(read("time")[-settings["window"]:])
        W = self.events = len(self.time)
        self.first = len(read("time")) - W  # row of the stream
        self.clock = self.time.copy()  # as in the data
        self.time -= self.time[0]
        users, self.src = np.unique(read("source")[-W:], return_inverse=True)
        items, self.dst = np.unique(read("destination")[-W:], return_inverse=True)
        self.src_ids, self.dst_ids = read("source_ids")[users], read("destination_ids")[items]
        self.ntrain = int(settings["train_fraction"] * W)
        self.catalog = np.unique(self.dst[:self.ntrain])
        self.cut = np.arange(W)  # the past of event i: events below cut[i]
        if settings["order"] == "strict":
            self.cut = np.searchsorted(self.time, self.time)
        self.number_nodes()
        width = settings.get("edge_dim", 0)
        if width < 0:  # as many as there are
            there = os.path.exists(f"{folder}/features.npy")
            width = read("features").shape[1] if there else 0
        self.features = np.array(read("features")[-W:]) if width else np.zeros((W, 0), np.float32)
        # every event is an entry of its source and one of its destination, in ascending order
        node = np.concatenate([self.src_node[self.src], self.dst + self.first_dst])
        order = np.lexsort([np.arange(2 * W) % W, node])
        self.event = order % W
        self.other = np.roll(node, W)[order]
        self.key = node[order] * W + self.event
        self.start = np.searchsorted(node[order], np.arange(self.nodes + 1))

    def number_nodes(self):
        """The node of every source, and that of destination 0."""
        self.sources = len(self.src_ids)
        self.src_node, self.first_dst = np.arange(self.sources), self.sources
        self.node_ids = np.concatenate([self.src_ids, self.dst_ids])
        if self.shared:
            others = np.setdiff1d(self.src_ids, self.dst_ids)
            self.node_ids, self.first_dst = np.concatenate([self.dst_ids, others]), 0
            where = {node: k for k, node in enumerate(self.node_ids.tolist())}
            self.src_node = np.array([where[node] for node in self.src_ids.tolist()])
        self.nodes = len(self.node_ids)

    def barred(self, items, events):
        """Destinations that are not negatives of the events."""
        mine = self.shared & (self.ends(events)[0] == items)
        return (items == self.dst[events]) | mine

    def ends(self, events):
        """The nodes of both ends."""
        return self.src_node[self.src[events]], self.dst[events] + self.first_dst

    def cut_by_batches(self, size):
        """Test events see what came before their batch (PROTOCOL 14)."""
        test = np.arange(self.events - self.ntrain)
        self.cut[self.ntrain:] = self.ntrain + test // size * size

    def newest(self, nodes, events, most):
        """The nodes' entries before the events: one past the newest, and how many, up to most."""
        end = np.searchsorted(self.key, nodes * self.events + self.cut[events])
        return end, np.minimum(end - self.start[nodes], most)

    def pairs(self, events, candidates):
        """Nodes and events of b sources, then of their (b,C) candidates, flat."""
        flat = np.repeat(events, candidates.shape[1])
        return (np.concatenate([self.ends(events)[0], candidates.reshape(-1) + self.first_dst]),
                np.concatenate([events, flat]))


# ---- what models share ----


class TimeCode(nn.Module):
    """cos(w D + b), the angle in double."""

    def __init__(self, width, trainable):
        super().__init__()
        start = 10.0 ** (-9 * torch.arange(width, dtype=torch.float64) / (width - 1))
        self.weight = nn.Parameter(start.float(), requires_grad=trainable)
        self.bias = nn.Parameter(torch.zeros(width), requires_grad=trainable)

    def forward(self, delta):
        angle = delta[..., None] * self.weight.double() + self.bias.double()
        return torch.cos(angle).to(self.weight.dtype)


class PairHead(nn.Module):
    def __init__(self, d, memory=0):
        super().__init__()
        self.fc1 = nn.Linear(2 * d, d)
        self.fc2 = nn.Linear(d + memory, 1)


class Model(nn.Module):
    """forward: logits (b,C) of destinations (b,C) at window events (b). The rest is memory.

    Attributes are declared in the order of the checkpoint's tensors.
    """

    def __init__(self, window, settings):
        super().__init__()
        self.w, self.drop = window, nn.Dropout(settings["dropout"])
        own = settings.get("attention_dropout", -1)  # of attention weights
        self.attention_drop = self.drop if own < 0 else nn.Dropout(own)
        self.edges = window.features.shape[1]
        self.features = tensor(window.features)
        if "time_trainable" in settings:
            self.time = TimeCode(settings["time_dim"], bool(settings["time_trainable"]))

    def double(self):
        self.features = self.features.double()
        return super().double()

    def reset(self):
        """Called when an epoch begins."""

    def learned(self, events):
        """Called after the forward pass of a training batch, before the parameters change."""

    def flush(self):
        """Called after training."""

    def observe(self, event):
        """Called after each test event."""

    def state(self):
        return {}

    def load_state(self, tensors):
        pass

    @property
    def dtype(self):
        return next(self.parameters()).dtype

    def zeros(self, *shape):
        return torch.zeros(shape, dtype=self.dtype)

    def add_identities(self, d, deviation):
        """A learned vector of every node: src and dst, with shared ids node."""
        if self.w.shared:
            self.node = nn.Embedding(self.w.nodes, d)
        else:
            self.src = nn.Embedding(self.w.sources, d)
            self.dst = nn.Embedding(self.w.nodes - self.w.sources, d)
        for table in self.identities():
            nn.init.normal_(table.weight, 0, deviation)

    def identities(self):
        """The tables of sources and of destinations."""
        return (self.node, self.node) if self.w.shared else (self.src, self.dst)


class TransformerLayer(nn.Module):
    def __init__(self, d, heads, drop, attention_drop):
        super().__init__()
        self.heads, self.drop, self.attention_drop = heads, drop, attention_drop
        self.norm1 = nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        nn.init.uniform_(self.qkv.weight, -(6 / (4 * d)) ** 0.5, (6 / (4 * d)) ** 0.5)
        for linear in (self.qkv, self.out):
            nn.init.zeros_(linear.bias)
        self.norm2 = nn.LayerNorm(d)
        self.ffn1, self.ffn2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, groups):
        """x (patches, d): sequences end to end; groups (number, length) of equal ones."""
        d = x.shape[1]
        qkv, mixed, at = self.qkv(self.norm1(x)), [], 0
        for part in qkv.split([n * T for n, T in groups]):
            n, T = groups[at]
            q, k, v = part.view(n, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            c = F.scaled_dot_product_attention(q, k, v, None, self.attention_drop.p * self.training)
            mixed.append(c.transpose(1, 2).reshape(-1, d))
            at += 1
        x = x + self.drop(self.out(torch.cat(mixed)))
        return x + self.drop(self.ffn2(self.drop(F.gelu(self.ffn1(self.norm2(x))))))


class PairModel(Model):
    """With `gamma`, remembers the last states of every pair (LHA); without it, nothing."""

    def remember_pairs(self, settings, width):
        """Called at the end of __init__."""
        self.gamma, self.width = settings.get("gamma"), width
        self.write_every = settings.get("write_every", 1)
        self.pair_ids = np.unique(self.w.src * self.w.nodes + self.w.dst)
        self.reset()

    def beside_memory(self, events, candidates, current):
        """current (b C, width), joined with what is remembered of each pair."""
        if self.gamma is None:
            return current
        b, C = candidates.shape
        self.now = events, candidates, current.detach().view(b, C, -1)
        place = self.places(np.repeat(self.w.src[events], C), candidates.reshape(-1))
        return torch.cat([current, self.pairs[tensor(place)]], 1)

    def reset(self):
        if self.gamma is None:
            return
        # one more row stays zero, for pairs that never occur
        self.pairs = self.zeros(len(self.pair_ids) + 1, self.width)
        self.stored = np.zeros(len(self.pair_ids), bool)
        self.now = None  # the last forward: events, candidates, states
        self.waiting = []  # events and states to be written together

    def double(self):
        super().double()
        self.reset()
        return self

    def places(self, src, dst):
        key = src * self.w.nodes + dst
        at = np.searchsorted(self.pair_ids, key)
        there = self.pair_ids[np.minimum(at, len(self.pair_ids) - 1)] == key
        return np.where(there, at, len(self.pair_ids))

    @torch.no_grad()
    def write(self, events, current):
        """The last event of a pair wins; all have read the same old row."""
        place, at = np.unique(self.places(self.w.src[events], self.w.dst[events])[::-1],
                              return_index=True)
        new, row = current[tensor(len(events) - 1 - at)], tensor(place)
        self.pairs[row] = self.gamma * new + (1 - self.gamma) * self.pairs[row]
        self.stored[place] = True

    def learned(self, events):
        if self.gamma is not None:
            self.write(events, self.now[2][:, 0])

    @torch.no_grad()
    def observe(self, event):
        if self.gamma is None:
            return
        events, dst = np.array([event]), self.w.dst[event]
        if self.now is None or self.now[0][0] != event or dst not in self.now[1]:
            self(events, np.array([[dst]]))
        self.waiting.append((event, self.now[2][0, np.flatnonzero(self.now[1][0] == dst)]))
        if len(self.waiting) == self.write_every:
            events, current = zip(*self.waiting)
            self.write(np.array(events), torch.cat(current))
            self.waiting = []

    def state(self):
        if self.gamma is None:
            return {}
        ids = self.pair_ids[self.stored]
        return {"state.pair.src": ids // self.w.nodes, "state.pair.dst": ids % self.w.nodes,
                "state.pair.value": self.pairs[:-1][tensor(self.stored)].float().numpy()}

    def load_state(self, tensors):
        if self.gamma is None:
            return
        place = self.places(tensors["state.pair.src"], tensors["state.pair.dst"])
        self.pairs[tensor(place)] = tensor(tensors["state.pair.value"].copy()).to(self.pairs.dtype)
        self.stored[place] = True


# ---- training ----


def negatives(window, pool, events, epoch, draws):
    """One destination of the pool per event, never its own nor, with shared ids, its source; from
    the rule if there are no draws."""
    n = len(pool)
    k = (7919 * events + 104729 * epoch + 17) % n
    if draws is not None:
        k = draws.integers(n, size=len(events))
    while (same := window.barred(pool[k], events)).any():
        k[same] = (k[same] + 1) % n if draws is None else draws.integers(n, size=same.sum())
    return pool[k]


def loss_of(s, kind):
    if kind == "bpr":
        return F.softplus(s[:, 1] - s[:, 0]).mean()
    return (F.softplus(-s[:, 0]) + F.softplus(s[:, 1])).mean() / 2
