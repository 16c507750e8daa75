#!/bin/sh
# gallery.sh - the scripts of examples/, each run as a reader would. Prints TAP. Programs in C are examples.sh.
#
# usage: FULLRANK_SOURCE=REPOSITORY gallery.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch
. "$FULLRANK_SOURCE/tests/tap.sh"
case $1 in /*) FULLRANK=$1 ;; *) FULLRANK=$PWD/$1 ;; esac
export FULLRANK
build=$(dirname "$FULLRANK")
examples=$FULLRANK_SOURCE/examples
cd "$scratch" || exit 1

shell() { # NAME TEXT: runs it; its output has TEXT
    runs "$1.sh" 0 sh "$examples/shell/$1.sh"
    has "$1.sh: does its job" "$stdout" "$2"
}
shell own_csv "baseline:popularity "
has "own_csv.sh: customers and products are words" "$stdout" "words, separate for each role"
shell two_models "craft-r"
has "two_models.sh: has intervals" "$stdout" "["
shell small_study "small: 9 of 9 units done"
is "small_study.sh: the page" "$(ls study/report.html)" study/report.html
shell one_event "event,source,destination,place,candidate,score,positive"
shell why_different "negatives  tgb-hist-20"
shell sample "estimate: 150 of 450"
shell many_machines "shared/report.html"
"$FULLRANK" study run grid.json -o alone --quiet >/dev/null
is "many_machines.sh: the table is that of one process" "$(cat shared/tables/main.csv)" "$(cat alone/tables/main.csv)"

# Every script is in the index, and everything in the index exists.
for file in "$examples"/shell/*.sh "$examples"/*.c "$examples"/*.cpp "$examples"/python/*.py; do
    name=${file#"$examples/"}
    case $name in python/torch_*) continue ;; esac # parts of one program
    has "$name is in the index" "$(cat "$examples/README.md")" "${name##*/}]("
done
missing=$(grep -o '([a-z_/]*\.[a-z]*)' "$examples/README.md" | tr -d '()' |
    while read -r name; do [ -f "$examples/$name" ] || echo "$name"; done)
is "the index names what is there" "$missing" ""

if [ -z "${FULLRANK_PYTHON:-}" ]; then
    skip "examples in Python" "needs python3 with NumPy"
    finish
fi
runs "score_file.py" 0 "$FULLRANK_PYTHON" "$examples/python/score_file.py" "$FULLRANK"
has "score_file.py: does its job" "$stdout" "scores:scores.npy"
"$FULLRANK" rank --data drawn --scorer baseline:popularity -o counted.npy --quiet >/dev/null
is "score_file.py: has the ranks of baseline:popularity" "$("$FULLRANK" metrics scored.npy -m mrr --json | grep '"mrr"')" \
    "$("$FULLRANK" metrics counted.npy -m mrr --json | grep '"mrr"')"
if [ ! -d "$build/python" ]; then
    skip "examples with the package" "it was not built (FULLRANK_PYTHON)"
    finish
fi
cmake --install "$build" --prefix "$scratch/site" --component python >/dev/null 2>&1
for name in feed_loop leak tgb_evaluator; do
    runs "$name.py" 0 env PYTHONPATH="$scratch/site" "$FULLRANK_PYTHON" "$examples/python/$name.py"
    case $name in
    feed_loop) has "$name.py: does its job" "$stdout" "over the full catalog" ;;
    leak) has "$name.py: does its job" "$stdout" "leaking: it sees what it must not" ;;
    *) has "$name.py: does its job" "$stdout" "against every destination 0." ;;
    esac
done
finish
