#!/bin/sh
# Why does the leaderboard have another number? One setting at a time, from TGB's protocol to the full catalog.
#
#     examples/shell/why_different.sh
set -eu
fullrank=${FULLRANK:-fullrank}
[ -d data ] || "$fullrank" data synth --preset tiny --events 3000 -o data --quiet >/dev/null
"$fullrank" explain --data data --scorer baseline:edgebank --from tgb --to fullrank --quiet
