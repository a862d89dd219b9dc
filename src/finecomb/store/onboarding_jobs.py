"""Before the work: pages, exercises and the test, as jobs for the writer."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from finecomb.core.check import unanswered
from finecomb.core.practice import Choice
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import Given, Grade, grade
from finecomb.core.records import Annotation, Annotator, Answers, Attempt, Qualified
from finecomb.people import onboarding
from finecomb.people.onboarding import Beyond, Item, Step
from finecomb.store import assignment, rows, tables
from finecomb.store.assignment import iso
from finecomb.store.database import Transaction
from finecomb.store.researcher_actions import one_annotator, replace_annotator
from finecomb.store.rows import Declined
from finecomb.store.tables import given

if TYPE_CHECKING:
    from finecomb.store.store import Store

_A = tables.annotation.c


@dataclass(frozen=True, slots=True)
class PracticeTask:
    """An exercise or question that somebody was given."""

    id: str
    document: str
    round: int
    status: Literal["draft", "submitted", "excluded"]
    excluded: bool
    number: int | None
    """Absent for one that came with a study's files."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far somebody is before the work."""

    annotator: Annotator
    practice: Sequence[PracticeTask]
    at: Step | Item | Beyond

    @property
    def finished(self) -> set[tuple[str, int]]:
        """What was handed in or set aside."""
        return {(each.document, each.round) for each in self.practice if each.status != "draft" or each.excluded}


_PRACTISED = (
    sa.select(_A.id, _A.document, _A.round, _A.status, _A.excluded, _A.number)
    .where(
        _A.study == given("study"),
        _A.annotator == given("annotator"),
        _A.protocol == given("protocol"),
        _A.phase != "work",
    )
    .order_by(_A.key)
)


def position(store: Store, transaction: Transaction, annotator: str) -> Position:
    """Where somebody is on the way of the protocol in force; reads only."""
    protocol, settings = store.head.protocol, store.head.settings
    found = transaction.all(_PRACTISED, study=store.key, annotator=annotator, protocol=protocol.id)
    known = Position(one_annotator(store, transaction, annotator), tuple(PracticeTask(*row) for row in found), "work")
    return Position(
        known.annotator, known.practice, onboarding.here(protocol, settings, known.annotator, known.finished)
    )


# --- what next ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NextStep:
    """What somebody is to do now: a task, a page, or nothing and why."""

    task: str = ""
    step: Step | None = None
    why: Literal["", "all-done", "none-now", "paused", "closed", "screened-out", "ended"] = ""


def next_stop(store: Store, transaction: Transaction, annotator: str) -> NextStep:
    """The first thing on somebody's way that is not done. Who was excluded gets nothing more."""
    if store.head.state == "paused" or store.head.state == "closed":
        return NextStep(why=store.head.state)
    now = position(store, transaction, annotator)
    if now.annotator.excluded:
        return NextStep(why="ended")
    match now.at:
        case Step():
            _show(store, transaction, now.annotator, now.at)
            return NextStep(step=now.at)
        case Item():
            return NextStep(_give(store, transaction, now, now.at))
        case "screened-out":
            return NextStep(why="screened-out")
        case _:
            found = assignment.next_task(store, transaction, annotator)
            return NextStep(found.id, why=found.why)


def _show(store: Store, transaction: Transaction, annotator: Annotator, step: Step) -> None:
    """Remember when a page was first shown."""
    protocol = store.head.protocol
    if not onboarding.noted(protocol, annotator, step.id):
        replace_annotator(
            store, transaction, onboarding.with_step(protocol, annotator, step.id, shown=iso(store.clock()))
        )


_ADOPT = (
    sa.update(tables.annotation)
    .values(number=given("new"), started=sa.func.coalesce(_A.started, given("now")))
    .where(_A.study == given("of"), _A.id == given("task"))
)


def _give(store: Store, transaction: Transaction, now: Position, item: Item) -> str:
    """The task of an exercise: the open one, else a new one. Its place is nobody else's, so it has no lease."""
    known = [each for each in now.practice if (each.document, each.round) == (item.document, item.round)]
    id, number = known[0].id if known else secrets.token_hex(12), len(now.practice) + 1
    if not known:
        values = {"annotator": now.annotator.id, "document": item.document, "number": number, "round": item.round}
        rest = {"meta": {"order": number}}
        assignment.insert(store, transaction, id=id, phase=item.phase, about="", lease=None, rest=rest, **values)
    elif known[0].number is None:
        transaction.run(_ADOPT, of=store.key, task=id, new=number, now=iso(store.clock()))
    return id


