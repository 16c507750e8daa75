"""Data of other libraries: frames, Arrow, torch, PyG, TGB, DyGLib. Each is used if it is there."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest

import numpy as np

import fullrank as fr


def needs(name):
    return unittest.skipUnless(importlib.util.find_spec(name), f"no {name} here")


def columns():
    rng = np.random.default_rng(0)
    return {"user_id": rng.integers(0, 20, 300), "item_id": rng.integers(0, 9, 300), "timestamp": np.arange(300.0),
            "f0": rng.random(300, dtype=np.float32), "f1": rng.random(300, dtype=np.float32), "comment": ["x"] * 300}


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.columns = columns()
        c = cls.columns
        cls.want = fr.events(c["user_id"], c["item_id"], c["timestamp"], np.column_stack([c["f0"], c["f1"]]))

    def same(self, made):
        self.assertEqual(made.facts.sha256, self.want.facts.sha256)
        self.assertEqual(made.facts.feature_width, 2)

    def test_dict(self):
        self.same(fr.events(self.columns))
        other = {"a": self.columns["user_id"], "b": self.columns["item_id"], "c": self.columns["timestamp"],
                 "f0": self.columns["f0"], "f1": self.columns["f1"]}
        with self.assertRaisesRegex(fr.InputError, "no column for the source"):
            fr.events(other)
        self.same(fr.events(other, columns="source=a,destination=b,time=c"))

    def test_equals_a_table(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "t.csv")
            self.want.save(path)
            self.same(fr.read(path))
            self.same(fr.import_file(path, os.path.join(place, "t")))
            self.assertTrue(all(f.same for f in fr.verify(os.path.join(place, "t"))))
            c = self.columns
            made = fr.events(c["user_id"], c["item_id"], c["timestamp"], np.column_stack([c["f0"], c["f1"]]),
                             output=os.path.join(place, "u"))
            self.same(made)

    def test_words_and_dates(self):
        times = np.datetime64("2024-01-31T12:00:00") + np.arange(4)
        made = fr.events(["b", "a", "b", "ä"], ["x", "y", "x", "x"], times, split=["train", "train", "val", "test"])
        self.assertTrue(made.facts.words)
        self.assertEqual(made.facts.first_time, 1706702400.0)
        self.assertEqual((made.facts.split_train, made.facts.split_val), (2, 1))
        self.assertEqual(len(made.window(split="column").val), 1)

    def test_odd_columns(self):
        """A column is taken as it is meant, or refused: never changed silently."""
        ids = fr.events(np.array([1, 10, 2], object), [1, 2, 3], [1.0, 2.0, 3.0])
        self.assertFalse(ids.facts.words)
        self.assertEqual(ids.window(train=0.4).sources.tolist(), [1, 2, 10])
        dates = ["2020-01-01T00:00:00.25", "3000-01-01", "1500-01-01"]
        want = [-14831769600.0, 1577836800.25, 32503680000.0]
        for times in (dates, np.array(dates, "datetime64[ms]"), [repr(v) for v in want], np.array(want, object)):
            self.assertEqual(fr.events([1, 2, 3], [1, 2, 3], times).window(train=0.4).time.tolist(), want)
        milliseconds = np.array([1500, 2000, 2500], "timedelta64[ms]")
        self.assertEqual(fr.events([1, 2, 3], [1, 2, 3], milliseconds).window(train=0.4).time.tolist(), [1.5, 2, 2.5])
        for message, columns, more in (
                ("row 1: id None", [np.array(["a", None, "b"], object), [1, 2, 3], [1, 2, 3]], {}),
                ("row 1: id nan", [np.array(["a", np.nan, "b"], object), [1, 2, 3], [1, 2, 3]], {}),
                ("found 9223372036854775813", [np.array([1, 2, 2**63 + 5], np.uint64), [1, 2, 3], [1, 2, 3]], {}),
                ("row 1: time nan", [[1, 2, 3], [1, 2, 3], np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[s]")], {}),
                ('times: .*"x".*expected numbers or dates', [[1, 2, 3], [1, 2, 3], ["x", "y", "z"]], {}),
                ("split: found 256", [[1, 2, 3], [1, 2, 3], [1, 2, 3]], {"split": [0, 256, 2]}),
                ("split: found 1.5", [[1, 2, 3], [1, 2, 3], [1, 2, 3]], {"split": [0, 1.5, 2]}),
                (r"sources of shape \(1, 2\)", [[[1, 2]], [[1, 2]], [[1, 2]]], {}),
                (r"features of shape \(3, 2, 2\)", [[1, 2, 3], [1, 2, 3], [1, 2, 3], np.zeros((3, 2, 2))], {})):
            with self.assertRaisesRegex(fr.InputError, message):
                fr.events(*columns, **more)
        with self.assertRaisesRegex(fr.InputError, "catalog: found 1.7, expected whole numbers"):
            fr.synth("tiny").window(catalog=[1.7, 3, 5])

    def test_dyglib_folder(self):
        with tempfile.TemporaryDirectory() as place:
            folder = os.path.join(place, "ml_mine")
            os.mkdir(folder)
            c = columns()
            with open(os.path.join(folder, "ml_mine.csv"), "w") as file:
                file.write(",u,i,ts,label,idx\n")
                for k in range(300):
                    file.write(f"{k},{c['user_id'][k] + 1},{c['item_id'][k] + 21},{c['timestamp'][k]},0,{k + 1}\n")
            np.save(os.path.join(folder, "ml_mine.npy"),
                    np.vstack([np.zeros((1, 2)), np.column_stack([c["f0"], c["f1"]])]))
            made = fr.read(folder)
            self.assertEqual((len(made), made.facts.feature_width), (300, 2))
            np.testing.assert_array_equal(made.window(0).features[:, 0], c["f0"])

    def test_temporal_data(self):
        """PyG's TemporalData by its attributes, without PyG."""
        c = self.columns
        self.same(fr.events(types.SimpleNamespace(src=c["user_id"], dst=c["item_id"], t=c["timestamp"],
                                                  msg=np.column_stack([c["f0"], c["f1"]]))))

    def test_tgb_dataset(self):
        """A data set of TGB by its attributes, without TGB."""
        c = self.columns
        mask = np.arange(300)
        data = types.SimpleNamespace(
            full_data={"sources": c["user_id"], "destinations": c["item_id"], "timestamps": c["timestamp"],
                       "edge_feat": np.column_stack([c["f0"], c["f1"]])},
            train_mask=mask < 200, val_mask=(mask >= 200) & (mask < 250), test_mask=mask >= 250)
        made = fr.events(data)
        window = made.window(0, split="column")
        self.assertEqual((len(window.train), len(window.val), len(window.test)), (200, 50, 50))

    @needs("pandas")
    def test_pandas(self):
        import pandas

        frame = pandas.DataFrame(self.columns)
        self.same(fr.events(frame))
        frame["timestamp"] = pandas.to_datetime(frame["timestamp"], unit="s")
        self.same(fr.events(frame))
        ranking = self.want.window().rank("baseline:recency")
        self.assertEqual(list(ranking.to_pandas().columns), list(ranking.records.dtype.names))

    @needs("polars")
    def test_polars(self):
        import polars

        self.same(fr.events(polars.DataFrame(self.columns)))
        ranking = self.want.window().rank("baseline:recency")
        self.assertEqual(ranking.to_polars()["above"].to_list(), ranking.records["above"].tolist())

    @needs("pyarrow")
    def test_arrow(self):
        import pyarrow

        table = pyarrow.table(self.columns)
        self.same(fr.events(table))

        class Only:
            def __arrow_c_stream__(self, requested_schema=None):
                return table.__arrow_c_stream__(requested_schema)

        self.same(fr.events(Only()))


