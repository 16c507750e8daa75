#!/bin/sh
# symbols.sh - checks that libfullrank.so and libfullrank.a export only fr_*; prints TAP.
#
#   tools/symbols.sh PATH/libfullrank.so PATH/libfullrank.a
set -u
tests=0
check() { # NAME SYMBOLS
    strangers=$(printf '%s\n' "$2" | grep -v '^fr_')
    tests=$((tests + 1))
    case $2 in
    *fr_version_get*) echo "ok $tests - $1 has fr_version_get" ;;
    *) echo "not ok $tests - $1 has fr_version_get" ;;
    esac
    tests=$((tests + 1))
    if [ -z "$strangers" ]; then
        echo "ok $tests - $1 shows fr_* only"
    else
        echo "not ok $tests - $1 shows fr_* only"
        printf '%s\n' "$strangers" | sed 's/^/#   /'
    fi
}
check "${1##*/}" "$(nm -D --defined-only "$1" | awk '{print $NF}')"
if [ -e "$2" ]; then
    check "${2##*/}" "$(nm -g --defined-only "$2" | awk 'NF == 3 {print $NF}')"
else
    tests=$((tests + 1))
    echo "ok $tests # SKIP ${2##*/}: a build with coverage has none"
fi
echo "1..$tests"
