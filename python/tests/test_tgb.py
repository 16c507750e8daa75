"""fullrank.tgb.Evaluator: py-tgb's values, and errors where it says nothing."""

import importlib.util
import unittest

import numpy as np

import fullrank as fr
from fullrank.tgb import Evaluator


def plain(positive, negative, k):
    """The definition, event by event."""
    ranks = [1 + (row > p).sum() + 0.5 * (row == p).sum() for p, row in zip(positive, negative)]
    return np.mean([r <= k for r in ranks]), np.mean([1 / r for r in ranks])


def cases():
    rng = np.random.default_rng(1)
    for events in (1, 7, 300):
        for negatives in (0, 1, 20, 999):
            for kind in (np.float32, np.float64):
                yield (rng.integers(0, 9, events).astype(kind),  # few values: ties
                       rng.integers(0, 9, (events, negatives)).astype(kind))


class Values(unittest.TestCase):
    def test_definition(self):
        for positive, negative in cases():
            for k in (1, 10):
                found = Evaluator("any name", k).eval({"y_pred_pos": positive, "y_pred_neg": negative,
                                                       "eval_metric": ["mrr", "hits@"]})
                hits, mrr = plain(positive, negative, k)
                self.assertAlmostEqual(found[f"hits@{k}"], hits, 5)
                self.assertAlmostEqual(found["mrr"], mrr, 5)

    @unittest.skipUnless(importlib.util.find_spec("tgb") and importlib.util.find_spec("torch"), "no py-tgb here")
    def test_py_tgb(self):
        import torch
        from tgb.linkproppred.evaluate import Evaluator as Theirs

        ours, theirs = Evaluator("tgbl-wiki"), Theirs("tgbl-wiki")
        for positive, negative in cases():
            for make in (np.asarray, torch.tensor):
                given = {"y_pred_pos": make(positive), "y_pred_neg": make(negative), "eval_metric": ["mrr"]}
                self.assertEqual(ours.eval(given), theirs.eval(given))
                one = {"y_pred_pos": np.array([positive[0]]), "y_pred_neg": negative[0], "eval_metric": ["hits@"]}
                self.assertEqual(ours.eval(one), theirs.eval(one))
        infinite = {"y_pred_pos": np.array([np.inf]), "y_pred_neg": np.array([np.inf, 1, -np.inf]), "eval_metric": ["mrr"]}
        self.assertEqual(ours.eval(infinite), theirs.eval(infinite))
        for wrong in ({}, {"eval_metric": ["mrr"]}, {"eval_metric": ["ap"], "y_pred_pos": 1, "y_pred_neg": 1}):
            errors = []
            for evaluator in (ours, theirs):
                with self.assertRaises(Exception) as caught:
                    evaluator.eval(wrong)
                errors.append(type(caught.exception))
            self.assertEqual(*errors)


class Errors(unittest.TestCase):
    def test_nan(self):
        good = {"y_pred_pos": np.zeros(2), "y_pred_neg": np.zeros((2, 3)), "eval_metric": ["mrr"]}
        for key, place, said in (("y_pred_pos", 1, r"y_pred_pos\[1\]"), ("y_pred_neg", (1, 2), r"y_pred_neg\[1, 2\]")):
            bad = {k: v.copy() if k.startswith("y") else v for k, v in good.items()}
            bad[key][place] = np.nan
            with self.assertRaisesRegex(fr.InputError, said + " is NaN"):
                Evaluator("x").eval(bad)
        with self.assertRaisesRegex(fr.InputError, r"shape \(3, 4\), expected \(2, negatives\)"):
            Evaluator("x").eval(dict(good, y_pred_neg=np.zeros((3, 4))))


if __name__ == "__main__":
    unittest.main()
