from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from finecomb.judges.contract import JudgeBinding, JudgeContract, stale_conditions, stale_warning

MADE = datetime(2026, 11, 1, tzinfo=UTC)
BINDING = JudgeBinding(judge="gpt", protocol="scarecrow@1", prompt="3f2a", model="gpt-9", settings={"temperature": "0"})
CONTRACT = JudgeContract(
    binding=BINDING, verdict="may stand in", systems=("a", "b"), texts=48, people=10, epsilon=0.15, winning_rate=0.6,
    agreement=0.4, made=MADE, days=30, paragraph="It may.",
)  # fmt: skip


def test_a_contract_that_holds_is_not_warned_of() -> None:
    assert stale_warning(CONTRACT, BINDING, MADE + timedelta(days=29), ("a",)) == ""
    assert {one.state for one in stale_conditions(CONTRACT, BINDING, MADE)} == {"no"}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"protocol": "scarecrow@2"}, "protocol"),
        ({"prompt": "77d1"}, "prompt"),
        ({"model": "gpt-10"}, "model"),
        ({"settings": {"temperature": "1"}}, "settings"),
    ],
)
def test_a_change_of_what_it_is_bound_to_makes_it_stale(change: dict[str, Any], name: str) -> None:
    warning = stale_warning(CONTRACT, BINDING.model_copy(update=change), MADE)
    assert warning.startswith("the contract of gpt is stale: the prompt, model, settings or protocol changes")
    assert f"({name})" in warning
    assert BINDING.model_copy(update=change).hash != BINDING.hash


def test_time_and_new_systems_make_it_stale() -> None:
    assert "30 days have passed, on 2026-12-01" in stale_warning(CONTRACT, BINDING, MADE + timedelta(days=30))
    assert "(c)" in stale_warning(CONTRACT, BINDING, MADE, ("a", "c"))
