from __future__ import annotations

import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_and_judges import has_only_scalar_scores
from finecomb.statistics.gold.scalar_metrics import scalar_metric_correlations
from tests.statistics.agreement.agreement_studies import PROTOCOL, MarkTuple
from tests.statistics.gold.gold_studies import TEXT, make_gold_study

WORDS: list[MarkTuple] = [(0, 3, "red"), (4, 7, "red"), (8, 13, "blue"), (14, 18, "blue")]


def gold(counts: list[int]) -> Study:
    texts = {f"d{at}": TEXT for at in range(len(counts))}
    meta = {id: {"model": "ab"[at % 2]} for at, id in enumerate(texts)}
    return make_gold_study(texts, {(f"d{at}", "gold"): WORDS[:count] for at, count in enumerate(counts)}, meta)


def metric(scores: list[float]) -> Study:
    made = [
        Annotation(id=f"d{at}/m", document=f"d{at}", annotator="m", protocol=PROTOCOL.id, answers={"score": value})
        for at, value in enumerate(scores)
    ]
    documents = gold([0] * len(scores)).iter_documents()
    return Study.from_items([PROTOCOL, *documents, Annotator(id="m", kind="detector"), *made])


def test_a_metric_is_held_against_the_number_of_gold_errors() -> None:
    found = scalar_metric_correlations(gold([0, 1, 2, 3, 4]), metric([1.0, 0.75, 0.5, 0.25, 0.0]), draws=0)
    assert {each.columns["measure"]: each.estimate.value for each in found} == pytest.approx(
        {"pearson": -1.0, "spearman": -1.0, "partial": -1.0}
    )
    assert found[0].estimate.signature["question"] == "errors"


def test_one_study_or_two_give_the_same() -> None:
    first, second = gold([0, 1, 2, 2, 4]), metric([0.5, 0.75, 0.5, 0.1, 0.0])
    items = [*first.items(), *second.iter_annotators(), *second.iter_annotations()]
    assert scalar_metric_correlations(first, second, draws=20) == scalar_metric_correlations(
        Study.from_items(items), draws=20
    )


def test_only_scores_without_marks_are_scalar() -> None:
    assert has_only_scalar_scores(metric([1.0]))
    assert not has_only_scalar_scores(gold([1]))
    marked = make_gold_study({"d0": TEXT}, {("d0", "p"): WORDS})
    assert not has_only_scalar_scores(Study.from_items([*marked.items(), *metric([1.0]).iter_annotations()]))


def test_gold_without_marks_needs_a_question() -> None:
    with pytest.raises(
        FinecombError, match="gold has no marks to count; name the question that people answered with question"
    ):
        scalar_metric_correlations(gold([0, 0, 0]), metric([1.0, 2.0, 3.0]))
