"""Tests of the currency rules: impossible rates, and conflicting rates within a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.annotators.detectors.rules import RULES_BY_NAME
from finecomb.annotators.detectors.rules.currency import find_money_conversions
from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document


def hints(text: str) -> list[RuleFinding]:
    return list(RULES_BY_NAME["currency"](Document(id="d", text=text)))


def marked(text: str) -> list[tuple[str, str]]:
    return [(text[hint.start : hint.end], hint.label) for hint in hints(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The bridge cost $5 million (£30 million).", [("£30 million", "bad-math")]),
        ("A ticket is 20 euros (about 22 yen).", [("22 yen", "bad-math")]),
        ("It sold for US$5 billion (€4).", [("€4", "bad-math")]),
        ("A ticket is 20 euros (about 2,200 yen), a boat A$500 (US$330), a house C$5m (US$3.7m).", []),
        ("It was HK$10 million (£1 million), or so.", []),
        ("It is $10 (£8) here and $20 (£12) there.", [("£12", "self-contradiction")]),
        ("It is £8 ($9.90) here and $20 (£12) there.", [("£12", "self-contradiction")]),
        ("It cost $5 million (£4 million), then $10 million (£7.9 million), then £1 million ($1.3 million).", []),
        ("It was $1.3 million (£1 million) and then $1.7 million (£1 million).", []),  # rounding allows both
        ("In 1985 it cost $10 million (£9 million). In 2014 it cost $10 million (£6 million).", []),
        ("In 1985 it cost $10 million (£9 million). It cost $10 million (£6 million) in 1985.",
         [("£6 million", "self-contradiction")]),
        ("A stone of 5 pounds (2.3 kg), $100 ($80), £0 ($5), nothing ($5).", []),
    ],
)  # fmt: skip
def test_only_what_cannot_be_is_marked(text: str, expected: list[tuple[str, str]]) -> None:
    assert marked(text) == expected


def test_reasons_name_both_rates() -> None:
    (impossible,) = hints("A ticket is 20 euros (about 22 yen).")
    assert impossible.reason == "This makes one euro worth 1.10 yen; historical rates range from 61.48 to 581."
    text = "It is $10 (£8) here and $20 (£12) there."
    (other,) = hints(text)
    assert other.reason == "This makes one dollar worth 0.60 pounds; earlier in the text it is worth 0.80."
    assert other.antecedent is not None
    assert text[slice(*other.antecedent)] == "£8"


amounts = st.integers(1, 999)


@given(amounts, amounts)
def test_a_rate_turned_round_is_one_over_it(first: int, second: int) -> None:
    (conversion,) = find_money_conversions(f"{first} euros ({second} pounds)")
    low, high = conversion.rate_range("euro")
    assert 0 < low < conversion.rate("euro") < high
    turned = conversion.rate_range("pound")
    assert turned == pytest.approx((1 / high, 1 / low))


@given(amounts, st.floats(0.7, 0.95), st.lists(amounts, min_size=1, max_size=5))
def test_one_rate_never_disagrees_with_itself(first: int, rate: float, others: list[int]) -> None:
    text = " ".join(f"It is {value} euros ({value * rate:.2f} pounds)." for value in [first, *others])
    assert marked(text) == []
