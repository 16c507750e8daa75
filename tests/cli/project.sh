#!/bin/sh
# project.sh - `diagnose project` as a user types it. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY project.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: project.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
project() { "$fullrank" diagnose project "$@"; }
# row NAME KEY: the value of KEY in the object NAME of standard input
row() { awk -v name="\"$1\":" -v key="\"$2\":" '$1 == name { on = 1 } on && $1 == key { sub(/,$/, "", $2); print $2; exit }'; }

# Eight sources that meet most of 70 destinations; and one in which every source comes once.
awk 'BEGIN { srand(7); print "u,v,t"; for (i = 0; i < 1500; i++) { u = int(8 * rand())
    v = rand() < 0.6 ? (int(12 * rand()) + 5 * u) % 60 : int(70 * rand()); print u "," v "," i } }' >stream.csv
awk 'BEGIN { print "u,v,t"; for (i = 0; i < 200; i++) print i "," i % 7 "," i }' >once.csv
small="--dim 8 --history 8 --epochs 1"
# shellcheck disable=SC2086 # several words
train() { "$fullrank" train --model craft-r $small --quiet "$@" >/dev/null; }
train --data stream.csv --window 1000 -o run
train --data once.csv -o once
"$fullrank" rank --data stream.csv --window 1000 --scorer run/model.safetensors -o ranks.npy --quiet >/dev/null
"$fullrank" metrics ranks.npy --json --quiet >metrics.json

# The ranking window.
models() { project --data stream.csv --window 1000 --scorer run/model.safetensors "$@"; }
runs "full-catalog metrics" 0 models
for word in base membership random shuffled "all-unseen" "(window 1000, catalog fixed"; do
    has "the table has $word" "$stdout" "$word"
done
models --json --quiet --threads 1 >one.json
is "the base is the model itself" "$(row base mrr <one.json)" "$(sed -n 's/.*"mrr": \([-0-9.e]*\).*/\1/p' metrics.json | head -n 1)"
if [ "$(row membership mrr <one.json)" = "$(row base mrr <one.json)" ]; then
    miss "removing membership changes something" "$(cat one.json)"
else
    pass "removing membership changes something"
fi
models --json --quiet --threads 3 >three.json
runs "threads do not matter" 0 cmp one.json three.json
models --json --quiet --seed 8 >other.json
is "a seed does not change the base" "$(row base mrr <other.json)" "$(row base mrr <one.json)"
if [ "$(row random mrr <other.json)" = "$(row random mrr <one.json)" ] &&
    [ "$(row shuffled mrr <other.json)" = "$(row shuffled mrr <one.json)" ]; then
    miss "it changes the controls" "$(cat other.json)"
else
    pass "it changes the controls"
fi

# The diagnostic window: with a model trained by the command, and again from its checkpoint.
# shellcheck disable=SC2086 # several words
runs "both windows" 0 models --train craft-r $small -o long --k 10 --json --quiet
printf '%s\n' "$stdout" >both.json
is "cells of the ranking's own key" "$(row diagnostic k <both.json)" 10
project --data stream.csv --diagnostic long/model.safetensors --k 10 --json --quiet >cells.json
has "a checkpoint serves as well" "$(cat both.json)" "$(sed -n '/"diagnostic"/,$p' cells.json)"
"$fullrank" diagnose membership --data stream.csv --scorer long/model.safetensors --k 10 --json --quiet >table.json
is "the base has the cells of diagnose membership" "$(row repeated_unseen mrr <cells.json)" "$(row repeated_unseen mrr <table.json)"
runs "as a table" 0 project --data stream.csv --diagnostic long/model.safetensors --k 10
has "with its cells" "$stdout" "repeated-unseen"
has "and catalog" "$stdout" "catalog time"

