"""What the two PyTorch implementations share: torch_craft.py and torch_models.py import it."""
import torch.nn.functional as F


def negatives(window, events, epoch, draws):
    """One catalog item per event, never its destination nor, with shared ids, its source; from the
    rule if there are no draws."""
    n = len(window.catalog)
    k = (7919 * events + 104729 * epoch + 17) % n
    if draws is not None:
        k = draws.integers(n, size=len(events))
    while (same := window.barred(window.catalog[k], events)).any():
        k[same] = (k[same] + 1) % n if draws is None else draws.integers(n, size=same.sum())
    return window.catalog[k]


def loss_of(s, kind):
    if kind == "bpr":
        return F.softplus(s[:, 1] - s[:, 0]).mean()
    return (F.softplus(-s[:, 0]) + F.softplus(s[:, 1])).mean() / 2
