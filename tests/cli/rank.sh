#!/bin/sh
# rank.sh - `rank`, `metrics`, `baselines`, `data synth` and `demo` as a user types them. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY rank.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: rank.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
python=${FULLRANK_PYTHON:-}
cd "$scratch" || exit 1
rank() { "$fullrank" rank --data tiny "$@"; }
metrics() { "$fullrank" metrics "$@"; }

# A stream whose truth is known.
runs "synth" 0 "$fullrank" data synth --preset tiny -o tiny
has "synth says what it made" "$stdout" "tiny: 6,000 events"
runs "synth again is refused" 1 "$fullrank" data synth --preset tiny -o tiny
has "because it exists" "$stderr" "tiny: exists; --force replaces it"
runs "synth --force" 0 "$fullrank" data synth --preset tiny -o tiny --force
runs "synth without a place" 2 "$fullrank" data synth
runs "synth of an unknown preset" 2 "$fullrank" data synth --preset wiki -o x
runs "synth with a bad parameter" 2 "$fullrank" data synth --parameters repeat=2 -o x
has "names it" "$stderr" "repeat: found \"2\", expected a number from 0 to 1"
runs "synth with a parameter" 0 "$fullrank" data synth --parameters repeat=0,drift=0 --events 500 -o free
has "of that length" "$stdout" "free: 500 events"
runs "synth --list" 0 "$fullrank" data synth --list
has "lists presets" "$stdout" "lastfm"

# Every baseline, and the oracle above all of them.
best=0
"$fullrank" baselines --json | sed -n 's/.*"name": "\(.*\)".*/\1/p' >names
is "nine baselines" "$(wc -l <names | tr -d ' ')" 9
mrr() { # SPEC FILE: ranks and prints the MRR
    rank --scorer "$1" -o "$2.npy" --json 2>/dev/null </dev/null | sed -n 's/.*"mrr": \([0-9.]*\).*/\1/p'
}
each() { while read -r name; do mrr "baseline:$name" "$name"; done; }
each <names >mrrs
is "every baseline ranks" "$(wc -l <mrrs | tr -d ' ')" 9
best=$(sort -g mrrs | tail -n 1)
oracle=$(mrr oracle truth)
if awk "BEGIN { exit !($oracle > $best) }"; then
    pass "the oracle is above every baseline"
else
    miss "the oracle is above every baseline" "oracle $oracle, best $best"
fi
runs "baselines as text" 0 "$fullrank" baselines
has "with definitions" "$stdout" "The source's own destinations come first"

# The same bytes whatever the threads and shards.
for threads in 1 2 5; do
    for shard in 1 7 64; do
        rank --scorer baseline:edgebank,memory=window -o "t$threads-$shard.npy" --threads $threads \
            --shard $shard >/dev/null 2>&1
        cmp -s t1-1.npy "t$threads-$shard.npy" || echo "$threads threads, shard $shard"
    done
done >differ
is "1, 2, 5 threads and shards of 1, 7, 64 give the same file" "$(cat differ)" ""

# Scores out, scores in.
runs "dump scores" 0 rank --scorer baseline:markov -o a.npy --dump-scores scores.npy
runs "rank the dump" 0 rank --scorer scores:scores.npy -o b.npy --json
is "with the same MRR" "$(printf '%s' "$stdout" | sed -n 's/.*"mrr": \(.*\),/\1/p')" \
    "$(metrics a.npy --json | sed -n '/^  "mrr":/s/.*: \(.*\),/\1/p')"
runs "dump some events" 0 rank --scorer baseline:markov -o c.npy --dump-scores some.npy --events every:100
runs "a dump that exists" 1 rank --scorer baseline:markov -o d.npy --dump-scores some.npy
is "leaves no records" "$(ls d.npy 2>/dev/null)" ""

# Metrics.
runs "metrics of several files" 0 metrics recency.npy edgebank.npy --sampler tgb-mix-100,popularity
has "a table" "$stdout" "Expected-20"
has "a word on ties" "$stdout" "The tie rule decides (average ranks are shown) for: baseline:edgebank"
has "the samplers asked for" "$stdout" "half source history, half unseen"
runs "metrics --json" 0 metrics recency.npy --json --sampler random-100 --draws 3
for key in mrr hits ranked coverage ties expected all_seen all_unseen mrr_by_tie_rule sampled; do
    has "has $key" "$stdout" "\"$key\":"
