#!/bin/sh
# import.sh - `data import` and `data export` against bad input, bad places, interruption, and the
# many ways to write the same table. Prints TAP.
#
# It checks that a refusal is one line that names the file (and line and column), with exit code 1, and
# leaves nothing. The same events in any format give the same bytes. An exported set gives the same
# bytes when it is imported again.
#
# usage: FULLRANK_SOURCE=REPOSITORY import.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: import.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
python=${FULLRANK_PYTHON:-python3}
"$python" -c 'import sys' 2>/dev/null || python=
mkdir "$scratch/work" "$scratch/tmp"
export TMPDIR="$scratch/tmp"
cd "$scratch/work" || exit 1

listing() { ls -A . "$TMPDIR"; }

# refused NAME MESSAGE COMMAND...: exit 1, MESSAGE in the only line on stderr (apart from notes), nothing on stdout,
# and the same files as before.
refused() {
    name=$1 message=$2
    shift 2
    before=$(listing)
    code=0
    "$@" >"$scratch/.stdout" 2>"$scratch/.stderr" </dev/null || code=$?
    lines=$(grep -cv '^fullrank: note: ' "$scratch/.stderr")
    said=$(grep -v '^fullrank: note: ' "$scratch/.stderr")
    left=$(listing)
    case $said in "fullrank: "*"$message"*) right=yes ;; *) right=no ;; esac
    if [ $code = 1 ] && [ "$lines" = 1 ] && [ $right = yes ] && [ ! -s "$scratch/.stdout" ] &&
        [ "$before" = "$left" ]; then
        pass "$name"
    else
        miss "$name" "exit code $code, said:" "$said" "expected exit code 1 and:" "$message" \
            "files before:" "$before" "files after:" "$left"
    fi
}

import() { "$fullrank" data import "$@"; }
# shellcheck disable=SC2317 # called by refused
info() { "$fullrank" data info "$@"; }
export_to() { "$fullrank" data export "$@"; }

# bad NAME MESSAGE [OPTION...]: importing bad.csv is refused; removes it.
bad() {
    name=$1 message=$2
    shift 2
    refused "$name" "$message" import bad.csv -o out "$@"
    rm -f bad.csv
}

# ---- input that is not a table ----

printf 'u,i,t\n1,2,3\n1,2,4\n1,3,5\n' >good.csv
refused "missing file" "none.csv: cannot be read: No such file" import none.csv -o out
mkdir folder
refused "a directory as input" "folder: is a directory, expected a file" import folder -o out
rmdir folder
: >bad.csv
bad "empty file" "bad.csv: the file is empty"
printf '\n\r\n\n' >bad.csv
bad "nothing but empty lines" "bad.csv: the file is empty"
printf '# one\n# two\n' >bad.csv
bad "nothing but comments" "bad.csv: the file is empty"
printf 'u,i,t\n' >bad.csv
bad "header only" "bad.csv: no events after the header"
printf '\n<!DOCTYPE html>\n<html></html>\n' >bad.csv
bad "HTML page" "bad.csv:2: looks like an HTML"
printf 'PK\003\004\024\000\000\000' >bad.csv
bad "zip file" "bad.csv: a zip archive"
printf 'u,i,t\n1,2,3\n' | tr '\n' '\0' >bad.csv
bad "NUL bytes in the header" "bad.csv:1: a NUL byte"
printf 'u\000,\000i\000' >bad.csv
bad "UTF-16" "bad.csv:1: a NUL byte"
printf 'u,i\n1,2\n' >bad.csv
bad "two columns" "bad.csv:1: 2 columns, expected at least 3"
printf '# x\n\nu,i\n1,2\n' >bad.csv
bad "two columns behind a comment" "bad.csv:3: 2 columns, expected"
printf 'a,b,c\n1,2,3\n' >bad.csv
bad "unknown names" "bad.csv:1: no column for the source among: a, b, c"
printf 'u,u,t\n1,2,3\n' >bad.csv
bad "a name twice" "bad.csv:1: columns \"u\" and \"u\" could both be the source; say which with \
option columns: source=1 or source=2"
awk 'BEGIN { while (n++ < 70000) printf "%d,", n; print "1" }' >bad.csv
bad "70,001 columns" "bad.csv:1: 70001 columns, expected at most 65536"
head -c 40000000 /dev/zero | tr '\0' 7 >bad.csv
bad "a line of 40 MB" "bad.csv:1: a line of more than"

# ---- rows ----

# row NAME MESSAGE ROW [OPTION...]: the second of three rows is refused, at its line.
row() {
    name=$1 message=$2 text=$3
    shift 3
    printf 'u,i,t,f1\n1,2,3,4\n%b\n1,2,5,6\n' "$text" >bad.csv
    bad "$name" "bad.csv:3:$message" "$@"
}
row "too few columns" "4: the row ends after 3 columns, expected 4" '1,2,3'
row "one column" "2: the row ends after 1 column, expected 4" '1'
row "too many columns" "5: the row goes on, expected 4 columns" '1,2,3,4,5'
row "a comma too many" "5: the row goes on, expected 4 columns" '1,2,3,4,'
row "text as source" \
    '1: source "ann", expected a whole number from 0 to 9223372036854775807 (option ids: words reads' 'ann,2,3,4' --ids numbers
row "text as destination" '2: destination "bob", expected a whole number' '1,bob,3,4' --ids numbers
row "text as time" '3: time "noon", expected a finite number' '1,2,noon,4'
row "a date among numbers" \
    '3: time "2020-01-01", expected a finite number as in the first row, not a date' '1,2,2020-01-01,4'
row "text as feature" '4: feature "red", expected a finite number' '1,2,3,red'
row "NaN as time" '3: time "nan", expected a finite number' '1,2,nan,4'
row "NaN in capitals" '3: time "NaN", expected a finite number' '1,2,NaN,4'
row "infinite time" '3: time "inf", expected a finite number' '1,2,inf,4'
row "time that overflows" '3: time "1e309", expected a finite number' '1,2,1e309,4'
row "NaN as feature" '4: feature "nan", expected a finite number' '1,2,3,nan'
row "feature beyond float32" '4: feature "1e39", expected a finite number' '1,2,3,1e39'
row "hexadecimal time" '3: time "0x10", expected a finite number' '1,2,0x10,4'
row "negative id" '1: source "-1", expected a whole number from 0' '-1,2,3,4' --ids numbers
row "id of 2^63" '2: destination "9223372036854775808", expected a whole number' \
    '1,9223372036854775808,3,4' --ids numbers
