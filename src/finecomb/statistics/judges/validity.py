"""Validity of a judge's calibration: its verdict, the judge it applies to, and when it is no longer valid."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from finecomb.core.model_notes import LIMIT_SETTINGS
from finecomb.core.records import Record

CONTRACTS_FOLDER = "contracts"
"""Folder within a study that stores what judges are valid for, one file per judge."""
_RENAMED_VERDICTS = {
    "may stand in": "can replace people",
    "may help, may not stand in": "can assist but not replace people",
    "may not be used for this": "cannot be used for this",
}
"""Current names of the verdicts stored by earlier versions."""


Verdict = Annotated[
    Literal[
        "can replace people",
        "can assist but not replace people",
        "cannot be used for this",
        "too few texts to decide",
    ],
    BeforeValidator(lambda stored: _RENAMED_VERDICTS.get(stored, stored) if isinstance(stored, str) else stored),
]
"""Verdict of a calibration. Verdicts stored by earlier versions are renamed when read."""
UNDECIDED_VERDICT: Verdict = "too few texts to decide"


class JudgeBinding(Record):
    """Identity of a judge, whose calibration is no longer valid once any of these values changes."""

    judge: str
    """ID of the annotator."""
    protocol: str
    """Name and version of the protocol, e.g. `scarecrow@2`."""
    prompt: str = ""
    """Hash of the prompt, if any."""
    model: str = ""
    """Name and version of the model, if any."""
    settings: Mapping[str, str] = Field(default_factory=dict)
    """Decoding parameters and other settings, e.g. temperature, without limits on cost and speed."""
    endpoint: str = ""
    """Provider of the model; empty in calibrations of earlier versions, which did not store it."""

    @property
    def hash(self) -> str:
        """Short hash of the judge's identity."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]


def build_judge_binding(judge: str, facts: Mapping[str, Any], protocol: str) -> JudgeBinding:
    """Build the identity of a judge from the meta of its annotator."""
    settings = facts.get("settings") if isinstance(facts.get("settings"), dict) else {}
    return JudgeBinding(
        judge=judge, protocol=protocol, prompt=str(facts.get("prompt_hash") or facts.get("prompt") or ""),
        model=str(facts.get("model") or facts.get("signature") or ""),
        settings={str(name): str(value) for name, value in (settings or {}).items() if name not in LIMIT_SETTINGS},
        endpoint=str(facts.get("endpoint") or ""),
    )  # fmt: skip


class JudgeContract(Record):
    """Summary of a judge's calibration that states what the judge is valid for."""

    binding: JudgeBinding
    verdict: Verdict
    labels: tuple[str, ...] = ()
    """Labels that the verdict is valid for; all labels if empty."""
    systems: tuple[str, ...] = ()
    """Systems whose texts the judge was calibrated on."""
    by: str = "model"
    """Name of the document meta that identifies systems."""
    texts: int = Field(ge=0)
    people: int = Field(ge=0)
    epsilon: float
    winning_rate: float
    agreement: float
    """Alpha between judge and people."""
    made: datetime
    days: int = Field(default=30, ge=1)
    """Number of days that the calibration is valid for."""
    paragraph: str
    """Verdict and its reasons in plain words."""
    signature: str = ""


class StaleCondition(Record):
    """Condition that ends the validity of a calibration, and its current state."""

    condition: str
    state: Literal["no", "near", "yes"]
    detail: str = ""


NEAR_EXPIRY_SHARE = 0.2
"""Share of the validity period, at its end, in which the calibration is about to expire."""
MAX_NEW_SYSTEM_SHARE = 0.1
"""Maximum share of texts from systems on which the judge was not calibrated."""


def text_counts_by_system(contract: JudgeContract, metas: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of texts by system, for texts whose meta names a system."""
    return dict(Counter(str(meta[contract.by]) for meta in metas if meta.get(contract.by) is not None))


def expiry_conditions(
    contract: JudgeContract, binding: JudgeBinding, now: datetime, systems: Mapping[str, int]
) -> list[StaleCondition]:
    """Return all conditions that end the validity of a calibration, with their current state.

    `systems` holds the number of texts per system that the judge annotates or will annotate.
    """
    period = timedelta(days=contract.days)
    ends = contract.made + period
    before = contract.binding
    before = before.model_copy(  # calibrations of earlier versions contain limits and no endpoint
        update={
            "settings": {name: value for name, value in before.settings.items() if name not in LIMIT_SETTINGS},
            "endpoint": before.endpoint or binding.endpoint,
        }
    )
    changed = [name for name in JudgeBinding.model_fields if getattr(binding, name) != getattr(before, name)]
    # A calibration on texts without known systems cannot tell which systems are new.
    new = sorted(set(systems) - set(contract.systems)) if contract.systems else []
    share = sum(systems[name] for name in new) / max(1, sum(systems.values()))
    return [
        StaleCondition(
            condition="the prompt, model, settings, provider or protocol changes",
            state="yes" if changed else "no",
            detail=", ".join(changed),
        ),
        StaleCondition(
            condition=f"{contract.days} days have passed ({ends.date().isoformat()})",
            state="yes" if now >= ends else "near" if now >= ends - NEAR_EXPIRY_SHARE * period else "no",
        ),
        StaleCondition(
            condition=f"over {MAX_NEW_SYSTEM_SHARE:.0%} of texts come from systems absent from the calibration",
            state="yes" if share > MAX_NEW_SYSTEM_SHARE else "near" if new else "no",
            detail=f"{', '.join(new)}: {share:.0%}" if new else "",
        ),
    ]


def expiry_warning(contract: JudgeContract, binding: JudgeBinding, now: datetime, systems: Mapping[str, int]) -> str:
    """Return a one-line warning if the calibration is no longer valid, else an empty string."""
    ended = [condition for condition in expiry_conditions(contract, binding, now, systems) if condition.state == "yes"]
    if not ended:
        return ""
    reasons = ", and ".join(
        f"{condition.condition}{f' ({condition.detail})' if condition.detail else ''}" for condition in ended
    )
    expired = f"the calibration of {contract.binding.judge} is no longer valid: {reasons}"
    return f"{expired}; calibrate it again before using its marks"
