"""Parameters of public functions: their types, checks and descriptions, and the values made from arguments.

The signature and the Parameters section of a public function are the only source of its parameters. `public` checks the
values of a call, the command line derives its flags from the same types, and the server the fields of its requests.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar, get_args, get_origin

import polars as pl

from finecomb import formats
from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.results import Result
from finecomb.core.study import Study
from finecomb.core.study_checks import check_items
from finecomb.formats.base import Options
from finecomb.formats.imports.guess import find_mark_lists
from finecomb.formats.imports.importer import plan_import, read_plan
from finecomb.formats.imports.reader import ReaderOptions
from finecomb.formats.mark_table_reader import read_records
from finecomb.statistics.selection.subset import extract_substudy, join_conditions
from finecomb.statistics.selection.view import Filters, View, drop_marks, view

COMMA_SEPARATED, REPEATED = "comma-separated", "repeated"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Minimum and maximum of a number; None for no bound."""

    min: float | None = None
    max: float | None = None


Names = Annotated[str | Sequence[str], COMMA_SEPARATED]
"""One name or several, also as one comma-separated string."""
Values = Annotated[str | Sequence[str], REPEATED]
"""One value or several; a string is one value, even with commas."""
Count = Annotated[int, Bounds(0)]
"""A whole number of at least 0."""
PositiveInt = Annotated[int, Bounds(1)]
Share = Annotated[float, Bounds(0, 1)]
"""A number from 0 to 1."""
NonNegative = Annotated[float, Bounds(0)]


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
    StudyLike = Any  # pandas is an optional package
"""A study, a result that holds one, or its source: a path in any format, a DataFrame, or a list of dicts."""

P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a public function against its types: choices of a Literal, and bounds of numbers.

    An int is converted to float if the type is float.
    """
    signature = inspect.signature(function)

    @functools.cache
    def checks() -> tuple[dict[str, Callable[[str, Any], None]], frozenset[str]]:
        """Return the checks by parameter, and the parameters of type float; evaluating types is slow."""
        hints = typing.get_type_hints(function, include_extras=True)
        found: dict[str, Callable[[str, Any], None]] = {}
        for name, hint in hints.items():
            if name != "return" and (bounds := bounds_of(hint)):
                found[name] = functools.partial(_check_bounds, bounds)
            elif name != "return" and (choices := literal_choices(hint)):
                found[name] = functools.partial(_check_choice, choices)
        members = {name: set(get_args(hint) or [hint]) for name, hint in typing.get_type_hints(function).items()}
        return found, frozenset(name for name, kinds in members.items() if kinds - {type(None)} == {float})

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        check_by_name, floats = checks()
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError:
            for name in keywords:
                if name not in signature.parameters:
                    near = did_you_mean(name, signature.parameters)
                    message = f"{function.__name__}() has no parameter {name!r}{near}"
                    raise ParameterError(message, parameter=name) from None
            raise
        for name, value in bound.arguments.items():
            if name in check_by_name and value is not None:
                check_by_name[name](name, value)
            if name == "seed" and isinstance(value, int) and value < 0:
                raise ParameterError(f"{param('seed')} must be at least 0, found {value}", parameter="seed")
        for name in floats & bound.arguments.keys():
            if type(bound.arguments[name]) is int:  # 1 and 1.0 must give one signature, as on the command line
                bound.arguments[name] = float(bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return call


def bounds_of(hint: Any) -> Bounds | None:
    """Return the bounds of a numeric type, even if it allows None; return None for a type without bounds."""
    metadata = [item for member in (hint, *get_args(hint)) for item in getattr(member, "__metadata__", ())]
    return next((item for item in metadata if isinstance(item, Bounds)), None)


def literal_choices(hint: Any) -> tuple[Any, ...]:
    """Return the choices of a Literal, even if it allows None; empty for other types."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    members = [member for member in get_args(hint) if member is not type(None)]
    return literal_choices(members[0]) if len(members) == 1 and get_origin(hint) is not tuple else ()


def _check_choice(choices: tuple[Any, ...], name: str, value: Any) -> None:
    if isinstance(value, str) and value not in choices:
        listed = ", ".join(map(str, choices))
        raise ParameterError(f"{param(name)} must be one of {listed}, found {value!r}", parameter=name)


def _check_bounds(bounds: Bounds, name: str, value: Any) -> None:
    if bounds.min is not None and value < bounds.min:
        raise ParameterError(f"{param(name)} must be at least {bounds.min:g}, found {value:g}", parameter=name)
    if bounds.max is not None and value > bounds.max:
        raise ParameterError(f"{param(name)} must be at most {bounds.max:g}, found {value:g}", parameter=name)