row "id of 30 digits" '1: source "111111111111111111111111111111", expected' \
    '111111111111111111111111111111,2,3,4' --ids numbers
row "fraction as id" '1: source "1.5", expected a whole number' '1.5,2,3,4' --ids numbers
row "exponent as id" '1: source "1e3", expected a whole number' '1e3,2,3,4' --ids numbers
row "empty source" '1: source "", expected a whole number' ',2,3,4' --ids numbers
row "empty destination" '2: destination "", expected a whole number' '1,,3,4' --ids numbers
row "empty time" '3: time "", expected a finite number' '1,2,,4'
row "empty last field" '4: feature "", expected a finite number' '1,2,3,'
row "unterminated quote" '1: source ""1", expected a whole number' '"1,2,3,4' --ids numbers
row "unterminated quote, last" '4: feature ""4", expected a finite number' '1,2,3,"4'
row "unterminated quote around a word" '1: source ""ann' '"ann,2,3,4' --ids words
row "empty word" '1: source "", expected a word' ',2,3,4' --ids words
row "NUL byte in a row" '2: destination "\x00' '1,\0000,3,4' --ids numbers
row "NUL byte behind a number" '2: destination "2\x00' '1,2\0000,3,4' --ids numbers
row "NUL byte in a word" '2: destination "b\x00' '1,b\0000b,3,4' --ids words
row "control bytes are made visible" '1: source "\x1b[2Jx"' '\0033[2Jx,2,3,4' --ids numbers
printf '\357\273\277# c\r\n\r\nu,i,t\r\n\r\n1,2,3\r\n\r\n\r\n1,2,x\r\n' >bad.csv
bad "line numbers count comments, empty lines and CRLF" 'bad.csv:8:3: time "x"'
awk 'BEGIN { print "u,i,t"; while (n++ < 1000000) print ""; print "1,2,x" }' >bad.csv
bad "line numbers after a million empty lines" 'bad.csv:1000002:3: time "x"'
awk 'BEGIN { while (n++ < 30000) print n "," n "," n; print "1,2,3,4" }' >bad.csv
bad "line numbers far down" 'bad.csv:30001:4: the row goes on'
printf '1,2,nan\n1,2,3\n' >bad.csv
bad "NaN in the first row without header" "bad.csv:1"
printf '1 2 3\n1 2\n' >bad.csv
bad "space separated, too few" 'bad.csv:2:3: the row ends after 2 columns'
printf 'u,i,t\n1,2,3\n' >bad.csv
for columns in source=9 source=nobody place=1 source features=2-1; do
    code=0
    import bad.csv -o out --columns "$columns" >/dev/null 2>.err || code=$?
    is "--columns $columns is wrong usage" "$code $(grep -c 'option columns: ' .err)" "2 1"
done
rm -f bad.csv .err

# ---- damaged gzip ----

awk 'BEGIN { print "u,i,t"; while (n++ < 20000) print n % 97 "," n * 7 % 1009 "," n }' >long.csv
gzip -c long.csv >whole.gz
size=$(wc -c <whole.gz)
head -c $((size / 2)) whole.gz >bad.csv
bad "gzip cut in the middle" "bad.csv: the gzip data breaks off"
head -c $((size - 1)) whole.gz >bad.csv
bad "gzip cut by one byte" "bad.csv: the gzip data breaks off"
head -c 12 whole.gz >bad.csv
bad "gzip cut behind its header" "bad.csv: the gzip data breaks off"
{ cat whole.gz && echo tail; } >bad.csv
bad "text behind gzip" \
    "bad.csv: bytes that are not gzip follow the gzip data at byte $size"
{ cat whole.gz && head -c 100 /dev/zero; } >bad.csv
bad "zeros behind gzip" "bytes that are not gzip"
{ head -c 3000 whole.gz && printf '\377\377\377\377' && tail -c +3005 whole.gz; } >bad.csv
bad "gzip damaged in the middle" "bad.csv: damaged gzip data near byte"
{ head -c $((size - 8)) whole.gz && printf '\1\2\3\4' && tail -c 4 whole.gz; } >bad.csv
bad "gzip with a wrong checksum" "bad.csv: damaged gzip data near byte"
gzip -c </dev/null >bad.csv
bad "gzip of nothing" "bad.csv: the file is empty"
rm -f whole.gz

# ---- places to write to ----

printf 'u,i,t\n1,2,3\n' >one.csv
refused "a stream too short to split" "one.csv: split share with train share 0.85 and val share 0 leaves 0 of 1 events for training" \
    info one.csv
refused "a directory that is no stream" ".: no manifest.json in it" info .
refused "parent directory missing" "none/out: directory cannot be made: No such file" \
    import good.csv -o none/out
refused "a file as output" "one.csv: exists and is not a directory" import good.csv -o one.csv
refused "a file as output, forced" "one.csv: exists" import good.csv -o one.csv --force
is "a file as output is left alone" "$(cat one.csv)" "$(printf 'u,i,t\n1,2,3')"
mkdir empty
runs "an empty directory as output is used" 0 import one.csv -o empty
refused "an output that exists" "empty: exists; --force replaces it" import good.csv -o empty
has "an output that exists is left alone" "$(cat empty/manifest.json)" '"events": 1,'
runs "--force replaces a stream" 0 import good.csv -o empty --force
has "--force has replaced it" "$(cat empty/manifest.json)" '"events": 3,'
printf 'u,i,t\nx,2,3\n' >wrong.csv
refused "--force with bad input" "wrong.csv:2:1" import wrong.csv -o empty --force --ids numbers
has "--force with bad input keeps the old stream" "$(cat empty/manifest.json)" '"events": 3,'
mkdir theirs && echo thesis >theirs/thesis.txt
refused "--force keeps a directory of others" "theirs: contains no imported stream" \
    import good.csv -o theirs --force
echo '{"format": "other"}' >theirs/manifest.json
refused "--force keeps a directory with another manifest" "theirs: contains no imported stream" \
    import good.csv -o theirs --force
