#!/bin/sh
# Look at single events: what ranked above the true destination, and where the worst ranks are.
#
#     examples/shell/one_event.sh
set -eu
fullrank=${FULLRANK:-fullrank}
[ -d data ] || "$fullrank" data synth --preset tiny --events 3000 -o data --quiet >/dev/null
"$fullrank" rank --data data --scorer baseline:markov -o markov.npy --top 3 --force --quiet >/dev/null
echo "The three best candidates of the first events (markov.top.csv):"
head -n 7 markov.top.csv
echo "The five events with the smallest 1/rank:"
"$fullrank" metrics markov.npy -m mrr --per-event markov.events.tsv --quiet >/dev/null
head -n 1 markov.events.tsv
sed 1d markov.events.tsv | sort -t "$(printf '\t')" -k 12g | head -n 5
