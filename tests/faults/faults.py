#!/usr/bin/env python3
"""faults.py - runs commands with failing calls, and checks what they do then.

usage: faults.py FULLRANK SHIM [--all] [--only REGEX] [--kinds memory,crypto,thread,file] [--seed N] [--jobs N]

Every command is run once undisturbed, to record its files and the number of its calls. Then it is
run again and again, each time with another failing call: alone, or with all that follow
(tests/faults/shim.c). The rule: exit 0 means the same bytes as the undisturbed run. Otherwise the
exit code is 1, with one message and no signal, and every file is the old one or the new one, with
no other files. A study and a training may leave part of their work; run again, they must give the
same result.

Times are measured and differ from run to run, so keys and columns that hold them are left out.

Without --all a sample of the calls is tried, the same ones every time (--seed draws others). One
line of TAP per command and kind; a finding shows the variables that repeat it.
"""
import argparse
import concurrent.futures
import gzip
import hashlib
import json
import os
import queue
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

TIMES = {"seconds", "timing", "scores_per_second", "peak_bytes", "seconds_left", "begun", "finished"}
REMOVAL = {"unlink", "unlinkat", "rmdir", "opendir", "fdopendir", "readdir", "getdents64", "openat", "openat64", "lstat",
           "lstat64", "fstatat", "open", "open64", "fstat", "fstat64"}


class Command:
    """One command line, run in a copy of `needs`.

    again     the command that must come to the undisturbed end after a failure
    whole     directories that are replaced in one step
    blind     a pattern of paths that are not compared
    times     a pattern in the standard output that stands for measured times
    """

    def __init__(self, name, line, needs="", again=None, whole="", blind=None, times=None):
        self.name, self.arguments, self.needs = name, line.split(), needs.split()
        self.again = again.split() if again else None
        self.whole = whole.split()
        self.blind = re.compile(blind) if blind else None
        self.times = re.compile(times) if times else None


SMALL = "--set dim=8 --epochs 1 --batch-size 100"
MODELS = {"craft": "--history 4", "craft-r": "--history 4", "dygformer": "--history 8 --patch 4 --time-dim 4",
          "dygformer-lha": "--history 8 --patch 4 --time-dim 4", "tgn": "--neighbors 3 --time-dim 4",
          "graphmixer": "--tokens 4 --time-dim 4 --head-width 8"}
STUDY = r"(^|/)(study\.db|study\.lock|costs/|report\.html)"

