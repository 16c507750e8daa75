#!/bin/sh
# memory.sh - shows that the memory of an import does not grow with the file.
#
#     bench/memory.sh BUILD [DIR [MEGABYTES]]
#
# Makes a JODIE-like file with 172 features and of MEGABYTES (2000) in a new folder below DIR
# ($TMPDIR or /tmp), and imports it. Then it makes and imports the same file with descending times
# in chunks of 100,000 events. Prints the peak resident size of each import. A file of a tenth of
# the size comes first, for comparison. Exits with 1 if a size is not below 300 MB, or if the two
# orders do not give the same number of events. Needs about twice MEGABYTES of free space.
set -eu

build=${1:?usage: memory.sh BUILD [DIR [MEGABYTES]]}
megabytes=${3:-2000}
limit=300
folder=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/fullrank-memory-XXXXXX")
trap 'rm -rf "$folder"' EXIT

# generate FILE MEGABYTES CHUNK: one block of feature texts, with ids and times changing in front.
# CHUNK 0 = times ascend; else they descend within each chunk of that many events.
generate() {
    /usr/bin/env python3 - "$@" <<'PYTHON'
import random
import sys

path, megabytes, chunk = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(1)
tails = [",0," + ",".join("%.6f" % random.gauss(-0.1, 0.4) for _ in range(172)) + "\n"
         for _ in range(1000)]
with open(path, "w") as out:
    out.write("user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n")
    rows = megabytes * 1000000 // (len(tails[0]) + 20)
    for first in range(0, rows, 1000):
        lines = []
        for row in range(first, min(first + 1000, rows)):
            when = row if not chunk else (row // chunk + 1) * chunk - row % chunk
            lines.append("%d,%d,%d.0%s" % (row * 7919 % 100003, row * 104729 % 10007, when,
                                           tails[row % 1000]))
        out.writelines(lines)
PYTHON
}

# measure NAME MEGABYTES CHUNK: sets `events`.
measure() {
    generate "$folder/table.csv" "$2" "$3"
    size=$(stat -c %s "$folder/table.csv")
    rm -rf "$folder/columns"
    /usr/bin/env python3 - "$build/fullrank" "$folder" "$1" "$size" $limit <<'PYTHON'
import json
import resource
import subprocess
import sys
import time

tool, folder, name, size, limit = sys.argv[1:]
start = time.monotonic()
subprocess.run([tool, "data", "import", folder + "/table.csv", "-o", folder + "/columns",
                "--quiet"], check=True, stdout=subprocess.DEVNULL)
seconds = time.monotonic() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
with open(folder + "/columns/manifest.json") as file:
    manifest = json.load(file)
print("%-13s %6.0f MB, %7d events, %7d late: peak %5.1f MB, %5.1f s" %
      (name, int(size) / 1e6, manifest["events"], manifest["source"]["out_of_order"], peak,
       seconds))
sys.exit(peak >= float(limit))
PYTHON
    events=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["events"])' \
        "$folder/columns/manifest.json")
    rm -rf "$folder/table.csv" "$folder/columns"
}

measure "small" $((megabytes / 10)) 0
measure "in order" "$megabytes" 0
sorted=$events
measure "out of order" "$megabytes" 100000
if [ "$events" != "$sorted" ]; then
    echo "memory.sh: $events events out of order, but $sorted in order" >&2
    exit 1
fi
echo "all below $limit MB"