def changed_parameters(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of `values` (usually `locals()`) that differ from the default of their parameter.

    An option that does not apply is refused only if it differs from its default, which changes nothing.
    """
    parameters = inspect.signature(function).parameters
    return {
        name: value
        for name, value in values.items()
        if name in parameters and parameters[name].default is not inspect.Parameter.empty
        # a DataFrame compares cell by cell
        and ((hasattr(value, "columns") and hasattr(value, "shape")) or value != parameters[name].default)
    }  # fmt: skip


# --- values from arguments -------------------------------------------------------------------------------------------


def as_study(value: StudyLike, parameter: str = "study") -> Study:
    """Return a study from a study, a result with one, a path, a DataFrame, or a list of dicts with one text per row."""
    if isinstance(value, Study):
        return value
    if isinstance(value, Result) and isinstance(study := getattr(value, "study", None), Study):
        return study
    if isinstance(value, str | PathLike):
        return formats.read(Path(fspath(value)))
    if hasattr(value, "samples") and hasattr(value, "eval"):  # inspect_ai.log.EvalLog
        return _import_rows(value)
    rows = _table_rows(value, parameter)
    if find_mark_lists(rows[:20]):  # nested marks would become meta
        return _import_rows(rows)
    cells = [(number, {str(name): _cell(item) for name, item in row.items()}) for number, row in enumerate(rows, 2)]
    return Study.from_items(check_items(read_records(lambda: iter(cells), Path("table"), Options())))


def _import_rows(rows: Any) -> Study:
    _, items = read_plan(plan_import(rows), ReaderOptions(no_row="unread"))
    return Study.from_items(check_items(items))


def _cell(value: Any) -> str:
    """Return a value as a cell of a table: missing values are empty, and lists and mappings become JSON."""
    if value is None or value != value:  # pandas marks missing values with NaN
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _table_rows(value: Any, parameter: str) -> list[dict[str, Any]]:
    if isinstance(value, pl.DataFrame):
        return value.to_dicts()
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # pandas, an optional package
        return list(value.to_dict(orient="records"))
    if isinstance(value, Sequence) and all(isinstance(row, Mapping) for row in value):
        return [dict(row) for row in value]
    raise ParameterError(
        f"expected a Study, a path, a DataFrame or a list of dicts, found {type(value).__name__}", parameter=parameter
    )


def as_names(value: Names | None) -> tuple[str, ...]:
    """Return names from one comma-separated string or from several strings.

    >>> as_names("alpha, f1"), as_names(["alpha", "f1"]), as_names(None)
    (('alpha', 'f1'), ('alpha', 'f1'), ())
    """
    if value is None:
        return ()
    words = value.split(",") if isinstance(value, str) else value
    return tuple(word.strip() for word in words if word.strip())


def as_values(value: Values | None) -> tuple[str, ...]:
    """Return a tuple of values from one string, which is not split, or from several strings.

    >>> as_values("a, b"), as_values(["a", "b"])
    (('a, b',), ('a', 'b'))
    """
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


SELECTION = ("protocol", "label", "drop", "where", "back_off", "merge", "annotator", "kind", "rounds")
"""Keywords that select annotations in every function that reads a View."""


def select_view(study: StudyLike | View, chosen: Mapping[str, Any]) -> View:
    """Return the annotations selected by those `chosen` keywords whose name is in `SELECTION`.

    A View is already a selection, so it cannot be combined with such keywords.
    """
    if not isinstance(study, View):
        filters = None if chosen.keys().isdisjoint(SELECTION) else build_filters(chosen)
        return view(study if isinstance(study, Study) else as_study(study), filters)
    for name in SELECTION:
        if name in chosen:
            raise ParameterError(
                f"{param(name)} does not apply to a View; pass it to view() as a Filters value", parameter=name
            )
    return study


def build_filters(values: Mapping[str, Any]) -> Filters:
    """Build filters from those `values` whose name is in `SELECTION`."""
    fields: dict[str, Any] = {name: values[name] for name in ("protocol", "rounds", "back_off") if name in values}
    fields |= {field: as_values(values[name]) for name, field in _FILTER_BY_KEYWORD.items() if name in values}
    if "merge" in values:
        pairs = {pair: pair.partition("=") for pair in as_values(values["merge"])}
        for pair, parts in pairs.items():
            if not all(parts):
                raise ParameterError(f"{param('merge', pair)}: expected NEW=A+B", parameter="merge")
        fields["merge"] = tuple((name, tuple(labels.split("+"))) for name, _, labels in pairs.values())
    return Filters(**fields)


_FILTER_BY_KEYWORD = {"label": "labels", "drop": "drop", "where": "where", "annotator": "annotators", "kind": "kinds"}


def select_part(study: Study, where: Sequence[str] = (), drop: Sequence[str] = ()) -> Study:
    """Return the part of a study that matches conditions, without dropped labels, for functions that accept no View."""
    part = extract_substudy(study, condition) if where and (condition := join_conditions(tuple(where))) else study
    return drop_marks(part, drop) if drop else part


# --- docstrings ------------------------------------------------------------------------------------------------------

_PARAMETER_LINE = re.compile(r"^(\*{0,2}\w+(?:, \w+)*) : ")


def parameter_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter in the Parameters section of a NumPy-style docstring.

    >>> def f(draws: int = 0) -> None:
    ...     '''Summary.
    ...
    ...     Parameters
    ...     ----------
    ...     draws : int, default 0
    ...         Resamples per interval.
    ...         None are drawn for 0.
    ...     '''
    >>> parameter_descriptions(f)
    {'draws': 'Resamples per interval. None are drawn for 0.'}
    """
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    if "Parameters" not in lines:
        return {}
    start = lines.index("Parameters") + 2
    descriptions: dict[str, list[str]] = {}
    names: list[str] = []
    for line, following in zip(lines[start:], [*lines[start + 1 :], ""], strict=False):
        if following.startswith("---"):
            break
        if found := _PARAMETER_LINE.match(line):
            names = found[1].split(", ")
            descriptions |= {name: [] for name in names}
        elif line.strip():
            for name in names:
                descriptions[name].append(line.strip())
    return {name: " ".join(words) for name, words in descriptions.items()}


def parameter_help(function: Callable[..., Any]) -> dict[str, str]:
    """Return the first sentence of each parameter's description, which is the help of its flag."""
    return {
        name: re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text, maxsplit=1)[0]
        for name, text in parameter_descriptions(function).items()
    }
