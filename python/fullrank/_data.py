"""Streams of events: reading, importing, making them."""

from __future__ import annotations

import numbers
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from . import _core, _fullrank as C
from ._core import Array, Facts, Path, Place, Progress, talk
from ._window import Window


class Events:
    """A stream of events: who met whom, when. Made by `read`, `events`, `synth`, `download`.

    >>> import fullrank as fr
    >>> stream = fr.synth("tiny")
    >>> stream
    <synthetic tiny, seed 1: 6,000 events of 196 sources and 100 destinations, 0 features each>
    >>> stream.window(4000, train=0.7, val=0.15)
    <window of 4,000 events: 2,800 train, 600 val, 600 test; 100 of 100 candidates in the catalog>
    """

    def __init__(self, handle: Any, place: Optional[Place] = None) -> None:
        self._handle, self._place = handle, place
        self.facts = Facts(C.stream_facts(handle))  #: name, counts, times, hash

    def __len__(self) -> int:
        return int(self.facts.events)

    def __repr__(self) -> str:
        f = self.facts
        return (f"<{f.name}: {f.events:,} events of {f.sources:,} sources and {f.destinations:,} destinations, "
                f"{f.feature_width} features each>")

    def window(self, size: Optional[int] = None, *, train: Optional[float] = None, val: Optional[float] = None,
               order: Optional[str] = None, split: Optional[str] = None, catalog: Any = None,
               filter: Optional[str] = None, part: Optional[str] = None, oov: Optional[str] = None,
               diagnostic: bool = False, threads: int = 0, progress: Progress = False, **options: Any) -> Window:
        """The last `size` events (0 = all), cut into parts, with the catalog that is ranked.

        Options and their defaults are those of the command line (`fullrank.options("window")`): `train` and `val` are
        shares; `order` is "stream", "strict" or "batch:200"; `split` "share", "quantile", "column", "rows:A,B" or
        "times:A,B"; `catalog` "fixed", "train+val", "all", "range", "time", a file or an array of ids; `filter` "none"
        or "same-time"; `part` "test" or "val"; `oov` "exclude" or "zero". With `diagnostic=True` the defaults are those
        of the diagnostics.
        """
        given = dict(options, window=size, train_share=train, val_share=val, order=order, split=split, catalog=catalog,
                     filter=filter, part=part, oov=oov)
        place = None
        if catalog is not None and not isinstance(catalog, (str, bytes, os.PathLike)):
            place = Place()
            given["catalog"] = place / "catalog.npy"
            np.save(given["catalog"], _core.whole(catalog, "catalog"))
        with talk(threads, progress) as how:
            handle = C.window_open(self._handle, _core.options(given), diagnostic, how)
        return Window(self, handle, catalog == "time" if isinstance(catalog, str) else False)

    def describe(self, window: Optional[Window] = None, diagnostic: Optional[Window] = None, *, threads: int = 0,
                 progress: Progress = False) -> Facts:
        """Facts of a window and a diagnostic window: coverage, repeats, ties, shape (`fullrank data info`)."""
        window = window or self.window(threads=threads)
        diagnostic = diagnostic or self.window(diagnostic=True, threads=threads)
        with talk(threads, progress) as how:
            return Facts(C.facts(window._handle, diagnostic._handle, how))

    def overlap(self, *, threads: int = 0, progress: Progress = False) -> Facts:
        """Ids that are both a source and a destination, and events from an id to itself."""
        with talk(threads, progress) as how:
            return Facts(C.stream_overlap(self._handle, how))

    def verify(self, *, threads: int = 0, progress: Progress = False) -> None:
        """Compares all contents with the hashes of the import; a difference is an InputError."""
        with talk(threads, progress) as how:
            C.stream_verify(self._handle, how)

    def save(self, path: Path, *, force: bool = False, threads: int = 0, progress: Progress = False) -> None:
        """Writes the stream as CSV, compressed if the name ends in .gz."""
        with talk(threads, progress) as how:
            C.stream_export(self._handle, _core.text(path), force, how)


def read(path: Path, *, threads: int = 0, progress: Progress = False, **options: Any) -> Events:
    """Reads a table of events (CSV, TSV, JODIE, DyGLib, TGB; plain or .gz), or a directory made by `import_file`, or a folder
    of DyGLib with its ml_NAME.csv and ml_NAME.npy.

    Columns are found by their names, or set by `columns="source=user,destination=3,time=ts"`. Options:
    `fullrank.options("import")`.
    """
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "manifest.json")):
        tables = [name for name in os.listdir(path) if name.startswith("ml_") and name.endswith(".csv")]
        if len(tables) == 1:
            path = os.path.join(path, tables[0])
    with talk(threads, progress) as how:
        return Events(C.stream_open(_core.text(path), _core.options(options), how))


