#!/bin/sh
# ledger.sh - study.db is changed by others: a report shows what was stored or nothing, and a run
# repeats damaged units. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY ledger.sh path/to/fullrank
# More of the random part: tests/study_damage.py path/to/fullrank STUDY 1000
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: ledger.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
study() { "$fullrank" study "$@"; }
if ! python3 -c 'import sqlite3' 2>/dev/null; then
    skip "a changed ledger" "python3 not found"
    finish
fi

cat >one.json <<END
{"name": "one", "data": {"drawn": {"synth": "tiny", "events": 1500}}, "protocol": {"window": 0}, "diagnostic-window": 0,
 "baselines": ["recency"], "models": ["craft", "craft-r"], "seeds": [7, 17], "k": [1, 5], "gain": ["craft", "craft-r"],
 "minimal": true, "membership": {"bce": ["craft-r"]}, "projection": ["craft-r"], "scaling": ["craft"],
 "settings": {"epochs": 1, "dim": 8, "history": 8}}
END
runs "a study" 0 study run one.json -o one -q

# change SQL...: runs statements on a copy of the ledger; seal() is the function of the tool.
cat >change.py <<'END'
import hashlib, json, sqlite3, struct, sys, zlib
def seal(*values):
    h = hashlib.sha256()
    for v in values:
        text = b"" if v is None else v.encode()
        h.update(struct.pack("<qq", 5 if v is None else 3, len(text)) + text)
    return h.hexdigest()
db = sqlite3.connect("changed/study.db")
db.create_function("seal", -1, seal)
db.execute("PRAGMA ignore_check_constraints = ON")
def text(value):
    return b"n" if value is None else value.encode() + b"\0t"
def contents(run):
    h = hashlib.sha256()
    key = "name" if db.execute("PRAGMA user_version").fetchone()[0] < 3 else "name, cell, removed, sampler, path, k"
    for value, events, name, *more in db.execute(f"SELECT value, events, {key} FROM metric WHERE run = ? ORDER BY {key}", (run,)):
        h.update(b"m" + text(name))
        for letter, part in zip((b"c", b"r", b"s", b"p"), more):
            h.update(letter + text(part) if part else b"")
        if more and more[4]:
            h.update(struct.pack("<q", more[4]))
        h.update((b"" if value is None else struct.pack("<d", value)) + struct.pack("<q", events))
    for stage, seconds in db.execute("SELECT stage, seconds FROM timing WHERE run = ? ORDER BY stage", (run,)):
        h.update(b"s" + text(stage) + struct.pack("<d", seconds))
    for name, path, sha, size in db.execute("SELECT name, path, sha256, bytes FROM artefact WHERE run = ? ORDER BY name", (run,)):
        h.update(b"a" + text(name) + text(path) + text(sha) + struct.pack("<q", -1 if path else size))
    return h.hexdigest()
def set_json(key, name, field, value): # of an artefact, with all hashes and seals as they should be
    run, packed = db.execute("SELECT id, content FROM run JOIN artefact ON run = id WHERE key = ? AND name = ?", (key, name)).fetchone()
    about = json.loads(zlib.decompress(packed))
    about[field] = json.loads(value)
    new = json.dumps(about).encode()
    db.execute("UPDATE artefact SET content = ?, bytes = ?, sha256 = ? WHERE run = ? AND name = ?",
               (zlib.compress(new), len(new), hashlib.sha256(new).hexdigest(), run, name))
    reseal(run)
def reseal(run):
    db.execute("UPDATE run SET contents = ? WHERE id = ?", (contents(run), run))
    db.execute("UPDATE run SET seal = seal(key, status, inputs, finished, message, tool, contents)")
def set_metrics(key, *pairs):
    run, = db.execute("SELECT id FROM run WHERE key = ?", (key,)).fetchone()
    for name, value in zip(pairs[::2], pairs[1::2]):
        db.execute("UPDATE metric SET value = ? WHERE run = ? AND name = ?", (float(value), run, name))
    reseal(run)
