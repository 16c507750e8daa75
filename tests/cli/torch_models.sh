#!/bin/sh
# torch_models.sh - GraphMixer, TGN and DyGFormer (+LHA) against an independent implementation. Prints TAP.
#
# bench/torch_models.py is written in PyTorch from the models' description. From the same initial parameters both train
# without random choices: the losses agree. Then each scores test events from the other's checkpoint, memories
# included. Once without edge features, once with four. Without torch (FULLRANK_TORCH names a python3 that has it)
# everything is skipped.
#
# usage: FULLRANK_SOURCE=REPOSITORY torch_models.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: torch_models.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
script=$FULLRANK_SOURCE/bench/torch_models.py

torch=""
for python in "${FULLRANK_TORCH:-}" python3 /usr/bin/python3; do
    [ -n "$python" ] && "$python" -c 'import torch, numpy' 2>/dev/null && torch=$python && break
done
if [ -z "$torch" ]; then
    skip "models against PyTorch" "torch is not installed"
    finish
fi

"$fullrank" data synth --preset tiny -o plain -q >/dev/null
"$fullrank" data export plain -o plain.csv
# shellcheck disable=SC2016 # awk's own variables
awk -F , 'NR == 1 { print "user_id,item_id,timestamp,state_label,comma_separated_list_of_features"; next }
    NR > 3001 { exit }
    { printf "%s,%s,%s,0", $1, $2, $3; for (k = 1; k <= 4; k++) printf ",%.4f", sin(k * NR + $2); print "" }' \
    plain.csv >edges.csv
"$fullrank" data import edges.csv -o edges -q >/dev/null
has "a stream with four edge features" "$(cat edges/manifest.json)" '"feature_width": 4'

for data in plain edges; do
    mkdir "own-$data"
    "$torch" "$FULLRANK_SOURCE/tests/torch_models.py" "$script" $data "own-$data" >found 2>log || cat log >>found
    is "PyTorch alone, $data" "$(cat found)" "done"
done

# compare WHAT OURS THEIRS: "agree" if within 1e-4, scores relative to the largest
cat >compare.py <<'END'
import json, sys
import numpy as np
what, ours, theirs = sys.argv[1:]
if what == "losses":
    a, b = (np.array(json.load(open(f))["loss"]) for f in (ours, theirs))
    scale = 1
else:
    a, b = np.load(ours), np.load(theirs)
    scale = np.abs(b).max()
if a.shape != b.shape or not a.size or not np.isfinite(a).all() or (what == "scores" and a.std() == 0):
    print("shapes", a.shape, b.shape, "or values")
else:
    apart = np.abs(a - b).max() / scale
    print("agree" if apart < 1e-4 else "%s differ by %g" % (what, apart))
END

# With a learning rate of 0 an epoch leaves the initial parameters.
against() { # DATA MODEL OPTION...
    data=$1 model=$2
    name="$model $data${3:+ $3${4:+ $4}}"
    shift 2
    rm -rf first ours
    set -- --data "$data" --model "$model" --dim 16 --deterministic --threads 1 "$@" -q
    runs "$name: initial parameters" 0 "$fullrank" train "$@" --lr 0 --epochs 1 -o first
    runs "$name: trains" 0 "$fullrank" train "$@" --epochs 2 -o ours
    "$torch" "$script" train --data "$data" --init first/model.safetensors --deterministic --epochs 2 \
        --save theirs.safetensors >theirs.json 2>log || cat log
    is "$name: losses" "$("$torch" compare.py losses ours/train.json theirs.json 2>&1)" agree
    for checkpoint in ours/model.safetensors theirs.safetensors; do
        rm -f ours.npy theirs.npy
        "$fullrank" rank --data "$data" --scorer $checkpoint -o ranks.npy --force -q --dump-scores ours.npy \
            --events every:15 >log 2>&1 || cat log
        "$torch" "$script" score --data "$data" --checkpoint $checkpoint --events every:15 -o theirs.npy \
            >log 2>&1 || cat log
        is "$name: scores from $checkpoint" "$("$torch" compare.py scores ours.npy theirs.npy 2>&1)" agree
    done
}

known=$("$fullrank" models)
for model in graphmixer tgn dygformer dygformer-lha; do
    case $known in
    *"$model:"*) ;;
    *) skip "$model against PyTorch" "no such model in this build" && continue ;;
    esac
    for data in plain edges; do
        case $model in
        tgn)
            against "$data" tgn
            against "$data" tgn --embedding identity
            ;;
        dygformer*) against "$data" "$model" --history 45 ;;
        *) against "$data" "$model" ;;
        esac
    done
done
finish
