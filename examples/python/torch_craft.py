"""CRAFT and CRAFT-R in PyTorch, written from their description (docs/models.md, 2).

torch_models.py trains them and scores with them. Histories are ragged, not padded."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from torch_common import Model, spans, tensor

NEVER = -100000.0  # "elapsed time" of a destination without any event
EPS = 1e-12


class Layer(nn.Module):
    def __init__(self, d, heads, drop, attention_drop):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.attn_norm = nn.LayerNorm(d, EPS)
        self.ffn1, self.ffn2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.ffn_norm = nn.LayerNorm(d, EPS)
        self.drop, self.attention_drop = drop, attention_drop

    def attend_one(self, q, k, v):
        """One event: q (1,C,d) over its m entries k, v (m,d)."""
        split = lambda x: x.view(-1, self.heads, q.shape[2] // self.heads).transpose(0, 1)
        q_, k_, v_ = split(q), split(k), split(v)
        a = torch.softmax(q_ @ k_.transpose(1, 2) / math.sqrt(q_.shape[2]), 2)
        return (self.attention_drop(a) @ v_).transpose(0, 1).reshape(q.shape)

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
        a = self.attention_drop(e / F.embedding(row, per_event(e)))
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
    def __init__(self, width, layers, drop):
        super().__init__()
        if layers == 2:
            self.fc1 = nn.Linear(width, width)
            self.prelu = nn.Parameter(torch.tensor([0.15]))
        self.fc2 = nn.Linear(width, 1)
        self.drop = drop

    def forward(self, z):
        if hasattr(self, "fc1"):
            z = self.drop(F.prelu(self.fc1(z), self.prelu))
        return self.fc2(z).squeeze(-1)


class Craft(Model):
    """Attributes are declared in the order of the checkpoint's tensors."""

    def __init__(self, window, settings):
        super().__init__(window, settings)
        d, self.history = settings["dim"], settings["history"]
        self.attended = settings["attend"] or self.history
        self.pad = settings["empty"] == "pad"
        # items are destinations; with shared ids, the other nodes follow
        self.item = nn.Embedding(window.nodes - window.first_dst, d)
        self.position = nn.Embedding(self.attended, d)
        self.input_norm = nn.LayerNorm(d, EPS)
        self.layers = nn.ModuleList(
            Layer(d, settings["heads"], self.drop, self.attention_drop)
            for _ in range(settings["layers"]))
        self.elapsed, self.elapsed_norm = nn.Linear(1, d), nn.LayerNorm(d, EPS)
        self.counts = settings["model"] == "craft-r"
        if self.counts:
            self.repeat, self.repeat_norm = nn.Linear(1, d), nn.LayerNorm(d, EPS)
        self.head = Head(d * (3 if self.counts else 2), settings["head_layers"], self.drop)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0, 0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def met(self, events, most):
        """Items that each event's source met last, oldest first, end to end; their numbers."""
        end, m = self.w.newest(self.w.ends(events)[0], events, most)
        return self.w.other[spans(end - m, m)] - self.w.first_dst, m

    def keys(self, events):
        """What queries attend to, end to end (keys, d), and how many of it each event has."""
        items, m = self.met(events, self.attended)
        rows = np.where((m == 0) & self.pad, self.attended, m)
        x = self.position(tensor(spans(np.zeros_like(rows), rows)))
        real = np.repeat(m > 0, rows)
        x = x.index_add(0, tensor(np.flatnonzero(real)), self.item(tensor(items)))
        x = self.drop(self.input_norm(x))
        if not real.all():  # the empty slots of an event are one key: they count alike
            n = np.maximum(m, 1)
            begins = np.zeros(len(real), bool)
            begins[np.cumsum(rows) - rows] = True
            key = np.cumsum(begins | real) - 1
            size = tensor(np.bincount(key)).to(x.dtype)
            x, m = self.zeros(n.sum(), x.shape[1]).index_add(0, tensor(key), x) / size[:, None], n
        return x, m

    def since(self, events, candidates):
        """(b,C): seconds since each candidate's last event, in float32."""
        w, flat = self.w, np.repeat(events, candidates.shape[1])
        end, known = w.newest(candidates.reshape(-1) + w.first_dst, flat, 1)
        seconds = np.where(known > 0, w.time[flat] - w.time[w.event[end - 1]], NEVER)
        return tensor(seconds.astype(np.float32).reshape(candidates.shape)).to(self.dtype)

    def repeats(self, events, candidates):
        """(b,C): how often each candidate stands among the last `history` items."""
        items, m = self.met(events, self.history)
        if len(events) == 1:
            found = np.bincount(items, minlength=self.item.num_embeddings)[candidates]
        else:
            row = np.repeat(np.arange(len(events)), m)
            found = np.stack([np.bincount(row, items == c[row], len(events)) for c in candidates.T], 1)
        return tensor(found).to(self.dtype)

    def forward(self, events, candidates):
        q = self.drop(self.input_norm(self.item(tensor(candidates))))
        x, m = self.keys(events)
        row = tensor(np.repeat(np.arange(len(m)), m))
        for layer in self.layers:
            q = layer(q, x, row, tensor(m))
        elapsed = self.since(events, candidates)
        z = [q, self.drop(self.elapsed_norm(self.elapsed(elapsed[..., None])))]
        if self.counts:
            repeats = self.repeats(events, candidates)
            z.append(self.drop(self.repeat_norm(self.repeat(repeats[..., None]))))
        return self.head(torch.cat(z, -1))
