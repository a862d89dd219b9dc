"""What goes between the server and the researcher's pages about recruiting, pay and qualification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from finecomb.collection.screening import Rule
from finecomb.collection.screening_signals import SignalKind
from finecomb.core.records import Id, Phase, Record, Text, Time
from finecomb.server.researchers.schema import ResponseRecord

Stage = Literal["invited", "working", "done", "screened-out"]
ReachedPhase = Literal["", "survey", "instructions", "training", "qualification", "work"]


class NoticedSignal(ResponseRecord):
    """Something about a person that is worth a look."""

    sign: SignalKind
    say: str
    """In words, for researchers."""
    weak: bool = False
    """Whether it says little on its own."""


class BonusRequest(Record):
    """Something on top of the pay."""

    amount: float = Field(ge=0, le=100_000)
    """0 for none."""
    reason: Text = Field(default="", max_length=2000)


class Recruit(ResponseRecord):
    """One person as far as recruiting goes; worker ids stay on the server."""

    id: Id
    name: str
    condition: str
    platform: str
    stage: Stage
    reached: ReachedPhase
    """Where they are on the way; empty before they came."""
    score: float | None
    """Best in the qualification."""
    passed: bool | None
    noticed: tuple[NoticedSignal, ...]
    texts: int
    minutes: float
    pay: float
    bonus: BonusRequest
    per_hour: float | None
    excluded: bool
    cell: str = ""
    """Of the study's design; empty without one."""
    came: Time | None = None
    """When they signed in first."""
    why: str = ""
    """Why their work is set aside."""


class Costs(ResponseRecord):
    """What the study costs so far."""

    pay: float
    bonus: float
    fees: float
    staff: float
    total: float
    per_hour: float | None
    """Median over people, from active time."""


class QualificationScores(ResponseRecord):
    """How people did in the qualification."""

    scores: tuple[float, ...]
    """Everybody's best, in the order of the people."""
    needed: float
    of: float
    attempts: int


class CellPayRow(ResponseRecord):
    """What those who are done in one cell of the design were paid for an hour."""

    cell: Text
    per_hour: float | None
    """Median; null where no time is known."""
    lacking: float
    """The bonus for each of them that brings the median up to the floor; 0 where nothing lacks."""
    people: int
    """How many would get it."""


class Recruiting(ResponseRecord):
    """Who came, how far they are, what is noticed about them, and what it costs."""

    people: tuple[Recruit, ...]
    costs: Costs
    currency: str
    cells: tuple[CellPayRow, ...] = ()
    """Of the study's design, those in which somebody is done."""
    pay_floor: float | None = None
    budget: float | None = None
    qualification: QualificationScores | None
    """None where the protocol has none."""
    as_of: Time


class ExerciseResult(ResponseRecord):
    """One exercise or question of an attempt."""

    document: Id
    title: str
    points: float
    of: float
    found: int
    missed: int
    extra: int
    chosen: str | None
    """Of a multiple-choice question: what was answered."""
    right: str | None
    """And what is right."""
    seconds: float | None


class AttemptResult(ResponseRecord):
    """One try at the qualification, or the training, with every exercise."""

    phase: Phase
    attempt: int
    """Counted from 1."""
    score: float | None
    of: float
    passed: bool | None
    when: Time | None
    exercises: tuple[ExerciseResult, ...]


class SuggestionRow(ResponseRecord):
    """A reason to set an annotation aside, for a person to decide."""

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
    """That an annotation is kept in spite of what some rules say."""

    rules: tuple[Rule, ...] = Field(min_length=1, max_length=10)


class BulkDecision(Record):
    """What is decided about many suggestions at once; all of it, or nothing where any of it cannot be done."""

    exclude: tuple[Id, ...] = Field(default=(), max_length=10_000)
    """Annotations to be set aside."""
    exclude_annotators: tuple[Id, ...] = Field(default=(), max_length=10_000)
    """People whose whole work is set aside."""
    keep: Mapping[Id, tuple[Rule, ...]] = Field(default={}, max_length=10_000)
    """Annotations that are kept in spite of these rules."""
    reason: Text = ""
    """Why, where anything is set aside."""


class ScreenedPersonRow(ResponseRecord):
    """Somebody to look at before their work is counted."""

    annotator: Id
    name: str
    texts: int
    suggested: int
    rules: tuple[str, ...]
    noticed: tuple[str, ...]


class DesignCellRow(ResponseRecord):
    """How one cell of the study's design is filled."""

    cell: Text
    """Its name, e.g. `examples/gpt3/news`."""
    factors: Mapping[Text, Text]
    people: int
    """How many accepted people it needs."""
    accepted: int
    working: int
    """People for whom a place is held."""
    gone: int
    """People who stopped before they were done."""
    excluded: int
    closed: int
    """Places of excluded people that stay closed."""
    open: int
    """How many more people can be assigned to it now."""
    pay: float | None
    """What one person earns."""
    texts: int
    """How many texts one person reads."""


class DesignPage(ResponseRecord):
    """The study's design as it fills."""

    cells: tuple[DesignCellRow, ...]
    currency: Text
    titles: Mapping[Text, Text]
    """Of the protocol's conditions, by their names."""
    reopen: bool
    """Whether the place of somebody who is excluded is given to somebody else."""
    lease: int
    """Minutes that a place is held for somebody who does nothing."""


class ReopenRequest(Record):
    """Whether places of people who are excluded are given to others."""

    reopen: bool