def to_format_2(): # names in one piece, as earlier versions had them
    def compose(name, cell, removed, sampler, path, k):
        if sampler:
            return f"expected-{k}"
        if path:
            return f"{k}-{path}-{name}"
        if name == "loss":
            return f"loss-{k}"
        if cell:
            name = cell + name[3:] # mrr or mrr-drawn
        return f"{removed}-{name}" if removed else name
    db.create_function("compose", 6, compose)
    db.execute("ALTER TABLE metric RENAME TO later")
    db.execute("CREATE TABLE metric (run INTEGER REFERENCES run(id), name TEXT, value REAL, events INTEGER, PRIMARY KEY (run, name))")
    db.execute("INSERT INTO metric SELECT run, compose(name, cell, removed, sampler, path, k), value, events FROM later")
    db.execute("DROP TABLE later")
    db.execute("PRAGMA user_version = 2")
    for run, in db.execute("SELECT id FROM run WHERE status = 'done'").fetchall():
        reseal(run)
if sys.argv[1] == "--format-2":
    to_format_2()
elif sys.argv[1] == "--metrics":
    set_metrics(*sys.argv[2:])
elif sys.argv[1] == "--json":
    set_json(*sys.argv[2:])
else:
    for sql in sys.argv[1:]:
        db.execute(sql)
db.commit()
END
base=one
metrics() { # STUDY: all its numbers
    python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1] + "/study.db").execute("SELECT * FROM metric ORDER BY 1, 2, 3, 4, 5, 6, 7"): print(*row)' "$1"
}
change() {
    rm -rf changed
    cp -r $base changed
    rm -rf changed/tables
    python3 change.py "$@"
}

refused() { # NAME SQL MESSAGE
    change "$2"
    refuses "$1" "$3"
}
refuses() { # NAME MESSAGE
    runs "$1" 1 study report changed
    has "$1: the reason" "$stderr" "$2"
    is "$1: one line" "$(printf '%s\n' "$stderr" | wc -l)" 1
    is "$1: no table" "$(ls changed/tables 2>/dev/null)" ""
}
refused "a negative size" "UPDATE artefact SET bytes = -1 WHERE name = 'records'" "records has -1 bytes"
refused "a huge size" "UPDATE artefact SET bytes = 1 << 40 WHERE name = 'records'" "packed ones cannot hold"
refused "another size" "UPDATE artefact SET bytes = bytes - 118 WHERE name = 'records'" "records cannot be unpacked"
refused "no window" "UPDATE run SET window = NULL" "table run, drawn/data: window is nothing, expected text"
refused "text for a number" "UPDATE metric SET value = 'much' WHERE name = 'catalog'" "table metric, drawn/facts: value is text, expected a number"
refused "a number for text" "UPDATE run SET tool = x'00' WHERE place = 3" "tool is bytes, expected text"
refused "an unknown kind" "UPDATE run SET kind = 'dance' WHERE place = 4" "kind is dance, expected membership"
refused "an unknown status" "UPDATE run SET status = 'dnoe' WHERE place = 4" "CHECK constraint failed"
refused "a unit that is not done any more" "UPDATE run SET status = 'left' WHERE place = 4" "is not the one that was stored"
refused "a unit that is gone" "DELETE FROM run WHERE place = 5" "expected"
refused "another metric" "UPDATE metric SET value = value + 1e-9 WHERE name = 'mrr' AND removed = 'base'" "are not those that were stored"
refused "another cell" "UPDATE metric SET cell = 'new-met' WHERE cell = 'new-seen'" "are not those that were stored"
refused "another K" "UPDATE metric SET k = k + 1 WHERE sampler = 'uniform'" "are not those that were stored"
refused "another time" "UPDATE timing SET seconds = 1 WHERE stage = 'rank'" "are not those that were stored"
refused "a metric that is gone" "DELETE FROM metric WHERE name = 'catalog'" "are not those that were stored"
refused "other records" "UPDATE artefact SET content = (SELECT content FROM artefact WHERE name = 'records' ORDER BY run DESC LIMIT 1),
 bytes = (SELECT bytes FROM artefact WHERE name = 'records' ORDER BY run DESC LIMIT 1) WHERE name = 'records'" "has sha256"
