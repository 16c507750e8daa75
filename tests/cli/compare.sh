#!/bin/sh
# compare.sh - `compare` as a user types it, on models trained on a tiny synthetic stream. Prints TAP.
#
# With a python3 that has NumPy, means, both intervals and Kendall's tau are computed again from the records.
#
# usage: FULLRANK_SOURCE=REPOSITORY compare.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: compare.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
compare() { "$fullrank" compare --block 32 "$@"; }
rank() { "$fullrank" rank --data tiny "$@" >/dev/null 2>&1; }
"$fullrank" data synth --preset tiny -o tiny >/dev/null
for model in craft craft-r; do
    for seed in 7 17 27; do
        "$fullrank" train --data tiny --model $model --dim 8 --history 10 --epochs 1 --seed $seed \
            -o run-$model-$seed >/dev/null 2>&1
        rank --scorer run-$model-$seed/model.safetensors -o $model-$seed.npy --seed 3
    done
done
rank --scorer baseline:recency -o recency.npy
rank --scorer baseline:popularity -o popularity.npy

has "records know their model" "$(cat craft-r-17.json)" '"model": "craft-r"'
has "their objective" "$(cat craft-r-17.json)" '"objective": "bce"'
has "and the seed of their training" "$(cat craft-r-17.json)" '"seed": 17'
has "a baseline is its own model" "$(cat recency.json)" '"model": "baseline:recency"'

runs "two models of two seeds" 0 compare craft-7.npy craft-17.npy craft-r-7.npy craft-r-17.npy
has "grouped by model" "$stdout" "craft-r                 2    "
has "two seeds are too few" "$stdout" "too few seeds"
has "tells blocks and resamples" "$stdout" "900 ranked events in 29 blocks of 32, 10,000 resamples"
has "the second minus the first" "$stdout" "craft-r minus craft"
has "with both intervals" "$stdout" "block bootstrap 95%"
runs "the order of files within a model does not matter" 0 compare craft-17.npy craft-7.npy craft-r-7.npy craft-r-17.npy
cp .stdout straight
runs "nor does mixing the models" 0 compare craft-7.npy craft-r-17.npy craft-17.npy craft-r-7.npy
if cmp -s straight .stdout; then pass "same bytes"; else miss "same bytes" "$(diff straight .stdout)"; fi
for threads in 1 2 5; do
    compare craft-7.npy craft-17.npy craft-27.npy craft-r-7.npy craft-r-17.npy craft-r-27.npy recency.npy --json \
        --threads $threads >t$threads.json
    cmp -s t1.json t$threads.json || echo $threads
done >differ
is "1, 2, 5 threads: the same bytes" "$(cat differ)" ""

runs "one run each" 0 compare recency.npy popularity.npy
has "has no interval over seeds" "$stdout" "too few seeds"
runs "one run each, as JSON" 0 compare recency.npy popularity.npy --json
for key in difference seed_t block_bootstrap kendall_tau low high gain flipped reversed permutation_p \
    permutation_p_holm method models pairs \
    protocol; do has "key $key" "$stdout" "\"$key\": "; done
has "null, and why" "$stdout" '"note": "too few seeds: 1, expected at least 3"'
has "of the interval" "$stdout" '"low": null,'
runs "models without a seed in common" 0 compare craft-7.npy craft-17.npy craft-27.npy \
    b@1=craft-r-7.npy b@2=craft-r-17.npy b@3=craft-r-27.npy
has "say so" "$stdout" "craft and b have no common seed: difference of means, Welch's interval."
case $stdout in *"too few"*) miss "and have an interval over seeds" "$stdout" ;; *) pass "and have an interval over seeds" ;; esac
runs "a baseline against seeds" 0 compare recency.npy craft-7.npy craft-17.npy
has "is used for each of them" "$stdout" "baseline:recency is one run, compared with every seed of craft."
runs "names of one's own" 0 compare old=craft-7.npy old=craft-17.npy new@7=craft-r-7.npy new@8=craft-r-17.npy
has "are used" "$stdout" "new minus old"
has "one seed in common" "$stdout" "old and new have 1 seed in common"
runs "another sampler" 0 compare recency.npy popularity.npy --sampler history-mix-20 --json
has "with its own K" "$stdout" '"20": '
runs "another metric" 0 compare recency.npy popularity.npy -m hits@10 --json
number() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" | head -n 1; }
is "its mean is the metric's" "$(sed -n '/"hits10"/,$p' .stdout | number mean)" \
    "$("$fullrank" metrics recency.npy -m hits@10 --json | number 10)"
