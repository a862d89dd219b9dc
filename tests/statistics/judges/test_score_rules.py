from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.statistics.judges.score_rules import SCORE_RULES, char_f1, resolve_score_rule, typed_f1

mark = st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from("ab")).map(
    lambda drawn: (min(drawn[:2]), max(drawn[:2]), drawn[2])
)
marks = st.lists(mark, max_size=3)


@given(marks, marks)
def test_char_f1_of_two_is_symmetric_and_between_0_and_1(one: list[tuple[int, int, str]], other: list[object]) -> None:
    assert char_f1(one, [other]) == char_f1(other, [one])
    assert 0 <= char_f1(one, [other]) <= 1


@given(marks, st.lists(marks, min_size=1, max_size=3))
def test_typed_f1_is_at_most_char_f1_for_one_label(one: list[object], others: list[list[tuple[int, int, str]]]) -> None:
    only_a = [[mark for mark in other if mark[2] == "a"] for other in others]
    own = [mark for mark in one if mark[2] == "a"]  # type: ignore[index]
    assert typed_f1(own, only_a) == pytest.approx(char_f1(own, only_a))


def test_two_who_mark_nothing_agree() -> None:
    assert char_f1([], [[]]) == 1
    assert typed_f1([], [[(0, 1, "a")]]) == 0


def test_a_rule_is_found_by_name_and_a_slip_is_told() -> None:
    assert resolve_score_rule("rmse") == ("rmse", SCORE_RULES["rmse"])
    assert resolve_score_rule(char_f1)[1] is char_f1
    with pytest.raises(FinecombError, match="did you mean 'accuracy'"):
        resolve_score_rule("acuracy")