refused "another document" "UPDATE study SET plan = replace(plan, '[7,17]', '[7]')" "document is not the one that was stored"
refused "no document" "UPDATE study SET plan = NULL" "plan is nothing, expected text"
runs "status of it" 1 study status changed
refused "a later format" "PRAGMA user_version = 4" "format 4, expected 3"

# Valid seals do not help if records contradict their row.
change --json drawn/craft/bce/7/rank about seed 8
refuses "records of another seed" "the records of drawn/craft/bce/7/rank have another seed"
change --json drawn/craft/bce/7/rank about model '"tgn"'
refuses "records of another model" "the records of drawn/craft/bce/7/rank have another model"
change --json drawn/craft/bce/7/rank about protocol '{}'
refuses "records of no protocol" "the records of drawn/craft/bce/7/rank have another number of events"
change --json drawn/craft/bce/7/train train.json epochs_done 0
runs "what was changed and sealed otherwise" 0 study report changed

# A model whose training was stopped early is named.
change --json drawn/craft/bce/7/rank about epochs_done 1
python3 change.py --json drawn/craft/bce/7/rank about epochs_asked 3
runs "a model that was stopped early" 0 study report changed
has "is named below the main table" "$(cat changed/tables/main.md)" "Training was stopped early: drawn/craft/bce/7/rank (1 of 3 epochs)."

# Damaged units are done again.
cp -r one/tables before
change "UPDATE metric SET value = 0.5 WHERE name = 'mrr' AND removed = 'base'" "UPDATE run SET status = 'left' WHERE place = 4"
runs "a run on a changed ledger" 0 study run --verbose one.json -o changed
has "does again what is damaged" "$stderr" "/craft-r/bce/7/project is done again: "
is "and gives the same tables" "$(diff -r before changed/tables 2>&1)" ""

# A report refuses a ledger of format 2 or 1; a run upgrades it.
change --format-2
runs "a report of format 2" 1 study report changed
has "says what helps" "$stderr" "format 2 of an earlier version; \`fullrank study run\` with its document and -o changed upgrades it to format 3"
is "and leaves it" "$(python3 -c 'import sqlite3; print(sqlite3.connect("changed/study.db").execute("PRAGMA user_version").fetchone()[0])')" 2
runs "a run on it" 0 study run --verbose one.json -o changed
lacks "does nothing again" "$stderr" ": "
is "and gives the same tables" "$(diff -r before changed/tables 2>&1)" ""
is "and the same costs" "$(diff -r one/costs changed/costs 2>&1)" ""
is "and the same ledger" "$(metrics one)" "$(metrics changed)"
change --format-2
python3 change.py "UPDATE metric SET value = 0.5 WHERE name = 'base-mrr'"
runs "a run on format 2 with a damaged unit" 0 study run --verbose one.json -o changed
has "does it again" "$stderr" "/craft-r/bce/7/project is done again: "
is "and gives the same tables" "$(diff -r before changed/tables 2>&1)" ""
change --format-2
python3 change.py "ALTER TABLE run DROP COLUMN seal" "ALTER TABLE run DROP COLUMN contents" "ALTER TABLE run DROP COLUMN tool" \
    "ALTER TABLE study DROP COLUMN seal" "PRAGMA user_version = 1"
runs "a report of an old ledger" 1 study report changed
has "says what helps" "$stderr" "\`fullrank study run\` with its document and -o changed upgrades it to format 3"
runs "a run on an old ledger" 0 study run --verbose one.json -o changed
lacks "does nothing again" "$stderr" "drawn/facts: "
is "and gives the same tables but for a note" "$(diff -r before changed/tables | grep '^[<>]' | grep -vc 'different versions\|early one')" 0

# The ledger says which version did a unit.
change "UPDATE run SET tool = '0.0.9 abc' WHERE place < 4" \
    "UPDATE run SET seal = seal(key, status, inputs, finished, message, tool, contents)"
