#!/bin/sh
# baselines.sh - how fast the baselines score and rank.
#
#     bench/baselines.sh BUILD
#
# Ranks a synthetic stream (the wikipedia preset, about 890 candidates) three times with every
# baseline and prints the best rate of each in millions of scores per second; scoring, observing and
# ranking are all in it. Exits with 1 if one is below 20. A smaller catalog gives lower rates, since
# what is done once per event is then shared by fewer scores.
set -eu

fullrank=${1:?usage: baselines.sh BUILD}/fullrank
mark=20
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$fullrank" data synth --preset wikipedia -o "$folder/stream" -q >/dev/null
"$fullrank" baselines --json | sed -n 's/.*"name": "\(.*\)".*/\1/p' >"$folder/names"
slow=0
while read -r name; do
    best=0
    for _ in 1 2 3; do
        rate=$("$fullrank" rank --data "$folder/stream" --scorer "baseline:$name" --json -q --force \
            -o "$folder/ranks.npy" </dev/null | sed -n 's/.*"scores_per_second": \([0-9]*\).*/\1/p')
        [ "$rate" -le "$best" ] || best=$rate
    done
    printf '%-20s %6d M scores/s\n' "$name" $((best / 1000000))
    [ "$best" -ge $((mark * 1000000)) ] || slow=$((slow + 1))
done <"$folder/names"
[ "$slow" = 0 ] || { echo "$slow below $mark M scores/s"; exit 1; }
