"""Audits: does a scorer see what it must not see?"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Union

from . import _core
from . import _fullrank as C
from ._core import Facts, Progress, talk
from ._models import Run
from ._table import Table
from ._window import Scorer, Window


class Audit:
    """The result of an audit. `bool(audit)` is True if nothing was found."""

    def __init__(self, text: str, call: str) -> None:
        self._text, self._call = text, call
        self.facts: Facts = _core.facts(json.loads(text))  #: everything, as `fullrank audit --json` has it

    @property
    def checks(self) -> List[Facts]:
        """One for each check: `check`, `verdict` (pass, found, not tested), `largest` difference, `mrr`, `note`, ..."""
        return list(self.facts.checks)

    @property
    def findings(self) -> List[Facts]:
        """The findings: `check`, `severity`, `event`, `candidate`, both scores, `what` was changed, `again`."""
        return [Facts(one, again=self._again(one)) for one in self.facts.findings]

    @property
    def found(self) -> List[str]:
        """Names of the checks that found something."""
        return [c.check for c in self.checks if c.verdict == "found"]

    @property
    def badge(self) -> str:
        """A line for papers."""
        return str(self.facts.badge)

    def __bool__(self) -> bool:
        return not self.facts.findings

    def _again(self, finding: Facts) -> str:
        """The line that reproduces a finding."""
        inside = "".join(f", {key}={value!r}" if key != "seed" else f", {key}={value}"
                         for key, _, value in (part.partition("=") for part in finding.reproduce.split(",")))
        return f"fullrank.audit(window, {self._call}{inside})"

    def table(self) -> Table:
        """The verdicts as a table: text, LaTeX, Markdown, HTML."""
        rows = [[c.check, c.verdict, c.events, f"{c.largest:.1e}" if c.largest else "0", c.mrr, c.changed_mrr]
                for c in self.checks]
        return Table(["check", "verdict", "compared", "largest", "MRR", "then"], rows, title=f"Audit of {self.facts.scorer}",
                     notes=[self.badge])

    def __str__(self) -> str:
        lines = [str(self.table())]
        for f in self.findings:
            where = "" if f.event is None else f", row {f.event}"
            lines.append(f"{f.check}: {f.severity}{where}: {f.what}\n    again: {f.again}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<audit of {self.facts.scorer}: {', '.join(self.found) or 'nothing found'}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def save(self, path: _core.Path) -> None:
        """Writes the JSON, as `fullrank audit -o` does."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._text + "\n")


def audit(window: Window, make_scorer: Union[str, Run, Callable[[Window], Any]], name: Optional[str] = None, *,
          checks: Any = None, events: Any = None, streams: Optional[int] = None, tolerance: Optional[float] = None,
          seed: int = 0, catalog_only: Optional[bool] = None, threads: int = 0, progress: Progress = False) -> Audit:
    """Scores some ranked events, scores them again after changes that must not matter, and compares (docs/audit.md).

    `make_scorer(window)` is called many times, with windows in which other events happen after the audited ones. It
    returns a scorer as for `Window.rank`: a function of a batch, an object with `score` and perhaps `observe`, a spec, or
    a run. It must use only the window that is passed. If a model was trained elsewhere, the audit covers only what it
    does with the test part. You may pass a spec (`"baseline:recency"`, `"plugin:./mine.so"`) or a run directly.

    >>> import fullrank as fr
    >>> import numpy as np
    >>> window = fr.synth("tiny").window()
    >>> fr.audit(window, "baseline:recency", events=20).found
    []
    >>> def cheat(window):                          # knows how often each destination will occur
    ...     count = np.bincount(window.destination, minlength=len(window.candidates))[window.catalog_numbers]
    ...     return lambda batch: np.tile(count, (len(batch), 1))
    >>> fr.audit(window, cheat, events=20).found
    ['future']
    """
    spec = make_scorer.checkpoint if isinstance(make_scorer, Run) else make_scorer
    given: Dict[str, Any] = {"checks": checks, "events": events, "streams": streams, "tolerance": tolerance}
    only = not window._by_time if catalog_only is None else catalog_only  # the same for every window
    with talk(threads, progress) as how:

        def make(handle: Any) -> Any:
            here = window if handle is window._handle else Window(window.events, handle, window._by_time)
            made = spec(here) if callable(spec) else spec
            if isinstance(made, Scorer):
                return made._handle
            if isinstance(made, (str, bytes, Run)) or hasattr(made, "__fspath__"):
                return C.scorer_open(handle, _core.text(getattr(made, "checkpoint", made)), seed, (how[0], None, how[2]))
            return here._ask(made, name, only, {"seed": seed})

        whole = callable(spec)
        called = name or (getattr(spec, "__name__", "scorer") if whole else str(spec))
        text = C.audit(window._handle, _core.text(called), make if whole else None, _core.options(given), seed, how)
    return Audit(text, "make_scorer" if whole else repr(str(spec)))
