"""Requests and responses about recruitment, pay and qualification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from finecomb.collection.screening import Rule
from finecomb.collection.screening_signals import SignalKind
from finecomb.core.records import AnnotationPhase, Id, Record, Text, Time
from finecomb.server.researchers.schema import ResponseRecord

Stage = Literal["invited", "working", "done", "screened-out"]
ReachedPhase = Literal["", "survey", "instructions", "training", "qualification", "work"]


class NoticedSignal(ResponseRecord):
    """Observation about a person that may need review."""

    sign: SignalKind
    say: str
    """Description for researchers."""
    weak: bool = False
    """True when the signal means little on its own."""


class BonusRequest(Record):
    """Bonus in addition to the pay."""

    amount: float = Field(ge=0, le=100_000)
    """Amount; 0 removes the bonus."""
    reason: Text = Field(default="", max_length=2000)


class Recruit(ResponseRecord):
    """Participant with recruitment data. Worker IDs stay on the server."""

    id: Id
    name: str
    condition: str
    platform: str
    stage: Stage
    reached: ReachedPhase
    """Current phase; empty before the first sign-in."""
    score: float | None
    """Best score in the qualification."""
    passed: bool | None
    noticed: tuple[NoticedSignal, ...]
    texts: int
    minutes: float
    pay: float
    bonus: BonusRequest
    per_hour: float | None
    excluded: bool
    cell: str = ""
    """Cell of the study's design; empty without a design."""
    came: Time | None = None
    """Time of the first sign-in."""
    why: str = ""
    """Reason for the exclusion."""


class Costs(ResponseRecord):
    """Costs of the study so far."""

    pay: float
    bonus: float
    fees: float
    staff: float
    total: float
    per_hour: float | None
    """Median over people, by active time."""


class QualificationScores(ResponseRecord):
    """Scores of all people in the qualification."""

    scores: tuple[float, ...]
    """Best score of each person, in the order of the people."""
    needed: float
    of: float
    attempts: int


class CellPayRow(ResponseRecord):
    """Hourly pay of the people who completed one design cell."""

    cell: Text
    per_hour: float | None
    """Median; null when no time is known."""
    lacking: float
    """Bonus per person that raises the median to the minimum; 0 when none is needed."""
    people: int
    """Number of people who would get the bonus."""


class Recruiting(ResponseRecord):
    """Participants with their progress, screening signals and cost."""

    people: tuple[Recruit, ...]
    costs: Costs
    currency: str
    cells: tuple[CellPayRow, ...] = ()
    """Cells of the design that someone has completed."""
    pay_floor: float | None = None
    budget: float | None = None
    qualification: QualificationScores | None
    """Qualification scores; None when the protocol has no qualification."""
    as_of: Time


class ExerciseResult(ResponseRecord):
    """Exercise or question of an attempt."""

    document: Id
    title: str
    points: float
    of: float
    found: int
    missed: int
    extra: int
    chosen: str | None
    """Chosen answer of a multiple-choice question."""
    right: str | None
    """Right answer of a multiple-choice question."""
    seconds: float | None


class AttemptResult(ResponseRecord):
    """Qualification attempt, or the training, with all exercises."""

    phase: AnnotationPhase
    attempt: int
    """Attempt, counted from 1."""
    score: float | None
    of: float
    passed: bool | None
    when: Time | None
    exercises: tuple[ExerciseResult, ...]


class SuggestionRow(ResponseRecord):
    """Suggested exclusion of an annotation, for a researcher to decide."""

    annotation: Id
    annotator: Id
    name: str
    document: Id
    rule: Rule
    question: str
    reason: str
    evidence: str
    kept: bool


class KeepDecision(Record):
    """Decision to keep an annotation despite some screening rules."""

    rules: tuple[Rule, ...] = Field(min_length=1, max_length=10)


class BulkDecision(Record):
    """Decisions about many suggestions, applied all or none."""

    exclude: tuple[Id, ...] = Field(default=(), max_length=10_000)
    """Annotations to exclude."""
    exclude_annotators: tuple[Id, ...] = Field(default=(), max_length=10_000)
    """People to exclude with all their work."""
    keep: Mapping[Id, tuple[Rule, ...]] = Field(default={}, max_length=10_000)
    """Annotations to keep, with the rules to disregard."""
    reason: Text = ""
    """Reason for the exclusions."""


class ScreenedPersonRow(ResponseRecord):
    """Annotator to review before their work is counted."""

    annotator: Id
    name: str
    texts: int
    suggested: int
    rules: tuple[str, ...]
    noticed: tuple[str, ...]


class DesignCellRow(ResponseRecord):
    """State of one cell of the design."""

    cell: Text
    """Name of the cell, e.g. `examples/gpt3/news`."""
    factors: Mapping[Text, Text]
    people: int
    """Number of accepted people needed."""
    accepted: int
    working: int
    """People with a held place."""
    gone: int
    """People who stopped before they were done."""
    excluded: int
    closed: int
    """Places of excluded people that stay closed."""
    open: int
    """Number of people that can be assigned now."""
    pay: float | None
    """Pay per person."""
    texts: int
    """Texts per person."""


class DesignPage(ResponseRecord):
    """Design of the study with the state of its cells."""

    cells: tuple[DesignCellRow, ...]
    currency: Text
    titles: Mapping[Text, Text]
    """Titles of the protocol's conditions, by name."""
    reopen: bool
    """True when the places of excluded people are reopened."""
    lease: int
    """Minutes for which a place is held for an inactive person."""


class ReopenRequest(Record):
    """Request to reopen the places of excluded people, or to keep them closed."""

    reopen: bool