done
runs "metrics --lines" 0 metrics recency.npy --lines
has "one number a line" "$stdout" "expected.20.mrr	baseline:recency	0."
runs "metrics --per-event" 0 metrics recency.npy --per-event events.tsv
is "one line per event and a header" "$(wc -l <events.tsv | tr -d ' ')" 901
runs "per-event that exists" 1 metrics recency.npy --per-event events.tsv
runs "per-event to stdout" 0 metrics recency.npy --per-event -
has "with ranks" "$stdout" "reciprocal_rank"
runs "help on a metric" 0 metrics --help all-seen
has "explains it" "$stdout" "repeated"
runs "help on a sampler" 0 metrics --help tgb-mix-100
has "explains it, too" "$stdout" "TGB"
runs "help on all" 0 metrics --help all
runs "help on nothing known" 2 metrics --help xyzzy

# Wrong requests: one line, the right code, nothing written.
refused() { # NAME CODE MESSAGE COMMAND...
    name=$1 want=$2 message=$3
    shift 3
    before=$(find . | sort | cksum)
    runs "$name" "$want" "$@"
    said=$(printf '%s\n' "$stderr" | grep -v '^fullrank: note: ')
    has "$name: says why" "$said" "$message"
    is "$name: one line, nothing left" "$(printf '%s\n' "$said" | wc -l | tr -d ' ') $(find . | sort | cksum)" \
        "1 $before"
}
refused "no scorer" 2 "option --scorer SPEC is missing" rank -o x.npy
refused "unknown scorer" 2 "unknown scorer recency" rank --scorer recency -o x.npy
refused "unknown baseline" 2 "did you mean recency?" rank --scorer baseline:recensy -o x.npy
refused "no such data" 1 "nowhere: cannot be read" "$fullrank" rank --data nowhere --scorer oracle -o x.npy
refused "records that exist" 1 "a.npy: exists" rank --scorer baseline:random -o a.npy
refused "a name that is no .npy" 2 "ends in .npy" rank --scorer baseline:random -o a.txt
refused "a place that is not there" 1 "no/x.npy: cannot be written" rank --scorer oracle -o no/x.npy
refused "scores that do not fit" 1 "no row for event" rank --scorer scores:some.npy -o x.npy
refused "metrics of no file" 2 "argument RANKS.npy... is missing" metrics
refused "metrics of a score file" 1 "not a file of rank records" metrics scores.npy
refused "metrics of nothing" 1 "none.npy: cannot be read" metrics none.npy
refused "a bad K" 2 "option k: found \"0\"" metrics a.npy --k 0
refused "a bad sampler" 2 "unknown sampler xyzzy" metrics a.npy --sampler xyzzy
if [ -n "$python" ]; then
    "$python" - <<'END'
import json, numpy as np
s = np.load("scores.npy"); s[2, 3] = np.nan; np.save("nan.npy", s)
json.dump(json.load(open("scores.json")), open("nan.json", "w"))
END

    refused "a NaN in a score file" 1 "score of destination" rank --scorer scores:nan.npy -o x.npy
    "$python" - >numpy.mrr <<'END'
import numpy as np
r = np.load("recency.npy"); r = r[r["covered"] == 1]
print("%.12f" % (1 / (1 + r["above"] + r["tied"] / 2)).mean())
END
    is "NumPy computes the same MRR" "$(cat numpy.mrr)" \
        "$(metrics recency.npy --json | sed -n '/^  "mrr":/s/.*: \(.*\),/\1/p' | xargs printf '%.12f')"
else
    skip "score files through NumPy" "python3 with NumPy is not installed"
fi

# The demo, twice in the same place.
runs "demo" 0 "$fullrank" demo --preset tiny -o demo
has "prints its table" "$stdout" "oracle"
runs "demo again" 0 "$fullrank" demo --preset tiny -o demo

# Nested draws on a real ranking: 2,000 seeds (fewer under sanitizers, which are slow).
wikipedia=$(data_file wikipedia.csv.gz)
if [ -n "$wikipedia" ]; then
    seeds=2000
    case $fullrank in */asan/* | */tsan/*) seeds=60 ;; esac
    "$fullrank" rank --data "$wikipedia" --scorer baseline:recency -o wikipedia.npy >/dev/null 2>&1
    metrics wikipedia.npy --draws $seeds --lines 2>/dev/null >lines
    far=$(awk -F '\t' -v n=$seeds '{ v[$1] = $3 }
        END { for (k = split("1 5 20 50 100", list, " "); k; k--) {
            e = "expected." list[k]; d = v[e ".drawn.mrr"] - v[e ".mrr"]; s = v[e ".drawn.sd"]
            # the printed six digits add 1e-6 to each side
            if (d * d > (4 * s / sqrt(n) + 2e-6) ^ 2) print "K = " list[k] ": " d
            if (s > 1.3 * v[e ".sd"] || s < 0.7 * v[e ".sd"]) print "sd at K = " list[k] ": " s
            tested++ }
            if (tested != 5) print "not all tested" }' lines)
    is "the mean of $seeds seeds is within 4 standard errors for every K" "$far" ""
else
    skip "nested draws on a real ranking" "real data not found"
fi
finish
