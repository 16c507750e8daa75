#!/bin/sh
# same_bits.sh - trains and ranks every model with this machine's build and with another, and
# compares SHA-256 of data, checkpoints, ranks and scores.
#
#   tools/same_bits.sh NAME FULLRANK COMMAND...
#
# FULLRANK is this machine's build, COMMAND... runs the other, which is called NAME. Models and stream
# are small: the other may be emulated.
set -eu
name=$1
here=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_results() { # DIRECTORY COMMAND...
    results=$1
    shift
    mkdir "$results"
    "$@" data synth --preset tiny --events 300 -o "$results/tiny" -q >"$results.log"
    for model in craft craft-r dygformer dygformer-lha tgn graphmixer patch patch-lha; do
        small="--dim 16 --epochs 1 -q"
        case $model in craft*) ;; *) small="$small --time-dim 8" ;; esac
        # shellcheck disable=SC2086 # words
        "$@" train --data "$results/tiny" --model $model $small -o "$results/$model" &&
            "$@" rank --data "$results/tiny" --scorer "$results/$model/model.safetensors" -q \
                -o "$results/$model.npy" --dump-scores "$results/$model-scores.npy" ||
            exit 1
    done >>"$results.log"
    (cd "$results" && sha256sum tiny/*.npy ./*.npy ./*/model.safetensors) >"$results.sums"
}

make_results "$work/here" "$here"
make_results "$work/there" "$@"
if cmp -s "$work/here.sums" "$work/there.sums"; then
    cat "$work/here.sums"
    echo "$(wc -l <"$work/here.sums") files have the same SHA-256 on $(uname -m) and $name"
else
    diff "$work/here.sums" "$work/there.sums" || true
    echo "same_bits.sh: files differ between $(uname -m) and $name"
    exit 1
fi
