#!/bin/sh
# sample.sh - samples of test events: every output says that its numbers are estimates, and they
# are never mixed with exact numbers. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY sample.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: sample.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
rank() { "$fullrank" rank --data tiny "$@"; }
"$fullrank" data synth --preset tiny -o tiny >/dev/null
for scorer in recency random popularity; do
    rank --scorer baseline:$scorer -o all-$scorer.npy >/dev/null
    rank --scorer baseline:$scorer --sample-events 300 -o $scorer.npy >/dev/null
done

runs "a sample is ranked" 0 rank --scorer baseline:recency --sample-events 300 -o again.npy
has "and says so" "$stdout" "baseline:recency (estimate: 300 of 900)"
has "with intervals" "$stdout" "95% confidence intervals for the value over all of them"
if cmp -s recency.npy again.npy; then pass "the same events again"; else miss "the same events again"; fi
runs "as many as there are is no sample" 0 rank --scorer baseline:recency --sample-events 900 -o whole.npy
lacks "and no estimate" "$stdout" "estimate"
if cmp -s whole.npy all-recency.npy; then pass "but the exact records"; else miss "but the exact records"; fi
has "the protocol has n of N" "$(cat recency.json)" '"sample": 300,'
has "and the seed" "$(cat recency.json)" '"sample_seed": 1'
runs "counts are of all events" 2 rank --scorer counts:x.npy --sample-events 300 -o x.npy
has "which it says" "$stderr" "counts are made from all events"
runs "scores of sampled events alone are dumped" 0 rank --scorer baseline:random --sample-events 5 -o five.npy --dump-scores five-scores.npy --top 2
is "and listed" "$(wc -l <five.top.csv | tr -d ' ')" 11
runs "such a file is enough for the sample" 0 rank --scorer scores:five-scores.npy --sample-events 5 -o back.npy
if cmp -s five.npy back.npy; then pass "with the same records"; else miss "with the same records"; fi
runs "but not for all events" 1 rank --scorer scores:five-scores.npy -o x.npy
has "which it says" "$stderr" "which is to be ranked"
runs "what is to be scored of a sample" 0 "$fullrank" rank --data tiny --list five-list.npy --sample-events 5
has "is its events" "$stdout" "five-list.npy: 5 events"
runs "of all" 0 "$fullrank" rank --data tiny --list list.npy
has "all events" "$stdout" "list.npy: 900 events"

runs "metrics of both kinds" 0 "$fullrank" metrics all-recency.npy recency.npy
has "warns" "$stderr" "they differ in sample (0 against 300)"
has "and marks the estimate" "$stdout" "baseline:recency (estimate: 300 of 900)"
for format in markdown latex; do
    runs "as $format" 0 "$fullrank" metrics recency.npy --resamples 200 --format $format
    has "marked" "$stdout" "(estimate: 300 of 900)"
    has "explained" "$stdout" "Estimates are from a simple random sample"
done
runs "as csv" 0 "$fullrank" metrics recency.npy --resamples 200 --format csv
has "with columns" "$stdout" "estimate.events,estimate.of,estimate.seed"
runs "as JSON" 0 "$fullrank" metrics recency.npy -m mrr,coverage,ties --json
has "marked" "$stdout" '"estimate": {'
has "intervals are over the sample" "$stdout" '"over": "sample"'
coverage=$("$fullrank" metrics all-recency.npy -m coverage --json | grep '"coverage"')
has "the coverage is that of all events" "$stdout" "$coverage"
runs "over time" 0 "$fullrank" metrics recency.npy -m mrr --interval --json
has "on demand" "$stdout" '"over": "time"'
runs "slices" 0 "$fullrank" metrics recency.npy --by repeated
has "are marked" "$stdout" "By repeated, baseline:recency (estimate: 300 of 900)"

runs "estimates are compared" 0 "$fullrank" compare recency.npy random.npy
has "as such" "$stdout" "All numbers are estimates from a simple random sample of 300 of 900 test events"
has "with intervals for all events" "$stdout" "all events 95%"
runs "as csv" 0 "$fullrank" compare recency.npy random.npy --format csv
has "with columns" "$stdout" "sample events,sample of"
runs "but not with exact results" 1 "$fullrank" compare recency.npy all-random.npy
has "naming the field" "$stderr" "differ in sample (300 against 0)"
rank --scorer baseline:random --sample-events 300 --sample-seed 2 -o other.npy >/dev/null
runs "nor with another sample" 1 "$fullrank" compare recency.npy other.npy
has "naming the field" "$stderr" "differ in sample_seed (1 against 2)"
runs "not by force" 1 "$fullrank" compare --force recency.npy other.npy

runs "a report" 0 "$fullrank" report recency.npy random.npy -o page.html --tables out
has "says it" "$(cat page.html)" "Estimates from a simple random sample of the test events: "
has "has the intervals" "$(cat out/tables/sample.txt)" "all events"
has "marks every row of CSV" "$(tail -n 1 out/tables/main.csv)" "300 of 900"
runs "does not mix" 1 "$fullrank" report recency.npy all-random.npy -o mixed.html
has "naming the field" "$stderr" "differ in sample (300 against 0)"
cat >study.json <<'END'
{"name": "sampled", "data": {"tiny": "tiny"}, "sample-events": 300, "baselines": ["recency", "popularity"],
 "ranks": {"other": "random.npy"}}
END
runs "a study of a sample" 0 "$fullrank" study run study.json -o study
has "marks its tables" "$(cat study/tables/main.md)" "tiny 300 of 900"
if find study -name '*.npy' -exec cmp -s recency.npy {} \; -print | grep -q .; then pass "has the same records"
else miss "has the same records" "$(find study -name '*.npy')"; fi
sed 's/300,/200,/' study.json >less.json
runs "records of another sample are refused" 1 "$fullrank" study run less.json -o less
has "naming the field" "$stderr" "differ in sample (300 against 200)"
sed 's/300,/"many",/' study.json >wrong.json
runs "a sample is a number" 1 "$fullrank" study run wrong.json -o wrong
has "which it says" "$stderr" "sample-events"
finish
