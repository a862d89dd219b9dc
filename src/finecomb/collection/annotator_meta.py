"""Typed view of an annotator's `meta`: values that have no field in `Annotator`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from finecomb.core.records import Annotator, Answer, QualificationRecord


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Times and answers of one onboarding page."""

    step: str
    protocol: str
    shown: str | None = None
    """Time of the first view, in ISO 8601."""
    done: str | None = None
    """Time at which the annotator completed the page, in ISO 8601."""
    seconds: float | None = None
    """Active seconds on the page."""
    guess: Answer | None = None
    """Annotator's guess in a practice round, made before the solution was shown."""
    guessed: str | None = None
    """Time of the guess, in ISO 8601."""
    guess_seconds: float | None = None
    """Active seconds on the page before the guess."""
    right: bool | None = None
    """True when the guess was right."""
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the stored record, which are kept unchanged."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StepRecord:
        """Build a step record from its stored JSON."""
        rest = {name: part for name, part in value.items() if name not in _STEP_FIELDS}
        right = value.get("right")
        return cls(
            str(value.get("step", "")),
            str(value.get("protocol", "")),
            shown=value.get("shown"),
            done=value.get("done"),
            seconds=_number_or_none(value.get("seconds")),
            guess=value.get("guess"),
            guessed=value.get("guessed"),
            guess_seconds=_number_or_none(value.get("guess_seconds")),
            right=right if isinstance(right, bool) else None,
            rest=rest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the step record as JSON, without undefined values."""
        facts = {name: getattr(self, name) for name in _STEP_FIELDS}
        return {name: value for name, value in facts.items() if value is not None} | dict(self.rest)


_STEP_FIELDS = tuple(field.name for field in fields(StepRecord) if field.name != "rest")


@dataclass(frozen=True, slots=True)
class Bonus:
    """Bonus paid in addition to regular pay, and the reason for it."""

    amount: float = 0
    reason: str = ""
    by: str = field(default="", compare=False)
    """Researcher who gave the bonus."""
    when: str = field(default="", compare=False)
    """Time at which the bonus was given, in ISO 8601."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Bonus:
        """Build a bonus from its stored JSON."""
        amount = value.get("amount")
        number = float(amount) if isinstance(amount, int | float) else 0
        return cls(number, str(value.get("reason") or ""), str(value.get("by", "")), str(value.get("when", "")))

    def to_json(self) -> dict[str, Any]:
        """Return the bonus as JSON."""
        return {"amount": self.amount, "reason": self.reason, "by": self.by, "when": self.when}


@dataclass(frozen=True, slots=True)
class AnnotatorMeta:
    """All values that Finecomb stores in the `meta` of an annotator."""

    name: str = ""
    """Display name shown to researchers; empty when they see the ID instead."""
    steps: tuple[StepRecord, ...] = ()
    """Records of the onboarding pages, in the order of first view."""
    setting: Mapping[str, str] = field(default_factory=dict)
    """Values of document meta that all texts of this annotator share, by key."""
    bonus: Bonus = field(default_factory=Bonus)
    stored_qualifications: tuple[Mapping[str, Any], ...] = ()
    """Qualification results for protocols other than the one in `Annotator.qualification`, as JSON."""

    @classmethod
    def from_annotator(cls, annotator: Annotator) -> AnnotatorMeta:
        """Parse the `meta` of an annotator, ignoring other keys."""
        return cls.from_meta(annotator.meta)

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> AnnotatorMeta:
        """Parse a `meta` mapping, ignoring other keys."""
        setting, bonus = meta.get("setting"), meta.get("bonus")
        return cls(
            name=str(meta.get("name") or ""),
            steps=tuple(StepRecord.from_json(step) for step in _mappings_in_list(meta.get("steps"))),
            setting={str(name): str(value) for name, value in setting.items()} if isinstance(setting, Mapping) else {},
            bonus=Bonus.from_json(bonus) if isinstance(bonus, Mapping) else Bonus(),
            stored_qualifications=tuple(_mappings_in_list(meta.get("qualifications"))),
        )

    @property
    def other_qualifications(self) -> tuple[QualificationRecord, ...]:
        """Qualification results for protocols other than the one in `Annotator.qualification`."""
        return tuple(QualificationRecord.model_validate(value) for value in self.stored_qualifications)

    def find_step_record(self, protocol: str, step: str) -> StepRecord | None:
        """Return the record of one onboarding step of a protocol, or None when the step was never shown."""
        return next((record for record in self.steps if (record.step, record.protocol) == (step, protocol)), None)

    def done_step_ids(self, protocol: str) -> set[str]:
        """Return the IDs of a protocol's steps that the annotator has completed."""
        return {record.step for record in self.steps if record.protocol == protocol and record.done}

    @property
    def total_step_seconds(self) -> float:
        """Active seconds on all onboarding pages."""
        return sum(record.seconds or 0 for record in self.steps)


def _number_or_none(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _mappings_in_list(value: object) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list | tuple) else []


# --- changes -----------------------------------------------------------------------------------------------------


def with_display_name(annotator: Annotator, name: str) -> Annotator:
    """Return a copy of the annotator with a new display name for researchers; an empty name removes it."""
    return _with_meta(annotator, "name", name)


def with_step_records(annotator: Annotator, steps: Sequence[StepRecord]) -> Annotator:
    """Return a copy of the annotator with new step records."""
    return _with_meta(annotator, "steps", [record.to_json() for record in steps])


def with_assigned_text_group(annotator: Annotator, setting: Mapping[str, str]) -> Annotator:
    """Return a copy of the annotator with the text group from which all their texts must come."""
    return _with_meta(annotator, "setting", dict(setting))


def with_bonus(annotator: Annotator, bonus: Bonus) -> Annotator:
    """Return a copy of the annotator with a bonus; an amount of 0 removes it."""
    return _with_meta(annotator, "bonus", bonus.to_json() if bonus.amount else None)


def with_other_qualifications(annotator: Annotator, qualifications: Sequence[QualificationRecord]) -> Annotator:
    """Return a copy of the annotator with new results for protocols other than the one in `Annotator.qualification`."""
    return _with_meta(annotator, "qualifications", [record.model_dump(mode="json") for record in qualifications])


def _with_meta(annotator: Annotator, name: str, value: Any) -> Annotator:
    meta = {key: part for key, part in annotator.meta.items() if key != name}
    return annotator.model_copy(update={"meta": {**meta, name: value} if value else meta})