"$fullrank" metrics recency.npy --json >recency-all.json
is "with its own expectations" \
    "$(sed -n '/"expected"/,$p' .stdout | sed -n '/"20"/,$p' | number mean | xargs printf '%.12f')" \
    "$(sed -n '/"expected"/,$p' recency-all.json | sed -n '/"20"/,$p' | number hits10 | xargs printf '%.12f')"
runs "a metric without expectations" 0 compare recency.npy popularity.npy -m mrr-new
is "has the full catalog alone" "$(printf '%s\n' "$stdout" | grep -c 'K =')" 0
runs "which takes no K" 2 compare recency.npy popularity.npy -m mrr-new --k 5
has "says so" "$stderr" "metric mrr-new with 1 values of K, expected none"
runs "a metric that is no mean over events" 0 compare recency.npy popularity.npy -m median-rank --resamples 200
has "is compared all the same" "$stdout" "full      +20.0000"
while read -r name; do # and so is every other one
    compare recency.npy popularity.npy -m "$(printf '%s' "$name" | sed 's/@k/@3/')" --resamples 100 >one 2>&1 || cat one
done <<END >refused
$("$fullrank" metrics --help metrics | awk '{ print $1 }')
END
is "every metric of the registry is compared" "$(cat refused)" ""

# Formats. CSV has every pair and K with all digits; names are escaped as each format needs.
set -- 'a_b|c&d=recency.npy' 'x,"y"%=popularity.npy' craft-7.npy
runs "as LaTeX" 0 compare "$@" --format latex
has "names are escaped" "$stdout" 'a\_b\textbar{}c\&d & x,{'"''"'}y{'"''"'}\%'
has "the protocol is a comment" "$stdout" "% data_sha256="
is "and in no caption" "$(printf '%s\n' "$stdout" | grep caption | grep -c sha256)" 0
has "with Holm's p" "$stdout" "p (Holm)"
has "too few seeds, in words" "$stdout" "& too few seeds &"
runs "as Markdown" 0 compare "$@" --format markdown
has "names are escaped there" "$stdout" 'a\_b\|c\&d'
runs "as CSV" 0 compare "$@" --format csv --k 5,20
is "a line for each pair and K" "$(printf '%s\n' "$stdout" | wc -l | tr -d ' ')" 10
has "quoted" "$stdout" '"x,""y""%"'
is "with all digits" "$(printf '%s\n' "$stdout" | sed -n 4p | awk -F , '{ print $(NF - 9) }')" \
    "$(compare recency.npy popularity.npy craft-7.npy --json --k 5,20 | number difference)"
compare "$@" --json >a.json
compare "$@" --format json >b.json
if cmp -s a.json b.json; then pass "--json is --format json"; else miss "--json is --format json" "$(diff a.json b.json)"; fi
runs "both, in conflict" 2 compare "$@" --json --format csv
has "are refused" "$stderr" "options json and format, expected one or the other"
runs "a format that is none" 2 compare "$@" --format tex
has "names those there are" "$stderr" "text|latex|markdown|csv|json"
runs "a metric that is not there" 2 compare recency.npy popularity.npy -m mrr-nwe
has "names the nearest" "$stderr" "did you mean mrr-new?"
runs "help" 0 "$fullrank" compare --help

refused() { # NAME CODE MESSAGE ARGUMENTS...
    name=$1 want=$2 message=$3
    shift 3
    runs "$name" "$want" compare "$@"
    has "$name: says why" "$stderr" "$message"
    is "$name: prints nothing else" "$stdout" ""
}
rank --scorer baseline:recency -o short.npy --window 3000
rank --scorer baseline:popularity -o zero.npy --oov zero
refused "another window" 1 "window (6000 against 3000)" recency.npy short.npy
has "all fields are named" "$stderr" "test (900 against 450)"
refused "another window, forced" 1 "test events" recency.npy short.npy --force
refused "another rule" 1 "they differ in oov (exclude against zero)" recency.npy zero.npy
runs "another rule, forced" 0 compare recency.npy zero.npy --force
has "warns" "$stderr" "they differ in oov (exclude against zero)"
printf 'source,destination,time\n1,1,1\n1,1,2\n1,1,3\n1,2,4\n' >few.csv
"$fullrank" rank --data few.csv --train-share 0.5 --scorer baseline:recency -o few.npy >/dev/null 2>&1
refused "one ranked event" 1 "events that are ranked: 1, expected at least two" a=few.npy b=few.npy
refused "a block longer than the test suffix" 2 "blocks of 1000 events, but 900 events are ranked" \
    recency.npy popularity.npy --block 1000
