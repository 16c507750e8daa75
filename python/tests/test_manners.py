"""Errors, interrupts, threads, forks, memory: how the package behaves as a guest of a program."""

import gc
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

import fullrank as fr
from fullrank import _fullrank as C


def resident():
    """Bytes of memory in use by this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Errors(unittest.TestCase):
    def test_a_class_for_each_kind(self):
        events = fr.synth("tiny")
        window = events.window()
        with self.assertRaisesRegex(fr.UsageError, "^unknown baseline edgebnk, did you mean edgebank"):
            window.rank("baseline:edgebnk")
        with self.assertRaisesRegex(fr.UsageError, "train-share"):
            events.window(train=7)
        with self.assertRaisesRegex(fr.FileError, "No such file"):
            fr.read("/nowhere/at/all.csv")
        with self.assertRaisesRegex(fr.FileError, "all.safetensors: cannot be read: No such file"):
            fr.load("/nowhere/at/all.safetensors")
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "bad.safetensors")
            for content in (b"", b"abc", b"\xff" * 20, b"\2" + bytes(7) + b"[]", b"\x09" + bytes(7) + b'{"a": {}}'):
                with open(path, "wb") as file:
                    file.write(content)
                with self.assertRaisesRegex(fr.InputError, "bad.safetensors: not a .safetensors file"):
                    fr.load(path)
        with self.assertRaises(fr.InputError):
            fr.events([0, 1], [1, 2], [float("nan"), 1.0])
        with self.assertRaisesRegex(fr.InputError, "destinations of shape"):
            fr.events([0, 1], [1, 2, 3], [1.0, 2.0])
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "r.npy")
            ranking = window.rank("baseline:random")
            ranking.save(path)
            with self.assertRaises(fr.ForceError):
                ranking.save(path)
            ranking.save(path, force=True)
        for kind, also in ((fr.UsageError, ValueError), (fr.InputError, ValueError), (fr.FileError, OSError),
                           (fr.OutOfMemory, MemoryError), (fr.Cancelled, RuntimeError)):
            self.assertTrue(issubclass(kind, fr.Error) and issubclass(kind, also))

    def test_wrong_types(self):
        window = fr.synth("tiny").window()
        for wrong in (None, object(), 7):
            with self.assertRaises((fr.Error, TypeError)):
                fr.compare(wrong)
        with self.assertRaises(TypeError):
            C.window_facts(window.events._handle)
        with self.assertRaises(TypeError):
            C.Handle()
        with self.assertRaisesRegex(fr.UsageError, "expected numbers"):
            window.rank(np.full((len(window.ranked), len(window.catalog)), "a"))
        with self.assertRaises(fr.UsageError):
            fr.synth("tiny").window(order=object())

    def test_scorers_may_raise(self):
        window = fr.synth("tiny").window()

        class Own(Exception):
            pass

        def bad(batch):
            raise Own("here")

        with self.assertRaisesRegex(Own, "here"):
            window.rank(bad)
        with self.assertRaisesRegex(fr.UsageError, r"shape \(3,\), expected \(\d+, 100\)"):
            window.rank(lambda batch: np.zeros(3))

        class Watcher:
            def score(self, batch):
                return np.zeros(len(window.catalog))

            def observe(self, event):
                raise Own("there")

        with self.assertRaisesRegex(Own, "there"):
            window.rank(Watcher())

    def test_warnings_are_warnings(self):
        window = fr.synth("tiny").window(val=0.05)
        run = window.train("craft", epochs=2, dim=8, layers=1, history=8, select="mrr")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            window.rank(os.path.join(run.path, "state.safetensors"))
        self.assertTrue(any(issubclass(w.category, fr.Warning) for w in caught))


class Interrupts(unittest.TestCase):
    def test_ctrl_c(self):
        window = fr.synth("tiny").window()
        place = tempfile.mkdtemp()
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            window.train("craft", os.path.join(place, "run"), epochs=100000)
        timer.join()
        self.assertGreater(window.rank("baseline:recency").mrr, 0)  # all is well afterwards

    def test_progress_and_threads(self):
        """A progress function may raise; and other threads run Python meanwhile, or this would never end."""
        window = fr.synth("tiny").window()
        stop, seen, raised = threading.Event(), [], []

        class Enough(Exception):
            pass

        def progress(stage, done, total, unit):
            seen.append((stage, done, total, unit))
            if stop.is_set():
                raise Enough

        def work():
            try:
                window.train("craft", epochs=100000, progress=progress)
            except Enough as e:
                raised.append(e)

        thread = threading.Thread(target=work)
        thread.start()
        while not seen:
            stop.wait(0.01)
        stop.set()
        thread.join(60)
        self.assertEqual(len(raised), 1)

    def test_many_threads(self):
        window = fr.synth("tiny").window()
        want = window.rank("baseline:edgebank").records.tobytes()
        scores = np.random.default_rng(0).random((len(window.ranked), len(window.catalog)), dtype=np.float32)
        fed = window.rank(scores).records.tobytes()
        wrong = []

        def work(k):
            try:
                if k % 2:
                    good = window.rank("baseline:edgebank", threads=2).records.tobytes() == want
                else:
                    good = window.rank(lambda b: scores[b.event - window.ranked.start]).records.tobytes() == fed
                if not good:
                    wrong.append(k)
            except BaseException as e:
                wrong.append(e)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_many_workers(self):
        """A function that says so is called by several threads at a time."""
        window = fr.synth("tiny").window()
        scores = np.random.default_rng(0).random((len(window.ranked), len(window.catalog)), dtype=np.float32)

        class Many:
            workers, many = 4, 16

            def score(self, batch):
                self.most = max(getattr(self, "most", 0), len(batch))
                return scores[batch.event - window.ranked.start]

        scorer = Many()
        found = window.rank(scorer, threads=4, shard=16)
        self.assertEqual(found.records.tobytes(), window.rank(scores).records.tobytes())
        self.assertEqual(scorer.most, 16)

    def test_one_thread_at_a_time(self):
        window = fr.synth("tiny").window()
        handle = []

        def again(batch):
            C.rank_run(handle[0], {}, False, None)

        handle.append(window._ask(again, None, None, {}))
        with self.assertRaisesRegex(fr.UsageError, "in use by another thread"):
            C.rank_run(handle[0], {}, False, None)
        handle.clear()

    def test_fork(self):
        """A child works on its copy and leaves its parent's files alone."""
        events = fr.synth("tiny")
        window = events.window()
        run = window.train("craft", epochs=1, dim=8, layers=1, history=8)
        want = window.rank(run).records.tobytes()
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if window.rank(run).records.tobytes() == want else 2
                del window, events, run
                gc.collect()
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(os.path.exists(run.checkpoint))
        self.assertEqual(window.rank(run).records.tobytes(), want)

    def test_subinterpreters_are_refused(self):
        name = next((n for n in ("_interpreters", "_xxsubinterpreters") if importlib.util.find_spec(n)), None)
        if name is None:
            self.skipTest("this Python has no module of sub-interpreters")
        inside = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("fullrank._fullrank", {C.__file__!r})
try:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
except ImportError as e:
    assert "sub-interpreter" in str(e) or "subinterpreter" in str(e), e
else:
    raise AssertionError("it was loaded")
"""
        interpreters = __import__(name)
        made = interpreters.create()
        try:
            failed = interpreters.run_string(made, inside)
            self.assertIsNone(failed)
        finally:
            interpreters.destroy(made)


class Quiet(unittest.TestCase):
    def test_nothing_is_printed_and_torch_stays_out(self):
        done = subprocess.run([sys.executable, "-c", """
import sys, fullrank as fr
w = fr.synth("tiny").window(val=0.1)
r = w.train("craft", epochs=1, dim=8, layers=1, history=8, select="mrr")
c = fr.compare(w.rank(r), w.rank("baseline:recency"), resamples=100)
str(c), c._repr_html_(), fr.explain(w.events, "baseline:recency")
heavy = {"torch", "pandas", "polars", "pyarrow", "tqdm", "IPython", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
"""], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Memory(unittest.TestCase):
    CALLS = 100_000

    def grown(self, work, rounds, warm):
        for _ in range(warm):
            work()
        gc.collect()
        before = resident()
        for _ in range(rounds):
            work()
        gc.collect()
        return resident() - before

    def test_no_leak(self):
        """10^5 calls of every kind: the process does not grow."""
        window = fr.events(np.arange(40) % 5, np.arange(40) % 7, np.arange(40.0)).window()
        ranking = window.rank("baseline:recency")
        feed_scores = np.zeros((1, len(window.catalog)), np.float32)

        def calls():  # 20 calls into the module
            for _ in range(4):
                ranking.metric("mrr")
                window.source_history(1, 30)
                window.cut(7)
            try:
                ranking.metric("nonsense")
            except fr.UsageError:
                pass
            feed = window.feed("m")
            feed.next(1)
            feed.submit(feed_scores)
            feed.facts
            ranking.expected("uniform", k=5, threads=1)
            len(ranking.records)

        self.assertLess(self.grown(calls, self.CALLS // 20, 500), 1 << 20)

    def test_no_leak_of_handles(self):
        events = fr.events(np.arange(40) % 5, np.arange(40) % 7, np.arange(40.0))

        def calls():
            window = events.window()
            window.rank("baseline:recency").slices("repeated")
            window.rank(lambda b: np.zeros((len(b), len(window.catalog))))
            try:
                window.rank(lambda b: 1 / 0)
            except ZeroDivisionError:
                pass

        self.assertLess(self.grown(calls, 300, 100), 1 << 20)

    def test_scores_are_read_in_place(self):
        """float32 in C order is not copied: peak memory of ranking 64 MiB of scores grows by less than a tenth."""
        done = subprocess.run([sys.executable, "-c", """
import resource, numpy as np, fullrank as fr
n, m = 4096, 4096
rng = np.random.default_rng(0)
w = fr.events(np.arange(3 * n) % 100, np.concatenate([np.arange(m), rng.integers(0, m, 3 * n - m)]),
              np.arange(3.0 * n)).window(0, train=2 / 3)
assert len(w.ranked) == n and len(w.catalog) >= m * 0.8
scores = np.zeros((n, len(w.catalog)), np.float32)
scores[:] = np.arange(len(w.catalog), dtype=np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
w.rank(scores)
feed = w.feed("m")
for batch in feed.batches(200):
    first = batch.event[0] - w.ranked.start
    feed.submit(scores[first:first + len(batch)])
feed.finish()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / scores.nbytes)
"""], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(float(done.stdout), 0.1)


if __name__ == "__main__":
    unittest.main()
