#!/bin/sh
# run.sh - runs one test program and passes its TAP on, made strict.
#
#   tests/run.sh PROGRAM [ARGUMENT...]
#
# cmocka writes a skipped test as "not ok N # SKIP name"; a "# because ..." line before it (testing.h)
# says why. Out comes "ok N # SKIP name: why". A program that crashes, exits with an error without a
# "not ok", reports fewer tests than its plan or none at all gets one "not ok" line that says so.
name=$1
if [ "$1" = sh ]; then name=$2; fi
{
    "$@" 2>&1
    printf '\n# exit %d\n' $?
} | awk -v program="${name##*/}" '
    function complain(text) { print "not ok " ++tests " - " program " " text; failed = 1 }
    /^$/ { next }
    /^1\.\.[0-9]+/ { plan = substr($1, 4) + 0; planned = 1 }
    /^# because / { why = substr($0, 11); next }
    /^not ok [0-9]+ # SKIP/ { sub(/^not /, ""); if (why) $0 = $0 ": " why }
    /^not ok / { failed = 1 }
    /^(not )?ok / { tests++; why = "" }
    /^# exit [0-9]+$/ { status = $3; next }
    { print }
    END {
        if (planned && tests < plan)
            complain("ended after " tests + 0 " of " plan " tests with status " status)
        else if (status && !failed) complain("exited with status " status)
        else if (!tests) complain("reported no test")
        exit failed
    }'
