"""Comparing runs, explaining numbers, diagnostics, studies and their page."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _core, _fullrank as C
from ._core import Facts, Path, Place, Progress, talk
from ._data import Events
from ._ranking import Ranking
from ._table import Table, join
from ._window import Window

Runs = Union[Ranking, Sequence[Any], Mapping[str, Any]]
_K = (1, 5, 20, 50, 100)


def _runs(given: Any, model: Optional[str] = None) -> List[Tuple[Any, bytes, Optional[bytes], Optional[int]]]:
    """Runs from rankings, lists of them, or {"name": ranking or [rankings]}."""
    if isinstance(given, Ranking):
        return [(given._handle, os.fsencode(given.label), None if model is None else os.fsencode(model), None)]
    if isinstance(given, Mapping):
        return [run for name, one in given.items() for run in _runs(one, name)]
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return [run for one in given for run in _runs(one, model)]
    raise C.UsageError(f"found {given!r}, expected rankings, as of `window.rank` or `fullrank.load`")


class Comparison:
    """A comparison of models: `facts`, and tables to print, to show and to export.

    >>> import fullrank as fr
    >>> window = fr.synth("tiny").window()
    >>> c = fr.compare(window.rank("baseline:recency"), window.rank("baseline:edgebank"), k=[20])
    >>> c.models
    ['baseline:recency', 'baseline:edgebank']
    >>> round(c.difference("baseline:recency", "baseline:edgebank").value, 4)
    -0.2766
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.facts = _core.facts(C.comparison_facts(handle))  #: columns, models, pairs and their differences

    @property
    def models(self) -> List[str]:
        """Names of the models, in the order of their first run."""
        return [model.name for model in self.facts.models]

    def difference(self, first: str, second: str, k: Optional[int] = None) -> Facts:
        """The metric of `second` minus that of `first`, with intervals and tests; k negatives, or the full catalog."""
        column = [c.k for c in self.facts.columns].index(k or 0)
        for pair in self.facts.pairs:
            if (pair.first, pair.second) == (first, second):
                return pair.difference[column]
        raise C.UsageError(f"no pair {first!r}, {second!r}; pairs are in the order of {', '.join(self.models)}")

    def tables(self) -> List[Table]:
        """Means of the models, and differences of their pairs over the full catalog."""
        f = self.facts
        heads = ["model"] + [f"{f.metric}, {c.k} negatives" if c.k else f.metric for c in f.columns]
        rows = [[m.name] + [Table.number(v, sd) for v, sd in zip(m.mean, m.sd)] for m in f.models]
        best = [(k + 1, True) for k in range(len(f.columns))]
        means = Table(heads, rows, protocol=f.protocol_text, best=best, title="Models")
        pairs = [[f"{p.second} minus {p.first}", Table.difference(d.value), Table.interval(d.seed_t),
                  Table.interval(d.bootstrap), Table.number(d.permutation), Table.number(d.adjusted)]
                 for p in f.pairs for d in [p.difference[-1]]]
        heads = ["full catalog", "difference", "interval over seeds", "interval over time", "p", "p (Holm)"]
        return [means, Table(heads, pairs, title="Differences", protocol=f.protocol_text)]

    def to_latex(self) -> str:
        """Both tables, on booktabs."""
        return join(self.tables(), "latex")

    def to_markdown(self) -> str:
        """Both tables as pipe tables."""
        return join(self.tables(), "markdown")

    def to_csv(self) -> str:
        """Both tables with all digits."""
        return join(self.tables(), "csv")

    def __str__(self) -> str:
        return join(self.tables(), "text")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return join(self.tables(), "html")


def compare(*runs: Runs, k: Optional[Iterable[int]] = None, seed: int = 0, threads: int = 0,
            progress: Progress = False, **options: Any) -> Comparison:
    """Compares models by their rank records, with confidence intervals over seeds and over time, and tests.

    Runs are grouped by model and seed, as they were recorded; {"name": [rankings]} overrides this. `k` are the numbers
    of sampled negatives. Options: `fullrank.options("compare")`. Runs with different protocols are a ForceError.
    """
    metric = str(options.get("metric", "mrr"))
    if k is None:
        k = _K if metric == "mrr" or metric.startswith("hits@") else ()
    with talk(threads, progress) as how:
        return Comparison(C.compare(_runs(runs), [int(n) for n in k], _core.options(options), seed, how))