runs "a study of two versions" 0 study status changed
has "says so" "$stdout" "done by different versions: 0.0.9 abc (4), "
runs "its report" 0 study report changed
has "says so" "$(cat changed/tables/settings.md)" "Units of work were done by different versions of the tool: 0.0.9 abc (4), "
has "the page, too" "$(cat changed/report.html)" "done by different versions of the tool: 0.0.9 abc (4), "
runs "a run leaves them alone" 0 study run --verbose one.json -o changed
has "and says so" "$stderr" "4 units done by other versions of the tool stay; option redo-other-versions repeats them"
runs "or repeats them" 0 study run --verbose one.json -o changed --redo-other-versions
has "all of them" "$stderr" "drawn/facts: "
lacks "and only them" "$stderr" "craft/bce/7/train: "
is "which gives the same tables" "$(diff -r before changed/tables 2>&1)" ""
runs "and one version" 0 study status changed
lacks "is not told" "$stdout" "versions"

# The paper's numbers are shown for data with the paper's facts and settings, under any name.
echo '{"data": {"m": {"synth": "tiny", "events": 1500}, "mooc": {"synth": "tiny", "events": 1500}}, "models": ["craft"], "seeds": [7],
 "scaling": ["craft"], "settings": {"dim": 8, "batch-size": 500}}' >paper.json
runs "a set called as one of the paper's" 0 study run paper.json -o paper -q
lacks "gets none of its numbers" "$(cat paper/tables/*.md)" "paper |"
has "and says why" "$(cat paper/tables/main.md)" "mooc: 1500 events in the file, in the paper 411749."
lacks "nor its times" "$(cat paper/costs/scaling.md)" "GPU"
base=paper
change --metrics m/facts events 411749 catalog 97 covered 4916
runs "a set with the facts of one" 0 study report changed
has "gets its numbers" "$(grep CRAFT changed/tables/main.csv | head -n 1)" "0.7627,0.0046"
has "and times" "$(cat changed/costs/scaling.md)" "GPU"
change --metrics m/facts events 411749 catalog 97 covered 4915
runs "with one other fact" 0 study report changed
lacks "it does not" "$(cat changed/tables/main.csv)" "0.7627"
has "and says why" "$(cat changed/tables/main.md)" "m: 4915 covered test events, in the paper 4916."
change --metrics m/facts events 411749 catalog 97 covered 4916
python3 change.py --json m/craft/bce/7/train train.json epochs_done 2
runs "after other epochs" 0 study report changed
lacks "it does not" "$(cat changed/tables/main.csv)" "0.7627"
has "and says why" "$(cat changed/tables/main.md)" "m: epochs is 2, in the paper 3."
lacks "nor does its cost" "$(cat changed/costs/scaling.md)" "GPU"

# Nothing to wait for.
mkdir pipes && mkfifo pipes/study.db
runs "a pipe in place of the ledger" 1 study status pipes
has "is told" "$stderr" "pipes/study.db: expected a plain file"
rm one/study.lock && mkfifo one/study.lock
runs "a pipe in place of the lock" 1 study run --verbose one.json -o one
has "is told" "$stderr" "one/study.lock: expected a plain file"
rm one/study.lock
runs "a report needs no lock" 0 study report one

# A database of another program is left alone.
mkdir other && python3 -c "import sqlite3; db = sqlite3.connect('other/study.db'); db.execute('CREATE TABLE mine (x)'); db.commit()"
cp other/study.db other.db
runs "a database of something else" 1 study run --verbose one.json -o other
has "is told" "$stderr" "a database of something else, expected a study"
is "and left alone" "$(cmp other.db other/study.db 2>&1)" ""

# Random damage.
if python3 "$FULLRANK_SOURCE/tests/study_damage.py" "$fullrank" one 40 >damage.log 2>&1; then
    pass "40 damaged ledgers: refused, or the same report"
else
    miss "40 damaged ledgers: refused, or the same report" "$(cat damage.log)"
fi
finish
