"""An evaluation written for TGB, with fullrank's Evaluator in place of py-tgb's: the same numbers to the last bit, for any
data set; then the same scores against every destination.

    python tgb_evaluator.py
"""
import numpy as np

import fullrank as fr
from fullrank.tgb import Evaluator  # was: from tgb.linkproppred.evaluate import Evaluator

window = fr.synth("tiny", events=3000).window(0)
popular = np.bincount(window.train.destination, minlength=len(window.candidates)).astype(np.float32)
evaluator = Evaluator("my-own-set")
draw = np.random.default_rng(1)
sampled = []
for destination in window.test.destination:
    others = np.setdiff1d(np.arange(len(window.candidates)), destination)
    negatives = draw.choice(others, 20, replace=False)
    sampled.append(evaluator.eval({"y_pred_pos": popular[[destination]], "y_pred_neg": popular[negatives],
                                   "eval_metric": ["mrr"]})["mrr"])

full = window.rank(lambda batch: np.tile(popular[window.catalog_numbers], (len(batch), 1)), "popular")
print(f"among 20 drawn negatives {np.mean(sampled):.4f}, in expectation {full.expected('uniform', k=20).mrr:.4f}, "
      f"against every destination {full.mrr:.4f}")