class Page:
    """A page that was written; notebooks show it inline."""

    def __init__(self, path: str) -> None:
        self.path = path  #: of the HTML file

    def __repr__(self) -> str:
        return f"<page {self.path}>"

    def html(self) -> str:
        """The page as text; it needs no other files."""
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def _repr_html_(self) -> str:
        import html

        return f'<iframe srcdoc="{html.escape(self.html())}" style="width:100%;height:800px;border:0"></iframe>'


def report(runs: Runs, output: Path, *, k: Iterable[int] = (), threads: int = 0, progress: Progress = False,
           **options: Any) -> Page:
    """Writes the page of a study from rank records alone. Options: `fullrank.options("report")`."""
    with talk(threads, progress) as how:
        C.report(_runs(runs), [int(n) for n in k], _core.options(options), _core.text(output), how)
    return Page(os.fspath(output))


class Figure:
    """A figure; notebooks show it inline."""

    def __init__(self, name: str, svg: str) -> None:
        self.name = name  #: of the report's file, without its suffix
        self.svg = svg  #: the element as text

    def __repr__(self) -> str:
        return f"<figure {self.name}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path) -> None:
        """Writes it as an SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


class Figures(Dict[str, Figure]):
    """Figures by name; notebooks show all of them."""

    def _repr_html_(self) -> str:
        return "".join(f"<figure>{figure.svg}</figure>" for figure in self.values())


def figures(runs: Runs, *, k: Iterable[int] = (), threads: int = 0, progress: Progress = False, **options: Any) -> Figures:
    """The figures of `report` by name, without its page: "expected" is MRR against the number of negatives, "ranks" the
    distribution of ranks. Options: `fullrank.options("report")`.

    >>> import fullrank as fr
    >>> window = fr.synth("tiny").window()
    >>> shown = fr.figures([window.rank("baseline:recency"), window.rank("baseline:edgebank")], k=[1, 20])
    >>> shown["expected"], shown["ranks"]
    (<figure expected>, <figure ranks>)
    """
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        report(runs, os.path.join(place, "page.html"), k=k, threads=threads, progress=progress,
               tables=os.path.join(place, "files"), **options)
        folder = os.path.join(place, "files", "figures")
        found = Figures()
        for name, suffix in sorted(map(os.path.splitext, os.listdir(folder))):
            if suffix == ".svg":
                with open(os.path.join(folder, name + suffix), encoding="utf-8") as file:
                    text = file.read()
                    found[name] = Figure(name, text[text.index("<svg"):])
    return found


class Study:
    """A study in a directory: many runs, kept in a ledger."""

    def __init__(self, directory: Path) -> None:
        self.directory = os.fspath(directory)

    @property
    def status(self) -> Facts:
        """Its progress: counts of units by status, and every unit."""
        return _core.facts(C.study_status(_core.text(self.directory)))

    def report(self, *, threads: int = 0, progress: Progress = False) -> Page:
        """Writes tables, figures and report.html into the directory."""
        with talk(threads, progress) as how:
            C.study_report(_core.text(self.directory), how)
        return Page(os.path.join(self.directory, "report.html"))

    def __repr__(self) -> str:
        s = self.status
        return f"<study {s.name} in {self.directory}: {s.done} of {s.count} units done, {s.failed} failed>"


def study(document: Any, directory: Path, *, data: Optional[Path] = None, redo: bool = False, threads: int = 0,
          progress: Progress = False) -> Study:
    """Runs a whole study, or the rest of it: a JSON file, a dict, or a preset ("demo", "quick", "paper")."""
    import json

    what = json.dumps(document) if isinstance(document, Mapping) else document
    with talk(threads, progress) as how:
        C.study_run(_core.text(what), None if data is None else _core.text(data), _core.text(directory), redo, how)
    return Study(directory)


def study_preset(name: str) -> Dict[str, Any]:
    """The document of a built-in study."""
    import json

    found = C.study_preset(_core.text(name))
    if found is None:
        raise C.UsageError(f"no study {name!r} comes with the library")
    return json.loads(found)


class Explanation:
    """Why two protocols give one scorer two numbers: `start`, `end`, and the `steps` between them."""

    def __init__(self, found: Dict[str, Any]) -> None:
        self.facts = _core.facts(found)
        self.start: float = found["from"]  #: the metric under the first protocol
        self.end: float = found["to"]  #: and under the second: start + all effects
        self.steps: List[Facts] = self.facts.steps  #: setting, from, to, effect, value, events

    def table(self) -> Table:
        """The effect of each switch on the number."""
        rows: List[Any] = [["", "", Table.number(self.start), None, self.facts.from_events]]
        rows += [[s.setting, f"{s['from']} to {s.to}", Table.number(s.value), Table.difference(s.effect), s.events]
                 for s in self.steps]
        return Table(["setting", "switched", "value", "effect", "events"], rows)

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def explain(events: Events, spec: Any, *, seed: int = 0, threads: int = 0, progress: Progress = False,
            **options: Any) -> Explanation:
    """Switches one setting at a time between two protocols, `from_` and `to`, and ranks under each.

    Options: `fullrank.options("explain")`, where `from_` means "from", which is a keyword of Python.
    """
    given = {key.rstrip("_"): value for key, value in options.items()}
    with talk(threads, progress) as how:
        return Explanation(C.explain(events._handle, _core.text(getattr(spec, "checkpoint", spec)),
                                     _core.options(given), seed, how))


class diagnose:
    """Diagnostics of pair membership; the functions are used as `fullrank.diagnose.minimal(...)`."""

    @staticmethod
    def minimal(window: Union[Events, Window], *, seed: int = 0, threads: int = 0, progress: Progress = False,
                **options: Any) -> Facts:
        """What a scorer that knows only pair membership would learn, from events or a diagnostic window."""
        if isinstance(window, Events):
            window = window.window(diagnostic=True, threads=threads)
        with talk(threads, progress) as how:
            return _core.facts(C.minimal(window._handle, _core.options(options), seed, how))

    @staticmethod
    def membership(ranking: Ranking, k: int = 20, *, seed: int = 0, threads: int = 0,
                   progress: Progress = False) -> Facts:
        """Repeated and new positives against seen and unseen negatives, from records with `catalog="time"`."""
        with talk(threads, progress) as how:
            return _core.facts(C.membership(ranking._handle, k, seed, how))

    @staticmethod
    def project(window: Window, run: Any, *, seed: int = 0, threads: int = 0, progress: Progress = False,
                **options: Any) -> Dict[str, Ranking]:
        """Rankings of a trained model after removing pair membership, a random direction or that of shuffled labels."""
        out = {}
        for what in C.removals():
            scorer = window.scorer(run, threads=threads, progress=progress)
            scorer.remove(what, seed=seed, threads=threads, progress=progress)
            out[what] = window.rank(scorer, threads=threads, progress=progress, **options)
        return out

    @staticmethod
    def project_files(representations: Any, labels: Any, head: Any, output: Path, *, force: bool = False, seed: int = 0,
                      threads: int = 0, progress: Progress = False) -> Facts:
        """The same intervention for models of other programs, from .npy files or arrays; writes heads to `output`."""
        import numpy as np

        place = Place()
        paths = []
        for name, given in (("representations", representations), ("labels", labels), ("head", head)):
            if not isinstance(given, (str, bytes, os.PathLike)):
                path = place / f"{name}.npy"
                np.save(path, np.ascontiguousarray(_core.host(given)))
                given = path
            paths.append(_core.text(given))
        with talk(threads, progress) as how:
            return _core.facts(C.project_files(*paths, _core.text(output), force, seed, how))
