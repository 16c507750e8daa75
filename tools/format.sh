#!/bin/sh
# format.sh - checks that C files are formatted by clang-format; prints TAP.
#
# Versions of clang-format differ in details, so only one version counts.
set -u
cd "$(dirname "$0")/.." || exit 1
judge=14
echo 1..1
tool=$(command -v "clang-format-$judge" || command -v clang-format)
if [ -z "$tool" ]; then
    echo "ok 1 # SKIP format: clang-format not found"
elif ! "$tool" --version | grep -q "version $judge\."; then
    echo "ok 1 # SKIP format: this is not clang-format $judge"
elif complaints=$(find include src tests bench examples python -name '*.[ch]' 2>/dev/null |
    sort | xargs "$tool" --dry-run --Werror 2>&1); then
    echo "ok 1 - format"
else
    echo "not ok 1 - format"
    printf '%s\n' "$complaints" | sed -n 's/: error: code should be.*//p' | sed 's/^/#   /'
    echo "#   clang-format -i FILE mends it"
fi
