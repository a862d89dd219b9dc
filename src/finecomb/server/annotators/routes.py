"""The annotator's routes: who am I, what next, and one idempotent PUT for everything done in a task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from starlette.routing import Route

from finecomb.core.records import Record
from finecomb.people import onboarding
from finecomb.people.onboarding import Step
from finecomb.server.annotators import entry_checks, practice, recruitment, task_view
from finecomb.server.annotators.schema import (
    AnswersChange,
    Brief,
    Ending,
    Feedback,
    Finish,
    MarkChange,
    Me,
    NextResponse,
    Page,
    ProgressSection,
    Saved,
    StepDone,
    SuggestionBody,
    SuggestionChange,
    Task,
    UnitChange,
)
from finecomb.server.annotators.task_cache import TaskCache
from finecomb.server.auth import AnnotatorSession, Gate, gate
from finecomb.server.problems import ProblemError, refused
from finecomb.store import assignment, onboarding_jobs, researcher_actions, rows, tables, tasks
from finecomb.store.assignment import AssignmentState
from finecomb.store.onboarding_jobs import Position
from finecomb.store.rows import Declined, Kind
from finecomb.store.store import Store
from finecomb.store.tasks import Edit, Facts

router = APIRouter(prefix="/api")
TaskId = Annotated[str, Path(max_length=64)]
_LONGEST = 200
EntryId = Annotated[str, Path(max_length=_LONGEST)]


@dataclass(frozen=True, slots=True)
class OwnedTask:
    """A task of whoever asks, with all that is needed to read it or to check a save."""

    desk: TaskCache
    id: str
    facts: Facts

    @property
    def store(self) -> Store:
        """Where it is kept."""
        return self.desk.store

    def wire(self) -> Task:
        """The task with what was done so far."""
        with self.store.database.reading() as transaction:
            state = tasks.task_state(self.store, transaction, self.id)
        item, desk = self.desk.item(self.facts), self.desk
        exercise = practice.practice(item, desk.protocol(self.facts)) if item else None
        about = desk.about(self.facts)
        return task_view.task(
            self.id, self.facts, state, desk.shown(self.facts), desk.names(self.facts), exercise, about
        )


async def own_task(request: Request, task: TaskId, session: AnnotatorSession) -> OwnedTask:
    """Somebody else's task is as absent as one that does not exist. Asynchronous, so that no thread is needed."""
    found: TaskCache = request.app.state.desk
    facts = found.facts(task) if "\0" not in task else None  # which PostgreSQL would refuse
    if facts is None or facts.annotator != session.who:
        raise ProblemError("not-found", "There is no such text among yours.")
    return OwnedTask(found, task, facts)


OwnTask = Annotated[OwnedTask, Depends(own_task)]


@router.get("/me")
def me(request: Request, session: AnnotatorSession) -> Me:
    """Who is signed in and how far they are."""
    passing, store = gate(request), gate(request).store
    head = store.head
    with store.database.reading() as transaction:
        now = assignment.standing(store, transaction, session.who)
        at = onboarding_jobs.position(store, transaction, session.who)
        over = assignment.is_over(store, transaction, session.who, now)
    legs = onboarding.legs(head.protocol, head.settings, at.annotator, at.finished, over)
    return Me(
        annotator=session.who,
        title=head.settings.title or head.protocol.title,
        state=head.state,
        guide=task_view.guide(head.protocol),
        tasks=tuple(Brief(id=task.id, number=task.number, status=task.status) for task in now.given),
        of=len(now.given) + now.ahead,
        way=tuple(ProgressSection(phase=leg.phase, state=leg.state) for leg in legs),
        ending=_ending(passing, now, at, over),
        csrf=passing.csrf(session),
    )


