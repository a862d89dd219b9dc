from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study
from finecomb.statistics.inference.metric_correlation import (
    ScoredDocuments,
    metric_correlations,
    partial_correlation,
    pearson,
    spearman,
)
from tests.golden.measures import FRANK_CORRELATIONS

NUMBERS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 2)), min_size=3, max_size=12)


def scored(rows: list[tuple[int, int, int]]) -> ScoredDocuments:
    table = np.array(rows, dtype=np.float64)
    return ScoredDocuments(table[None, :, 0], table[None, :, 1], table[None, :, 2].astype(np.int64))


def slow_partial(rows: list[tuple[int, int, int]]) -> float:
    """Compute Pearson's r of residuals after system means, step by step."""
    sides = []
    for side in (0, 1):
        means = {s: np.mean([row[side] for row in rows if row[2] == s]) for s in {row[2] for row in rows}}
        sides.append([row[side] - means[row[2]] for row in rows])
    x, y = (np.array(side) for side in sides)
    spread = math.sqrt(float((x**2).sum() * (y**2).sum()))
    return float((x * y).sum() / spread) if spread > 1e-12 else math.nan


@given(NUMBERS)
def test_correlations_equal_scipys_and_their_definition(rows: list[tuple[int, int, int]]) -> None:
    scored_study = scored(rows)
    assert partial_correlation(scored_study)[0] == pytest.approx(slow_partial(rows), nan_ok=True, abs=1e-9)
    if len({row[0] for row in rows}) > 1 and len({row[1] for row in rows}) > 1:
        assert pearson(scored_study)[0] == pytest.approx(
            stats.pearsonr(scored_study.metric[0], scored_study.human[0]).statistic, abs=1e-9
        )
        assert spearman(scored_study)[0] == pytest.approx(
            stats.spearmanr(scored_study.metric[0], scored_study.human[0]).statistic, abs=1e-9
        )
    else:
        assert math.isnan(pearson(scored_study)[0])


def small(scores: list[float], ratings: list[float]) -> Study:
    who = [Annotator(id="people", kind="human"), Annotator(id="rouge", kind="detector")]
    texts = [Document(id=f"d{n}", text="", meta={"model": "ab"[n % 2]}) for n in range(len(scores))]
    made = [
        Annotation(
            id=f"{text.id}/{name}", document=text.id, annotator=name, protocol="likert@1", answers={question: value}
        )
        for text, score, rating in zip(texts, scores, ratings, strict=True)
        for name, question, value in (("people", "rating", rating), ("rouge", "score", score))
    ]
    return Study.from_items([fc.protocol("likert"), *texts, *who, *made])


def test_undefined_correlations_say_why() -> None:
    assert {f.estimate.why for f in metric_correlations(small([1.0, 2.0], [1, 2]), "rating")} == {
        "fewer than three documents"
    }
    flat = metric_correlations(small([1.0, 1.0, 1.0], [1, 2, 3]), "rating")
    reasons = {str(finding.columns["measure"]): finding.estimate.why for finding in flat}
    reason = "the metric or the answers do not vary"
    assert reasons == {"pearson": reason, "spearman": reason, "partial": f"{reason} within systems"}
    with pytest.raises(FinecombError, match="did you mean 'rating'"):
        metric_correlations(small([1.0, 2.0], [1, 2]), "ratng")


def test_the_same_seed_gives_the_same_interval() -> None:
    study = small([1.0, 2.0, 4.0, 3.0, 7.0, 5.0], [1, 2, 2, 3, 5, 5])
    first, again = (metric_correlations(study, "rating", seed=3)[0].estimate for _ in range(2))
    assert first == again
    assert first.low <= first.value <= first.high


@pytest.mark.long
def test_frank_comes_out(data: Path) -> None:
    study = fc.read(data / "frank" / "human_annotations.json")
    found = {(f.columns["metric"], f.columns["measure"]): f for f in metric_correlations(study, "factuality", draws=0)}
    for metric, (n, *printed) in FRANK_CORRELATIONS.items():
        for name, value in zip(("pearson", "spearman", "partial"), printed, strict=True):
            finding = found[metric, name]
            assert finding.columns["n"] == n
            assert finding.estimate.value == pytest.approx(value, abs=5e-5), (metric, name)