COMMANDS = [
    Command("import", "data import events.csv -o out", "events.csv"),
    Command("import-words", "data import words.csv.gz --ids words -o drawn --force", "words.csv.gz drawn",
            whole="drawn"),
    Command("import-refused", "data import events.csv -o drawn", "events.csv drawn"),
    Command("info", "data info data", "data"),
    Command("info-json", "data info data --json", "data"),
    Command("info-table", "data info events.csv --json", "events.csv"),
    Command("export", "data export data -o out.csv", "data"),
    Command("export-gz", "data export words -o out.csv.gz --force", "words out.csv.gz"),
    Command("export-refused", "data export data -o events.csv", "data events.csv"),
    Command("synth", "data synth --preset tiny --events 150 -o out"),
    Command("verify", "data verify data", "data"),
    *[Command("train-" + model, f"train --data data --model {model} -o out {SMALL} {options}", "data",
              again=f"train --data data --model {model} -o out {SMALL} {options} --resume")
      for model, options in MODELS.items()],
    Command("train-epochs", "train --data data --model craft -o out --epochs 3 --set dim=8 --batch-size 200 --history 4",
            "data", again="train --data data --model craft -o out --epochs 3 --set dim=8 --batch-size 200 --history 4 "
            "--resume"),
    Command("train-refused", f"train --data data --model craft -o craft {SMALL}", "data craft"),
    Command("rank-baseline", "rank --data data --scorer baseline:recency -o out.npy", "data"),
    Command("rank-table", "rank --data events.csv --scorer baseline:markov -o out.npy --json", "events.csv"),
    Command("rank-again", "rank --data data --scorer baseline:edgebank -o one.npy --force --catalog time",
            "data one.npy one.json"),
    Command("rank-refused", "rank --data data --scorer baseline:recency -o one.npy", "data one.npy one.json"),
    Command("rank-parts", "rank --data data --scorer baseline:recency -o out.npy --val-share 0.1 --part val --order batch:3 "
            "--filter same-time --catalog range", "data"),
    Command("explain", "explain --data data --scorer baseline:edgebank --from tgb --json", "data"),
    Command("rank-scores", "rank --data data --scorer scores:scores.npy -o out.npy", "data scores.npy scores.json"),
    Command("rank-oracle", "rank --data drawn --scorer oracle -o out.npy", "drawn"),
    Command("rank-dump", "rank --data data --scorer baseline:popularity -o out.npy --dump-scores s.npy --events every:3",
            "data"),
    *[Command("rank-" + model, f"rank --data data --scorer {model}/model.safetensors -o out.npy --verify 2",
              f"data {model}") for model in MODELS],
    Command("metrics", "metrics one.npy two.npy --sampler random-10,popularity,history-mix-10", "one.npy one.json two.npy "
            "two.json"),
    Command("metrics-json", "metrics one.npy two.npy --sampler source-history,unseen,tgb-hist-10 --draws 3 --json",
            "one.npy one.json two.npy two.json"),
    Command("metrics-events", "metrics one.npy --per-event out.tsv --lines", "one.npy one.json"),
    Command("compare", "compare one.npy two.npy --block 8 --resamples 100", "one.npy one.json two.npy two.json"),
    Command("compare-json", "compare one.npy two.npy --block 8 --resamples 100 --json",
            "one.npy one.json two.npy two.json"),
    Command("minimal", "diagnose minimal --data data --json", "data"),
    Command("membership", "diagnose membership --data data --scorer baseline:recency --k 3 --json", "data"),
    Command("membership-ranks", "diagnose membership wide.npy --k 3", "wide.npy wide.json"),
    Command("project", "diagnose project --data data --scorer craft/model.safetensors --k 3 --json", "data craft"),
    Command("project-files", "diagnose project --representations z.npy --labels m.npy --head w.npy -o out",
            "z.npy m.npy w.npy"),
    Command("bench", "bench scaling --data data --scorer baseline:recency --events 4 --repeats 1 --csv", "data",
            times=r"(?m),[0-9.e+-]+,([0-9.]+),\d+$"),
    Command("study-run", "study run study.json -o out", "study.json data", again="study run study.json -o out",
            blind=STUDY),
    Command("study-status", "study status study", "study"),
    Command("study-status-json", "study status study --json", "study"),
    Command("study-report", "study report study", "study", blind=r"study\.db", again="study report study"),
    Command("study-preset", "study preset demo"),
    Command("report", "report one.npy two.npy -o out.html --tables out", "one.npy one.json two.npy two.json",
            blind=r"(^|/)(costs/|out\.html)"),
    Command("models", "models --json"),
    Command("baselines", "baselines --json"),
    Command("version", "version --json"),
    Command("help", "help rank"),
    Command("metrics-help", "metrics --help all"),
    Command("man", "man"),
    Command("completions", "completions bash"),
]


