#!/bin/sh
# negatives.sh - `rank --negatives`: records against given lists equal a count in NumPy, for a baseline, a score file
# and a model, with any number of threads. Wrong lists are refused by row and id. Such ranks cannot be compared with
# others. Also the converter of TGB's and TGB-Seq's files.
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=$1
if [ -z "${FULLRANK_PYTHON:-}" ]; then
    skip "given negatives" "needs python3 with NumPy"
    finish
fi
python=$FULLRANK_PYTHON
cd "$scratch" || exit 1
lists() { "$python" make.py "$@"; }
rank() { "$fullrank" rank --data data --catalog range --filter same-time "$@"; }
refused() { # NAME MESSAGE COMMAND...: one line, nothing written
    refused_name=$1
    refused_text=$2
    shift 2
    rm -f bad.npy bad.json
    runs "$refused_name" 1 "$@" -o bad.npy
    has "$refused_name: message" "$stderr" "$refused_text"
    is "$refused_name: nothing written" "$(find . -name 'bad*')" ""
}

cat >make.py <<'END'
"""Lists for the records of base.npy: python3 make.py WHAT OUT.npy"""
import sys

import numpy as np

what, out = sys.argv[1:3]
r = np.load("base.npy")
g = np.random.default_rng(3)
ids = np.arange(10, 10 + 3 * 29 + 1)
groups = {}
for e in r:
    groups.setdefault((e["source"], e["time"]), []).append(e["destination"])
table = np.full((len(r), 12), -1, np.int64)
for k, e in enumerate(r):
    pool = np.setdiff1d(ids, groups[(e["source"], e["time"])])
    size = k % 13  # none to twelve
    table[k, :size] = g.choice(pool, size, replace=False)
rival = next(k for k, e in enumerate(r) if len(set(groups[(e["source"], e["time"])])) > 1)
if what == "own":
    table[25, 0] = r["destination"][25]
elif what == "twice":
    table[25, 1] = table[25, 0]
elif what == "strange":
    table[25, 0] = 9
elif what == "gap":
    table[25, 1] = -1
    table[25, 2] = 11
elif what == "rival":
    table[rival, 0] = next(v for v in groups[(r["source"][rival], r["time"][rival])] if v != r["destination"][rival])
    print(rival)
elif what == "short":
    table = table[:-1]
elif what == "float":
    table = table.astype(float)
elif what == "flat":
    table = table[:, 0]
elif what == "drawn":  # with repeats and the positive, as TGB-Seq
    table = g.integers(10, 98, (len(r), 12))
    table[:, 0] = r["destination"]
    table[:, 2] = table[:, 1]
    for k, e in enumerate(r):
        others = [v for v in groups[(e["source"], e["time"])] if v != e["destination"]]
        table[k][np.isin(table[k], others)] = e["destination"]
np.save(out, table)
END
cat >stream.py <<'END'
import numpy as np

r = np.random.default_rng(5)
n = 1200
time = np.sort(r.integers(0, 250, n))
table = np.stack([r.integers(0, 15, n), 10 + 3 * (r.zipf(1.4, n) % 30), time], 1)
table[0, 1], table[1, 1] = 10, 97
np.savetxt("s.csv", table, "%d", ",", header="source,destination,time", comments="")
END
cat >check.py <<'END'
"""Records against lists equal a count over the dumped scores: python3 check.py RANKS.npy LISTS.npy SCORES.npy"""
import sys

import numpy as np

r, lists, scores = (np.load(path) for path in sys.argv[1:4])
assert r["covered"].all() and len(r) == len(lists) == len(scores)
for e, row, score in zip(r, lists, scores):
    own, others = score[e["destination"] - 10], score[row[row != -1] - 10]
    assert (e["n"], e["above"], e["tied"]) == (1 + len(others), (others > own).sum(), (others == own).sum()), e
for name in "seen_n seen_above seen_tied avail_n avail_above avail_tied filtered train_n train_above train_tied".split():
    assert (r[name] == -1).all(), name
assert np.isnan(r["pop_above"]).all() and np.isnan(r["pop_self"]).all()
base = np.load("base.npy")
for name in "event source destination time repeated pair_count source_degree destination_degree".split():
    assert (r[name] == base[name]).all(), name
END
"$python" stream.py
"$fullrank" data import s.csv -o data >/dev/null 2>&1
rank --scorer baseline:recency -o base.npy --dump-scores scores.npy >/dev/null 2>&1
lists good lists.npy
runs "ranks against given lists" 0 rank --scorer baseline:recency --negatives lists.npy -o r.npy
runs "equal a count in NumPy" 0 "$python" check.py r.npy lists.npy scores.npy
has "nothing is expected of a catalog" "$stdout$(rank --scorer baseline:recency --negatives lists.npy -o r2.npy 2>/dev/null)" " -  "
has "the protocol has the file's hash" "$(cat r.json)" "\"negatives_sha256\": \"$(sha256sum lists.npy | cut -d ' ' -f 1)\""
lacks "others say nothing of it" "$(cat base.json)" negatives
is "twice the same bytes" "$(sha256sum <r.npy)" "$(sha256sum <r2.npy)"
rank --scorer scores:scores.npy --negatives lists.npy -o r3.npy >/dev/null 2>&1
is "from a score file, too" "$(sha256sum <r3.npy)" "$(sha256sum <r.npy)"
"$fullrank" train --data data --catalog range --model craft --epochs 1 --dim 16 -o run >/dev/null 2>&1
rank --scorer run/model.safetensors -o m.npy --dump-scores ms.npy >/dev/null 2>&1
for threads in 1 3; do
    runs "a model, $threads threads" 0 rank --scorer run/model.safetensors --negatives lists.npy --verify 20 -o "m$threads.npy" --threads "$threads"
    has "verified against the lists, $threads threads" "$stdout" "0 ranks differ"
