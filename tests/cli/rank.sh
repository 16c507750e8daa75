#!/bin/sh
# rank.sh - `rank`, `metrics`, `baselines`, `data synth` and `demo` as a user types them. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY rank.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: rank.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
python=${FULLRANK_PYTHON:-}
cd "$scratch" || exit 1
rank() { "$fullrank" rank --data tiny "$@"; }
metrics() { "$fullrank" metrics "$@"; }

# A stream with a known distribution.
runs "synth" 0 "$fullrank" data synth --preset tiny -o tiny
has "synth says what it made" "$stdout" "tiny: 6,000 events"
runs "synth again is refused" 1 "$fullrank" data synth --preset tiny -o tiny
has "because it exists" "$stderr" "tiny: exists; --force replaces it"
runs "synth --force" 0 "$fullrank" data synth --preset tiny -o tiny --force
runs "synth without a place" 2 "$fullrank" data synth
runs "synth of an unknown preset" 2 "$fullrank" data synth --preset wiki -o x
runs "synth with a bad parameter" 2 "$fullrank" data synth --parameters repeat=2 -o x
has "names it" "$stderr" "repeat: found \"2\", expected a number from 0 to 1"
runs "synth with a parameter" 0 "$fullrank" data synth --parameters repeat=0,drift=0 --events 500 -o free
has "of that length" "$stdout" "free: 500 events"
runs "synth --list" 0 "$fullrank" data synth --list
has "lists presets" "$stdout" "lastfm"

# Destinations that come late are not in the catalog.
awk 'BEGIN { print "u,v,t"; for (i = 0; i < 400; i++) print i % 7 "," (i * 7919) % int(5 + i / 10) "," i }' >late.csv
"$fullrank" data import late.csv -o late >/dev/null

# Every baseline, and the oracle above all of them.
best=0
"$fullrank" baselines --json | sed -n 's/.*"name": "\(.*\)".*/\1/p' >names
is "nine baselines" "$(wc -l <names | tr -d ' ')" 9
mrr() { # SPEC FILE: ranks and prints the MRR
    rank --scorer "$1" -o "$2.npy" --json 2>/dev/null </dev/null | sed -n 's/.*"mrr": \([0-9.]*\).*/\1/p'
}
each() { while read -r name; do mrr "baseline:$name" "$name"; done; }
each <names >mrrs
is "every baseline ranks" "$(wc -l <mrrs | tr -d ' ')" 9
best=$(sort -g mrrs | tail -n 1)
oracle=$(mrr oracle truth)
if awk "BEGIN { exit !($oracle > $best) }"; then
    pass "the oracle is above every baseline"
else
    miss "the oracle is above every baseline" "oracle $oracle, best $best"
fi
runs "baselines as text" 0 "$fullrank" baselines
has "with definitions" "$stdout" "The source's own destinations come first"

# The same bytes with any number of threads and any shards.
for threads in 1 2 5; do
    for shard in 1 7 64; do
        rank --scorer baseline:edgebank,memory=window -o "t$threads-$shard.npy" --threads $threads \
            --shard $shard >/dev/null 2>&1
        cmp -s t1-1.npy "t$threads-$shard.npy" || echo "$threads threads, shard $shard"
    done
done >differ
is "1, 2, 5 threads and shards of 1, 7, 64 give the same file" "$(cat differ)" ""

# Scores are dumped and read back.
runs "dump scores" 0 rank --scorer baseline:markov -o a.npy --dump-scores scores.npy
runs "rank the dump" 0 rank --scorer scores:scores.npy -o b.npy --json
is "with the same MRR" "$(printf '%s' "$stdout" | sed -n 's/.*"mrr": \(.*\),/\1/p')" \
    "$(metrics a.npy --json | sed -n '/^  "mrr":/s/.*: \(.*\),/\1/p')"
runs "dump some events" 0 rank --scorer baseline:markov -o c.npy --dump-scores some.npy --events every:100
runs "a dump that exists" 1 rank --scorer baseline:markov -o d.npy --dump-scores some.npy
is "leaves no records" "$(ls d.npy 2>/dev/null)" ""

