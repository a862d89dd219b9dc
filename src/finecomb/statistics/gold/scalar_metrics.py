"""Scalar metrics compared with gold: one value per text, correlated with human answers or error counts in gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from finecomb.core.errors import ParameterError, param
from finecomb.core.frames import meta_entry
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_and_judges import find_gold_annotator, require_same_texts
from finecomb.statistics.inference.metric_correlation import metric_correlations

ERROR_COUNT_QUESTION = "errors"


def scalar_metric_correlations(
    gold: Study,
    predicted: Study | None = None,
    question: str = "",
    given: str = "model",
    gold_annotator: str = "",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Correlate each metric with human answers or gold: Pearson, Spearman, and partial correlation given the system.

    Metrics are correlated with the answers to `question` or, by default, with the number of errors in gold, where a
    quality metric should have a negative correlation. See `finecomb.statistics.inference.metric_correlation`.
    """
    joined = gold if predicted is None else _join_gold_and_predictions(gold, predicted)
    if question:
        return metric_correlations(joined, question, given, draws, seed)
    truth = gold_annotator or find_gold_annotator(gold)
    if not len(gold.marks.filter(pl.col("annotator") == truth)):
        raise ParameterError(
            f"{truth} has no marks to count; name the question that people answered with {param('question')}",
            parameter="question",
        )
    # Add the number of errors to gold's annotations, as answers to a question
    counts = joined.marks.group_by("annotation").agg(n=pl.len())
    rows = joined.annotations.join(counts, left_on="id", right_on="annotation", how="left", maintain_order="left")
    answer = pl.format('{{"errors": {}}}', pl.col("n").fill_null(0))
    answers = pl.when(pl.col("annotator") == truth).then(answer).otherwise("answers")
    return metric_correlations(
        replace(joined, annotations=rows.with_columns(answers=answers).drop("n")),
        ERROR_COUNT_QUESTION,
        given,
        draws,
        seed,
    )


def orient_towards_quality(findings: Sequence[Finding], study: Study, question: str) -> tuple[list[Finding], list[str]]:
    """Return correlations whose sign is positive for a good metric, and notes that state the direction in words.

    Error counts are reversed, since fewer errors are better. A metric whose annotator has `direction: lower` in its
    meta is reversed too. Answers to a `question` are used as they are. The signature has `towards:quality`.
    """
    directions = {
        str(id): str(direction or "higher")
        for id, direction in study.annotators.select("id", direction=meta_entry("direction")).iter_rows()
    }
    oriented = []
    for finding in findings:
        is_reversed = (not question) != (directions.get(str(finding.columns["metric"])) == "lower")
        estimate = finding.estimate
        signature = Signature((("towards", "quality"), *estimate.signature.fields))
        numbers = (estimate.value, estimate.low, estimate.high)
        if is_reversed:
            numbers = (-estimate.value, -estimate.high, -estimate.low)
        oriented.append(Finding(finding.columns, Estimate(*numbers, signature, estimate.why)))
    target = f"the answers to {question!r}, taken as higher is better" if question else "quality (fewer gold errors)"
    notes = [f"correlations are with {target}; a good metric has a positive correlation"]
    metrics = sorted({str(finding.columns["metric"]) for finding in findings})
    if lower := [metric for metric in metrics if directions.get(metric) == "lower"]:
        notes.append(f"lower is better, so the sign is reversed: {', '.join(lower)}")
    return oriented, notes


def _join_gold_and_predictions(gold: Study, predicted: Study) -> Study:
    require_same_texts(gold, predicted)
    both = {
        name: pl.concat([getattr(gold, name), getattr(predicted, name)]) for name in ("annotations", "marks", "units")
    }
    people = pl.concat([gold.annotators, predicted.annotators]).unique("id", keep="first", maintain_order=True)
    return replace(gold, annotators=people, **both)
