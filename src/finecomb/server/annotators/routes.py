"""API routes of annotators: progress, next step, and one idempotent PUT per saved entry."""

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
from finecomb.collection.onboarding import Step
from finecomb.collection.task_storage import EntryEdit, TaskInfo
from finecomb.core.records import Annotator, Record
from finecomb.server.annotators import entry_checks, onboarding_view, platform_arrivals, task_view
from finecomb.server.annotators.schema import (
    AnswersChange,
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
    SuggestionChange,
    Task,
    TaskSummary,
    UnitChange,
)
from finecomb.server.annotators.task_cache import TaskCache
from finecomb.server.annotators.task_view import TaskText
from finecomb.server.auth import AnnotatorSession, get_auth
from finecomb.server.error_responses import ProblemError, validation_problem

router = APIRouter(prefix="/api")
TaskId = Annotated[str, Path(max_length=64)]
_MAX_ID_LENGTH = 200
EntryId = Annotated[str, Path(max_length=_MAX_ID_LENGTH)]


@dataclass(frozen=True, slots=True)
class OwnedTask:
    """Task of the signed-in annotator, with everything needed to show it or to validate a change."""

    cache: TaskCache
    id: str
    facts: TaskInfo
    changed: int
    """Study change count when the request was authenticated."""

    @property
    def store(self) -> Store:
        """Store of the study to which the task belongs."""
        return self.cache.store

    def build_view(self) -> Task:
        """Build the task, with its entries, for the browser."""
        state = self.store.read(task_storage.read_task_state, self.id)
        cache, facts = self.cache, self.facts
        item = cache.get_practice_item(facts)
        exercise = onboarding_view.build_practice(item, cache.get_protocol(facts)) if item else None
        # A submitted exercise shows its solution and can no longer be changed.
        is_over = item is not None and state.status == "submitted"
        text = cache.get_task_text(facts) if is_over else self.visible_text()
        return task_view.build_task(
            self.id, facts, state, text, cache.get_offered_mark_names(facts), exercise, cache.get_judged_work(facts)
        )

    def visible_text(self) -> TaskText:
        """Return the text up to the part that the annotator has reached."""
        return self.cache.get_visible_text(self.id, self.facts)


async def require_own_task(request: Request, task: TaskId, session: AnnotatorSession) -> OwnedTask:
    """Return a task of the signed-in annotator. Tasks of other annotators are reported as not found.

    The function is asynchronous, so that it does not occupy a thread.
    """
    cache: TaskCache = request.app.state.task_cache
    facts = cache.get_task_info(task)
    if facts is None or facts.annotator != session.who:
        raise ProblemError("not-found", "This text is not among your tasks.")
    return OwnedTask(cache, task, facts, cache.store.head.changed)


OwnTask = Annotated[OwnedTask, Depends(require_own_task)]


@router.get("/me")
def me(request: Request, session: AnnotatorSession) -> Me:
    """Return the signed-in annotator and their progress."""
    auth, store = get_auth(request), get_auth(request).store
    head = store.head
    with store.database.read_transaction() as transaction:
        whereabouts = next_step_storage.read_annotator_progress(store, transaction, session.who)
        code = arrivals_storage.read_browser_transfer_code(store, transaction, session.who)
    onboarded, assigned = whereabouts.onboarding, whereabouts.assignment
    sections = onboarding.progress_bar_sections(
        head.protocol, head.settings, onboarded.annotator, onboarded.finished_items, whereabouts.is_over
    )
    is_done = onboarded.step == "work" and (whereabouts.is_over or whereabouts.is_batch_over)
    is_cut_short = whereabouts.has_participated and (head.state == "closed" or whereabouts.has_no_work_left)
    ending = None
    if onboarded.step == "screened-out":
        ending = platform_arrivals.build_ending(auth, session.who, "screened-out")
    elif is_done or is_cut_short:
        more = whereabouts.is_batch_over and assigned.ahead > 0
        ending = platform_arrivals.build_ending(auth, session.who, "done", more)
    return Me(
        annotator=session.who,
        title=head.settings.title or head.protocol.title,
        state=head.state,
        guide=task_view.build_guide(head.protocol),
        tasks=tuple(TaskSummary(id=task.id, number=task.number, status=task.status) for task in assigned.given),
        of=len(assigned.given) + assigned.ahead,
        way=tuple(ProgressSection(phase=section.phase, state=section.state) for section in sections),
        ending=ending,
        code=code,
        csrf=auth.csrf_token(session),
    )