# Errors with models.
runs "a baseline" 2 project --data stream.csv --scorer baseline:recency
has "has nothing to take out" "$stderr" "baseline:recency is not a trained model: it has no representation"
runs "a file that is no checkpoint" 1 project --data stream.csv --scorer nowhere.safetensors
runs "a model of another window" 1 project --data stream.csv --scorer run/model.safetensors
has "is refused" "$stderr" "trained with"
runs "no pair has met" 1 project --data once.csv --scorer once/model.safetensors
has "is said" "$stderr" "training pairs: 0 of 340 pairs have met before, expected some and not all"
runs "nothing to project" 2 project
has "names the options" "$stderr" "expected option data with scorer, diagnostic or train, or options representations"
runs "data alone" 2 project --data stream.csv
runs "scorer alone" 2 project --scorer run/model.safetensors
runs "two diagnostic models" 2 models --train craft -o x --diagnostic long/model.safetensors
runs "train without a place" 2 models --train craft
runs "a model and vectors" 2 models --representations z.npy --labels m.npy --head w.npy -o x
runs "vectors without a head" 2 project --representations z.npy --labels m.npy -o x
has "say what goes together" "$stderr" "representations, labels, head and output go together"

# Vectors of another program: rescoring with the written heads, checked by NumPy.
python=${FULLRANK_PYTHON:-}
if [ -z "$python" ]; then
    skip "vectors in files" "no python3 with NumPy"
    finish
fi
"$python" - <<'PYTHON'
import numpy as np
r = np.random.default_rng(3)
met = r.random(2000) < 0.3
z = r.normal(size=(2000, 9)).astype("f4")
z[:, 1] += 2 * met
np.save("z.npy", z)
np.save("m.npy", met)
np.save("w.npy", r.normal(size=(4, 9)).astype("f4"))
np.save("same.npy", np.ones(2000, "i1"))
np.save("wide.npy", np.ones((4, 8)))
PYTHON
# shellcheck disable=SC2317 # called through `runs`
files() { project --representations z.npy --labels m.npy --head w.npy -o heads "$@"; }
runs "vectors in files" 0 files
has "how many have met" "$stdout" "2,000, "
runs "an output that exists" 1 files
has "is kept" "$stderr" "heads: exists; --force replaces it"
runs "unless forced" 0 files --force --json
printf '%s\n' "$stdout" >files.json
is "nothing is left along the direction" "$(row membership membership_auc <files.json)" 0.5
cat >check.py <<'PYTHON'
import json
import numpy as np
z, met, w = np.load("z.npy").astype("f8"), np.load("m.npy"), np.load("w.npy")
said = json.load(open("files.json"))
a = z[met].mean(0) - z[~met].mean(0)
auc = lambda s: (s[met][:, None] > s[~met][None]).mean()
for name in "membership", "random", "shuffled":
    d, h = np.load(f"heads/direction-{name}.npy"), np.load(f"heads/head-{name}.npy")
    without = z - np.outer(z @ d, d) / (d @ d)
    assert h.dtype == w.dtype and h.shape == w.shape
    assert np.abs(z @ h.T - without @ w.T).max() < 1e-5
    assert abs(said[name]["length"] - np.linalg.norm(d)) < 1e-9
    assert abs(said[name]["auc"] - auc(z @ d)) < 1e-6
    assert abs(said[name]["cosine"] - a @ d / np.linalg.norm(a) / np.linalg.norm(d)) < 1e-9
    if name != "membership":
        assert abs(said[name]["membership_auc"] - auc(without @ a)) < 1e-6
assert np.abs(np.load("heads/direction-membership.npy") - a).max() < 1e-12
assert abs(said["share"] - met.mean()) < 1e-12
PYTHON
runs "NumPy finds the same" 0 "$python" check.py
runs "one kind of labels" 1 project --representations z.npy --labels same.npy --head w.npy -o new
has "names the file" "$stderr" "same.npy: 2000 of 2000 pairs have met before"
runs "a head of another width" 1 project --representations z.npy --labels m.npy --head wide.npy -o new
has "says both widths" "$stderr" "wide.npy: 8 columns, expected 9 as in z.npy"
if [ -e new ]; then miss "nothing was written"; else pass "nothing was written"; fi
finish
