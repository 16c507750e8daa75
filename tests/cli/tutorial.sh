#!/bin/sh
# tutorial.sh - the commands of docs/tutorial.md and README.md print what these pages show. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY tutorial.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: tutorial.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
python=${FULLRANK_PYTHON:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
    skip "the tutorial" "python3 with NumPy is not installed"
    finish
fi
# shellcheck disable=SC2317 # runs calls it
shows() { "$python" "$FULLRANK_SOURCE/tests/tutorial.py" "$FULLRANK_SOURCE/$1" "$fullrank" ${2+"$2"}; }
runs "every command of docs/tutorial.md works as shown" 0 shows docs/tutorial.md
wikipedia=$(data_file wikipedia.csv.gz)
if [ -n "$wikipedia" ]; then
    mkdir readme && cd readme || exit 1
    gzip -dc "$wikipedia" >wikipedia.csv
    runs "commands whose output README.md shows print it" 0 shows README.md --shown
else
    skip "README.md" "real data not found"
fi
finish
