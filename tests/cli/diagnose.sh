#!/bin/sh
# diagnose.sh - `diagnose minimal` and `diagnose membership` as a user types them. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY diagnose.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: diagnose.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
minimal() { "$fullrank" diagnose minimal "$@"; }
membership() { "$fullrank" diagnose membership "$@"; }
# number KEY: its first value in the JSON of standard input
number() { sed -n "s/.*\"$1\": \([-0-9.e]*\).*/\1/p" | head -n 1; }

# Eight sources that meet most of 70 destinations, some of these late; and a stream that is too short.
awk 'BEGIN { srand(7); print "u,v,t"; for (i = 0; i < 1500; i++) { u = int(8 * rand())
    v = rand() < 0.6 ? (int(12 * rand()) + 5 * u) % 60 : int((60 + i / 150) * rand())
    print u "," (i == 1498 ? 99 : v) "," i } }' >stream.csv
head -n 60 stream.csv >short.csv
"$fullrank" data import stream.csv -o stream --quiet >/dev/null

# minimal
runs "minimal" 0 minimal --data stream
has "says who is eligible" "$stdout" "with 20 or more source-history negatives"
has "minus infinity is shown" "$stdout" "-inf"
has "with its reason" "$stdout" "Every source has met all its source-history negatives"
minimal --data stream --json --quiet >minimal.json
"$fullrank" data info stream --json --quiet >info.json
for key in eligible p1 q1 beta_star; do
    is "minimal and data info agree on $key" "$(number $key <minimal.json)" "$(number $key <info.json)"
done
if awk "BEGIN { b = $(number beta <minimal.json) - $(number beta_star <minimal.json)
    exit !(b * b < 9 * $(number standard_error <minimal.json) ^ 2) }"; then
    pass "learned beta is within three standard errors"
else
    miss "learned beta is within three standard errors" "$(cat minimal.json)"
fi
has "minus infinity in JSON" "$(cat minimal.json)" '"beta_star_infinite": "minus"'
minimal --data stream --json --quiet --threads 3 >again.json
runs "threads do not matter" 0 cmp minimal.json again.json
minimal --data stream --json --quiet --seed 1 >other.json
if cmp -s minimal.json other.json; then miss "a seed matters"; else pass "a seed matters"; fi
runs "another window" 0 minimal --data stream --window 1200 --order strict --penalty 0.01 --json
has "is used" "$stdout" '"window": 1200'
has "with its order" "$stdout" '"order": "strict"'
has "and penalty" "$stdout" '"penalty": 0.01'
runs "no eligible event" 1 minimal --data short.csv
has "is said" "$stderr" "short.csv: no eligible event: none of 9 test events"
runs "minimal without data" 2 minimal
runs "a penalty of 0" 2 minimal --data stream --penalty 0

# membership: a scorer that knows only membership
runs "membership" 0 membership --data stream --scorer baseline:membership
has "the cells" "$stdout" "Expected MRR against 20 negatives"
has "the exhaustive pair has its own name" "$stdout" "Exhaustive, no sampling: not the cells above"
membership --data stream --scorer baseline:membership --json --quiet >alone.json
cell() { awk -v key="\"$1\"" '$1 == key ":" { on = 1 } on && $1 == "\"mrr\":" { printf "%.6f", $2; exit }' "$2"; }
is "repeated-unseen" "$(cell repeated_unseen alone.json)" 1.000000
is "new-seen" "$(cell new_seen alone.json)" 0.047619
is "repeated-seen" "$(cell repeated_seen alone.json)" 0.090909
is "new-unseen" "$(cell new_unseen alone.json)" 0.090909

