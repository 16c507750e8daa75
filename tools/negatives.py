#!/usr/bin/env python3
"""negatives.py - lists of negatives of TGB (.pkl) and TGB-Seq (.npy) as `rank --negatives` reads them.

    negatives.py RANKS.npy tgbl-wiki_test_ns.pkl -o negatives.npy --destination-offset 8227
    negatives.py RANKS.npy GoogleLocal_test_ns.npy -o negatives.npy

RANKS.npy are rank records of any scorer under the protocol to be used: they say which events are ranked, in which
order. TGB keeps a dict (source, destination, time) -> array, TGB-Seq an array with one row per event. The result is
int64 [events, K], -1 after the end of a list. An offset is what the other program adds to an id: TGB numbers the
destinations of tgbl-wiki after its 8,227 sources.

Needs Python 3.8 and NumPy. A pickle is read without running code: only NumPy's arrays and numbers are let in.
"""
import argparse
import os
import pickle
import sys
import tempfile

import numpy as np

ALLOWED = {(module, name)
           for module, names in {"multiarray": ("_reconstruct", "scalar"), "numeric": ("_frombuffer",)}.items()
           for name in names}


class Arrays(pickle.Unpickler):
    """Lets in what an array or a number of NumPy is made of."""

    def find_class(self, module, name):
        parts = module.split(".")
        core = parts[0] == "numpy" and len(parts) == 3 and parts[1] in ("core", "_core")
        if (module == "numpy" and name in ("ndarray", "dtype")) or (core and (parts[2], name) in ALLOWED) or \
                (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it holds {module}.{name}, expected arrays and numbers")


def stop(message):
    sys.exit(f"negatives.py: {message}")


def whole(values, where):
    """Ids as int64: TGB stores those of hist_rnd as floats."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        stop(f"{where}: found an array of {values.dtype} {list(values.shape)}, expected a row of ids")
    ids = values.astype(np.int64)
    if not np.array_equal(ids, values):
        stop(f"{where}: found an id that is no whole number")
    return ids


def from_pickle(path, records, a):
    try:
        with open(path, "rb") as file:
            lists = Arrays(file).load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, ImportError, IndexError) as e:
        stop(f"{path}: cannot be read as a pickle of lists: {e}")
    if not isinstance(lists, dict):
        stop(f"{path}: found {type(lists).__name__}, expected a dict (source, destination, time) -> ids")
    rows = []
    for k, r in enumerate(records):
        key = (int(r["source"]) + a.source_offset, int(r["destination"]) + a.destination_offset, float(r["time"]))
        if key not in lists:
            stop(f"{path}: has no list for row {k} (event {r['event']}): source {key[0]}, destination {key[1]}, "
                 f"time {key[2]:.17g}; expected one for every event (see --source-offset, --destination-offset)")
        rows.append(whole(lists[key], f"{path}: row {k}"))
    return rows


def from_array(path, records):
    try:
        lists = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as e:
        stop(f"{path}: {e}")
    if lists.ndim != 2 or len(lists) != len(records):
        stop(f"{path}: found an array {list(lists.shape)}, expected one row for each of {len(records)} events")
    return [whole(row, f"{path}: row {k}") for k, row in enumerate(lists)]


def write(path, table, force):
    if not force and os.path.lexists(path):
        stop(f"{path}: exists; --force replaces it")
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".", suffix=".tmp", delete=False) as file:
        try:
            np.save(file, table)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def main():
    p = argparse.ArgumentParser(description="Lists of negatives of TGB (.pkl) and TGB-Seq (.npy) for rank --negatives")
    p.add_argument("ranks", help="rank records of any scorer under the protocol to be used")
    p.add_argument("lists", help="FILE.pkl of TGB or FILE.npy of TGB-Seq")
    p.add_argument("-o", "--output", required=True, help="where the lists go, a .npy")
    p.add_argument("--source-offset", type=int, default=0, help="what the lists' program adds to a source id")
    p.add_argument("--destination-offset", type=int, default=0, help="what it adds to a destination id")
    p.add_argument("--force", action="store_true", help="replace a file that exists")
    a = p.parse_args()
    try:
        records = np.load(a.ranks, allow_pickle=False)
        if not records.dtype.names or "destination" not in records.dtype.names:
            stop(f"{a.ranks}: not a file of rank records (made by `fullrank rank`)")
        rows = from_pickle(a.lists, records, a) if a.lists.endswith(".pkl") else from_array(a.lists, records)
        table = np.full((len(rows), max([len(r) for r in rows] + [1])), -1, np.int64)
        for k, row in enumerate(rows):
            if (row < a.destination_offset).any():
                stop(f"{a.lists}: row {k}: {row.min()} is below --destination-offset {a.destination_offset}")
            table[k, :len(row)] = row - a.destination_offset
        write(a.output, table, a.force)
    except (OSError, ValueError) as e:
        stop(str(e))
    ordered = np.sort(table, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != -1)).any(axis=1).sum()
    own = (table == records["destination"][:, None]).any(axis=1).sum()
    print(f"{a.output}: {len(table)} lists of up to {table.shape[1]} negatives")
    if twice or own:
        print(f"{twice} repeat an id and {own} hold the event's own destination: rank with --repeats")


if __name__ == "__main__":
    main()