class Torch(unittest.TestCase):
    @needs("torch")
    def test_tensors(self):
        import torch

        window = fr.synth("tiny").window()
        scores = torch.rand(len(window.ranked), len(window.catalog), requires_grad=True)
        want = window.rank(scores.detach().numpy()).records.tobytes()
        self.assertEqual(window.rank(scores).records.tobytes(), want)
        self.assertEqual(window.rank(scores.double()).records.tobytes(), want)
        half = scores.bfloat16()
        self.assertEqual(window.rank(half).records.tobytes(), window.rank(half.float()).records.tobytes())
        made = fr.events(torch.arange(40) % 5, torch.arange(40) % 7, torch.arange(40.0))
        self.assertEqual(len(made), 40)

    @needs("torch")
    def test_weights_both_ways(self):
        import torch

        window = fr.synth("tiny").window()
        run = window.train("craft", epochs=1, dim=8, layers=1, history=8)
        state = run.state_dict()
        self.assertTrue(all(isinstance(t, torch.Tensor) for t in state.values()))
        with tempfile.TemporaryDirectory() as place:
            same = run.save_weights(state, os.path.join(place, "same.safetensors"))
            with open(same.checkpoint, "rb") as a, open(run.checkpoint, "rb") as b:
                self.assertEqual(a.read(), b.read())
            changed = run.save_weights({k: v * 0.5 for k, v in state.items()}, os.path.join(place, "b.safetensors"))
            self.assertNotEqual(window.rank(changed).records.tobytes(), window.rank(run).records.tobytes())
            with self.assertRaises(fr.InputError):
                run.save_weights({"nonsense": 1}, os.path.join(place, "c.safetensors"))
            with self.assertRaises(fr.ForceError):
                run.save_weights(state, same.checkpoint)


