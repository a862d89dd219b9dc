"""Where researchers see who came, what is noticed about them, how they did in the qualification, and what it costs."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Annotated
from urllib.parse import quote

import polars as pl
from fastapi import APIRouter, Query, Response

from finecomb.core.errors import did_you_mean
from finecomb.core.frames import annotations_of
from finecomb.core.practice import Choice, Exercise
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import Graded, graded_choice, graded_exercise
from finecomb.core.records import Annotation, Annotator, Attempt
from finecomb.core.study import Study
from finecomb.people import onboarding
from finecomb.people import pay as pay_rules
from finecomb.people.pay import Earned, Form
from finecomb.people.signals import Signal
from finecomb.server.problems import ProblemError
from finecomb.server.researchers import recruitment_schema as schema
from finecomb.server.researchers.routes import Editor, Id, Snapshots, Viewer
from finecomb.server.researchers.snapshot import Snapshot
from finecomb.server.researchers.snapshot_cache import StudyPages
from finecomb.store import recruits, researcher_actions

router = APIRouter(prefix="/api/admin", tags=["researchers"])


# --- everybody ----------------------------------------------------------------------------------------------------


@router.get("/recruiting")
def recruiting(snapshots: Snapshots, _: Viewer) -> schema.Recruiting:
    """Who came, how far they are, what is noticed about them, and what it costs."""
    return snapshots.ask(recruiting_page)


def recruiting_page(pages: StudyPages) -> schema.Recruiting:
    """The page of one moment."""
    now, signs = pages.snapshot, pages.signals
    people = pay_rules.earned(now.study, pages.arrivals, now.protocol)
    cost = pay_rules.cost(now.study.settings, people)
    records = {each.id: each for each in now.study.iter_annotators()}
    reached = _reached(now, records.values())
    return schema.Recruiting(
        people=tuple(
            _recruit(each, records[each.annotator], now, signs.get(each.annotator, ()), reached) for each in people
        ),
        costs=schema.Costs(
            pay=cost.pay,
            bonus=cost.bonus,
            fees=cost.fees,
            staff=cost.staff,
            total=cost.total,
            per_hour=cost.per_hour,
        ),
        currency=now.study.settings.currency,
        qualification=_scores(now.protocol, records.values()),
        as_of=now.now,
    )


def _recruit(
    own: Earned, one: Annotator, now: Snapshot, signs: tuple[Signal, ...], reached: dict[str, schema.Reached]
) -> schema.Recruit:
    test = onboarding.qualified(now.protocol, one)
    return schema.Recruit(
        id=one.id,
        name=now.names[one.id],
        condition=one.condition,
        platform=one.platform,
        stage=own.stage,
        reached="" if own.stage == "invited" else reached[one.id],
        score=test.score if test else None,
        passed=test.passed if test else None,
        noticed=tuple(schema.Noticed(sign=signal.sign, say=signal.say, weak=signal.weak) for signal in signs),
        texts=own.texts,
        minutes=own.minutes,
        pay=own.pay,
        bonus=schema.BonusRequest(amount=own.bonus.amount, reason=own.bonus.reason),
        per_hour=own.per_hour,
        excluded=own.excluded,
    )


def _reached(now: Snapshot, people: Iterable[Annotator]) -> dict[str, schema.Reached]:
    """The phase that each person is in."""
    practice = now.study.annotations.filter((pl.col("phase") != "work") & (pl.col("protocol") == now.protocol.id))
    over = practice.filter((pl.col("status") != "draft") | pl.col("excluded").is_not_null())
    finished: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for who, document, round in over.select("annotator", "document", "round").iter_rows():
        finished[who].add((document, round))
    found: dict[str, schema.Reached] = {}
    for one in people:
        at = onboarding.next_step(now.protocol, now.study.settings, one, finished[one.id])
        phase = (
            at.phase
            if isinstance(at, onboarding.Step | onboarding.Item)
            else "work"
            if at == "work"
            else "qualification"
        )
        found[one.id] = "" if phase == "consent" else phase
    return found


def _scores(protocol: Protocol, people: Iterable[Annotator]) -> schema.QualificationScores | None:
    test = protocol.qualification
    if test is None:
        return None
    took = [found.score for one in people if (found := onboarding.qualified(protocol, one))]
    return schema.QualificationScores(scores=tuple(took), needed=test.pass_at, of=test.total, attempts=test.attempts)


# --- one person's attempts ----------------------------------------------------------------------------------------


@router.get("/attempts")
def attempts(snapshots: Snapshots, _: Viewer, id: Id) -> tuple[schema.AttemptResult, ...]:
    """Training and every attempt at the qualification: each exercise against its solution."""

    def page(made_now: Study) -> tuple[schema.AttemptResult, ...]:
        found = made_now.annotators.filter(pl.col("id") == id)
        if found.is_empty():
            near = did_you_mean(id, made_now.annotators["id"].head(5000))
            raise ProblemError("not-found", f"No annotator is called {id!r}{near}")
        return tuple(attempts_of(made_now, id))

    return snapshots.ask(lambda pages: page(pages.snapshot.study))


def attempts_of(study: Study, annotator: str) -> Iterable[schema.AttemptResult]:
    """Everything that somebody practised, under every protocol, in the order of the way."""
    own = study.only((pl.col("annotator") == annotator) & (pl.col("phase") != "work"))
    every = list(annotations_of(own.annotations, own.marks, own.units))
    one = next(each for each in study.iter_annotators() if each.id == annotator)
    order = {"training": 0, "qualification": 1}
    every.sort(key=lambda each: (each.protocol, order[each.phase], each.round))
    for (id, phase, round), group in groupby(every, key=lambda each: (each.protocol, each.phase, each.round)):
        protocol = study.protocols.get(id)
        if protocol is not None:
            yield _attempt(protocol, one, phase == "qualification", round, list(group))


def _attempt(
    protocol: Protocol, one: Annotator, tested: bool, round: int, given: Sequence[Annotation]
) -> schema.AttemptResult:
    items = onboarding.items(protocol, round)
    exercises = tuple(_exercise(items[each.document], each, protocol) for each in given if each.document in items)
    graded = _graded_attempt(protocol, one, round) if tested else None
    test = protocol.qualification
    return schema.AttemptResult(
        phase="qualification" if tested else "training",
        attempt=round + 1,
        score=graded.score if graded else None,
        of=test.total if test and tested else 0,
        passed=_passed(protocol, one, graded) if graded else None,
        when=_when(graded, given),
        exercises=exercises,
    )


def _graded_attempt(protocol: Protocol, one: Annotator, round: int) -> Attempt | None:
    found = onboarding.qualified(protocol, one)
    return next((each for each in found.attempts if each.round == round), None) if found else None


def _passed(protocol: Protocol, one: Annotator, graded: Attempt) -> bool:
    """Whoever passed did so in the last attempt, since nobody is tested again after it."""
    found = onboarding.qualified(protocol, one)
    return found is not None and found.passed and graded.round == max(each.round for each in found.attempts)


def _when(graded: Attempt | None, given: Sequence[Annotation]) -> datetime | None:
    return graded.when if graded else max((each.submitted for each in given if each.submitted), default=None)


def _exercise(item: onboarding.Item, own: Annotation, protocol: Protocol) -> schema.ExerciseResult:
    graded = _graded(item, own)
    choice = item.given if isinstance(item.given, Choice) else None
    label = protocol.named(item.given.label) if isinstance(item.given, Exercise) and item.given.label else None
    part = (item.part.title or item.part.name) if item.part else ""
    return schema.ExerciseResult(
        document=own.document,
        title=label.shown if label else f"{part} {item.number}".strip(),
        points=round(graded.points, 6),
        of=graded.of,
        found=len(graded.found),
        missed=len(graded.missed),
        extra=len(graded.extra),
        chosen=str(own.answers.get("answer", "–")) if choice else None,
        right=str(choice.answer) if choice else None,
        seconds=own.active_seconds,
    )


def _graded(item: onboarding.Item, own: Annotation) -> Graded:
    if isinstance(item.given, Choice):
        return graded_choice(item.given, own.answers.get("answer"), item.part.points if item.part else 0)
    return graded_exercise(item.given, own.marks, item.part)


# --- what one might set aside -------------------------------------------------------------------------------------


@router.get("/screen")
def suggestions(snapshots: Snapshots, _: Viewer) -> tuple[schema.Suggested, ...]:
    """Work that one might not want to count, with reasons; excluding is done elsewhere, by a person."""

    def page(pages: StudyPages) -> tuple[schema.Suggested, ...]:
        return tuple(
            schema.Suggested(name=pages.snapshot.names[each.annotator], **dataclasses.asdict(each))
            for each in pages.suggestions
        )

    return snapshots.ask(page)


@router.put("/annotation/kept")
async def keep(snapshots: Snapshots, session: Editor, id: Id, decided: schema.Keep) -> None:
    """Keep an annotation in spite of what some rules say; nobody is asked about them again."""
    await snapshots.store.change(researcher_actions.keep_annotation, session.who, id, decided.rules)
    snapshots.forget()


# --- money --------------------------------------------------------------------------------------------------------


@router.put("/annotator/bonus")
async def set_bonus(snapshots: Snapshots, session: Editor, id: Id, bonus: schema.BonusRequest) -> None:
    """Give an annotator a bonus, or take it away with an amount of 0."""
    await snapshots.store.change(researcher_actions.set_bonus, session.who, id, bonus.amount, bonus.reason)
    snapshots.forget()


@router.get("/pay", response_class=Response)
def pay(snapshots: Snapshots, _: Editor, form: Annotated[Form, Query()] = "pay") -> Response:
    """Who is to be paid what, with worker ids: all of it, or bonuses as a platform takes them."""
    with (
        snapshots.store.database.reading() as transaction
    ):  # not what is remembered, should ids have been forgotten since
        came = recruits.arrivals(snapshots.store, transaction)
    people = snapshots.ask(lambda pages: pay_rules.earned(pages.snapshot.study, came, pages.snapshot.protocol))
    name = pay_rules.FORMS[form]
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return Response(pay_rules.pay_file(form, people), media_type="text/csv; charset=utf-8", headers=headers)