is "what others made is still there" "$(cat theirs/thesis.txt)" thesis
echo thesis >empty/thesis.txt
refused "--force keeps a stream with files of others in it" "thesis.txt" \
    import good.csv -o empty --force
is "a file of others in a stream is still there" "$(cat empty/thesis.txt 2>/dev/null)" thesis
ln -s empty link
refused "a symbolic link as output" "link: exists" import good.csv -o link --force
runs "a slash behind the output" 0 import good.csv -o slash///
is "a slash behind the output makes the directory" "$(cd slash && echo *)" \
    "destination.npy destination_ids.npy manifest.json source.npy source_ids.npy time.npy"
mkdir inner
refused "the current directory as output" ".: " \
    sh -c "cd inner && '$fullrank' data import ../good.csv -o ."
rm -rf empty slash theirs link inner
(umask 027 && import good.csv -o private >/dev/null 2>&1)
is "files follow the umask, columns without permission to write" \
    "$(find private \( -type d ! -perm 750 \) -o \( -name '*.npy' ! -perm 440 \) -o \
        \( -name '*.json' ! -perm 640 \))" ""
rm -rf private
if [ "$(id -u)" = 0 ]; then
    skip "read-only directory" "root may write everywhere"
else
    mkdir closed && chmod 555 closed
    refused "read-only directory" "closed/out: directory cannot be made" \
        import good.csv -o closed/out
    chmod 755 closed && rmdir closed
fi

# shellcheck disable=SC2317 # called by refused
limited() { (ulimit -f 16 && "$@"); }
refused "a file-size limit" "cannot be written: File too large" limited "$fullrank" data import \
    long.csv -o out
refused "a file-size limit for a temporary stream" "cannot be written: File too large" limited \
    "$fullrank" data info long.csv
import long.csv -o long >/dev/null 2>&1
refused "a file-size limit in export" "out.csv: cannot be written: File too large" limited \
    "$fullrank" data export long -o out.csv
mkdir small
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=64k tmpfs small 2>/dev/null; then
    refused "a full disk" "cannot be written: No space left" import long.csv -o small/out
    is "a full disk keeps nothing" "$(ls -A small)" ""
    TMPDIR=$PWD/small refused "a full disk for temporary streams" "No space left" info long.csv
    is "a full disk keeps nothing temporary" "$(ls -A small)" ""
    refused "a full disk in export" "small/out.csv: cannot be written: No space left" \
        export_to long -o small/out.csv
    is "a full disk keeps no export" "$(ls -A small)" ""
    umount small
else
    skip "a full disk" "a small file system cannot be mounted here"
fi
rmdir small

# ---- interruption ----

# interrupt.py TOOL HOW WHEN: sends a signal during an import; prints what was left.
#   fed N        rows come through a pipe without end; the signal comes once N bytes were written
#   info N       the same for data info, which imports to a temporary directory
#   stalled      the pipe stays open after a few rows and says nothing more
#   file SECONDS a file, after so many seconds
cat >interrupt.py <<'PYTHON'
import os, re, signal, subprocess, sys, time
tool, name, how, when = sys.argv[1:]
fed, flows, temporary = how != "file", how in ("fed", "info"), os.environ["TMPDIR"]
if fed:
    os.mkfifo("pipe")
command = [tool, "data", "import", "pipe" if fed else "shuffled.csv", "-o", "out"]
process = subprocess.Popen(command if how != "info" else [tool, "data", "info", "pipe"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def has_begun():
    return os.listdir(temporary) if how == "info" else any(n.startswith("out.tmp-fr") for n in os.listdir("."))
if fed:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    pipe = os.open("pipe", os.O_WRONLY)
    rows = b"u,i,t\n" + b"".join(b"%d,%d,%d\n" % (i % 97, i % 89, i) for i in range(20000))
    sent = os.write(pipe, rows)
    rows = rows[rows.index(b"\n") + 1:]
    while flows and sent < int(when):
        sent += os.write(pipe, rows)
    end = time.monotonic() + 120
    while flows and time.monotonic() < end and not has_begun():
        os.write(pipe, rows)
    if how == "stalled":
        time.sleep(0.3)
else:
    time.sleep(float(when))
process.send_signal(getattr(signal, name))
end = time.monotonic() + 60
while process.poll() is None and time.monotonic() < end:
    try:
        if flows:
            os.write(pipe, rows)
        else:
            time.sleep(0.01)
    except OSError:
        break
late = process.poll() is None and not flows
if late:
    process.kill()
code = process.wait()
left = [re.sub("tmp-fr[0-9a-f]{8}", "tmp", n) for n in sorted(os.listdir(".")) if n.startswith("out")]
print("late" if late else code, *left, *os.listdir(temporary))
PYTHON

if [ -n "$python" ]; then
    for bytes in 1 3000000 20000000; do
        for name in SIGINT SIGTERM; do
            is "$name after $bytes bytes" \
                "$("$python" interrupt.py "$fullrank" $name fed $bytes)" "130"
            rm -rf pipe out*
        done
    done
    is "SIGINT in data info" "$("$python" interrupt.py "$fullrank" SIGINT info 3000000)" "130"
    rm -f pipe
    is "SIGINT while the input says nothing" \
        "$("$python" interrupt.py "$fullrank" SIGINT stalled 0)" "130"
    rm -rf pipe out*
    is "kill -9 leaves only the temporary directory" \
        "$("$python" interrupt.py "$fullrank" SIGKILL fed 3000000)" "-9 out.tmp"
    rm -f pipe
    runs "after kill -9 the import can be repeated" 0 import good.csv -o out
    is "and removes what was left" "$(echo out*)" "out"
    rm -rf out*

    awk 'BEGIN { print "u,i,t"
        while (n++ < 400000) print n % 997 "," n % 1009 "," (n * 7919) % 400009 }' >shuffled.csv
    import shuffled.csv -o complete >/dev/null 2>&1
    for name in SIGINT SIGKILL; do
        broken=
        for delay in 0.01 0.02 0.04 0.06 0.08 0.1 0.15 0.2 0.3; do
            found=$("$python" interrupt.py "$fullrank" $name file $delay)
            case $found in
            "130" | "-2" | "-9" | "-9 out.tmp") ;;
            "0 out" | "-9 out")
                diff -r out complete >/dev/null || broken="$broken $delay: differs;"
                ;;
            *) broken="$broken $delay: $found;" ;;
            esac
            rm -rf out*
        done
        is "$name at nine moments leaves nothing or everything" "$broken" ""
    done
    rm -rf complete shuffled.csv
