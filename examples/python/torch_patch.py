"""The patch transformer (+LHA) in PyTorch, written from its description (docs/models.md, 13).

torch_models.py trains it and scores with it."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from torch_common import PairModel, TransformerLayer, spans, tensor


class Patch(PairModel):
    """Attributes are declared in the order of the checkpoint's tensors."""

    def __init__(self, window, settings):
        super().__init__(window, settings)
        d, self.dt, self.L, self.P = (settings[k] for k in ("dim", "time_dim", "history", "patch"))
        self.lha = "gamma" in settings
        self.add_identities(d, 1)
        self.token, self.token_norm = nn.Linear(d + self.dt, d), nn.LayerNorm(d)
        self.patch, self.patch_norm = nn.Linear(self.P * d, d), nn.LayerNorm(d)
        self.layers = nn.ModuleList(
            TransformerLayer(d, settings["heads"], self.drop, self.attention_drop)
            for _ in range(settings["layers"]))
        self.query, self.query_norm = nn.Linear(2 * d + self.dt, d), nn.LayerNorm(d)
        self.attn = nn.ModuleDict({x: nn.Linear(d, d) for x in ("query", "key", "value")})
        self.state_norm = nn.LayerNorm(d)
        self.head = nn.ModuleDict({"fc1": nn.Linear((2 if self.lha else 4) * d, d),
                                   "fc2": nn.Linear((2 if self.lha else 1) * d, 1)})
        self.remember_pairs(settings, d)

    def code(self, seconds):
        """Sine and cosine of log(1 + seconds) at dt / 2 speeds."""
        x = np.log1p(np.maximum(seconds, 0))[:, None] / np.exp(np.linspace(0, 6, self.dt // 2))
        return tensor(np.concatenate([np.sin(x), np.cos(x)], 1)).to(self.dtype)

    def read_sources(self, events):
        """Their patches end to end (patches, d), and how many each event has, one at least."""
        w, nodes = self.w, self.w.ends(events)[0]
        end, m = w.newest(nodes, events, self.L)
        n = -(-m // self.P)
        rows = np.maximum(n, 1)
        # tokens of whole patches; the first ones of an event may have no entry
        tokens = n.sum() * self.P
        entry, real = spans(end - m, m), spans(np.cumsum(n) * self.P - m, m)
        elapsed = np.zeros(tokens)
        elapsed[real] = w.time[np.repeat(events, m)] - w.time[w.event[entry]]
        identity = self.identities()[1](tensor(w.other[entry] - w.first_dst))
        identity = self.zeros(tokens, identity.shape[1]).index_copy(0, tensor(real), identity)
        x = self.token(torch.cat([identity, self.code(elapsed)], 1))
        x = F.gelu(self.token_norm(x)).view(n.sum(), self.P * x.shape[1])
        x = F.gelu(self.patch_norm(self.patch(x)))
        place = spans(np.cumsum(rows) - rows, n)  # without a past: one patch of zeros
        return self.zeros(rows.sum(), x.shape[1]).index_copy(0, tensor(place), x), rows

    def forward(self, events, candidates):
        # events with the same number of patches follow each other
        _, m = self.w.newest(self.w.ends(events)[0], events, self.L)
        order = np.argsort(m, kind="stable")
        back = np.argsort(order)
        found = self.hidden(events[order], candidates[order])
        z, s, item = (x if len(m) == 1 else x[tensor(back)] for x in found)
        z, (b, C) = z.flatten(0, 1), candidates.shape
        if self.lha:
            current = torch.relu(self.head["fc1"](z))
            return self.head["fc2"](self.beside_memory(events, candidates, current)).view(b, C)
        hidden = self.drop(F.gelu(self.head["fc1"](z)))
        product = (s * item).sum(2) / s.shape[2] ** 0.5
        return product + self.head["fc2"](hidden).view(b, C)

    def hidden(self, events, candidates):
        """(b,C,.): what the head sees, and of it s and e(v)."""
        p, rows = self.read_sources(events)
        length, number = np.unique(rows, return_counts=True)
        groups = list(zip(number.tolist(), length.tolist()))
        for layer in self.layers:
            p = layer(p, groups)
        source, target = self.identities()
        own, item = source(tensor(self.w.ends(events)[0]))[:, None], target(tensor(candidates))
        # the product of the query with e(u) and the time is the same for all candidates
        d = item.shape[2]
        for_u, for_v, for_t = self.query.weight.split([d, d, self.dt], 1)
        shared = F.linear(self.code(self.w.clock[events]), for_t, self.query.bias)[:, None]
        q = F.linear(own, for_u) + shared + F.linear(item, for_v)
        q = F.gelu(self.query_norm(q))
        c = self.attend(self.attn["query"](q), self.attn["key"](p), self.attn["value"](p), groups)
        s = self.state_norm(own + c)
        return torch.cat([s, item] if self.lha else [s, item, q, c], 2), s, item

    def attend(self, q, k, v, groups):
        """q (b,C,d) of each event over its own patches of k and v (patches, d)."""
        found, sizes = [], [n * T for n, T in groups]
        for (n, T), a, key, value in zip(groups, q.split([n for n, _ in groups]), k.split(sizes),
                                         v.split(sizes)):
            found.append(F.scaled_dot_product_attention(
                a, key.view(n, T, -1), value.view(n, T, -1), None,
                self.attention_drop.p * self.training))
        return torch.cat(found)
