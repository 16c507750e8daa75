#!/bin/sh
# Too many test events: rank a random sample of them. Numbers are then estimates and carry intervals.
#
#     examples/shell/sample.sh
set -eu
fullrank=${FULLRANK:-fullrank}
[ -d data ] || "$fullrank" data synth --preset tiny --events 3000 -o data --quiet >/dev/null
"$fullrank" rank --data data --scorer baseline:recency -o all.npy --force --quiet
"$fullrank" rank --data data --scorer baseline:recency -o some.npy --sample-events 150 --interval --force --quiet
