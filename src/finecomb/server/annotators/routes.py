"""The annotator's routes: who am I, what next, and one idempotent PUT for everything done in a task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from starlette.routing import Route

from finecomb.collection import (
    annotator_storage,
    arrivals_storage,
    grading,
    next_step_storage,
    onboarding,
    onboarding_storage,
    task_storage,
)
from finecomb.collection.database import rows, tables
from finecomb.collection.database.rows import EntryKind, RejectedChange
from finecomb.collection.database.store import Store
from finecomb.collection.next_step_storage import AnnotatorProgress
from finecomb.collection.onboarding import Step
from finecomb.collection.task_storage import EntryEdit, TaskInfo
from finecomb.core.records import Annotator, Record
from finecomb.server.annotators import entry_checks, onboarding_view, platform_arrivals, task_view
from finecomb.server.annotators.schema import (
    AnswersChange,
    Ending,
    Feedback,
    FinishRequest,
    Guess,
    MarkChange,
    Me,
    NextResponse,
    Page,
    ProgressSection,
    SaveResponse,
    StepCompletion,
    SuggestionBody,
    SuggestionChange,
    Task,
    TaskSummary,
    UnitChange,
)
from finecomb.server.annotators.task_cache import TaskCache
from finecomb.server.annotators.task_view import TaskText
from finecomb.server.auth import AnnotatorSession, Auth, auth_of
from finecomb.server.error_responses import ProblemError, validation_problem

router = APIRouter(prefix="/api")
TaskId = Annotated[str, Path(max_length=64)]
_MAX_ID_LENGTH = 200
EntryId = Annotated[str, Path(max_length=_MAX_ID_LENGTH)]


@dataclass(frozen=True, slots=True)
class OwnedTask:
    """A task of whoever asks, with all that is needed to read it or to check a save."""

    cache: TaskCache
    id: str
    facts: TaskInfo
    changed: int
    """The count of the study's changes when its owner was found to be signed in."""

    @property
    def store(self) -> Store:
        """Where it is kept."""
        return self.cache.store

    def view(self) -> Task:
        """The task with what was done so far, as the browser gets it."""
        with self.store.database.read_transaction() as transaction:
            state = task_storage.read_task_state(self.store, transaction, self.id)
        cache, facts = self.cache, self.facts
        item = cache.practice_item(facts)
        exercise = onboarding_view.build_practice(item, cache.protocol(facts)) if item else None
        is_over = item is not None and state.status == "submitted"  # its solution is shown, and it stays as it is
        text = cache.task_text(facts) if is_over else self.visible_text()
        return task_view.build_task(
            self.id, facts, state, text, cache.offered_names(facts), exercise, cache.judged_work(facts)
        )

    def visible_text(self) -> TaskText:
        """The text as far as it is shown."""
        return self.cache.visible_text(self.id, self.facts)


async def require_own_task(request: Request, task: TaskId, session: AnnotatorSession) -> OwnedTask:
    """Somebody else's task is as absent as one that does not exist. Asynchronous, so that no thread is needed."""
    cache: TaskCache = request.app.state.task_cache
    facts = cache.task_info(task)
    if facts is None or facts.annotator != session.who:
        raise ProblemError("not-found", "There is no such text among yours.")
    return OwnedTask(cache, task, facts, cache.store.head.changed)


OwnTask = Annotated[OwnedTask, Depends(require_own_task)]


@router.get("/me")
def me(request: Request, session: AnnotatorSession) -> Me:
    """Who is signed in and how far they are."""
    auth, store = auth_of(request), auth_of(request).store
    head = store.head
    with store.database.read_transaction() as transaction:
        whereabouts = next_step_storage.read_annotator_progress(store, transaction, session.who)
        code = arrivals_storage.browser_transfer_code(store, transaction, session.who)
    onboarded, assigned = whereabouts.onboarding, whereabouts.assignment
    sections = onboarding.progress_bar_sections(
        head.protocol, head.settings, onboarded.annotator, onboarded.finished_items, whereabouts.is_over
    )
    return Me(
        annotator=session.who,
        title=head.settings.title or head.protocol.title,
        state=head.state,
        guide=task_view.build_guide(head.protocol),
        tasks=tuple(TaskSummary(id=task.id, number=task.number, status=task.status) for task in assigned.given),
        of=len(assigned.given) + assigned.ahead,
        way=tuple(ProgressSection(phase=section.phase, state=section.state) for section in sections),
        ending=_annotator_ending(auth, whereabouts),
        code=code,
        csrf=auth.csrf_token(session),
    )


def _annotator_ending(auth: Auth, whereabouts: AnnotatorProgress) -> Ending | None:
    """The end of somebody's part, also for who took part and cannot go on: the study was closed, or no text is left."""
    annotator, step = whereabouts.onboarding.annotator.id, whereabouts.onboarding.step
    if step == "screened-out":
        return platform_arrivals.build_ending(auth, annotator, "screened-out")
    cut_short = whereabouts.has_participated and (auth.store.head.state == "closed" or whereabouts.has_no_work_left)
    is_done = step == "work" and (whereabouts.is_over or whereabouts.is_batch_over)
    more = whereabouts.is_batch_over and whereabouts.assignment.ahead > 0
    return platform_arrivals.build_ending(auth, annotator, "done", more) if is_done or cut_short else None


