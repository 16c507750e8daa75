"""The example of the manual, and the ways in: one model, the same bytes."""

import json
import os
import tempfile
import unittest
import warnings

import numpy as np

import fullrank as fr


class Popular:
    """Scores by how often, and how lately, a destination was met: something that learns from the truth."""

    def __init__(self, window):
        self.window = window
        self.count = np.zeros(len(window.candidates), np.float32)
        self.update(window.train.destination)

    def __call__(self, source, time, catalog):
        places = np.searchsorted(self.window.candidates, catalog)
        return np.tile(self.count[places], (len(source), 1))

    def update(self, destination):
        np.add.at(self.count, destination, 1)


class Example(unittest.TestCase):
    def test_manual(self):
        """SEAM 3, line by line, on the tiny preset."""
        with tempfile.TemporaryDirectory() as place:
            events = fr.synth("tiny")
            window = events.window(32768, train=0.85)
            model = Popular(window)
            self.assertEqual(len(window.train.source), len(window.train.destination))
            self.assertEqual(len(window.train.time), window.facts.train)
            feed = window.feed("mine", seed=7)
            for batch in feed.batches(200):
                truth = feed.submit(model(batch.source, batch.time, window.catalog))
                model.update(truth.destination)
            mine = feed.finish()
            craft = window.rank(window.train("craft-r", seed=7, epochs=1, dim=8, layers=1, history=16))
            edge = window.rank("baseline:edgebank")
            for ranking in (mine, craft, edge):
                self.assertTrue(0 < ranking.mrr <= ranking.hits(100) <= 1)
            sampled = mine.expected("uniform", k=20)
            self.assertGreater(sampled.mrr, mine.mrr)
            self.assertEqual(sampled.mrr, mine.expected("uniform-20").mrr)
            self.assertEqual(len(mine.expected("tgb-hist")), 5)
            self.assertEqual(mine.records["event"][0], window.facts.first + window.ranked.start)
            mine.save(os.path.join(place, "mine.npy"))
            again = fr.load(os.path.join(place, "mine.npy"))
            self.assertEqual(again.records.tobytes(), mine.records.tobytes())
            c = fr.compare(mine, edge, craft, resamples=100)
            self.assertEqual(c.models, ["mine", "baseline:edgebank", "craft-r"])
            self.assertIn("\\toprule", c.to_latex())
            self.assertIn("| mine", c.to_markdown())
            self.assertIn("<table", c._repr_html_())
            page = fr.report([mine, edge, craft], os.path.join(place, "report.html"))
            self.assertIn("edgebank", page.html())
            self.assertIn("<iframe", page._repr_html_())


