"""A contract: what a judge may be used for, bound to what it was checked with, and when that is stale."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from finecomb.core.records import Record

CONTRACTS_FOLDER = "contracts"
"""Folder of a study in which contracts are kept, one file for each judge."""
Verdict = Literal["may stand in", "may help, may not stand in", "may not be used for this"]


class JudgeBinding(Record):
    """What a judge is made of; a change of any of it makes another judge."""

    judge: str
    """Annotator's id."""
    protocol: str
    """Name and version, e.g. `scarecrow@2`."""
    prompt: str = ""
    """Hash of the prompt, where there is one."""
    model: str = ""
    """Name and version of the model, where there is one."""
    settings: Mapping[str, str] = Field(default_factory=dict)
    """Temperature and the like."""

    @property
    def hash(self) -> str:
        """A short name of all of it."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]


def build_judge_binding(judge: str, facts: Mapping[str, Any], protocol: str) -> JudgeBinding:
    """What a judge is made of, as far as the meta of its annotator says so."""
    settings = facts.get("settings") if isinstance(facts.get("settings"), dict) else {}
    return JudgeBinding(
        judge=judge, protocol=protocol, prompt=str(facts.get("prompt_hash") or facts.get("prompt") or ""),
        model=str(facts.get("model") or facts.get("signature") or ""),
        settings={str(name): str(value) for name, value in (settings or {}).items()},
    )  # fmt: skip


class JudgeContract(Record):
    """A judge's calibration in short, kept with the study."""

    binding: JudgeBinding
    verdict: Verdict
    labels: tuple[str, ...] = ()
    """Labels for which it holds; all of them where none is named."""
    systems: tuple[str, ...] = ()
    """Systems whose texts it was checked on."""
    by: str = "model"
    """Document meta that names systems."""
    texts: int = Field(ge=0)
    people: int = Field(ge=0)
    epsilon: float
    winning_rate: float
    agreement: float
    """Alpha with people."""
    made: datetime
    days: int = Field(default=30, ge=1)
    """How long it holds."""
    paragraph: str
    """What it says, in plain words."""
    signature: str = ""


class StaleCondition(Record):
    """One of the conditions that end a contract, and whether it has come about."""

    condition: str
    state: Literal["no", "near", "yes"]
    detail: str = ""


NEAR_EXPIRY_SHARE = 0.2
"""The last part of a contract's days, in which its end is near."""
MAX_NEW_SYSTEM_SHARE = 0.1
"""The share of texts from systems that a judge was not checked on beyond which its contract is stale."""


def text_counts_by_system(contract: JudgeContract, metas: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many texts each system has, of those whose meta names one."""
    return dict(Counter(str(meta[contract.by]) for meta in metas if meta.get(contract.by) is not None))


def stale_conditions(
    contract: JudgeContract, binding: JudgeBinding, now: datetime, systems: Mapping[str, int]
) -> list[StaleCondition]:
    """Every condition that ends a contract, with its state: the judge as it is now, the time, the texts it reads.

    `systems` are the numbers of texts by system, of those that it reads or is to read.
    """
    ends = contract.made + timedelta(days=contract.days)
    changed = [name for name in JudgeBinding.model_fields if getattr(binding, name) != getattr(contract.binding, name)]
    new = sorted(set(systems) - set(contract.systems)) if contract.systems else []
    share = sum(systems[name] for name in new) / max(1, sum(systems.values()))
    return [
        StaleCondition(
            condition="the prompt, model, settings or protocol changes",
            state="yes" if changed else "no",
            detail=", ".join(changed),
        ),
        StaleCondition(
            condition=f"{contract.days} days have passed, on {ends.date().isoformat()}",
            state="yes"
            if now >= ends
            else "near"
            if now >= ends - NEAR_EXPIRY_SHARE * timedelta(days=contract.days)
            else "no",
        ),
        StaleCondition(
            condition=f"over {MAX_NEW_SYSTEM_SHARE:.0%} of texts come from systems it was not checked on",
            state="yes" if share > MAX_NEW_SYSTEM_SHARE else "near" if new else "no",
            detail=f"{', '.join(new)}: {share:.0%}" if new else "",
        ),
    ]


def stale_warning(contract: JudgeContract, binding: JudgeBinding, now: datetime, systems: Mapping[str, int]) -> str:
    """One line that says why a contract no longer holds, or nothing."""
    ended = [condition for condition in stale_conditions(contract, binding, now, systems) if condition.state == "yes"]
    if not ended:
        return ""
    reasons = "; ".join(
        f"{condition.condition}{f' ({condition.detail})' if condition.detail else ''}" for condition in ended
    )
    return f"the contract of {contract.binding.judge} is stale: {reasons}; calibrate again before its marks are used"