else
    skip "interruption" "python3 is not installed"
fi
rm -rf long long.csv

# ---- the same events in many forms ----

# like NAME REFERENCE DIRECTORY: the same columns, and the same manifest apart from its source.
like() {
    wrong=
    for file in "$2"/*; do
        base=${file##*/}
        [ "$base" = manifest.json ] || cmp -s "$file" "$3/$base" || wrong="$wrong $base"
    done
    [ "$(ls "$2")" = "$(ls "$3" 2>/dev/null)" ] || wrong="$wrong files"
    [ "$(sed '/^  "source": {$/,/^  }/d' "$2/manifest.json")" = \
        "$(sed '/^  "source": {$/,/^  }/d' "$3/manifest.json" 2>/dev/null)" ] ||
        wrong="$wrong manifest.json"
    is "$1" "$wrong" ""
}

# form NAME REFERENCE FILE [OPTION...]: FILE gives the columns of REFERENCE.
form() {
    name=$1 reference=$2 file=$3
    shift 3
    import "$file" -o got "$@" >/dev/null 2>.err || miss "$name" "$(cat .err)"
    [ ! -d got ] || like "$name" "$reference" got
    rm -rf got
}

# Ids with gaps, ties in time, three features; "plain" has no features, "unique" no ties.
awk 'BEGIN {
    print "user_id,item_id,timestamp,state_label,comma_separated_list_of_features"
    for (n = 0; n < 700; n++) {
        s = (s * 1103515245 + 12345) % 2147483648
        u = int(s / 65536) % 41
        s = (s * 1103515245 + 12345) % 2147483648
        v = int(s / 65536) % 67
        printf "%d,%d,%.1f,%d,%.6f,%s,%d\n", 3 * u, 1000 + 7 * v, int(n / 3) * 2.5, n % 2,
            s / 2147483648 - 0.5, n % 10 ? n "e-3" : "-0", n % 5
    }
}' >jodie.csv
tail -n +2 jodie.csv >rows.csv
import jodie.csv -o reference >/dev/null 2>&1
cut -d, -f1-3 rows.csv | sed '1i source,destination,time' >plain.csv
import plain.csv -o reference_plain >/dev/null 2>&1
has "the reference has all events" "$(cat reference/manifest.json)" '"events": 700,'
has "the reference has its features" "$(cat reference/manifest.json)" '"feature_width": 3,'

gzip -c jodie.csv >jodie.csv.gz
form "gzip" reference jodie.csv.gz
cp jodie.csv.gz named.csv
form "gzip under another name" reference named.csv
{ head -n 300 jodie.csv | gzip -c && tail -n +301 jodie.csv | head -c 1000 | gzip -c &&
    tail -n +301 jodie.csv | tail -c +1001 | gzip -9c && gzip -c </dev/null; } >members.gz
form "gzip of four members" reference members.gz
sed 's/$/\r/' jodie.csv >crlf.csv
form "CRLF" reference crlf.csv
{ printf '\357\273\277' && cat jodie.csv; } >bom.csv
form "byte order mark" reference bom.csv
{ printf '\357\273\277' && cat rows.csv; } >bom.csv
form "byte order mark without header" reference bom.csv
sed 's/[^,]*/"&"/g' jodie.csv >quoted.csv
form "quoted fields" reference quoted.csv
sed 's/,/ ,  /g; s/$/ /' jodie.csv >padded.csv
form "blanks around fields" reference padded.csv
sed 's/[^,]*/ "&" /g' jodie.csv >padded.csv
form "blanks around quotes" reference padded.csv
printf '%s' "$(cat jodie.csv)" >open.csv
form "no final newline" reference open.csv
printf '%s\r' "$(sed 's/$/\r/' rows.csv | sed '$s/\r$//')" >open.csv
form "a final carriage return without newline" reference open.csv
awk '{ print; if (NR % 7 == 1) print ""; if (NR % 50 == 1) print "\r" }' jodie.csv >blank.csv
{ printf '\n\n' && cat blank.csv && printf '\n\n\n'; } >blank2.csv
form "empty lines" reference blank2.csv
{ printf '# a comment\n%% another\n' && cat jodie.csv; } >comment.csv
form "comments before the header" reference comment.csv
form "no header" reference rows.csv
tr ',' '\t' <jodie.csv >tabs.tsv
form "tab separated" reference tabs.tsv
tr ',' ';' <jodie.csv >semicolon.csv
form "semicolon separated" reference semicolon.csv
tr ',' ' ' <jodie.csv >spaces.txt
form "space separated" reference spaces.txt
sed 's/,/ \t  /g; s/^/ /; s/$/  /' rows.csv >spaces.txt
form "runs of spaces and tabs" reference spaces.txt
awk -F, 'NR == 1 { print "Timestamp,f1,note,Item,f2,user,f3" }
    NR > 1 { print $3 "," $5 ",some \"text\" here," $2 "," $6 "," $1 "," $7 }' jodie.csv >order.csv
form "named columns in another order" reference order.csv
awk -F, 'NR > 1 { print $5 "," $6 "," $7 "," $3 "," $2 "," $1 }' jodie.csv >numbered.csv
form "--columns by number" reference numbered.csv \
    --columns source=6,destination=5,time=4,features=1-3
awk -F, 'NR == 1 { print "a,b,c,when,what,who" } { print }' numbered.csv >own.csv
form "--columns by name" reference own.csv \
    --columns source=who,destination=what,time=when,features=a-c
