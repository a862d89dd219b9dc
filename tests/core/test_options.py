from __future__ import annotations

from dataclasses import dataclass

import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.options import (
    OptionValues,
    join_names,
    merge_option_specs,
    option_field,
    option_specs,
    reject_unknown_options,
)


@dataclass(frozen=True)
class Pears:
    """Options of one toy."""

    weight: float = option_field(1.0, help="How heavy.")
    sizes: tuple[int, ...] = option_field((2, 3), help="Which sizes.", commas=True)
    hidden: int = 7


@dataclass(frozen=True)
class Plums:
    """Options of another."""

    weight: float = option_field(2.0, help="How heavy a plum is.")
    stone: bool = option_field(True, "--with-stone", help="Whether with a stone.")


def test_fields_with_a_help_are_options() -> None:
    specs = option_specs(Pears)
    assert list(specs) == ["weight", "sizes"]
    assert specs["sizes"].default == (2, 3)
    assert option_specs(Plums)["stone"].flag == "--with-stone"


def test_an_option_of_two_is_described_once() -> None:
    assert merge_option_specs([Pears, Plums])["weight"].help == "How heavy."


def test_what_does_not_apply_is_refused_by_name() -> None:
    toys = {"pears": Pears, "plums": Plums}
    reject_unknown_options(["weight", "sizes"], {"pears": Pears}, toys)
    reject_unknown_options(["stone"], toys, toys)
    with pytest.raises(FinecombError, match=r"^with_stone does not apply to pears; it applies to plums$"):
        reject_unknown_options(["weight", "stone"], {"pears": Pears}, toys)


def test_values_that_were_not_given_are_each_ones_own_default() -> None:
    values = OptionValues({"stone": False})
    assert values.build_options(Pears) == Pears()
    assert values.build_options(Plums) == Plums(2.0, stone=False)
    assert values.build_options(Plums, weight=3.0).weight == 3.0


def test_long_lists_are_cut() -> None:
    assert join_names(["a", "b", "b", "c"], max_names=2) == "a, b and 1 more"
