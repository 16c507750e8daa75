#!/bin/sh
# external.sh - external models in studies and reports: rank records and scorers are in every table,
# figure and in the page's data; another protocol is refused. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY external.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: external.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
study() { "$fullrank" study "$@"; }

# Two external models: one with rank records of three seeds, one with a file of scores.
mkdir theirs
"$fullrank" data synth --preset tiny --seed 3 --events 1500 -o mine >/dev/null 2>&1
rank() { # OUTPUT OPTIONS...
    output=$1
    shift
    "$fullrank" rank --data mine --force -q -o "$output" "$@" >/dev/null 2>&1
}
for seed in 7 17 27; do
    rank "theirs/ranks-$seed.npy" --window 0 --scorer baseline:random --seed $seed
done
rank markov.npy --window 0 --scorer baseline:markov --dump-scores theirs/scores.npy
write() { # FILE RANKS SCORERS
    cat >"$1" <<END
{"name": "beside", "data": {"mine": "mine"}, "protocol": {"window": 0}, "diagnostic-window": 0,
 "baselines": ["recency"], "models": ["craft", "craft-r"], "seeds": [7, 17, 27],
 "gain": ["craft-r", "my-tgn"], "membership": {"bce": ["craft"]}, "projection": ["craft"],
 "scaling": ["craft"], "settings": {"epochs": 1, "dim": 8, "history": 8},
 "ranks": $2, "scorers": $3}
END
}
lists='{"my-tgn": ["theirs/ranks-7.npy", "theirs/ranks-17.npy", "theirs/ranks-27.npy"]}'
scores='{"their scores": "scores:theirs/scores.npy"}'
write study.json "$lists" "$scores"

runs "a study with models of others" 0 study run --verbose study.json -o study
has "their units are named" "$stderr" "mine/my-tgn/17/rank"
has "those without seeds, too" "$stderr" "mine/their scores/rank"
for table in main expected ties time-available exhaustive pairs; do
    has "$table has the ranks" "$(cat study/tables/$table.csv)" my-tgn
    has "$table has the scores" "$(cat study/tables/$table.csv)" "their scores"
done
has "intervals of their gain" "$(cat study/tables/intervals.txt)" "MRR of my-tgn minus MRR of CRAFT-R"
is "over seeds and blocks" "$(grep -cE '^mine,full(,-?[0-9.e-]+){5}$' study/tables/intervals.csv)" 1
has "the agreement of orders counts them" "$(cat study/tables/kendall.txt)" "compared models"
for table in membership projection; do
    has "$table says that it does not apply" "$(cat study/tables/$table.txt)" "Not applicable to my-tgn"
done
has "nor does scaling" "$(cat study/costs/scaling.txt)" "Not applicable to my-tgn"
for figure in expected ranks; do
    has "figure $figure has the ranks" "$(cat study/figures/$figure.svg)" my-tgn
    has "figure $figure has the scores" "$(cat study/figures/$figure.svg)" "their scores"
done
page=$(cat study/report.html)
has "the page counts them" "$page" "2 trained models · 2 external models · 1 scorer without training · 3 seeds"
has "its data has their seeds" "$page" \
    '{"name":"my-tgn","label":"my-tgn","kind":"external","seeds":[7,17,27],'
has "the deterministic one, too" "$page" '{"name":"their scores","label":"their scores","kind":"external","seeds":[0],'
runs "status" 0 study status study --json
has "tells of their units" "$stdout" '"key": "mine/my-tgn/7/rank"'

# The numbers are those of the records.
"$fullrank" metrics theirs/ranks-7.npy theirs/ranks-17.npy theirs/ranks-27.npy --json >metrics.json
is "MRR is the mean over their seeds" "$(awk -F'[:,]' '/^    "mrr":/ { s += $2; n++ } END { printf "%.4f", s / n }' metrics.json)" \
    "$(awk -F, '$2 == "my-tgn" { sub(/±.*/, "", $NF); printf "%.4f", $(NF - 1) }' study/tables/expected.csv)"

# A report of the same rank files: the same numbers, tables, figures and data.
set -- study/ranks/mine+craft+*+rank.npy study/ranks/mine+craft-r+*+rank.npy
for seed in 7 17 27; do set -- "$@" my-tgn@$seed=theirs/ranks-$seed.npy; done
report() { "$fullrank" report "$@"; }
runs "a report of rank records" 0 report "$@" "their scores=study/ranks/mine+their%20scores+rank.npy" -o page.html \
    --tables files --gain craft-r,my-tgn
