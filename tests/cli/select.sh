#!/bin/sh
# select.sh - a study that selects: configurations of models, chosen on the validation part. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY select.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: select.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
study() { "$fullrank" study "$@"; }

events=1500
[ -z "$sanitized" ] || events=500
cat >grid.json <<END
{"name": "grid", "data": {"drawn": {"synth": "tiny", "events": $events}},
 "protocol": {"window": 0, "train-share": 0.7, "val-share": 0.15},
 "baselines": ["recency"], "models": ["craft", "graphmixer"], "seeds": [7, 17],
 "settings": {"epochs": 3, "dim": 8},
 "model-settings": {"craft": {"lr": [0.0001, 0.03], "history": [4, 8]}, "GraphMixer": {"tokens": 4}}}
END
runs "a study with a grid" 0 study run --verbose grid.json -o grid
has "trains every configuration" "$stderr" "drawn/craft/bce/17/lr=0.03,history=8/train"
has "chooses" "$stderr" "drawn/craft/bce/select"
is "ranks the chosen one only, once for each seed" "$(find grid/ranks -name '*craft*.npy' | wc -l)" 2
is "trains 4 configurations with 2 seeds" "$(find grid/runs -name 'drawn+craft+*' | wc -l)" 8
table=$(cat grid/tables/selection.csv)
is "the table has every configuration" "$(grep -c 'CRAFT' grid/tables/selection.csv)" 4
is "one of them is chosen" "$(grep 'CRAFT' grid/tables/selection.csv | grep -c ',yes')" 1
has "it says how many were tried" "$(cat grid/tables/selection.txt)" "drawn CRAFT (4)"
has "so does the main table" "$(cat grid/tables/main.txt)" "drawn CRAFT (4)"
has "a model with one configuration is there, too" "$table" "GraphMixer"
has "the figure of epochs is drawn" "$(ls grid/figures)" selection.svg
has "and shown on the page" "$(cat grid/report.html)" "How were models selected?"

# The configuration with the best mean value over its runs is chosen, and its checkpoint is ranked.
python3 - >choice.txt <<'END'
import glob, hashlib, json, statistics
configs = {}
for path in sorted(glob.glob("grid/runs/drawn+craft+*/train.json")):
    label = path.split("+")[4]
    configs.setdefault(label, []).append(json.load(open(path))["selection"]["value"])
best = max(configs, key=lambda label: statistics.mean(configs[label]))
for seed in ("7", "17"):
    model = f"grid/runs/drawn+craft+bce+{seed}+{best}+train/model.safetensors"
    ranked = json.load(open(f"grid/ranks/drawn+craft+bce+{seed}+rank.json"))
    same = ranked["scorer_sha256"] == hashlib.sha256(open(model, "rb").read()).hexdigest()
    print(best if same else "another", ranked["training"]["selected"] >= 1)
END
best=$(grep 'CRAFT' grid/tables/selection.csv | grep ',yes' | grep -o 'lr=[0-9.e-]*,history=[48]')
is "the best mean over seeds is what was ranked" "$(sort -u choice.txt)" "$best True"

# Killed and continued: the same tables. This is not in a function, because its shell would be killed.
for wait in 3 5 7 9; do
    timeout -s KILL "0.$wait" "$fullrank" study run grid.json -o killed -q >/dev/null 2>&1
done
runs "a killed study goes on" 0 study run grid.json -o killed -q
is "and ends with the same tables" "$(diff -r grid/tables killed/tables 2>&1)" ""
runs "again" 0 study run --verbose grid.json -o grid
lacks "nothing is done twice" "$stderr" "/train:"
cp grid/tables/selection.csv grid-selection.csv
sed 's/"lr": \[0.0001, 0.03\]/"lr": [0.0001, 0.03, 0.01]/' grid.json >wider.json
runs "a wider grid" 0 study run --verbose wider.json -o grid
has "trains what is new" "$stderr" "lr=0.01,history=4/train"
lacks "and nothing else" "$stderr" "lr=0.03,history=4/train"
has "chooses again" "$stderr" "drawn/craft/bce/select"

# Only the chosen configuration is trained again, on training and validation.
sed 's/"epochs": 3/"epochs": 3, "final": "train+val"/' grid.json >final.json
rm killed/runs/drawn+craft+bce+7+*/state.safetensors # then it begins anew
runs "a final training" 0 study run --verbose final.json -o killed
lacks "trains no configuration again" "$stderr" "/lr=0.03,history=4/train:"
has "but the chosen one, for each seed" "$stderr" "drawn/craft/bce/17/train:"
is "one folder for each seed" "$(find killed/runs -name 'drawn+craft+bce+*[0-9]+train' | grep -vc =)" 2
is "the table of selection stays" "$(cmp killed/tables/selection.csv grid-selection.csv 2>&1)" ""
for seed in 7 17; do
    # shellcheck disable=SC2046 # options are words
    "$fullrank" train --data killed/data/drawn --model craft --window 0 --train-share 0.7 --val-share 0.15 --epochs 3 \
        --dim 8 --select mrr --final train+val --seed $seed $(echo "$best" | sed 's/\([a-z]*\)=/--\1 /g; s/,/ /') \
        -o alone-$seed -q >/dev/null
    is "seed $seed: it is the model that fullrank train makes" \
        "$(cmp alone-$seed/model.safetensors killed/runs/drawn+craft+bce+$seed+train/model.safetensors 2>&1)" ""
done
has "and the one that is ranked" "$(cat killed/ranks/drawn+craft+bce+17+rank.json)" \
    "$(sha256sum <alone-17/model.safetensors | cut -d ' ' -f 1)"

refused() { # NAME MESSAGE FROM TO
    sed "s/$3/$4/" grid.json >bad.json
    runs "$1" 1 study run --verbose bad.json -o bad
    has "$1: says why" "$stderr" "$2"
    is "$1: nothing is left" "$(ls -d bad 2>/dev/null)" ""
}
refused "no validation part" 'expected "val-share" in "protocol"' ', "val-share": 0.15' ''
refused "an option the model does not have" "craft has no option tokens" '"history": \[4' '"tokens": [4'
refused "an unknown option" "unknown option histroy" '"history"' '"histroy"'
refused "a value out of range" "expected a number from" '0.0001' '-1'
refused "a model that is not trained" 'which is not among "models"' '{"tokens": 4}' '{"tokens": 4}, "tgn": {"dim": 4}'
refused "a value twice" "has the configuration lr=0.0001,history=4 twice" '0.03\]' '"0.0001"]'
refused "no values" "expected a value or a list of values" '\[4, 8\]' '[]'
refused "a metric of which less is better" "for which larger is better" '"seeds"' '"select": "mean-rank", "seeds"'
refused "scaling of several" "has 4 configurations" '"seeds"' '"scaling": ["craft"], "seeds"'
refused "select among settings" "an entry of the document itself" '"epochs": 3' '"epochs": 3, "select": "mrr"'
finish