refused_side() { # FILE.npy: only its .json is there
    printf '{}\n' >lonely.json
    runs "a side file that exists: $*" 1 rank --scorer baseline:markov "$@"
    has "is named" "$stderr" "lonely.json: exists; --force replaces it"
    is "and kept" "$(cat lonely.json)" "{}"
    rm -f lonely.json
}
refused_side -o lonely.npy
refused_side -o d.npy --dump-scores lonely.npy
# The best candidates: of any scorer, with any number of threads the same bytes.
runs "rank --top" 0 rank --scorer baseline:markov -o best.npy --top 4
is "writes a file beside the records" "$(head -n 1 best.top.csv)" "event,source,destination,place,candidate,score,positive"
is "four lines for each ranked event" "$(wc -l <best.top.csv | tr -d ' ')" 3601
is "best first" "$(awk -F , 'NR > 2 && $1 == e && ($6 + 0 > s + 0 || ($6 == s && $5 < c)) { print NR } { e = $1; s = $6; c = $5 }' \
    best.top.csv)" ""
is "the destination is told" "$(awk -F , 'NR > 1 && ($3 == $5) != $7' best.top.csv)" ""
for scorer in baseline:markov baseline:random scores:scores.npy oracle; do
    for threads in 1 2 5; do
        rank --scorer $scorer -o best-$threads.npy --top 4 --threads $threads --force >/dev/null 2>&1
        cmp best-1.top.csv best-$threads.top.csv || echo "$scorer, $threads threads"
    done
done >differ 2>&1
is "1, 2, 5 threads: the same best candidates" "$(cat differ)" ""
rank --scorer scores:scores.npy -o again.npy --top 4 --top-output again.csv >/dev/null 2>&1
if cmp -s best.top.csv again.csv; then pass "and those of its score file"; else miss "and those of its score file"; fi
runs "a file of best candidates that exists" 1 rank --scorer baseline:markov -o best9.npy --top 4 --top-output again.csv
has "is named" "$stderr" "again.csv: exists; --force replaces it"
runs "best candidates of counts" 2 rank --scorer counts:none.npy -o best9.npy --top 4
has "there are none" "$stderr" "option top: counts have no candidates to show"
runs "a file without a number" 2 rank --scorer baseline:markov -o best9.npy --top-output x.csv
has "asks for it" "$stderr" "option top-output without --top K"
runs "a file of another kind" 2 rank --scorer baseline:markov -o best9.npy --top 3 --top-output x.npy
has "says which" "$stderr" "expected a name that ends in .csv"
for file in best9.npy best9.top.csv x.csv x.npy; do [ ! -e $file ] || echo $file; done >left
is "nothing is left" "$(cat left)" ""
runs "rank --interval" 0 rank --scorer baseline:markov -o best.npy --force --interval --resamples 200 --json
has "has intervals" "$stdout" '"intervals": {'
runs "rank --format csv" 0 rank --scorer baseline:markov -o best.npy --force --format csv
is "a head and a row" "$(printf '%s\n' "$stdout" | wc -l | tr -d ' ')" 2
runs "rank --format latex" 0 rank --scorer baseline:markov -o best.npy --force --format latex
has "is a table" "$stdout" "begin{tabular}"

runs "records and scores in one file" 2 rank --scorer baseline:markov -o same.npy --dump-scores ./same.npy
has "are refused" "$stderr" "are the same file"
is "before ranking" "$(ls same.* 2>/dev/null)" ""
cp a.json a-kept.json && cp recency.json a.json
runs "metrics of an exchanged pair" 1 metrics a.npy
has "says so" "$stderr" "one of the two was changed or exchanged"
mv a-kept.json a.json
has "the seed is recorded" "$(cat a.json)" '"seed": 0'
has "the score file's hash is recorded" "$(cat b.json)" "\"scorer_sha256\": \"$(sha256sum scores.npy | cut -d ' ' -f 1)\""
has "the records' hash is recorded" "$(cat b.json)" "\"sha256\": \"$(sha256sum b.npy | cut -d ' ' -f 1)\""
is "no time-available MRR from a file of the catalog only" \
    "$("$fullrank" rank --data late --scorer baseline:recency -o l.npy --dump-scores ls.npy >/dev/null 2>&1
        "$fullrank" rank --data late --scorer scores:ls.npy -o l2.npy >/dev/null 2>&1
        metrics l2.npy --json 2>/dev/null | sed -n 's/.*"mrr_available": \(.*\),/\1/p')" "null"
