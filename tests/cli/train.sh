#!/bin/sh
# train.sh - `train`, `models` and ranking by checkpoints as a user types them. Prints TAP.
#
# With a python3 that has torch and safetensors (FULLRANK_TORCH names it), a checkpoint is opened there.
#
# usage: FULLRANK_SOURCE=REPOSITORY train.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: train.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
small="--dim 16 --history 20 --epochs 2"
# shellcheck disable=SC2086 # options are words
train() { "$fullrank" train --data tiny $small "$@"; }
rank() { "$fullrank" rank --data tiny "$@"; }
events=6000 kills=30
[ -z "$sanitized" ] || events=1500 kills=3
"$fullrank" data synth --preset tiny --events $events -o tiny >/dev/null

runs "models" 0 "$fullrank" models
has "lists craft-r" "$stdout" "craft-r: CRAFT that knows"
runs "models --json" 0 "$fullrank" models --json

runs "train" 0 train --model craft-r -o run
has "prints the model's path" "$stdout" "run/model.safetensors"
has "tells the loss of every epoch" "$stderr" "epoch 2: loss 0."
is "leaves its files" "$(find run -type f | sort | tr '\n' ' ')" \
    "run/model.safetensors run/state.safetensors run/train.json "
has "train.json has the loss" "$(cat run/train.json)" '"loss": ['
if script -qc true /dev/null >/dev/null 2>&1 </dev/null; then
    # looked at until it is there; then the training is stopped
    bars() { tr '\r' '\n' <bar.txt | grep -c ' events .* left  epoch ./3 loss 0'; }
    : >bar.txt
    TERM=xterm script -qfc "echo \$\$ >bar.pid; exec $fullrank train --data tiny --model dygformer --batch-size 50 --threads 1 -o bar" \
        /dev/null >bar.txt </dev/null &
    tries=0
    while [ "$(bars)" -lt 3 ] && kill -0 $! 2>/dev/null && [ $((tries += 1)) -le 600 ]; do sleep 0.2; done
    kill -TERM "$(cat bar.pid)" 2>/dev/null # INT is ignored in the background of a script
    wait $!
    if [ "$(bars)" -ge 3 ]; then
        pass "on a terminal epochs show how far they are"
    else
        miss "on a terminal epochs show how far they are" "$(tr '\r' '\n' <bar.txt)"
    fi
else
    skip "on a terminal epochs show how far they are" "script(1) cannot make a terminal here"
fi
runs "rank by the checkpoint" 0 rank --scorer run/model.safetensors -o ranks.npy --verify 20 --json
has "with an MRR" "$stdout" '"mrr": 0.'
has "verified" "$(cat ranks.json)" '"ranks_differ": 0'

has "lists graphmixer" "$("$fullrank" models)" "graphmixer: an MLP-mixer"
runs "train graphmixer" 0 "$fullrank" train --data tiny --model graphmixer --dim 16 --tokens 8 --epochs 1 -o mixer
runs "rank by it" 0 rank --scorer mixer/model.safetensors -o mixer.npy --verify 20
has "with the ranks of plain forward" "$stdout" ", 0 ranks differ"

for threads in 1 2 5; do
    train --model craft -o "t$threads" --threads $threads >/dev/null 2>&1
    rank --scorer "t$threads/model.safetensors" -o "t$threads.npy" --threads $threads >/dev/null 2>&1
    cmp -s t1/model.safetensors "t$threads/model.safetensors" && cmp -s t1.npy "t$threads.npy" || echo $threads
done >differ
is "1, 2, 5 threads: the same model, the same records" "$(cat differ)" ""

runs "one epoch" 0 train --model craft -o part --epochs 1
runs "and one more" 0 train --model craft -o part --resume
if cmp -s t1/model.safetensors part/model.safetensors; then
    pass "resumed or straight: the same bytes"
else
    miss "resumed or straight: the same bytes"
fi
runs "bpr, as JSON" 0 train --model craft -o bpr --objective bpr --json
has "with its losses" "$stdout" '"loss": ['
has "and the checkpoint" "$stdout" '"checkpoint": "bpr/model.safetensors"'
runs "deterministic" 0 train --model craft -o det --deterministic

for embedding in attention identity; do
    runs "tgn, $embedding" 0 "$fullrank" train --data tiny --model tgn --embedding $embedding --dim 16 --epochs 1 -o "tgn-$embedding"
    runs "rank by it" 0 rank --scorer "tgn-$embedding/model.safetensors" -o "tgn-$embedding.npy" --verify 20
    has "verified" "$(cat "tgn-$embedding.json")" '"ranks_differ": 0'
