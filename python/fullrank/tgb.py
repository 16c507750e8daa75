"""TGB's Evaluator, for existing evaluation loops.

`from tgb.linkproppred.evaluate import Evaluator` becomes `from fullrank.tgb import Evaluator`: the same call, the same
values to the last bit, for a data set of any name. Two things differ, because py-tgb accepts them silently: a NaN score
is an error here (in py-tgb it gives rank 1), and so are shapes that do not fit.

A sampled list answers another question than the whole catalog. Pass the same scores, with a column per candidate, to
`Feed.submit`: its records give this number as an expectation (`Ranking.expected("tgb-rnd", k=20)`) and the exact one too.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import numpy as np

from . import _core
from ._core import Array
from ._fullrank import InputError

__all__ = ["Evaluator"]


class Evaluator:
    """Ranks positives against given negatives as py-tgb does: ties count half, and means are computed in float32.

    >>> import numpy as np
    >>> from fullrank.tgb import Evaluator
    >>> evaluator = Evaluator("any-name")
    >>> found = evaluator.eval({"y_pred_pos": np.array([0.5, 0.9]), "y_pred_neg": np.array([[0.7, 0.5], [0.1, 0.2]]),
    ...                         "eval_metric": ["mrr"]})
    >>> f"{found['mrr']:.2f}"
    '0.70'
    """

    def __init__(self, name: str, k_value: int = 10) -> None:
        self.name = name
        self.k_value = k_value  #: of hits@k
        self.valid_metric_list = ["hits@", "mrr"]

    def _scores(self, given: Mapping[str, Any]) -> Tuple[Array, Array]:
        if "eval_metric" not in given:
            raise RuntimeError("Missing key of eval_metric!")
        for metric in given["eval_metric"]:
            if metric not in self.valid_metric_list:
                raise ValueError(f"Unsupported eval metric: {metric}, not found in {self.valid_metric_list}")
        for key in ("y_pred_pos", "y_pred_neg"):
            if key not in given:
                raise RuntimeError(f"Missing key of {key}")
        positive = _core.host(given["y_pred_pos"]).reshape(-1, 1)
        negative = _core.host(given["y_pred_neg"])
        if negative.ndim > 2 or (negative.ndim == 2 and 1 < len(negative) != len(positive) > 1):
            raise InputError(f"y_pred_neg of shape {negative.shape}, expected ({len(positive)}, negatives)")
        for key, scores in (("y_pred_pos", positive), ("y_pred_neg", negative)):
            if scores.dtype.kind == "f" and np.isnan(scores).any():
                at = [int(k) for k in np.argwhere(np.isnan(scores))[0]]
                raise InputError(f"{key}{at[:1] if scores is positive else at} is NaN, expected a number")
        return positive, negative

    def eval(self, input_dict: Mapping[str, Any], verbose: bool = False) -> Dict[str, Any]:
        """`{"hits@10": ..., "mrr": ...}` of `{"y_pred_pos": [events], "y_pred_neg": [events, negatives],
        "eval_metric": ["mrr"]}`; scores are NumPy arrays, torch tensors or anything else that `Feed.submit` takes."""
        positive, negative = self._scores(input_dict)
        above = (negative > positive).sum(axis=1)
        rank = 0.5 * (above + (negative >= positive).sum(axis=1)) + 1
        found = {f"hits@{self.k_value}": (rank <= self.k_value).astype(np.float32).mean(),
                 "mrr": (1.0 / rank.astype(np.float32)).mean()}
        if verbose:
            print(", ".join(f"{name} {value:.4f}" for name, value in found.items()))
        return found
