#!/bin/sh
# build.sh - configures and builds one preset of CMakePresets.json; silent unless it fails.
#
#   tools/build.sh PRESET [CMAKE-OPTION...]
#
# Finished work is not repeated: configuring takes a moment, and ninja builds only what changed.
set -u
cd "$(dirname "$0")/.." || exit 1
preset=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if cmake --preset "$preset" "$@" >"$log" 2>&1 && cmake --build --preset "$preset" >>"$log" 2>&1; then
    grep -A 3 'warning:' "$log" || true
else
    cat "$log"
    echo "The $preset build failed."
    exit 1
fi