form "--columns without features" reference_plain jodie.csv --columns features=none
sed 's/^\([0-9]*\),\([0-9]*\),/\1.0,\2.000,/' rows.csv >whole.csv
form "ids written as 12.0" reference whole.csv
code=0
import /dev/stdin -o got <jodie.csv >/dev/null 2>.err || code=$?
is "standard input" "$code" 0
like "standard input gives the same" reference got
rm -rf got
mkfifo pipe && { cat jodie.csv.gz >pipe & }
form "a named pipe with gzip" reference pipe
rm -f pipe
awk -F, 'NR == 1 { print ",u,i,ts,label,idx" }
    NR == FNR { if (FNR > 1 && $1 > most) most = $1; next }
    FNR > 1 { print FNR - 2 "," $1 + 1 "," $2 + most + 2 "," $3 "," $4 ".0," FNR - 1 }' \
    jodie.csv jodie.csv >ml_jodie.csv
form "DyGLib without features" reference_plain ml_jodie.csv

# Two-dimensional .npy of float64 from CSV rows on stdin, with a zero first row.
cat >features.py <<'PYTHON'
import struct, sys
rows = [[float(x) for x in line.split(",")] for line in sys.stdin]
rows.insert(0, [0.0] * len(rows[0]))
head = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
head += " " * (-(len(head) + 11) % 64) + "\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    for row in rows:
        file.write(struct.pack("<%dd" % len(row), *row))
PYTHON
if [ -n "$python" ]; then
    cut -d, -f5-7 rows.csv | "$python" features.py ml_jodie.npy
    form "DyGLib with features" reference ml_jodie.csv
    gzip -c ml_jodie.csv >ml_jodie.csv.gz
    form "DyGLib with features, gzip" reference ml_jodie.csv.gz
    head -n 100 rows.csv | cut -d, -f5-7 | "$python" features.py ml_jodie.npy
    refused "DyGLib with too few features" \
        "ml_jodie.csv: idx 101, but the feature file has only 101 rows" import ml_jodie.csv -o out
    cut -d, -f5-7 rows.csv | sed '5s/,.*,/,nan,/' | "$python" features.py ml_jodie.npy
    refused "DyGLib with a feature that is NaN" "ml_jodie.npy: " import ml_jodie.csv -o out
    echo "not numpy" >ml_jodie.npy
    refused "DyGLib with a broken feature file" "ml_jodie.npy: " import ml_jodie.csv -o out
    rm -f ml_jodie.npy
else
    skip "DyGLib with features" "python3 is not installed"
fi

# Out of order: the same as sorted before, with a notice.
late() {
    awk -F, 'NR > 1 { if (NR > 2 && $3 < most) late++; else most = $3 } END { print late + 0 }' "$1"
}
awk -F, -v OFS=, 'NR > 1 { $3 = NR * 1.25 - 400 } { print }' jodie.csv >unique.csv
import unique.csv -o reference_unique >/dev/null 2>&1
{ head -n 1 unique.csv && tail -n +2 unique.csv | awk '{ print (NR * 7919) % 1009 "\t" $0 }' |
    sort -n | cut -f2-; } >shuffled.csv
form "shuffled rows are sorted" reference_unique shuffled.csv
has "shuffled rows are said" "$(cat .err)" \
    "shuffled.csv: $(late shuffled.csv) of 700 events are earlier than an event before them"
{ head -n 1 jodie.csv && tail -n +2 jodie.csv | awk '{ print (NR * 7919) % 1009 "\t" $0 }' |
    sort -n | cut -f2-; } >shuffled.csv
{ head -n 1 shuffled.csv && tail -n +2 shuffled.csv | sort -s -t, -k3,3n; } >stable.csv
import stable.csv -o reference_stable >/dev/null 2>&1
form "equal times stay as they came" reference_stable shuffled.csv
{ head -n 1 unique.csv && tail -n +2 unique.csv | sort -t, -k3,3nr; } >reverse.csv
form "reversed rows are sorted" reference_unique reverse.csv

# ---- ids: numbers or words ----

awk 'BEGIN { print "u,i,t"; for (n = 0; n < 200000; n++) print n % 97 "," n % 89 "," n; print "7,x1,200000" }' \
    >late.csv
runs "a word far behind numbers" 0 import late.csv -o late
has "is told with its line" "$stderr" \
    "late.csv:200002: not all ids are whole numbers from 0 to 9223372036854775807; taking ids as words (option ids: numbers refuses them)"
has "makes all ids words" "$(cat late/manifest.json)" '"words": true'
form "as --ids words does" late late.csv --ids words
refused "a word far behind numbers in a pipe" '"x1", expected a whole number' \
    sh -c "cat late.csv | '$fullrank' data import /dev/stdin -o out"
refused "a word far behind numbers, numbers asked for" 'late.csv:200002:2: destination "x1", expected' \
    import late.csv -o out --ids numbers
runs "info of words" 0 info late --json
has "info says that ids are words" "$stdout" '"ids": "words"'
runs "info of numbers" 0 info reference --json
has "info says that ids are numbers" "$stdout" '"ids": "numbers"'
printf 'u,i,t\n-1,2,1\n1.5,1e3,2\n' >odd.csv
runs "ids that are no whole numbers are words" 0 import odd.csv -o odd
is "as they were written" "$(cat odd/source_words.txt odd/destination_words.txt | tr '\n' ' ')" \
    "-1 1.5 1e3 2 "
printf 'u,i,t\nann,2,1\n,3,2\n' >bad.csv
bad "an empty id is no word" 'bad.csv:3:1: source "", expected a word'
is "numbers have the hash they had" "$(sed -n 's/^  "sha256": "\(.*\)".*/\1/p' reference/manifest.json)" \
    "$(import jodie.csv -o forced --ids numbers >/dev/null 2>&1
        sed -n 's/^  "sha256": "\(.*\)".*/\1/p' forced/manifest.json)"
rm -rf late late.csv odd odd.csv forced

# ---- times: dates and units ----

# moments NAME EXPECTED TIME... : how times are read.
moments() {
    name=$1 expected=$2
    shift 2
    { echo u,i,t && for time; do echo "1,2,$time"; done; } >dates.csv
    import dates.csv -o dates >/dev/null 2>.err || cat .err
    export_to dates -o dates2.csv >/dev/null 2>&1
    is "$name" "$(tail -n +2 dates2.csv | cut -d, -f3 | tr '\n' ' ')" "$expected "
    rm -rf dates dates.csv dates2.csv
}
moments "dates" "-86400 0 951782400 1706659200" 1969-12-31 1970-01-01 2000-02-29 2024-01-31
moments "dates and times" "1706702400 1706702400.5 1706702401 1706702402.25" \
    2024-01-31T12:00:00 '"2024-01-31 12:00:00.5"' 2024-01-31t12:00:01z ' 2024-01-31 12:00:02.250 '