runs "dump of the time-available catalog" 0 "$fullrank" rank --data late --catalog time \
    --scorer baseline:recency -o lt.npy --dump-scores lts.npy
runs "can be ranked again" 0 "$fullrank" rank --data late --catalog time --scorer scores:lts.npy -o lt2.npy
is "with the same numbers" "$(metrics lt2.npy --json | grep -v 'scorer\|file')" \
    "$(metrics lt.npy --json | grep -v 'scorer\|file')"

# Metrics.
runs "metrics of several files" 0 metrics recency.npy edgebank.npy --sampler history-mix-100,popularity
has "a table" "$stdout" "Expected-20"
has "a word on ties" "$stdout" "The tie rule decides (average ranks are shown) for: baseline:edgebank"
has "the samplers asked for" "$stdout" "half source history, half unseen"
has "the small-pool rule" "$stdout" "A pool that is too small is taken whole."
has "how many events count" "$stdout" "900 of 900"
has "a table of hits" "$stdout" "Hits@k, full catalog"
runs "metrics of other numbers" 0 metrics recency.npy --hits 2,7 --k 3,9 --draws 3
has "shows that Hits@k" "$stdout" "Hits@2"
has "shows that K" "$stdout" "Expected-3"
has "shows what was drawn" "$stdout" "  drawn"
has "with how many seeds" "$stdout" "over 3 seeds"
rank --scorer baseline:recency --oov zero --window 3000 -o zero.npy >/dev/null 2>&1
rank --scorer baseline:recency --window 3000 --popularity-power 0 -o power.npy >/dev/null 2>&1
runs "metrics of other protocols" 0 metrics recency.npy zero.npy power.npy
has "a warning for each names the fields and both values" "$stderr" \
    "recency.npy and zero.npy follow different protocols and must not be compared; they differ in window ("
has "of the second, too" "$stderr" "popularity_power (1 against 0)"
"$fullrank" rank --data late --scorer baseline:recency --oov zero -o lz.npy >/dev/null 2>&1
is "ranked is what the metric says under oov = zero" \
    "$(metrics lz.npy | awk '/^baseline/ { print $8; exit }')" \
    "$(metrics lz.npy --json | sed -n 's/^  "ranked": \(.*\),/\1/p')"
runs "metrics --json" 0 metrics recency.npy --json --sampler random-100 --draws 3
for key in mrr hits ranked coverage ties expected all_seen all_unseen mrr_by_tie_rule sampled; do
    has "has $key" "$stdout" "\"$key\":"
done
runs "metrics of slices" 0 metrics recency.npy edgebank.npy --by repeated,source-degree:3 -m mrr,ranked
has "a table for each field and ranking" "$stdout" "By source-degree, baseline:edgebank"
is "of repeated and new pairs with all" "$(printf '%s\n' "$stdout" | sed -n '3,5s/ .*//p' | tr '\n' ' ')" "repeated new all "
is "whose MRR is the metric of this group" "$(printf '%s\n' "$stdout" | awk '/^repeated/ { print $4; exit }')" \
    "$(metrics recency.npy -m mrr-repeated | awk 'END { print $2 }')"
