#!/bin/sh
# craft.sh - training and all-entity ranking of CRAFT and CRAFT-R against PyTorch, in one run.
#
#     bench/craft.sh BUILD TABLE [PYTHON]
#
# TABLE is the Wikipedia CSV; PYTHON has torch, numpy and safetensors (python3; FULLRANK_TORCH). Ours with all cores,
# PyTorch (examples/python/torch_craft.py) with one thread and with all: for it more is not always faster. Prints seconds per
# epoch (ours: best of 4), milliseconds per ranked event (ours: best of 3) and the ratios.
set -eu
build=${1:?usage: craft.sh BUILD TABLE [PYTHON]}
table=${2:?usage: craft.sh BUILD TABLE [PYTHON]}
python=${3:-${FULLRANK_TORCH:-python3}}
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -c 'import torch, safetensors' 2>/dev/null || { echo "craft.sh: $python has no torch" >&2; exit 1; }
"$build/fullrank" data import "$table" -o "$folder/data" -q >/dev/null
for model in craft craft-r; do
    "$build/fullrank" train --data "$folder/data" --model $model --epochs 4 -o "$folder/$model" -q >/dev/null
    for turn in 1 2 3; do
        "$build/fullrank" rank --data "$folder/data" --scorer "$folder/$model/model.safetensors" \
            -o "$folder/ranks.npy" --force -q --json >"$folder/timed$turn.json"
    done
    for threads in 1 "$(getconf _NPROCESSORS_ONLN)"; do
        "$python" "$here/../examples/python/torch_craft.py" speed --data "$table" --model $model --threads "$threads" |
            tail -n 1 >"$folder/torch$threads.json"
    done
    "$python" - "$folder" $model <<'PYTHON'
import glob, json, sys
folder, model = sys.argv[1:]
epoch = min(json.load(open(f"{folder}/{model}/train.json"))["seconds"])
ranks = [json.load(open(f)) for f in glob.glob(folder + "/timed?.json")]
event = min(1000 * 841 / r["scores_per_second"] for r in ranks)
print("%-8s ours: %.3f s per epoch, %.3f ms per event" % (model, epoch, event))
for f in sorted(glob.glob(folder + "/torch*.json")):
    t = json.load(open(f))
    print("         PyTorch, %d thread(s): %.3f s (%.1f times), %.3f ms (%.1f times)"
          % (t["threads"], t["epoch_s"], t["epoch_s"] / epoch, t["event_ms"], t["event_ms"] / event))
PYTHON
done
