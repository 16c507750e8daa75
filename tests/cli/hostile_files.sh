#!/bin/sh
# hostile_files.sh - links, pipes, read-only and full directories, columns that change or disappear
# while they are used, and leftovers of killed runs. Prints TAP.
#
# It checks that nothing outside the output is ever touched. A run ends with a result, or with one
# line and a failure. The leftovers of a killed run are removed by the next run with the same output,
# and by no other.
#
# usage: FULLRANK_SOURCE=REPOSITORY hostile_files.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: hostile_files.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
python=${FULLRANK_PYTHON:-python3}
"$python" -c 'import sys' 2>/dev/null || python=
mkdir "$scratch/work" "$scratch/tmp"
export TMPDIR="$scratch/tmp"
cd "$scratch/work" || exit 1
export fullrank

# names of temporaries are random
left() { find . -maxdepth 1 -name "$1*" | sed 's/tmp-fr[0-9a-f]*/tmp/; s|^\./||' | sort | tr '\n' ' '; }

awk 'BEGIN { print "source,destination,time,f1,f2"
    while (n++ < 3000) print n % 37 "," (n * 7919) % 101 "," n "," n / 7 "," n / 3 }' >good.csv
"$fullrank" data import good.csv -o good >/dev/null || exit 1
"$fullrank" rank --data good --scorer baseline:recency -o ranks.npy >/dev/null 2>&1 || exit 1

# ---- links under the names of temporaries, present and former ----

mkdir victim
echo 1 >victim/precious
for what in "import good.csv -o out" "synth --preset tiny -o out" "get x --url file://$PWD/good.csv -o out"; do
    # shellcheck disable=SC2016,SC2086 # $$ and words are meant so
    runs "data ${what%% *} with a link in its way" 0 \
        sh -c 'ln -s victim out.tmp-$$; ln -s victim out.tmp-fr01234567; exec "$fullrank" data "$@"' sh $what
    is "keeps what the link points to" "$(cat victim/precious)" "1"
    rm -rf out out.tmp-*
done
# shellcheck disable=SC2016
runs "rank with links in its way" 0 sh -c '
    for end in npy json; do ln -s victim/precious r.$end.tmp-$$; done
    exec "$fullrank" rank --data good --scorer baseline:recency -o r.npy'
is "keeps what they point to" "$(cat victim/precious)" "1"
# shellcheck disable=SC2016
runs "metrics --per-event with a link in its way" 0 sh -c 'ln -s victim/precious e.tsv.tmp-$$
    exec "$fullrank" metrics r.npy --per-event e.tsv'
is "keeps what it points to" "$(cat victim/precious)" "1"
rm -rf r.* e.*
ln -s victim/precious out.download.part
runs "data get with a link for its part" 1 "$fullrank" data get x --url "file://$PWD/good.csv" -o out
has "says so" "$stderr" "out.download.part: cannot be written: "
is "and keeps what it points to" "$(cat victim/precious)" "1"
rm out.download.part
ln victim/precious out.download.part
runs "data get with a second name of a file for its part" 1 \
    "$fullrank" data get x --url "file://$PWD/good.csv" -o out
has "says so, too" "$stderr" "out.download.part: is not a file of this user alone"
is "and keeps that file" "$(cat victim/precious)" "1"
rm out.download.part
mkfifo out.download.part
runs "data get with a pipe for its part" 1 "$fullrank" data get x --url "file://$PWD/good.csv" -o out
rm out.download.part
ln -s victim out
runs "an output that is a link to a directory" 1 "$fullrank" data import good.csv -o out --force
is "is not replaced" "$(readlink out) $(cat victim/precious)" "victim 1"
rm out
is "nothing is left" "$(left out)" ""

# ---- pipes ----

mkfifo pipe
# A pipe in place of every mapped file: refused at once.
cp good/manifest.json manifest.json
for column in source.npy time.npy source_ids.npy manifest.json; do
    mv "good/$column" kept && mkfifo "good/$column"
    runs "a pipe for $column" 1 timeout -s KILL 120 "$fullrank" data info good
    has "is refused by name" "$stderr" "good/$column: "
    rm -f "good/$column" && mv kept "good/$column"