done

refused() { # NAME CODE MESSAGE COMMAND...
    name=$1 want=$2 message=$3
    shift 3
    before=$(find . -name '.std*' -prune -o -print | sort | cksum)
    runs "$name" "$want" "$@"
    has "$name: says why" "$stderr" "$message"
    is "$name: nothing left" "$(find . -name '.std*' -prune -o -print | sort | cksum)" "$before"
}
refused "an output that exists" 1 "run: exists; --resume continues it" train --model craft -o run
mkdir foreign && echo mine >foreign/model.safetensors
refused "a directory that is no run" 1 "contains other files but no run" train --model craft -o foreign --force
refused "another model" 2 "a run with model craft-r" train --model craft -o run --resume
refused "another seed" 2 "a run with seed 7" train --model craft-r -o run --resume --seed 8
refused "no such model" 2 "did you mean craft?" train --model kraft -o x
refused "a bad width" 2 "not a multiple of heads" train --model craft --dim 15 -o x
refused "an unknown option" 2 "did you mean --dropout?" train --model craft --dropuot 0.2 -o x
refused "a value out of range" 2 "expected a number from 0 to 0.9" train --model craft --dropout 1 -o x
refused "an option without effect" 2 "tgn has no option layers" "$fullrank" train --data tiny --model tgn --layers 3 -o x
refused "nothing to resume" 1 "no such run to resume" train --model craft -o none --resume
refused "another window" 1 "trained with window $events" rank --window $((events / 2)) --scorer run/model.safetensors -o x.npy
refused "no checkpoint" 1 "cannot be read" rank --scorer none.safetensors -o x.npy
head -c 5000 run/model.safetensors >short.safetensors
refused "half a checkpoint" 1 "short.safetensors" rank --scorer short.safetensors -o x.npy
"$fullrank" data synth --preset tiny --seed 2 --events $events -o other >/dev/null
refused "other data" 1 "vocab" "$fullrank" rank --data other --scorer run/model.safetensors -o x.npy

# the same ids with the events in another order: training events would be ranked
"$fullrank" data export tiny -o rows.csv
awk -F , 'NR == 1 { print; next } { u[NR] = $1; v[NR] = $2; t[NR] = $3 }
    END { for (i = 2; i <= NR; i++) { j = (i - 2 + int((NR - 1) / 2)) % (NR - 1) + 2; print u[j] "," v[j] "," t[i] } }' rows.csv >turned.csv
refused "the same ids, other events" 1 "trained on data with sha256" \
    "$fullrank" rank --data turned.csv --scorer run/model.safetensors -o x.npy
runs "verify over the time-available catalog" 0 rank --catalog time --scorer run/model.safetensors -o time.npy --verify 30
has "says what it found" "$stdout" "Verified 30 events"
rm part/state.safetensors
refused "a run without its state" 1 "no state to continue from" train --model craft -o part --resume
refused "fewer epochs than there are" 2 "has 2 epochs already" train --model craft-r -o run --resume --epochs 1
mkdir empty
runs "an empty directory will do" 0 train --model craft -o empty --epochs 1

# One process at a time trains into a directory; a killed process locks nobody out.
"$fullrank" train --data tiny --model craft --dim 16 --history 20 --epochs 100000 -o shared -q >/dev/null 2>&1 &
first=$!
tries=0
while [ ! -e shared/state.safetensors ] && [ $((tries += 1)) -le 300 ]; do sleep 0.5; done
for how in --force --resume; do
    runs "a second training with $how" 1 train --model craft -o shared $how
    has "is refused" "$stderr" "shared: another process is writing to it"
done
is "the first goes on" "$(kill -0 $first 2>&1)" ""
kill -9 $first
wait $first 2>/dev/null
runs "rank what a killed training left" 0 "$fullrank" rank --data tiny --scorer shared/model.safetensors -o cut.npy
has "warns" "$stderr" "its training stopped after"
has "says so in the table" "$stdout" "of 100,000 epochs"
has "and in the description" "$(cat cut.json)" '"epochs_asked": 100000'
runs "as JSON" 0 rank --scorer shared/model.safetensors -o cut.npy --force --json
has "with both numbers" "$stdout" '"epochs_asked": 100000'
runs "train anew behind a killed one" 0 train --model craft -o shared --force --epochs 1
lacks "nothing is left of the lock" "$(ls -a shared)" lock
runs "a whole training" 0 rank --scorer shared/model.safetensors -o cut.npy --force
lacks "is ranked without a warning" "$stderr" stopped

