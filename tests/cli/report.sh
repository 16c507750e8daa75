#!/bin/sh
# report.sh - report.html of a study: self-contained, safe with any name, and right in a browser
# (tests/report.py does that part). Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY report.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: report.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1

# Names that break a page that does not escape them; two catalogs of different size; ties (edgebank), uncovered
# events; external models on one of the sets.
"$fullrank" data synth --preset tiny --seed 3 --events 1300 -o other >/dev/null 2>&1
write() { # FILE OOV
    for seed in 7 17; do
        "$fullrank" rank --data other --window 0 --oov "$2" --scorer baseline:random --seed $seed \
            -o "their-$2-$seed.npy" -q >/dev/null 2>&1
    done
    "$fullrank" rank --data other --window 0 --oov "$2" --scorer baseline:markov -o "markov-$2.npy" \
        --dump-scores "scores-$2.npy" -q >/dev/null 2>&1
    cat >"$1" <<END
{"name": "a </script><script>alert(1)</script> & \"study\"",
 "data": {"a<b>&c": {"synth": "tiny", "events": 1500},
          "other": {"synth": "tiny", "events": 1300, "seed": 3}},
 "protocol": {"window": 0, "oov": "$2"}, "diagnostic-window": 0, "oracle": true,
 "baselines": ["recency", "popularity", "edgebank"], "models": ["craft", "craft-r"],
 "objectives": {"bce": ["craft", "craft-r"], "bpr": ["craft"]}, "seeds": [7, 17],
 "ranks": {"<their> tgn": {"other": ["their-$2-7.npy", "their-$2-17.npy"]}},
 "scorers": {"scores": {"other": "scores:scores-$2.npy"}},
 "gain": ["craft", "craft-r"], "minimal": true, "membership": {"bce": ["craft-r"]},
 "projection": ["craft-r"], "settings": {"epochs": 1, "dim": 8, "history": 8}}
END
}
write study.json exclude
write zero.json zero
runs "a study" 0 "$fullrank" study run study.json -o study -q
runs "one that counts uncovered events" 0 "$fullrank" study run zero.json -o zero -q
page=$(cat study/report.html)
has "the page is whole" "$page" "</html>"
has "names are escaped" "$page" "<h1>a &lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;study&quot;</h1>"
is "also in the data" "$(grep -c 'script>alert' study/report.html)" 0
lacks "a window of all events is not commented" "$page" "the window of the protocol"
for window in 750 740; do
    echo '{"data": {"drawn": {"synth": "tiny", "events": 1500}}, "baselines": ["recency"], "protocol": {"window": '$window'}}' \
        >window.json
    "$fullrank" study run window.json -o "window-$window" -q >/dev/null 2>&1
done
lacks "nor is one of half of them" "$(cat window-750/report.html)" "the window of the protocol"
has "one of less than half is told" "$(sed 's/<[^>]*>//g' window-740/report.html)" \
    "Of the 1,500 events in the file, the last 740 are used, the window of the protocol."
has "its policy forbids requests" "$page" "default-src 'none'"
is "nothing is fetched" "$(grep -Eo '(src|href)="?[^"#d][^" ]*' study/report.html)" ""
has "it says which model is best" "$page" "Best compared model over all candidates: <b>CRAFT-R</b>"
has "and what no training gives" "$page" "A baseline without training does better: <b>"
has "tables are in it" "$page" "<caption>Minimal membership scorer</caption>"
has "figures too" "$page" "data:image/svg+xml;base64,"
cp study/report.html before.html
runs "again" 0 "$fullrank" study report study
is "the same results give the same page" "$(cmp before.html study/report.html 2>&1)" ""

# The same page from rank records only. Names are those that report.py expects in a study.
mkdir -p alone/ranks
set -- zero/ranks/other+*.npy
for file; do
    for end in npy json; do
        name=$(basename "${file%.npy}" | sed 's/^other/synthetic-tiny%2C-seed-3/')
        cp "${file%.npy}.$end" "alone/ranks/$name.$end"
    done
done
rm -f alone/ranks/*bpr* alone/ranks/*oracle*
(
    cd alone/ranks || exit 1
    set --
    for file in *.npy; do
        case $file in
        *their*) set -- "$@" "<their> tgn@$(echo "$file" | sed 's/.*+\([0-9]*\)+rank.*/\1/')=$file" ;;
        *scores*) set -- "$@" "scores=$file" ;;
        *) set -- "$@" "$file" ;;
        esac
    done
    "$fullrank" report "$@" -o ../report.html -q
) >out 2>&1
is "a page of rank records alone" "$? $(cat out)" "0 ../report.html"

browser=""
for program in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $program)
done
if [ -n "$sanitized" ]; then
    skip "the page in a browser" "it is the page of the plain build"
elif [ -z "$browser" ]; then
    skip "the page in a browser" "chromium not found"
elif ! command -v python3 >/dev/null; then
    skip "the page in a browser" "python3 not found"
else
    for run in "study" "zero --numbers" "alone --numbers"; do
        # shellcheck disable=SC2086 # two words
        python3 "$FULLRANK_SOURCE/tests/report.py" "$browser" "$fullrank" $run >lines 2>errors
        code=$?
        while IFS= read -r line; do
            case $line in
            pass*) pass "$run: ${line#pass }" ;;
            *) miss "$run: ${line#miss }" ;;
            esac
        done <lines
        is "$run: to the end" "$code $(cat errors)" "0 "
    done
fi
finish