class Bar(unittest.TestCase):
    @needs("tqdm")
    def test_progress(self):
        done = subprocess.run([sys.executable, "-c", """
import fullrank as fr
w = fr.synth("tiny").window(val=0.1)
w.train("craft", epochs=2, dim=8, layers=1, history=8, progress=True)
"""], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("epoch", done.stderr)

    @needs("tqdm")
    def test_study(self):
        with tempfile.TemporaryDirectory() as place:
            begin = time.monotonic()
            done = subprocess.run([sys.executable, "-c", """
import fullrank as fr
fr.study({"data": {"drawn": {"synth": "tiny", "events": 2000}}, "protocol": {"window": 0}, "diagnostic-window": 0,
          "baselines": ["recency"], "models": ["craft"], "seeds": [7],
          "settings": {"epochs": 60, "dim": 8, "history": 8}}, "study", progress=True)
"""], capture_output=True, text=True, cwd=place)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("craft/bce/7/train", done.stderr)
        most = 40 + 15 * (time.monotonic() - begin)  # one bar, drawn every tenth of a second, not one for each call
        self.assertLess(done.stderr.count("ms/s") + done.stderr.count("? ms"), most)


class Weights(unittest.TestCase):
    def test_numpy(self):
        window = fr.synth("tiny").window()
        with tempfile.TemporaryDirectory() as place:
            run = window.train("craft", os.path.join(place, "run"), epochs=1, dim=8, layers=1, history=8)
            again = fr.load(os.path.join(place, "run"))
            for name, array in run.weights().items():
                np.testing.assert_array_equal(array, again.weights()[name])
            same = again.save_weights(run.weights(), os.path.join(place, "same.safetensors"))
            self.assertEqual(window.rank(same).records.tobytes(), window.rank(run).records.tobytes())
            stopped = window.events.window(val=0.1).train("craft", epochs=50, dim=8, layers=1, history=8, select="mrr",
                                                          patience=1)
            self.assertLess(int(stopped.metadata["epochs_done"]), 50)
            # Interrupted and resumed, or not: the same bits.
            longer = window.train("craft", os.path.join(place, "run"), epochs=2, dim=8, layers=1, history=8, resume=True)
            whole = window.train("craft", epochs=2, dim=8, layers=1, history=8)
            for name, array in whole.weights().items():
                np.testing.assert_array_equal(array, longer.weights()[name])


class Types(unittest.TestCase):
    @needs("mypy")
    def test_mypy(self):
        package = os.path.dirname(fr.__file__)
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-warn-return-any",
                               "--ignore-missing-imports", "--cache-dir", os.devnull,
                               package], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