moments "time zones" "1706684400 1706698800 1706722200" \
    2024-01-31T12:00:00+05:00 '2024-01-31 12:00:00+01:00' 2024-01-31T12:00:00-05:30
moments "fractions before 1970" "-0.75 -0.25" 1969-12-31T23:59:59.25 1969-12-31T23:59:59.75
printf '1 2 2024-01-31 0\n1 3 2024-02-01 0\n' >spaces.csv
runs "dates in columns separated by spaces, without header" 0 import spaces.csv -o spaces
has "first event" "$(cat spaces/manifest.json)" '"first": 1706659200.0'
printf 'user,item,when\nann,x,2024-01-31\n' >named.csv
runs "names above words and a date" 0 import named.csv -o named --columns time=when
has "are names" "$(cat named/manifest.json)" '"events": 1,'
has "the manifest says that times were dates" "$(cat named/manifest.json)" '"time_unit": "date"'
rm -rf spaces spaces.csv named named.csv
for wrong in 2023-02-29 2024-13-01 2024-00-01 2024-01-32 2024-1-1 2024-01-31T24:00:00 \
    2024-01-31T12:60:00 2024-01-31T12:00:60 2024-01-31T12:00 2024-01-31T12:00:00. 0000-01-01 \
    2024-01-31T12:00:00+1:00 2024-01-31T12:00:00+24:00 2024-01-31X 2024-01-311 1900-02-29 \
    2024-01-31T12:00:00.1234567891 1706659200 2024; do
    printf 'u,i,t\n1,2,2024-01-31\n1,2,%s\n' "$wrong" >bad.csv
    bad "no date: $wrong" "bad.csv:3:3: time \"$wrong\", expected a date: 2024-01-31 or"
done
printf 'u,i,t\n1,2,2024-02-30\n' >bad.csv
bad "a first date that does not exist" 'bad.csv:2:3: time "2024-02-30", expected a date'

for unit in ms:1000 us:1000000 ns:1000000000; do
    awk -v factor=${unit#*:} 'BEGIN { print "u,i,t"; for (n = 0; n < 20; n++)
        printf "1,%d,%.0f\n", n % 3, (1700000000 + n / 4) * factor }' >unit.csv
    runs "times in ${unit%:*}" 0 import unit.csv -o unit --force
    has "look like it" "$stderr" "but are taken as seconds; option time-unit ${unit%:*} converts them"
    runs "are converted" 0 import unit.csv -o unit --force --time-unit "${unit%:*}"
    lacks "then without a warning" "$stderr" "look like"
    has "${unit%:*} become seconds" "$(cat unit/manifest.json)" '"last": 1700000004.75'
    has "the manifest says ${unit%:*}" "$(cat unit/manifest.json)" "\"time_unit\": \"${unit%:*}\""
done
runs "seconds" 0 import plain.csv -o unit --force
lacks "seconds do not look like anything else" "$stderr" "look like"
has "the manifest says s" "$(cat unit/manifest.json)" '"time_unit": "s"'
printf 'u,i,t\n1,2,2024-01-31\n' >dates.csv
runs "dates with a unit" 2 import dates.csv -o out --time-unit ms
has "are refused" "$stderr" "dates.csv: times are dates, expected numbers with option time-unit ms"
rm -rf unit unit.csv dates.csv

# ---- header names of public sets ----

# header NAMES ROW SOURCE,DESTINATION,TIME: how one row is read.
header() {
    printf '%s\n%s\n' "$1" "$2" >header.csv
    import header.csv -o header >/dev/null 2>.err || cat .err
    export_to header -o header2.csv >/dev/null 2>&1
    is "header $1" "$(sed -n 2p header2.csv 2>/dev/null)" "$3"
    rm -rf header header.csv header2.csv
}
header userId,movieId,rating,timestamp 1,296,5.0,1147880044 1,296,1147880044
header user_id,parent_asin,rating,timestamp AE22,B00Y,5.0,1588687728 AE22,B00Y,1588687728
header rating,title,asin,user_id,timestamp '5.0,"good, cheap",B00Y,AE22,1588687728' AE22,B00Y,1588687728
header reviewerID,asin,unixReviewTime A2S,00B,1252800000 A2S,00B,1252800000
header user,streamer,start,stop 1,mithrain,154,156 1,mithrain,154
header src,dst,time,split 3,4,5,2 3,4,5,2
header ts,src,dst,w 5,3,4,0.5 3,4,5
header timestamp,src,dst,callsign 2019-01-01,KJFK,EGLL,BAW1 KJFK,EGLL,1546300800
header user_id,business_id,date Q1,B1,2018-07-07\ 22:09:11 Q1,B1,1531001351
printf 'user,stream,streamer,start,stop\n1,33842865744,mithrain,154,156\n' >bad.csv
bad "Twitch: stream or streamer" 'bad.csv:1: columns "stream" and "streamer" could both be the destination'
printf 'user,stream,streamer,start\n1,2,3,4\n' >bad.csv
bad "and how to say it" 'say which with option columns: destination=2 or destination=3'
printf 'user_id,asin,parent_asin,timestamp\nA,B,C,1\n' >both.csv
refused "Amazon: asin or parent_asin" 'columns "asin" and "parent_asin" could both be the destination' \
    import both.csv -o out
runs "and --columns says which" 0 import both.csv -o both --columns destination=asin
rm -rf both both.csv

# ---- ids of both roles ----