done
runs "a pipe for a catalog" 1 timeout -s KILL 120 "$fullrank" data info good --catalog pipe
has "is refused" "$stderr" "pipe: is a pipe or a device, expected a file"
runs "a pipe for a config" 1 timeout -s KILL 120 "$fullrank" data info good --config pipe
mkfifo pipe.safetensors pipe.npy
runs "a pipe for a checkpoint" 1 timeout -s KILL 120 "$fullrank" rank --data good --scorer pipe.safetensors -o p.npy
runs "a pipe for rank records" 1 timeout -s KILL 120 "$fullrank" metrics pipe.npy
runs "a pipe for scores" 1 timeout -s KILL 120 "$fullrank" rank --data good --scorer scores:pipe.npy -o p.npy
rm pipe.safetensors pipe.npy
cat good.csv >pipe &
runs "a pipe for a table works" 0 timeout -s KILL 120 "$fullrank" data import pipe -o piped
is "and gives the same columns" "$(cksum <piped/time.npy)" "$(cksum <good/time.npy)"
rm -rf piped
for how in INT TERM; do
    for what in "import pipe -o out" "info pipe" "export pipe -o out.csv"; do
        if [ -z "$python" ]; then
            skip "SIG$how while $what waits for a writer" "python3 is not installed"
            continue
        fi
        # shellcheck disable=SC2086
        is "SIG$how while $what waits for a writer" \
            "$("$python" "$FULLRANK_SOURCE/tests/interrupt.py" "SIG$how" "$fullrank" data $what)" "130"
    done
done
rm pipe
is "nothing is left of them" "$(left out)$(ls -A "$TMPDIR")" ""

# ---- columns that change ----

