#!/bin/sh
# wide.sh - tables on a terminal that is narrower than they are. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY wide.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: wide.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
if ! command -v python3 >/dev/null; then
    skip "tables on a terminal" "python3 not found"
    finish
fi
if ! python3 "$FULLRANK_SOURCE/tests/terminal.py" 80 /bin/echo x >/dev/null 2>&1; then
    skip "tables on a terminal" "there is no terminal to be had"
    finish
fi
"$fullrank" data synth --preset tiny --events 1500 -o data >/dev/null 2>&1
for scorer in recency edgebank; do
    "$fullrank" rank --data data --scorer baseline:$scorer -o $scorer.npy -q >/dev/null 2>&1
done
on() { # COLUMNS ARGUMENTS...: what it prints, without styles
    columns=$1
    shift
    NO_COLOR=1 python3 "$FULLRANK_SOURCE/tests/terminal.py" "$columns" "$fullrank" "$@" -q
}
widest() { python3 -c 'import sys; print(max(map(len, sys.stdin.read().splitlines())))'; }
numbers() { grep -oE '[0-9][0-9.,]*' | sort -u; }

for command in "metrics" "compare --k 1,5,20,50"; do
    # shellcheck disable=SC2086 # words
    set -- $command recency.npy edgebank.npy
    whole=$("$fullrank" "$@" -q 2>/dev/null)
    folded=$(on 80 "$@")
    is "$1: fits into 80 columns" "$([ "$(echo "$folded" | widest)" -le 80 ] && echo yes)" yes
    is "$1: was wider" "$([ "$(echo "$whole" | widest)" -gt 80 ] && echo yes)" yes
    is "$1: has the same numbers" "$(echo "$folded" | numbers)" "$(echo "$whole" | numbers)"
    is "$1: --wide has whole lines" "$(on 80 "$@" --wide)" "$whole"
    is "$1: so has a wide terminal" "$(on 300 "$@")" "$whole"
done
is "every part names its rows" \
    "$(on 40 metrics recency.npy | grep -A 1 '^scorer' | grep -c '^baseline:recency')" 7
is "JSON is not folded" "$(on 80 metrics recency.npy --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["scorer"])')" \
    baseline:recency
is "nor is Markdown" "$(on 60 metrics recency.npy --format markdown)" \
    "$("$fullrank" metrics recency.npy --format markdown -q)"
finish