def _ending(passing: Gate, now: AssignmentState, at: Position, over: bool) -> Ending | None:
    """Also for who took part and cannot go on: the study was closed, or others took the last texts."""
    if at.at == "screened-out":
        return recruitment.ending(passing, at.annotator.id, "screened-out")
    took_part = bool(at.finished) or any(task.status == "submitted" for task in now.given)
    none_left = at.at == "work" and not now.given and not now.later
    cut_short = took_part and (passing.store.head.state == "closed" or none_left)
    return recruitment.ending(passing, at.annotator.id, "done") if (at.at == "work" and over) or cut_short else None


@router.post("/next")
async def next_stop(request: Request, session: AnnotatorSession) -> NextResponse:
    """What comes now on one's way: a page, an open task, a new one, or why there is none."""
    store = gate(request).store
    found = await store.do(onboarding_jobs.next_stop, session.who)
    if found.step:
        return NextResponse(page=await run_in_threadpool(_page, store, session.who, found.step))
    if not found.task:
        return NextResponse(why=found.why)
    own = await own_task(request, found.task, session)
    return NextResponse(task=await run_in_threadpool(own.wire))


def _page(store: Store, annotator: str, step: Step) -> Page:
    protocol, result = store.head.protocol, None
    with store.database.reading() as transaction:
        at = onboarding_jobs.position(store, transaction, annotator)
        if step.kind == "result":
            done = onboarding_jobs.attempt(store, transaction, annotator, protocol, step.round)
            result = practice.result(protocol, onboarding_jobs.graded(protocol, done), done, step.round)
    return practice.page(step, protocol, at.annotator, result)


StepId = Annotated[str, Path(max_length=64)]


@router.put("/steps/{step}")
async def step_done(request: Request, session: AnnotatorSession, step: StepId, said: StepDone) -> Saved:
    """A page was read or answered."""
    store = gate(request).store
    _takes_work(store)
    found = await store.do(onboarding_jobs.step_done, session.who, step, said.answers, said.active)
    if isinstance(found, Declined):
        raise ProblemError(found.code, found.say or _SAY.get(found.code, ""), missing=found.missing)
    return Saved(change=said.change, version=found)


@router.get("/tasks/{task}")
def one_task(own: OwnTask) -> Task:
    """A text of one's own with what was done in it."""
    return own.wire()


@router.get("/tasks/{task}/feedback")
def feedback(own: OwnTask) -> Feedback:
    """How an exercise went, with its solution: after training's exercises each, after a test's when all is graded."""
    item, protocol = own.desk.item(own.facts), own.desk.protocol(own.facts)
    if item is None:
        raise ProblemError("not-allowed", "There is no solution for this text.")
    (done,) = own.store.annotations(tables.annotation.c.id == own.id)
    if item.phase == "training" and done.status == "draft" and not protocol.work.verify:
        raise ProblemError("not-allowed", "The answer is shown when you are done with the exercise.")
    if item.phase == "qualification" and not _graded(own, item.round):
        raise ProblemError("not-allowed", "The answers are shown when the whole test is done.")
    return practice.feedback(item, done, protocol)


def _graded(own: OwnedTask, round: int) -> bool:
    with own.store.database.reading() as transaction:
        annotator = researcher_actions.one_annotator(own.store, transaction, own.facts.annotator)
    found = onboarding.qualified(own.desk.protocol(own.facts), annotator)
    return found is not None and any(each.round == round for each in found.attempts)


