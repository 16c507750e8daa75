#!/bin/sh
# scripts.sh - checks our shell scripts with shellcheck; prints TAP. Not checked: whether sourced files exist (SC1091), and
# functions that tests pass to `runs`, which look unreachable (SC2317).
set -u
cd "$(dirname "$0")/.." || exit 1
echo 1..1
if ! command -v shellcheck >/dev/null; then
    echo "ok 1 # SKIP scripts: shellcheck not found"
elif complaints=$(find check quickstart .ci/run tools tests bench examples python -type f \
    \( -name '*.sh' -o -name check -o -name quickstart -o -name run \) 2>/dev/null |
    sort | xargs shellcheck -s sh -e SC1091,SC2317 -f gcc 2>&1); then
    echo "ok 1 - scripts"
else
    echo "not ok 1 - scripts"
    printf '%s\n' "$complaints" | sed 's/^/#   /'
fi