printf 'src,dst,time\n1,2,1\n2,5,2\n5,5,3\n7,1,4\n' >graph.csv
runs "ids of both roles" 0 import graph.csv -o graph
has "are told" "$stderr" "graph: 3 ids of 4 sources and 3 destinations occur in both roles; they are \
treated as different nodes unless --shared-ids is given"
has "and so are self loops" "$stderr" "graph: 1 events go from an id to itself"
runs "ids of both roles, shared" 0 import graph.csv -o graph --force --shared-ids
lacks "are not told" "$stderr" "occur in both roles"
has "but self loops are" "$stderr" "graph: 1 events go from an id to itself"
printf 'src,dst,time\nann,bob,1\nbo,ann,2\nbob,bob,3\neve,ann,4\nann,bob,5\nbob,ann,6\nbob,ann,7\n' >graph.csv
runs "words of both roles" 0 info graph.csv --train-share 0.5 --json
has "overlap" "$stdout" '"overlapping_ids": 2'
has "self loops of words" "$stdout" '"self_loops": 1'
runs "words of both roles, in text" 0 info graph.csv --train-share 0.5
has "are told in text" "$stdout" "2 ids (100.00% of the destinations), 1 self loops"
printf 'src,dst,time\n0,0,1\n1,1,2\n' >graph.csv
runs "each role numbered from 0" 0 import graph.csv -o graph --force
lacks "says nothing" "$stderr" "note"
awk 'BEGIN { print "u,i,t"; while (n++ < 70000) print n % 7 "," n % 11 "," n }' >long.csv
runs "a long file" 0 import long.csv -o graph --force
has "what of it will be used" "$stderr" \
    "graph: 70,000 events; \`rank\` and \`train\` use the last 32,768 unless --window gives another number"
rm -rf graph graph.csv long.csv

# ---- a split column ----

split() { sed -n '/^  "split": {$/,/^  }/p' "$1/manifest.json" | tr -d ' \n'; }
awk -F, 'NR == 1 { print "src,dst,time,split" } NR > 1 { print $0 "," (NR > 500) + (NR > 620) }' \
    plain.csv >split.csv
runs "a split column is read" 0 import split.csv -o split
has "its parts are told" "$stderr" "split.csv: column split: 499 train, 120 val, 81 test events"
is "its parts are two counts in the manifest" "$(split split)" '"split":{"train":499,"val":120}'
is "a split column changes no column" "$(sed -n 's/^  "sha256"//p' split/manifest.json)" \
    "$(sed -n 's/^  "sha256"//p' reference_plain/manifest.json)"
is "and no file is left of it" "$(ls split)" "$(ls reference_plain)"
awk -F, -v OFS=, 'NR > 1 { $4 = " \"" ($4 == 0 ? "train" : $4 == 1 ? "validation" : "test") "\" " }
    { print $4, $1, $2, $3 }' split.csv >names.csv
form "a split column of names, in quotes, in front" split names.csv
sed 's/,0$/,0.0/; s/,1$/,valid/' split.csv >names.csv
form "a split column of both" split names.csv
form "--columns split=none" reference_plain split.csv --columns split=none
runs "info tells the split" 0 info split --json
has "info tells its parts" "$(printf '%s' "$stdout" | tr -d ' \n')" \
    '"split":{"train":499,"val":120,"test":81}'
is "export in JSON" "$(export_to split -o back.csv --json 2>/dev/null | tr -d '\n ' | sed 's/"events":[0-9]*/E/')" '{"output":"back.csv",E}'
is "export writes the split back" "$(sed -n '1p;500p;501p;621p' back.csv | cut -d, -f4 | tr '\n' ' ')" \
    "split 0 1 2 "
form "a split comes back" split back.csv
rm -f back.csv
# Rows out of order: the split is checked and counted after the sort.
awk 'BEGIN { print "src,dst,time,split"
    for (n = 0; n < 900; n++) { t = (n * 7919) % 900; print n % 7 "," n % 11 "," t "," (t >= 600) + (t >= 750) } }' \
    >shuffled.csv
runs "a split of shuffled rows" 0 import shuffled.csv -o shuffled
is "is counted in order of time" "$(split shuffled)" '"split":{"train":600,"val":150}'
is "and leaves no file" "$(ls shuffled)" "$(ls reference_plain)"
sed 's/,699,1$/,699,0/' shuffled.csv >bad.csv
where=$(grep -n ',699,' bad.csv | cut -d: -f1)
bad "a split that goes back, in shuffled rows" "bad.csv: event $((where - 1)) (from 1, in the order \
of the file) is in part train, but comes after one of part val in order of time"
printf 'src,dst,time,split\n1,2,1,0\n1,2,2,2\n1,2,2,1\n' >bad.csv
bad "a split that goes back at the same time" "bad.csv: event 3 (from 1"
printf 'src,dst,time,split\n1,2,1,0\n1,2,2,-1\n' >bad.csv
bad "a split of -1" 'bad.csv:3:4: split "-1", expected 0, 1, 2 or train, val, test (option columns: split=none'
printf 'src,dst,time,split\n1,2,1,0\n1,2,2,3\n' >bad.csv
bad "a split of 3" 'bad.csv:3:4: split "3", expected 0, 1, 2 or'
printf 'src,dst,time,split\n1,2,1,train\n1,2,2,trainer\n' >bad.csv
bad "a word that begins as a part" 'bad.csv:3:4: split "trainer", expected'
chmod u+w split/manifest.json
sed 's/"train": 499/"train": 701/' split/manifest.json >wrong.json && cp wrong.json split/manifest.json
refused "a split larger than the stream" 'manifest.json: "split" is not' info split
rm -rf split shuffled wrong.json names.csv

# ---- export and back ----

# returns NAME DIRECTORY [OPTION...]: exported, plain and packed, and imported again.
returns() {
    what=$1 stream=$2
    shift 2
    for out in back.csv back.csv.gz; do
        if export_to "$stream" -o $out >/dev/null 2>.err; then
            form "$what: back through $out" "$stream" $out "$@"
        else
            miss "$what: back through $out" "$(cat .err)"
        fi
        rm -f $out
    done
}
# kept NAME [OPTION...]: kept.csv is imported and returns; removes it.
kept() {
    what=$1
    shift
    if import kept.csv -o kept "$@" >/dev/null 2>.err; then
        returns "$what" kept "$@"
    else
        miss "$what" "$(cat .err)"
    fi
    rm -rf kept kept.csv
}
returns "features" reference
returns "a plain stream" reference_plain
printf 'u,i,t\n%s,0,1\n%s,%s,2\n4194304,4194303,3\n' 9223372036854775807 9223372036854775806 \
    9223372036854775807 >kept.csv