class Ways(unittest.TestCase):
    """A model without memory, given in every way."""

    @classmethod
    def setUpClass(cls):
        cls.window = fr.synth("tiny").window()
        rng = np.random.default_rng(1)
        cls.u = rng.integers(-128, 128, (len(cls.window), 8)).astype(np.float32)
        cls.v = rng.integers(-128, 128, (len(cls.window.catalog), 8)).astype(np.float32)
        cls.bias = rng.integers(-128, 128, len(cls.window.catalog)).astype(np.float32)

    def scores(self, event):
        """Products as rank_factors has them: fused multiply-adds in order (numbers of 8 bits: all sums are exact)."""
        return self.u[event] @ self.v.T + self.bias

    def all_scores(self):
        return np.stack([self.scores(event) for event in self.window.ranked.event])

    def fed(self, batch_size, **options):
        feed = self.window.feed("m", seed=3, **options)
        for batch in feed.batches(batch_size):
            feed.submit(np.stack([self.scores(event) for event in batch.event]))
        return feed.finish()

    def test_same_bytes(self):
        window, scores = self.window, self.all_scores()
        want = self.fed(200).records.tobytes()
        self.assertEqual(self.fed(1).records.tobytes(), want)
        self.assertEqual(self.fed(10**6).records.tobytes(), want)
        self.assertEqual(window.rank(scores, "m").records.tobytes(), want)
        factors = window.rank_factors(self.u[window.ranked.event], self.v, self.bias, "m")
        self.assertEqual(factors.records.tobytes(), want)
        function = window.rank(lambda batch: np.stack([self.scores(event) for event in batch.event]), "m")
        self.assertEqual(function.records.tobytes(), want)

        class Stateful:
            seen = 0

            def score(this, batch):
                return self.scores(batch.event[0])

            def observe(this, event):
                this.seen += 1

        stateful = Stateful()
        self.assertEqual(window.rank(stateful, "m").records.tobytes(), want)
        self.assertEqual(stateful.seen, len(window))
        with tempfile.TemporaryDirectory() as place:
            covered = np.isin(window.candidates[window.ranked.destination], window.catalog)
            np.save(os.path.join(place, "m.npy"), scores[covered])
            file = window.rank("scores:" + os.path.join(place, "m.npy"))
            self.assertEqual(file.records.tobytes(), want)

    def test_samples(self):
        """A sample's records are rows of all, whatever brings the scores."""
        window, scores = self.window, self.all_scores()
        everything, sample = self.fed(200).records, {"sample_events": 50, "sample_seed": 9}
        want = window.rank(scores, "m", **sample)
        self.assertEqual(len(want.records), 50)
        rows = np.isin(everything["event"], want.records["event"])
        self.assertEqual(everything[rows].tobytes(), want.records.tobytes())
        self.assertIn("50 of 900", str(want))
        function = window.rank(lambda batch: np.stack([self.scores(event) for event in batch.event]), "m", **sample)
        self.assertEqual(function.records.tobytes(), want.records.tobytes())
        for size in (1, 7, 200, 10**6):
            feed, asked, told = window.feed("m", **sample), [], []
            for batch in feed.batches(size):
                np.testing.assert_array_equal(batch.source, window.source[batch.event])
                asked.extend(batch.event)
                told.extend(feed.submit(np.stack([self.scores(event) for event in batch.event])).event)
            self.assertEqual(feed.finish().records.tobytes(), want.records.tobytes())
            self.assertEqual(told, list(window.ranked.event))
            self.assertEqual(sorted(set(asked)), asked)
            self.assertLessEqual(len(asked), 51)  # and the first test event
        with tempfile.TemporaryDirectory() as place:
            listed = os.path.join(place, "list.npy")
            self.assertEqual(window.write_list(listed, **sample).events, 50)
            np.testing.assert_array_equal(np.load(listed)["event"], want.records["event"])
        with self.assertRaisesRegex(fr.UsageError, "counts are those of all events"):
            window.rank("counts:mine.npy", **sample)

    def test_types(self):
        scores = self.all_scores()
        want = self.fed(200).records.tobytes()
        for given in (scores.astype(np.float64), np.asfortranarray(scores), scores.tolist(), memoryview(scores)):
            self.assertEqual(self.window.rank(given).records.tobytes(), want)
        # Scores that are equal only as float32 are not tied.
        with self.assertRaisesRegex(fr.UsageError, "factors of shapes"):
            self.window.rank_factors(self.u, self.v[:, :3])
        close = np.arange(scores.shape[1], dtype=np.float64) * 1e-12 + 1
        ranking = self.window.rank(np.tile(close, (len(scores), 1)))
        self.assertEqual(ranking.records["tied"].max(), 0)
        # Neither is what float64 cannot tell apart: times in nanoseconds, say.
        order = np.random.default_rng(5).permuted(np.tile(np.arange(scores.shape[1]), (len(scores), 1)), axis=1)
        want = self.window.rank(order).records[["above", "tied"]].tolist()
        for base, kind in ((17 * 10**17, np.int64), (-17 * 10**17, np.int64), (2**64 - 1000, np.uint64), (2**24, np.int32)):
            found = self.window.rank(order.astype(kind) + np.array(base, kind)).records[["above", "tied"]].tolist()
            self.assertEqual(found, want)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numbers that float32 does not have are no reason for NumPy's warnings
            self.assertEqual(self.window.rank(order * 1e300).records[["above", "tied"]].tolist(), want)
        with self.assertRaisesRegex(fr.InputError, "masked"):
            self.window.rank(np.ma.masked_equal(order, 3))
        with self.assertRaisesRegex(fr.InputError, "counts: found 0.5, expected whole numbers"):
            self.window.rank_counts(np.full(900, 0.5), np.zeros(900))
        with self.assertRaisesRegex(fr.InputError, "found 4294967297"):
            self.window.rank_counts(np.full(900, 2**32 + 1), np.zeros(900))

    def test_negatives(self):
        """Lists as an array are those of a file."""
        window, scores = self.window, self.all_scores()
        rng = np.random.default_rng(2)
        lists = np.stack([rng.permutation(np.setdiff1d(window.catalog, [one]))[:6]
                          for one in window.candidates[window.ranked.destination]])
        lists[::3, 4:] = -1
        column = {int(id): k for k, id in enumerate(window.catalog)}
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "negatives.npy")
            np.save(path, lists)
            want = window.rank(scores, "m", negatives=path)
        found = window.rank(scores, "m", negatives=lists)
        self.assertEqual(found.records.tobytes(), want.records.tobytes())
        self.assertEqual(found.protocol, want.protocol)
        for k, one in enumerate(found.records):
            mine = scores[k, column[int(one["destination"])]]
            listed = np.array([scores[k, column[int(id)]] for id in lists[k] if id >= 0])
            self.assertEqual((one["n"], one["above"], one["tied"]),
                             (len(listed) + 1, (listed > mine).sum(), (listed == mine).sum()))
        with self.assertRaisesRegex(fr.InputError, "negatives: found .*5, expected whole numbers"):
            window.rank(scores, negatives=lists + 0.5)

    def test_arguments_without_effect(self):
        """What a scorer cannot use is refused, not ignored."""
        window = self.window
        for given in ({"name": "m"}, {"model": "m"}, {"catalog_only": True}):
            with self.assertRaisesRegex(fr.UsageError, next(iter(given))):
                window.rank("baseline:recency", **given)
        with self.assertRaisesRegex(fr.UsageError, "seed"):
            window.rank(window.scorer("baseline:recency"), seed=3)
        with self.assertRaisesRegex(fr.UsageError, "unknown option epohcs, did you mean epochs"):
            window.train("craft", epohcs=1)
        with self.assertRaisesRegex(fr.UsageError, "without a null character"):
            window.feed("a\0b")
        with self.assertRaisesRegex(fr.UsageError, "threads: found -1"):
            window.rank("baseline:recency", threads=-1)

    def test_all_candidates(self):
        window = fr.synth("tiny").window(2000, train=0.3)
        self.assertLess(len(window.catalog), len(window.candidates))
        wide = np.random.default_rng(0).random((len(window.ranked), len(window.candidates)), dtype=np.float32)
        narrow = np.ascontiguousarray(wide[:, window.catalog_numbers])
        a, b = window.rank(narrow), window.rank(wide, catalog_only=False)
        self.assertEqual(a.mrr, b.mrr)
        self.assertTrue(np.isnan(a.metric("mrr-available")))
        self.assertFalse(np.isnan(b.metric("mrr-available")))

    def test_views(self):
        window, train = self.window, self.window.train
        self.assertTrue(np.shares_memory(train.source, window.source))
        self.assertTrue(np.shares_memory(window.ranked.time, window.time))
        for array in (window.source, window.time, window.candidates, self.fed(100).records):
            self.assertFalse(array.flags.writeable)
        source = window.train.source
        total = int(source.sum())
        window = None
        self.window.__class__  # the view keeps the memory alive, whoever else is gone
        self.assertEqual(int(source.sum()), total)

    def test_views_outlive_their_owner(self):
        source = fr.synth("tiny").window().train.source
        records = fr.synth("tiny").window().rank("baseline:random").records
        import gc

        gc.collect()
        self.assertEqual(int(source.min()), 0)
        self.assertEqual(len(records), 900)

    def test_histories(self):
        window = fr.synth("tiny").window(order="strict")
        rng = np.random.default_rng(0)
        for event in rng.integers(0, len(window), 50):
            before = window.time < window.time[event]
            self.assertEqual(window.cut(event), int(before.sum()))
            source, destination = window.source[event], window.destination[event]
            mine = np.flatnonzero(before & (window.source == source))
            np.testing.assert_array_equal(window.source_history(source, event), mine)
            np.testing.assert_array_equal(window.source_history(source, event, 3), mine[-3:])
            np.testing.assert_array_equal(window.destination_history(destination, event),
                                          np.flatnonzero(before & (window.destination == destination)))
            pair = mine[window.destination[mine] == destination]
            np.testing.assert_array_equal(window.pair_history(source, destination, event), pair)
            first = mine[np.sort(np.unique(window.destination[mine], return_index=True)[1])]
            np.testing.assert_array_equal(window.met(source, event), first)


