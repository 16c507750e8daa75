"""A score file from NumPy: the tool lists what there is to score, the program writes one row of scores for each event, the
tool ranks them. Nothing of fullrank is imported, so any environment will do.

    python score_file.py path/to/fullrank
"""
import subprocess
import sys

import numpy as np


def fullrank(*arguments):
    return subprocess.run([sys.argv[1] if len(sys.argv) > 1 else "fullrank", *arguments], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


fullrank("data", "synth", "--preset", "tiny", "--events", "3000", "-o", "drawn", "--force", "--quiet")
fullrank("rank", "--data", "drawn", "--list", "list.npy", "--force", "--quiet")
events = np.load("list.npy")  # event (row in the stream), source, time, ...: no destination
destinations = np.load("list.destinations.npy")  # the columns of the score file

# You may read the past: the rows before each event. Here the score of a destination is the number of its events so
# far.
past = np.load("drawn/destination.npy")
ids = np.load("drawn/destination_ids.npy")
column = {int(ids[k]): k for k in range(len(ids))}
scores = np.zeros((len(events), len(destinations)), np.float32)
for row, event in enumerate(events["event"]):
    counts = np.bincount(past[:event], minlength=len(ids))
    scores[row] = [counts[column[int(d)]] if int(d) in column else 0 for d in destinations]
np.save("scores.npy", scores)

print(fullrank("rank", "--data", "drawn", "--scorer", "scores:scores.npy", "-o", "scored.npy", "--force", "--quiet"))
