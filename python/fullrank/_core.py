"""Shared by the modules of the package: texts, options, arrays in and out, progress and messages."""

from __future__ import annotations

import logging
import numbers
import os
import shutil
import tempfile
import warnings
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import _fullrank as C

log = logging.getLogger("fullrank")
log.addHandler(logging.NullHandler())

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
else:
    Array = np.ndarray
Path = Union[str, "os.PathLike[str]"]
#: Progress: False (silence), True (a tqdm bar, if tqdm is installed), or a function of (stage, done, total, unit).
Progress = Union[bool, Callable[[str, int, int, str], Any]]
How = Tuple[int, Optional[Callable[[str, int, int, str], Any]], Callable[[str, str], None]]


class Warning(UserWarning):  # noqa: A001 - fullrank.Warning, as fullrank.Error
    """The category of fullrank's warnings in Python's `warnings`."""


# ---- texts and options ----


def text(value: Any) -> bytes:
    """A value as text, as on the command line."""
    if isinstance(value, (bool, np.bool_)):
        return b"yes" if value else b"no"
    if isinstance(value, numbers.Integral):
        return str(int(value)).encode()
    if isinstance(value, numbers.Real):
        return repr(float(value)).encode()
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsencode(value)
    if isinstance(value, Iterable):
        return b",".join(text(one) for one in value)
    raise C.UsageError(f"found {value!r}, expected a number, a text, True or False")


def options(given: Mapping[str, Any]) -> Dict[str, bytes]:
    """The given options; None means the default. The library knows names, ranges and defaults."""
    return {key: text(value) for key, value in given.items() if value is not None}


def about(name: str, catalog_only: bool, given: Mapping[str, Any]) -> Dict[str, Any]:
    """The description of a scorer, which is stored with its records."""
    if "\0" in name:
        raise C.UsageError(f"name {name!r}, expected one without a null character")
    out: Dict[str, Any] = {"name": os.fsencode(name), "catalog_only": int(catalog_only)}
    for key, value in given.items():
        if value is not None:
            out[key] = os.fsencode(value) if isinstance(value, (str, os.PathLike)) else int(value)
    return out


# ---- arrays out ----


class _Memory:
    """Memory of the library that NumPy reads in place; `owner` lives as long as any array of it."""

    def __init__(self, owner: Any, address: int, size: int, writeable: bool) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, not writeable)}


