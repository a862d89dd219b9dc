from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given

from finecomb.core.span import Span
from finecomb.statistics.gold.disagreements import pairing_type_table
from finecomb.statistics.gold.gold_and_judges import Ints
from finecomb.statistics.gold.mark_matching import (
    MATCH_RULES,
    MatchingProblem,
    match_any_overlap,
    match_optimal,
    match_shared_task,
)
from finecomb.statistics.gold.scores import MatchName, score_judges_against_gold
from tests.statistics.agreement.agreement_studies import MarkTuple
from tests.statistics.gold.gold_studies import (
    LABELS,
    TEXT,
    TEXTS,
    compare_gold_and_judge,
    gold_and_judge_marks,
    make_alternative,
    make_gold_mark,
    make_gold_study,
    marked_positions,
    score_row,
    slow_greedy_match_count,
    slow_optimal_match_count,
)

Both = dict[tuple[str, str], list[MarkTuple]]


def each(both: Both) -> list[tuple[list[MarkTuple], list[MarkTuple]]]:
    return [(both[document, "gold"], both[document, "judge"]) for document in TEXTS]


def restricted(both: Both, label: str) -> Both:
    return {key: [m for m in own if m[2] == label] for key, own in both.items()}


def one_scope(both: MatchingProblem) -> Ints:
    return np.zeros(len(both.gold), dtype=np.int64)


@given(gold_and_judge_marks())
def test_the_tasks_rule_equals_its_definition(both: Both) -> None:
    ready = compare_gold_and_judge(both)
    assert match_shared_task(ready, one_scope(ready)).credit.sum() == sum(
        slow_greedy_match_count(*sides) for sides in each(both)
    )
    same = match_shared_task(ready.with_same_label(), one_scope(ready))
    assert same.credit.sum() == sum(slow_greedy_match_count(*sides, same=True) for sides in each(both))
    for code, label in enumerate(LABELS):
        expected = sum(slow_greedy_match_count(*sides) for sides in each(restricted(both, label)))
        assert same.credit[ready.gold.label == code].sum() == expected
        assert same.right[ready.judge.label == code].sum() == expected


@given(gold_and_judge_marks())
def test_scopes_of_gold_are_matched_as_if_alone(both: Both) -> None:
    """Category `gold`: gold marks of one label against all marks of the judge."""
    ready = compare_gold_and_judge(both)
    found = match_shared_task(ready, ready.gold.label + 1).credit
    for code, label in enumerate(LABELS):
        alone = [([m for m in gold if m[2] == label], judge) for gold, judge in each(both)]
        assert found[ready.gold.label == code].sum() == sum(slow_greedy_match_count(*sides) for sides in alone)


@given(gold_and_judge_marks())
def test_optimal_matching_makes_the_most_pairs(both: Both) -> None:
    ready = compare_gold_and_judge(both)
    found = match_optimal(ready, one_scope(ready))
    assert found.credit.sum() == found.right.sum() == sum(slow_optimal_match_count(*sides) for sides in each(both))
    same = match_optimal(ready.with_same_label(), ready.gold.label + 1)
    assert same.credit.sum() == sum(slow_optimal_match_count(*sides, same=True) for sides in each(both))


@given(gold_and_judge_marks())
def test_overlap_asks_each_mark_whether_it_meets_any(both: Both) -> None:
    ready = compare_gold_and_judge(both)
    found = match_any_overlap(ready, one_scope(ready))

    def meeting(own: Sequence[MarkTuple], others: Sequence[MarkTuple]) -> int:
        return sum(any(Span(*m[:2]).intersects(Span(*o[:2])) for o in others) for m in own)

    assert found.credit.sum() == sum(meeting(gold, judge) for gold, judge in each(both))
    assert found.right.sum() == sum(meeting(judge, gold) for gold, judge in each(both))


@given(gold_and_judge_marks())
def test_a_pair_shares_what_its_spans_share(both: Both) -> None:
    ready = compare_gold_and_judge(both)
    gold, judge = ready.gold, ready.judge
    for g, m, shared in zip(*ready.pairs, strict=True):
        one, other = Span(int(gold.start[g]), int(gold.end[g])), Span(int(judge.start[m]), int(judge.end[m]))
        assert gold.document[g] == judge.document[m]
        assert shared == one.overlap_length(other)


@given(gold_and_judge_marks(omissions=False))
def test_rules_are_ordered_and_credit_never_exceeds_a_pair(both: Both) -> None:
    ready = compare_gold_and_judge(both)
    found = {name: rule(ready, one_scope(ready)) for name, rule in MATCH_RULES.items()}
    sums = {name: float(each.credit.sum()) for name, each in found.items()}
    assert sums["exact"] <= sums["task"] <= sums["optimal"] <= sums["overlap"]
    assert sums["iou"] <= sums["partial"] + 1e-9
    assert sums["partial"] <= sums["optimal"] + 1e-9
    assert found["iou"].right.sum() == pytest.approx(sums["iou"])


@given(gold_and_judge_marks())
def test_a_judge_who_is_gold_is_perfect(both: Both) -> None:
    ready = compare_gold_and_judge(
        {(document, name): both[document, "gold"] for document in TEXTS for name in ("gold", "judge")}
    )
    for rule in MATCH_RULES.values():
        found = rule(ready, one_scope(ready))
        assert found.credit == pytest.approx(np.ones(len(ready.gold)))
        assert found.right == pytest.approx(np.ones(len(ready.judge)))


