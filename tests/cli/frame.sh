#!/bin/sh
# frame.sh - what all commands of the tool have in common: exit codes, messages that name the
# nearest word, help, config files, man page, completions. Prints TAP.
#
# usage: frame.sh path/to/fullrank
set -u
tool=${1:?usage: frame.sh path/to/fullrank}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
case $tool in /*) ;; *) tool=$PWD/$tool ;; esac
cd "$work" || exit 1 # files are named without their folder below, so that test names stay the same
count=0 failures=0

# result NAME: the status of the previous command decides.
result() {
    if [ $? -eq 0 ]; then verdict=ok; else verdict='not ok' failures=$((failures + 1)); fi
    count=$((count + 1))
    echo "$verdict $count - $1"
}

skip() {
    count=$((count + 1))
    echo "ok $count # SKIP $1"
}

# run ARGUMENTS...: sets code, out and err to the results of the tool.
run() {
    "$tool" "$@" >"$work/out" 2>"$work/err"
    code=$?
    out=$(cat "$work/out") err=$(cat "$work/err")
}

says() { case $2 in *"$1"*) true ;; *) false ;; esac; }

# refuses CODE MESSAGE ARGUMENTS...: exit code, one line on stderr with MESSAGE, nothing on stdout.
refuses() {
    want=$1 message=$2
    shift 2
    run "$@"
    [ $code -eq "$want" ] && [ -z "$out" ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        says "fullrank: " "$err" && says "$message" "$err"
    result "fullrank $(echo "$*" | tr '\n' ' ')is refused ($want): $message"
}

# shows TEXT ARGUMENTS...: succeeds, TEXT on stdout, stderr empty.
shows() {
    text=$1
    shift
    run "$@"
    [ $code -eq 0 ] && [ -z "$err" ] && says "$text" "$out"
    result "fullrank $* shows: $text"
}

# Wrong usage.
refuses 2 "unknown command versoin, did you mean version?" versoin
refuses 2 "unknown command xyzzy" xyzzy
refuses 2 "unknown command " ""
refuses 2 "unknown option --jsn before a command" --jsn version
refuses 2 "unknown option --jsno, did you mean --json?" version --jsno
refuses 2 "unknown option --thread, did you mean --threads?" version --thread=2
refuses 2 "unknown option --xyzzy" version --xyzzy
refuses 2 "unknown option -x" version -x
refuses 2 "option --threads needs a value" version --threads
refuses 2 "option --threads needs a value, found --json" version --threads --json
refuses 2 'option threads: found "many", expected a whole number' version --threads many
refuses 2 'option threads: found "-1"' version --threads=-1
refuses 2 "option --no-json takes no value" version --no-json=yes
refuses 2 "unknown option --no-threads" version --no-threads
refuses 2 "version takes no arguments, found extra" version extra
refuses 2 "version takes no arguments, found --json" version -- --json
refuses 2 "argument bash|zsh is missing" completions
refuses 2 "found fish, expected one of bash|zsh" completions fish
refuses 2 "found one argument too many, zsh" completions bash zsh
refuses 2 'option --set: found "json", expected key=value' version --set json
refuses 2 "unknown option jsno, did you mean --json?" version --set jsno=yes
refuses 2 "unknown command versoin, did you mean version?" help versoin
refuses 2 "version takes no arguments, found a\\x0ab" version "$(printf 'a\nb')"

# Help.
shows "fullrank COMMAND [ARGUMENTS] [OPTIONS]"
shows "fullrank COMMAND [ARGUMENTS] [OPTIONS]" --help
shows "fullrank COMMAND [ARGUMENTS] [OPTIONS]" -h
shows "fullrank COMMAND [ARGUMENTS] [OPTIONS]" help
shows "fullrank version [OPTIONS]" help version
shows "default 0, from 0 to 4096" version --help
shows "fullrank completions bash|zsh" completions --xyzzy --help

"$tool" help >"$work/help"
sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' "$work/help" >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 5 ]
result "help lists the commands"
bad=
while read -r first second; do
    "$tool" "$first" ${second:+"$second"} --help >"$work/out" 2>"$work/err" </dev/null &&
        [ ! -s "$work/err" ] && grep -q '^Usage:' "$work/out" &&
        grep -q "^  fullrank $first" "$work/out" && grep -q '^Example:' "$work/out" &&
        ! grep -q '^.\{81\}' "$work/out" || bad="$bad $first $second;"
done <"$work/commands"
[ -z "$bad" ]
result "every command has --help with usage and example, within 80 columns$bad"

families=$(sed -n 's/^\([a-z]*\) .*/\1/p' "$work/commands" | sort -u)
[ -n "$families" ] || skip "no command has two words"
for family in $families; do
    shows "fullrank $family COMMAND" "$family" --help
    shows "fullrank $family COMMAND" help "$family"
    refuses 2 "$family needs one more word" "$family"
    refuses 2 "unknown command $family xyzzy" "$family" xyzzy
done

# Version and citation.
shows "compiler" version
shows "fullrank " --version
shows '"cpu_features": "' version --json
shows '"commit": "' --version --json
if command -v python3 >/dev/null; then
    "$tool" version --json | python3 -c '
import json, sys
keys = set(json.load(sys.stdin))
sys.exit(not {"version", "commit", "compiler", "cpu_features"} <= keys)'
    result "version --json is JSON with its keys"
