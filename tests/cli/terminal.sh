#!/bin/sh
# terminal.sh - the output during long work: on a terminal, with NO_COLOR, in a pipe.
# Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY terminal.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch and sanitized
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: terminal.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
if ! command -v python3 >/dev/null; then
    skip "progress on a terminal" "python3 not found"
    finish
fi
sees() { # COLUMNS COMMAND...: what it shows, in $shown, with the first line about it in $about
    python3 "$FULLRANK_SOURCE/tests/terminal.py" --about "$@" >shown 2>&1
    about=$(head -n 1 shown)
    shown=$(tr '\n' ' ' <shown) # sentences are broken at the end of a line
}

# Long enough to draw a bar, even on an idle machine; sanitizers are slow.
events=6000 train=5,100 test=900 epochs=6 all=30,600 longer=20
if [ -n "$sanitized" ]; then events=1500 train=1,275 test=225 epochs=3 all=3,825 longer=2; fi
"$fullrank" data synth --preset tiny --events $events -o data -q >/dev/null

sees 80 "$fullrank" train --data data --model craft -o run --epochs "$epochs"
is "train: 80 columns, a bar with the time left" "$about" "code 0, 0 too wide, some escapes, some time left"
has "train: events of all epochs" "$shown" "/$all events"
has "train: what it will do" "$shown" "trains craft on $train events for $epochs epochs"
sees 80 "$fullrank" rank --data data --scorer run/model.safetensors -o ranks.npy --threads 1
is "rank: 80 columns, colours" "${about%,*}" "code 0, 0 too wide, some escapes"
has "rank: what it will do" "$shown" "ranks $test test events against"
lacks "rank: no shards" "$shown" shards
sees 40 env NO_COLOR=1 "$fullrank" rank --data data --scorer run/model.safetensors -o ranks.npy --force --wide
is "NO_COLOR: 40 columns, no escape sequences" \
    "$(printf '%s' "$shown" | grep -c "$(printf '\033')"), ${about#*wide, }" "0, no escapes, ${about##*, }"

# ---- a study ----

cat >study.json <<END
{"name": "small", "data": {"drawn": {"synth": "tiny", "events": 3000}}, "protocol": {"window": 0},
 "diagnostic-window": 0, "baselines": ["recency", "popularity"], "models": ["craft", "tgn"],
 "seeds": [7, 17], "k": [1, 20], "settings": {"epochs": $longer, "dim": 16, "history": 16}}
END
sees 80 "$fullrank" study run study.json -o study
is "study: 80 columns, one line with the time left" "$about" "code 0, 0 too wide, some escapes, some time left"
has "study: what it will do" "$shown" "small: 12 of 12 units to do"
has "study: about how long" "$shown" "seconds, estimated from usual rates"
has "study: events, candidates and scores" "$shown" "443 of 450 test events are ranked"
has "study: units done of all, and what runs now" "$(grep -c '% .* left  [0-9]*/12 [a-z]' shown | sed 's/^0$/none/;s/^[0-9]*$/some/')" some
lacks "study: no line for each unit" "$shown" "rank: 0."
has "study: notes below a table are filled lines" "$shown" "destination of the catalog; mean"
rm -rf study
sed 's/"epochs": [0-9]*/"epochs": 1/' study.json >quick.json
mv quick.json study.json
runs "study in a pipe" 0 "$fullrank" study run study.json -o study --verbose
lacks "a pipe: no escape sequences" "$stderr$stdout" "$(printf '\033')"
lacks "a pipe: nothing redrawn" "$stderr$stdout" "$(printf '\r')"
has "--verbose: a line for each unit" "$stderr" "12/12 drawn/tgn/bce/17/rank: "
is "--verbose: all of them" "$(printf '%s\n' "$stderr" | grep -c '[0-9]*/12 drawn/.*: [0-9.]* s$')" 12
runs "what is done is not done again" 0 "$fullrank" study run study.json -o study
is "nothing to do, nothing to say" "$stderr" ""
rm -rf study
runs "a study with --quiet" 0 "$fullrank" study run study.json -o study --quiet
is "--quiet: nothing" "$stderr" ""

# ---- the others ----

runs "train in a pipe" 0 "$fullrank" train --data data --model craft -o again --epochs 1
has "train in a pipe: what it will do" "$stderr" "trains craft on $train events for 1 epochs, one negative each: "
has "train in a pipe: about how long" "$stderr" "about 0:01 by usual rates"
runs "bench in a pipe" 0 "$fullrank" bench scaling --data data --scorer run/model.safetensors --events 20
has "bench: what it will do" "$stderr" "on 20 test events with catalogs of up to "
runs "diagnose in a pipe" 0 "$fullrank" diagnose membership --data data --scorer run/model.safetensors
has "diagnose: what it will do" "$stderr" "ranks $test test events against"
has "diagnose: about how long" "$stderr" "by usual rates"
runs "diagnose by a baseline" 0 "$fullrank" diagnose membership --data data --scorer baseline:recency
lacks "diagnose: a baseline has no such rates" "$stderr" "by usual rates"
runs "a baseline" 0 "$fullrank" rank --data data --scorer baseline:recency -o recency.npy
lacks "a baseline is done before a plan is read" "$stderr" "ranks $test"
finish
