"""Inputs of public functions: a study from a path, a DataFrame or a list of dicts; names from one string or several."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from finecomb import formats
from finecomb.api.parameters import Names, Values
from finecomb.core.errors import ParameterError
from finecomb.core.results import Result
from finecomb.core.study import Study
from finecomb.core.study_checks import check_items
from finecomb.formats.base import Options
from finecomb.formats.mark_table_records import read_records


class HasStudy(typing.Protocol):
    """A result that holds a study, such as those of `new`, `simulate` and `gold`."""

    @property
    def study(self) -> Study:
        """The study."""


if TYPE_CHECKING:
    import pandas

    _Table: TypeAlias = pl.DataFrame | pandas.DataFrame | Sequence[Mapping[str, Any]]
    StudyLike: TypeAlias = Study | HasStudy | str | PathLike[str] | _Table
else:
    StudyLike = Any  # pandas need not be installed
"""A study, a result with one, or what one can be read from: a path in any format, a DataFrame, or a list of dicts."""


def as_study(value: StudyLike, parameter: str = "study") -> Study:
    """Return a study from a study, a result with one, a path, a DataFrame, or a list of dicts with one text per row."""
    if isinstance(value, Study):
        return value
    if isinstance(value, Result) and isinstance(study := getattr(value, "study", None), Study):
        return study
    if isinstance(value, str | PathLike):
        return formats.read(Path(fspath(value)))
    rows = _table_rows(value, parameter)
    cells = [(number, {str(name): _cell(item) for name, item in row.items()}) for number, row in enumerate(rows, 2)]
    return Study.from_items(check_items(read_records(lambda: iter(cells), Path("table"), Options())))


def _cell(value: Any) -> str:
    """Return a value as a cell of a table: missing values are empty, lists and mappings JSON."""
    if value is None or value != value:  # NaN, by which pandas marks what is missing
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _table_rows(value: Any, parameter: str) -> list[dict[str, Any]]:
    if isinstance(value, pl.DataFrame):
        return value.to_dicts()
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # pandas, which need not be installed
        return list(value.to_dict(orient="records"))
    if isinstance(value, Sequence) and all(isinstance(row, Mapping) for row in value):
        return [dict(row) for row in value]
    raise ParameterError(
        f"expected a Study, a path, a DataFrame or a list of dicts, found {type(value).__name__}", parameter=parameter
    )


def as_names(value: Names | None) -> tuple[str, ...]:
    """Return names from one string, with commas between them, or from several strings.

    >>> as_names("alpha, f1"), as_names(["alpha", "f1"]), as_names(None)
    (('alpha', 'f1'), ('alpha', 'f1'), ())
    """
    if value is None:
        return ()
    words = value.split(",") if isinstance(value, str) else value
    return tuple(word.strip() for word in words if word.strip())


def as_values(value: Values | None) -> tuple[str, ...]:
    """Return a tuple from one string, which is not split, or from several.

    >>> as_values("a, b"), as_values(["a", "b"])
    (('a, b',), ('a', 'b'))
    """
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
