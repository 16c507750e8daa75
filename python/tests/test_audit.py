"""Audits of Python scorers: planted leaks are found by the check that is meant for them, clean twins pass."""

import gc
import unittest

import numpy as np

import fullrank as fr

try:
    import torch
except ImportError:
    torch = None


def make_events(count=500, sources=13, destinations=29):
    """Sources with habits, three events at a time, features."""
    rng = np.random.default_rng(5)
    source = rng.integers(0, sources, count)
    destination = np.where(rng.random(count) < 0.6, source * 2 % destinations, rng.integers(0, destinations, count))
    time = np.arange(count) // 3 * 40.0
    return fr.events(source, destination, time, features=rng.random((count, 2)).astype(np.float32))


class Counter:
    """Pairs met so far, and popularity: remembers nothing but the window."""

    leak = ""
    many = 200

    def __init__(self, window):
        self.window, self.asked = window, 0

    def score(self, batch):
        self.asked += 1
        return np.stack([self.row(int(e), int(s), len(batch)) for e, s in zip(batch.event, batch.source)])

    def row(self, event, source, company):
        w = self.window
        row = np.zeros(len(w.candidates), np.float32)
        np.add.at(row, w.destination[w.source_history(source, event)], 1)
        row += np.bincount(w.destination[: w.cut(event)], minlength=len(row)) / 1000
        if self.leak == "next" and event + 1 < len(w):
            row[w.destination[event + 1]] += 1e-3
        if self.leak == "features":
            row += 1e-3 * w.features[event, 0] * np.cos(np.arange(len(row)) ** 2)
        if self.leak == "same-time":
            np.add.at(row, w.destination[w.cut(event):event], 1e-2)
        if self.leak == "company":
            row += 1e-3 * company
        if self.leak == "state":
            row += 1e-3 * self.asked
        if self.leak == "order":
            row += 1e-4 * np.arange(len(row))
        if self.leak == "nan":
            row[3] = np.nan
        row = row[w.catalog_numbers]
        if self.leak == "softmax":
            row = np.exp(row) / np.exp(row).sum()
        return row.astype(np.float32)


class Memory:
    """A small TGN: a state per node, updated by a recurrent cell with every event that is observed."""

    width = 8

    def __init__(self, window, early=False):
        rng = np.random.default_rng(0)
        self.window, self.early, self.seen = window, early, 0
        self.weight = rng.normal(size=(2 * self.width + 1, self.width)) / 4
        self.source = rng.normal(size=(len(window.sources), self.width))
        self.destination = rng.normal(size=(len(window.candidates), self.width))

    def update(self, source, destination, time):
        a, b = self.source[source], self.destination[destination]
        x = np.concatenate([a, b, [np.log1p(time)]])
        self.source[source], self.destination[destination] = np.tanh(x @ self.weight) + a / 2, np.tanh(
            x @ self.weight[::-1]) + b / 2

    def observe(self, event):
        if event.event >= self.seen:
            self.update(event.source, event.destination, float(event.time))
        self.seen = max(self.seen, event.event + 1)

    def score(self, batch):
        event, source = int(batch.event[0]), int(batch.source[0])
        if self.early:  # takes the events of this time first, and forgets that it has
            for i in range(max(self.seen, self.window.cut(event)), event):
                self.update(self.window.source[i], self.window.destination[i], float(self.window.time[i]))
                self.seen = i + 1
        return (self.destination[self.window.catalog_numbers] @ self.source[source])[None].astype(np.float32)


def leaky(leak):
    def make(window):
        scorer = Counter(window)
        scorer.leak = leak
        return scorer
    return make