@router.post("/next")
async def next_step(request: Request, session: AnnotatorSession) -> NextResponse:
    """What comes now on one's way: a page, an open task, a new one, or why there is none."""
    store = auth_of(request).store
    following = await store.run_job(next_step_storage.next_step, session.who)
    if following.step and following.annotator:
        return NextResponse(page=await run_in_threadpool(_step_page, store, following.annotator, following.step))
    if not following.task:
        return NextResponse(why=following.why)
    task = await require_own_task(request, following.task, session)
    return NextResponse(task=await run_in_threadpool(task.view))


def _step_page(store: Store, annotator: Annotator, step: Step) -> Page:
    protocol, result = store.head.protocol, None
    if step.kind == "result":
        with store.database.read_transaction() as transaction:
            attempt = onboarding_storage.read_attempt_annotations(
                store, transaction, annotator.id, protocol, step.round
            )
        result = onboarding_view.build_qualification_result(
            protocol, grading.attempt_grade(protocol, attempt), attempt, step.round
        )
    return onboarding_view.build_step_page(step, protocol, store.head.settings, annotator, result)


StepId = Annotated[str, Path(max_length=64)]


@router.put("/steps/{step}")
async def complete_step(
    request: Request, session: AnnotatorSession, step: StepId, step_answers: StepCompletion
) -> SaveResponse:
    """A page was read or answered."""
    store = auth_of(request).store
    _require_open_study(store)
    outcome = await store.run_job(
        onboarding_storage.complete_step, session.who, step, step_answers.answers, step_answers.active
    )
    if isinstance(outcome, RejectedChange):
        assert outcome.code != "overtaken"
        raise ProblemError(
            outcome.code, outcome.say or _DECLINED_MESSAGES.get(outcome.code, ""), missing=outcome.missing
        )
    return SaveResponse(change=step_answers.change, version=outcome)


@router.put("/steps/{step}/guess")
async def submit_guess(request: Request, session: AnnotatorSession, step: StepId, guess: Guess) -> Page:
    """A guess in a practice round; the answer comes back."""
    store = auth_of(request).store
    _require_open_study(store)
    outcome = await store.run_job(onboarding_storage.record_guess, session.who, step, guess.guess, guess.active)
    if isinstance(outcome, RejectedChange):
        assert outcome.code != "overtaken"
        raise ProblemError(outcome.code, outcome.say or _DECLINED_MESSAGES.get(outcome.code, ""))
    return await run_in_threadpool(_step_page, store, *outcome)


@router.get("/tasks/{task}")
def get_task(task: OwnTask) -> Task:
    """A text of one's own with what was done in it."""
    return task.view()


@router.get("/tasks/{task}/feedback")
def feedback(task: OwnTask) -> Feedback:
    """How an exercise went, with its solution: after training's exercises each, after a test's when all is graded."""
    item, protocol = task.cache.practice_item(task.facts), task.cache.protocol(task.facts)
    if item is None:
        raise ProblemError("not-allowed", "There is no solution for this text.")
    (done,) = task.store.annotations(tables.annotation.c.id == task.id)
    if item.phase == "training" and done.status == "draft" and not protocol.work.verify:
        raise ProblemError("not-allowed", "The answer is shown when you are done with the exercise.")
    if item.phase == "qualification" and not _is_attempt_graded(task, item.round):
        raise ProblemError("not-allowed", "The answers are shown when the whole test is done.")
    return onboarding_view.build_feedback(item, done, protocol)


def _is_attempt_graded(task: OwnedTask, round: int) -> bool:
    with task.store.database.read_transaction() as transaction:
        annotator = annotator_storage.get_annotator(task.store, transaction, task.facts.annotator)
    result = onboarding.qualification_result(task.cache.protocol(task.facts), annotator)
    return result is not None and any(attempt.round == round for attempt in result.attempts)


