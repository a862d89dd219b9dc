"""Selection of annotations: the keywords by which public functions choose what they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finecomb.api.coercion import as_values
from finecomb.core.errors import ParameterError, param
from finecomb.core.study import Study
from finecomb.statistics.selection.subset import extract_substudy, join_conditions
from finecomb.statistics.selection.view import Filters, drop_marks

SELECTION = ("protocol", "label", "drop", "where", "back_off", "merge", "annotator", "kind", "rounds")
"""Keywords that select annotations in every function that reads a view."""


def build_filters(values: Mapping[str, Any]) -> Filters:
    """Return filters from those of `values` whose name is in `SELECTION`."""
    return Filters(
        protocol=values.get("protocol", ""),
        labels=as_values(values.get("label")),
        drop=as_values(values.get("drop")),
        where=as_values(values.get("where")),
        annotators=as_values(values.get("annotator")),
        kinds=as_values(values.get("kind")),
        rounds=values.get("rounds", "first"),
        back_off=values.get("back_off", "label"),
        merge=tuple(
            (name, tuple(labels.split("+"))) for name, labels in map(_split_merge, as_values(values.get("merge")))
        ),
    )


def _split_merge(pair: str) -> tuple[str, str]:
    """Return name and value of NAME=VALUE."""
    name, equals, value = pair.partition("=")
    if not (name and equals and value):
        raise ParameterError(f"{param('merge', pair)}: expected NEW=A+B", parameter="merge")
    return name, value


def select_part(study: Study, where: Sequence[str] = (), drop: Sequence[str] = ()) -> Study:
    """Return the part of a study that conditions and dropped labels leave, for functions that read no view."""
    condition = join_conditions(tuple(where))
    part = extract_substudy(study, condition) if condition else study
    return drop_marks(part, drop) if drop else part