refused "one file" 2 "argument B.npy... is missing" recency.npy
refused "one model" 2 "every run is of the model craft" craft-7.npy craft-17.npy
refused "the same run twice" 2 "both craft with seed 7" craft-7.npy craft-7.npy recency.npy
refused "no such file" 1 "none.npy: cannot be read" recency.npy none.npy
refused "no such sampler" 2 "did you mean uniform" recency.npy popularity.npy --sampler unifrom
refused "a name without a file" 2 "expected FILE, NAME=FILE or NAME@SEED=FILE" recency.npy x=
refused "a seed that is none" 2 'found seed "x"' recency.npy a@x=popularity.npy
refused "a level out of range" 2 "level" recency.npy popularity.npy --level 2
refused "no K" 2 "expected up to" recency.npy popularity.npy --k 0

if [ -n "${FULLRANK_PYTHON:-}" ]; then
    "$FULLRANK_PYTHON" - >numpy.log 2>&1 <<'END'
import json, numpy as np
c = json.load(open("t1.json"))
files = {"craft": ["craft-7", "craft-17", "craft-27"], "craft-r": ["craft-r-7", "craft-r-17", "craft-r-27"],
         "baseline:recency": ["recency"]}
rr = {m: np.array([1 / (1 + r["above"] + r["tied"] / 2) for r in (np.load(f + ".npy") for f in fs)])
      for m, fs in files.items()}
wrong = []
def check(name, found, expected, error=1e-12):
    if not abs(found - expected) <= error: wrong.append("%s: found %r, expected %r" % (name, found, expected))
for m in c["models"]:
    means = rr[m["model"]].mean(axis=1)
    check("mean of " + m["model"], m["mrr"]["mean"], means.mean())
    if len(means) > 1: check("sd of " + m["model"], m["mrr"]["sd"], means.std(ddof=1))
each = rr["craft-r"].mean(axis=1) - rr["craft"].mean(axis=1)
half = 0.95 * np.sqrt(2 / 0.0975) * each.std(ddof=1) / np.sqrt(3)  # Student's t with two degrees of freedom
check("difference", c["difference"], each.mean())
check("t low", c["seed_t"]["low"], each.mean() - half, 1e-10)
check("t high", c["seed_t"]["high"], each.mean() + half, 1e-10)
events = (rr["craft-r"] - rr["craft"]).mean(axis=0)
starts = np.arange(0, len(events), 32)
sums, counts = np.add.reduceat(events, starts), np.diff(np.append(starts, len(events)))
drawn = np.random.default_rng(1).integers(0, len(starts), (20000, len(starts)))
low, high = np.percentile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [2.5, 97.5])
check("bootstrap low", c["block_bootstrap"]["low"], low, 0.03 * (high - low))
check("bootstrap high", c["block_bootstrap"]["high"], high, 0.03 * (high - low))
for k, tau in c["kendall_tau"].items():
    order = [(m["expected"][k]["mean"], m["mrr"]["mean"]) for m in c["models"]]
    pairs = [np.sign((a[0] - b[0]) * (a[1] - b[1])) for i, a in enumerate(order) for b in order[:i]]
    check("tau " + k, tau, np.mean(pairs))
print("\n".join(wrong) or "agree")
END
    is "NumPy finds the same" "$(cat numpy.log)" agree
else
    skip "NumPy finds the same" "NumPy is not installed"
fi

# The granularity of updates: one scorer under several orders.
for size in 20 200; do rank --scorer baseline:recency --order batch:$size -o recency-$size.npy; done
runs "runs of different orders" 1 compare recency.npy recency-200.npy
has "are refused" "$stderr" "order (stream against batch), batch (0 against 200)"
runs "unless that is what is compared" 0 compare --across-orders recency.npy recency-20.npy recency-200.npy
has "each is a model" "$stdout" "baseline:recency, batch:200"
has "and their differences are shown" "$stdout" "baseline:recency, batch:20 minus baseline:recency, stream"
rank --scorer baseline:recency --oov zero --order batch:20 -o other.npy
runs "another difference" 1 compare --across-orders recency.npy other.npy
has "is refused all the same" "$stderr" "they differ in oov (exclude against zero)"

explain() { "$fullrank" explain --data tiny "$@"; }
runs "why two protocols differ" 0 explain --scorer baseline:edgebank
has "begins with the first protocol" "$stdout" "tgb  "
has "names each setting" "$stdout" "order      batch:200                stream  "
runs "the same as JSON, of a trained model" 0 explain --scorer run-craft-7/model.safetensors --from fullrank,order=batch:20 --json
has "with one step" "$stdout" '"setting": "order"'
runs "a model that was trained on another split" 1 explain --scorer run-craft-7/model.safetensors --from fullrank,train-share=0.5
has "names the settings" "$stderr" "with split share 0.5 0: run-craft-7/model.safetensors: trained with ntrain 5100"
runs "a protocol that is not known" 2 explain --scorer baseline:edgebank --from tgbb
has "is told of the nearest" "$stderr" "did you mean tgb?"

finish
