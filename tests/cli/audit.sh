#!/bin/sh
# audit.sh - the command: clean scorers and all models pass; planted leaks are found and can be reproduced. Prints TAP.
#
# tests/test_eval_audit.c tests the leaks of every check; this script tests the output for users, and trained models.
#
# usage: FULLRANK_SOURCE=REPOSITORY FULLRANK_PLUGINS=DIRECTORY audit.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: audit.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
leaky=$FULLRANK_PLUGINS/leaky.so

awk 'BEGIN {
    print "u,v,t,f1,f2"
    for (i = 0; i < 700; i++) {
        x = (x * 1103 + 12345) % 65536
        u = x % 13; v = x % 3 ? (2 * u) % 29 : int(x / 16) % 29
        print u "," v "," int(i / 3) * 40 "," (i * 37 % 19) / 19 "," (i * 11 % 23) / 23
    }
}' >data.csv
audit() { "$fullrank" audit --data data.csv --quiet "$@"; }

# ---- trained models: opened on streams with another future; nothing is found ----

for model in $("$fullrank" models | sed -n 's/^\([a-z][a-z-]*\): .*/\1/p'); do
    short=""
    case $model in craft* | dygformer*) short="--history 15" ;; esac
    for order in stream strict; do
        # shellcheck disable=SC2086 # options are words
        "$fullrank" train --data data.csv --dim 8 --batch-size 100 --epochs 1 --model "$model" $short --order $order \
            -o "$model-$order" --quiet >/dev/null || exit 1
    done
    runs "$model passes" 0 audit --scorer "$model-stream/model.safetensors" --events 30 --streams 6
    has "$model: ids cannot be relabelled" "$(echo "$stdout" | tr -s ' \n' ' ')" "knows destinations by their ids"
    runs "$model passes, strict" 0 audit --scorer "$model-strict/model.safetensors" --events 30 --streams 6 --order strict
    runs "$model passes, in batches" 0 audit --scorer "$model-stream/model.safetensors" --events 30 --streams 6 --order batch:9
done

# ---- what is printed ----

runs "a baseline passes" 0 audit --scorer baseline:recency --order strict
has "a line for each check" "$stdout" "same-time   pass"
has "the badge" "$stdout" "audited by fullrank 0.1.0: 7 checks, 105 events, nothing found, protocol "
runs "a leak" 1 audit --scorer "plugin:$leaky,leak=next,rate=20" --order strict -o leak.json
has "is named" "$stdout" "future: leak, row "
has "with what was changed" "$stdout" "redrawn"
again=$(echo "$stdout" | sed -n 's/^ *again: //p' | head -n 1)
has "and how to see it again" "$again" "--checks future --events row:"
runs "which works" 1 sh -c "$again --quiet"
has "and shows the same leak" "$stdout" "future: leak, row "
runs "JSON" 1 audit --scorer "plugin:$leaky,leak=next,rate=20" --order strict --json
is "is what -o writes" "$stdout" "$(cat leak.json)"
has "the verdict" "$stdout" '"verdict": "found"'
has "the finding" "$stdout" '"severity": "leak"'
runs "a file that exists" 1 audit --scorer baseline:recency -o leak.json
has "is kept" "$stderr" "leak.json exists"
runs "unless forced" 0 audit --scorer baseline:recency -o leak.json --force
has "and replaced" "$(cat leak.json)" '"verdict": "pass"'
runs "one check" 0 audit --scorer "plugin:$leaky,leak=next" --checks batch,numbers
has "the others are not made" "$stdout" "not requested"
runs "an unknown check" 2 audit --scorer baseline:recency --checks batsh
has "says what there is" "$stderr" "did you mean batch?"

# ---- the page ----

"$fullrank" rank --data data.csv --scorer baseline:markov -o m.npy --quiet >/dev/null || exit 1
audit --scorer baseline:markov -o clean.json >/dev/null
audit --scorer "plugin:$leaky,leak=next,rate=20" -o leak.json --force >/dev/null
runs "a report with audits" 0 "$fullrank" report m.npy --audit clean.json,leak.json -o page.html --quiet
has "has their section" "$(cat page.html)" '<section id="audit">'
has "a table for each" "$(cat page.html)" "Audit of baseline:markov"
has "and the findings" "$(cat page.html)" "<strong>future</strong>: leak, row "
runs "a report without" 0 "$fullrank" report m.npy -o plain.html --quiet
lacks "has none" "$(cat plain.html)" '<section id="audit">'
runs "a file that is no audit" 1 "$fullrank" report m.npy --audit m.json -o other.html --quiet
has "is refused" "$stderr" "m.json: not an audit"

# ---- scores of a file ----

"$fullrank" rank --data data.csv --scorer baseline:recency -o r.npy --dump-scores s.npy --quiet >/dev/null || exit 1
runs "scores of a file" 0 audit --scorer scores:s.npy
has "cannot change" "$stdout" "scores of a file cannot change"
has "two checks are left" "$stdout" ": 2 checks, "

finish
