"""Windows: the part of a stream that a protocol uses, and the ways to rank on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from . import _core, _fullrank as C
from ._core import Array, Facts, Path, Progress, talk, view
from ._ranking import Ranking

if TYPE_CHECKING:
    from ._data import Events
    from ._models import Run


class Part:
    """Events of a part of a window, as NumPy views of the window's columns: nothing is copied.

    Sources and destinations are numbers: indices into `window.sources` and `window.candidates`, which contain the
    original ids in ascending order. Times are those of the stream.
    """

    def __init__(self, window: "Window", start: int, stop: int) -> None:
        self._window = window
        self.start, self.stop = start, stop  #: events start .. stop - 1 of the window

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def event(self) -> Array:
        """Numbers of the events in the window, from 0."""
        return np.arange(self.start, self.stop, dtype=np.int32)

    @property
    def source(self) -> Array:
        """Numbers of the sources: indices into `window.sources`."""
        return self._window.source[self.start:self.stop]

    @property
    def destination(self) -> Array:
        """Numbers of the destinations: indices into `window.candidates`."""
        return self._window.destination[self.start:self.stop]

    @property
    def time(self) -> Array:
        """Times as in the stream."""
        return self._window.time[self.start:self.stop]

    @property
    def features(self) -> Array:
        """Features, [events, width]."""
        return self._window.features[self.start:self.stop]

    def __repr__(self) -> str:
        return f"<{len(self):,} events of a window, from {self.start:,} on>"


class Training(Part):
    """The training part. Called with a model's name, it trains that model on it."""

    def __call__(self, model: str, output: Optional[Path] = None, *, force: bool = False, threads: int = 0,
                 progress: Progress = False, **options: Any) -> "Run":
        """Trains one of `fullrank.models()` and returns the run.

        Options are those of `fullrank train` (`fullrank.options("training")` and `fullrank.options("model")`):
        `epochs`, `seed`, `lr`, `select="mrr"` with `patience` for early stopping on the validation part, `resume`.
        The run is written to the directory `output`; without one it is kept as long as the returned object.
        """
        from ._models import train

        return train(self._window, model, output, force=force, threads=threads, progress=progress, **options)


class Batch:
    """Queries: everything about some events except their destinations."""

    __slots__ = ("event", "source", "time")

    def __init__(self, event: Array, source: Array, time: Array) -> None:
        self.event = event  #: numbers in the window
        self.source = source  #: places in `window.sources`
        self.time = time  #: as in the stream

    def __len__(self) -> int:
        return len(self.event)

    def __getattr__(self, name: str) -> Any:
        if name == "destination":
            raise AttributeError("a query has no destination: the truth arrives after the scores")
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<{len(self)} queries>"


class Truth:
    """Events that have become history: what a model may learn from now."""

    __slots__ = ("_window", "_at")

    def __init__(self, window: "Window", start: int, stop: int) -> None:
        self._window, self._at = window, slice(start, stop)

    @property
    def event(self) -> Array:
        """Numbers in the window."""
        return np.arange(self._at.start, self._at.stop, dtype=np.int32)

    @property
    def source(self) -> Array:
        """Places in `window.sources`."""
        return self._window.source[self._at]

    @property
    def destination(self) -> Array:
        """Places in `window.candidates`."""
        return self._window.destination[self._at]

    @property
    def time(self) -> Array:
        """As in the stream."""
        return self._window.time[self._at]

    @property
    def features(self) -> Array:
        """[events, width]"""
        return self._window.features[self._at]

    def __len__(self) -> int:
        return self._at.stop - self._at.start

    def __repr__(self) -> str:
        return f"<{len(self)} events that have become history>"


class Event:
    """One event, as a scorer's `observe` receives it."""

    __slots__ = ("event", "source", "destination", "time", "features")

    def __init__(self, window: "Window", event: int) -> None:
        self.event = event  #: number in the window
        self.source = int(window.source[event])  #: place in `window.sources`
        self.destination = int(window.destination[event])  #: place in `window.candidates`
        self.time = float(window.time[event])  #: as in the stream
        self.features = window.features[event]

    def __repr__(self) -> str:
        return f"<event {self.event}: {self.source} to {self.destination} at {self.time}>"