@given(gold_and_judge_marks(omissions=False))
def test_characters_are_sets_soft_without_and_hard_with_the_label(both: Both) -> None:
    found = score_judges_against_gold(make_gold_study(TEXTS, both), match="char", draws=0)
    soft, hard = score_row(found, "any"), score_row(found, "typed")
    assert soft.matched == sum(len(marked_positions(gold) & marked_positions(judge)) for gold, judge in each(both))
    assert soft.predicted == sum(len(marked_positions(judge)) for _, judge in each(both))
    assert hard.matched == sum(
        len(marked_positions(gold, label) & marked_positions(judge, label))
        for gold, judge in each(both)
        for label in LABELS
    )
    assert hard.gold == sum(len(marked_positions(gold, label)) for gold, _ in each(both) for label in LABELS)


@given(gold_and_judge_marks(omissions=False))
def test_tokens_count_when_any_of_their_characters_is_marked(both: Both) -> None:
    words = [range(3), range(4, 7), range(8, 13), range(14, 18)]
    found = score_row(score_judges_against_gold(make_gold_study(TEXTS, both), match="token", draws=0), "any")
    touched = [
        [{at for at, word in enumerate(words) if marked_positions(own) & {*word}} for own in s] for s in each(both)
    ]
    assert (found.gold, found.predicted) == tuple(sum(len(sides[at]) for sides in touched) for at in (0, 1))
    assert found.matched == sum(len(gold & judge) for gold, judge in touched)


def test_partial_credit_is_the_share_of_ones_own_characters() -> None:
    study = make_gold_study({"d": TEXT}, {("d", "gold"): [(0, 3, "red")], ("d", "judge"): [(0, 7, "red")]})
    partial = score_row(score_judges_against_gold(study, match="partial", draws=0), "any")
    assert (partial.recall.value, partial.precision.value) == pytest.approx((1.0, 3 / 7))
    assert score_row(score_judges_against_gold(study, match="iou", draws=0), "any").recall.value == pytest.approx(3 / 7)


def test_optimal_finds_what_greedy_misses() -> None:
    """`one two three` comes first and takes the mark on `two`, the only one that `two` overlaps; `three` stays free."""
    gold: list[MarkTuple] = [(0, 13, "red"), (4, 7, "red")]
    study = make_gold_study({"d": TEXT}, {("d", "gold"): gold, ("d", "judge"): [(4, 7, "red"), (8, 13, "red")]})
    assert score_row(score_judges_against_gold(study, match="task", draws=0), "any").matched == 1
    assert score_row(score_judges_against_gold(study, match="optimal", draws=0), "any").matched == 2


# --- alternatives (section 3.3): one name, or two numbers ---------------------------------------------------------

STORY = "Lou Williams scored 30 points and had 6 rebounds"
NAME, FIRST, SECOND = (0, 12, "red"), (20, 22, "blue"), (38, 39, "blue")


def with_alternative(*judge: MarkTuple) -> tuple[float, float, float]:
    way = (make_alternative(STORY, 20, 22, "blue"), make_alternative(STORY, 38, 39, "blue"))
    gold = make_gold_mark("g", STORY, *NAME, alternatives=(way,))
    found = score_row(
        score_judges_against_gold(
            make_gold_study({"d": STORY}, {("d", "gold"): [gold], ("d", "judge"): judge}), draws=0
        ),
        "any",
    )
    return found.matched, found.right, found.predicted


@pytest.mark.parametrize(
    ("judge", "counts"),
    [
        ([NAME], (1, 1, 1)),
        ([FIRST, SECOND], (1, 2, 2)),
        ([FIRST], (0, 0, 1)),
        ([NAME, FIRST, SECOND], (1, 1, 3)),
        ([], (0, 0, 0)),
    ],
)
def test_any_complete_reading_counts(judge: list[MarkTuple], counts: tuple[int, int, int]) -> None:
    assert with_alternative(*judge) == counts


def test_a_reading_found_needs_its_own_labels_where_labels_count() -> None:
    way = (make_alternative(STORY, 20, 22, "blue"), make_alternative(STORY, 38, 39, "blue"))
    gold = make_gold_mark("g", STORY, *NAME, alternatives=(way,))
    study = make_gold_study({"d": STORY}, {("d", "gold"): [gold], ("d", "judge"): [FIRST, SECOND]})
    found = score_judges_against_gold(study, draws=0)
    assert (score_row(found, "red").matched, score_row(found, "red").predicted) == (1, 0)
    assert (score_row(found, "blue").right, score_row(found, "blue").gold) == (2, 0)
    assert score_row(score_judges_against_gold(study, match="overlap", draws=0), "any").right == 2
    tokens = score_row(score_judges_against_gold(study, match="token", draws=0), "any")
    assert (tokens.gold, tokens.matched, tokens.predicted) == (2, 2, 2)


def test_a_judge_may_have_other_readings_too() -> None:
    """Gold has the two numbers. A judge who marked the name with the numbers as alternative was wrong twice."""
    way = (make_alternative(STORY, 20, 22, "blue"), make_alternative(STORY, 38, 39, "blue"))
    name = make_gold_mark("m", STORY, *NAME, alternatives=(way,))
    study = make_gold_study({"d": STORY}, {("d", "gold"): [FIRST, SECOND], ("d", "judge"): [name]})
    rules: tuple[MatchName, ...] = ("task", "optimal", "overlap", "exact")
    for match in rules:
        result = score_row(score_judges_against_gold(study, match=match, draws=0), "any")
        assert (result.gold, result.matched, result.predicted, result.right) == (2, 2, 1, 1), match
    one_number = make_gold_study({"d": STORY}, {("d", "gold"): [FIRST], ("d", "judge"): [name]})
    assert score_row(score_judges_against_gold(one_number, draws=0), "any").matched == 0
    kinds = {case["kind"]: case["count"] for case in pairing_type_table(score_judges_against_gold(study, draws=0))}
    assert (kinds["other reading"], kinds["missed"], kinds["extra"]) == (2, 0, 0)