done
is "the same bytes with any threads" "$(sha256sum <m1.npy)" "$(sha256sum <m3.npy)"
runs "a model equals a count in NumPy" 0 "$python" check.py m1.npy lists.npy ms.npy

# Uses of such records.
runs "metrics" 0 "$fullrank" metrics r.npy
lacks "draw nothing" "$stdout" "taken whole"
runs "metrics as JSON" 0 "$fullrank" metrics r.npy --json
has "without an expectation" "$(echo "$stdout" | tr -d ' \n')" '"expected":{}'
runs "no sampler" 1 "$fullrank" metrics r.npy --sampler tgb-rnd-20
has "no sampler: message" "$stderr" "r.npy: ranked against given negatives, from which nothing is drawn, expected no sampler"
runs "a sampler of the training part" 1 "$fullrank" compare r.npy r3.npy --sampler tgb-hist
has "a sampler of the training part: message" "$stderr" "has no train_n, train_above and train_tied, which tgb-hist needs"
runs "compare among themselves" 0 "$fullrank" compare a=r.npy b=m1.npy
runs "compare with ranks of the catalog" 1 "$fullrank" compare r.npy base.npy
has "compare with ranks of the catalog: message" "$stderr" "negatives_sha256"
runs "no report" 1 "$fullrank" report r.npy -o page.html
has "no report: message" "$stderr" "against given negatives"

# Wrong lists.
lists own x.npy
refused "the positive" "x.npy: row 25 (event 1045): " rank --scorer baseline:recency --negatives x.npy
has "the positive: why" "$stderr" "is the event's own destination, expected negatives"
lists twice x.npy
refused "an id twice" "is listed twice, expected different ids" rank --scorer baseline:recency --negatives x.npy
lists strange x.npy
refused "a strange id" "x.npy: row 25 (event 1045): 9 is no candidate, expected ids of the catalog" rank --scorer baseline:recency --negatives x.npy
lists gap x.npy
refused "an id behind the end" "row 25 (event 1045): 11 follows -1, expected -1 to the end" rank --scorer baseline:recency --negatives x.npy
row=$(lists rival x.npy)
refused "a true destination of the same time" "x.npy: row $row (event $((row + 1020))): " rank --scorer baseline:recency --negatives x.npy
has "a true destination of the same time: why" "$stderr" "is taken out by the filter"
lists short x.npy
refused "too few rows" "x.npy: lists of 179 events, expected 180, one per event of the test part" rank --scorer baseline:recency --negatives x.npy
lists float x.npy
refused "floats" "x.npy: " rank --scorer baseline:recency --negatives x.npy
lists flat x.npy
refused "one dimension" "x.npy: " rank --scorer baseline:recency --negatives x.npy
refused "no file" "nowhere.npy" rank --scorer baseline:recency --negatives nowhere.npy
lists drawn x.npy
refused "drawn with repeats" "is the event's own destination" rank --scorer baseline:recency --negatives x.npy
runs "and said so" 0 rank --scorer baseline:recency --negatives x.npy --repeats -o drawn.npy
runs "every entry counts" 0 "$python" check.py drawn.npy x.npy scores.npy
runs "repeats of nothing" 2 rank --scorer baseline:recency --repeats -o bad.npy
runs "counts against lists" 2 rank --scorer counts:x.npy --negatives lists.npy -o bad.npy

# The converter.
convert() { "$python" "$FULLRANK_SOURCE/tools/negatives.py" base.npy "$@"; }
"$python" - <<'END'
import pickle

import numpy as np

r, table = np.load("base.npy"), np.load("lists.npy")
lists = {(np.int64(e["source"]), np.int64(e["destination"] + 15), np.int64(e["time"])): row[row != -1] + 15.0
         for e, row in zip(r, table)}
for k, e in enumerate(r):  # equal events share the list made last
    mine = lists[(e["source"], e["destination"] + 15, e["time"])] - 15
    table[k] = -1
    table[k, :len(mine)] = mine
np.save("shared.npy", table)
with open("lists.pkl", "wb") as file:
    pickle.dump(lists, file, 4)
lists.popitem()
with open("fewer.pkl", "wb") as file:
    pickle.dump(lists, file, 4)


class Evil:
    def __reduce__(self):
        return print, ("run",)


with open("evil.pkl", "wb") as file:
    pickle.dump({(1, 2, 3): Evil()}, file)
END
runs "TGB's pickle" 0 convert lists.pkl -o c.npy --destination-offset 15
runs "gives its lists" 0 cmp c.npy shared.npy
runs "an output that exists" 1 convert lists.pkl -o c.npy --destination-offset 15
has "an output that exists: message" "$stderr" "c.npy: exists"
runs "TGB-Seq's array" 0 convert x.npy -o d.npy
has "says that it repeats" "$stdout" "rank with --repeats"
runs "is taken as it is" 0 cmp d.npy x.npy
runs "a missing list" 1 convert fewer.pkl -o e.npy --destination-offset 15
has "a missing list: message" "$stderr" "fewer.pkl: has no list for row"
runs "another offset" 1 convert lists.pkl -o e.npy
has "another offset: message" "$stderr" "--destination-offset"
runs "a pickle with code in it" 1 convert evil.pkl -o e.npy
has "a pickle with code in it: message" "$stderr" "it holds builtins.print, expected arrays and numbers"
lacks "a pickle with code in it: is not run" "$stdout" run
is "nothing is left" "$(find . -name 'e.npy' -o -name '*.tmp')" ""
finish
