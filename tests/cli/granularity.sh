#!/bin/sh
# granularity.sh - a study that shows the effect of the batch size (order batch:N). Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY granularity.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: granularity.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
study() { "$fullrank" study "$@"; }

cat >sizes.json <<'END'
{"name": "sizes", "data": {"drawn": {"synth": "tiny", "events": 1500}},
 "protocol": {"window": 0}, "baselines": ["recency"], "models": ["craft", "tgn"], "seeds": [7, 17],
 "settings": {"epochs": 1, "dim": 8, "history": 8}, "granularity": [200, 1, 7]}
END
runs "a study with three sizes" 0 study run --verbose sizes.json -o sizes
has "has a unit for every run" "$stderr" "drawn/tgn/bce/17/batches"
is "the table has every scorer" "$(cut -d , -f 2 sizes/tables/granularity.csv | tail -n +2 | tr '\n' ' ')" "recency CRAFT TGN "
has "the figure is drawn" "$(ls sizes/figures)" granularity.svg
has "the page shows both" "$(cat sizes/report.html)" "How often is state updated?"

# Every number equals that of `fullrank rank --order batch:N` with the same model; N = 1 is stream order.
cat >check.py <<'END'
import csv, json, subprocess, sys
fullrank = sys.argv[1]
runs = {"recency": ["baseline:recency"]}
for model in ("craft", "tgn"):
    runs[model] = [f"sizes/runs/drawn+{model}+bce+{seed}+train/model.safetensors" for seed in (7, 17)]
def mrr(scorer, order):
    subprocess.run([fullrank, "rank", "--data", "sizes/data/drawn", "--window", "0", "--scorer", scorer, "--order", order,
                    "-o", "r.npy", "--force", "-q"], check=True, stdout=subprocess.DEVNULL)
    text = subprocess.run([fullrank, "metrics", "r.npy", "-m", "mrr", "--json"], check=True, capture_output=True).stdout
    return json.loads(text)["mrr"]
rows = list(csv.reader(open("sizes/tables/granularity.csv")))
heads = rows[0]
for row in rows[1:]:
    here = dict(zip(heads, row))
    for size in (1, 7, 200):
        found = float(next(v for k, v in here.items() if k.startswith(f"N = {size}")))
        values = [mrr(s, f"batch:{size}") for s in runs[row[1].lower()]]
        if abs(found - sum(values) / len(values)) > 1e-12:
            print(row[1], size, found, values)
        if size == 1 and values[0] != mrr(runs[row[1].lower()][0], "stream"):
            print(row[1], "batch:1 is not stream order")
    if len({v for k, v in here.items() if k.startswith("N = ")}) < 3:
        print(row[1], "sizes do not differ:", row)
END
if python3 -c '' 2>/dev/null; then
    is "numbers are those of fullrank rank" "$(python3 check.py "$fullrank" 2>&1 | tail -n 5)" ""
else
    skip "numbers are those of fullrank rank" "python3 is not installed"
fi

runs "again" 0 study run --verbose sizes.json -o sizes
lacks "nothing is done twice" "$stderr" "/batches"
sed 's/\[200, 1, 7\]/[200, 1]/' sizes.json >fewer.json
runs "other sizes" 0 study run --verbose fewer.json -o sizes
has "are ranked" "$stderr" "drawn/craft/bce/7/batches"
lacks "and nothing else is done" "$stderr" "/train:"
sed 's/, "granularity": \[200, 1, 7\]//' sizes.json >none.json
runs "a study without" 0 study run none.json -o none
is "has no table" "$(ls none/tables/granularity.csv 2>/dev/null)" ""
lacks "and no section" "$(cat none/report.html)" "How often is state updated?"

refused() { # NAME MESSAGE FROM TO
    sed "s/$3/$4/" sizes.json >bad.json
    runs "$1" 1 study run bad.json -o bad
    has "$1: says why" "$stderr" "$2"
}
refused "no list" '"granularity" is not as it should be, expected a list of whole numbers' '\[200, 1, 7\]' '200'
refused "a size of 0" "expected a list of whole numbers" '200, 1, 7' '0'
refused "a size twice" '"granularity" names 7 twice' '200, 1, 7' '7, 7'
refused "strict order" 'is about batches, but the order of "protocol" is strict' '"window": 0' '"window": 0, "order": "strict"'
finish
