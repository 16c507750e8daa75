"""Honest evaluation of link prediction in continuous-time dynamic graphs.

For every test event, one score vector ranks every destination of a catalog. The records give every metric and the
exact expectation of every sampled protocol. The package is libfullrank, the library of the command `fullrank`, with
the same option names, defaults and errors.

    import fullrank as fr

    events = fr.read("wikipedia.csv")                  # or fr.events(src, dst, t), a frame, ...
    window = events.window(32768, train=0.85)

    feed = window.feed("my-tgn", seed=7)               # you keep the loop: the truth arrives after the scores
    for batch in feed.batches(200):
        truth = feed.submit(model(batch.source, batch.time, window.catalog))
        model.update(truth.source, truth.destination, truth.time)
    mine = feed.finish()

    edge = window.rank("baseline:edgebank")            # or a function, an object, scores, factors, a trained model
    craft = window.rank(window.train("craft-r", seed=7, epochs=3))

    mine.mrr, mine.hits(10), mine.expected("uniform", k=20).mrr
    print(fr.compare(mine, edge, craft))
    fr.report([mine, edge, craft], "report.html")

Where to look
    read, events, synth, download    streams of events (`Events`)
    Events.window                    what a protocol sees (`Window`): parts, catalog, histories
    Window.feed, rank, train         ways to rank records (`Ranking`), training (`Run`)
    Ranking                          metrics, expectations, slices, intervals, records
    compare, figures, report, study  comparisons of models, with confidence intervals; figures; report pages
    explain, diagnose                why protocols disagree; the effect of pair membership
    tgb.Evaluator                    TGB's Evaluator, with its values
    audit                            checks that a scorer does not see the future
    metrics, samplers, slices, baselines, models, presets, options    lists of what is available

Behaviour: nothing is printed unless you ask for it (`progress=True` shows a bar, with tqdm). Warnings use `warnings`, and
notes go to the logger "fullrank". Work releases the GIL, runs on all cores (`threads=`) and gives the same bits with any
number of threads; Ctrl-C stops it. Errors are `fullrank.Error`, with a class for each kind.
"""

from __future__ import annotations

from typing import List

from . import _fullrank as _C, tgb
from ._audit import Audit, audit
from ._core import Facts, Warning
from ._data import Events, download, events, import_file, read, synth, verify
from ._fullrank import Cancelled, Error, FileError, ForceError, InputError, OutOfMemory, UsageError
from ._models import Run, load
from ._ranking import Expected, Ranking, Records, Slice
from ._study import (Comparison, Explanation, Figure, Figures, Page, Study, compare, diagnose, explain, figures, report,
                     study, study_preset)
from ._table import Table
from ._window import Batch, Event, Feed, Part, Scorer, Truth, Window

__version__: str = _C.version()["version"]


def version() -> Facts:
    """Version, commit, compiler and CPU features of the library."""
    return Facts(_C.version())


def metrics() -> List[Facts]:
    """The metrics: name, kind, title, explanation."""
    return [Facts(one) for one in _C.definitions()["metrics"]]


def samplers() -> List[Facts]:
    """The samplers of `Ranking.expected`: name, title, explanation."""
    return [Facts(one) for one in _C.definitions()["samplers"]]


def slices() -> List[Facts]:
    """The fields of `Ranking.slices`: name, title, explanation."""
    return [Facts(one) for one in _C.definitions()["slices"]]


def baselines() -> List[Facts]:
    """The scorers that need no training: name, summary, text, options."""
    return [Facts(one) for one in _C.baselines()]


def models() -> List[Facts]:
    """The models that can be trained: name, label, summary, text, options."""
    return [Facts(one) for one in _C.models()]


def plugin(path: str) -> Facts:
    """The description and the options of a plug-in."""
    from ._core import text

    return Facts(_C.plugin(text(path)))


def presets() -> Facts:
    """Presets of `synth` and of `explain`, with descriptions."""
    return Facts(synth=dict(_C.synth_presets()), explain={p["name"]: p["help"] for p in _C.explain_presets()})


def options(name: str) -> List[Facts]:
    """The options of a call, which are passed as keywords, from the tables of the library.

    Names: import, window, diagnostic, rank, synth, synth_parameters, interval, model, training, compare, explain,
    minimal, report, scaling, audit.

    >>> import fullrank as fr
    >>> [(o.key, o.default) for o in fr.options("window")][:3]
    [('window', '32768'), ('train-share', '0.85'), ('val-share', '0')]
    """
    found = _C.options()
    if name not in found:
        raise UsageError(f"no options {name!r}, expected one of {', '.join(found)}")
    return [Facts(one) for one in found[name]]


__all__ = [
    "Audit", "Batch", "Cancelled", "Comparison", "Error", "Event", "Events", "Expected", "Explanation", "Facts", "Feed",
    "Figure", "Figures", "FileError", "ForceError", "InputError", "OutOfMemory", "Page", "Part", "Ranking", "Records", "Run", "Scorer",
    "Slice", "Study", "Table", "Truth", "UsageError", "Warning", "Window", "audit", "baselines", "compare", "diagnose",
    "download", "events", "explain", "figures", "import_file", "load", "metrics", "models", "options", "plugin", "presets", "read", "report",
    "samplers", "slices", "study", "study_preset", "synth", "tgb", "verify", "version",
]