@router.put("/tasks/{task}/marks/{id}", response_model=Saved)
async def save_mark(own: OwnTask, id: EntryId, change: MarkChange) -> Response:
    """Make, change or delete a mark."""
    text, protocol, names = own.desk.shown(own.facts), own.desk.asked(own.facts), own.desk.names(own.facts)
    body = None if change.body is None else entry_checks.mark(id, change.body, text, protocol, names, own.facts.copies)
    return await _save(own, "mark", id, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/units/{id}", response_model=Saved)
async def save_unit(own: OwnTask, id: EntryId, change: UnitChange) -> Response:
    """Judge a part."""
    text, protocol = own.desk.shown(own.facts), own.desk.asked(own.facts)
    wall = own.store.clock() - own.facts.started
    body = None if change.body is None else entry_checks.unit(id, change.body, text, protocol, wall)
    return await _save(own, "unit", id, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/answers", response_model=Saved)
async def save_answers(own: OwnTask, change: AnswersChange) -> Response:
    """Answer the questions about the whole text."""
    text, protocol = own.desk.shown(own.facts), own.desk.asked(own.facts)
    body = None if change.body is None else entry_checks.answers(change.body, text, protocol)
    return await _save(own, "answers", rows.TEXT, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/decisions/{id}", response_model=Saved)
async def save_decision(own: OwnTask, id: EntryId, change: SuggestionChange) -> Response:
    """Accept, edit or reject an offered mark."""
    names = own.desk.names(own.facts)
    checked = entry_checks.decision(id, change.body or SuggestionBody(decision="rejected"), names)
    body = None if change.body is None else checked[1]
    return await _save(own, "decision", checked[0], change.change, change.base, body, change.active)


@router.put("/tasks/{task}/finish", response_model=Saved)
async def finish(own: OwnTask, ending: Finish) -> Response:
    """Hand a text in."""
    _takes_work(own.store)
    text, protocol = own.desk.shown(own.facts), own.desk.asked(own.facts)
    found = await own.store.do(
        tasks.finish,
        own.id,
        own.facts,
        ending.change,
        ending.active,
        lambda annotation: entry_checks.missing(annotation, text, protocol),
    )
    return _answer(own, ending.change, found)


@router.put("/tasks/{task}/reopen", response_model=Saved)
async def reopen(own: OwnTask, ending: Finish) -> Response:
    """Take a text back that was handed in."""
    _takes_work(own.store)
    found = await own.store.do(tasks.reopen, own.id, own.facts, ending.change, ending.active)
    return _answer(own, ending.change, found)


async def _save(
    own: OwnedTask, kind: Kind, id: str, change: str, base: int, body: str | None, active: float
) -> Response:
    _takes_work(own.store)
    if "\0" in id:
        raise ProblemError("refused", "This was not accepted: its id holds a NUL character.")
    found = await own.store.do(tasks.save, own.id, own.facts, Edit(change, kind, id, base, body, active))
    return _answer(own, change, found)


def _takes_work(store: Store) -> None:
    state = store.head.state
    if state == "paused" or state == "closed":
        raise ProblemError(state)


_SAY = {
    "not-allowed": "Your part in this study has ended. What you did is kept.",
    "refused": "This mark was not accepted: its id is in use. Mark the words again.",
}


def _answer(own: OwnedTask, change: str, found: int | Declined) -> Response:
    if isinstance(found, Declined):
        stored = task_view.entry(found.stored, own.desk.names(own.facts)) if found.stored else None
        raise ProblemError(found.code, found.say or _SAY.get(found.code, ""), stored=stored, missing=found.missing)
    return Response(Saved(change=change, version=found).model_dump_json(), media_type="application/json")


# --- the short way -----------------------------------------------------------------------------------------------


def shortcuts() -> list[Route]:
    """The saves once more, without FastAPI between: its dependencies take most of the time of a save.

    The routes above say what is asked for and are what the description shows; these come before them and call them.
    """
    saves: list[tuple[str, type[Record], Callable[..., Awaitable[Response]]]] = [
        ("/marks/{id}", MarkChange, save_mark),
        ("/units/{id}", UnitChange, save_unit),
        ("/answers", AnswersChange, save_answers),
    ]
    return [Route(f"/api/tasks/{{task}}{path}", _short(model, save), methods=["PUT"]) for path, model, save in saves]


def _short(model: type[Record], save: Callable[..., Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        session = await gate(request).session(request, "annotator")
        own = await own_task(request, request.path_params["task"], session)
        try:
            change = model.model_validate_json(await request.body())
        except ValidationError as error:
            raise refused("This", error) from None
        id = request.path_params.get("id")
        if id is None:
            return await save(own, change)
        if len(id) > _LONGEST:
            raise ProblemError("refused", f"This was not accepted: its id has more than {_LONGEST} characters.")
        return await save(own, id, change)

    return handle
