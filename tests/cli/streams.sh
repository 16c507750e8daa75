#!/bin/sh
# streams.sh - scores in several files and on standard input, and the list of what to score. Prints TAP.
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=$1
cd "$scratch" || exit 1
python=${FULLRANK_PYTHON:-python3}
command -v "$python" >/dev/null || {
    skip "score streams" "python3 is not installed"
    finish
    exit
}

"$fullrank" data synth --preset tiny -o data >/dev/null 2>&1 || exit 1
rank() { "$fullrank" rank --data data --quiet "$@"; }
rank --scorer baseline:recency -o ours.npy --dump-scores d.npy >/dev/null || exit 1
rank --scorer scores:d.npy -o file.npy >/dev/null || exit 1

# Cuts d.npy: rows FROM to TO become a separate .npy file.
cat >cut.py <<'PYTHON'
import os, struct, sys
def read(path):
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    head = data[10:10 + length].decode()
    rows, columns = eval(head)["shape"]
    return rows, columns, data[10 + length:]
def write(out, kind, columns, values):
    head = "{'descr': '<%s', 'fortran_order': False, 'shape': (%d, %d), }" % (kind, len(values) // int(kind[1]) // columns, columns)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values)
def piece(data, columns, begin, end, kind="f4"):
    part = data[4 * columns * begin:4 * columns * end]
    if kind == "f8":
        part = struct.pack("<%dd" % (len(part) // 4), *struct.unpack("<%df" % (len(part) // 4), part))
    return part
rows, columns, data = read("d.npy")
for k, (begin, end) in enumerate([(0, 10), (10, 11), (11, 300), (300, 300), (300, rows)]):
    with open("part-%d.npy" % (k * 3), "wb") as out:  # 0 3 6 9 12
        write(out, "f4", columns, piece(data, columns, begin, end))
with open("stream", "wb") as out:
    for begin in range(0, rows, 70):
        write(out, "f8" if begin % 3 else "f4", columns, piece(data, columns, begin, min(begin + 70, rows), "f8" if begin % 3 else "f4"))
with open("wide", "wb") as out:
    write(out, "f4", columns + 1, bytes(4 * (columns + 1)))
for folder, names in ("one", ("01", "1")), ("two", ("1", "01")):
    os.mkdir(folder)
    for name in names:
        begin, end = (0, 400) if name == "01" else (400, rows)
        with open("%s/part-%s.npy" % (folder, name), "wb") as out:
            write(out, "f4", columns, piece(data, columns, begin, end))
PYTHON
"$python" cut.py || exit 1

# ---- several files ----

runs "five files" 0 rank --scorer 'scores:part-*.npy' -o parts.npy --threads 3
runs "have the records of one" 0 cmp parts.npy file.npy
is "their hash" "$(sed -n 's/.*"scorer_sha256": "\(.*\)".*/\1/p' parts.json)" \
    "$(for k in 0 3 6 9 12; do sha256sum <part-$k.npy | cut -c1-64 | tr -d '\n'; done | sha256sum | cut -c1-64)"
# Equal numbers that are written differently: ordered by name, however the folder lists them.
for folder in one two; do
    runs "parts 01 and 1" 0 rank --scorer "scores:$folder/part-*.npy" -o $folder.npy
    runs "in this order" 0 cmp $folder.npy file.npy
done
refused() { # NAME MESSAGE COMMAND...
    name=$1 words=$2
    shift 2
    runs "$name" 1 "$@"
    has "is refused" "$stderr" "$words"
    is "nothing is written" "$(ls no.* 2>/dev/null)" ""
}
refused "no such file" "none-*.npy: no file has such a name" rank --scorer 'scores:none-*.npy' -o no.npy
mv part-12.npy last
refused "one file less" "300 rows, expected 900" rank --scorer 'scores:part-*.npy' -o no.npy
cp wide part-12.npy
refused "other columns" "part-12.npy: 101 columns, expected 100 as in the first file" rank --scorer 'scores:part-*.npy' -o no.npy
mv last part-12.npy
echo '{"events": [5100]}' >part-3.json
refused "lists of events beside some" "some files have a list of events beside them" rank --scorer 'scores:part-*.npy' -o no.npy
rm part-3.json
cp d.npy 'odd*.npy' && cp d.json 'odd*.json'
runs "a file whose name has a star" 0 rank --scorer 'scores:odd*.npy' -o odd.npy

# ---- standard input ----

# shellcheck disable=SC2002,SC2317 # a pipe is meant; called by runs
piped() { # FILE OPTION...: through a pipe
    from=$1
    shift
    cat "$from" | rank --scorer scores:- "$@"
}
# shellcheck disable=SC2317 # called by runs
from() { # FILE OPTION...
    from=$1
    shift
    rank --scorer scores:- "$@" <"$from"
}
runs "a stream of arrays through a pipe" 0 piped stream -o piped.npy
runs "has the records of the file" 0 cmp piped.npy file.npy
runs "from a file" 0 from stream -o piped.npy --force --threads 8
runs "has the records of the file" 0 cmp piped.npy file.npy
gzip -c stream >stream.gz
runs "gzip" 0 piped stream.gz -o piped.npy --force
runs "has the records of the file" 0 cmp piped.npy file.npy
runs "with a filter" 0 piped stream -o met.npy --met 3
rank --scorer scores:d.npy -o met-file.npy --met 3 >/dev/null
runs "has the records of the file" 0 cmp met.npy met-file.npy
refused "nothing" "standard input: ends after 0 rows, none for event 5100" from /dev/null -o no.npy
: >empty
for bytes in 5 11 50 200 100000 300000; do
    head -c $bytes stream >part
    runs "$bytes bytes" 1 piped part -o no.npy
    is "are refused in one line" "$(echo "$stderr" | grep -c 'standard input: ') $(ls no.* 2>/dev/null)" "1 "
done
cat stream part-3.npy >longer
refused "a row too many" "standard input: more than 900 rows" piped longer -o no.npy
refused "other columns" "standard input: 101 columns, expected 100, the catalog" piped wide -o no.npy
echo "some words, not an array" >words
refused "words" "standard input: not a .npy file" piped words -o no.npy
# shellcheck disable=SC2016 # of the inner shell
refused "closed" "standard input: ends after 0 rows" sh -c '"$1" rank --data data --scorer scores:- -o no.npy --quiet <&-' sh "$fullrank"

# ---- counts ----

cat >counts.py <<'PYTHON'
import struct
data = open("ours.npy", "rb").read()
begin = 10 + struct.unpack("<H", data[8:10])[0]
layout = eval(data[10:begin].decode())
place, size = {}, 0
for name, kind in layout["descr"]:
    place[name] = (size, {"i8": "<q", "f8": "<d", "u1": "<B", "i4": "<i", "f4": "<f"}[kind[1:]])
    size += int(kind[2])
def field(row, name):
    return struct.unpack_from(place[name][1], data, begin + row * size + place[name][0])[0]
rows = [[field(k, f) for f in ("above", "tied", "seen_above", "seen_tied")]
        for k in range(layout["shape"][0]) if field(k, "covered")]
def write(path, rows, columns, kind, letter):
    head = "{'descr': '<%s', 'fortran_order': False, 'shape': (%d, %d), }" % (kind, len(rows), columns)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    values = [v for row in rows for v in row[:columns]]
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        out.write(struct.pack("<%d%s" % (len(values), letter), *values))
def changed(at, column, value):
    return [row[:column] + [value] + row[column + 1:] if k == at else row for k, row in enumerate(rows)]
write("two.npy", rows, 2, "i4", "i")
write("four.npy", rows, 4, "i8", "q")
write("many.npy", changed(5, 0, 100), 4, "i8", "q")
write("seen.npy", changed(5, 2, rows[5][0] + 1), 4, "i8", "q")
write("less.npy", changed(5, 1, -1), 4, "i8", "q")
write("mixed.npy", changed(5, 2, -1), 4, "i8", "q")
write("short.npy", rows[:-1], 2, "i4", "i")
write("three.npy", rows, 3, "i4", "i")
PYTHON
"$python" counts.py || exit 1
numbers() { "$fullrank" metrics "$1" -m "$2" --lines | cut -f3; }
for k in two four; do
    runs "counts, $k columns" 0 rank --scorer counts:$k.npy -o $k-ranks.npy
    is "have our MRR and Hits" "$(numbers $k-ranks.npy mrr,hits@10,mrr-new)" "$(numbers ours.npy mrr,hits@10,mrr-new)"
done
is "four know the seen ones" "$(numbers four-ranks.npy all-seen,loss-within)" "$(numbers ours.npy all-seen,loss-within)"
is "two do not" "$(numbers two-ranks.npy all-seen,loss-within,mrr-available | sort -u)" "$(numbers two-ranks.npy mrr-available)"
runs "a report of four columns" 0 "$fullrank" report four-ranks.npy ours.npy -o four.html
refused "a report of two" "two-ranks.npy: has no seen_above and seen_tied, which tables and figures need" \
    "$fullrank" report two-ranks.npy ours.npy -o no.html
has "their hash is in RANKS.json" "$(cat two-ranks.json)" "$(sha256sum <two.npy | cut -c1-64)"
refused "more above than there are" "record 5 (event 5105): 100 above" rank --scorer counts:many.npy -o no.npy
refused "more seen above than above" "record 5 (event 5105): of" rank --scorer counts:seen.npy -o no.npy
refused "a negative count" "less.npy: row 5 has a count of -1" rank --scorer counts:less.npy -o no.npy
refused "some without seen ones" "mixed.npy: row 5 has a count of -1" rank --scorer counts:mixed.npy -o no.npy
refused "an event less" "counts of 899 events, expected 900" rank --scorer counts:short.npy -o no.npy
refused "three columns" "expected int32 or int64 [events, 2]" rank --scorer counts:three.npy -o no.npy

# ---- the list ----

runs "the list" 0 rank --list list.npy
has "says what is in it" "$stdout" "list.npy: 900 events, 100 candidates each"
cat >read.py <<'PYTHON'
import json, struct
def body(path):
    data = open(path, "rb").read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]
side = json.load(open("d.json"))
rows = list(struct.iter_unpack("<qqd", body("list.npy")))
assert [r[0] for r in rows] == side["events"], "events"
assert [v for v, in struct.iter_unpack("<q", body("list.destinations.npy"))] == side["destinations"], "destinations"
lines = [line.split(",") for line in open("data.csv")][1:]
assert all(int(lines[e][0]) == u and float(lines[e][2]) == t for e, u, t in rows), "sources and times"
PYTHON
"$fullrank" data export data -o data.csv >/dev/null 2>&1
runs "is that of --dump-scores, with sources and times" 0 "$python" read.py
runs "again" 1 rank --list list.npy
has "is refused" "$stderr" "list.npy: exists"
runs "by force" 0 rank --list list.npy --force --json
has "as JSON" "$stdout" '"destinations": 100'
runs "with a scorer" 2 rank --list list.npy --scorer oracle --force
runs "without anything" 2 rank
has "names what is missing" "$stderr" "option --scorer SPEC is missing"
is "nothing else is left" "$(ls list.*)" "$(printf 'list.destinations.npy\nlist.npy')"
finish
