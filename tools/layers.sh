#!/bin/sh
# layers.sh - the written include order, and the size of files; prints TAP.
#
# The table says for each folder of src/ which other folders it may include; itself and fullrank.h
# are always allowed. Everything else is forbidden, so a new dependency is a decision that is
# visible in a diff. The table is the order base -> data | nn -> models, baselines -> train | rank -> eval
# -> study -> report -> cli, minus what a folder must not know: metrics see rank records but no
# models, and the command line sees only the public header.
set -eu
cd "$(dirname "$0")/.."

# folder: may include
table='
base:
data:      base
nn:        base
models:    base data nn
baselines: base data nn
train:     base data nn models
rank:      base data nn models baselines
eval:      base data rank
study:     base data nn models baselines train rank eval
report:    base data rank eval study
cli:
mpi:
'
most=1000 # lines of a file
longest=60 # of a function, its signature included
manual=1680 # of the public header, which is one file on purpose and half of it prose

tests=0 failed=0
result() { # NAME FINDINGS: none is good
    tests=$((tests + 1))
    if [ -z "$2" ]; then
        echo "ok $tests - $1"
    else
        echo "not ok $tests - $1"
        printf '%s\n' "$2" | sed 's/^/#   /'
        failed=1
    fi
}

# Folders that are not in the table, and wrong includes of one folder.
strangers=""
# shellcheck disable=SC2016 # $0 is awk's
for path in src/*/; do
    folder=$(basename "$path")
    allowed=$(printf '%s' "$table" | sed -n "s/^$folder: *//p")
    printf '%s' "$table" | grep -q "^$folder:" || strangers="$strangers src/$folder"
    result "includes of src/$folder" "$(find "$path" -name '*.[ch]' | sort | xargs awk \
        -v folder="$folder" -v allowed=" $allowed $folder " '
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split($0, part, "\"")
            wanted = part[2]
            if (wanted == "fullrank.h" || wanted == "commit.h") next
            if (folder == "cli" && wanted !~ "/") next # built without src/ in its include path
            top = wanted
            if (!sub(/\/.*/, "", top) || wanted ~ /\.\./)
                print FILENAME ":" FNR ": \"" wanted "\", expected \"folder/file.h\""
            else if (!index(allowed, " " top " "))
                print FILENAME ":" FNR ": " folder " may not include " top
        }')"
done
result "every folder of src is in the table" "$strangers"
result "no file is longer than $most lines, the header than $manual" "$(find include src tests tools bench examples python \
    -type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.js' \) 2>/dev/null |
    sort | while IFS= read -r file; do
        lines=$(wc -l <"$file")
        case $file in include/*) limit=$manual ;; *) limit=$most ;; esac
        [ "$lines" -le "$limit" ] || echo "$file: $lines lines"
    done)"
# The library is also used without the command line, so its messages name options by key, "option ids". Commands that
# are quoted as a whole (`...`, <code>...</code>) may have dashes.
# shellcheck disable=SC2016 # $0 is awk's, and nothing is run
result "no message of the library names an option of the command line" "$(find src -name '*.[ch]' ! -path 'src/cli/*' | sort |
    xargs awk '
    /^[ \t]*(\/\*|\*)/ { next }
    {
        line = $0
        gsub(/`[^`]*`/, "", line)
        gsub(/<code>[^<]*<\/code>/, "", line)
        if (line ~ /"[^"]*(^|[^-!])--[a-z][^"]*"/) print FILENAME ":" FNR ": " $0
    }')"
# A function begins in the first column and ends with the first '}' there; its signature may take several lines.
result "no function is longer than $longest lines" "$(find src -name '*.[ch]' | sort | xargs awk -v most="$longest" '
    FNR == 1 { inside = 0 }
    !inside && /^[A-Za-z_]/ { start = FNR }
    !inside && /\) \{$/ && !/^#/ { inside = 1 }
    inside && /^}/ {
        lines = FNR - start + 1
        if (lines > most) print FILENAME ":" start ": " lines " lines"
        inside = 0
    }')"
result "numbers pass base/number.h, JSON base/json.h" "$(find src -name '*.[ch]' ! -path 'src/cli/*' \
    ! -name 'number.[ch]' ! -name json.c | sort |
    xargs grep -nE '(^|[^a-z_])(strtod|strtof|atof|sscanf|tolower|json_dumps|json_loads|json_loadb)\(|[^_v]snprintf\(.*%[-+.*0-9]*[fgeFGE]' || :)"
echo "1..$tests"
exit "$failed"