runs "slices as JSON" 0 metrics recency.npy --by time:2,gap --json
has "an entry for each" "$stdout" '"slice": "new"'
is "with the same events" "$(printf '%s\n' "$stdout" | awk -F'[ ,]+' '/"events"/ { n += $3 } END { print n / 2 }')" 900
runs "slices in lines" 0 metrics recency.npy --by repeated --lines
has "with dots" "$stdout" "slices.repeated.new.mrr"
runs "slices by what is not there" 2 metrics recency.npy --by tiem
has "the nearest is named" "$stderr" "option by: unknown slice tiem, did you mean time?"
runs "one field twice" 2 metrics recency.npy --by time,time:3
has "is refused" "$stderr" "time and time:3 are the same field"
runs "slices of samplers" 2 metrics recency.npy --by time --sampler random-5
has "are not offered" "$stderr" "without --sampler"
runs "the fields of slices" 0 metrics --help slices
has "with their titles" "$stdout" "time since the pair last met"
runs "one of them" 0 metrics --help inductive
runs "metrics --help metrics" 0 metrics --help metrics
printf '%s\n' "$stdout" | awk '{ print $1 }' >registered
metrics recency.npy --json >all.json
while read -r name; do # every metric of the registry has a key and can be asked for alone
    case $name in *@k) word=${name%k}3 ;; *) word=$name ;; esac
    key=$(printf '%s' "${name%@k}" | tr - _)
    metrics recency.npy -m "$word" --json >one.json 2>&1 || echo "$word: $(cat one.json)"
    grep "^  \"$key\":" one.json | tr -d ',' >one
    grep "^  \"$key\":" all.json | tr -d ',' | cmp -s - one && [ -s one ] || echo "$name: $(cat one)"
done <registered >missing
is "every metric of the registry is reachable" "$(cat missing)" ""
runs "metrics by name" 0 metrics recency.npy edgebank.npy -m mrr-new,hits@3,ties
is "a column each" "$(printf '%s\n' "$stdout" | head -n 1 | tr -s ' ')" "scorer mrr-new hits@3 ties"
is "a row each, and no other table" "$(printf '%s\n' "$stdout" | wc -l | tr -d ' ')" 3
runs "metrics by name, and a sampler" 0 metrics recency.npy -m ranked --sampler random-20 --lines
is "nothing else" "$(printf '%s\n' "$stdout" | awk '{ print $1 }' | tr '\n' ' ')" \
    "ranked sampled.random.20.mrr sampled.random.20.hits10 sampled.random.20.sd sampled.random.20.events sampled.random.20.ineligible "
is "a count is a whole number" "$(printf '%s\n' "$stdout" | awk '$1 == "ranked" { print $3 }')" 900
runs "metrics --lines" 0 metrics recency.npy --lines
has "one number a line" "$stdout" "expected.20.mrr	baseline:recency	0."
runs "metrics --interval" 0 metrics recency.npy edgebank.npy --interval --block 32 --resamples 200
has "below the numbers" "$stdout" "[0."
has "says what they are" "$stdout" "95% intervals over time blocks of 32 events, 200 resamples"
for threads in 1 2 5; do
    metrics recency.npy --interval --block 32 --resamples 300 --json --threads $threads >i$threads.json
    cmp -s i1.json i$threads.json || echo $threads
done >differ
is "1, 2, 5 threads: the same intervals" "$(cat differ)" ""
while read -r name; do # every metric has one
    key=$(printf '%s' "${name%@k}" | tr - _)
    sed -n '/"intervals"/,$p' i1.json | grep -q "^    \"$key\": {" || echo "$name"
done <registered >missing
is "every metric of the registry has an interval" "$(cat missing)" ""
metrics recency.npy -m mrr,median-rank --interval --block 32 --resamples 300 --format csv >interval.csv
is "metrics --format csv: a column for each number" "$(head -n 1 interval.csv)" \
    "file,scorer,data,protocol,mrr,median_rank,intervals.level,intervals.block,intervals.resamples,intervals.seed,intervals.mrr.low,intervals.mrr.high,intervals.median_rank.low,intervals.median_rank.high"
is "with all digits" "$(metrics recency.npy -m mrr --format csv | tail -n 1 | sed 's/.*,//')" \
    "$(metrics recency.npy -m mrr --json | sed -n 's/^  "mrr": \(.*\),/\1/p')"
