"""Ranking of systems by a measure, and the systems that are significantly best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from finecomb.core.results import Finding
from finecomb.statistics.comparisons.system_comparison import compare_systems_pairwise
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES
from finecomb.statistics.selection.view import ANY_LABEL, View

SIGNIFICANCE_LEVEL = 0.05
"""Corrected p-values below this level are significant."""
BEST_VALUE_RULE = "p < .05 by a permutation test over texts, corrected over pairs by max-t"
"""Rule that determines the significantly best value, as shown in captions."""
NO_BEST_VALUE_NOTE = "no value is significantly lower than all others (p < .05, corrected over pairs)"
LOWER_IS_BETTER_MEASURES = frozenset(
    {"coverage", "severity-coverage", "count", "score", "rate-100", "rate-1000", "marked-documents", "severity"}
)
"""Error measures, for which the lowest value is the best; other measures have no best value."""


class BestValue(NamedTuple):
    """Value that is significantly better than all others for the same measure and label."""

    measure: str
    label: str
    system: str


def significantly_lowest_values(view: View, findings: Iterable[Finding], by: str, **options: Any) -> set[BestValue]:
    """Return the lowest value of each measure and label if it differs significantly from the values of all others.

    Differences are those of `compare_systems_pairwise` with its `options`: a permutation test over clusters of
    documents, corrected by max-t over the pairs of one measure and label, p < .05. Systems are the values of `by`.
    There is no best value if a system has no value, if the lowest value is tied, or if there are fewer than two
    systems.
    """
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for finding in findings:
        name, label, system = (str(finding.columns.get(column)) for column in ("measure", "label", by))
        if name in LOWER_IS_BETTER_MEASURES and finding.columns.get("level") in ("", "token"):
            cells.setdefault((name, label), {})[system] = finding.estimate.value
    best: set[BestValue] = set()
    for (name, label), values in cells.items():
        lowest = min(values, key=lambda system: values[system])
        if len(values) > 1 and not any(map(math.isnan, values.values())) and len(set(values.values())) > 1:
            uses = {option: value for option, value in options.items() if option in ANNOTATION_MEASURES[name].uses}
            differences = [
                (sign * pair.estimate.value, pair.columns["p_adjusted"])
                for pair in compare_systems_pairwise(view, by, name, [label], **uses)
                for side, sign in (("a", 1), ("b", -1))
                if pair.columns[side] == lowest
            ]
            if all(value < 0 and isinstance(p, float) and p < SIGNIFICANCE_LEVEL for value, p in differences):
                best.add(BestValue(name, label, lowest))
    return best


def sort_groups_by_value(findings: Sequence[Finding], by: Sequence[str]) -> list[Finding]:
    """Sort the groups of findings by value, lowest first and undefined last.

    A group is sorted by the value of its first measure over all labels. The order within a group is kept.
    """
    values: dict[tuple[object, ...], float] = {}
    for finding in findings:
        if finding.columns.get("label", ANY_LABEL) == ANY_LABEL:
            values.setdefault(_group_key(finding, by), finding.estimate.value)
    measures = list(dict.fromkeys(finding.columns.get("measure") for finding in findings))

    def sort_key(finding: Finding) -> tuple[int, bool, float]:
        value = values.get(_group_key(finding, by), math.nan)
        return measures.index(finding.columns.get("measure")), math.isnan(value), 0.0 if math.isnan(value) else value

    return sorted(findings, key=sort_key)


def _group_key(finding: Finding, by: Sequence[str]) -> tuple[object, ...]:
    return tuple(finding.columns.get(name) for name in by)
