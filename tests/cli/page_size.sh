#!/bin/sh
# page_size.sh - the page of a study of the paper's size stays below 3 MB. Prints TAP.
#
# Two sets with 4,916 test events and catalogs of about 1,000; 5 baselines, and 8 models with 3 seeds each, as the preset
# `paper` has them (6 by bce, 2 by bpr). Ranks of the models are drawn at random. This is the largest case, because all
# other records can be packed better.
#
# usage: FULLRANK_SOURCE=REPOSITORY page_size.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch and sanitized
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: page_size.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
if [ -n "$sanitized" ]; then
    skip "the size of a page" "it is the page of the plain build"
    finish
fi
models="m1 m2 m3 m4 m5 m6 m7 m8"
lists=""
for set in wikipedia mooc; do
    "$fullrank" data synth --preset $set --events 32768 -o $set -q >/dev/null
done
number=0
for model in $models; do
    for set in wikipedia mooc; do
        for seed in 7 17 27; do
            number=$((number + 1))
            "$fullrank" rank --data $set --scorer baseline:random --seed $number -o "$set-$model-$seed.npy" -q >/dev/null
        done
    done
    lists="$lists${lists:+, }\"$model\": {"
    for set in wikipedia mooc; do
        [ $set = wikipedia ] || lists="$lists, "
        lists="$lists\"$set\": [\"$set-$model-7.npy\", \"$set-$model-17.npy\", \"$set-$model-27.npy\"]"
    done
    lists="$lists}"
done
cat >study.json <<END
{"name": "size", "data": {"wikipedia": "wikipedia", "mooc": "mooc"},
 "baselines": ["recency", "edgebank", "popularity", "markov", "random"],
 "seeds": [7, 17, 27], "k": [1, 5, 20, 50, 100], "gain": ["m1", "m2"], "ranks": {$lists}}
END
runs "a study of the paper's size" 0 "$fullrank" study run study.json -o study -q
bytes=$(wc -c <study/report.html)
echo "# $bytes bytes"
is "its page has less than 3 MB" "$([ "$bytes" -lt 3000000 ] && echo yes)" yes
is "with all models in it" "$(grep -c '<th scope="row">m8' study/report.html | sed 's/^[1-9].*/some/')" some
finish