runs "metrics --format csv, two files" 0 metrics recency.npy edgebank.npy --format csv
is "a row each" "$(printf '%s\n' "$stdout" | wc -l | tr -d ' ')" 3
runs "metrics --format latex" 0 metrics recency.npy edgebank.npy --interval --block 32 --resamples 200 --format latex
has "has the table" "$stdout" 'scorer & MRR & Hits@10 & Expected-20'
has "the protocol as a comment" "$stdout" '% data_sha256='
is "and in no caption" "$(printf '%s\n' "$stdout" | grep caption | grep -c sha256)" 0
runs "metrics --format markdown" 0 metrics recency.npy --format markdown --sampler history-mix-20
has "has the samplers" "$stdout" "Sampler history-mix"
runs "lines in another format" 2 metrics recency.npy --lines --format csv
has "are refused" "$stderr" "options lines and format, expected one or the other"
runs "metrics --per-event" 0 metrics recency.npy --per-event events.tsv
is "one line per event and a header" "$(wc -l <events.tsv | tr -d ' ')" 901
runs "per-event that exists" 1 metrics recency.npy --per-event events.tsv
cp events.tsv before.tsv && : >target.tsv && ln -s target.tsv link.tsv
runs "per-event through a symbolic link" 1 metrics recency.npy --per-event link.tsv
runs "per-event through a symbolic link by force" 0 metrics recency.npy --per-event link.tsv --force
is "the link stays a link" "$(readlink link.tsv)" "target.tsv"
is "its target is written" "$(cksum <target.tsv)" "$(cksum <before.tsv)"
mkfifo pipe.tsv
cat pipe.tsv >piped.tsv &
runs "per-event to a pipe" 0 metrics recency.npy --per-event pipe.tsv --force
wait
is "is written into it" "$(cksum <piped.tsv)" "$(cksum <before.tsv)"
is "and it stays a pipe" "$([ -p pipe.tsv ] && echo pipe)" "pipe"
runs "per-event to /dev/null" 0 metrics recency.npy --per-event /dev/null
rm -f pipe.tsv
odd=$(printf 'odd\377.npy') && cp recency.npy "$odd" && cp recency.json "${odd%.npy}.json"
runs "a path that is not UTF-8" 0 metrics "$odd" --json
has "is shown as far as possible" "$stdout" '"file": "odd\\xff.npy"'
runs "and as an output" 0 rank --scorer baseline:recency -o "$odd" --force --json
rm -f "$odd" "${odd%.npy}.json"
runs "per-event to stdout" 0 metrics recency.npy --per-event -
has "with ranks" "$stdout" "reciprocal_rank"
runs "help on a metric" 0 metrics --help all-seen
has "explains it" "$stdout" "repeated"
runs "help on a sampler" 0 metrics --help history-mix-100
has "explains it, too" "$stdout" "TGB"
runs "help on all" 0 metrics --help all
runs "help on nothing known" 2 metrics --help xyzzy
runs "help on something near" 2 metrics --help al-seen
has "names it" "$stderr" "did you mean all-seen?"

# Wrong requests: one line, the right code, nothing written.
refused() { # NAME CODE MESSAGE COMMAND...
    name=$1 want=$2 message=$3
    shift 3
    before=$(find . | sort | cksum)
    runs "$name" "$want" "$@"
    said=$(printf '%s\n' "$stderr" | grep -v '^fullrank: note: ')
    has "$name: says why" "$said" "$message"
    is "$name: one line, nothing left" "$(printf '%s\n' "$said" | wc -l | tr -d ' ') $(find . | sort | cksum)" \
        "1 $before"
}
refused "no scorer" 2 "option --scorer SPEC is missing" rank -o x.npy
refused "counts without a file" 2 "counts: no file is named, expected FILE.npy" rank --scorer counts: -o x.npy
for option in "met 3" "popularity-power 2" "verify 3" "dump-scores d.npy"; do
    # shellcheck disable=SC2086 # an option and its value
    refused "counts with $option" 2 "options ${option% *} and scorer counts:none.npy, expected one or the other" \
        rank --scorer counts:none.npy -o x.npy --$option
done
refused "events without a dump" 2 'option events: found "first:3" without dump-scores' \
    rank --scorer baseline:random -o x.npy --events first:3
