from __future__ import annotations

import itertools

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.statistics.gold.disagreements import (
    compare_judges,
    disagreement_rows,
    label_confusion_rows,
    pairing_type_table,
)
from finecomb.statistics.gold.scores import Scores, recall_precision_and_f1, score_judges_against_gold
from tests.statistics.agreement.agreement_studies import MarkTuple
from tests.statistics.gold.gold_studies import TEXT, make_alternative, make_gold_mark, make_gold_study

GOLD: list[MarkTuple] = [(0, 3, "red"), (4, 7, "red"), (8, 13, "blue"), (14, 18, "green")]
JUDGE: list[MarkTuple] = [(0, 3, "red"), (4, 7, "blue"), (8, 11, "blue"), (15, 16, "red")]


def one() -> Scores:
    return score_judges_against_gold(
        make_gold_study(
            {"d": TEXT, "e": TEXT},
            {("d", "gold"): GOLD, ("d", "j"): JUDGE, ("e", "gold"): [GOLD[0]], ("e", "j"): [(14, 18, "red")]},
        ),
        draws=0,
    )


def test_boundary_errors_label_errors_and_both_are_counted_apart() -> None:
    counts = {row["kind"]: row["count"] for row in pairing_type_table(one())}
    assert counts == {
        "right": 1, "boundary": 1, "label": 1, "boundary and label": 1, "other reading": 0, "missed": 1, "extra": 1,
    }  # fmt: skip


def test_every_gold_mark_and_every_mark_is_in_the_confusion_once() -> None:
    rows = {str(row["gold label"]): row for row in label_confusion_rows(one())}
    assert rows["red"] == {"judge": "j", "gold label": "red", "red": 1, "blue": 1, "green": 0, "missed": 1}
    assert rows["green"]["red"] == 1
    assert rows["extra"]["red"] == 1
    numbers = [value for row in rows.values() for value in row.values() if isinstance(value, int)]
    assert sum(numbers) == 5 + 1


def test_every_disagreement_is_listed_in_text_order() -> None:
    listed = [(row["document"], row["kind"], row["gold"], row["predicted"]) for row in disagreement_rows(one())]
    assert listed == [
        ("d", "label", "two", "two"),
        ("d", "boundary", "three", "thr"),
        ("d", "boundary and label", "four", "o"),
        ("e", "missed", "one", ""),
        ("e", "extra", "", "four"),
    ]


def test_a_mark_found_by_another_reading_is_its_own_kind() -> None:
    found = make_gold_mark("g", TEXT, 0, 3, "red", alternatives=((make_alternative(TEXT, 14, 18, "blue"),),))
    scores = score_judges_against_gold(
        make_gold_study({"d": TEXT}, {("d", "gold"): [found], ("d", "j"): [(14, 18, "blue")]}), draws=0
    )
    counts = {row["kind"]: row["count"] for row in pairing_type_table(scores) if row["count"]}
    assert counts == {"other reading": 1}


# --- comparison of judges ----------------------------------------------------------------------------------------


def judges(texts: int) -> Scores:
    """Build scores of a judge `good`, who finds every error, and `poor`, who finds every third."""
    given: dict[tuple[str, str], list[MarkTuple]] = {}
    for at in range(texts):
        given[f"d{at:02}", "gold"] = GOLD[:2]
        given[f"d{at:02}", "good"] = GOLD[: 1 + (at % 4 > 0)]
        given[f"d{at:02}", "poor"] = [(0, 3, "red")] if at % 3 == 0 else [(14, 18, "red")]
    return score_judges_against_gold(make_gold_study({id: TEXT for id, _ in given}, given), draws=0)


def slow_p(scores: Scores) -> float:
    """Compute p by swapping the two judges on every subset of documents."""
    a, b = (judged.sums[0] for judged in scores.judged)
    seen = abs(float((recall_precision_and_f1(a.sum(axis=0)) - recall_precision_and_f1(b.sum(axis=0)))[2]))
    hits = 0
    arrangements = list(itertools.product([False, True], repeat=len(a)))
    for swap in arrangements:
        mask = np.array(swap)[:, None]
        one, other = np.where(mask, b, a).sum(axis=0), np.where(mask, a, b).sum(axis=0)
        hits += abs(float((recall_precision_and_f1(one) - recall_precision_and_f1(other))[2])) >= seen - 1e-12
    return hits / len(arrangements)


def test_the_exact_test_equals_its_definition() -> None:
    scores = judges(7)
    f1 = next(each for each in compare_judges(scores, draws=100) if each.columns["measure"] == "f1")
    assert f1.columns["p"] == pytest.approx(slow_p(scores))
    assert f1.estimate.signature["test"] == "exact"
    assert f1.estimate.low <= f1.estimate.value <= f1.estimate.high


def test_many_documents_are_sampled_and_a_clear_difference_is_found() -> None:
    found = {each.columns["measure"]: each for each in compare_judges(judges(30), draws=2000)}
    assert found["f1"].estimate.signature["test"] == "permutation"
    assert float(str(found["f1"].columns["p"])) < 0.01
    assert found["f1"].columns["p_adjusted"] == found["f1"].columns["p"]


def test_two_equal_judges_do_not_differ() -> None:
    given: dict[tuple[str, str], list[MarkTuple]] = {}
    for name in ("gold", "p", "q"):
        given |= {(f"d{at}", name): [(0, 3, "red")] for at in range(4)}
    scores = score_judges_against_gold(make_gold_study({f"d{at}": TEXT for at in range(4)}, given), draws=0)
    assert {each.columns["p"] for each in compare_judges(scores, draws=10)} == {1.0}


def test_comparing_needs_two_judges_and_a_known_label() -> None:
    with pytest.raises(FinecombError, match="requires at least two judges, found 1"):
        compare_judges(one())
    with pytest.raises(FinecombError, match="label 'pink' is not used"):
        compare_judges(judges(2), "pink")
