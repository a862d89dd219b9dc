"""What is kept about a person beyond the fields of `Annotator`: a typed view of the annotator's `meta`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from finecomb.core.records import Annotator, Answer, QualificationRecord


@dataclass(frozen=True, slots=True)
class StepRecord:
    """When a page before the work was shown and done."""

    step: str
    protocol: str
    shown: str | None = None
    """The moment it was first shown, in ISO 8601."""
    done: str | None = None
    """The moment its reader went on."""
    seconds: float | None = None
    """Active seconds on it."""
    guess: Answer | None = None
    """Of a practice round: what was guessed before the answer was shown."""
    guessed: str | None = None
    """The moment of the guess."""
    guess_seconds: float | None = None
    """Active seconds before the guess."""
    right: bool | None = None
    """Whether the guess was right."""
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else a file says about it."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StepRecord:
        """The record of a stored step."""
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
        """The step as it is stored: only what is known."""
        facts = {name: getattr(self, name) for name in _STEP_FIELDS}
        return {name: value for name, value in facts.items() if value is not None} | dict(self.rest)


_STEP_FIELDS = tuple(field.name for field in fields(StepRecord) if field.name != "rest")


@dataclass(frozen=True, slots=True)
class Bonus:
    """An amount on top of the pay, and the reason for it."""

    amount: float = 0
    reason: str = ""
    by: str = field(default="", compare=False)
    """The researcher who gave it."""
    when: str = field(default="", compare=False)
    """The moment it was given, in ISO 8601."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Bonus:
        """The bonus that is stored."""
        amount = value.get("amount")
        number = float(amount) if isinstance(amount, int | float) else 0
        return cls(number, str(value.get("reason") or ""), str(value.get("by", "")), str(value.get("when", "")))

    def to_json(self) -> dict[str, Any]:
        """The bonus as it is stored."""
        return {"amount": self.amount, "reason": self.reason, "by": self.by, "when": self.when}


@dataclass(frozen=True, slots=True)
class AnnotatorMeta:
    """Everything that our own code keeps in the `meta` of an annotator."""

    name: str = ""
    """What researchers call the annotator; empty where they use the id."""
    steps: tuple[StepRecord, ...] = ()
    """Pages before the work, in the order they were first shown."""
    setting: Mapping[str, str] = field(default_factory=dict)
    """Names of document meta and the values that all texts of this person share."""
    bonus: Bonus = field(default_factory=Bonus)
    stored_qualifications: tuple[Mapping[str, Any], ...] = ()
    """Results under other protocols than the one of `Annotator.qualification`, as JSON."""

    @classmethod
    def from_annotator(cls, annotator: Annotator) -> AnnotatorMeta:
        """The progress that an annotator's `meta` holds; what is not ours is left alone."""
        return cls.from_meta(annotator.meta)

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> AnnotatorMeta:
        """The progress in a `meta`."""
        setting, bonus = meta.get("setting"), meta.get("bonus")
        return cls(
            name=str(meta.get("name") or ""),
            steps=tuple(StepRecord.from_json(step) for step in _mappings_in_list(meta.get("steps"))),
            setting={str(name): str(value) for name, value in setting.items()} if isinstance(setting, Mapping) else {},
            bonus=Bonus.from_json(bonus) if isinstance(bonus, Mapping) else Bonus(),
            stored_qualifications=tuple(_mappings_in_list(meta.get("qualifications"))),
        )

    @property
    def qualifications(self) -> tuple[QualificationRecord, ...]:
        """Results under other protocols than the one of `Annotator.qualification`."""
        return tuple(QualificationRecord.model_validate(value) for value in self.stored_qualifications)

    def find_step_record(self, protocol: str, step: str) -> StepRecord | None:
        """The record of one step under a protocol, if it was shown."""
        return next((record for record in self.steps if (record.step, record.protocol) == (step, protocol)), None)

    def done_steps(self, protocol: str) -> set[str]:
        """The steps that were read or answered under a protocol."""
        return {record.step for record in self.steps if record.protocol == protocol and record.done}

    @property
    def step_seconds(self) -> float:
        """Active seconds on all pages before the work."""
        return sum(record.seconds or 0 for record in self.steps)


def _number_or_none(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _mappings_in_list(value: object) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list | tuple) else []


# --- changes -----------------------------------------------------------------------------------------------------


def with_name(annotator: Annotator, name: str) -> Annotator:
    """The annotator under another name for researchers; an empty one takes it away."""
    return _with_meta(annotator, "name", name)


def with_step_records(annotator: Annotator, steps: Sequence[StepRecord]) -> Annotator:
    """The annotator with these records of steps."""
    return _with_meta(annotator, "steps", [record.to_json() for record in steps])


def with_assigned_setting(annotator: Annotator, setting: Mapping[str, str]) -> Annotator:
    """The annotator who keeps to texts of this setting."""
    return _with_meta(annotator, "setting", dict(setting))


def with_bonus(annotator: Annotator, bonus: Bonus) -> Annotator:
    """The annotator with a bonus; an amount of 0 takes it away."""
    return _with_meta(annotator, "bonus", bonus.to_json() if bonus.amount else None)


def with_other_qualifications(annotator: Annotator, qualifications: Sequence[QualificationRecord]) -> Annotator:
    """The annotator with results under other protocols."""
    return _with_meta(annotator, "qualifications", [one.model_dump(mode="json") for one in qualifications])


def _with_meta(annotator: Annotator, name: str, value: Any) -> Annotator:
    meta = {key: part for key, part in annotator.meta.items() if key != name}
    return annotator.model_copy(update={"meta": {**meta, name: value} if value else meta})