# poke FILE OFFSET: sets one byte to 0xff.
poke() {
    chmod u+w "$1"
    printf '\377' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
runs "an imported set is in order" 0 "$fullrank" data verify good
is "all six files" "$(echo "$stdout" | grep -c ' ok$')" "6"
runs "as JSON" 0 "$fullrank" data verify good --json
has "which says so" "$stdout" '"same": true'
cp -r good copied
runs "a copy is" 0 "$fullrank" data verify copied
runs "and may be used" 0 "$fullrank" data info copied --json
has "with the sense of its hash" "$stdout" '"data_checked": "full"'
for column in source.npy destination.npy time.npy features.npy source_ids.npy destination_ids.npy; do
    rm -rf changed && cp -pr good changed
    poke "changed/$column" 1500 || exit 1
    [ "$column" = destination_ids.npy ] || [ "$column" = source_ids.npy ] && { # are shorter
        cp -p "good/$column" "changed/$column"
        poke "changed/$column" 150
    }
    touch -r good/manifest.json "changed/$column" # as if nothing had been written
    for what in "data info changed" "rank --data changed --scorer baseline:recency -o c.npy" \
        "train --data changed --model craft -o c" "data export changed -o c.csv"; do
        # shellcheck disable=SC2086
        runs "${what%% changed*} with another $column" 1 "$fullrank" $what
        has "names it" "$stderr" "changed/$column: "
    done
    runs "data verify with another $column" 1 "$fullrank" data verify changed
    has "names it, too" "$stderr" "changed/$column: sha256"
    is "and shows it among the others" "$(echo "$stdout" | grep -c ' ok$') $(echo "$stdout" | grep -c ' changed$')" "5 1"
done
rm -rf changed && cp -pr good changed
chmod u+w changed/time.npy && printf x >>changed/time.npy
runs "a longer column" 1 "$fullrank" data info changed
has "is refused by size" "$stderr" "changed/time.npy: 24129 bytes, expected 24128: it was changed after the import"
rm changed/time.npy
runs "a column that is gone" 1 "$fullrank" data verify changed
has "is named" "$stderr" "changed/time.npy: cannot be read"
# A set of an earlier version: its manifest has no list of files.
rm -rf changed && cp -r good changed
if [ -n "$python" ]; then
    "$python" -c 'import json
m = json.load(open("changed/manifest.json")); del m["files"]; json.dump(m, open("changed/manifest.json", "w"))'
    runs "a set of an earlier version" 0 "$fullrank" data info changed --json
    has "is hashed in full" "$stdout" '"data_checked": "full"'
    poke changed/time.npy 1500
    runs "and refused when it was changed" 1 "$fullrank" data info changed
    has "with both hashes" "$stderr" "changed: columns with sha256 "
else
    skip "a set of an earlier version" "python3 is not installed"
fi
has "RANKS.json tells the sense of its hash" "$(cat ranks.json)" '"data_checked": "full"'
rm -rf changed copied

# Ids that are words, with an id in the middle that has no word.
awk 'BEGIN { print "u,i,t"; while (n++ < 300) print "name" n % 37 ",thing" n % 11 "," n }' >words.csv
"$fullrank" data import words.csv --ids words -o words >/dev/null || exit 1
poke words/source_ids.npy 205
runs "export of an id without a word" 1 "$fullrank" data export words -o w.csv
has "is refused on opening" "$stderr" "words/source_ids.npy: id "
rm -rf words words.csv w.csv

# ---- columns that are shortened while they are in use ----

is "columns may not be written" "$(find good -name '*.npy' -perm /222)" ""
"$fullrank" data synth --preset tiny --events 300000 -o long >/dev/null || exit 1
# during.py FILE SIZE WATCH COMMAND...: stops the command once a file named WATCH* exists, cuts FILE, and continues
# the command; prints its exit code and its output. If the command has already written most of its output (or has
# ended, on a busy machine), it is run again.
cat >during.py <<'PYTHON'
import glob, os, signal, subprocess, sys, time
file, size, watch = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def start():
    for _ in range(50):
        process = subprocess.Popen(sys.argv[4:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not glob.glob(watch) and process.poll() is None:
            time.sleep(0.0005)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.02)  # for the signal to arrive
        written = [os.path.getsize(name) for name in glob.glob(watch)]
        if process.poll() is None and written and max(written) < 200000:
            return process
        process.send_signal(signal.SIGCONT)
        said = process.stderr.read()
        process.wait()
        for name in glob.glob("l.csv.gz"):
            os.remove(name)
    sys.exit("ended too early, 50 times: " + said)
process = start()
os.chmod(file, 0o644)
os.truncate(file, size)
process.send_signal(signal.SIGCONT)
said = [line for line in process.stderr.read().splitlines() if ": note: " not in line]
print(process.wait(), *said)
PYTHON
if [ -n "$python" ]; then
    is "time.npy shortened during an export" \
        "$("$python" during.py long/time.npy 128 'l.csv.gz.tmp-*' "$fullrank" data export long -o l.csv.gz)" \
        "1 fullrank: long/time.npy: was shortened or could not be read while it was in use"
    is "no half of it is in place" "$(ls l.csv.gz 2>/dev/null)" ""
    is "features.npy shortened during training" \
        "$("$python" during.py good/features.npy 128 run/train.json "$fullrank" train --data good --model graphmixer \
            --epochs 10000 --window 200 --threads 8 --quiet -o run)" \
        "1 fullrank: good/features.npy: was shortened or could not be read while it was in use"
else
    skip "columns shortened during export and training" "python3 is not installed"
fi
rm -rf long good run l.csv*
"$fullrank" data import good.csv -o good >/dev/null || exit 1

# ---- leftovers of killed runs ----

cat >killed.py <<'PYTHON'
import glob, os, signal, subprocess, sys, time
how, watch = sys.argv[1:3]
def made():  # what is being written; the empty file that tries a directory is not
    names = set()
    for name in glob.glob(watch):
        try:
            if os.path.isdir(name) or os.path.getsize(name):
                names.add(name)
        except FileNotFoundError:
            pass
    return names
def start():  # a process that is stopped while it writes, and that has no lock
    for _ in range(100):
        before = made()
        process = subprocess.Popen(sys.argv[3:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while made() <= before and process.poll() is None:
            pass
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.02)  # for the signal to arrive
        if process.poll() is None and not made() <= before and not glob.glob("*.lock"):
            return process
        process.send_signal(signal.SIGCONT)
        process.wait()
        for name in glob.glob("d.*") + glob.glob("k.*"):
            os.remove(name)
    sys.exit("ended too early, 100 times")
first = start()
if how == "kill":
    first.kill()
    print(first.wait())
else:  # another one passes by while the first is alive
    second = subprocess.run(sys.argv[3:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first.send_signal(signal.SIGCONT)
    print(second.returncode, first.wait())
PYTHON
# shellcheck disable=SC2317 # called by runs
dump() { "$fullrank" rank --data good --scorer baseline:recency -o k.npy --dump-scores d.npy --force; }
if [ -n "$python" ]; then
    is "rank killed" "$("$python" killed.py kill 'd.npy.tmp-*' "$fullrank" rank --data good \
        --scorer baseline:recency -o k.npy --dump-scores d.npy)" "-9"
    has "leaves a temporary" "$(left d.)" "d.npy.tmp "
    runs "the next one works" 0 dump
    is "and removes it" "$(left d.)" "d.json d.npy "
    cp d.npy alone.npy
    is "two at once" "$("$python" killed.py both 'd.npy.tmp-*' "$fullrank" rank --data good \
        --scorer baseline:recency -o k.npy --dump-scores d.npy --force)" "0 0"
    is "do not disturb each other" "$(cksum <d.npy) $(left d.)" "$(cksum <alone.npy) d.json d.npy "
    is "data info killed" "$("$python" killed.py kill "$TMPDIR/*" "$fullrank" data info good.csv)" "-9"
    runs "the next one" 0 "$fullrank" data info good.csv
    is "removes what it left in TMPDIR" "$(ls -A "$TMPDIR")" ""
else
    skip "what killed runs leave" "python3 is not installed"
fi
rm -rf k.* d.* alone.npy
mkdir run && : >run/state.safetensors.tmp-fr01234567 # of a training killed in its first epoch
runs "training after a killed one" 0 "$fullrank" train --data good --model craft --epochs 1 --window 200 -o run
is "removes what it left, too" "$(ls -A run)" "$(printf 'model.safetensors\nstate.safetensors\ntrain.json')"
has "train.json tells the sense of its hash" "$(cat run/train.json)" '"data_checked": "full"'
rm -rf run

# ---- read-only and full directories ----

# For root nothing is read-only, so another user tries.
as_other() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi
}
chmod 755 "$scratch" "$scratch/work" "$scratch/tmp"
mkdir closed && chmod 555 closed
if TMPDIR=/tmp as_other "$fullrank" version >/dev/null 2>&1; then
    for what in "data import good.csv -o closed/out" "data export good -o closed/out.csv" \
        "rank --data good --scorer baseline:recency -o closed/r.npy" \
        "train --data good --model craft -o closed/run" "metrics ranks.npy --per-event closed/e.tsv"; do
        # shellcheck disable=SC2086
        runs "${what%% closed*} a read-only directory" 1 as_other "$fullrank" $what
        has "is refused" "$stderr" "Permission denied"
    done
    cp -pr good own && { [ "$(id -u)" != 0 ] || chown -R 65534 own; } # its owner tries
    runs "a column cannot be saved over" 2 as_other sh -c 'exec 3>>own/time.npy || exit 2'
    rm -rf own
    is "nothing is in it" "$(ls -A closed)" ""
else
    skip "a read-only directory" "the tool cannot be run as another user here"
fi
chmod 755 closed
# shellcheck disable=SC2317 # called by runs
limited() { sh -c 'ulimit -f 1; exec "$@"' sh "$@"; }
case $fullrank in
*/tsan/*)
    skip "a file-size limit" "the thread sanitizer writes a file of its own"
    finish
    ;;
esac
cp ranks.npy before.npy
runs "rank beyond a file-size limit" 1 limited "$fullrank" rank --data good --scorer baseline:random -o ranks.npy --force
has "says so" "$stderr" "ranks.npy: cannot be written: File too large"
is "keeps what was there" "$(cksum <ranks.npy) $(left ranks)" "$(cksum <before.npy) ranks.json ranks.npy "
runs "per-event beyond a file-size limit" 1 limited "$fullrank" metrics ranks.npy --per-event closed/e.tsv
has "says so" "$stderr" "closed/e.tsv: cannot be written: File too large"
runs "training beyond a file-size limit" 1 limited "$fullrank" train --data good --model craft --epochs 1 -o closed/run
is "nothing is left" "$(ls -A closed)" ""

finish