# The best epoch on the validation part is kept.
parts="--train-share 0.7 --val-share 0.15"
# shellcheck disable=SC2086 # options are words
chosen() { "$fullrank" train --data tiny --model craft --dim 16 --history 20 --lr 0.03 --epochs 5 $parts "$@"; }
runs "train with --select" 0 chosen --select mrr -o chosen
has "tells the value of every epoch" "$stderr" "epoch 5: loss 0."
has "and which one is kept" "$stderr" "of 5 is kept: validation mrr 0."
epoch=$(sed -n 's/.*"selected": \([0-9]*\).*/\1/p' chosen/train.json)
value=$(sed -n '/"selection"/,/}/s/.*"value": \([0-9.]*\).*/\1/p' chosen/train.json)
is "train.json has the curve" "$(grep -c '"validation": 0' chosen/train.json)" 5
# shellcheck disable=SC2086 # options are words
runs "rank the validation part" 0 rank $parts --part val --scorer chosen/model.safetensors -o val.npy --json
has "gives the value it was selected by" "$stdout" "\"mrr\": $(printf '%.6s' "$value")"
has "and says which epoch it is" "$stdout" "\"selected\": $epoch"
lacks "without a warning" "$stderr" warning
has "RANKS.json has it, too" "$(cat val.json)" "\"selected\": $epoch"
# shellcheck disable=SC2086 # options are words
runs "rank the state" 0 rank $parts --scorer chosen/state.safetensors -o last.npy
has "warns" "$stderr" "the last epoch of a training that selects by mrr"
runs "patience alone selects by mrr" 0 chosen --patience 1 --epochs 100 -o patient
has "and stops" "$(cat patient/train.json)" '"metric": "mrr"'
runs "by sampled negatives, and on both parts in the end" 0 chosen --select expected-20 --final train+val -o final --json
has "says so" "$stdout" '"part": "train+val"'
# shellcheck disable=SC2086 # options are words
runs "the validation part is no longer for ranking" 1 rank $parts --part val --scorer final/model.safetensors -o x.npy
has "says why" "$stderr" "ntrain"
refused "no validation part" 2 "option val-share makes one" train --model craft --select mrr -o x
refused "patience without one" 2 "option val-share makes one" train --model craft --patience 2 -o x
refused "a metric of which less is better" 2 "expected a metric for which larger is better" chosen --select mean-rank -o x
refused "no such metric" 2 "did you mean" chosen --select mmr -o x
refused "both parts, without a number of epochs" 2 "expected --select" chosen --final train+val -o x
# Killed at any moment and continued: the same bytes. This is not in a function, because its shell would be killed.
tries=0 code=1
while [ $code -ne 0 ] && [ $((tries += 1)) -le 40 ]; do
    again="" && [ -e killed/state.safetensors ] && again=--resume
    [ -d killed ] && [ -z "$again" ] && again=--force
    # shellcheck disable=SC2086 # options are words
    timeout -s KILL "0.$((tries + 1))" "$fullrank" train --data tiny --model craft --dim 16 --history 20 --lr 0.03 \
        --epochs 5 $parts --select expected-20 --final train+val -o killed -q $again >/dev/null 2>&1
    code=$?
    [ $tries -le $kills ] || { chosen --select expected-20 --final train+val -o killed -q ${again:-} >/dev/null 2>&1; code=$?; }
done
is "killed and gone on with" "$code" 0
is "gives the same bytes" "$(cmp killed/model.safetensors final/model.safetensors 2>&1)" ""
is "and leaves the same files" "$(ls -A killed)" "$(ls -A final)"

torch=""
for python in "${FULLRANK_TORCH:-}" python3 /usr/bin/python3; do
    [ -z "$sanitized" ] || break
    [ -n "$python" ] && "$python" -c 'import torch, safetensors' 2>/dev/null && torch=$python && break
done
if [ -n "$torch" ]; then
    "$torch" - >loaded 2>&1 <<'END'
from safetensors.torch import load_file
tensors = load_file("run/model.safetensors")
print(len(tensors), tuple(tensors["head.fc1.weight"].shape), tensors["vocab.dst"].dtype)
END
    is "a checkpoint loads in PyTorch" "$(cat loaded)" "51 (48, 48) torch.int64"
else
    skip "a checkpoint in PyTorch" "needs torch and safetensors, and a build without sanitizers"
fi
finish
