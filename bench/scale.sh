#!/bin/sh
# scale.sh - import, open and rank against the number of events and destinations.
#
#     bench/scale.sh BUILD DIR [EVENTS [IDS [CHECKS]]]
#
# Makes a heavy-tailed stream (bench/scale_stream.c) of EVENTS (50,000,000) with IDS sources and as many
# destinations (1,000,000) below DIR, imports it, and ranks all its test events with each baseline whose ranks can
# be counted. CHECKS (10,000) records of each are compared with those of score vectors, in a separate run, because
# score vectors take longer than everything else. Prints seconds, processor time and peak memory of every step.
# Exits with 1 if a goal is missed: import within 1 GB, 40 bytes per event of index, under two minutes of
# processor time per baseline, no record that differs. Needs 1 GB of space per 25 M events.
set -eu

fullrank=${1:?usage: scale.sh BUILD DIR [EVENTS [IDS [CHECKS]]]}/fullrank
folder=$(mktemp -d "${2:?usage: scale.sh BUILD DIR [EVENTS [IDS [CHECKS]]]}/fullrank-scale-XXXXXX")
events=${3:-50000000}
ids=${4:-1000000}
checks=${5:-10000}
trap 'rm -rf "$folder"' EXIT
missed=0

# measure NAME COMMAND...: wall and processor seconds and peak memory; sets wall and peak (MB).
measure() {
    name=$1
    shift
    /usr/bin/time -o "$folder/time" -f '%e %U %M' "$@" >"$folder/out" 2>"$folder/err" || {
        cat "$folder/err" >&2
        exit 1
    }
    read -r wall user peak <"$folder/time"
    peak=$((peak / 1024))
    printf '%-28s %8s s, %8s s of processor time, %6d MB\n' "$name" "$wall" "$user" "$peak"
}

# at_most NUMBER LIMIT WHAT
at_most() {
    if [ "$(printf '%s %s\n' "$1" "$2" | awk '{print ($1 <= $2)}')" = 0 ]; then
        echo "scale.sh: $3: $1, expected at most $2" >&2
        missed=1
    fi
}

"$(dirname "$fullrank")/bench/scale_stream" "$events" "$ids" "$ids" >"$folder/table.csv"
measure import "$fullrank" data import "$folder/table.csv" -o "$folder/columns" -q
at_most "$peak" 1024 "memory of the import, MB"
rm "$folder/table.csv"
measure "data info" "$fullrank" data info "$folder/columns" --window 0 -q
for name in popularity recent-popularity recency frequency decayed-frequency membership edgebank \
    edgebank,memory=window edgebank,memory=duration edgebank,memory=threshold edgebank,memory=interval markov; do
    measure "$name" "$fullrank" rank --data "$folder/columns" --window 0 --scorer "baseline:$name" \
        -o "$folder/ranks.npy" --force -q
    at_most "$wall" 120 "$name, seconds"
    rm -f "$folder"/ranks.*
    [ "$checks" = 0 ] && continue
    measure "$name, $checks compared" "$fullrank" rank --data "$folder/columns" --window 0 \
        --scorer "baseline:$name" --sample-events $((checks + checks / 10)) --verify "$checks" \
        -o "$folder/ranks.npy" --force -q
    at_most "$checks" "$(sed -n '/"verify"/,/}/s/.*"events": \([0-9]*\).*/\1/p' "$folder/ranks.json")" \
        "$name, records asked for against those compared"
    at_most "$(sed -n 's/.*"ranks_differ": \([0-9]*\).*/\1/p' "$folder/ranks.json")" 0 "$name, records that differ"
    rm -f "$folder"/ranks.*
done
exit $missed
