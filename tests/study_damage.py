"""study_damage.py - damages the ledger of a study at random places and asks for its report.

usage: study_damage.py FULLRANK STUDY COUNT [SEED [FIRST]]

STUDY is a finished study. Each of COUNT copies of its study.db is damaged in one way that SEED and
the number of the copy choose: flipped bits, a run of random bytes, a page set to zero or exchanged
with another, the end cut off, or cells changed through SQLite. Then `study report` either ends with
0 and writes the same files as from the undamaged ledger (the damage was in something that is
not shown), or it ends with 1 and one message, and writes nothing that differs. Anything else is
printed, with its number; FIRST repeats it. `study status` must end with 0 or 1 too.
"""
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

PAGE = 4096
SHOWN = ("tables", "costs", "figures", "report.html")


def flip_bits(path, rng):
    size = os.path.getsize(path)
    with open(path, "r+b") as f:
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            at = rng.randrange(size)
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1 << rng.randrange(8)]))


def random_run(path, rng):
    size = os.path.getsize(path)
    length = rng.randrange(1, 200)
    with open(path, "r+b") as f:
        f.seek(rng.randrange(size - length))
        f.write(rng.randbytes(length))


def zero_page(path, rng):
    pages = os.path.getsize(path) // PAGE
    with open(path, "r+b") as f:
        f.seek(rng.randrange(pages) * PAGE)
        f.write(bytes(PAGE))


def swap_pages(path, rng):
    pages = os.path.getsize(path) // PAGE
    a, b = rng.randrange(pages), rng.randrange(pages)
    with open(path, "r+b") as f:
        f.seek(a * PAGE)
        first = f.read(PAGE)
        f.seek(b * PAGE)
        second = f.read(PAGE)
        f.seek(a * PAGE)
        f.write(second)
        f.seek(b * PAGE)
        f.write(first)


def cut(path, rng):
    size = os.path.getsize(path)
    os.truncate(path, rng.choice((rng.randrange(size), rng.randrange(size // PAGE) * PAGE)))


def change_cells(path, rng):
    db = sqlite3.connect(path)
    db.execute("PRAGMA ignore_check_constraints = ON")
    table = rng.choice(("study", "run", "run", "metric", "metric", "timing", "artefact"))
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    column = rng.choice(columns)
    rows = [row[0] for row in db.execute(f"SELECT rowid FROM {table}")]
    row = rng.choice(rows)
    other = db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (rng.choice(rows),))
    value = rng.choice((None, -1, 0, 1, 2**62, 0.5, float("inf"), "", "x", "done", b"\0\1", "2",
                        other.fetchone()[0]))
    try:
        if rng.random() < 0.15:
            db.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        elif rng.random() < 0.1:
            db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        else:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        db.commit()
    except (sqlite3.Error, OverflowError):
        pass  # refused: the ledger is as it was
    db.close()


WAYS = (flip_bits, flip_bits, random_run, zero_page, swap_pages, cut, change_cells, change_cells,
        change_cells)


def run(arguments):
    try:
        return subprocess.run(arguments, capture_output=True, timeout=1000)
    except subprocess.TimeoutExpired:
        return None


def shown(folder):
    files = {}
    for name in SHOWN:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            files[name] = open(path, "rb").read()
        for inner in sorted(os.listdir(path)) if os.path.isdir(path) else ():
            files[f"{name}/{inner}"] = open(os.path.join(path, inner), "rb").read()
    return files


def judge(done, before, folder):
    """What is wrong; None if nothing is."""
    if done is None:
        return "report did not end"
    errors = done.stderr.decode(errors="replace")
    after = shown(folder)
    if done.returncode == 0:
        wrong = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
        return f"exit 0, but other bytes in {', '.join(wrong)}" if wrong else None
    lines = [line for line in errors.splitlines() if line.strip()]
    if done.returncode != 1:
        return f"exit code {done.returncode}: {errors[-2000:]}"
    return None if len(lines) == 1 else f"exit 1 with {len(lines)} lines: {errors[-500:]}"


def main():
    fullrank, study, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    first = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    counts = {}
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        whole = os.path.join(scratch, "whole")
        os.mkdir(whole)
        shutil.copy(os.path.join(study, "study.db"), whole)
        if run([fullrank, "study", "report", whole]).returncode:
            sys.exit("the report of the undamaged study fails")
        before = shown(whole)
        for number in range(first, first + count):
            rng = random.Random(f"{seed} {number}")
            way = rng.choice(WAYS)
            folder = os.path.join(scratch, "damaged")
            os.mkdir(folder)
            path = os.path.join(folder, "study.db")
            shutil.copy(os.path.join(whole, "study.db"), path)
            way(path, rng)
            done = run([fullrank, "study", "report", folder])
            wrong = judge(done, before, folder)
            status = run([fullrank, "study", "status", folder])
            if not wrong and (status is None or status.returncode not in (0, 1)):
                wrong = "status: " + ("did not end" if status is None else
                                      f"exit code {status.returncode}: {status.stderr[-2000:]}")
            kept = "equal" if done is not None and done.returncode == 0 else "refused"
            key = way.__name__, "WRONG" if wrong else kept
            counts[key] = counts.get(key, 0) + 1
            if wrong:
                bad += 1
                print(f"seed {seed} number {number} ({way.__name__}): {wrong}")
            shutil.rmtree(folder)
    for key, value in sorted(counts.items()):
        print(f"{key[0]}: {value} {key[1]}")
    print(f"{count} damaged ledgers, {bad} wrong")
    sys.exit(1 if bad else 0)


main()
