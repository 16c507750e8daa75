#!/bin/sh
# brute_ranks.sh - some random streams; `tests/brute_ranks.py FULLRANK --runs 2000` does more.
# shellcheck source=tests/tap.sh
. "$FULLRANK_SOURCE/tests/tap.sh"
if [ -z "${FULLRANK_PYTHON:-}" ]; then
    skip "brute-force ranks" "needs python3 with NumPy"
    finish
fi
runs=40
[ -z "$sanitized" ] || runs=8
# The second seed starts with a stream on which popularity masses were once wrong.
for seed in "" "--seed 5"; do
    # shellcheck disable=SC2086 # two words or none
    runs "every record $seed" 0 "$FULLRANK_PYTHON" "$FULLRANK_SOURCE/tests/brute_ranks.py" "$1" --runs $runs $seed
    echo "$stdout" | sed 's/^/#   /'
done
finish
