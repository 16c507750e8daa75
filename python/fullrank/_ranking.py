"""Rank records and everything that is computed from them."""

from __future__ import annotations

import numbers
import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union, cast, overload

import numpy as np

from . import _core, _fullrank as C
from ._core import Array, Facts, Path, Progress, talk, view
from ._table import Table

_OOV = ["exclude", "zero"]
_SMALL = ["whole", "ineligible"]
_OVER = ["time", "sample"]


def _choice(value: Union[str, int], names: Sequence[str], what: str) -> int:
    if isinstance(value, int):
        return value
    if value not in names:
        raise C.UsageError(f"{what}: found {value!r}, expected {' or '.join(names)}")
    return names.index(value)


def _list(value: Union[int, Iterable[int]]) -> List[int]:
    """One number, or several."""
    return [int(n) for n in ([value] if isinstance(value, numbers.Integral) else cast(Iterable[int], value))]


class Expected(Facts):
    """A sampled metric without sampling: expectation and standard deviation over all draws of `k` negatives.

    `mrr`, `sd` (of the sampled MRR over evaluation seeds), `hits` (by the k of Hits@k), `events` counted and
    `ineligible`.
    """

    def __repr__(self) -> str:
        return f"<expected MRR of {self.k} negatives: {self.mrr:.4f} ± {self.sd:.4f} over {self.events:,} events>"


