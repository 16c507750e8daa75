#!/bin/sh
# models.sh - training and all-entity ranking of the models against PyTorch, in one run.
#
#     bench/models.sh BUILD TABLE [PYTHON [NAME...]]
#
# NAMEs are lines at the end of this file (default: all). TABLE is the Wikipedia CSV. PYTHON has torch and numpy (default:
# FULLRANK_TORCH, or python3). Our models use all cores. PyTorch (examples/python/torch_models.py) uses one thread, then all,
# because more threads are not always faster. Prints seconds per epoch (the best of 2 to 5; more for short epochs),
# milliseconds per ranked event (ours: best of 2), and the ratios. For CRAFT, GraphMixer and DyGFormer, PyTorch trains on
# every 8th batch, and the time is multiplied by 8. PyTorch ranks every 100th event, from our checkpoint, with all
# candidates at once.
set -eu
build=${1:?usage: models.sh BUILD TABLE [PYTHON [NAME...]]}
table=${2:?usage: models.sh BUILD TABLE [PYTHON [NAME...]]}
python=${3:-${FULLRANK_TORCH:-python3}}
shift "$(($# < 3 ? $# : 3))"
wanted=" $* "
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -c 'import torch, numpy' 2>/dev/null || { echo "models.sh: $python has no torch" >&2; exit 1; }
"$build/fullrank" data import "$table" -o "$folder/data" -q >/dev/null

known=$("$build/fullrank" models)

compare() { # NAME MODEL EPOCHS BATCHES [KEY=VALUE...]
    name=$1 model=$2 epochs=$3 batches=$4
    shift 4
    case $wanted in "  " | *" $name "*) ;; *) return ;; esac
    ours="" theirs=""
    for pair; do
        ours="$ours --${pair%%=*} ${pair#*=}"
        theirs="$theirs --set $pair"
    done
    case $known in *"$model:"*) ;; *) echo "$name: no such model in this build" && return ;; esac
    run=$folder/$name
    # shellcheck disable=SC2086 # options are words
    "$build/fullrank" train --data "$folder/data" --model "$model" $ours --epochs "$epochs" -o "$run" -q >/dev/null
    for turn in 1 2; do
        "$build/fullrank" rank --data "$folder/data" --scorer "$run/model.safetensors" -o "$run/ranks.npy" \
            --force -q --json >"$run/ours$turn.json"
    done
    for threads in 1 "$(getconf _NPROCESSORS_ONLN)"; do
        # shellcheck disable=SC2086 # options are words
        "$python" "$here/../examples/python/torch_models.py" train --data "$folder/data" --model "$model" $theirs \
            --epochs "$epochs" --batches "$batches" --threads "$threads" >"$run/train$threads.json" 2>"$run/log" ||
            { cat "$run/log" >&2; exit 1; }
        "$python" "$here/../examples/python/torch_models.py" score --data "$folder/data" --checkpoint "$run/model.safetensors" \
            --events every:100 --threads "$threads" >"$run/score$threads.json" 2>"$run/log" ||
            { cat "$run/log" >&2; exit 1; }
    done
    "$python" - "$run" "$name" <<'PYTHON'
import glob, json, sys
run, name = sys.argv[1:]
read = lambda path: json.load(open(path))
epoch = min(read(run + "/train.json")["seconds"])
event = min(1000 * r["seconds"] / r["ranked"] for r in map(read, glob.glob(run + "/ours?.json")))
print("%-13s ours: %.3f s per epoch, %.3f ms per event" % (name, epoch, event))
for file in sorted(glob.glob(run + "/train?*.json")):
    t, ms = read(file), read(file.replace("/train", "/score"))["event_ms"]
    s = min(t["seconds_per_epoch"])
    print("%13s PyTorch, %d thread(s): %.3f s (%.1f times), %.3f ms (%.1f times)"
          % ("", t["threads"], s, s / epoch, ms, ms / event), flush=True)
PYTHON
}

compare craft craft 4 every:8
compare craft-r craft-r 4 every:8
compare tgn-identity tgn 5 all embedding=identity
compare tgn tgn 5 all
compare graphmixer graphmixer 3 every:8
compare dygformer dygformer 3 every:8
compare dygformer-lha dygformer-lha 2 all
compare patch patch 3 every:8 history=20 patch=2 heads=4
compare patch-lha patch-lha 2 all history=20 patch=2 heads=4