class Feed:
    """Ranking for a loop that you control: queries out, scores in, truth back.

    >>> import numpy as np, fullrank as fr
    >>> window = fr.synth("tiny").window()
    >>> feed = window.feed("last seen", seed=7)
    >>> last = np.zeros(len(window.candidates), np.float32)
    >>> for batch in feed.batches(100):
    ...     scores = np.tile(last[window.catalog_numbers], (len(batch), 1))
    ...     truth = feed.submit(scores)
    ...     last[truth.destination] = truth.event
    >>> print(feed.finish())
    last seen: MRR 0.0834, Hits@10 0.1811 over 900 events
    """

    def __init__(self, window: "Window", name: str, *, catalog_only: Optional[bool], force: bool,
                 about: Dict[str, Any], options: Dict[str, Any]) -> None:
        self._window = window
        only = window._catalog_only(catalog_only)
        self._handle = C.feed_open(window._handle, _core.about(name, only, about), _options(options), force)
        self.name = name
        self._pending = 0
        self.row: int = C.feed_facts(self._handle)["row"]  #: scores of one query

    @property
    def facts(self) -> Facts:
        """`row` (scores per query), `events`, and how many are `submitted` and `pending`."""
        return Facts(C.feed_facts(self._handle))

    def next(self, most: int) -> Batch:
        """The next queries in stream order, at most this many; none at the end.

        With `sample_events=n` they are the sampled ones among the next `most` events. The first test event always comes
        too, so that the truth can be returned from there on.
        """
        start, count, events = C.feed_next(self._handle, most)
        stop = start + count
        self._pending = count
        if events is not None:
            event = np.frombuffer(events, np.int32)
            return Batch(event, self._window.source[event], self._window.time[event])
        event = np.arange(start, stop, dtype=np.int32)
        return Batch(event, self._window.source[start:stop].copy(), self._window.time[start:stop].copy())

    def batches(self, most: int) -> Iterator[Batch]:
        """All queries in batches of this size; the scores of each batch must be submitted before the next one."""
        batch = self.next(most)
        while len(batch):
            yield batch
            batch = self.next(most)

    def submit(self, scores: Any) -> Truth:
        """Takes scores[queries, N] of the last batch and returns what happened.

        `scores` may be a NumPy array, a torch tensor on any device, or any object with DLPack or a buffer. float32 in C
        order is read in place. N is the size of `window.catalog` (of `window.candidates` with `catalog_only=False`).
        A NaN score is an error that names the event and the candidate; the scores may then be submitted again.
        """
        pending = self._pending
        if not pending:
            raise C.UsageError(f"{self.name}: no queries wait for scores, ask for a batch first")
        array = _core.scores(scores, (pending, self.row), self.name)
        start, known = C.feed_submit(self._handle, _core.address(array), pending)
        self._pending = 0
        return Truth(self._window, start, start + known)

    def finish(self) -> Ranking:
        """The records, when all events have scores."""
        return Ranking(C.feed_finish(self._handle))


class Scorer:
    """An open scorer, for scores instead of ranks."""

    def __init__(self, window: "Window", handle: Any) -> None:
        self._window, self._handle = window, handle

    @property
    def facts(self) -> Facts:
        """`name`, `model`, `seed`, `row` (scores per event), whether it `remembers` events, ..."""
        return Facts(C.scorer_facts(self._handle))

    def observe(self, before: int) -> None:
        """Shows the scorer all events of the window below this number that it has not observed yet."""
        C.scorer_observe(self._handle, before)

    def score(self, event: Any) -> Array:
        """Scores [events, row] of events of the window, by number in ascending order.

        A scorer that observes events knows only the events that it has observed.
        """
        events = _core.whole(event, "event", np.int32)
        bad = (events < 0) | (events >= len(self._window))
        if bad.any():
            raise C.UsageError(f"event {events[bad][0]} is not in the window, which has {len(self._window)}")
        query = np.zeros(len(events), _core.query_dtype)
        query["event"], query["source"] = events, self._window.source[events]
        query["time"] = self._window.time[events] - self._window.start
        out = np.full((len(events), self.facts.row), np.nan, np.float32)
        C.scorer_score(self._handle, _core.address(query), len(events), _core.address(out))
        return out

    def remove(self, what: str, *, seed: int = 0, threads: int = 0, progress: Progress = False) -> "Scorer":
        """Removes a direction from the input of a trained model's scoring head: membership, random or shuffled."""
        names = C.removals()
        if what not in names:
            raise C.UsageError(f"found {what!r}, expected one of {', '.join(names)}")
        with talk(threads, progress) as how:
            C.scorer_project(self._handle, names.index(what), seed, how)
        return self


def _options(given: Dict[str, Any]) -> Dict[str, bytes]:
    """Options of `rank`; lists of negatives may also be an array, which becomes a file as long as it is read."""
    lists = given.get("negatives")
    if lists is None or isinstance(lists, (str, bytes, os.PathLike)):
        return _core.options(given)
    place = _core.Place()
    np.save(place / "negatives.npy", _core.whole(lists, "negatives"))
    out = _Options(_core.options(dict(given, negatives=place / "negatives.npy")))
    out.place = place
    return out


