#!/bin/sh
# ports.sh - the builds for AArch64 and against musl compute the same bits as this machine's build. Prints TAP.
#
# Every model is trained and ranked on a small stream by both: checkpoints, ranks and scores have the same SHA-256. Skipped
# unless `tools/aarch64.sh` or `tools/musl.sh` has built it from the sources as they are.
#
# usage: FULLRANK_SOURCE=REPOSITORY ports.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: ports.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac

compare() { # PORT COMMAND PACKAGE
    other=$FULLRANK_SOURCE/build/$1 reason=""
    if [ "$fullrank" != "$FULLRANK_SOURCE/build/fullrank" ]; then
        reason="only the release build is compared"
    elif ! command -v "$2" >/dev/null; then
        reason="$3 is not installed"
    elif ! [ -e "$other/fullrank" ]; then
        reason="tools/$1.sh has not been run"
    elif [ -n "$(find "$FULLRANK_SOURCE/src" "$FULLRANK_SOURCE/include" -newer "$other/libfullrank.so" -name '*.[ch]')" ]; then
        reason="older than the sources, build it with tools/$1.sh build"
    fi
    if [ -n "$reason" ]; then
        skip "the same bits: $1" "$reason"
        return
    fi
    runs "$1: all models are trained and ranked there" 0 sh "$FULLRANK_SOURCE/tools/$1.sh" compare "$fullrank"
    has "$1: checkpoints, ranks and scores have the same SHA-256" "$stdout" "have the same SHA-256"
}
compare aarch64 qemu-aarch64 qemu-user
compare musl musl-gcc musl-tools
finish
