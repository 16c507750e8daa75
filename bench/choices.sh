#!/bin/sh
# choices.sh - the effect of each choice of the published settings: one is switched at a time.
#
#     bench/choices.sh FULLRANK DIR "SEEDS" DATA...
#
# DATA are imported sets. Every variant is trained with `--settings published` and one change, for every seed, and ranked over
# the fixed catalog. Runs that DIR already has are not repeated, so an interrupted script can be continued. Prints a Markdown
# table: full MRR and expected-20, mean over seeds, and the difference from the published settings. THREADS (default: all
# cores) is the number of threads for training and ranking.
set -eu
tool=${1:?usage: choices.sh FULLRANK DIR SEEDS DATA...} dir=${2:?} seeds=${3:?}
shift 3
mkdir -p "$dir"

# model, options of training, options of ranking, and its name in the table
variants() {
    cat <<'LIST'
craft|||published settings
craft|--attend 0||attention over 320 events, not 20
craft|--batch-size 200||batches of 200, not 128
craft|--head-layers 2||head of two layers, not one
craft|--attention-dropout 0.1||dropout .1 on attention weights, not .5
craft|--negatives catalog||negatives from the catalog, not the window
craft|--empty zero||no history: zero, not empty slots
craft|--shuffle no||training in stream order
craft||--order batch:128|history updated once per 128 events at test
craft-r|||published settings
craft-r|--attend 0||attention over 320 events, not 20
craft-r|--history 20||repeats counted over 20 events, not 320
craft-r|--batch-size 200||batches of 200, not 128
craft-r|--head-layers 2||head of two layers, not one
craft-r|--negatives catalog||negatives from the catalog, not the window
craft-r||--order batch:128|history updated once per 128 events at test
tgn|||published settings
tgn|--embedding attention||attention over 10 neighbours, not memory alone
tgn|--identities||identities added to the memories
tgn|--message identity||messages as they are, not through layers
tgn|--clock window||times since the window's start
tgn|--time-dim 32||time code of 32, not 64
tgn|--batch-size 200||batches of 200, not 128
tgn|--negatives catalog||negatives from the catalog, not the window
tgn||--order batch:128|memory updated once per 128 events at test
patch|||published settings
patch|--batch-size 200||batches of 200, not 128
patch|--shuffle no||training in stream order
patch|--negatives catalog||negatives from the catalog, not the window
patch|--dim 128||width 128, not 64
patch||--order batch:128|history updated once per 128 events at test
patch|--history 100||reads 100 events, not 20
patch-lha|||published settings
patch-lha|--write-every 1||pair memory written after every event, not 128
LIST
}

run() { # NAME DATA SEED MODEL TRAINING RANKING
    [ -e "$1.json" ] && return
    trained=$dir/$(basename "$2")-$4-$(printf %s "$5" | tr -cs 'a-z0-9.' '-')-$3
    # shellcheck disable=SC2086 # options are words
    [ -e "$trained/model.safetensors" ] ||
        "$tool" train --data "$2" --model "$4" --settings published --seed "$3" $5 -o "$trained" --force -q --threads "${THREADS:-0}" >/dev/null
    # shellcheck disable=SC2086
    "$tool" rank --data "$2" --scorer "$trained/model.safetensors" $6 -o "$1.npy" --force -q --threads "${THREADS:-0}" >/dev/null
    "$tool" metrics "$1.npy" --json >"$1.part"
    rm -f "$1.npy"
    mv "$1.part" "$1.json"
}

variants >"$dir/variants"
number=0
while IFS='|' read -r model training ranking _; do
    number=$((number + 1))
    for data; do
        for seed in $seeds; do
            run "$dir/$number-$(basename "$data")-$seed" "$data" "$seed" "$model" "$training" "$ranking" </dev/null
        done
    done
done <"$dir/variants"

python3 - "$dir" "$seeds" "$@" <<'PYTHON'
import json, os, sys
folder, seeds, sets = sys.argv[1], sys.argv[2].split(), [os.path.basename(d) for d in sys.argv[3:]]
def mean(number, data, k):
    """Over seeds, of the full MRR (k is 0) or of that expected among k negatives."""
    read = [json.load(open(f"{folder}/{number}-{data}-{seed}.json")) for seed in seeds]
    return sum(r["expected"][str(k)]["mrr"] if k else r["mrr"] for r in read) / len(read)
print("| model | change | " + " | ".join(f"{d}<br>full | diff. | expected-20 | diff." for d in sets) + " |")
print("| :--- | :--- |" + " ---: | ---: | ---: | ---: |" * len(sets))
base = {}
for number, line in enumerate(open(folder + "/variants"), 1):
    model, training, ranking, words = line.rstrip("\n").split("|")
    cells = []
    for data in sets:
        for k in (0, 20):
            value = mean(number, data, k)
            base.setdefault((model, data, k), value)
            first = not training and not ranking
            cells += [f"{value:.4f}", "" if first else f"{value - base[model, data, k]:+.4f}"]
    print(f"| {model} | {words} | " + " | ".join(cells) + " |")
PYTHON
