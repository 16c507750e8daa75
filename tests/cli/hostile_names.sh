#!/bin/sh
# hostile_names.sh - names that other programs would run (terminal, spreadsheet, LaTeX, HTML, SQL) go
# through every output and stay names. A file name may have any bytes except "/" and NUL, so people who
# share data could otherwise control other people's terminals and browsers.
# shellcheck source=tests/tap.sh
. "$FULLRANK_SOURCE/tests/tap.sh"
case $1 in /*) fullrank=$1 ;; *) fullrank=$PWD/$1 ;; esac
cd "$scratch" || exit 1

awk 'BEGIN {
    print "source,destination,time"
    for (i = 0; i < 240; i++) printf "%d,%d,%d\n", i % 7, (i * i + int(i / 9)) % 11 + 100, i
}' >plain.csv

escape=$(printf '\033') bell=$(printf '\007') newline='
'
csi=$(printf '\302\233') override=$(printf '\342\200\256') broken=$(printf '\377\376')

# Nothing that controls a terminal: no control bytes except line ends and tabs, no C1, no bidi, no invalid UTF-8.
tame() { # NAME FILE
    if [ -n "$(LC_ALL=C tr -d '\n\t\040-\176\200-\377' <"$2")" ]; then
        miss "$1" "control bytes:" "$(od -c "$2" | head -20)"
    elif LC_ALL=C grep -q "$csi\|$override\|$broken" "$2"; then
        miss "$1" "C1, bidi or invalid bytes:" "$(od -c "$2" | head -20)"
    else
        pass "$1"
    fi
}

# Runs a command and checks everything: its code and its output.
shows() { # NAME CODE COMMAND...
    runs "$@"
    cat .stdout .stderr >.both
    tame "$1: prints" .both
}

# ---- commands ----

number=0
for name in "a${escape}]0;owned${bell}b" "${escape}[2J${escape}[31mred" "two${newline}fullrank: lines" \
    "c1${csi}31m" "txt${override}vsc" "no${broken}utf8" "'; DROP TABLE run;--" '<img src=x onerror=alert(1)>' \
    "=cmd|' &C calc'!A0" '\input{x}' '-rf' '%s%n%s%n'; do
    number=$((number + 1))
    cp plain.csv "./$name.csv"
    shows "import $number" 0 "$fullrank" data import -o "./$name" -- "./$name.csv"
    shows "info $number" 0 "$fullrank" data info "./$name"
    runs "info as JSON $number" 0 "$fullrank" data info --json "./$name"
    cp .stdout "info-$number.json"
    shows "rank $number" 0 "$fullrank" rank --data "./$name" --scorer baseline:recency -o "./$name.npy" \
        --dump-scores "./$name-scores.npy"
    # Once more from the scores: a scorer with a hostile name.
    shows "rank scores $number" 0 "$fullrank" rank --data "./$name" --scorer "scores:./$name-scores.npy" \
        -o "./$name-again.npy"
    runs "rank as JSON $number" 0 "$fullrank" rank --json --force --data "./$name" \
        --scorer "scores:./$name-scores.npy" -o "./$name-again.npy"
    cp .stdout "rank-$number.json"
    shows "metrics $number" 0 "$fullrank" metrics "./$name.npy" "./$name-again.npy" --per-event "./$name.tsv"
    tame "per event $number" "./$name.tsv"
    is "per event, lines $number" "$(awk -F '\t' 'NF != 12' "./$name.tsv" | wc -l | tr -d ' ')" 0
    shows "compare $number" 0 "$fullrank" compare "./$name.npy" "./$name-again.npy" --resamples 100 --block 8
    shows "missing file $number" 1 "$fullrank" data info "./none/$name"
    shows "missing data in an option $number" 1 "$fullrank" rank --data "./none/$name" --scorer oracle -o x.npy
    shows "unknown command $number" 2 "$fullrank" "x$name"
    shows "unknown option $number" 2 "$fullrank" rank "--x$name"
    shows "unknown scorer $number" 2 "$fullrank" rank --data plain.csv --scorer "baseline:$name" -o x.npy
done

runs "a message shows what it hides" 1 "$fullrank" data info "a${escape}[31m${csi}b"
has "escapes in it" "$stderr" 'a\x1b[31m\xc2\x9bb'
printf 'source,destination,time\n1,2,\033[31m3\n' >bad.csv
shows "a bad cell" 1 "$fullrank" data info bad.csv
printf '{"name": "x\\u001b[31m", "data": ["plain"], "k\\u001b]0;x\\u0007": 1}' >bad.json
shows "a bad key of a study" 1 "$fullrank" study run bad.json -o bad
shows "letters stay" 1 "$fullrank" data info "größe-漢字"
has "letters stay as they are" "$stderr" "größe-漢字"

# ---- a study ----

if [ -z "${FULLRANK_PYTHON:-}" ]; then
    skip "hostile study" "needs python3 with NumPy"
    finish
fi
check() { # WHAT ARGUMENT...
    "$FULLRANK_PYTHON" "$FULLRANK_SOURCE/tests/hostile_names.py" "$@" >.found 2>&1
    code=$?
    is "$1" "$code:$(cat .found)" "0:"
}
check json info-*.json rank-*.json
check document study.json
check document unknown.json
shows "a hostile baseline" 1 "$fullrank" study run unknown.json -o unknown
runs "hostile study" 0 "$fullrank" study run study.json -o study
tame "hostile study: stderr" .stderr
shows "hostile status" 0 "$fullrank" study status study
runs "hostile status as JSON" 0 "$fullrank" study status study --json
cp .stdout status.json
shows "hostile report" 0 "$fullrank" study report study
for file in study/tables/*.txt study/tables/*.md study/tables/*.csv study/tables/*.tex study/figures/*.svg; do
    tame "hostile study: ${file#study/}" "$file"
done
check status status.json
check database study/study.db
check csv study/tables/*.csv
check markdown study/tables/*.md
check latex study/tables/*.tex
check svg study/figures/*.svg
check pdf study/figures/*.pdf
check html study/report.html
if command -v pdflatex >/dev/null; then
    for file in study/tables/*.tex; do
        printf '\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{%s}\\end{document}\n' \
            "${file%.tex}" >page.tex
        runs "pdflatex ${file#study/}" 0 pdflatex -no-shell-escape -halt-on-error -interaction=nonstopmode page.tex
    done
else
    skip "LaTeX compiles" "no pdflatex"
fi
finish
