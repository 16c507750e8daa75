#!/bin/sh
# hostile_shell.sh - the tool in unusual environments: closed and full standard streams, no environment
# variables, few files, little stack and memory, directories that cannot be written or are gone, odd
# arguments. The rule: exit 0 means the usual bytes; otherwise there is one message and no damage.
# Signals at random moments are in kill.py, names in hostile_names.sh, files in hostile_files.sh.
# shellcheck disable=SC2016 # $0 is for the shell within
# shellcheck source=tests/tap.sh
. "$FULLRANK_SOURCE/tests/tap.sh"
case $1 in /*) fullrank=$1 ;; *) fullrank=$PWD/$1 ;; esac
cd "$scratch" || exit 1

awk 'BEGIN {
    print "source,destination,time"
    for (i = 0; i < 400; i++) printf "%d,%d,%d\n", i % 7, (i * i + int(i / 9)) % 11 + 100, i * 7919 % 401
}' >unsorted.csv
"$fullrank" data import unsorted.csv -o data -q >/dev/null
"$fullrank" rank --data data --scorer baseline:recency -o whole.npy -q >whole.txt
reference=$(cat whole.txt)

# One message, one line, and the code.
complains() { # NAME CODE PART COMMAND...
    name=$1 code=$2 part=$3
    shift 3
    runs "$name" "$code" "$@"
    has "$name: the reason" "$stderr" "$part"
    is "$name: one line" "$(grep -c '' .stderr)" 1
}

# A shell command instead of ours: sh -c, with the tool as $0, in its own folder.
within() { # TEXT
    sh -c "$1" "$fullrank"
}

# ---- standard streams ----

for command in version help man "data info data -q" "study preset paper" "metrics whole.npy --json" "baselines"; do
    complains "$command to a full disk" 1 "standard output could not be written: No space left" \
        within "\"\$0\" $command >/dev/full"
    complains "$command, stdout closed" 1 "standard output could not be written: Bad file" \
        within "\"\$0\" $command >&-"
done
runs "a long output to a full disk" 1 within '"$0" metrics whole.npy whole.npy whole.npy --per-event - >/dev/full'
has "a long output to a full disk: the reason" "$stderr" "No space left"
runs "nothing to print, stdout closed" 0 within '"$0" data export data -o out.csv >&-'
# The first opened file would get a closed descriptor: notes must not end up in columns.
for closed in '<&-' '2>&-' '<&- 2>&-'; do
    runs "import $closed" 0 within "\"\$0\" data import unsorted.csv -o 'import $closed' $closed"
    is "import $closed: the same columns" "$(diff -r data "import $closed" 2>&1)" ""
done
runs "import, all closed" 1 within '"$0" data import unsorted.csv -o closed <&- >&- 2>&-'
is "import, all closed: the same columns" "$(diff -r data closed 2>&1)" ""
runs "rank, all closed" 1 within '"$0" rank --data unsorted.csv --scorer baseline:recency -o ranks.npy <&- >&- 2>&-'
runs "rank, all closed: the same ranks" 0 cmp ranks.npy whole.npy
runs "wrong usage, all closed" 2 within '"$0" --xyzzy <&- >&- 2>&-'
# The reader stops early: no message; the code of SIGPIPE, even if the signal is ignored.
runs "a broken pipe" 0 within '{ "$0" man; echo $? >code; } | head -n 1'
is "a broken pipe: no noise" "$stderr" ""
runs "a broken pipe, much to say" 0 within '{ "$0" metrics whole.npy --per-event - --force; echo $? >code; } | true'
is "a broken pipe, much to say: no noise" "$stderr" ""
awk 'BEGIN {while (i++ < 20) print "whole.npy"}' >many
runs "a broken pipe, signal ignored" 0 within 'trap "" PIPE
    { "$0" metrics $(cat many) --per-event -; echo $? >code; } | true'
is "a broken pipe, signal ignored: no noise" "$stderr" ""
is "a broken pipe, signal ignored: the code" "$(cat code)" 141

# ---- environment ----

runs "no environment" 0 env -i "$fullrank" rank --data data --scorer baseline:recency -o env.npy -q
is "no environment: the same" "$stdout" "$reference"
runs "odd environment" 0 env HOME=/nonexistent TERM=dumb COLUMNS=-3 LINES=x LC_ALL=xx_YY NO_COLOR= \
    "$fullrank" rank --data data --scorer baseline:recency -o env.npy -q --force
is "odd environment: the same" "$stdout" "$reference"
complains "TMPDIR is not there" 1 "/nonexistent/" env TMPDIR=/nonexistent "$fullrank" data info unsorted.csv -q
complains "TMPDIR is a file" 1 "unsorted.csv/" env TMPDIR="$PWD/unsorted.csv" "$fullrank" data info unsorted.csv -q
runs "TMPDIR is empty" 0 env TMPDIR= "$fullrank" data info unsorted.csv -q

# A terminal that cannot redraw gets no escape sequences.
if [ -n "${FULLRANK_PYTHON:-}" ]; then
    for term in dumb ''; do
        drawn=$("$FULLRANK_PYTHON" -c '
import os, pty, sys
if sys.argv[1]: os.environ["TERM"] = sys.argv[1]
else: os.environ.pop("TERM", None)
def read(fd):
    return os.read(fd, 4096)
pty.spawn(sys.argv[2:], read)' "$term" "$fullrank" data info unsorted.csv </dev/null)
        has "TERM=$term: printed" "$drawn" "Ranking window"
        lacks "TERM=$term: no escapes" "$drawn" "$(printf '\033')"
    done
else
    skip "TERM=dumb" "needs python3"
fi

# ---- limits ----

for files in 5 6 8 16; do
    within "ulimit -n $files && \"\$0\" rank --data unsorted.csv --scorer baseline:recency -o few.npy -q --force" \
        >few.txt 2>few.err
    code=$?
    case $code in
    0) is "$files open files: the same" "$(cat few.txt)" "$reference" ;;
    1) is "$files open files: one line" "$(grep -c '^fullrank: ' few.err)" 1 ;;
    127) pass "$files open files: not even loaded" ;;
    *) miss "$files open files" "exit code $code" "$(cat few.err)" ;;
    esac
done
if nm -D "$fullrank" 2>/dev/null | grep -q "__[at]san"; then
    skip "little memory, small stack" "a sanitizer needs more than the limits give"
else
    for size in 20000 30000 40000 50000 60000 80000 150000; do # of the address space, 1,024 bytes each
        within "ulimit -v $size && \"\$0\" rank --data unsorted.csv --scorer baseline:recency -o few.npy -q --force" \
            >few.txt 2>few.err
        code=$?
        case $code in
        0) is "$size KiB of memory: the same" "$(cat few.txt)" "$reference" ;;
        1) is "$size KiB of memory: one line" "$(grep -c '^fullrank: ' few.err)" 1 ;;
        127) pass "$size KiB of memory: not even loaded" ;;
        *) miss "$size KiB of memory" "exit code $code" "$(cat few.err)" ;;
        esac
    done
    runs "a stack of 256 KiB: rank" 0 within 'ulimit -s 256
        "$0" rank --data unsorted.csv --scorer baseline:recency -o few.npy -q --force --threads 2'
    is "a stack of 256 KiB: the same" "$stdout" "$reference"
    runs "a stack of 256 KiB: train" 0 within 'ulimit -s 256
        "$0" train --data data --model graphmixer --epochs 1 --dim 8 --time-dim 4 -o few -q --threads 2'
fi

# ---- directories ----

mkdir gone
runs "a directory that is gone: version" 0 within 'cd gone && rmdir ../gone && "$0" version'
for command in "data import '$PWD/unsorted.csv' -o out" "rank --data '$PWD/data' --scorer baseline:recency -o r.npy" \
    "data info unsorted.csv" "study run --preset quick -o study" "data synth --preset tiny -o out"; do
    mkdir gone
    complains "a directory that is gone: ${command%% *}" 1 "No such file or directory" \
        within "cd gone && rmdir ../gone && \"\$0\" $command -q"
done
if [ -d /proc/self ]; then
    for command in "data import '$PWD/unsorted.csv' -o out" "rank --data '$PWD/data' --scorer baseline:recency -o r.npy" \
        "train --data '$PWD/data' --model graphmixer -o out" "data export '$PWD/data' -o out.csv" \
        "data synth --preset tiny -o out"; do
        complains "a directory that takes nothing: ${command%% -*}" 1 "fullrank: " within "cd /proc && \"\$0\" $command -q"
    done
else
    skip "a directory that takes nothing" "no /proc"
fi

# ---- arguments ----

long=$(awk 'BEGIN {while (i++ < 30000) printf "x"}')
complains "a long name" 1 "too long" "$fullrank" data info "$long"
complains "a long option" 2 "unknown option" "$fullrank" rank "--$long"
complains "a long command" 2 "unknown command" "$fullrank" "$long"
complains "a long scorer" 2 "a scorer of" "$fullrank" rank --data data --scorer "baseline:$long" -o x.npy -q
complains "a long output" 1 "too long" "$fullrank" data import unsorted.csv -o "$long"
complains "a long value" 2 "threads" "$fullrank" version --threads "$long"
complains "a long key" 2 "expected key=value" "$fullrank" version --set "$long=1"
complains "newlines" 2 'unknown option --a\x0ab' "$fullrank" version "--a
b"
complains "an empty command" 2 "unknown command" "$fullrank" ""
complains "an empty argument" 1 "fullrank: " "$fullrank" data info ""
complains "an empty option" 2 "output" "$fullrank" data import unsorted.csv -o ""
complains "an empty scorer" 2 "scorer" "$fullrank" rank --data data --scorer "" -o x.npy
complains "an empty config" 1 "fullrank: " "$fullrank" version --config ""
complains "two empty arguments" 2 "one argument too many" "$fullrank" data info data ""
complains "only a dash" 1 "-" "$fullrank" data info -
complains "an option behind --" 1 "--json" "$fullrank" data info -- --json
complains "an option behind -- is an argument" 2 "takes no arguments, found --json" "$fullrank" version -- --json
complains "two --" 1 "--: cannot be read" "$fullrank" data info -- --
runs "the last of repeated options counts" 0 "$fullrank" rank --data nowhere --data data --scorer oracle \
    --scorer baseline:recency -o x.npy -o last.npy -q --threads 2 --threads 1 --json --no-json
is "the last of repeated options counts: the same" "$stdout" "$reference"
runs "flags may be repeated" 0 "$fullrank" version --json --json -q -q
many=$(awk 'BEGIN {while (i++ < 5000) printf "--set threads=1 "}')
# shellcheck disable=SC2086 # many words
runs "many options" 0 "$fullrank" version $many
# shellcheck disable=SC2046
complains "many arguments" 2 "one argument too many" "$fullrank" data info $(seq 5000)
is "nothing was made" "$(ls -d x.npy x.json out 2>/dev/null)" ""
finish
