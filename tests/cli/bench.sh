#!/bin/sh
# bench.sh - `bench scaling` as a user types it. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY bench.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: bench.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
# shellcheck disable=SC2317 # runs calls it
scaling() { "$fullrank" bench scaling --data tiny --events 20 "$@"; }
"$fullrank" data synth --preset tiny -o tiny --quiet >/dev/null
"$fullrank" train --data tiny --model craft --dim 8 --history 8 --epochs 1 -o run --quiet >/dev/null
all=$("$fullrank" data info tiny --json --quiet | sed -n '/"catalog"/,/}/s/.*"size": \([0-9]*\).*/\1/p' | head -n 1)

runs "a baseline" 0 scaling --scorer baseline:recency
has "as a table" "$stdout" "ms/event"
has "up to the whole catalog" "$stdout" "$all  whole"
runs "a model" 0 scaling --scorer run/model.safetensors --csv --repeats 1
is "as CSV" "$(printf '%s\n' "$stdout" | head -n 1)" "size,path,scored,events,ms_per_event,mrr,peak_bytes"
is "of these sizes" "$(printf '%s\n' "$stdout" | awk -F, 'NR > 1 { printf "%s %s %s, ", $1, $2, $4 }')" \
    "20 forward 20, 50 forward 20, $all forward 20, $all fast 20, $all rank 20, "
runs "as JSON" 0 scaling --scorer baseline:popularity --json
has "with its keys" "$stdout" '"ms_per_event"'
runs "one form only" 2 scaling --scorer baseline:recency --json --csv
runs "without a scorer" 2 scaling
runs "another catalog" 2 scaling --scorer baseline:recency --catalog time
has "is refused" "$stderr" "catalog time has no size of its own, expected a fixed one"
finish
