#!/bin/sh
# kill.sh - a few kills of each kind; `tests/kill.py FULLRANK --kills 100` does more.
# shellcheck source=tests/tap.sh
. "$FULLRANK_SOURCE/tests/tap.sh"
if [ -z "${FULLRANK_PYTHON:-}" ]; then
    skip "kills" "needs python3"
    finish
fi
exec "$FULLRANK_PYTHON" "$FULLRANK_SOURCE/tests/kill.py" "$1" --kills 4 --seconds 12
