"""Guesses in practice and work: who was right while practising, and are they right afterwards?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Finding, Signature
from finecomb.core.results import Findings
from finecomb.statistics.comparisons.human_or_machine import (
    authorship_ratings,
    evaluator_scores,
    iter_row_groups,
    unfinished_notes,
)
from finecomb.statistics.inference.metric_correlation import ScoredDocuments, pearson
from finecomb.statistics.inference.resampling import estimate_with_interval, resampled_positions
from finecomb.statistics.selection.view import View

Floats = NDArray[np.float64]
_MIN_PEOPLE = 3


def practice_accuracy_findings(
    view: View, by: Sequence[str] = ("condition",), draws: int = 1000, seed: int = 0, unfinished: bool = False
) -> Findings:
    """Share of right guesses in practice, score in work, and Pearson's r of the two over people, of each group.

    Only people who guessed are counted: those whose condition had practice rounds. Intervals draw people again. The
    correlation is NaN with fewer than three people, or where guesses or scores do not vary.
    """
    shares = _practice_accuracy_by_annotator(view)
    if not shares:
        raise FinecombError("nobody guessed in practice: no condition here has practice rounds with guesses")
    findings: list[Finding] = []
    for group, rows in iter_row_groups(authorship_ratings(view, list(by), unfinished=unfinished), by):
        people = evaluator_scores(rows).filter(pl.col("annotator").is_in(list(shares)))
        guesses = np.array([shares[annotator] for annotator in people["annotator"]])
        findings += _practice_group_findings(view, group, guesses, people["score"].to_numpy(), draws, seed)
    return Findings(findings, unfinished_notes(view, unfinished))


def _practice_accuracy_by_annotator(view: View) -> dict[str, float]:
    """The share of right guesses of everybody who guessed."""
    outcomes = {person.id: list(_guess_outcomes(person.meta)) for person in view.study.iter_annotators()}
    return {id: sum(right) / len(right) for id, right in outcomes.items() if right}


def _guess_outcomes(meta: Mapping[str, Any]) -> Iterator[bool]:
    """Whether each guess was right, as the steps in an annotator's meta say."""
    steps = meta.get("steps")
    for step in steps if isinstance(steps, list | tuple) else ():
        if isinstance(step, Mapping) and isinstance(step.get("right"), bool):
            yield bool(step["right"])


def _practice_group_findings(
    view: View, group: Mapping[str, Any], guesses: Floats, work: Floats, draws: int, seed: int
) -> Iterator[Finding]:
    n = len(guesses)
    if not n:
        return
    positions = resampled_positions(n, draws, np.random.default_rng(seed))
    none = np.zeros((1, n), dtype=np.int64)
    r = float(pearson(ScoredDocuments(guesses[None], work[None], none))[0]) if n >= _MIN_PEOPLE else np.nan
    why = "fewer than three people" if n < _MIN_PEOPLE else "guesses or scores do not vary"
    drawn_r = (
        pearson(ScoredDocuments(guesses[positions], work[positions], positions)) if len(positions) else np.zeros(0)
    )
    rows: list[tuple[str, float, Floats, str]] = [
        ("right in practice", float(guesses.mean()), guesses[positions].mean(axis=1), ""),
        ("right in work", float(work.mean()), work[positions].mean(axis=1), ""),
        ("correlation", r, drawn_r, why),
    ]
    of = "+".join(f"{name}={value}" for name, value in group.items()) or None
    for measure, value, resamples, reason in rows:
        fields = {"of": of, **view.fields, "evaluators": n, "draws": draws, "seed": seed}
        signature = Signature.from_fields(statistic=f"training:{measure.replace(' ', '-')}", unit="evaluator", **fields)
        yield Finding(
            {"measure": measure, **group, "evaluators": n}, estimate_with_interval(value, resamples, signature, reason)
        )
