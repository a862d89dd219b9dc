from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from finecomb.core.records import Annotation
from finecomb.core.study import Study
from finecomb.protocols import load_shipped
from finecomb.statistics.measures.rating_correlation import mark_count_rating_correlation
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.measures.measure_studies import MarkedWords, make_measure_study, single_column, single_estimate

TEXT = "one two three four five six seven eight nine ten"


def rated() -> tuple[Study, dict[str, tuple[list[int], list[int]]]]:
    """Build a study of two annotators; the ratings of p follow their errors, those of q do not."""
    rng = np.random.default_rng(0)
    texts = {f"d{number}": TEXT for number in range(30)}
    read: list[tuple[str, str, list[MarkedWords]]] = []
    answers = {}
    pairs: dict[str, tuple[list[int], list[int]]] = {"p": ([], []), "q": ([], [])}
    for id in texts:
        for person in pairs:
            count = int(rng.integers(0, 5))
            rating = max(1, 5 - count) if person == "p" else int(rng.integers(1, 6))
            read.append((id, person, [("a", at, at + 1) for at in range(count)]))
            answers[id, person] = {"coherence": rating}
            pairs[person][0].append(count)
            pairs[person][1].append(rating)
    return make_measure_study(texts, read, answers=answers), pairs  # type: ignore[arg-type]


def test_r_and_p_are_those_of_scipy_for_each_annotator_and_for_all() -> None:
    study, pairs = rated()
    findings = mark_count_rating_correlation(view(study), "coherence")
    everybody = tuple(pairs["p"][at] + pairs["q"][at] for at in (0, 1))
    for annotator, (counts, ratings) in {**pairs, "all": everybody}.items():
        expected = stats.pearsonr(counts, ratings)
        estimate = single_estimate(findings, label="a", annotator=annotator)
        assert estimate.value == pytest.approx(expected.statistic)
        assert single_column(findings, "p", label="a", annotator=annotator) == pytest.approx(expected.pvalue, abs=1e-12)
        assert single_column(findings, "n", label="a", annotator=annotator) == len(counts)
        assert (
            estimate.low <= estimate.value <= estimate.high
            or estimate.why == "all resamples give the same value, so there is no interval"
        )


def test_ratings_can_come_from_another_protocol() -> None:
    study, _ = rated()
    likert = load_shipped("likert")
    ratings = [
        Annotation.model_validate(
            {
                **each.model_dump(),
                "id": f"r/{each.id}",
                "protocol": likert.id,
                "marks": (),
                "answers": dict(each.answers),
            }
        )
        for each in study.iter_annotations()
    ]
    both = Study.from_items([*study.items(), likert, *ratings])
    findings = mark_count_rating_correlation(
        view(both, Filters(protocol="p")), "coherence", view(both, Filters(protocol="likert"))
    )
    direct = mark_count_rating_correlation(view(study), "coherence")
    assert [each.estimate.value for each in findings] == pytest.approx(
        [each.estimate.value for each in direct], nan_ok=True
    )


def test_what_does_not_vary_has_no_correlation() -> None:
    study, _ = rated()
    assert (
        single_estimate(mark_count_rating_correlation(view(study), "coherence"), label="b", annotator="all").why
        == "one of the two variables does not vary"
    )
    assert (
        single_estimate(mark_count_rating_correlation(view(study), "mood"), label="a", annotator="all").why
        == "fewer than three pairs"
    )
