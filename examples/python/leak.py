"""An audit finds a leak: a scorer that counts the events of the whole window, the future included, and one that does not.

    python leak.py
"""
import numpy as np

import fullrank as fr

window = fr.synth("tiny", events=3000).window(0)


def leaking(window):
    """Popularity of the whole window: looks fine, ranks well, knows the answers."""
    counts = np.bincount(np.concatenate([window.train.destination, window.test.destination]),
                         minlength=len(window.candidates)).astype(np.float32)
    return lambda batch: np.tile(counts[window.catalog_numbers], (len(batch), 1))


def honest(window):
    """The same of the training part alone."""
    counts = np.bincount(window.train.destination, minlength=len(window.candidates)).astype(np.float32)
    return lambda batch: np.tile(counts[window.catalog_numbers], (len(batch), 1))


for make in leaking, honest:
    audit = fr.audit(window, make, make.__name__)
    print(f"{make.__name__}: {'nothing was found' if audit else 'it sees what it must not'}")
    print(audit)
assert fr.audit(window, honest) and not fr.audit(window, leaking)
