#!/bin/sh
# mpi.sh - one tool, many processes: equal files for any number of them, one message if one fails, and a study that
# continues after a process was killed. Prints TAP; skipped if the tool was built without MPI, or mpirun is missing.
#
# usage: FULLRANK_SOURCE=REPOSITORY mpi.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: mpi.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
if [ ! -e "$(dirname "$fullrank")/fullrank-mpi.so" ]; then
    skip "several processes" "built without MPI"
    finish
fi
if ! command -v mpirun >/dev/null; then
    skip "several processes" "mpirun not found"
    finish
fi
cd "$scratch" || exit 1
root=
[ "$(id -u)" = 0 ] && root=--allow-run-as-root
many() { # PROCESSES COMMAND...
    count=$1
    shift
    # shellcheck disable=SC2086 # no word if it is empty
    timeout 120 mpirun $root --oversubscribe -q -n "$count" "$fullrank" "$@"
}
same() { # NAME A B
    if cmp -s "$2" "$3"; then pass "$1"; else miss "$1" "$(cmp "$2" "$3" 2>&1)"; fi
}
"$fullrank" data synth --preset tiny -o tiny >/dev/null
"$fullrank" train --data tiny --model craft-r --dim 8 --history 10 --epochs 1 -o craft-r >/dev/null 2>&1
"$fullrank" train --data tiny --model tgn --dim 8 --epochs 1 -o tgn >/dev/null 2>&1
"$fullrank" rank --data tiny --scorer craft-r/model.safetensors -o dump.npy --dump-scores scores.npy >/dev/null 2>&1
for scorer in baseline:recency baseline:random craft-r/model.safetensors tgn/model.safetensors scores:scores.npy; do
    name=$(printf '%s' "$scorer" | tr -c 'a-z-' _)
    "$fullrank" rank --data tiny --scorer $scorer -o "$name.npy" >/dev/null 2>&1
    for share in events candidates; do
        counts=3 # test_rank_processes has the others, in one program
        case $name$share$sanitized in craft-r_*events | craft-r_*candidates | tgn_*candidates) counts="1 2 3 7" ;; esac
        for count in $counts; do
            runs "$scorer by $count, share $share" 0 many "$count" rank --data tiny --scorer $scorer --threads 1 \
                --share $share -o "$name-$share-$count.npy"
            same "the same records" "$name.npy" "$name-$share-$count.npy"
        done
        is "one table is shown" "$(printf '%s\n' "$stdout" | grep -c ' MRR ')" 1
    done
done
"$fullrank" rank --data tiny --scorer baseline:recency --sample-events 100 -o sample-0.npy >/dev/null 2>&1
runs "a sample by 3" 0 many 3 rank --data tiny --scorer baseline:recency --sample-events 100 -o sample-3.npy
same "the same records" sample-0.npy sample-3.npy

runs "a sample by 3, share candidates" 0 many 3 rank --data tiny --scorer tgn/model.safetensors --sample-events 100 \
    --share candidates -o tgn-sample-3.npy
"$fullrank" rank --data tiny --scorer tgn/model.safetensors --sample-events 100 -o tgn-sample-0.npy >/dev/null 2>&1
same "the same records" tgn-sample-0.npy tgn-sample-3.npy

runs "what fails everywhere" 2 many 3 rank --data tiny --scorer baseline:nothing -o x.npy
is "is said once" "$(printf '%s\n' "$stderr" | grep -c "^fullrank: unknown baseline")" 1
runs "what only process 0 can see" 1 many 3 rank --data tiny --scorer baseline:recency -o sample-3.npy
is "is said once" "$(printf '%s\n' "$stderr" | grep -c "^fullrank: sample-3.npy: exists")" 1
# shellcheck disable=SC2086 # no word if it is empty
runs "what only process 1 can see" 1 timeout 60 mpirun $root --oversubscribe -q \
    -n 1 "$fullrank" rank --data tiny --scorer baseline:recency -o x.npy : \
    -n 1 "$fullrank" rank --data nowhere --scorer baseline:recency -o x.npy
is "is said once" "$(printf '%s\n' "$stderr" | grep -c "^fullrank: nowhere: ")" 1
is "and nothing else is" "$(printf '%s\n' "$stderr" | grep "^fullrank: " | grep -vc ": note: ")" 1