# The same from records; from a score file; with any number of threads.
rank() { "$fullrank" rank --data stream --window 131072 --quiet "$@" >/dev/null; }
rank --scorer baseline:recency --seed 7 --catalog time -o recency.npy --dump-scores dump.npy
rank --scorer baseline:recency -o fixed.npy
membership --data stream --scorer baseline:recency --exhaustive fixed.npy --json --quiet >direct.json
membership recency.npy --exhaustive fixed.npy --json --quiet >stored.json
membership --data stream --scorer scores:dump.npy --exhaustive fixed.npy --threads 3 --json --quiet |
    sed 's/scores:dump.npy/baseline:recency/' >scores.json
runs "stored records give the same" 0 cmp direct.json stored.json
runs "a score file gives the same" 0 cmp direct.json scores.json
runs "two files" 0 membership recency.npy recency.npy --json
is "make an array" "$(printf %.1s "$stdout")" "["
runs "any K" 0 membership recency.npy --k 3
has "is used" "$stdout" "Expected MRR against 3 negatives"
has "what cannot be ranked is counted" "$stdout" "whose destination has not occurred before"
# `data info` counts the same events, and counts events that cannot be ranked separately.
awk 'BEGIN { srand(3); print "u,v,t"; for (i = 0; i < 4000; i++)
    print int(rand() * 12) "," int(rand() * (60 + i / 10)) "," i }' >growing.csv
counts() { awk -v key="\"$1\":" '$1 == key { on = 1 } on && /repeated|new/ { printf "%d ", $2 } on && /}/ { exit }'; }
"$fullrank" data info growing.csv --json --quiet >info.json
is "data info agrees" "$(counts membership <info.json)" \
    "$(membership --data growing.csv --scorer baseline:recency --json --quiet | counts eligible)"
is "there are some that cannot be ranked" "$(grep -c '"unavailable": [1-9]' info.json)" 1
for row in all repeated new; do # MRR and both losses are 1 together
    awk -v key="$row" '$1 == "\"split\":" { split_ = 1 } split_ && $1 == "\"" key "\":" { on = 1 }
        on && /"(mrr|within|between)"/ { sum += $2; if (++n == 3) { printf "%.9f\n", sum; exit } }' \
        direct.json
done | sort -u >sums
is "MRR and the two losses are 1" "$(cat sums)" 1.000000000

# A model: trained on the window, or refused.
small="--dim 8 --history 8 --epochs 1"
# shellcheck disable=SC2086 # several words
runs "train first" 0 membership --data stream --train craft $small -o run --k 10 --json --quiet
is "with its checkpoint" "$(printf '%s\n' "$stdout" | sed -n 's/.*"scorer": "\(.*\)".*/\1/p')" run/model.safetensors
printf '%s\n' "$stdout" >trained.json
membership --data stream --scorer run/model.safetensors --k 10 --json --quiet >loaded.json
runs "which serves again" 0 cmp trained.json loaded.json
runs "a checkpoint of another window" 1 membership --data stream --scorer run/model.safetensors --window 1000
has "is refused" "$stderr" "run/model.safetensors: trained with"

# Errors.
runs "K too large" 1 membership recency.npy --k 500
has "names the largest" "$stderr" "no eligible event for K = 500"
has "in a number" "$stderr" "the largest K possible is"
runs "records of another catalog" 1 membership fixed.npy
has "are refused" "$stderr" "catalog fixed, expected catalog time"
runs "exhaustive records of another catalog" 1 membership recency.npy --exhaustive recency.npy
has "are refused, too" "$stderr" "recency.npy: records with catalog time, expected those of a fixed"
runs "no such file" 1 membership nowhere.npy
runs "no eligible event at all" 1 membership --data short.csv --scorer baseline:recency
has "is said for the table" "$stderr" "no eligible event for K = 20"
runs "nothing to diagnose" 2 membership
runs "no scorer" 2 membership --data stream
has "names the options" "$stderr" "found none, expected one of the options scorer and train"
runs "two scorers" 2 membership --data stream --scorer baseline:recency --train craft -o x
runs "train without a place" 2 membership --data stream --train craft
runs "records and data" 2 membership recency.npy --data stream
runs "one more word" 2 "$fullrank" diagnose
finish
