#!/usr/bin/env python3
"""Kills commands with SIGKILL and checks that the next run ends as if nothing had happened.

    kill.py FULLRANK [--kills N] [--seed S] [--seconds T] [--only KIND]
        prints TAP; N kills of each kind (default 4)

Kinds: data import, data get, train (then --resume), rank, study run, and two processes on one study, of which one or
both are killed. Most of them are also tried with SIGINT, SIGTERM or SIGHUP; the command must then end with 130 and clean
up. Half of the kills come at a moment drawn uniformly from the command's duration. The others come right before its n-th
file operation (kill_shim.c), with n drawn uniformly; this needs a compiler.
After a kill an output is absent or complete. Then the command is run again (and sometimes killed again). It must
succeed, and every file must have the bytes of an undisturbed run: JSON without its timings, study.db by its content.
Files with measured times (costs/ and the page) must only exist.
"""

import argparse
import hashlib
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

TIMES = {"seconds", "timing", "scores_per_second"}
HERE = os.path.dirname(os.path.abspath(__file__))


# ---- what is in a folder ----

def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def database(path):
    base = sqlite3.connect(path)
    if base.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        return "damaged"
    if not base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return "empty"  # killed before it was a ledger
    runs = base.execute("SELECT key, kind, data, model, objective, seed, window, status, inputs, message FROM run")
    metrics = base.execute("SELECT key, name, value, events FROM metric JOIN run ON run.id = metric.run")
    files = base.execute("SELECT key, name, path, CASE WHEN name IN ('about', 'train.json') THEN 'times' ELSE sha256 END, "
                         "name = 'records' AND content FROM artefact JOIN run ON run.id = artefact.run")
    failures = base.execute("SELECT count(*) FROM failure")
    found = [sorted(map(repr, rows)) for rows in (runs, metrics, files, failures)]
    base.close()
    return found


def tensors(path):
    """A .safetensors: its header without times, and the rest."""
    whole = open(path, "rb").read()
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:8 + size])
    notes = {k: without_times(json.loads(v)) if v.startswith("{") else v
             for k, v in header.pop("__metadata__", {}).items()}
    return [notes, header, hashlib.sha256(whole[8 + size:]).hexdigest()]


def content(path):
    if path.endswith(".safetensors"):
        return tensors(path)
    if path.endswith(".json"):
        return without_times(json.load(open(path)))
    if path.endswith(".db"):
        return database(path)
    if "/costs/" in path or path.endswith((".html", ".lock", "-wal", "-shm")):
        return "there"
    return hashlib.sha256(open(path, "rb").read()).hexdigest()


def snapshot(folder):
    found = {}
    for here, folders, files in os.walk(folder):
        for name in files:
            path = os.path.join(here, name)
            found[os.path.relpath(path, folder)] = content(path)
        for name in folders:
            if not os.listdir(os.path.join(here, name)):
                found[os.path.relpath(os.path.join(here, name), folder)] = "empty folder"
    return found


def first_difference(found, expected):
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for a, b in zip(found, expected):
            if a != b:
                return first_difference(a, b)
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in found:
            if found[key] != expected.get(key):
                return f"{key}: {first_difference(found[key], expected.get(key))}"
    return f"{str(found)[:300]}, expected {str(expected)[:300]}"


def difference(found, expected):
    for name in sorted(set(found) | set(expected)):
        if name.endswith(("-wal", "-shm")):
            continue
        if name not in found:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} is left over"
        if found[name] != expected[name]:
            return f"{name} differs: {first_difference(found[name], expected[name])}"
    return None


# ---- commands ----

class Kind:
    """A command in a folder of its own, and how to go on after a kill."""

    def __init__(self, name, first, again, output, inputs, processes=1, asked=False):
        self.name, self.first, self.again, self.output = name, first, again, output
        self.inputs, self.processes, self.asked = inputs, processes, asked

    def prepare(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        for path in self.inputs:
            copy = shutil.copytree if os.path.isdir(path) else shutil.copy
            copy(path, os.path.join(folder, os.path.basename(path)))

    def command(self, folder):
        return self.again if os.path.exists(os.path.join(folder, self.output)) else self.first


class Failure(Exception):
    pass


def start(command, folder, extra=None):
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **(extra or {})}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(command, folder, extra=None):
    process = start(command, folder, extra)
    _, text = process.communicate(timeout=1000)
    if process.returncode:
        raise Failure(f"{' '.join(command[1:])} ends with {process.returncode}: {text.decode(errors='replace').strip()}")


