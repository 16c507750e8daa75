#!/bin/sh
# facts.sh - every number of `data info --json` against a second computation (tests/facts.py), on
# random streams with ties and on the real sets, and against the published table. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY facts.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: facts.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
python=${FULLRANK_PYTHON:-python3}
if ! "$python" -c 'import fractions' 2>/dev/null; then
    skip "facts" "python3 is not installed"
    finish
fi
facts() { "$python" "$FULLRANK_SOURCE/tests/facts.py" "$@" 2>&1; }
cd "$scratch" || exit 1

# agrees NAME FILE OPTION VALUE...
agrees() {
    name=$1
    shift
    if found=$(facts check "$fullrank" "$@"); then pass "$name"; else miss "$name" "$found"; fi
}

# every NAME FILE OPTION VALUE...: with each history rule and each catalog.
every() {
    what=$1 file=$2
    shift 2
    for order in stream strict; do
        for catalog in fixed time "$file.catalog"; do
            agrees "$what, $order, ${catalog##*.}: $*" "$file" \
                --order $order --catalog "$catalog" "$@"
        done
    done
}

# Most of the time is spent in Python, so sanitizers get one stream of each kind.
plain="1 2 3 4" shared="5 6" real="wikipedia mooc"
[ -z "$sanitized" ] || plain=1 shared=5 real=""
for seed in $plain; do
    facts make "$seed" "stream$seed.csv"
    every "stream $seed" "stream$seed.csv" --window 0 --diagnostic-window 0
    every "stream $seed" "stream$seed.csv" --window 400 --train-share 0.5 --diagnostic-window 601
    every "stream $seed" "stream$seed.csv" --window 61 --train-share 0.9 --diagnostic-window 350
    agrees "stream $seed, two events" "stream$seed.csv" --window 2 --train-share 0.5
    agrees "stream $seed, as it is" "stream$seed.csv"
done
for seed in $shared; do
    facts make "$seed" "shared$seed.csv" shared
    every "shared ids $seed" "shared$seed.csv" --shared-ids yes --window 0 --diagnostic-window 0
    every "shared ids $seed" "shared$seed.csv" --shared-ids yes --window 300 --diagnostic-window 500
done
facts make 7 loops.csv shared loops
every "shared ids with loops" loops.csv --shared-ids yes --window 0 --diagnostic-window 0
every "loops, ids not shared" loops.csv --window 500 --diagnostic-window 0

# The streams have the intended properties; otherwise the checks above would mean little.
if [ -z "$sanitized" ]; then
    sum=$(for seed in $plain; do
        "$fullrank" data info "stream$seed.csv" --window 0 --diagnostic-window 0 --json --quiet
    done | awk '/"eligible"/ { e += $2 } /"new"/ { n += $2 } /"tied_times"/ { t += $2 }
        /"share"/ { s += $2 < 1 } END { print (e > 100) (n > 100) (t > 100) (s > 1) }')
    is "the streams have eligible, new, tied and uncovered events" "$sum" 1111
fi

for set in $real; do
    file=$(data_file "$set.csv.gz")
    if [ -z "$file" ]; then
        skip "$set" "$set.csv.gz is not there"
        continue
    fi
    "$fullrank" data import "$file" -o "$set" --quiet >/dev/null
    if found=$(facts published "$fullrank" "$set" "$set"); then
        pass "$set has the published numbers"
    else
        miss "$set has the published numbers" "$found"
    fi
    agrees "$set, stream" "$file"
    agrees "$set, strict" "$file" --order strict
    agrees "$set, another window" "$file" --window 10000 --train-share 0.6 --diagnostic-window 50000
    agrees "$set, everything before it" "$file" --catalog time \
        --window 20000 --diagnostic-window 40000
done
finish
