#!/bin/sh
# citations.sh - checks that every section that the source cites exists; prints TAP.
#
# "PROTOCOL 8" is section 8 of docs/protocol.md and "MODELS 2.6" section 2.6 of docs/models.md, where an item of a
# numbered list counts as a part of its section. "PROTOCOL 8-10" and "MODELS 4.2, 5.3" cite several.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The sections of a page, one per line: "## 2. CRAFT" is 2, "### 2.6 Scoring" 2.6, "1. First" below "## 11. Tests" 11.1.
sections() { # FILE
    awk '/^##/ {split($2, n, " "); at = n[1]; sub(/\.$/, "", at); print at}
        /^[0-9]+\. / {item = $1; sub(/\.$/, "", item); print at "." item}' "$1"
}

# The cited sections, one "FILE: NUMBER" per line.
cited() { # NAME
    grep -rHoE "$1 [0-9]+(\.[0-9]+)?((-|, | and )[0-9]+(\.[0-9]+)?)*" src include tests bench docs README.md CONTRIBUTING.md \
        --include='*.[ch]' --include='*.py' --include='*.sh' --include='*.md' --include='*.txt' --include='*.js' |
        awk -v name="$1" '{
            file = $0; sub(/:.*/, "", file)
            list = $0; sub(".*" name " ", "", list); gsub(/, | and /, " ", list)
            count = split(list, part, " ")
            for (i = 1; i <= count; i++) {
                ends = split(part[i], range, "-")
                if (ends == 1) print file ": " part[i]
                else for (k = range[1]; k <= range[2]; k++) print file ": " k
            }
        }'
}

echo 1..2
number=0
for name in PROTOCOL MODELS; do
    number=$((number + 1))
    sections "docs/$(echo $name | tr '[:upper:]' '[:lower:]').md" | sort -u >"$work/sections"
    cited $name | sort -u >"$work/cited"
    lost=$(awk 'NR == FNR {there[$1] = 1; next} !($2 in there)' "$work/sections" "$work/cited")
    if [ -s "$work/cited" ] && [ -z "$lost" ]; then
        echo "ok $number - $name: $(wc -l <"$work/cited") citations"
    else
        echo "not ok $number - $name: citations of sections that are not there"
        printf '%s\n' "$lost" | sed 's/^/#   /'
    fi
done
