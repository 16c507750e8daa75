"""A TGN in PyTorch whose loop stays its own, ranked against the whole catalog.

    python tgn.py wikipedia.csv [EPOCHS]

Every node has a memory, which a GRU updates from the messages of the node's events; a source and a candidate are scored
by a small network on both memories (TGN with identity embedding, Rossi et al. 2020, and a learned vector per node).
Events are taken in batches of 200: the memory a batch sees is that before its first event."""
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import fullrank as fr


class TGN(nn.Module):
    def __init__(self, window, dim=64):
        super().__init__()
        self.sources, self.nodes = len(window.sources), len(window.sources) + len(window.candidates)
        self.node, self.gru = nn.Embedding(self.nodes, dim), nn.GRUCell(2 * dim + 1, dim)
        self.left, self.right, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False), nn.Linear(dim, 1)

    def forget(self):
        self.memory, self.last = torch.zeros_like(self.node.weight), torch.zeros(self.nodes, dtype=torch.float64)
        self.pending, self.message = torch.zeros(0, dtype=torch.long), torch.zeros(0, self.gru.input_size)

    def refreshed(self):
        """All memories, updated by the messages of the last batch."""
        return self.memory.index_copy(0, self.pending, self.gru(self.message, self.memory[self.pending]))

    def forward(self, source, candidates):
        """Scores [sources, candidates]; candidates are the same for all sources, or one list for each."""
        state = self.node.weight + self.refreshed()
        right = self.right(state[torch.tensor(candidates).long() + self.sources])
        return self.out(torch.relu(self.left(state[torch.tensor(source).long()])[:, None] + right)).squeeze(-1)

    @torch.no_grad()
    def update(self, source, destination, time):
        """Stores the update by the pending messages, and keeps the messages of these events, the last one of each node."""
        self.memory, time = self.refreshed(), torch.tensor(time).repeat(2)
        ends = np.concatenate([source, destination + self.sources])
        node, other = torch.tensor(ends).long(), torch.tensor(np.roll(ends, len(source))).long()
        gap = torch.log1p((time - self.last[node]).clamp(min=0)).float()[:, None]
        message = torch.cat([self.memory[node], self.memory[other], gap], 1)
        kept = torch.tensor(len(ends) - 1 - np.unique(ends[::-1], return_index=True)[1])
        self.pending, self.message, self.last[node[kept]] = node[kept], message[kept], time[kept]


def train(window, epochs=1, batch=200, seed=7):
    torch.manual_seed(seed)
    model, draw, events = TGN(window), np.random.default_rng(seed), window.train
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        model.forget()
        for at in (slice(start, start + batch) for start in range(0, len(events), batch)):
            negative = draw.choice(window.catalog_numbers, (len(events.source[at]), 5))
            scores = model(events.source[at], np.column_stack([events.destination[at], negative]))
            adam.zero_grad()
            F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long)).backward()
            adam.step()
            model.update(events.source[at], events.destination[at], events.time[at])
    return model


@torch.no_grad()
def rank(window, model, batch=200, seed=7, keep=lambda scores: None):
    """The loop of the manual: scores first, then the truth. `keep` gets the scores, for example to write them to a file."""
    feed = window.feed("tgn-torch", seed=seed)
    for queries in feed.batches(batch):
        scores = model(queries.source, window.catalog_numbers)
        truth = feed.submit(scores)
        model.update(truth.source, truth.destination, truth.time)
        keep(scores.numpy())
    return feed.finish()


if __name__ == "__main__":
    window = fr.read(sys.argv[1]).window()
    mine = rank(window, train(window, int(sys.argv[2]) if len(sys.argv) > 2 else 3))
    print(fr.compare(mine, window.rank("baseline:edgebank"), window.rank("baseline:recency")))