kept "huge ids"
printf 'u,i,t\n1,1,-5e300\n1,1,-2.5\n1,1,-0\n1,1,1e-300\n1,1,4.9e-324\n1,1,2.2250738585072014e-308\n
1,1,0.1\n1,1,0.30000000000000004\n1,1,0.3\n1,1,1591234567.123456\n1,1,9007199254740993\n
1,1,12345678901234567890123\n1,1,1.7976931348623157e308\n' >kept.csv
kept "odd times"
printf 'u,i,t,f1,f2\n1,1,1,1e-45,3.4028234e38\n1,1,2,0.1,-1.17549435e-38\n1,1,3,16777217,1e-50\n' \
    >kept.csv
kept "odd features"
printf 'u,i,t\nann lee,"x, y",1\n"bob",z,2\n bob ," z ",3\nNA,z,4\n"a,b,c",%s,5\n#1,x;y\tz,6\n' \
    'été' >kept.csv
kept "words" --ids words
printf 'u;i;t\na,"b;x;1\nc"d;x;2\n' >kept.csv
kept "words with quotes" --ids words
printf 'u,i,t\n"say ""hi""",x,1\n"""","a,""b""",2\n' >kept.csv
kept "words with doubled quotes" --ids words
printf 'u,i,t\nann,bob,1\nbob,ann,2\n' >kept.csv
kept "words of one id space" --ids words --shared-ids

printf 'u,i,t\nann,foo,1\nann, foo,2\n ann,"foo",3\nann , "foo" ,4\n' >words.csv
import words.csv -o words --ids words >/dev/null 2>&1
is "blanks around words do not count" "$(cat words/source_words.txt words/destination_words.txt)" \
    "$(printf 'ann\nfoo')"
sed 's/ann/eve/' words.csv >others.csv
import others.csv -o others --ids words >/dev/null 2>&1
sha() { sed -n 's/^  "sha256": "\(.*\)".*/\1/p' "$1/manifest.json"; }
if [ -n "$(sha words)" ] && [ "$(sha words)" != "$(sha others)" ]; then
    pass "other words, other hash"
else
    miss "other words, other hash" "$(sha words)" "$(sha others)"
fi
for setting in "--ids words" "--shared-ids" "--columns source=1"; do
    # shellcheck disable=SC2086 # two words
    runs "info of a directory with $setting" 2 "$fullrank" data info words $setting
    has "refuses $setting for a directory" "$stderr" "words: is a directory, imported already"
done
printf '0\n' >catalog.txt
runs "info with a catalog file" 0 "$fullrank" data info words --catalog catalog.txt --json
has "says that it is a file" "$stdout" '"kind": "file"'
has "and which" "$stdout" '"file": "catalog.txt"'
has "help of export --force" "$("$fullrank" data export --help)" "replace the file if it exists"
printf 'ann,bob,1\nann,cid,2\n' >words2.csv
import words2.csv -o words2 --ids words --columns source=1,destination=2,time=3 >/dev/null 2>&1
has "words without header: the first row is an event" "$(cat words2/manifest.json 2>/dev/null)" \
    '"events": 2,'
refused "an export that exists" "one.csv: exists; --force replaces it" \
    export_to reference -o one.csv
runs "an export that exists, forced" 0 export_to reference_plain -o one.csv --force
is "an export that exists was replaced" "$(sed 1d one.csv | head -n 1)" \
    "$(sed -n 2p plain.csv | sed 's/\.0$//')"
mkfifo pipe
refused "an export to what is no file, forced" "pipe: " export_to reference -o pipe --force
is "what is no file is still there" "$(test -p pipe && echo pipe)" pipe
mkdir folder
refused "an export to a directory" "folder: " export_to reference -o folder --force
refused "an export without parent directory" "none/x.csv: cannot be written: No such file" \
    export_to reference -o none/x.csv
rm -rf folder pipe

# ---- windows ----

runs "a window larger than the stream" 0 info reference --window 32768 --json
has "a window larger than the stream is said" "$stderr" \
    "window 32768 is larger than the stream: using all 700 events"
has "a window larger than the stream is all of it" "$stdout" '"events": 700,'
runs "a window that fits" 0 info reference --window 90 --train-share 0.7 --json
has "a window of less than half is told" "$stderr" \
    "jodie.csv: using the last 90 of 700 events; window 0 uses all"
has "0.7 of 90 is 62.99... in double, so 62" "$stdout" '"train": 62,'
runs "a window of half" 0 info reference --window 350 --json
is "a window of half is not commented" "$stderr" ""
refused "a train share of 0" "leaves 0 of 700 events for training" info reference --train-share 0
refused "a train share of 1" "and 0 for test" info reference --train-share 1
is "nothing is left in TMPDIR" "$(ls -A "$TMPDIR")" ""

# ---- a real set ----

wikipedia=$(data_file wikipedia.csv.gz)
if [ -n "$wikipedia" ]; then
    import "$wikipedia" -o wikipedia >/dev/null 2>&1
    gzip -dc "$wikipedia" >wikipedia.csv
    form "Wikipedia, plain" wikipedia wikipedia.csv
    sed 's/$/\r/' wikipedia.csv | tr ',' '\t' >wikipedia.tsv
    form "Wikipedia, tabs and CRLF" wikipedia wikipedia.tsv
    rm -f wikipedia.tsv
    sed 's/[^,]*/"&"/g' wikipedia.csv | gzip -1c >wikipedia.gz
    form "Wikipedia, quoted and packed" wikipedia wikipedia.gz
    rm -f wikipedia.gz
    export_to wikipedia -o back.csv >/dev/null 2>&1
    form "Wikipedia, exported" wikipedia back.csv
    import back.csv -o wikipedia_plain --columns features=none >/dev/null 2>&1
    awk -F, 'NR == 1 { print ",u,i,ts,label,idx" }
        NR == FNR { if (FNR > 1 && $1 > most) most = $1; next }
        FNR > 1 { print FNR - 2 "," $1 + 1 "," $2 + most + 2 "," $3 ",0.0," FNR - 1 }' \
        back.csv back.csv >ml_wikipedia.csv
    form "Wikipedia as DyGLib has it" wikipedia_plain ml_wikipedia.csv
else
    skip "Wikipedia in many forms" "wikipedia.csv.gz is not there"
fi
finish