class Records:
    """Rank records of some events. They give every metric and every sampled protocol without scoring again."""

    def __init__(self, records: Array, oov: int, label: str, sample_of: int = 0) -> None:
        self.records = records  #: structured NumPy array, one record per event; docs/formats.md says what is in it
        self._oov = oov
        self._of = sample_of
        self.label = label  #: what tables call it

    def __len__(self) -> int:
        return len(self.records)

    # ---- metrics ----

    def metrics(self, names: Optional[Iterable[str]] = None) -> Dict[str, float]:
        """Metrics by name; without names, all metrics without a number, and Hits@1, 3, 5, 10."""
        if names is None:
            names = [d["name"] for d in C.definitions()["metrics"] if not d["name"].endswith("@k")]
            names += ["hits@1", "hits@3", "hits@5", "hits@10"]
        names = [names] if isinstance(names, str) else list(names)
        found = self._compute(names)
        return {name: value for name, (value, _) in zip(names, found)}

    def _compute(self, names: List[str]) -> List[Any]:
        return C.metrics(_core.address(self.records), len(self.records), self._oov, [os.fsencode(n) for n in names])

    def metric(self, name: str) -> float:
        """One metric: `mrr`, `hits@10`, `mrr-new`, ...; `fullrank.metrics()` lists them."""
        return self._compute([name])[0][0]

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank over the full catalog."""
        return self.metric("mrr")

    @property
    def ranks(self) -> Array:
        """Rank of every event's destination, from 1, ties by average; NaN if it was not a candidate."""
        ranks = 1 + self.records["above"] + self.records["tied"] / 2
        return np.where(self.records["covered"] == 1, ranks, np.nan)

    def hits(self, k: int) -> float:
        """Share of events whose destination is among the first k."""
        return self.metric(f"hits@{k}")

    # ---- sampled protocols ----

    def _sampling(self, sampler: str, k: List[int], hits: List[int], small: str) -> Any:
        return os.fsencode(sampler), _choice(small, _SMALL, "small"), self._oov, k, hits

    @overload
    def expected(self, sampler: str = ..., *, k: int, hits: Union[int, Iterable[int]] = ..., small: str = ...,
                 threads: int = ...) -> Expected: ...

    @overload
    def expected(self, sampler: str = ..., k: Union[None, int, Iterable[int]] = ..., *,
                 hits: Union[int, Iterable[int]] = ..., small: str = ..., threads: int = ...) -> Any: ...

    def expected(self, sampler: str = "uniform", k: Union[None, int, Iterable[int]] = None, *,
                 hits: Union[int, Iterable[int]] = (1, 3, 10), small: str = "whole", threads: int = 0) -> Any:
        """The exact expectation of a sampled metric over all draws: `expected("uniform", k=20).mrr`.

        With one k (or a sampler that names it, `"tgb-hist-100"`) one result, else a list; k is 1, 5, 20, 50, 100
        unless given. `fullrank.samplers()` lists the samplers.
        """
        stem, _, number = sampler.rpartition("-")
        if stem and number.isdigit():
            if k is not None:
                raise C.UsageError(f"{sampler} and k={k}, expected one or the other")
            k = int(number)
        ks, at = _list(k if k is not None else (1, 5, 20, 50, 100)), _list(hits)
        with talk(threads, False) as how:
            found = C.expected(_core.address(self.records), len(self.records), self._sampling(sampler, ks, at, small),
                               how)
        out = [Expected(one, hits=dict(zip(at, one["hits"]))) for one in found]
        return out[0] if isinstance(k, numbers.Integral) else out

    def draws(self, sampler: str = "uniform", k: Union[int, Iterable[int]] = (1, 5, 20, 50, 100), *, seeds: int = 5,
              seed: int = 0, small: str = "whole", threads: int = 0, progress: Progress = False) -> List[Facts]:
        """The same by drawing, as a check: sampled MRR under `seeds` evaluation seeds; `each` has every seed's."""
        ks = _list(k)
        each = np.empty((max(seeds, 0), len(ks)))
        with talk(threads, progress) as how:
            found = C.draws(_core.address(self.records), len(self.records), self._sampling(sampler, ks, [], small),
                            seed, seeds, _core.address(each), how)
        return [Facts(one, each=each[:, j]) for j, one in enumerate(found)]

    def interval(self, *names: str, sampler: Optional[str] = None, k: Union[int, Iterable[int]] = (), over: str = "time",
                 seed: int = 0, threads: int = 0, progress: Progress = False, **options: Any) -> Any:
        """Confidence intervals (low, high) of metrics by the block bootstrap; with `sampler` and `k`, of expected MRR.

        One name gives one interval, several a list. `over="sample"` is about all the events that a sample
        (`sample_events`) was drawn from, instead of other stretches of time. Options: `fullrank.options("interval")`.
        """
        if (names and sampler is not None) or (sampler is None) != (not _list(k)):
            raise C.UsageError("expected names of metrics, or a sampler with its k")
        what: Any = [os.fsencode(n) for n in names or ("mrr",)]
        if sampler is not None:
            what = self._sampling(sampler, _list(k), [], "whole")
        with talk(threads, progress) as how:
            found = C.intervals(_core.address(self.records), len(self.records), self._oov, what,
                                _core.options(options), (self._of, _choice(over, _OVER, "over")), seed, how)
        return found[0] if sampler is None and len(names) < 2 else found

    # ---- slices ----

    def slices(self, by: str) -> List["Slice"]:
        """Slices of similar events: `"repeated"`, `"time:10"`, `"source-degree"`; each has all metrics."""
        field, found = C.slices(_core.address(self.records), len(self.records), os.fsencode(by))
        return [Slice(one, field, self._oov, (len(self), self._of)) for one in found]

    # ---- out ----

    def to_pandas(self) -> Any:
        """The records as a pandas frame."""
        import pandas

        return pandas.DataFrame({name: self.records[name] for name in self.records.dtype.names or ()})

    def to_polars(self) -> Any:
        """The records as a polars frame."""
        import polars

        return polars.DataFrame({n: np.ascontiguousarray(self.records[n]) for n in self.records.dtype.names or ()})

    def _shown(self) -> str:
        return f"{self.label} (estimate: {len(self):,} of {self._of:,})" if self._of else self.label

    def _row(self) -> List[Any]:
        value = self.metrics(["mrr", "hits@1", "hits@10", "coverage"])
        return [self._shown(), *(Table.number(v) for v in value.values()), int((self.records["covered"] == 1).sum())]

    def table(self) -> Table:
        """MRR, Hits and coverage as a table."""
        return Table(["", "MRR", "Hits@1", "Hits@10", "coverage", "ranked"], [self._row()])

    def __str__(self) -> str:
        value = self.metrics(["mrr", "hits@10"])
        ranked = int((self.records["covered"] == 1).sum())
        return f"{self._shown()}: MRR {value['mrr']:.4f}, Hits@10 {value['hits@10']:.4f} over {ranked:,} events"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class Slice(Records):
    """Records of similar events. `low` <= value < `high`."""

    def __init__(self, found: Dict[str, Any], field: str, oov: int, sample: Tuple[int, int]) -> None:
        records = np.frombuffer(found["records"], _core.record_dtype)
        super().__init__(records, oov, found["label"], -(-len(records) * sample[1] // max(sample[0], 1)))
        self.field = field  #: what was cut by
        self.low, self.high = found["from"], found["to"]
        self.ranked: int = found["ranked"]  #: events whose destination is in the catalog

    def _shown(self) -> str:  # how many such events there are in all is not known
        return f"{self.label} (estimate)" if self._of else self.label


class Ranking(Records):
    """Rank records of one run of a scorer, returned by `rank`, a feed's `finish` and `fullrank.load`.

    >>> import fullrank as fr
    >>> edge = fr.synth("tiny").window().rank("baseline:edgebank")
    >>> round(edge.mrr, 4), round(edge.expected("uniform", k=20).mrr, 4)
    (0.1658, 0.4343)
    >>> edge.records[["event", "n", "above", "tied"]][:2].tolist()
    [(5100, 100, 20, 79), (5101, 100, 0, 6)]
    """

    def __init__(self, handle: Any) -> None:
        found = C.ranking_facts(handle)
        records = view(handle, found.pop("records"), _core.record_dtype, found["count"])
        found["protocol"] = Facts(found["protocol"])
        super().__init__(records, found["oov"], found["model"] or found["scorer"], found.pop("sample_of"))
        found["oov"] = _OOV[found["oov"]]
        self._handle = handle
        self.facts = Facts(found)  #: scorer, model, seed, data, protocol, seconds, ...

    def _compute(self, names: List[str]) -> List[Any]:
        found = super()._compute(names)
        known = (self.facts.covered / self._of, self._of) if self._of else None  # of all events, which needs no sample
        return [known if known and name == "coverage" else one for name, one in zip(names, found)]

    @property
    def protocol(self) -> Facts:
        """The protocol; rankings may be compared only if all its fields are equal."""
        return self.facts.protocol

    def save(self, path: Path, *, force: bool = False) -> None:
        """Writes RANKS.npy and RANKS.json, which the command line reads too."""
        C.ranking_save(self._handle, _core.text(path), force)