refused "unknown scorer" 2 "unknown scorer recency" rank --scorer recency -o x.npy
refused "unknown baseline" 2 "did you mean recency?" rank --scorer baseline:recensy -o x.npy
refused "no such data" 1 "nowhere: cannot be read" "$fullrank" rank --data nowhere --scorer oracle -o x.npy
refused "records that exist" 1 "a.npy: exists" rank --scorer baseline:random -o a.npy
refused "a name that is no .npy" 2 "ends in .npy" rank --scorer baseline:random -o a.txt
refused "a place that is not there" 1 "no/x.npy: cannot be written" rank --scorer oracle -o no/x.npy
refused "scores that do not fit" 1 "no row for event" rank --scorer scores:some.npy -o x.npy
refused "metrics of no file" 2 "argument RANKS.npy... is missing" metrics
refused "metrics of a score file" 1 "not a file of rank records" metrics scores.npy
refused "metrics of nothing" 1 "none.npy: cannot be read" metrics none.npy
refused "a bad K" 2 "option k: found \"0\"" metrics a.npy --k 0
refused "a metric that is not there" 2 "unknown metric xyzzy" metrics a.npy -m xyzzy
refused "a misspelled metric" 2 "did you mean mrr-new?" metrics a.npy -m mrr-nwe
refused "draws of metrics by name" 2 "option draws" metrics a.npy -m mrr --draws 3
refused "a bad sampler" 2 "unknown sampler xyzzy" metrics a.npy --sampler xyzzy
refused "a misspelled sampler" 2 "did you mean tgb-hist?" metrics a.npy --sampler tgb-hsit-100
many=uniform && for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do many=$many,random-$n; done
refused "too many samplers" 2 "random-16 is one too many" metrics a.npy --sampler "$many"
refused "per-event to a directory" 1 "tiny: is a directory" metrics a.npy --per-event tiny --force
refused "a place for scores that is not there" 1 "no/s.npy: cannot be written" \
    rank --scorer oracle -o x.npy --dump-scores no/s.npy
if [ -n "$python" ]; then
    "$python" - <<'END'
import json, numpy as np
s = np.load("scores.npy"); s[2, 3] = np.nan; np.save("nan.npy", s)
json.dump(json.load(open("scores.json")), open("nan.json", "w"))
np.save("fortran.npy", np.asfortranarray(np.load("scores.npy")))
END
    refused "a Fortran array" 1 "np.ascontiguousarray" rank --scorer scores:fortran.npy -o x.npy
    is "Ctrl-C while drawing" "$("$python" "$FULLRANK_SOURCE/tests/interrupt.py" SIGINT "$fullrank" metrics recency.npy \
        --draws 1000000)" "130"

    refused "a NaN in a score file" 1 "score of destination" rank --scorer scores:nan.npy -o x.npy
    "$python" - >numpy.mrr <<'END'
import numpy as np
r = np.load("recency.npy"); r = r[r["covered"] == 1]
print("%.12f" % (1 / (1 + r["above"] + r["tied"] / 2)).mean())
END
    is "NumPy computes the same MRR" "$(cat numpy.mrr)" \
        "$(metrics recency.npy --json | sed -n '/^  "mrr":/s/.*: \(.*\),/\1/p' | xargs printf '%.12f')"
else
    skip "score files through NumPy" "python3 with NumPy is not installed"
fi

# The demo, a study: after a kill it continues; a finished one is only shown. It takes minutes under sanitizers, so
# they get its document with one epoch.
demo="demo --events 1200"
if [ -n "$sanitized" ]; then
    "$fullrank" study preset demo | sed 's/"epochs": 12/"epochs": 1/; s/"events": 10000/"events": 1200/' >demo.json
    demo="study run demo.json"
fi
mkdir demo # an empty directory is fine
# shellcheck disable=SC2086 # options are words; no function, or not the tool but a shell would be killed
"$fullrank" $demo -o demo -q >/dev/null 2>&1 &
child=$!
sleep 1
kill -9 $child
wait $child 2>/dev/null
# shellcheck disable=SC2086
runs "a killed demo goes on" 0 "$fullrank" $demo -o demo
is "its table begins with the oracle" \
    "$(printf '%s\n' "$stdout" | sed -n '/^synthetic$/,/^Expected/p' | awk 'NF > 4 && $1 != "Expected" { print $1 }' | tr '\n' ' ')" \
    "oracle recency edgebank popularity markov random CRAFT CRAFT-R GraphMixer TGN "