class Killer:
    def __init__(self, r, shim):
        self.r, self.shim = r, shim
        self.kills = dict(moment=0, operation=0, late=0)

    def strike(self, kind, folder, duration, operations):
        """Runs the command and kills it, unless it is done before."""
        r, command, processes = self.r, kind.command(folder), []
        number = r.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]) if kind.asked else signal.SIGKILL
        victims = [0] if kind.processes == 1 else r.choice([[0], [1], [0, 1]])
        for k in range(kind.processes):
            how = None if k not in victims else "operation" if operations and not kind.asked and r.random() < 0.5 else "moment"
            extra = {"LD_PRELOAD": self.shim, "KILL_AT": str(r.randint(1, operations))} if how == "operation" else {}
            processes.append((start(command, folder, extra), how, r.uniform(0, 1.1 * duration)))
        began = time.monotonic()
        for process, how, wait in sorted(processes, key=lambda p: p[2]):
            if how != "moment":
                continue
            try:
                process.wait(max(0, began + wait - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        for process, how, _ in processes:
            text = process.communicate(timeout=1000)[1].decode(errors="replace")
            killed = process.returncode in ([-number, 130] if kind.asked else [-signal.SIGKILL])
            if how:
                self.kills[how if killed else "late"] += 1
            if process.returncode and not killed:
                raise Failure(f"beside a kill, {' '.join(command[1:])} ends with {process.returncode}: {text.strip()}")

    def total(self):
        return self.kills["moment"] + self.kills["operation"]


def kill_once(killer, kind, folder, expected, duration, operations):
    kind.prepare(folder)
    for _ in range(killer.r.choice([1, 1, 1, 2])):
        killer.strike(kind, folder, duration, operations)
        check_between(kind, folder, expected)
    finish(kind.command(folder), folder)
    wrong = difference(snapshot(folder), expected)
    if wrong:
        raise Failure(wrong)


def check_between(kind, folder, expected):
    """After a kill, before anything else: an output that appears at once is absent or complete."""
    left = [name for _, folders, files in os.walk(folder) for name in folders + files if ".tmp-" in name]
    if kind.asked and left:
        raise Failure(f"after a signal: {left[0]} is left over")
    if kind.name.startswith("data ") and os.path.exists(os.path.join(folder, kind.output)):
        part = {k: v for k, v in snapshot(folder).items() if k.startswith(kind.output + "/")}
        wrong = difference(part, {k: v for k, v in expected.items() if k.startswith(kind.output + "/")})
        if wrong:
            raise Failure(f"after the kill: {wrong}")
    if kind.name.startswith("rank"):
        for name in ("ranks.npy", "ranks.json"):
            path = os.path.join(folder, name)
            if os.path.exists(path) and content(path) != expected[name]:
                raise Failure(f"after the kill: {name} is not whole")
    state = os.path.join(folder, "study/study.db")
    if kind.name.startswith("study") and os.path.exists(state) and os.path.getsize(state):
        shown = subprocess.run([kind.first[0], "study", "status", "study"], cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        early = "format 0" in shown.stdout or "contains no study" in shown.stdout  # killed before it was a study
        if shown.returncode and not early:
            raise Failure(f"after the kill: study status ends with {shown.returncode}: {shown.stdout.strip()}")
    if kind.name.startswith("study") and os.path.exists(os.path.join(folder, "study/study.db")):
        if database(os.path.join(folder, "study/study.db")) == "damaged":
            raise Failure("after the kill: study.db is damaged")


# ---- everything ----

def serve(path):
    """A server of the file, which ends with us."""
    server = subprocess.Popen([sys.executable, os.path.join(HERE, "http_server.py"), path, "--seconds", "86400"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return server, f"http://127.0.0.1:{int(server.stdout.readline())}/events.csv"


def make_kinds(tool, inputs):
    with open(os.path.join(inputs, "events.csv"), "w") as file:
        file.write("source,destination,time,f1\n")
        for i in range(1500):
            file.write(f"{i % 17},{(i * i + i // 9) % 23 + 100},{i // 2},{i * 0.5}\n")
    finish([tool, "data", "import", "events.csv", "-o", "data", "-q"], inputs)
    study = {"name": "killed", "data": ["data"], "models": ["graphmixer"], "seeds": [1], "baselines": ["recency", "edgebank"],
             "k": [1, 5], "settings": {"epochs": 2, "dim": 4, "time-dim": 4, "tokens": 4, "head-width": 8},
             "protocol": {"window": 600}}
    json.dump(study, open(os.path.join(inputs, "study.json"), "w"))
    table, data, document = (os.path.join(inputs, x) for x in ("events.csv", "data", "study.json"))
    train = [tool, "train", "--data", "data", "--model", "graphmixer", "--epochs", "4", "--window", "600", "--dim", "4",
             "--time-dim", "4", "--tokens", "4", "--head-width", "8", "-o", "run", "-q"]
    rank = [tool, "rank", "--data", "data", "--scorer", "baseline:frequency", "-o", "ranks.npy", "-q"]
    study = [tool, "study", "run", "study.json", "-o", "study", "-q"]
    load = [tool, "data", "import", "events.csv", "-o", "out", "-q"]
    server, url = serve(table)
    get = [tool, "data", "get", "mine", "--url", url, "-o", "out", "-q"]
    kinds = [
        Kind("data import", load, load + ["--force"], "out", [table]),
        Kind("data get", get, get + ["--force"], "out", []),
        Kind("train", train, train + ["--resume"], "run", [data]),
        Kind("rank", rank + ["--force"], rank + ["--force"], "ranks.npy", [data]),
        Kind("study run", study, study, "study", [data, document]),
        Kind("study run, two processes", study, study, "study", [data, document], 2),
    ]
    return server, kinds + [Kind(k.name + ", asked to stop", k.first, k.again, k.output, k.inputs, 1, True)
                            for k in kinds if k.processes == 1 and k.name != "data get"]


def build_shim(folder, tool):
    shim = os.path.join(folder, "kill_shim.so")
    done = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, os.path.join(HERE, "kill_shim.c"), "-ldl"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) if shutil.which("cc") else None
    if not done or done.returncode:
        return None
    # A sanitizer's runtime must be loaded first; then there are only random moments.
    return None if subprocess.run([tool, "version"], env={**os.environ, "LD_PRELOAD": shim}, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL).returncode else shim


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all kinds together, about")
    parser.add_argument("--only", default="", help="kinds whose name begins so")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given = parser.parse_args()
    tool, failed = os.path.abspath(given.tool), 0
    with tempfile.TemporaryDirectory() as folder:
        inputs, work = os.path.join(folder, "inputs"), os.path.join(folder, "work")
        os.mkdir(inputs)
        shim = build_shim(folder, tool)
        server, kinds = make_kinds(tool, inputs)
        kinds = [k for k in kinds if k.name.startswith(given.only)]
        for number, kind in enumerate(kinds, 1):
            killer, text, tries = Killer(random.Random(f"{given.seed} {kind.name}"), shim), "", 0
            try:
                kind.prepare(work)
                began = time.monotonic()
                finish(kind.first, work)
                duration = time.monotonic() - began
                expected, operations = snapshot(work), 0
                if shim:
                    kind.prepare(work)
                    finish(kind.first, work, {"LD_PRELOAD": shim, "KILL_COUNT": os.path.join(folder, "count")})
                    operations = int(open(os.path.join(folder, "count")).read())
                until = time.monotonic() + given.seconds / len(kinds)
                while killer.total() < given.kills and tries < 4 * given.kills and (not tries or time.monotonic() < until):
                    tries += 1
                    kill_once(killer, kind, work, expected, duration, operations)
            except Failure as wrong:
                text, failed = f"\n#   try {tries}: {wrong}", failed + 1
            print(f"{'not ok' if text else 'ok'} {number} - {kind.name}, --seed {given.seed}: {killer.kills}{text}", flush=True)
        server.communicate()
    print(f"1..{len(kinds)}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
