#!/bin/sh
# symbols.sh - libfullrank.so exports fr_* and nothing else; prints TAP.
#
#   tools/symbols.sh PATH/libfullrank.so
set -u
exported=$(nm -D --defined-only "$1" | awk '{print $NF}') || exported=""
strangers=$(printf '%s\n' "$exported" | grep -v '^fr_')
echo 1..2
case $exported in
*fr_version_get*) echo "ok 1 - fr_version_get is exported" ;;
*) echo "not ok 1 - fr_version_get is exported" ;;
esac
if [ -z "$strangers" ]; then
    echo "ok 2 - only fr_* is exported"
else
    echo "not ok 2 - only fr_* is exported"
    printf '%s\n' "$strangers" | sed 's/^/#   /'
fi
