"""A TGN in PyTorch whose loop stays its own, ranked against the whole catalog.

    python tgn.py wikipedia.csv [EPOCHS]

Every node has a memory, which a GRU updates from the messages of the node's events; a source and a candidate are scored
by a small network on both memories (TGN with identity embedding, Rossi et al. 2020, and a learned vector per node).
Events are taken in batches of 200: the memory a batch sees is that before its first event.
"""
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import fullrank as fr

tensor = torch.tensor  # copies: the columns of a window are the library's, and read-only


class TGN(nn.Module):
    def __init__(self, window, dim=64):
        super().__init__()
        self.shift, nodes = len(window.sources), len(window.sources) + len(window.candidates)  # destinations come after
        self.node = nn.Embedding(nodes, dim)
        self.gru = nn.GRUCell(2 * dim + 1 + window.features.shape[1], dim)
        self.left, self.right, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False), nn.Linear(dim, 1)
        self.memory, self.last = torch.zeros(nodes, dim), torch.zeros(nodes, dtype=torch.float64)
        self.waiting = None  # nodes and messages of the last batch

    def forward(self, source, candidates):
        """Scores [sources, candidates]; candidates are numbers, the same for all sources or one list for each."""
        state = self.node.weight + self.refreshed()
        right = self.right(state[tensor(candidates).long() + self.shift])
        hidden = self.left(state[tensor(source).long()])[:, None] + right
        return self.out(torch.relu(hidden)).squeeze(-1)

    def refreshed(self):
        """All memories, with the messages of the last batch taken in."""
        if self.waiting is None:
            return self.memory
        node, message = self.waiting
        return self.memory.index_copy(0, node, self.gru(message, self.memory[node]))

    def update(self, truth):
        """Takes the waiting messages in for good and keeps those of these events, the last one of each node."""
        self.memory = self.refreshed().detach()
        source, time = tensor(truth.source).long(), tensor(truth.time)
        destination = tensor(truth.destination).long() + self.shift
        features = tensor(truth.features)
        node, other = torch.cat([source, destination]), torch.cat([destination, source])
        gap = torch.log1p((time.repeat(2) - self.last[node]).clamp(min=0)).float()[:, None]
        message = torch.cat([self.memory[node], self.memory[other], gap, features.repeat(2, 1)], 1)
        place = {int(n): k for k, n in enumerate(node)}  # of equal nodes the last
        kept = torch.tensor(sorted(place.values()), dtype=torch.long)
        self.waiting = (node[kept], message[kept]) if len(kept) else None
        self.last[node[kept]] = time.repeat(2)[kept]


class Slice:
    """Some events of a part, as `update` takes them."""

    def __init__(self, part, start, stop):
        for name in ("source", "destination", "time", "features"):
            setattr(self, name, getattr(part, name)[start:stop])


def train(window, epochs=1, batch=200, seed=7):
    torch.manual_seed(seed)
    model, draw = TGN(window), np.random.default_rng(seed)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        model.memory, model.waiting = torch.zeros_like(model.memory), None
        model.last.zero_()
        for start in range(0, len(window.train), batch):
            events = Slice(window.train, start, start + batch)
            negative = draw.choice(window.catalog_numbers, (len(events.source), 5))
            scores = model(events.source, np.column_stack([events.destination, negative]))
            loss = F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
            adam.zero_grad()
            loss.backward()
            adam.step()
            with torch.no_grad():
                model.update(events)
    return model


@torch.no_grad()
def rank(window, model, batch=200, seed=7, keep=None):
    """The loop of the manual: scores first, then the truth. `keep` gets the scores, for who wants a file of them."""
    feed = window.feed("tgn-torch", seed=seed)
    for queries in feed.batches(batch):
        scores = model(queries.source, window.catalog_numbers)
        truth = feed.submit(scores)
        model.update(truth)
        if keep is not None:
            keep.append(scores.numpy())
    return feed.finish()


if __name__ == "__main__":
    window = fr.read(sys.argv[1]).window()
    mine = rank(window, train(window, int(sys.argv[2]) if len(sys.argv) > 2 else 3))
    print(fr.compare(mine, window.rank("baseline:edgebank"), window.rank("baseline:recency")))