class _Options(Dict[str, bytes]):
    place: _core.Place


def _refuse(scorer: Any, *given: Dict[str, Any], **more: Any) -> None:
    """Arguments that this scorer cannot use are an error; None = not given."""
    found = [key for some in (*given, more) for key, value in some.items() if value is not None]
    if found:
        raise C.UsageError(f"{', '.join(found)}: these describe your own scores, but {scorer!r} describes itself")


class Window:
    """The part of a stream that a protocol uses: the last events, cut into parts, and the catalog that is ranked.

    Made by `Events.window`. Sources and destinations are numbers: indices into `sources` and `candidates`, which contain
    the original ids in ascending order.
    """

    def __init__(self, events: "Events", handle: Any, by_time: bool) -> None:
        self._events, self._handle = events, handle
        self._by_time = by_time  # the catalog depends on time: every candidate may be in it
        self.facts = Facts(C.window_facts(handle))  #: counts of events, parts, sources, candidates; hashes
        columns = C.window_columns(handle)
        count, width = self.facts.events, columns["feature_width"]
        self.start: float = columns["start"]  #: time of the first event
        self.source = view(handle, columns["source"], "<i4", count)  #: places in `sources`
        self.destination = view(handle, columns["destination"], "<i4", count)  #: places in `candidates`
        self.time = view(handle, columns["time"], "<f8", count)  #: as in the stream
        self.features = view(handle, columns["features"], "<f4", count, width)  #: [events, width]
        self.sources = view(handle, columns["source_id"], "<i8", self.facts.sources)  #: original ids
        self.candidates = view(handle, columns["destination_id"], "<i8", self.facts.candidates)  #: original ids
        self._catalog = view(handle, columns["catalog"], "<i4", self.facts.catalog_size)
        self.train = Training(self, 0, self.facts.train)  #: the training part; `window.train("craft")` trains
        self.val = Part(self, self.facts.train, self.facts.train + self.facts.val)  #: the validation part
        self.test = Part(self, self.facts.train + self.facts.val, count)  #: the test part
        self.ranked = Part(self, self.facts["from"], self.facts.to)  #: the part that is ranked

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        f = self.facts
        return (f"<window of {f.events:,} events: {f.train:,} train, {f.val:,} val, {f.test:,} test; "
                f"{f.catalog_size:,} of {f.candidates:,} candidates in the catalog>")

    @property
    def events(self) -> "Events":
        """The stream of this window."""
        return self._events

    # ---- catalog ----

    def _catalog_only(self, asked: Optional[bool]) -> bool:
        """If the catalog is all candidates, rows serve both; then there are time-available ranks, as for a score file."""
        whole = self._by_time or self.facts.catalog_size == self.facts.candidates
        return not whole if asked is None else asked

    @property
    def catalog_numbers(self) -> Array:
        """Indices of the ranked destinations in `candidates`; for the time-available catalog, all of them."""
        return np.arange(len(self.candidates), dtype=np.int32) if self._by_time else self._catalog

    @property
    def catalog(self) -> Array:
        """Original ids of the ranked destinations: the columns of a score matrix."""
        return self.candidates if self._by_time else self.candidates[self._catalog]

    # ---- the past ----

    def cut(self, event: int) -> int:
        """Events below this number are before the event, under the protocol's order."""
        return int(C.window_cut(self._handle, event))

    def _history(self, kind: str, source: int, destination: int, before: int, most: Optional[int]) -> Array:
        limit = 2**31 - 1 if most is None else most
        address, count = C.window_history(self._handle, kind, int(source), int(destination), int(before), int(limit))
        return view(self._handle, address, "<i4", count)

    def source_history(self, source: int, before: int, most: Optional[int] = None) -> Array:
        """Numbers of the last events of a source before event `before`, ascending."""
        return self._history("s", source, 0, before, most)

    def destination_history(self, destination: int, before: int, most: Optional[int] = None) -> Array:
        """Numbers of the last events of a destination before event `before`, ascending."""
        return self._history("d", 0, destination, before, most)

    def pair_history(self, source: int, destination: int, before: int) -> Array:
        """Numbers of all events of a pair before event `before`, ascending."""
        return self._history("p", source, destination, before, None)

    def met(self, source: int, before: int) -> Array:
        """Numbers of the first event of each pair of the source before event `before`."""
        return self._history("m", source, 0, before, None)

    # ---- ranking ----

    def feed(self, name: str, *, seed: Optional[int] = None, model: Optional[str] = None,
             objective: Optional[str] = None, catalog_only: Optional[bool] = None, force: bool = False,
             **options: Any) -> Feed:
        """Ranking for a loop that you control; see `Feed`.

        `name` is the name in tables. Runs of several seeds are grouped by `model` (default: the name).
        A row of scores has one entry per `catalog`; with `catalog_only=False` one per `candidates`, which also gives
        time-available ranks. Options are those of `fullrank.options("rank")`.
        """
        return Feed(self, name, catalog_only=catalog_only, force=force,
                    about={"seed": seed, "model": model, "objective": objective}, options=options)

    def rank(self, scorer: Any, name: Optional[str] = None, *, seed: Optional[int] = None, model: Optional[str] = None,
             catalog_only: Optional[bool] = None, force: bool = False, threads: int = 0, progress: Progress = False,
             **options: Any) -> Ranking:
        """Scores every test event and records the rank of its destination.

        `scorer` is one of
          - a spec of the command line: `"baseline:edgebank"`, `"plugin:./libmine.so"`, `"scores:mine.npy"`,
            `"counts:mine.npy"`, `"oracle"`, a trained `"FILE.safetensors"`;
          - a run of `window.train(...)`;
          - scores [test events, N], as many rows as `ranked` has events: read in place if they are float32 in C order;
          - a function of a `Batch` that returns scores [len(batch), N];
          - an object with `score(batch)` and, if it has a memory, `observe(event)`: then it scores one event at a time,
            in stream order, and observes every event of the window from `start` on (default 0).
        The attributes `many` (events per call), `workers` (calls at the same time) and `name` of a function or an object
        are used if they exist. Options are those of `fullrank.options("rank")`; `negatives` may also be an array.
        """
        from ._models import Run

        spec = isinstance(scorer, (str, bytes)) or hasattr(scorer, "__fspath__")
        if spec or isinstance(scorer, (Run, Scorer)):
            counts = isinstance(scorer, str) and scorer.startswith("counts:")
            _refuse(scorer, {} if counts else {"name": name, "model": model}, catalog_only=catalog_only,
                    seed=seed if isinstance(scorer, Scorer) else None)
        with talk(threads, progress) as how:
            if isinstance(scorer, Run):  # which is kept while it is read: its files may go with it
                return self.rank(scorer.checkpoint, seed=seed, force=force, threads=threads, progress=progress, **options)
            if isinstance(scorer, str) and scorer.startswith("counts:"):
                if options:
                    raise C.UsageError(f"{scorer}: counts are those of all events, so there is nothing to set: "
                                       f"found {', '.join(sorted(options))}")
                about = _core.about(name or scorer, True, {"seed": seed, "model": model})
                return Ranking(C.rank_counts_file(self._handle, about, _core.text(scorer[len("counts:"):])))
            if spec:
                handle = C.scorer_open(self._handle, _core.text(scorer), seed or 0, how)
                return Ranking(C.rank_run(handle, _options(options), force, how))
            if isinstance(scorer, Scorer):
                return Ranking(C.rank_run(scorer._handle, _options(options), force, how))
            if callable(scorer) or hasattr(scorer, "score"):
                handle = self._ask(scorer, name, catalog_only, {"seed": seed, "model": model})
                return Ranking(C.rank_run(handle, _options(options), force, how))
        feed = self.feed(name or "scores", seed=seed, model=model, catalog_only=catalog_only, force=force, **options)
        batch = feed.next(max(1, len(self.ranked)))
        if len(batch) < len(self.ranked):  # a sample of the rows
            scorer = _core.scores(scorer, (len(self.ranked), feed.row), feed.name)[batch.event - self.ranked.start]
        if len(self.ranked):
            feed.submit(scorer)
        return feed.finish()

    def rank_factors(self, u: Any, v: Any, bias: Any = None, name: str = "factors", *, seed: Optional[int] = None,
                     model: Optional[str] = None, force: bool = False, threads: int = 0, progress: Progress = False,
                     **options: Any) -> Ranking:
        """Ranks by scores that are products, U V^T + bias, without keeping them all in memory.

        `u` has a row for every event of `ranked` (or for the covered ones), `v` and `bias` one for every id of `catalog`
        (or of `candidates`). A score is a float32 sum of fused multiply-adds in order, starting with the bias.

        >>> import numpy as np, fullrank as fr
        >>> window = fr.synth("tiny").window()
        >>> rng = np.random.default_rng(0)
        >>> u = rng.standard_normal((len(window.ranked), 8), dtype=np.float32)
        >>> v = rng.standard_normal((len(window.catalog), 8), dtype=np.float32)
        >>> window.rank_factors(u, v)
        <factors: MRR 0.0477, Hits@10 0.0922 over 900 events>
        """
        wide = [np.ascontiguousarray(_core.host(one), dtype=np.float32) for one in (u, v)]
        row = None if bias is None else np.ascontiguousarray(_core.host(bias), dtype=np.float32)
        if any(one.ndim != 2 for one in wide) or wide[0].shape[1] != wide[1].shape[1] or \
                (row is not None and row.shape != wide[1].shape[:1]):
            shapes = ", ".join(str(one.shape) for one in [*wide, row] if one is not None)
            raise C.UsageError(f"{name}: factors of shapes {shapes}, expected [events, d], [candidates, d], [candidates]")
        about = _core.about(name, False, {"seed": seed, "model": model})
        handle = C.scorer_factors(self._handle, about, _core.address(wide[0]), _core.address(wide[1]),
                                  0 if row is None else _core.address(row),
                                  (wide[0].shape[0], wide[1].shape[0], wide[0].shape[1]))
        with talk(threads, progress) as how:
            return Ranking(C.rank_run(handle, _options(options), force, how))

    def _ask(self, scorer: Any, name: Optional[str], catalog_only: Optional[bool], given: Dict[str, Any]) -> Any:
        """A scorer of the library that calls a Python function or object."""
        score: Callable[[Batch], Any] = scorer.score if hasattr(scorer, "score") else scorer
        observe = getattr(scorer, "observe", None)
        called = name or getattr(scorer, "name", None) or getattr(scorer, "__name__", None) or type(scorer).__name__
        only = self._catalog_only(catalog_only)
        row = self.facts.catalog_size if only else self.facts.candidates

        def ask(queries: int, count: int, worker: int, out: int) -> None:
            event = view(None, queries, _core.query_dtype, count)["event"].copy()
            found = score(Batch(event, self.source[event], self.time[event]))
            view(None, out, "<f4", count, row, writeable=True)[:] = _core.scores(found, (count, row), called)

        def tell(event: int) -> None:
            assert observe is not None
            observe(Event(self, int(view(None, event, _core.event_dtype, 1)["event"][0])))

        given = dict(given, workers=getattr(scorer, "workers", 1), start=getattr(scorer, "start", 0),
                     many=1 if observe else getattr(scorer, "many", 64))
        return C.scorer_make(self._handle, _core.about(called, only, given), ask, tell if observe else None)

    def scorer(self, spec: Any, *, seed: int = 0, threads: int = 0, progress: Progress = False) -> Scorer:
        """Opens a scorer (a spec, or a run of `train`) for scores instead of ranks."""
        with talk(threads, progress) as how:
            return Scorer(self, C.scorer_open(self._handle, _core.text(getattr(spec, "checkpoint", spec)), seed, how))

    def rank_counts(self, above: Any, tied: Any, seen_above: Any = None, seen_tied: Any = None, *,
                    name: str = "counts", seed: Optional[int] = None, model: Optional[str] = None) -> Ranking:
        """Records from counts of the covered test events: candidates that score above and equal to the positive."""
        columns = [_core.whole(c, "counts", np.int32) for c in (above, tied, seen_above, seen_tied) if c is not None]
        if len(columns) not in (2, 4) or any(c.shape != columns[0].shape or c.ndim != 1 for c in columns):
            raise C.UsageError("counts: expected above and tied, or all four, as lists of one length")
        counts = np.full((len(columns[0]), 4), -1, np.int32)
        for k, column in enumerate(columns):
            counts[:, k] = column
        about = _core.about(name, True, {"seed": seed, "model": model})
        return Ranking(C.rank_counts(self._handle, about, _core.address(counts), len(counts)))

    def write_list(self, path: Path, *, force: bool = False, sample_events: int = 0, sample_seed: int = 1) -> Facts:
        """Writes what must be scored, for programs that write score files: PATH and its .destinations.npy.

        With `sample_events=n` it has only the events of that sample.
        """
        options = _core.options({"sample_events": sample_events, "sample_seed": sample_seed})
        events, destinations = C.window_list(self._handle, _core.text(path), options, force)
        return Facts(events=events, destinations=destinations)

    def scaling(self, spec: Any, *, seed: int = 0, threads: int = 0, progress: Progress = False,
                **options: Any) -> List[Facts]:
        """Measures time and memory per event against the size of the catalog (`fullrank bench scaling`)."""
        with talk(threads, progress) as how:
            return _core.facts(C.scaling(self._handle, _core.text(getattr(spec, "checkpoint", spec)),
                                         _core.options(options), seed, how))
