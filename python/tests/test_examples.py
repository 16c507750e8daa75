"""The programs of examples/python: the same records as other ways to the same scores, with the real libraries where they
are installed (DyGLib is no package: $FULLRANK_DYGLIB names a clone of it)."""

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import unittest

import numpy as np

import fullrank as fr

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
WIKIPEDIA = os.path.join(os.environ.get("FULLRANK_DATA", os.path.join(HERE, "..", "..", "..", "shared", "data")),
                         "wikipedia.csv.gz")


def example(name):
    spec = importlib.util.spec_from_file_location("example_" + name, os.path.join(EXAMPLES, "python", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has(*names):
    missing = []
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
            continue
        missing.append(name)
    return missing


def needs(*names):
    missing = has(*names)
    return unittest.skipIf(missing, f"no {', '.join(missing)} here")


class Bank:
    """EdgeBank as a TGB loop has it."""

    def __init__(self, window):
        self.pairs = set(zip(window.sources[window.train.source], window.candidates[window.train.destination]))

    def score(self, src, dst, t):
        return np.array([pair in self.pairs for pair in zip(src, dst)], np.float32)

    def update(self, src, dst, t, msg):
        self.pairs.update(zip(src, dst))


class Loops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.window = fr.synth("tiny").window(2000)
        cls.edgebank = cls.window.rank("baseline:edgebank").records

    def same(self, records):
        for field in ("event", "above", "tied", "seen_above", "seen_tied", "pop_above", "score"):
            np.testing.assert_array_equal(records[field], self.edgebank[field])

    def test_tgb(self):
        bank = Bank(self.window)
        self.same(example("from_tgb").rank(self.window, bank.score, bank.update, batch=1).records)

    @needs("torch", "tgm.nn")
    def test_tgm(self):
        from tgm.nn import EdgeBankPredictor

        adapter = example("from_tgm")
        self.same(adapter.rank(self.window, EdgeBankPredictor(*adapter.training(self.window)), batch=1).records)

    @unittest.skipUnless(os.environ.get("FULLRANK_DYGLIB"), "no clone of DyGLib ($FULLRANK_DYGLIB)")
    @needs("torch")
    def test_dyglib(self):
        import torch

        sys.path.insert(0, os.environ["FULLRANK_DYGLIB"])
        from models.GraphMixer import GraphMixer
        from models.MemoryModel import MemoryModel
        from models.modules import MergeLayer
        from utils.DataLoader import Data
        from utils.utils import get_neighbor_sampler

        window, dim = fr.synth("tiny", events=1200).window(0), 8
        first = int(window.sources.max()) + 2
        src = window.sources[window.source] + 1
        dst = window.candidates[window.destination] - window.candidates.min() + first
        data = Data(src, dst, window.time.copy(), np.arange(1, len(src) + 1), np.zeros(len(src)))
        torch.manual_seed(1)
        nodes, edges = np.zeros((dst.max() + 1, dim)), np.zeros((len(src) + 1, dim))
        merge = MergeLayer(input_dim1=dim, input_dim2=dim, hidden_dim=dim, output_dim=1)
        sampler = get_neighbor_sampler(data, "recent")
        mixer = GraphMixer(nodes, edges, sampler, time_feat_dim=dim, num_tokens=5)
        jodie = MemoryModel(nodes, edges, sampler, time_feat_dim=dim, model_name="JODIE", num_layers=1, num_heads=2)
        jodie.memory_bank.__init_memory_bank__()
        rank = example("from_dyglib").rank
        whole = rank(window, torch.nn.Sequential(mixer, merge), first, num_neighbors=5, time_gap=50)
        again = rank(window, torch.nn.Sequential(mixer, merge), first, batch=7, num_neighbors=5, time_gap=50)
        np.testing.assert_allclose(whole.records["score"], again.records["score"], rtol=1e-4, atol=1e-6)
        self.assertEqual(len(rank(window, torch.nn.Sequential(jodie, merge), first, memory=True, num_neighbors=5).records),
                         len(window.ranked))


@needs("torch")
class TGN(unittest.TestCase):
    def compare(self, window, epochs):
        """The feed's records are those of a score file of the same model."""
        tgn, kept = example("tgn"), []
        mine = tgn.rank(window, tgn.train(window, epochs), keep=kept.append)
        covered = np.isin(window.ranked.destination, window.catalog_numbers)
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "scores.npy")
            np.save(path, np.concatenate(kept)[covered])
            file = window.rank("scores:" + path)
        self.assertEqual(mine.records.tobytes(), file.records.tobytes())
        return mine

    def test_tiny(self):
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        mine = self.compare(fr.synth("tiny").window(3000), 1)
        self.assertGreater(mine.mrr, 0.02)
        torch.set_num_threads(before)

    @unittest.skipUnless(os.environ.get("FULLRANK_SLOW"), "takes a minute ($FULLRANK_SLOW)")
    @unittest.skipUnless(os.path.exists(WIKIPEDIA), "real data not found")
    def test_wikipedia(self):
        print(f"# {self.compare(fr.read(WIKIPEDIA).window(), 3)}")


class Pages(unittest.TestCase):
    """The Python of docs/from-*.md runs as it stands, with what it calls by name."""

    def run_page(self, name, given):
        with open(os.path.join(HERE, "..", "..", "docs", name), encoding="utf-8") as file:
            blocks = file.read().split("```python\n")[1:]
        self.assertTrue(blocks)
        sys.path.insert(0, os.path.join(EXAMPLES, "python"))
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                for block in blocks:
                    exec(block.split("```")[0], given)
        finally:
            sys.path.pop(0)
        return given

    def test_tgb(self):
        window = fr.synth("tiny", events=3000).window(0, split="quantile", train=0.7, val=0.15)
        bank = Bank(window)
        columns = {"source": window.sources[window.source], "destination": window.candidates[window.destination],
                   "time": window.time}
        found = self.run_page("from-tgb.md", {"dataset": columns, "score": bank.score, "update": bank.update,
                                              "positive": np.zeros(2), "negative": np.zeros((2, 3))})
        self.assertEqual(found["mrr"], np.float32(0.4))  # a mean of float32, as py-tgb has it
        table = fr.explain(found["events"], "baseline:edgebank", from_="tgb", to="fullrank")
        self.assertIn("catalog", str(table))

    @needs("torch")
    def test_dyglib(self):
        import torch

        class Backbone(torch.nn.Module):
            def compute_src_dst_node_temporal_embeddings(self, src_node_ids, dst_node_ids, node_interact_times,
                                                         num_neighbors, time_gap):
                return torch.tensor(src_node_ids % 7).float()[:, None], torch.tensor(dst_node_ids % 5).float()[:, None]

        class Merge(torch.nn.Module):
            def forward(self, input_1, input_2):
                return input_1 * input_2

        with tempfile.TemporaryDirectory() as place:
            fr.synth("tiny", os.path.join(place, "data"), events=2000)
            found = self.run_page("from-dyglib.md", {"folder": os.path.join(place, "data"), "first": 900,
                                                     "model": torch.nn.Sequential(Backbone(), Merge())})
        self.assertEqual(found["mine"].facts.scorer, "dyglib-model")

    @unittest.skipUnless(hasattr(fr.Window, "rank_factors"), "no rank_factors")
    def test_pykeen(self):
        window = fr.synth("tiny", events=2000).window(0)
        rng = np.random.default_rng(1)
        shape = len(window.ranked), len(window.catalog)
        u, v = (rng.random((n, 4), dtype=np.float32) for n in shape)
        self.run_page("from-pykeen.md", {"fr": fr, "window": window, "u": u, "v": v, "bias": v[:, 0].copy(),
                                         "scores": rng.random(shape, dtype=np.float32)})


class Notebook(unittest.TestCase):
    @needs("nbclient", "nbformat", "ipykernel")
    def test_runs(self):
        import nbclient
        import nbformat

        with open(os.path.join(EXAMPLES, "fullrank.ipynb"), encoding="utf-8") as file:
            book = nbformat.read(file, as_version=4)
        with tempfile.TemporaryDirectory() as place:
            nbclient.NotebookClient(book, timeout=300, kernel_name="python3",
                                    resources={"metadata": {"path": place}}).execute()
        shown = [out.data for cell in book.cells for out in cell.get("outputs", []) if "data" in out]
        self.assertTrue(any("text/html" in data for data in shown))
        self.assertTrue(any("<svg" in data.get("image/svg+xml", "") for data in shown), "no figure is shown")


if __name__ == "__main__":
    unittest.main()