@router.post("/next")
async def next_step(request: Request, session: AnnotatorSession) -> NextResponse:
    """Return the next page or task, or the reason for having none."""
    store = get_auth(request).store
    following = await store.run_job(next_step_storage.assign_next_step, session.who)
    if following.step and following.annotator:
        return NextResponse(page=await run_in_threadpool(_step_page, store, following.annotator, following.step))
    if not following.task:
        return NextResponse(why=following.why)
    task = await require_own_task(request, following.task, session)
    return NextResponse(task=await run_in_threadpool(task.build_view))


def _step_page(store: Store, annotator: Annotator, step: Step) -> Page:
    protocol, result = store.head.protocol, None
    if step.kind == "result":
        attempt = store.read(onboarding_storage.read_attempt_annotations, annotator.id, protocol, step.round)
        result = onboarding_view.build_qualification_result(
            protocol, grading.grade_attempt(protocol, attempt), attempt, step.round
        )
    return onboarding_view.build_step_page(step, protocol, store.head.settings, annotator, result)


StepId = Annotated[str, Path(max_length=64)]


@router.put("/steps/{step}")
async def complete_step(
    request: Request, session: AnnotatorSession, step: StepId, step_answers: StepCompletion
) -> SaveResponse:
    """Complete an onboarding page."""
    store = get_auth(request).store
    _require_open_study(store)
    outcome = await store.run_job(
        onboarding_storage.complete_step, session.who, step, step_answers.answers, step_answers.active
    )
    if isinstance(outcome, RejectedChange):
        assert outcome.code != "overtaken"
        raise ProblemError(
            outcome.code, outcome.say or _REJECTION_MESSAGE_BY_CODE.get(outcome.code, ""), missing=outcome.missing
        )
    return SaveResponse(change=step_answers.change, version=outcome)


@router.put("/steps/{step}/guess")
async def submit_guess(request: Request, session: AnnotatorSession, step: StepId, guess: Guess) -> Page:
    """Submit a guess in a practice round, and return the page with the solution."""
    store = get_auth(request).store
    _require_open_study(store)
    outcome = await store.run_job(onboarding_storage.record_guess, session.who, step, guess.guess, guess.active)
    if isinstance(outcome, RejectedChange):
        assert outcome.code != "overtaken"
        raise ProblemError(outcome.code, outcome.say or _REJECTION_MESSAGE_BY_CODE.get(outcome.code, ""))
    return await run_in_threadpool(_step_page, store, *outcome)


@router.get("/tasks/{task}")
def get_task(task: OwnTask) -> Task:
    """Return a task with its entries."""
    return task.build_view()


@router.get("/tasks/{task}/feedback")
def feedback(task: OwnTask) -> Feedback:
    """Return the feedback on an exercise with its solution; in the qualification, only after grading."""
    item, protocol = task.cache.get_practice_item(task.facts), task.cache.get_protocol(task.facts)
    if item is None:
        raise ProblemError("not-allowed", "This text has no solution.")
    (done,) = task.store.read_annotations(tables.annotation.c.id == task.id)
    if item.phase == "training" and done.status == "draft" and not protocol.work.verify:
        raise ProblemError("not-allowed", "The solution is shown after you submit the exercise.")
    if item.phase == "qualification":
        annotator = task.store.read(annotator_storage.get_annotator, task.facts.annotator)
        result = onboarding.find_qualification_record(protocol, annotator)
        if result is None or all(attempt.round != item.round for attempt in result.attempts):
            raise ProblemError("not-allowed", "The solutions are shown after you complete the test.")
    return onboarding_view.build_feedback(item, done, protocol)


