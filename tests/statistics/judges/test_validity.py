from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from finecomb.statistics.judges.validity import (
    JudgeBinding,
    JudgeContract,
    expiry_conditions,
    expiry_warning,
    text_counts_by_system,
)

MADE = datetime(2026, 11, 1, tzinfo=UTC)
BINDING = JudgeBinding(judge="gpt", protocol="scarecrow@1", prompt="3f2a", model="gpt-9", settings={"temperature": "0"})
CONTRACT = JudgeContract(
    binding=BINDING, verdict="can replace people", systems=("a", "b"), texts=48, people=10, epsilon=0.15,
    winning_rate=0.6, agreement=0.4, made=MADE, days=30, paragraph="It may.",
)  # fmt: skip


def test_a_contract_that_holds_is_not_warned_of() -> None:
    assert expiry_warning(CONTRACT, BINDING, MADE + timedelta(days=29), {"a": 9}) == ""
    assert {one.state for one in expiry_conditions(CONTRACT, BINDING, MADE, {"a": 9, "b": 1})} == {"no"}


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
    warning = expiry_warning(CONTRACT, BINDING.model_copy(update=change), MADE, {})
    assert warning.startswith(
        "the calibration of gpt is no longer valid: the prompt, model, settings, provider or protocol changes"
    )
    assert f"({name})" in warning
    assert BINDING.model_copy(update=change).hash != BINDING.hash


def test_time_and_new_systems_make_it_stale() -> None:
    assert "30 days have passed (2026-12-01)" in expiry_warning(CONTRACT, BINDING, MADE + timedelta(days=30), {})
    assert "(c, d: 20%)" in expiry_warning(CONTRACT, BINDING, MADE, {"a": 40, "c": 6, "d": 4})


def test_what_is_near_is_said_and_does_not_end_it() -> None:
    states = [one.state for one in expiry_conditions(CONTRACT, BINDING, MADE + timedelta(days=24), {"b": 9, "c": 1})]
    assert states == ["no", "near", "near"]
    assert expiry_warning(CONTRACT, BINDING, MADE + timedelta(days=24), {"b": 9, "c": 1}) == ""
    early = expiry_conditions(CONTRACT, BINDING, MADE + timedelta(days=23), {"b": 9})
    assert [one.state for one in early] == ["no", "no", "no"]


def test_texts_are_counted_by_what_names_systems() -> None:
    metas: list[dict[str, Any]] = [{"model": "a", "topic": "x"}, {"model": "a"}, {"topic": "y"}, {"model": None}]
    assert text_counts_by_system(CONTRACT, metas) == {"a": 2}
    assert text_counts_by_system(CONTRACT.model_copy(update={"by": "topic"}), metas) == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [
        ("may stand in", "can replace people"),
        ("may help, may not stand in", "can assist but not replace people"),
        ("may not be used for this", "cannot be used for this"),
        ("cannot be used for this", "cannot be used for this"),
    ],
)
def test_verdicts_stored_by_earlier_versions_are_renamed_when_read(stored: str, verdict: str) -> None:
    data = CONTRACT.model_dump_json().replace('"verdict":"can replace people"', f'"verdict":"{stored}"')
    assert JudgeContract.model_validate_json(data).verdict == verdict
