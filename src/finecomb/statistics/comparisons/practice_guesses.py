"""Practice guesses: accuracy during practice, and its correlation with accuracy in the study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.results import Finding, Findings, Signature
from finecomb.statistics.comparisons.human_or_machine import (
    authorship_ratings,
    evaluator_scores,
    iter_row_groups,
    unfinished_notes,
)
from finecomb.statistics.inference.metric_correlation import ScoredDocuments, pearson
from finecomb.statistics.inference.resampling import estimate_with_interval, resampled_positions
from finecomb.statistics.selection.view import View

_MIN_PEOPLE = 3


def practice_accuracy_findings(
    view: View, by: Sequence[str] = ("condition",), draws: int = 1000, seed: int = 0, unfinished: bool = False
) -> Findings:
    """Estimate the share of correct practice guesses, the score in the study, and Pearson's r of the two, per group.

    Only people who guessed are counted, i.e. those whose condition had practice rounds. Intervals resample people. The
    correlation is NaN with fewer than three people, or if guesses or scores do not vary.
    """
    shares: dict[str, float] = {}
    for person in view.study.iter_annotators():
        steps = person.meta.get("steps")
        rights = [
            step.get("right")
            for step in (steps if isinstance(steps, list | tuple) else ())
            if isinstance(step, Mapping)
        ]
        if guessed := [right for right in rights if isinstance(right, bool)]:
            shares[person.id] = sum(guessed) / len(guessed)
    if not shares:
        raise FinecombError(
            "no annotator has guessed in a practice round; use a study in which a condition has practice rounds with "
            "guesses"
        )
    findings: list[Finding] = []
    for group, rows in iter_row_groups(authorship_ratings(view, list(by), unfinished=unfinished), by):
        people = evaluator_scores(rows).filter(pl.col("annotator").is_in(list(shares)))
        n = len(people)
        if not n:
            continue
        guesses, work = np.array([shares[annotator] for annotator in people["annotator"]]), people["score"].to_numpy()
        positions = resampled_positions(n, draws, np.random.default_rng(seed))
        r = float(pearson(ScoredDocuments(guesses[None], work[None], np.zeros((1, n), dtype=np.int64)))[0])
        drawn_r = np.zeros(0)
        if len(positions):
            drawn_r = pearson(ScoredDocuments(guesses[positions], work[positions], positions))
        why = "fewer than three people" if n < _MIN_PEOPLE else "guesses or scores do not vary"
        fields = {"of": "+".join(f"{name}={value}" for name, value in group.items()) or None, **view.fields}
        fields |= {"evaluators": n, "draws": draws, "seed": seed}
        for measure, value, resamples, reason in (
            ("right in practice", float(guesses.mean()), guesses[positions].mean(axis=1), ""),
            ("right in work", float(work.mean()), work[positions].mean(axis=1), ""),
            ("correlation", r if n >= _MIN_PEOPLE else math.nan, drawn_r, why),
        ):
            statistic = f"training:{measure.replace(' ', '-')}"
            signature = Signature.from_fields(statistic=statistic, unit="evaluator", **fields)
            estimate = estimate_with_interval(value, resamples, signature, reason)
            findings.append(Finding({"measure": measure, **group, "evaluators": n}, estimate))
    return Findings(findings, unfinished_notes(view, unfinished))