class Audits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.window = make_events().window(train=0.7, order="strict")

    def test_counters(self):
        for leak, check in [("", []), ("next", ["future"]), ("features", ["future"]), ("same-time", ["same-time"]),
                            ("company", ["batch"]), ("softmax", ["candidates"]), ("state", ["state"]),
                            ("order", ["position"]), ("nan", ["numbers"])]:
            found = fr.audit(self.window, leaky(leak), events=16, streams=8)
            self.assertEqual(found.found, check, leak)
            self.assertEqual(bool(found), not check)
            self.assertTrue(found.badge.startswith("audited by fullrank"))

    def test_memory(self):
        """A TGN whose memory takes events of the same time before it scores."""
        clean = fr.audit(self.window, Memory, events=20, streams=10)
        self.assertEqual(clean.found, [])
        early = fr.audit(self.window, lambda w: Memory(w, True), events=20, streams=10)
        self.assertIn("same-time", early.found)
        self.assertNotIn("future", early.found)

    def test_findings(self):
        found = fr.audit(self.window, leaky("next"), "mine", seed=3, checks="future", events=20, streams=5)
        first = found.findings[0]
        self.assertEqual(first.severity, "leak")
        self.assertNotEqual(first.score, first.changed)
        self.assertRegex(first.again, r"^fullrank.audit\(window, make_scorer, checks='future', events='row:\d+', seed=3\)$")
        again = eval(first.again, {"fullrank": fr, "window": self.window, "make_scorer": leaky("next")})
        self.assertIn("future", again.found)
        self.assertIn("future: leak", str(found))
        self.assertIn("<table", found._repr_html_())

    def test_specs(self):
        for spec in ("baseline:recency", "baseline:random"):
            self.assertEqual(fr.audit(self.window, spec, events=30).found, [])
        run = self.window.train("craft", epochs=1, dim=8, history=8)
        self.assertEqual(fr.audit(self.window, run, events=10, streams=2).found, [])
        self.assertEqual(fr.audit(self.window, lambda w: run, events=10, streams=2).found, [])
        self.assertEqual(fr.audit(self.window, lambda w: w.scorer("baseline:markov"), events=10, streams=2).found, [])

    def test_windows_live_on(self):
        kept = []

        def make(window):
            kept.append((window, window.destination, window.time))
            return Counter(window)
        fr.audit(self.window, make, events=10, streams=4)
        gc.collect()
        for window, destination, time in kept:
            self.assertEqual(len(destination), len(time))
            self.assertTrue((np.diff(time) >= 0).all())
            self.assertLess(int(destination.max()), len(window.candidates))
        window = kept[-1][0]
        del kept
        with self.assertRaisesRegex(fr.UsageError, "audit"):
            window.rank("baseline:recency")

    def test_errors(self):
        def broken(window):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            fr.audit(self.window, broken)
        with self.assertRaises(ZeroDivisionError):
            fr.audit(self.window, lambda w: (lambda batch: 1 / 0))
        with self.assertRaises(fr.UsageError):
            fr.audit(self.window, "baseline:recency", checks="futur")
        with self.assertRaises(fr.UsageError):
            fr.audit(self.window, lambda w: (lambda batch: np.zeros((len(batch), 2))))


@unittest.skipIf(torch is None, "no torch")
class Padding(unittest.TestCase):
    """A small DyGFormer: histories of source and candidate, patched, attention over both, mean over patches. With
    `padded` it pads to the longest history of the call and lets attention and mean see the padding."""

    def make(self, padded):
        torch.manual_seed(0)
        width = 8
        encode = torch.nn.Linear(2, width)
        layer = torch.nn.TransformerEncoderLayer(width, 2, 16, dropout=0, batch_first=True).eval()
        head = torch.nn.Linear(width, 1)

        def open_on(window):
            def tokens(history, time):
                gap = np.log1p(time - window.time[history])
                return np.stack([gap, np.ones_like(gap)], 1).astype(np.float32)

            def score(batch):
                rows = []
                for event, source, time in zip(batch.event, batch.source, batch.time):
                    own = window.source_history(int(source), int(event), 20)
                    rows.append([np.concatenate([tokens(own, time), tokens(
                        window.destination_history(int(v), int(event), 20), time)]) for v in window.catalog_numbers])
                longest = max(len(x) for row in rows for x in row)
                room = longest if padded else 40
                x = np.zeros((len(rows), len(rows[0]), room, 2), np.float32)
                mask = np.ones(x.shape[:3], bool)
                for i, row in enumerate(rows):
                    for j, one in enumerate(row):
                        x[i, j, : len(one)], mask[i, j, : max(1, len(one))] = one, False
                with torch.no_grad():
                    h = encode(torch.from_numpy(x.reshape(-1, room, 2)))
                    hidden = None if padded else torch.from_numpy(mask.reshape(-1, room))
                    h = layer(h, src_key_padding_mask=hidden)
                    if padded:
                        mean = h.mean(1)
                    else:
                        keep = (~hidden).float()[..., None]
                        mean = (h * keep).sum(1) / keep.sum(1)
                    return head(mean).reshape(len(rows), -1)
            score.many = 16
            return score
        return open_on

    def test_dygformer(self):
        window = make_events(300, 40, 9).window(train=0.7)
        clean = fr.audit(window, self.make(False), events=10, streams=2)
        self.assertEqual(clean.found, [], str(clean))
        padded = fr.audit(window, self.make(True), events=10, streams=2, checks="future,batch,state")
        self.assertEqual(padded.found, ["batch"], str(padded))


if __name__ == "__main__":
    unittest.main()