# An interruption of one process ends all: code 130, one message. The signal is sent when the process is ready for it.
"$fullrank" data synth --preset wikipedia --events 40000 -o larger >/dev/null
ready() { # PID: does it catch SIGINT by now?
    mask=$(sed -n 's/^SigCgt:[^0-9a-f]*//p' "/proc/$1/status" 2>/dev/null)
    [ -n "$mask" ] && [ $((0x$mask & 2)) -ne 0 ]
}
if [ -r /proc/self/status ]; then
    many 3 rank --data larger --scorer baseline:random --threads 1 -o cut.npy >cut.log 2>&1 &
    job=$!
    victim=''
    tries=0
    until { [ -n "$victim" ] && ready "$victim"; } || [ $tries -gt 1000 ]; do
        tries=$((tries + 1))
        victim=$(pgrep -f "^$fullrank rank --data larger" | tail -n 1)
        sleep 0.01
    done
    [ -z "$victim" ] || kill -INT "$victim"
    code=0
    wait $job || code=$?
    is "an interruption of one ends all" "$code" 130
    is "and is said once" "$(grep -c '^fullrank: interrupted' cut.log) of $(grep '^fullrank: ' cut.log | grep -vc ': note: ')" "1 of 1"
    if [ -e cut.npy ]; then miss "nothing is written" "cut.npy"; else pass "nothing is written"; fi
else
    skip "an interruption of one ends all" "no /proc"
fi
runs "score vectors stay with one process" 2 many 2 rank --data tiny --scorer baseline:random -o x.npy --dump-scores y.npy
has "which it says" "$stderr" "option dump-scores with 2 processes"
runs "other commands are done once" 0 many 3 metrics sample-3.npy -m mrr --lines
is "and shown once" "$(printf '%s\n' "$stdout" | wc -l | tr -d ' ')" "$("$fullrank" metrics sample-3.npy -m mrr --lines | wc -l | tr -d ' ')"
"$fullrank" bench scaling --data tiny --scorer craft-r/model.safetensors --events 20 --repeats 1 --csv >scaling-1.csv 2>/dev/null
runs "measuring by 3" 0 many 3 bench scaling --data tiny --scorer craft-r/model.safetensors --events 20 --repeats 1 --csv
is "the same catalogs, events and ranks, once" "$(printf '%s\n' "$stdout" | cut -d, -f1-4,6)" "$(cut -d, -f1-4,6 scaling-1.csv)"
runs "what cannot be measured" 2 many 3 bench scaling --data tiny --scorer baseline:recency --catalog time
is "is said once" "$(printf '%s\n' "$stderr" | grep -c "^fullrank: catalog time")" 1
runs "each alone on demand" 0 env FULLRANK_MPI=no "$fullrank" version

cat >study.json <<'END'
{"name": "shared", "data": {"tiny": "tiny"}, "baselines": ["recency", "random", "popularity"], "models": ["craft-r"],
 "seeds": [1, 2], "settings": {"epochs": 1, "dim": 8, "history": 10}, "k": [5]}
END
"$fullrank" study run study.json -o alone >/dev/null 2>&1
counts="1 2 3 7"
[ -z "$sanitized" ] || counts=3
for count in $counts; do
    runs "a study by $count" 0 many "$count" study run study.json -o "by-$count"
    (cd alone && find . -name '*.npy' -o -name model.safetensors -o -path './tables/*' | sort) | while IFS= read -r file; do
        cmp "alone/$file" "by-$count/$file" || echo "differs: $file"
    done >differences 2>&1
    is "the same files" "$(cat differences)" ""
done
has "everything is done" "$("$fullrank" study status by-3 2>&1)" " 0 left"
sed 's/"recency"/"recency,half-life=x"/' study.json >wrong.json
runs "a document that is wrong" 1 many 2 study run wrong.json -o wrong
is "is refused once" "$(printf '%s\n' "$stderr" | grep -c "^fullrank: ")" 1

# A killed process ends the job, and the next job continues.
sed 's/"epochs": 1/"epochs": 40/' study.json >long.json
many 3 study run long.json -o killed >killed.log 2>&1 &
job=$!
tries=0
until grep -q "rank" killed.log || [ $tries -gt 300 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
victim=$(pgrep -f "^$fullrank study run long.json -o killed" | tail -n 1)
[ -z "$victim" ] || kill -9 "$victim"
code=0
wait $job || code=$?
if [ $code -ne 0 ]; then pass "the job ends"; else miss "the job ends" "exit code 0"; fi
left=$("$fullrank" study status killed 2>&1 | sed -n 's/.* \([0-9]* left\),.*/\1/p')
runs "the next one goes on" 0 many 2 study run long.json -o killed
has "where it was left ($left)" "$("$fullrank" study status killed 2>&1)" " 0 left"
finish
