#!/bin/sh
# run.sh - every command under failing calls (tests/faults/faults.py); prints TAP.
#
#   tests/faults/run.sh [--all] [OPTION...]   of the release build; --all tries every call, for hours
#   tests/faults/run.sh FULLRANK              a sample, as ./check does it
#
# --only REGEX chooses commands, --kinds memory,crypto,thread,file what fails, --seed N another
# sample, --sample N its size, --show N findings of a command.
set -u
here=$(dirname "$0")
fullrank=$here/../../build/fullrank
case ${1:-} in
-* | '') ;;
*) fullrank=$1; shift ;;
esac
shim=$(dirname "$fullrank")/tests/libshim.so
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo 1..1
    echo "ok 1 # SKIP faults: python3 (3.9 or later) not found"
elif [ ! -e "$shim" ]; then
    echo 1..1
    echo "ok 1 # SKIP faults: the shim is not built for this configuration"
else
    exec python3 "$here/faults.py" "$fullrank" "$shim" "$@"
fi