class NoLeak(unittest.TestCase):
    """What a feed hands out tells nothing of a destination before its scores are in."""

    def run_feed(self, window, size):
        feed, out = window.feed("m"), []
        for batch in feed.batches(size):
            self.assertEqual([n for n in dir(batch) if not n.startswith("_")], ["event", "source", "time"])
            with self.assertRaisesRegex(AttributeError, "arrives after"):
                batch.destination
            out.append((batch.event.tobytes(), batch.source.tobytes(), batch.time.tobytes()))
            truth = feed.submit(np.zeros((len(batch), feed.row)))
            out.append(truth.destination.copy())
        return out

    def test_queries_do_not_depend_on_destinations(self):
        """Destinations from the middle of the test part on are redrawn: all that was told before keeps its bytes."""
        whole = fr.synth("tiny").window(0)
        rng = np.random.default_rng(0)
        middle = whole.test.start + len(whole.test) // 2
        changed = whole.destination.astype(np.int64)
        changed[middle:] = rng.permutation(changed[middle:])
        make = lambda d: fr.events(whole.source, d, whole.time).window(0, catalog=np.arange(100))  # noqa: E731
        a, b = make(whole.destination.astype(np.int64)), make(changed)
        first, second = self.run_feed(a, 50), self.run_feed(b, 50)
        for k, (one, two) in enumerate(zip(first, second)):
            start = whole.test.start + 50 * (k // 2)
            if k % 2 == 0:
                self.assertEqual(one, two)
            elif start + 50 <= middle:
                np.testing.assert_array_equal(one, two)

    def test_order_of_calls(self):
        window = fr.synth("tiny").window()
        feed = window.feed("m")
        with self.assertRaisesRegex(fr.UsageError, "no queries wait"):
            feed.submit(np.zeros((1, feed.row)))
        batch = feed.next(10)
        with self.assertRaisesRegex(fr.UsageError, "wait for their scores"):
            feed.next(10)
        with self.assertRaisesRegex(fr.UsageError, "test events have scores"):
            feed.finish()
        with self.assertRaisesRegex(fr.UsageError, r"shape \(9, 100\), expected \(10, 100\)"):
            feed.submit(np.zeros((9, feed.row)))
        bad = np.zeros((10, feed.row), np.float32)
        bad[3, 5] = np.nan
        with self.assertRaisesRegex(fr.InputError, "nan"):
            feed.submit(bad)
        self.assertEqual(feed.facts.pending, 10)
        truth = feed.submit(np.zeros((10, feed.row)))
        np.testing.assert_array_equal(truth.event, batch.event)

    def test_strict_order_tells_later(self):
        time = np.array([0, 1, 2, 3, 3, 3, 4, 5], float)
        window = fr.events(np.zeros(8, int), np.arange(8) % 3, time).window(split="rows:2,2", order="strict")
        feed, told = window.feed("m"), []
        for batch in feed.batches(1):
            truth = feed.submit(np.zeros((1, feed.row)))
            told.append(list(truth.event))
        self.assertEqual(told, [[2], [], [], [3, 4, 5], [6], [7]])


class Records(unittest.TestCase):
    def test_metrics_are_those_of_the_tool(self):
        tool = os.environ.get("FULLRANK_TOOL", "")
        if not tool:
            self.skipTest("FULLRANK_TOOL is not set")
        import subprocess

        with tempfile.TemporaryDirectory() as place:
            ranking = fr.synth("tiny").window().rank("baseline:edgebank")
            path = os.path.join(place, "r.npy")
            ranking.save(path)
            found = json.loads(subprocess.run([tool, "metrics", path, "--json", "-m", "mrr,hits@10,mrr-new,ties"],
                                              check=True, capture_output=True).stdout)
            want = ranking.metrics(["mrr", "hits@10", "mrr-new", "ties"])
            self.assertEqual([found["mrr"], found["hits"]["10"], found["mrr_new"], found["ties"]], list(want.values()))
            sample = fr.synth("tiny").window().rank("baseline:edgebank", sample_events=100)
            sample.save(path, force=True)
            cut = sample.slices("repeated")
            for flags, over in (["--by", "repeated"], "sample"), (["--interval"], "time"):  # and so are a sample's intervals
                found = json.loads(subprocess.run([tool, "metrics", path, "--json", "-m", "mrr", *flags], check=True,
                                                  capture_output=True).stdout)
                self.assertEqual(tuple(found["intervals"]["mrr"].values()), sample.interval("mrr", over=over))
                for one, part in zip(found.get("slices", {}).get("repeated", []), cut):
                    self.assertEqual([one["intervals"]["low"]["mrr"], one["intervals"]["high"]["mrr"]],
                                     list(part.interval("mrr", over=over)))
            self.assertIn("repeated (estimate): MRR", str(cut[0]))
            window = fr.synth("wikipedia", events=3000).window(train=0.5)
            sample, whole = window.rank("baseline:recency", sample_events=50), window.rank("baseline:recency")
            sample.save(path, force=True)
            found = json.loads(subprocess.run([tool, "metrics", path, "--json", "-m", "coverage"], check=True,
                                              capture_output=True).stdout)
            self.assertLess(whole.metric("coverage"), 1)  # and is known without a sample
            self.assertEqual([found["coverage"], sample.metric("coverage")], [whole.metric("coverage")] * 2)

    def test_slices(self):
        ranking = fr.synth("tiny").window().rank("baseline:recency")
        cut = ranking.slices("repeated")
        self.assertEqual([s.label for s in cut], ["repeated", "new"])
        self.assertEqual(sum(len(s) for s in cut), len(ranking))
        self.assertEqual(cut[1].mrr, ranking.metric("mrr-new"))
        low, high = ranking.interval("mrr", resamples=200)
        self.assertTrue(low < ranking.mrr < high)
        self.assertAlmostEqual(float(np.mean(1 / ranking.ranks)), ranking.mrr, 12)
        window = fr.synth("tiny").window()
        sample = window.rank("baseline:recency", sample_events=200)
        self.assertEqual((len(sample), sample.facts.covered), (200, 900))
        low, high = sample.interval("mrr", over="sample")
        self.assertTrue(low < sample.mrr < high)
        pair = fr.compare(sample, window.rank("baseline:edgebank", sample_events=200), resamples=100)
        self.assertEqual(pair.facts.sample_of, 900)
        self.assertEqual(len(pair.facts.pairs[0].sample), len(pair.facts.columns))
        drawn = ranking.draws("uniform", [20], seeds=20)[0]
        self.assertAlmostEqual(drawn.mrr, ranking.expected("uniform", k=20).mrr, delta=0.01)
        self.assertEqual(drawn.each.shape, (20,))
        self.assertEqual(ranking.draws("uniform", 20, seeds=20)[0].mrr, drawn.mrr)
        self.assertEqual(ranking.expected("uniform", k=np.int64(20), hits=10), ranking.expected("uniform", k=20, hits=[10]))
        self.assertEqual(ranking.interval(sampler="uniform", k=20), ranking.interval(sampler="uniform", k=[20]))
        for names, given in (["mrr"], {"sampler": "uniform", "k": 20}), ([], {"sampler": "uniform"}), ([], {"k": 20}):
            with self.assertRaisesRegex(fr.UsageError, "names of metrics, or a sampler"):
                ranking.interval(*names, **given)
        with self.assertRaisesRegex(fr.UsageError, "uniform-20 and k=5, expected one or the other"):
            ranking.expected("uniform-20", k=5)
        with self.assertRaisesRegex(fr.UsageError, "-1 seeds"):
            ranking.draws("uniform", 5, seeds=-1)


if __name__ == "__main__":
    unittest.main()
