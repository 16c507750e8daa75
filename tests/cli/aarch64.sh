#!/bin/sh
# aarch64.sh - the AArch64 build computes the bits of this machine. Prints TAP.
#
# Every model is trained and ranked on a small stream by both, under qemu-user: checkpoints, ranks and scores have the
# same SHA-256. Skipped unless `tools/aarch64.sh` has built it from the sources as they are.
#
# usage: FULLRANK_SOURCE=REPOSITORY aarch64.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: aarch64.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
other=$FULLRANK_SOURCE/build/aarch64

reason=""
if [ "$fullrank" != "$FULLRANK_SOURCE/build/fullrank" ]; then
    reason="only the release build is compared"
elif ! command -v qemu-aarch64 >/dev/null; then
    reason="qemu-user is not installed"
elif ! [ -e "$other/fullrank" ]; then
    reason="tools/aarch64.sh has not been run"
elif [ -n "$(find "$FULLRANK_SOURCE/src" "$FULLRANK_SOURCE/include" -newer "$other/libfullrank.so" -name '*.[ch]')" ]; then
    reason="older than the sources, build it with tools/aarch64.sh build"
fi
if [ -n "$reason" ]; then
    skip "the same bits on AArch64" "$reason"
    finish
fi

runs "all models are trained and ranked there" 0 sh "$FULLRANK_SOURCE/tools/aarch64.sh" compare "$fullrank"
has "checkpoints, ranks and scores have the same SHA-256" "$stdout" "have the same SHA-256"
finish