_SKIPPED, _SOURCE, _DESTINATION, _TIME, _SPLIT, _FEATURE = range(6)  # FR_COLUMN_*
_COLUMNS = ["sources", "destinations", "times", "features", "split"]
_PARTS = {"train": 0, "val": 1, "test": 2}


def _columns(table: Any) -> Dict[str, Any]:
    """Columns of a frame by name: pandas, polars, Arrow, anything with an Arrow or a frame protocol, a dict."""
    if isinstance(table, Mapping):
        return dict(table)
    if hasattr(table, "column_names"):  # pyarrow
        return {name: table[name].to_numpy() for name in table.column_names}
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):  # pandas, polars
        return {str(name): table[name].to_numpy() for name in table.columns}
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__dataframe__"):
        import pyarrow
        import pyarrow.interchange

        arrow = hasattr(table, "__arrow_c_stream__")
        return _columns(pyarrow.table(table) if arrow else pyarrow.interchange.from_dataframe(table))
    raise C.UsageError(f"found {type(table).__name__}, expected sources, destinations and times, a frame, PyG's "
                       "TemporalData or a data set of TGB")


def _from_frame(table: Any, columns: Optional[str]) -> Dict[str, Any]:
    """Arrays by role; the library finds the roles by name, as in the header of a table."""
    found = _columns(table)
    roles = C.roles([_core.text(name) for name in found], None if columns is None else _core.text(columns))
    by = {role: [values for values, is_ in zip(found.values(), roles) if is_ == role] for role in range(6)}
    features = np.column_stack([_core.host(f) for f in by[_FEATURE]]) if by[_FEATURE] else None
    return {"source": by[_SOURCE][0], "destination": by[_DESTINATION][0], "time": by[_TIME][0],
            "split": by[_SPLIT][0] if by[_SPLIT] else None, "features": features}


def _from_tgb(data: Any) -> Dict[str, Any]:
    """Arrays of a TGB data set (LinkPropPredDataset, PyGLinkPropPredDataset), with its split."""
    full = getattr(data, "full_data", None) or data.dataset.full_data
    time = np.asarray(full["timestamps"])
    split = np.full(len(time), 2, np.uint8)
    split[np.asarray(data.train_mask)], split[np.asarray(data.val_mask)] = 0, 1
    return {"source": full["sources"], "destination": full["destinations"], "time": time, "split": split,
            "features": full.get("edge_feat")}


def _times(values: Any) -> Array:
    array = _core.host(values)
    try:
        if array.dtype.kind in "OSUT":  # numbers or dates, as in a file
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError):
                array = array.astype("datetime64")
        if array.dtype.kind == "M":  # seconds since 1970
            second = array.astype("datetime64[s]")
            array = np.where(np.isnat(array), np.nan, second.astype(np.int64) + (array - second) / np.timedelta64(1, "s"))
        if array.dtype.kind == "m":
            array = array / np.timedelta64(1, "s")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise C.InputError(f"times: {error}; expected numbers or dates") from None


def _words(values: Array) -> Tuple[List[bytes], Array]:
    missing = [place for place, value in enumerate(values.tolist()) if value is None or value != value]
    if missing:
        raise C.InputError(f"row {missing[0]}: id {values[missing[0]]}, expected a whole number or a word")
    words, places = np.unique(values.astype(str), return_inverse=True)
    return [str(word).encode() for word in words], np.ascontiguousarray(places.reshape(-1), dtype=np.int64)


def _ids(source: Any, destination: Any) -> Any:
    """Ids as int64, and lists of words if either role has words."""
    roles = [_core.host(source), _core.host(destination)]
    for k, role in enumerate(roles):  # objects that are all whole numbers are numbers, as in a file
        if role.dtype.kind == "O" and all(isinstance(one, numbers.Integral) for one in role.flat):
            roles[k] = np.array([int(one) for one in role.flat])
    if all(role.dtype.kind in "iu" for role in roles):
        return [_core.whole(role, "ids") for role in roles], [None, None]
    for role in roles:
        if role.dtype.kind not in "iuSUOT":
            raise C.InputError(f"ids of type {role.dtype}, expected whole numbers or words")
    pairs = [_words(role) for role in roles]
    return [places for _, places in pairs], [words for words, _ in pairs]