is "and ends with the place of the report" "$(printf '%s\n' "$stdout" | tail -n 1)" "demo/report.html"
lacks "columns of the paper, which has no such data, are left out" "$stdout" "paper"
is "no line of it is longer than 100 columns" "$(printf '%s\n' "$stdout" | awk 'length($0) > 104')" ""
is "every kind of result is there" "$(cd demo && echo costs/*.txt tables/*.txt)" \
    "costs/scaling.txt costs/timing.txt tables/exhaustive.txt tables/expected.txt tables/gain.txt \
tables/intervals.txt tables/kendall.txt tables/main.txt tables/membership.txt tables/minimal.txt tables/models.txt \
tables/pairs.txt tables/projection-cells.txt tables/projection.txt tables/settings.txt tables/ties.txt \
tables/time-available.txt"
first=$stdout
# shellcheck disable=SC2086
runs "demo again" 0 "$fullrank" $demo -o demo
is "shows the same" "$stdout" "$first"
is "and does nothing" "$stderr" ""
mkdir mine && echo precious >mine/recency.npy
runs "demo among other files" 1 "$fullrank" demo -o mine
has "is refused" "$stderr" "mine: exists and is not from an earlier demo"
is "and leaves them alone" "$(ls mine) $(cat mine/recency.npy)" "recency.npy precious"
printf '{"name": "own", "data": {"drawn": {"synth": "tiny", "events": 300}}, "baselines": ["recency"]}' >own.json
runs "a study of the user's own" 0 "$fullrank" study run own.json -o own -q
runs "demo in its place" 1 "$fullrank" demo -o own
has "is refused, too" "$stderr" "own: exists and is not from an earlier demo"

# Only one process at a time writes RANKS.npy and RANKS.json.
"$fullrank" data synth --preset tiny --events 800 -o few -q >/dev/null
if command -v flock >/dev/null; then
    mkfifo hold
    flock pair.npy.lock sh -c ': >locked; read -r _ <hold' & # until something is written to `hold`
    tries=0
    while [ ! -e locked ] && [ $((tries += 1)) -le 300 ]; do sleep 0.2; done
    "$fullrank" rank --data few --scorer baseline:recency -o pair.npy -q >/dev/null 2>&1 &
    second=$!
    sleep 2
    is "a ranking waits until another has written its pair" "$(ls pair.npy pair.json 2>/dev/null)" ""
    echo go >hold
    wait $second
    is "and then writes its own" "$? $(ls pair.*)" "0 $(printf 'pair.json\npair.npy')"
    wait
else
    skip "two rankings into one file" "flock is not installed"
fi

# Nested draws on a real ranking: 2,000 seeds (fewer under sanitizers, which are slow).
wikipedia=$(data_file wikipedia.csv.gz)
if [ -n "$wikipedia" ]; then
    seeds=2000
    [ -z "$sanitized" ] || seeds=60
    "$fullrank" rank --data "$wikipedia" --scorer baseline:recency -o wikipedia.npy >/dev/null 2>&1
    metrics wikipedia.npy --draws $seeds --lines 2>/dev/null >lines
    far=$(awk -F '\t' -v n=$seeds '{ v[$1] = $3 }
        END { for (k = split("1 5 20 50 100", list, " "); k; k--) {
            e = "expected." list[k]; d = v[e ".drawn.mrr"] - v[e ".mrr"]; s = v[e ".drawn.sd"]
            # the printed six digits add 1e-6 to each side
            if (d * d > (4 * s / sqrt(n) + 2e-6) ^ 2) print "K = " list[k] ": " d
            if (s > 1.3 * v[e ".sd"] || s < 0.7 * v[e ".sd"]) print "sd at K = " list[k] ": " s
            tested++ }
            if (tested != 5) print "not all tested" }' lines)
    is "the mean of $seeds seeds is within 4 standard errors for every K" "$far" ""
else
    skip "nested draws on a real ranking" "real data not found"
fi
finish
