"""Scalar metrics against gold: one number a text, held against what people answered or how many errors gold has."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from finecomb.core.errors import ParameterError, param
from finecomb.core.estimate import Finding
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_and_judges import find_gold_annotator, require_same_texts, scalar_score_annotators
from finecomb.statistics.inference.metric_correlation import metric_correlations

ERROR_COUNT_QUESTION = "errors"


def has_only_scalar_scores(study: Study) -> bool:
    """Whether a study holds scalar predictions only: scores by some, and no marks by anybody but gold."""
    golden = study.annotators.filter(pl.col("kind") == "gold")["id"]
    return bool(scalar_score_annotators(study)) and not set(study.marks["annotator"]) - set(golden)


def scalar_metric_correlations(
    gold: Study,
    predicted: Study | None = None,
    question: str = "",
    given: str = "model",
    gold_annotator: str = "",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Pearson, Spearman and partial correlation given the system, of every metric, see
    `finecomb.statistics.inference.metric_correlation`.

    The metrics are held against the answers to `question` or, without one, against the number of errors in gold: a
    metric of quality should then correlate negatively.
    """
    whole = gold if predicted is None else _join_gold_and_predictions(gold, predicted)
    if question:
        return metric_correlations(whole, question, given, draws, seed)
    truth = gold_annotator or find_gold_annotator(gold)
    if not len(gold.marks.filter(pl.col("annotator") == truth)):
        raise ParameterError(
            f"{truth} has no marks to count; say what people answered with {param('question')}", parameter="question"
        )
    return metric_correlations(_add_error_count_answers(whole, truth), ERROR_COUNT_QUESTION, given, draws, seed)


def _join_gold_and_predictions(gold: Study, predicted: Study) -> Study:
    require_same_texts(gold, predicted)
    both = {
        name: pl.concat([getattr(gold, name), getattr(predicted, name)]) for name in ("annotations", "marks", "units")
    }
    people = pl.concat([gold.annotators, predicted.annotators]).unique("id", keep="first", maintain_order=True)
    return replace(gold, annotators=people, **both)


def _add_error_count_answers(study: Study, gold: str) -> Study:
    """Gold's annotations answer how many errors there are."""
    counts = study.marks.group_by("annotation").agg(n=pl.len())
    rows = study.annotations.join(counts, left_on="id", right_on="annotation", how="left", maintain_order="left")
    answer = pl.format('{{"errors": {}}}', pl.col("n").fill_null(0))
    answers = pl.when(pl.col("annotator") == gold).then(answer).otherwise("answers")
    return replace(study, annotations=rows.with_columns(answers=answers).drop("n"))
