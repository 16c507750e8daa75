# tap.sh - TAP for shell tests. Source it, test, end with `finish`:
#
#     . "$FULLRANK_SOURCE/tests/tap.sh"
#     fullrank=$1
#     is "version is shown" "$("$fullrank" version | head -n 1)" "fullrank 0.1.0"
#     runs "help works" 0 "$fullrank" --help
#     finish
#
# $scratch is an empty directory, removed at the end. `runs` leaves the program's output in
# $scratch/.stdout and $scratch/.stderr, also as $stdout and $stderr.
tap_count=0
tap_failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Sanitizers are slow: "yes" means that a sample is enough, because the plain build tests everything.
# shellcheck disable=SC2034 # for the caller, whose first argument is the tool
case ${1-} in */asan/* | */tsan/*) sanitized=yes ;; *) sanitized="" ;; esac

pass() { # NAME
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1"
}

miss() { # NAME [LINE...]: a failed test with diagnostics
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
    shift
    for tap_line; do printf '%s\n' "$tap_line" | sed 's/^/#   /'; done
}

skip() { # NAME REASON
    tap_count=$((tap_count + 1))
    echo "ok $tap_count # SKIP $1: $2"
}

is() { # NAME FOUND EXPECTED
    if [ "$2" = "$3" ]; then pass "$1"; else miss "$1" "found:" "$2" "expected:" "$3"; fi
}

has() { # NAME TEXT PART: TEXT contains PART
    case $2 in
    *"$3"*) pass "$1" ;;
    *) miss "$1" "found:" "$2" "expected to contain:" "$3" ;;
    esac
}

lacks() { # NAME TEXT PART: TEXT does not contain PART
    case $2 in
    *"$3"*) miss "$1" "found:" "$2" "expected not to contain:" "$3" ;;
    *) pass "$1" ;;
    esac
}

# shellcheck disable=SC2034 # stdout and stderr are for the caller
runs() { # NAME EXIT-CODE COMMAND...
    tap_name=$1
    tap_expected=$2
    shift 2
    tap_code=0
    "$@" >"$scratch/.stdout" 2>"$scratch/.stderr" </dev/null || tap_code=$?
    stdout=$(cat "$scratch/.stdout")
    stderr=$(cat "$scratch/.stderr")
    if [ "$tap_code" = "$tap_expected" ]; then
        pass "$tap_name"
    else
        miss "$tap_name" "exit code $tap_code, expected $tap_expected" "$stdout" "$stderr"
    fi
}

# The path of a real data set; empty if it does not exist: file=$(data_file wikipedia.csv.gz)
data_file() { # NAME
    tap_path=${FULLRANK_DATA:-$FULLRANK_SOURCE/../shared/data}/$1
    if [ -f "$tap_path" ]; then echo "$tap_path"; fi
}

finish() {
    echo "1..$tap_count"
    [ "$tap_failed" = 0 ] || exit 1
    exit 0
}
