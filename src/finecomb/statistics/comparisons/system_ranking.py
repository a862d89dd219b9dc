"""The order of systems by what was measured, and which of them is best beyond chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from finecomb.core.estimate import Finding
from finecomb.statistics.comparisons.system_comparison import compare
from finecomb.statistics.measures.annotation_measures import MEASURES
from finecomb.statistics.selection.view import ANY, View

SIGNIFICANCE_LEVEL = 0.05
"""Below this corrected p a difference counts."""
BEST_RULE = "p < .05 by a permutation test over texts, corrected over pairs by Holm's method"
"""How it is decided which value is the best."""
NO_BEST = "no value is lower than all others beyond chance (p < .05, corrected over pairs)"
FEWER_IS_BETTER = frozenset(
    {"coverage", "severity-coverage", "count", "score", "rate-1000", "marked-documents", "severity"}
)
"""Measures of how much is wrong; of others it cannot be said which value is the best."""


class BestValue(NamedTuple):
    """The cell of a table that is better than all others of its measure and label."""

    measure: str
    label: str
    system: str


def significantly_lowest_values(view: View, findings: Iterable[Finding], by: str, **options: Any) -> set[BestValue]:
    """The lowest value of each measure and label, where it differs from that of every other system.

    The differences are those of `compare` (a permutation test over documents, Holm's correction over the pairs of one
    measure and label, p < .05), with its `options`. Systems are the values of `by`. Nothing is best where a system has
    no value, where the lowest value is not alone, or where there are fewer than two systems.
    """
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for finding in findings:
        name, label, system = (str(finding.columns.get(column)) for column in ("measure", "label", by))
        if name in FEWER_IS_BETTER and finding.columns.get("level") in ("", "token"):
            cells.setdefault((name, label), {})[system] = finding.estimate.value
    best: set[BestValue] = set()
    for (name, label), values in cells.items():
        lowest = min(values, key=lambda system: values[system])
        if len(values) > 1 and not any(map(math.isnan, values.values())) and len(set(values.values())) > 1:
            uses = {option: value for option, value in options.items() if option in MEASURES[name].uses}
            pairs = compare(view, by, name, [label], **uses)
            if _is_significantly_lowest(lowest, pairs):
                best.add(BestValue(name, label, lowest))
    return best


def _is_significantly_lowest(system: str, pairs: Iterable[Finding]) -> bool:
    """Whether a system is lower than each of the others, p corrected."""
    signs = {"a": 1, "b": -1}
    for pair in pairs:
        for side, sign in signs.items():
            p = pair.columns["p_adjusted"]
            is_lower = sign * pair.estimate.value < 0 and isinstance(p, float) and p < SIGNIFICANCE_LEVEL
            if pair.columns[side] == system and not is_lower:
                return False
    return True


def sort_groups_by_value(findings: Sequence[Finding], by: Sequence[str]) -> list[Finding]:
    """The findings with groups in the order of their values, lowest first, undefined last.

    The value of a group is that of the first measure over all labels; within a group the order stays.
    """
    values: dict[tuple[object, ...], float] = {}
    for finding in findings:
        if finding.columns.get("label", ANY) == ANY:
            values.setdefault(_group_key(finding, by), finding.estimate.value)
    measures = list(dict.fromkeys(finding.columns.get("measure") for finding in findings))

    def sort_key(finding: Finding) -> tuple[int, bool, float]:
        value = values.get(_group_key(finding, by), math.nan)
        return measures.index(finding.columns.get("measure")), math.isnan(value), 0.0 if math.isnan(value) else value

    return sorted(findings, key=sort_key)


def _group_key(finding: Finding, by: Sequence[str]) -> tuple[object, ...]:
    return tuple(finding.columns.get(name) for name in by)