def npy(path, kind, shape, values):
    """A .npy of version 1.0; `kind` is a code of struct."""
    names = {"f": "<f4", "b": "|i1"}
    header = repr({"descr": names[kind], "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack(f"<{len(values)}{kind}", *values))


def make_inputs(run, folder):
    """Everything that commands need, made by undisturbed ones."""
    draw = random.Random(5)
    rows = [(draw.randrange(5), draw.randrange(30), i // 2) for i in range(400)]
    with open(f"{folder}/events.csv", "w") as file:
        file.write("user,item,time,f\n")
        file.writelines(f"{u},{v},{t},{(u + v) / 8}\n" for u, v, t in rows)
    with gzip.open(f"{folder}/words.csv.gz", "wt") as file:
        file.write("user,item,time\n")
        file.writelines(f"u{u},w{v},{t}\n" for u, v, t in rows[100:200] + rows[:100])
    npy(f"{folder}/z.npy", "f", (40, 3), [draw.random() for _ in range(120)])
    npy(f"{folder}/m.npy", "b", (40,), [i % 2 for i in range(40)])
    npy(f"{folder}/w.npy", "f", (2, 3), [draw.random() for _ in range(6)])
    lines = ["data import events.csv -o data", "data import words.csv.gz --ids words -o words",
             "data synth --preset tiny --events 150 -o drawn", "data export data -o out.csv.gz",
             "rank --data data --scorer baseline:recency -o one.npy --dump-scores scores.npy",
             "rank --data data --scorer baseline:popularity -o two.npy",
             "rank --data data --scorer baseline:recency --catalog time --window 0 -o wide.npy"]
    lines += [f"train --data data --model {model} -o {model} {SMALL} {options}" for model, options in MODELS.items()]
    study = {"name": "small", "data": {"mine": "data"}, "protocol": {"window": 0}, "diagnostic-window": 0,
             "baselines": ["recency"], "models": ["craft", "craft-r"], "seeds": [7], "gain": ["craft", "craft-r"],
             "minimal": True, "settings": {"epochs": 1, "dim": 8, "history": 4}}
    with open(f"{folder}/study.json", "w") as file:
        json.dump(study, file)
    for line in lines + ["study run study.json -o study"]:
        run(line.split(), folder)


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def steady(name, content):
    """What must be equal from run to run of a file."""
    try:
        if name.endswith(".json"):
            return json.dumps(without_times(json.loads(content))).encode()
        if name.endswith("state.safetensors"):
            size = struct.unpack("<Q", content[:8])[0]
            header = json.loads(content[8:8 + size])
            metadata = header["__metadata__"]
            for key, text in metadata.items():
                if "seconds" in text:
                    metadata[key] = json.dumps(without_times(json.loads(text)))
            return json.dumps(header).encode() + content[8 + size:]
    except (ValueError, KeyError, struct.error):
        pass
    return content


class Place:
    """A folder of its own for each worker: `inputs` before every run. Reading and copying is most of the work, so
    what did not change is known by its inode, size and time."""

    def __init__(self, path, inputs, needs):
        self.path, self.inputs, self.seen = path, inputs, {}
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(f"{path}/tmp")
        for name in needs:
            source = f"{inputs}/{name}"
            (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, f"{path}/{name}")
        self.before = self.look()

    def look(self):
        """{path: hash of what is steady in it, "" for a folder} of everything below."""
        found, waiting = {}, [""]
        while waiting:
            below = waiting.pop()
            for entry in os.scandir(f"{self.path}/{below}"):
                path = f"{below}/{entry.name}" if below else entry.name
                if entry.is_dir(follow_symlinks=False):
                    found[path] = ""
                    waiting.append(path)
                    continue
                facts = entry.stat(follow_symlinks=False)
                key = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
                if self.seen.get(path, (None,))[0] != key:
                    with open(entry.path, "rb") as file:
                        content = file.read()
                    self.seen[path] = (key, hashlib.sha256(content).digest(),
                                       hashlib.sha256(steady(entry.name, content)).digest())
                found[path] = self.seen[path][2]
        return found

    def reset(self):
        """Removes what is new and brings back what is not as it was, times included."""
        found = self.look()
        for path in sorted(set(found) - set(self.before), reverse=True):
            (os.rmdir if found[path] == "" else os.unlink)(f"{self.path}/{path}")
        for path in sorted(self.before):
            if self.before[path] == "":
                os.makedirs(f"{self.path}/{path}", exist_ok=True)
            elif path not in found or self.seen[path][1] != self.first[path]:
                shutil.copy(f"{self.inputs}/{path}", f"{self.path}/{path}")

    def begin(self):
        self.first = {path: value[1] for path, value in self.seen.items()}
        return self


class Server:
    """The program, loaded once under the shim; it runs in a child of its own for every fault."""

    def __init__(self, arguments, environment, folder, place):
        self.place = place
        take, self.requests = os.pipe()
        answers, give = os.pipe()
        self.answers = os.fdopen(answers)
        self.process = subprocess.Popen(arguments, env={**environment, "FAULT_SERVER": f"{take} {give}"},
                                        pass_fds=(take, give), stdin=subprocess.DEVNULL)
        os.close(take)
        os.close(give)
        self.files = [f"{folder}/stdout-{id(self)}", f"{folder}/stderr-{id(self)}"]

    def run(self, fault):
        self.place.reset()
        values = [fault.get("FAULT_" + key, "") for key in ("KIND", "AT", "ALL", "ERROR", "LOG")]
        os.write(self.requests, ("\t".join([*values, self.place.path, *self.files]) + "\n").encode())
        status = int(self.answers.readline())
        with open(self.files[0], "rb") as stdout, open(self.files[1], "rb") as stderr:
            return os.waitstatus_to_exitcode(status), stdout.read(), stderr.read()

    def close(self):
        os.close(self.requests)
        self.answers.close()
        self.process.wait()


class Tester:
    def __init__(self, options):
        self.options = options
        self.fullrank, self.shim = os.path.abspath(options.fullrank), os.path.abspath(options.shim)
        self.scratch = tempfile.mkdtemp(prefix="faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.inputs = f"{self.scratch}/inputs"
        self.asan = "asan" in subprocess.run(["ldd", self.fullrank], capture_output=True, text=True).stdout
        os.mkdir(self.inputs)

    def environment(self):
        values = {key: value for key, value in os.environ.items() if not key.startswith("FAULT_")}
        values["TMPDIR"] = "tmp"
        if self.asan:
            values["ASAN_OPTIONS"] = (values.get("ASAN_OPTIONS", "") +
                                      ":verify_asan_link_order=0:exitcode=99:allocator_may_return_null=1").lstrip(":")
        return values

    def line(self, arguments, kind=None):
        return [self.fullrank, *arguments, "-q", "--threads", "2" if kind == "thread" else "1"]

    def run(self, arguments, place):
        """Exit code, standard output and standard error of an undisturbed run in `place`."""
        os.makedirs(f"{place}/tmp", exist_ok=True)
        done = subprocess.run(self.line(arguments), cwd=place, env=self.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def serve(self, command, kind, number):
        environment = {**self.environment(), "LD_PRELOAD": self.shim}
        place = Place(f"{self.scratch}/{number}", self.inputs, command.needs).begin()
        return Server(self.line(command.arguments, kind), environment, self.scratch, place)

    def must_run(self, arguments, place):
        code, _, stderr = self.run(arguments, place)
        if code != 0:
            raise SystemExit(f"faults.py: {' '.join(arguments)}: exit {code}: {stderr.decode()}")

    def look(self, command, place):
        found = place.look()
        if command.blind:
            found = {path: value for path, value in found.items() if not command.blind.search(path)}
        return found

    def printed(self, command, stdout):
        if command.times:
            return command.times.sub(r",\1", stdout.decode()).encode()
        return steady(".json", stdout) if "--json" in command.arguments else stdout

    def reference(self, command):
        """The undisturbed run: what was there before, its code, output and what it left."""
        place = Place(f"{self.scratch}/reference", self.inputs, command.needs)
        before = self.look(command, place)
        code, stdout, stderr = self.run(command.arguments, place.path)
        return before, code, self.printed(command, stdout), self.look(command, place), stderr

    def calls(self, command, kind, server):
        """The calls that a run makes: (number, name, ways it can fail)."""
        log = f"{self.scratch}/log"
        server.run({"FAULT_KIND": kind, "FAULT_LOG": log})
        with open(log) as file:
            lines = file.read().splitlines()
        os.remove(log)
        if kind == "file":
            return [(int(part[0]), part[1], int(part[2])) for part in (line.split(" ") for line in lines[:-1])]
        return [(number, kind, 0) for number in range(1, int(lines[-1].split()[1]) + 1)]

    def faults(self, command, kind, server):
        """All ways to disturb a command, each as variables for the shim."""
        every = self.calls(command, kind, server)
        one, rest = [], []
        for number, name, ways in every:
            errors = [""]
            if kind == "file":
                errors = ["EIO"] + [error for bit, error in ((1, "ENOSPC"), (2, "EMFILE"), (4, "EINTR"), (8, "short"))
                                    if ways & bit]
            for error in errors:
                fault = {"FAULT_KIND": kind, "FAULT_AT": str(number), "FAULT_ERROR": error, "name": name}
                one.append(fault)
                if error != "EINTR":  # for ever: nobody can go on
                    rest.append({**fault, "FAULT_ALL": "1"})
        return len(every), one, rest

    def judge(self, command, reference, server, fault):
        """None, or what is wrong with what a disturbed run did."""
        before, right, output, after, _ = reference
        code, stdout, stderr = server.run(fault)
        found = self.look(command, server.place)
        text = stderr.decode(errors="replace")
        removal = fault["name"] in REMOVAL or "FAULT_ALL" in fault and fault["FAULT_ERROR"] == "EIO"
        extra = set(found) - set(before) - set(after) - {"tmp"}
        if extra and not removal and not (command.again and all("study.db" in path for path in extra)):
            return f"left behind: {', '.join(sorted(extra)[:3])} (exit {code}: {text.strip()[-300:]})"
        if code == 0:
            if right != 0:
                return f"exit 0, expected {right}"
            if self.printed(command, stdout) != output:
                return "exit 0 with another output"
            wrong = sorted(path for path in after if found.get(path) != after[path])
            return f"exit 0 with another {', '.join(wrong[:3])}" if wrong else None
        if code != 1:
            return f"exit {code}: {text.strip()[-1500:]}"
        messages = [line for line in text.splitlines() if not re.match("fullrank: (note|warning): ", line)]
        if len(messages) != 1 or not messages[0].startswith("fullrank: "):
            return f"{len(messages)} messages, expected one: {text.strip()[:600]!r}"
        return self.judge_failed(command, before, after, found, server.place)

    def judge_failed(self, command, before, after, found, place):
        """After a failure: old or new, and done again, the same end."""
        wrong = [path for path in before if found.get(path) not in (before[path], after.get(path))]
        wrong += [path for path in after if path not in before and found.get(path, after[path]) != after[path]]
        for name in command.whole:
            inside = [{path: value for path, value in state.items() if f"{path}/".startswith(f"{name}/")}
                      for state in (before, found, after)]
            if inside[1] not in (inside[0], inside[2]):
                wrong.append(name)
        if wrong and not (command.again and all(path not in before for path in wrong)):
            return f"neither old nor new: {', '.join(sorted(wrong)[:3])}"
        if not command.again:
            return None
        # A failure before the first file: there is nothing to resume.
        retry = command.again if "--resume" not in command.again or os.path.exists(f"{place.path}/out/state.safetensors") \
            else [*command.arguments, "--force"]
        code, _, stderr = self.run(retry, place.path)
        if code != 0:
            return f"done again: exit {code}: {stderr.decode(errors='replace')[:500]}"
        found = self.look(command, place)
        wrong = sorted(path for path in after if found.get(path) != after[path])
        return f"done again: another {', '.join(wrong[:3])}" if wrong else None

    def test(self, command, kind, pool):
        """Tries what is to be tried; returns the TAP line and its diagnostics."""
        reference = self.reference(command)
        if reference[1] not in (0, 1):
            return None
        servers = queue.SimpleQueue()
        every = [self.serve(command, kind, number) for number in range(self.options.jobs)]
        count, one, rest = self.faults(command, kind, every[0])
        if not self.options.all:
            draw = random.Random(f"{self.options.seed} {command.name} {kind}")
            one = draw.sample(one, min(len(one), self.options.sample))
            rest = draw.sample(rest, min(len(rest), max(1, self.options.sample // 3)))
        tried = one + rest
        for server in every:
            servers.put(server)

        def judge(fault):
            server = servers.get()
            try:
                return self.judge(command, reference, server, fault)
            finally:
                servers.put(server)
        verdicts = list(pool.map(judge, tried))
        for server in every:
            server.close()
        bad = [(fault, verdict) for fault, verdict in zip(tried, verdicts) if verdict]
        lines = [f"{command.name}, {kind}: {len(tried)} faults in {count} calls"]
        for fault, verdict in bad[:self.options.show]:
            variables = " ".join(f"{key}={value}" for key, value in fault.items() if key.startswith("FAULT_") and value)
            lines.append(f"{variables} ({fault['name']}): {verdict}")
        if len(bad) > self.options.show:
            lines.append(f"and {len(bad) - self.options.show} more")
        return len(tried), len(bad), lines


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    parser.add_argument("fullrank")
    parser.add_argument("shim")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default=".")
    parser.add_argument("--kinds", default="memory,thread,file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=6)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tester = Tester(options)
    tests = failed = total = 0
    try:
        make_inputs(tester.must_run, tester.inputs)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for command in COMMANDS:
                for kind in options.kinds.split(","):
                    if not re.search(options.only, command.name):
                        continue
                    result = tester.test(command, kind, pool)
                    if not result or not result[0]:
                        continue
                    tests += 1
                    total += result[0]
                    failed += result[1] > 0
                    print(f"{'not ok' if result[1] else 'ok'} {tests} - {result[2][0]}")
                    for line in result[2][1:]:
                        print("#   " + line.replace("\n", "\n#   "))
                    sys.stdout.flush()
    finally:
        shutil.rmtree(tester.scratch, ignore_errors=True)
    print(f"# {total} faults")
    print(f"1..{tests}")
    return failed > 0


sys.exit(main())