has "shows the main table" "$stdout" "my-tgn"
rounded() { # seeds may be summed in another order
    awk -F , -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9]+\.[0-9]+(e-?[0-9]+)?$/) $i = sprintf("%.9f", $i) } 1'
}
rows() { # FILE: rows of the models that both have, without the name of the data set
    rounded <"$1" | grep -E ',("?my-tgn|"?their scores|CRAFT|full|expected-20)' | sed 's/^[^,]*,"\{0,1\}[^,]*seed-3"\{0,1\},//; s/^mine,//; s/^"[^"]*",//' | sort
}
for table in main expected ties exhaustive time-available intervals; do
    is "$table: the numbers of the study" "$(rows files/tables/$table.csv)" "$(rows study/tables/$table.csv)"
    case $(rows files/tables/$table.csv) in "") miss "$table: has rows" ;; esac
done
is "kendall: the same, too" "$(cut -d, -f2- files/tables/kendall.csv | sed 's/.*seed-3",//' | grep compared | rounded)" \
    "$(cut -d, -f2- study/tables/kendall.csv | grep compared | rounded)"
pairs() { sed '1d; s/^"[^"]*",//; s/^mine,//' "$1" | rounded | grep '^CRAFT,'; }
is "pairs: the same intervals" "$(pairs files/tables/pairs.csv | sort)" "$(pairs study/tables/pairs.csv | sort)"
for figure in expected ranks gain; do
    has "figure $figure is drawn" "$(cat files/figures/$figure.svg)" "</svg>"
done
page=$(cat page.html)
has "the page has the figures" "$page" "data:image/svg+xml;base64,"
has "and the ranks of every seed" "$page" '"name":"my-tgn","label":"my-tgn","kind":"external","seeds":[7,17,27]'
has "says what it is made of" "$page" "Made from rank records alone"
has "and how many events were covered" "$(cat files/tables/settings.csv)" ",1500,1275,225,91,222,"
runs "again" 1 report "$@" -o page.html
has "a page that is there stays" "$stderr" "page.html: exists"
runs "unless forced" 0 report "$@" -o page.html --tables files --force --json
has "JSON says where" "$stdout" '"tables": "files"'
mkdir full && touch full/mine
runs "a directory of others" 1 report "$@" -o new.html --tables full --force
has "is not replaced" "$stderr" "full: also contains mine"
is "and there is no page" "$(ls new.html 2>/dev/null)" ""
rank strict.npy --window 0 --order strict --scorer baseline:random
runs "a report of two protocols" 1 report markov.npy strict.npy -o new.html
has "is refused, fields named" "$stderr" \
    "markov.npy and strict.npy follow different protocols and must not be compared; they differ in order (stream against strict)"
runs "a run twice" 2 report a=markov.npy a=markov.npy -o new.html
has "is refused" "$stderr" "markov.npy and markov.npy are both a with seed"
runs "a gain of nobody" 2 report markov.npy -o new.html --gain a,b
has "is refused" "$stderr" "gain: there is no model a"
mkdir tmp
runs "one run alone" 0 env TMPDIR="$PWD/tmp" "$fullrank" report markov.npy -o new.html --name "a & b" -q
has "is a report, too" "$(cat new.html)" "<h1>a &amp; b</h1>"
is "nothing is left behind" "$(ls -A tmp)" ""

# Finished work is not done again; work with a changed file is.
runs "again" 0 study run --verbose study.json -o study
is "nothing is done twice" "$stderr" ""
cp -r theirs other && mkdir elsewhere && mv other elsewhere/theirs
cp -r mine elsewhere/mine && cp study.json elsewhere
runs "with the files elsewhere" 0 study run --verbose elsewhere/study.json -o study
is "the same contents are the same" "$stderr" ""
rank theirs/ranks-17.npy --window 0 --scorer baseline:random --seed 99
runs "with a changed file" 0 study run --verbose study.json -o study
is "only its unit is done again" "$(printf '%s\n' "$stderr" | sed 's/.*note: [^ ]* //; s/: .*//')" "mine/my-tgn/17/rank"
mv theirs/ranks-27.npy theirs/ranks-27.json .
runs "without a file that is in the ledger" 0 study run --verbose study.json -o study
has "says so" "$stderr" "theirs/ranks-27.npy: is not there any more; what the ledger has of mine/my-tgn/27/rank stays"
runs "without a file that is not" 1 study run --verbose study.json -o fresh
has "is refused" "$stderr" "theirs/ranks-27.npy: is not there; the study names it as my-tgn"
is "before anything is done" "$(printf '%s\n' "$stderr" | grep -c 'note:')" 0
mv ranks-27.npy ranks-27.json theirs

