#!/bin/sh
# fuzz.sh - builds the fuzz targets with clang and searches for inputs that break something.
#
#   tools/fuzz.sh [--merge] [MINUTES] [TARGET...]
#
# Each TARGET (csv, npy, ...; default: all) runs for MINUTES (default: 1), one after the other. What
# it learns is kept in build/fuzz/corpus/TARGET, outside the repository, and used again by the next
# run; --merge adds the inputs among them that reach new code to tests/fuzz/corpus/TARGET. An input
# that breaks something is kept in build/fuzz/findings. The exit code is 0 if there was none.
#
# Needs clang with its sanitizer runtime (Debian: clang, libclang-rt-14-dev).
set -eu
cd "$(dirname "$0")/.."

merge=no minutes="" targets=""
for argument; do
    case $argument in
    --merge) merge=yes ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "fuzz.sh: unknown option $argument, expected --merge" >&2; exit 2 ;;
    *[!0-9]*)
        [ -f "tests/fuzz/fuzz_$argument.c" ] ||
            { echo "fuzz.sh: there is no tests/fuzz/fuzz_$argument.c" >&2; exit 2; }
        targets="$targets $argument" ;;
    *) minutes=$argument ;;
    esac
done
minutes=${minutes:-1}
[ -n "$targets" ] || targets=$(for file in tests/fuzz/fuzz_*.c; do
    name=${file##*/fuzz_}
    echo "${name%.c}"
done)

sh tools/build.sh fuzz
root=$PWD
build=$root/build/fuzz
memory=/dev/shm
[ -d "$memory" ] && [ -w "$memory" ] || memory=${TMPDIR:-/tmp}
TMPDIR=$(mktemp -d "$memory/fullrank-fuzz.XXXXXX") # targets put their files here
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1
export LSAN_OPTIONS="suppressions=$root/tests/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

# The value of a line "stat::NAME: VALUE" of libFuzzer's log.
stat() { sed -n "s/^stat::$1: *//p" "$log"; }

findings=0
for target in $targets; do
    log=$build/fuzz_$target.log
    mkdir -p "$build/corpus/$target" "$build/findings" "tests/fuzz/corpus/$target"
    broken=no
    "$build/tests/fuzz_$target" -max_total_time=$((60 * minutes)) -max_len=8192 -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/findings/$target-" \
        "$build/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null || broken=yes
    printf '%-12s %10s executions, %6s per second' "$target" "$(stat number_of_executed_units)" \
        "$(stat average_exec_per_sec)"
    if [ "$broken" = yes ]; then
        findings=$((findings + 1))
        echo ", a finding:"
        sed -n '/^==\|runtime error\|^SUMMARY\|Test unit written/p' "$log" | sed 's/^/    /'
    else
        echo ", no finding"
    fi
    if [ "$merge" = yes ]; then
        "$build/tests/fuzz_$target" -merge=1 -max_len=8192 -timeout=10 "tests/fuzz/corpus/$target" \
            "$build/corpus/$target" >>"$log" 2>&1 </dev/null || { tail -5 "$log"; findings=$((findings + 1)); }
    fi
done
[ "$findings" = 0 ]
