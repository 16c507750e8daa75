#!/bin/sh
# hostile_files.sh - links, pipes, read-only and full directories, columns that change or vanish
# under our hands, and what killed runs leave behind. Prints TAP.
#
# What it pins: nothing outside the output is ever touched; a run ends with a result, or with one
# line and a failure; what a killed run left is removed by the next run of the same output, and by
# no other.
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

# ---- links where temporaries were, or are, looked for ----

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
has "says so" "$stderr" "out.download.part: cannot be written: Too many levels of symbolic links"
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
# Every file that is mapped, given a pipe instead: refused at once.
cp good/manifest.json manifest.json
for column in source.npy time.npy source_ids.npy manifest.json; do
    mv "good/$column" kept && mkfifo "good/$column"
    runs "a pipe for $column" 1 timeout -s KILL 10 "$fullrank" data info good
    has "is refused by name" "$stderr" "good/$column: "
    rm -f "good/$column" && mv kept "good/$column"
done
runs "a pipe for a catalog" 1 timeout -s KILL 10 "$fullrank" data info good --catalog pipe
has "is refused" "$stderr" "pipe: is a pipe or a device, expected a file"
runs "a pipe for a config" 1 timeout -s KILL 10 "$fullrank" data info good --config pipe
mkfifo pipe.safetensors pipe.npy
runs "a pipe for a checkpoint" 1 timeout -s KILL 10 "$fullrank" rank --data good --scorer pipe.safetensors -o p.npy
runs "a pipe for rank records" 1 timeout -s KILL 10 "$fullrank" metrics pipe.npy
runs "a pipe for scores" 1 timeout -s KILL 10 "$fullrank" rank --data good --scorer scores:pipe.npy -o p.npy
rm pipe.safetensors pipe.npy
cat good.csv >pipe &
runs "a pipe for a table works" 0 timeout -s KILL 10 "$fullrank" data import pipe -o piped
is "and gives the same columns" "$(cksum <piped/time.npy)" "$(cksum <good/time.npy)"
rm -rf piped
for how in INT TERM; do
    for what in "import pipe -o out" "info pipe" "export pipe -o out.csv"; do
        if [ -z "$python" ]; then
            skip "SIG$how while $what waits for a writer" "python3 is not installed"
            continue
        fi
        # shellcheck disable=SC2086
        is "SIG$how while $what waits for a writer" "$("$python" - "SIG$how" "$fullrank" data $what <<'PYTHON'
import signal, subprocess, sys, time
process = subprocess.Popen(sys.argv[2:], stderr=subprocess.DEVNULL)
time.sleep(0.3)
process.send_signal(getattr(signal, sys.argv[1]))
try:
    print(process.wait(timeout=5))
except subprocess.TimeoutExpired:
    process.kill()
    print("late")
PYTHON
)" "130"
    done
done
rm pipe
is "nothing is left of them" "$(left out)$(ls -A "$TMPDIR")" ""

finish