else
    skip "python3 is not installed"
fi
shows "@software{fullrank," --cite
shows "Back to All-Entity Ranking" cite
shows '"bibtex": "@software' cite --json

# Config files and the order of precedence: file, then command line.
echo '{"json": true, "threads": 2}' >json.json
shows '"version":' version --config json.json
shows 'compiler   ' version --no-json --config json.json
shows 'compiler   ' version --config json.json --json=no
shows 'compiler   ' version --config=json.json --set json=no
shows '"version":' version --set json=no --json
echo '{"jsno": true}' >unknown.json
refuses 2 "unknown.json: unknown option jsno, did you mean --json?" version --config unknown.json
echo '{"threads": -1}' >range.json
refuses 2 'range.json: option threads: found "-1"' version --threads 1 --config range.json
echo '{"config": "x"}' >nested.json
refuses 2 "option config works on the command line only" version --config nested.json
echo '["json"]' >list.json
refuses 2 "list.json: found no JSON object" version --config list.json
echo '{"json": ' >broken.json
refuses 1 "broken.json" version --config broken.json
refuses 1 "none.json" version --config none.json

# stdout that cannot be written.
if [ -c /dev/full ]; then
    err=$("$tool" version 2>&1 >/dev/full)
    [ $? -eq 1 ] && says "standard output could not be written: No space left" "$err"
    result "a full disk behind stdout is exit 1"
else
    skip "there is no /dev/full"
fi
case $tool in
*/tsan/*) skip "the thread sanitizer writes a file of its own, so a file-size limit ends it" ;;
*)
    err=$( (ulimit -f 0 && "$tool" man 2>&1 >"$work/limited"))
    [ $? -eq 1 ] && says "standard output could not be written: File too large" "$err"
    result "a file-size limit is exit 1 and no signal"
    ;;
esac
err=$("$tool" man 2>&1 >&-)
[ $? -eq 1 ] && says "standard output could not be written" "$err"
result "a closed stdout is exit 1"
(trap '' PIPE; "$tool" man 2>"$work/err") | true
"$tool" man 2>>"$work/err" | true
[ ! -s "$work/err" ]
result "a reader that has enough ends the tool without a word"

# Man page and completions contain everything that help lists.
run man
[ $code -eq 0 ] && [ -z "$err" ] && ! sed 's/  *$//' "$work/commands" |
    while read -r name; do grep -q "^\.SS \"fullrank $name\"" "$work/out" || echo "$name"; done |
    grep .
result "the man page has every command"
if command -v mandoc >/dev/null; then
    lint=$(mandoc -Tlint -W warning <"$work/out" 2>&1) # by stdin: a name may look like a section
    [ -z "$lint" ] || echo "# $lint"
    [ -z "$lint" ]
    result "mandoc finds no fault with the man page"
else
    skip "mandoc is not installed"
fi
"$tool" completions bash >"$work/bash"
if command -v bash >/dev/null; then
    bash -n "$work/bash"
    result "the completions are valid bash"
    cat >"$work/try" <<'TRY'
. "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_fullrank
echo "${COMPREPLY[*]}"
TRY
    complete_words() { bash "$work/try" "$work/bash" "$tool" "$@"; }
    [ "$(complete_words vers)" = version ] && [ "$(complete_words version --js)" = --json ] &&
        [ "$(complete_words completions z)" = zsh ] && [ "$(complete_words help vers)" = version ]
    result "bash completes commands, options and words"
    [ "$(complete_words rank --scorer base)" = baseline: ] &&
        [ "$(complete_words rank --scorer baseline : rece | tr ' ' '\n' | sort | tr '\n' ' ')" = "recency recent-popularity " ] &&
        [ "$(complete_words rank --scorer baseline : edgebank,me)" = edgebank,memory= ] &&
        [ "$(complete_words rank --scorer baseline : edgebank,memory=window,s)" = edgebank,memory=window,share= ]
    result "bash completes scorers and their options"
    bad=
    while read -r first second; do
        case " $(complete_words "$first" ${second:+"$second"} --) " in
        *" --threads "*) ;;
        *) bad="$bad $first $second;" ;;
        esac
    done <"$work/commands"
    [ -z "$bad" ]
    result "bash completes the options of every command$bad"
else
    skip "bash is not installed"
fi
"$tool" completions zsh >"$work/zsh"
if command -v zsh >/dev/null; then
    zsh -n "$work/zsh"
    result "the completions are valid zsh"
else
    skip "zsh is not installed"
fi

# An installed library is found through its .pc file, wherever it is installed.
if command -v pkg-config >/dev/null &&
    cmake --install "$(dirname "$tool")" --prefix "$work/put" >/dev/null 2>&1; then
    pc=$(find "$work/put" -name fullrank.pc)
    flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs fullrank)
    include=${flags#*-I} && include=${include%% *}
    library=${flags#*-L} && library=${library%% *}
    case $include in "$work/put"/*) [ -f "$include/fullrank.h" ] ;; *) false ;; esac
    result "pkg-config names where the header was installed"
    case $library in "$work/put"/*) [ -f "$library/libfullrank.so" ] ;; *) false ;; esac
    result "pkg-config names where the library was installed"
else
    skip "cmake or pkg-config is not installed"
fi

echo "1..$count"
[ $failures -eq 0 ]
