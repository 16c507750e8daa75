"""Tables in the usual formats; the library writes them, as for the command line."""

from __future__ import annotations

import math
import os
from typing import Any, List, Optional, Sequence, Tuple

from . import _fullrank as C

_FORMATS = ["text", "latex", "markdown", "csv", "html"]
_INTEGER, _NUMBER, _MEAN, _INTERVAL, _DIFFERENCE = range(2, 7)


def _bytes(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else os.fsencode(text)


class Table:
    """A table: print it, or use `to_latex()`, `to_markdown()`, `to_csv()`; notebooks show it as HTML."""

    def __init__(self, heads: Sequence[Any], rows: Sequence[Sequence[Any]], *, title: Optional[str] = None,
                 caption: Optional[str] = None, protocol: Optional[str] = None,
                 best: Sequence[Tuple[int, bool]] = (), notes: Sequence[str] = ()) -> None:
        self._about = (_bytes(title), _bytes(caption), _bytes(protocol))
        pairs = [head if isinstance(head, tuple) else (None, head) for head in heads]
        self._columns = [(_bytes(group), os.fsencode(head), k == 0) for k, (group, head) in enumerate(pairs)]
        self._rows = [[self._cell(cell) for cell in row] for row in rows]
        self._best, self._notes = list(best), [os.fsencode(note) for note in notes]

    @staticmethod
    def _cell(value: Any) -> Any:
        if value is None or isinstance(value, tuple):
            return value
        if isinstance(value, int):
            return (_INTEGER, 0, float(value), math.nan, math.nan, math.nan)
        return os.fsencode(value) if isinstance(value, str) else Table.number(value)

    @staticmethod
    def number(value: float, sd: float = math.nan, decimals: int = 4) -> Any:
        """A number; with `sd`, a mean and its standard deviation."""
        return (_NUMBER if math.isnan(sd) else _MEAN, decimals, value, sd, math.nan, math.nan)

    @staticmethod
    def interval(pair: Tuple[float, float], decimals: int = 4) -> Any:
        """An interval."""
        return (_INTERVAL, decimals, math.nan, math.nan, pair[0], pair[1])

    @staticmethod
    def difference(value: float, decimals: int = 4) -> Any:
        """A number with its sign."""
        return (_DIFFERENCE, decimals, value, math.nan, math.nan, math.nan)

    def to(self, format: str) -> str:
        """The table as text, latex, markdown, csv or html."""
        if format not in _FORMATS:
            raise C.UsageError(f"format {format!r} of a table, expected one of {', '.join(_FORMATS)}")
        return C.table(self._about, self._columns, self._rows, self._best, self._notes, _FORMATS.index(format))

    def to_latex(self) -> str:
        """A table environment on booktabs."""
        return self.to("latex")

    def to_markdown(self) -> str:
        """A pipe table."""
        return self.to("markdown")

    def to_csv(self) -> str:
        """RFC 4180, with all digits."""
        return self.to("csv")

    def __str__(self) -> str:
        return self.to("text")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to("html")


def join(tables: List[Table], format: str) -> str:
    """Several tables one after the other."""
    return "\n".join(table.to(format) for table in tables)