def events(source: Any, destination: Any = None, time: Any = None, features: Any = None, *, split: Any = None,
           name: str = "arrays", columns: Optional[str] = None, output: Optional[Path] = None, force: bool = False,
           threads: int = 0, progress: Progress = False, **options: Any) -> Events:
    """A stream from memory: sources, destinations, times and optional features [events, width].

    The only argument may also be a frame (pandas, polars, Arrow, a dict of columns), PyG's TemporalData, or a TGB data
    set. Columns of a frame are found by their names, or set by `columns="source=user"`. The split of a TGB data set is
    kept for `window(split="column")`. Ids are whole numbers or words. Times are numbers or datetime64. `split` has train,
    val, test, or 0, 1, 2. With `output` the columns are written to a directory, as by `import_file`.

    >>> import fullrank as fr
    >>> fr.events([0, 1, 0, 2], [5, 5, 7, 5], [1.0, 2.0, 2.5, 4.0])
    <arrays: 4 events of 3 sources and 2 destinations, 0 features each>
    """
    if destination is None and time is None:
        if hasattr(source, "full_data") or hasattr(source, "train_mask"):
            found = _from_tgb(source)
        elif all(hasattr(source, one) for one in ("src", "dst", "t")):
            found = {"source": source.src, "destination": source.dst, "time": source.t,
                     "features": getattr(source, "msg", None)}
        else:
            found = _from_frame(source, columns)
        return events(found["source"], found["destination"], found["time"],
                      found["features"] if features is None else features,
                      split=found.get("split") if split is None else split, name=name, output=output, force=force,
                      threads=threads, progress=progress, **options)
    ids, words = _ids(source, destination)
    times = _times(time)
    arrays: List[Optional[Array]] = [*ids, times, None, None]
    if features is not None:
        wide = np.ascontiguousarray(_core.host(features), dtype=np.float32)
        arrays[3] = wide[:, None] if wide.ndim == 1 else wide
    if split is not None:
        parts = _core.host(split)
        arrays[4] = np.array([_PARTS.get(str(p), 255) for p in parts], np.uint8) if parts.dtype.kind in "OUST" \
            else _core.whole(parts, "split", np.uint8)
    for k, array in enumerate(arrays):
        if array is not None and (len(array) != len(times) or array.ndim != (2 if k == 3 else 1)):
            raise C.InputError(f"{name}: {_COLUMNS[k]} of shape {array.shape}, expected one for each of {len(times)} times")
    at = [0 if array is None else _core.address(array) for array in arrays]
    width = 0 if arrays[3] is None else arrays[3].shape[1]
    with talk(threads, progress) as how:
        handle = C.stream_make(_core.text(name), len(times), *at[:3], width, at[3] if width else 0, at[4], *words,
                               _core.options(options), None if output is None else _core.text(output), force, how)
    return read(output, threads=threads) if output is not None else Events(handle)


def import_file(path: Path, output: Path, *, force: bool = False, threads: int = 0, progress: Progress = False,
                **options: Any) -> Events:
    """Turns a table into a directory of columns, which opens at once; see `read`."""
    with talk(threads, progress) as how:
        C.import_file(_core.text(path), _core.text(output), _core.options(options), force, how)
    return read(output, threads=threads)


def download(name: str, output: Path, *, url: Optional[str] = None, force: bool = False, threads: int = 0,
             progress: Progress = False, **options: Any) -> Events:
    """Downloads a public set (wikipedia, reddit, mooc, lastfm), or the file at `url`, and imports it."""
    with talk(threads, progress) as how:
        C.download(_core.text(name), None if url is None else _core.text(url), _core.text(output),
                   _core.options(options), force, how)
    return read(output, threads=threads)


def verify(path: Path, *, threads: int = 0, progress: Progress = False) -> List[Facts]:
    """Hashes every file of an imported directory; a difference is an InputError that names the file."""
    with talk(threads, progress) as how:
        return [Facts(one) for one in C.data_verify(_core.text(path), how)]


def synth(preset: str = "tiny", output: Optional[Path] = None, *, seed: Optional[int] = None,
          events: Optional[int] = None, parameters: Optional[Dict[str, Any]] = None, force: bool = False,
          threads: int = 0, progress: Progress = False) -> Events:
    """A synthetic stream whose true distribution is known: the scorer "oracle" gives the true probabilities.

    `fullrank.presets()` lists the presets, and `fullrank.options("synth_parameters")` the parameters. Without `output`
    the stream is kept as long as the object.
    """
    place = None if output is not None else Place()
    where = place / preset if place else _core.text(output)
    changes = None if parameters is None else \
        b",".join(_core.text(key) + b"=" + _core.text(value) for key, value in parameters.items())
    given = _core.options({"preset": preset, "seed": seed, "events": events, "parameters": changes})
    with talk(threads, progress) as how:
        C.synth(_core.text(where), given, force, how)
        return Events(C.stream_open(_core.text(where), {}, how), place)