def view(owner: Any, address: int, dtype: Any, *shape: int, writeable: bool = False) -> Array:
    """An array in the library's memory: nothing is copied."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if not size or not address:
        empty = np.empty(shape, kind)
        empty.flags.writeable = writeable
        return empty
    return np.asarray(_Memory(owner, address, size, writeable)).view(kind).reshape(shape)


record_dtype = np.dtype(C.record_fields())


def _layout(name: str, types: Mapping[str, str]) -> "np.dtype[Any]":
    size, offsets = C.layouts()[name]
    names = list(offsets)
    return np.dtype({"names": names, "formats": [types[n] for n in names], "offsets": [offsets[n] for n in names],
                     "itemsize": size})


query_dtype = _layout("query", {"event": "<i4", "source": "<i4", "time": "<f8"})
event_dtype = _layout("event", {"event": "<i4", "source": "<i4", "destination": "<i4", "time": "<f8",
                                "features": "<u8"})


# ---- arrays in ----


def host(values: Any) -> Array:
    """Anything array-like as a NumPy array: in place if possible, copied from a GPU if necessary."""
    if isinstance(values, np.ndarray):
        if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
            raise C.InputError("found an array with masked values, expected a value everywhere")
        return values
    if type(values).__module__.partition(".")[0] == "torch":
        tensor = values.detach().cpu()
        if tensor.dtype.is_floating_point and tensor.element_size() < 4:
            tensor = tensor.float()
        return tensor.numpy()
    if hasattr(values, "__dlpack_device__"):
        if values.__dlpack_device__()[0] == 1 and hasattr(np, "from_dlpack"):
            return np.from_dlpack(values)
        if hasattr(values, "get"):  # CuPy
            values = values.get()
    return np.asarray(values)


def whole(values: Any, what: str, kind: Any = np.int64) -> Array:
    """Whole numbers of this type in C order; a value that the type cannot represent is an error, not another value."""
    array = np.atleast_1d(host(values))
    if array.dtype.kind not in "iufb":
        raise C.InputError(f"{what} of type {array.dtype}, expected whole numbers")
    with np.errstate(invalid="ignore"):
        out = np.ascontiguousarray(array, dtype=kind)
    bad = (out != array) | ((out < 0) != (array < 0))
    if bad.any():
        limits = np.iinfo(kind)
        raise C.InputError(f"{what}: found {array[bad][0]}, expected whole numbers from {limits.min} to {limits.max}")
    return out


def address(array: Array) -> Any:
    """Where the array is, for the extension module."""
    return array.__array_struct__


def scores(values: Any, shape: Tuple[int, int], what: str) -> Array:
    """Scores as float32 in C order. Nothing is copied if they already are. As in score files, a row that float32 cannot
    represent exactly is replaced by its ranks, so that rounding makes no ties."""
    array = host(values)
    if array.dtype == np.float32 and array.shape == shape and array.flags.c_contiguous:
        return array
    if shape[0] == 1 and array.ndim == 1:
        array = array[None, :]
    if array.shape != shape:
        raise C.UsageError(f"{what}: scores of shape {array.shape}, expected {shape}")
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise C.UsageError(f"{what}: scores of type {array.dtype}, expected numbers")
    if array.dtype == np.float32 or array.dtype == np.float16:
        return np.ascontiguousarray(array, dtype=np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        out = array.astype(np.float32)
        lost = ((out != array) & np.isfinite(array)).any(axis=1)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:  # which are compared as float64, and it rounds as well
        lost |= (array > 2**53).any(axis=1) | (array < -2**53 if array.dtype.kind == "i" else array < 0).any(axis=1)
    for row in np.flatnonzero(lost):
        if np.isfinite(array[row]).all():
            out[row] = np.unique(array[row], return_inverse=True)[1].reshape(-1)
    return np.ascontiguousarray(out)


# ---- progress and messages ----


class _Bar:
    """Progress by tqdm: one bar for each stage. A study is one stage, of milliseconds ("ms"), whose total changes."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.key: Any = None

    def __call__(self, stage: str, done: int, total: int, unit: str) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        study = unit == "ms"
        key = unit if study else (total, unit)
        if self.bar is None or key != self.key or (done < self.bar.n and not study):
            self.close()
            self.bar, self.key = tqdm(total=total or None, desc=stage, unit=" " + unit, leave=False), key
        self.bar.total = total or None
        self.bar.set_description(stage, refresh=False)
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _log(line: str, level: str) -> None:
    if level == "warning":
        warnings.warn(line, Warning, stacklevel=4)
    else:
        log.info(line)


@contextmanager
def talk(threads: int, progress: Progress) -> Iterator[How]:
    """How a call reports to its caller: the third argument of all long work."""
    if not isinstance(threads, numbers.Integral) or threads < 0:
        raise C.UsageError(f"threads: found {threads!r}, expected a whole number, 0 = all cores")
    bar = _Bar() if progress is True else None
    try:
        yield (int(threads), bar or (progress if callable(progress) else None), _log)
    finally:
        if bar:
            bar.close()


# ---- places ----


def _remove(path: str, process: int) -> None:
    if os.getpid() == process:  # a forked child leaves its parent's files alone
        shutil.rmtree(path, ignore_errors=True)


class Place:
    """A directory that disappears with this object, or with the program."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="fullrank-")
        weakref.finalize(self, _remove, self.path, os.getpid())

    def __truediv__(self, name: str) -> str:
        return os.path.join(self.path, name)


# ---- results ----


class Facts(Dict[str, Any]):
    """Facts by name: `facts.events` and `facts["events"]` are the same."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{name!r}, expected one of {', '.join(self)}") from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.items())
        return f"Facts({inside})"


def facts(value: Any) -> Any:
    """Dicts of the extension module as Facts, all the way down."""
    if isinstance(value, dict):
        return Facts({key: facts(one) for key, one in value.items()})
    if isinstance(value, list):
        return [facts(one) for one in value]
    return value