@router.put("/tasks/{task}/marks/{id}", response_model=SaveResponse)
async def save_mark(task: OwnTask, id: EntryId, change: MarkChange) -> Response:
    """Make, change or delete a mark."""
    text, protocol, names = (
        task.visible_text(),
        task.cache.effective_protocol(task.facts),
        task.cache.offered_names(task.facts),
    )
    body = (
        None
        if change.body is None
        else entry_checks.validated_mark_json(id, change.body, text, protocol, names, task.facts.copies)
    )
    return await _save_entry(task, "mark", id, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/units/{id}", response_model=SaveResponse)
async def save_unit(task: OwnTask, id: EntryId, change: UnitChange) -> Response:
    """Judge a part."""
    text, protocol = task.visible_text(), task.cache.effective_protocol(task.facts)
    wall = task_storage.seconds_since_task_opened(task.store, task.facts)
    body = None if change.body is None else entry_checks.validated_unit_json(id, change.body, text, protocol, wall)
    return await _save_entry(task, "unit", id, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/answers", response_model=SaveResponse)
async def save_answers(task: OwnTask, change: AnswersChange) -> Response:
    """Answer the questions about the whole text."""
    text, protocol = task.cache.task_text(task.facts), task.cache.effective_protocol(task.facts)
    body = None if change.body is None else entry_checks.validated_answers_json(change.body, text, protocol)
    return await _save_entry(task, "answers", rows.TEXT_ENTRY_ID, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/decisions/{id}", response_model=SaveResponse)
async def save_decision(task: OwnTask, id: EntryId, change: SuggestionChange) -> Response:
    """Accept, edit or reject an offered mark."""
    names = task.cache.offered_names(task.facts)
    checked = entry_checks.validated_decision(id, change.body or SuggestionBody(decision="rejected"), names)
    body = None if change.body is None else checked[1]
    return await _save_entry(task, "decision", checked[0], change.change, change.base, body, change.active)


@router.put("/tasks/{task}/finish", response_model=SaveResponse)
async def finish_task(task: OwnTask, ending: FinishRequest) -> Response:
    """Hand a text in."""
    _require_open_study(task.store)
    text, protocol = task.cache.task_text(task.facts), task.cache.effective_protocol(task.facts)
    outcome = await task.store.run_job(
        task_storage.submit_task,
        task.id,
        task.facts,
        ending.change,
        ending.active,
        lambda annotation: entry_checks.missing_submission_parts(annotation, text, protocol),
    )
    return _save_response(task, ending.change, outcome)


@router.put("/tasks/{task}/reopen", response_model=SaveResponse)
async def reopen_task(task: OwnTask, ending: FinishRequest) -> Response:
    """Take a text back that was handed in."""
    _require_open_study(task.store)
    outcome = await task.store.run_job(task_storage.reopen_task, task.id, task.facts, ending.change, ending.active)
    return _save_response(task, ending.change, outcome)


class StudyChangedDuringRequestError(Exception):
    """Somebody changed the study, perhaps in another process, after it was looked at who sends a request."""


async def _save_entry(
    task: OwnedTask, kind: EntryKind, id: str, change: str, base: int, body: str | None, active: float
) -> Response:
    _require_open_study(task.store)
    outcome = await task.store.run_job(
        task_storage.save_edit, task.id, task.facts, EntryEdit(change, kind, id, base, body, active, task.changed)
    )
    if isinstance(outcome, RejectedChange) and outcome.code == "overtaken":
        raise StudyChangedDuringRequestError
    return _save_response(task, change, outcome)


def _require_open_study(store: Store) -> None:
    state = store.head.state
    if state == "paused" or state == "closed":
        raise ProblemError(state)


_DECLINED_MESSAGES = {
    "not-allowed": "Your part in this study has ended. What you did is kept.",
    "refused": "This mark was not accepted: its id is in use. Mark the words again.",
}


def _save_response(task: OwnedTask, change: str, outcome: int | RejectedChange) -> Response:
    if isinstance(outcome, RejectedChange):
        names, pair = task.cache.offered_names(task.facts), task.cache.task_text(task.facts).pair
        stored = task_view.build_browser_entry(outcome.stored, names, pair) if outcome.stored else None
        assert outcome.code != "overtaken"
        raise ProblemError(
            outcome.code,
            outcome.say or _DECLINED_MESSAGES.get(outcome.code, ""),
            stored=stored,
            missing=outcome.missing,
        )
    return Response(SaveResponse(change=change, version=outcome).model_dump_json(), media_type="application/json")


# --- the short way -----------------------------------------------------------------------------------------------


def fast_save_routes() -> list[Route]:
    """The saves once more, without FastAPI between: its dependencies take most of the time of a save.

    The routes above say what is asked for and are what the description shows; these come before them and call them.
    """
    saves: list[tuple[str, type[Record], Callable[..., Awaitable[Response]]]] = [
        ("/marks/{id}", MarkChange, save_mark),
        ("/units/{id}", UnitChange, save_unit),
        ("/answers", AnswersChange, save_answers),
        ("/decisions/{id}", SuggestionChange, save_decision),
    ]
    return [
        Route(f"/api/tasks/{{task}}{path}", _fast_save_handler(model, save), methods=["PUT"])
        for path, model, save in saves
    ]


def _fast_save_handler(
    model: type[Record], save: Callable[..., Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        while True:
            try:
                return await save_once(request)
            except StudyChangedDuringRequestError:  # look again who it is and whether work is taken
                continue

    async def save_once(request: Request) -> Response:
        session = await auth_of(request).require_session(request, "annotator", current=False)
        task = await require_own_task(request, request.path_params["task"], session)
        try:
            change = model.model_validate_json(await request.body())
        except ValidationError as error:
            raise validation_problem("This", error) from None
        id = request.path_params.get("id")
        if id is None:
            return await save(task, change)
        if len(id) > _MAX_ID_LENGTH:
            raise ProblemError("refused", f"This was not accepted: its id has more than {_MAX_ID_LENGTH} characters.")
        return await save(task, id, change)

    return handle