# A study that was begun without them accepts them later.
sed '/"ranks":/d; s/"gain": [^]]*], //; s/"history": 8},/"history": 8}}/' study.json >before.json
study run before.json -o grown -q >/dev/null 2>&1
runs "a study grows" 0 study run --verbose study.json -o grown
is "by their units alone" "$(printf '%s\n' "$stderr" | sed -n 's/.*note: [^ ]* \(.*\): .*/\1/p')" "mine/my-tgn/7/rank
mine/my-tgn/17/rank
mine/my-tgn/27/rank
mine/their scores/rank"

# Another protocol is refused, with the fields and both values.
refused() { # NAME MESSAGE RANKS SCORERS
    rm -rf refused
    write refused.json "$3" "$4"
    sed -i 's/"gain": [^]]*], //' refused.json
    runs "$1" 1 study run --verbose refused.json -o refused
    has "$1: refused" "$stderr" "$2"
    lacks "$1: nothing was trained" "$stderr" "craft/"
}
rank short.npy --window 1000 --scorer baseline:random --dump-scores short-scores.npy
rank zero.npy --window 0 --oov zero --order strict --scorer baseline:random
rank time.npy --window 0 --catalog time --scorer baseline:random
refused "another window" "short.npy: made under another protocol than the study's on mine; they differ in window (1000 against 1500), train (850 against 1275), test (150 against 225), catalog_sha256 (" \
    '{"a": "short.npy"}' '{}'
refused "other rules" "zero.npy: made under another protocol than the study's on mine; they differ in order (strict against stream), oov (zero against exclude)" \
    '{"a": "zero.npy"}' '{}'
refused "another catalog" "they differ in catalog (time against fixed)" '{"a": "time.npy"}' '{}'
"$fullrank" data synth --preset tiny --seed 4 --events 1500 -o others >/dev/null 2>&1
"$fullrank" rank --data others --window 0 --scorer baseline:random -o others.npy -q >/dev/null 2>&1
refused "other data" "they differ in data_sha256 (" '{"a": "others.npy"}' '{}'
refused "scores that are not there" "theirs/none.npy: is not there" '{}' '{"a": "scores:theirs/none.npy"}'
refused "scores of other events" "mine/a/rank: short-scores.npy: " '{}' '{"a": "scores:short-scores.npy"}'
refused "a scorer that is none" "\"scorers\": unknown baseline nothing" '{}' '{"a": "baseline:nothing"}'
refused "a stream of scores" "can be read once only" '{}' '{"a": "scores:-"}'
refused "counts" 'makes rank records of them, which belong under "ranks"' '{}' '{"a": "counts:short.npy"}'
refused "scores without a file" "a: expected a scorer, as " '{}' '{"a": "scores:"}'
refused "a name of ours" '"ranks" calls a model craft, which is one of this study' '{"craft": "short.npy"}' '{}'
refused "a baseline's name" '"scorers" calls a model recency' '{}' '{"recency": "oracle"}'
refused "a name twice" 'a stands in "ranks" and in "scorers"' '{"a": "short.npy"}' '{"a": "oracle"}'
refused "too few files" 'a has a list of 2 for 3 "seeds"' '{"a": ["short.npy", "zero.npy"]}' '{}'
refused "a seed that is none" '"x" is neither a seed nor a data set' '{"a": {"x": "short.npy"}}' '{}'
refused "a path as a name" "expected a name without /" '{"a/b": "short.npy"}' '{}'

# Data sets that have only rank records, and several of them.
cat >records.json <<END
{"data": {"known": null, "mine": "mine"}, "protocol": {"window": 0}, "baselines": ["recency"], "seeds": [7, 17],
 "ranks": {"a": {"known": {"7": "short.npy"}, "mine": "theirs/ranks-7.npy"}, "b": {"known": ["short.npy", "short.npy"]}}}
END
runs "records without data" 0 study run --verbose records.json -o records
is "both sets are in the table" "$(awk -F, 'NR > 1 { print $1, $2 }' records/tables/expected.csv | grep -v '^#')" "known a
known b
mine recency
mine a"
sed 's/"known": null, //' records.json >none.json
runs "a set that is not named" 1 study run --verbose none.json -o none
has "is refused" "$stderr" '"ranks": a: there is no data set known'
sed 's/"mine": "theirs/"other": "theirs/; s/\("mine": "mine"\)/\1, "other": null/; s/short.npy/zero.npy/' records.json >mixed.json
runs "records that disagree" 1 study run --verbose mixed.json -o mixed
has "are refused" "$stderr" "short.npy: made under another protocol than zero.npy; they differ in window (1000 against 1500)"
finish