# --- pages -------------------------------------------------------------------------------------------------------


def step_done(
    store: Store, transaction: Transaction, annotator: str, step: str, answers: Answers, active: float
) -> int | Declined:
    """A page was read or answered; saying so twice is saying so once."""
    protocol, now = store.head.protocol, position(store, transaction, annotator)
    if now.annotator.excluded:
        return Declined("not-allowed")
    every = onboarding.stops(protocol, store.head.settings, now.annotator, now.finished)
    steps = {stop.id: is_done for stop, is_done in every if isinstance(stop, Step)}
    if steps.get(step):
        return 0
    shown = onboarding.noted(protocol, now.annotator, step)
    if not isinstance(now.at, Step) or now.at.id != step or shown is None or "shown" not in shown:
        return Declined("not-allowed", say="This page does not come now. Reload to go on where you are.")
    if now.at.kind == "survey" and (declined := _wrong_answers(protocol, answers)):
        return declined
    wall = store.clock() - datetime.fromisoformat(shown["shown"]).timestamp()
    facts = {"done": iso(store.clock()), "seconds": round(min(active, wall), 3)}
    told = {"survey": {**now.annotator.survey, **answers}} if now.at.kind == "survey" else {}
    replace_annotator(
        store, transaction, onboarding.with_step(protocol, now.annotator.model_copy(update=told), step, **facts)
    )
    return 0


def _wrong_answers(protocol: Protocol, answers: Answers) -> Declined | None:
    by_name = {question.name: question for question in protocol.survey}
    for name, answer in answers.items():
        problem = by_name[name].problem(answer) if name in by_name else f"{name!r} is not asked"
        if problem:
            return Declined("refused", say=f"This answer was not accepted: {problem}.")
    missing = tuple(f"steps/survey: {name}" for name in unanswered(answers, protocol.survey))
    return Declined("incomplete", missing=missing) if missing else None


# --- grading -----------------------------------------------------------------------------------------------------


def attempt(
    store: Store, transaction: Transaction, annotator: str, protocol: Protocol, round: int
) -> dict[str, Annotation]:
    """What somebody did in one attempt, by the ids of its texts."""
    own = sa.and_(_A.annotator == annotator, _A.protocol == protocol.id, _A.phase == "qualification", _A.round == round)
    return {each.document: each for each in rows.some_annotations(transaction, store.key, own)}


def graded(protocol: Protocol, done: Mapping[str, Annotation]) -> Grade:
    """The grade of an attempt; what was set aside counts as blank."""
    given_: Given = {
        item.given.name: done[id].answers.get("answer", "") if isinstance(item.given, Choice) else done[id].marks
        for id, item in onboarding.items(protocol).items()
        if id in done and done[id].excluded is None
    }
    return grade(protocol, given_)


def grade_when_complete(store: Store, transaction: Transaction, annotator: str, protocol: str, round: int) -> None:
    """After the last item of an attempt, keep its grade with the annotator.

    An attempt under a protocol that is no longer in force is left as it is: it decides nothing any more.
    """
    asked = store.head.protocol
    if asked.id != protocol:
        return
    done = attempt(store, transaction, annotator, asked, round)
    tested = [id for id, item in onboarding.items(asked).items() if item.phase == "qualification"]
    if all(id in done and (done[id].status != "draft" or done[id].excluded) for id in tested):
        one = one_annotator(store, transaction, annotator)
        replace_annotator(store, transaction, _with_grade(asked, one, graded(asked, done), round, store.clock()))


def _with_grade(protocol: Protocol, annotator: Annotator, found: Grade, round: int, now: float) -> Annotator:
    """The annotator with one more attempt; what was reached under another protocol moves to `meta.qualifications`."""
    before = onboarding.qualified(protocol, annotator)
    earlier = [each for each in before.attempts if each.round != round] if before else []
    tried = (
        *earlier,
        Attempt(round=round, score=found.score, parts=found.parts, when=datetime.fromtimestamp(now, UTC)),
    )
    made = Qualified(
        protocol=protocol.id,
        score=max(each.score for each in tried),
        passed=found.passed or (before is not None and before.passed),
        attempts=tried,
    )
    return onboarding.with_qualification(annotator, made)
