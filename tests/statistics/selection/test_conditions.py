from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.statistics.selection.conditions import (
    CombinedCondition,
    Condition,
    ConditionField,
    FieldComparison,
    Negation,
    condition_fields,
    parse_condition,
    split_into_conjuncts,
)


def names(text: str) -> list[str]:
    return [field.name for field in condition_fields(parse_condition(text))]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("model=gpt2", FieldComparison(ConditionField("model", 0), "==", ("gpt2",))),
        ("top-p=0.9", FieldComparison(ConditionField("top-p", 0), "==", ("0.9",))),
        ("name=two words", FieldComparison(ConditionField("name", 0), "==", ("two words",))),
        ('model == "gpt2"', FieldComparison(ConditionField("model", 0), "==", ("gpt2",))),
        ("t != -1.5e1", FieldComparison(ConditionField("t", 0), "!=", (-15.0,))),
        ("t >= .5", FieldComparison(ConditionField("t", 0), ">=", (0.5,))),
        ("a in ('x', 2, true, missing,)", FieldComparison(ConditionField("a", 0), "in", ("x", 2.0, True, None))),
        ("a not in [1]", FieldComparison(ConditionField("a", 0), "not in", (1.0,))),
        ('"x" in topics', FieldComparison(ConditionField("topics", 7), "in", ("x",), reversed=True)),
        (r'a contains "say \"so\""', FieldComparison(ConditionField("a", 0), "contains", ('say "so"',))),
        ("`odd name` == missing", FieldComparison(ConditionField("odd name", 0), "==", (None,))),
        ("not a == 1", Negation(FieldComparison(ConditionField("a", 4), "==", (1.0,)))),
    ],
)
def test_a_condition_becomes_its_tree(text: str, tree: Condition) -> None:
    assert parse_condition(text) == tree


def test_and_binds_closer_than_or_and_brackets_closest() -> None:
    tree = parse_condition("a == 1 or b == 2 and (c == 3 or d == 4)")
    assert isinstance(tree, CombinedCondition)
    assert tree.joint == "or"
    right = tree.conditions[1]
    assert isinstance(right, CombinedCondition)
    assert right.joint == "and"
    assert names("a == 1 or b == 2 and (c == 3 or d == 4)") == list("abcd")
    assert (
        len(list(split_into_conjuncts(parse_condition("a == 1 and (b == 2 and c == 3) and (d == 4 or e == 5)")))) == 4
    )


@pytest.mark.parametrize(
    ("text", "problem", "caret"),
    [
        ("model ==", "a value is missing", 8),
        ("model == gpt2", 'text needs quotes: "gpt2"', 9),
        ("(a == 1", "')' is missing", 7),
        ("a == 1 b == 2", "expected 'and', 'or' or the end, found 'b'", 7),
        ("a ~ 1", "expected '==' or", 2),
        ("and == 1", "expected a name, found 'and'", 0),
        ("", "a name is missing", 0),
        ("a in ()", "expected a value, found ')'", 6),
        ("a == 'x", 'expected a value, found "\'"', 5),
        ("__import__('os').system('ls')", "expected '=='", 10),
    ],
)
def test_a_slip_is_shown_with_a_caret(text: str, problem: str, caret: int) -> None:
    with pytest.raises(FinecombError) as error:
        parse_condition(text)
    message, shown, line = str(error.value).split("\n")
    assert problem in message
    assert shown == f"  {text}"
    assert line == "  " + " " * caret + "^"


@pytest.mark.parametrize("text", ["(" * 30_000, "not " * 2_000 + "a == 1", "a == 1 and " * 5_000])
def test_bombs_are_refused(text: str) -> None:
    with pytest.raises(FinecombError, match="at most"):
        parse_condition(text)


@given(st.text(max_size=40) | st.text("ab=!<>()[]'\" ,.1not inrdissgm", max_size=40))
def test_any_text_is_a_condition_or_a_users_mistake(text: str) -> None:
    with contextlib.suppress(FinecombError):
        assert list(condition_fields(parse_condition(text)))
