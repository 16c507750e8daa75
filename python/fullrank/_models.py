"""Training the built-in models, and reading trained models."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Mapping, Optional, Tuple, Union

import numpy as np

from . import _core, _fullrank as C
from ._core import Array, Facts, Path, Place, Progress, talk
from ._ranking import Ranking
from ._window import Window

_TYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}


def _read_tensors(path: str) -> Tuple[Dict[str, Any], Dict[str, Array]]:
    """Header and tensors of a .safetensors file; the arrays are maps of the file."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > os.fstat(file.fileno()).st_size:
                raise ValueError(f"a header of {length} bytes")
            header = json.loads(file.read(length))
        data = np.memmap(path, np.uint8, "r", offset=8 + length)
        out = {}
        for name, entry in header.items():
            if name != "__metadata__":
                low, high = entry["data_offsets"]
                out[name] = data[low:high].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
    except OSError as error:
        raise C.FileError(f"{path}: cannot be read: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise C.InputError(f"{path}: not a .safetensors file: {error}") from None
    return header, out


class Run:
    """A trained model: a directory with model.safetensors and train.json, or a checkpoint alone.

    >>> import fullrank as fr
    >>> window = fr.synth("tiny").window()
    >>> run = window.train("craft", epochs=1, dim=8, layers=1, history=16)
    >>> run
    <run of craft, 1 epoch>
    >>> ranking = window.rank(run)
    >>> ranking.facts.model, ranking.facts.epochs_done
    ('craft', 1)
    """

    def __init__(self, path: Path, place: Optional[Place] = None) -> None:
        self._place = place
        whole = os.fspath(path)
        folder = os.path.isdir(whole)
        self.path = whole if folder else os.path.dirname(whole)  #: of the directory
        self.checkpoint = os.path.join(whole, "model.safetensors") if folder else whole  #: of the model
        header, self._tensors = _read_tensors(self.checkpoint)
        self.metadata: Dict[str, str] = header.get("__metadata__", {})  #: of the checkpoint
        record = os.path.join(self.path, "train.json")
        self.facts = Facts()  #: train.json: settings, loss and time of every epoch, validation curve
        if folder and os.path.exists(record):
            with open(record, encoding="utf-8") as file:
                self.facts = _core.facts(json.load(file))

    def __repr__(self) -> str:
        epochs = int(self.metadata.get("epochs_done", self.metadata.get("epochs", "0")) or 0)
        return f"<run of {self.metadata.get('model', '?')}, {epochs} epoch{'s' if epochs != 1 else ''}>"

    def weights(self) -> Dict[str, Array]:
        """Parameters by name, as read-only NumPy arrays that map the file."""
        return {name: array for name, array in self._tensors.items() if array.dtype.kind == "f"}

    def state_dict(self) -> Dict[str, Any]:
        """Parameters as torch tensors, for `load_state_dict`."""
        import torch

        return {name: torch.tensor(array) for name, array in self.weights().items()}

    def save_weights(self, weights: Mapping[str, Any], output: Path, *, force: bool = False) -> "Run":
        """Writes a checkpoint of the same model with other parameters, NumPy or torch, for example weights from elsewhere."""
        own = self.weights()
        given = {name: _core.host(values) for name, values in weights.items()}
        for name in [*own, *given]:
            if name not in given or name not in own:
                raise C.InputError(f"{name}: {'no parameter of this model' if name in given else 'missing'}")
            if given[name].shape != own[name].shape:
                raise C.InputError(f"{name}: shape {given[name].shape}, expected {own[name].shape}")
        where = os.fspath(output)
        if os.path.exists(where) and not force:
            raise C.ForceError(f"{where}: exists, give force to replace it")
        with open(self.checkpoint, "rb") as file:
            start = 8 + int.from_bytes(file.read(8), "little")
            file.seek(0)
            head = file.read(start)
            body = bytearray(file.read())
        header = json.loads(head[8:])
        for name, values in given.items():
            low, high = header[name]["data_offsets"]
            body[low:high] = np.ascontiguousarray(values, dtype=own[name].dtype).tobytes()
        part = f"{where}.{os.getpid()}.part"
        try:
            with open(part, "wb") as file:
                file.write(head + body)
            os.replace(part, where)
        finally:
            if os.path.exists(part):
                os.remove(part)
        return Run(where)


def train(window: Window, model: str, output: Optional[Path] = None, *, force: bool = False, threads: int = 0,
          progress: Progress = False, **options: Any) -> Run:
    """Trains a model on the window's training part; `window.train(model, ...)` is the same."""
    keys = {o["key"].replace("-", "_") for o in C.options()["model"]}
    given = {key.replace("-", "_"): value for key, value in options.items()}
    training = {key: value for key, value in given.items() if key not in keys}  # an unknown one, too: see its error
    shape = {key: value for key, value in given.items() if key in keys}
    place = Place() if output is None else None
    where = place / "run" if place else os.fspath(output or "")
    with talk(threads, progress) as how:
        C.train(window._handle, _core.text(model), _core.options(training), _core.options(shape), _core.text(where),
                force, how)
    return Run(where, place)


def load(path: Path) -> Union[Ranking, Run]:
    """Reads results back: rank records (RANKS.npy), or a run (its directory, or FILE.safetensors)."""
    if os.path.isdir(path) or os.fspath(path).endswith(".safetensors"):
        return Run(path)
    return Ranking(C.ranking_load(_core.text(path)))