@router.put("/tasks/{task}/marks/{id}", response_model=SaveResponse)
async def save_mark(task: OwnTask, id: EntryId, change: MarkChange) -> Response:
    """Create, change or delete a mark."""
    text, protocol, names = (
        task.visible_text(),
        task.cache.get_effective_protocol(task.facts),
        task.cache.get_offered_mark_names(task.facts),
    )
    body = (
        None
        if change.body is None
        else entry_checks.validated_mark_json(id, change.body, text, protocol, names, task.facts.copies)
    )
    return await _save_entry(task, "mark", id, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/units/{id}", response_model=SaveResponse)
async def save_unit(task: OwnTask, id: EntryId, change: UnitChange) -> Response:
    """Judge a part of the text."""
    text, protocol = task.visible_text(), task.cache.get_effective_protocol(task.facts)
    wall = task_storage.seconds_since_task_opened(task.store, task.facts)
    body = None if change.body is None else entry_checks.validated_unit_json(id, change.body, text, protocol, wall)
    return await _save_entry(task, "unit", id, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/answers", response_model=SaveResponse)
async def save_answers(task: OwnTask, change: AnswersChange) -> Response:
    """Answer the questions about the whole text."""
    text, protocol = task.cache.get_task_text(task.facts), task.cache.get_effective_protocol(task.facts)
    body = None if change.body is None else entry_checks.validated_answers_json(change.body, text, protocol)
    return await _save_entry(task, "answers", rows.TEXT_ENTRY_ID, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/decisions/{id}", response_model=SaveResponse)
async def save_decision(task: OwnTask, id: EntryId, change: SuggestionChange) -> Response:
    """Accept, edit or reject an offered mark."""
    marks = task.cache.get_offered_mark_names(task.facts).marks
    if id not in marks:
        raise ProblemError("refused", "This decision was not accepted: the suggestion does not exist.")
    body = None if change.body is None else change.body.to_json()
    return await _save_entry(task, "decision", marks[id].id, change.change, change.base, body, change.active)


@router.put("/tasks/{task}/finish", response_model=SaveResponse)
async def finish_task(task: OwnTask, ending: FinishRequest) -> Response:
    """Submit a task."""
    _require_open_study(task.store)
    text, protocol = task.cache.get_task_text(task.facts), task.cache.get_effective_protocol(task.facts)
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
    """Reopen a submitted task."""
    _require_open_study(task.store)
    outcome = await task.store.run_job(task_storage.reopen_task, task.id, task.facts, ending.change, ending.active)
    return _save_response(task, ending.change, outcome)


class StudyChangedDuringRequestError(Exception):
    """Study change that occurred between the authentication of a request and its save."""


async def _save_entry(
    task: OwnedTask, kind: EntryKind, id: str, change: str, base: int, body: str | None, active: float
) -> Response:
    _require_open_study(task.store)
    outcome = await task.store.run_job(
        task_storage.save_entry_edit, task.id, task.facts, EntryEdit(change, kind, id, base, body, active, task.changed)
    )
    if isinstance(outcome, RejectedChange) and outcome.code == "overtaken":
        raise StudyChangedDuringRequestError
    return _save_response(task, change, outcome)


def _require_open_study(store: Store) -> None:
    state = store.head.state
    if state == "paused" or state == "closed":
        raise ProblemError(state)


_REJECTION_MESSAGE_BY_CODE = {
    "not-allowed": "Your participation in this study has ended. Your work is saved.",
    "refused": "This mark was not accepted because its ID is in use. Mark the words again.",
}


def _save_response(task: OwnedTask, change: str, outcome: int | RejectedChange) -> Response:
    if isinstance(outcome, RejectedChange):
        names, pair = task.cache.get_offered_mark_names(task.facts), task.cache.get_task_text(task.facts).pair
        stored = task_view.build_browser_entry(outcome.stored, names, pair) if outcome.stored else None
        assert outcome.code != "overtaken"
        raise ProblemError(
            outcome.code,
            outcome.say or _REJECTION_MESSAGE_BY_CODE.get(outcome.code, ""),
            stored=stored,
            missing=outcome.missing,
        )
    return Response(SaveResponse(change=change, version=outcome).model_dump_json(), media_type="application/json")


# --- fast routes -------------------------------------------------------------------------------------------------


def fast_save_routes() -> list[Route]:
    """Return routes for saves that bypass FastAPI, because its dependencies take most of the time of a save.

    The routes above define and document the API. The faster routes take precedence over them and call the
    same functions.
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
                session = await get_auth(request).require_session(request, "annotator", current=False)
                task = await require_own_task(request, request.path_params["task"], session)
                try:
                    change = model.model_validate_json(await request.body())
                except ValidationError as error:
                    raise validation_problem("This", error) from None
                id = request.path_params.get("id")
                if id is None:
                    return await save(task, change)
                if len(id) > _MAX_ID_LENGTH:
                    raise ProblemError(
                        "refused",
                        f"This change was not saved because its ID has more than {_MAX_ID_LENGTH} characters. "
                        "Reload the page and try again.",
                    )
                return await save(task, id, change)
            except StudyChangedDuringRequestError:
                continue  # authenticate again, because access or the study's status may have changed

    return handle
