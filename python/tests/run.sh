#!/bin/sh
# run.sh - puts the built package into a throw-away venv of Debian's python3 and runs its tests; prints TAP.
#
#   python/tests/run.sh BUILD
#
# $FULLRANK_PYTHON is a python3 with NumPy, empty if there is none.
set -u
build=$1
skip() {
    echo "ok 1 # SKIP python: $1"
    echo 1..1
    exit 0
}
[ -n "${FULLRANK_PYTHON-}" ] || skip "no python3 with NumPy (python3-numpy)"
[ -e "$build/python/_fullrank.abi3.so" ] || skip "built without Python's headers (python3-dev)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$FULLRANK_PYTHON" -m venv --without-pip --system-site-packages "$scratch/venv" >/dev/null 2>&1 ||
    skip "no module venv (python3-venv)"
# A venv made by the Python of another venv sees only the system's packages, not those of that venv.
"$scratch/venv/bin/python" -c 'import numpy' 2>/dev/null || skip "NumPy is not among the system's packages"
site=$("$scratch/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
cmake --install "$build" --component python --prefix "$site" >"$scratch/log" 2>&1 || {
    sed 's/^/# /' "$scratch/log"
    echo "not ok 1 - the package is installed"
    echo 1..1
    exit 1
}
cd "$scratch" || exit 1 # so that nothing is imported from the sources
FULLRANK_TOOL=$build/fullrank "$scratch/venv/bin/python" "$FULLRANK_SOURCE/python/tests/tap.py"
