"""The researcher's side of the API about runs of language models: see them, start and stop, decide about failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from finecomb.collection import audit_log_storage, researcher_actions_storage
from finecomb.core.errors import FinecombError
from finecomb.core.records import ModelSettings
from finecomb.core.study import Study
from finecomb.server.error_responses import ProblemError
from finecomb.server.researchers.routes import Editor, Id, Owner, Snapshots, Viewer
from finecomb.server.researchers.run_schema import (
    NewModel,
    NewRun,
    PlacementDecision,
    RetryRequest,
    RunList,
    RunPage,
    RunPreview,
)
from finecomb.server.researchers.snapshot_cache import SnapshotCache

if TYPE_CHECKING:
    from finecomb.server.researchers.model_runs import RunManager
    from finecomb.server.researchers.run_view import JournalCache

router = APIRouter(prefix="/api/admin", tags=["researchers"])


class RunContext:
    """Everything that routes about runs need."""

    def __init__(self, snapshots: SnapshotCache, manager: RunManager, journals: JournalCache) -> None:
        self.snapshots, self.manager, self.journals = snapshots, manager, journals

    def current_study(self) -> Study:
        """The study of this moment."""
        return self.snapshots.read(lambda pages: pages.snapshot.study)


def _run_context(request: Request, snapshots: Snapshots) -> RunContext:
    """Made when the first researcher looks."""
    state = request.app.state
    if not hasattr(state, "run_desk"):
        from finecomb.annotators.llm.endpoint import need_call_packages
        from finecomb.server.researchers.model_runs import RunManager, default_runs_folder
        from finecomb.server.researchers.run_view import JournalCache

        try:
            need_call_packages()
        except FinecombError as error:
            raise ProblemError("refused", f"Where the server runs, {error}") from None
        runs = state.runs or default_runs_folder(snapshots.store)
        manager = RunManager(snapshots.store, runs, state.key_envs, snapshots.invalidate)
        state.run_desk = RunContext(snapshots, manager, JournalCache())
    desk: RunContext = state.run_desk
    return desk


RunDependency = Annotated[RunContext, Depends(_run_context)]


@router.get("/runs")
def list_runs(desk: RunDependency, _: Viewer) -> RunList:
    """All runs with state, cost and failures, and the models that can be asked."""
    from finecomb.server.researchers.run_view import build_run_list

    return build_run_list(desk.manager, desk.journals, desk.current_study())


@router.get("/run")
def get_run(desk: RunDependency, _: Viewer, id: Id) -> RunPage:
    """One run: its failures with their raw reply, and quotes that do not stand in their text as given."""
    from finecomb.server.researchers.run_view import build_run_page

    return build_run_page(desk.manager, desk.journals, desk.current_study(), id)


@router.post("/runs/preview")
def preview_run(desk: RunDependency, _: Editor, new: NewRun) -> RunPreview:
    """Exactly what would be sent for one text, and what the whole would cost. Nothing is sent."""
    from finecomb.server.researchers.run_view import build_run_preview

    return build_run_preview(desk.manager, desk.current_study(), new)


@router.post("/runs")
async def start_run(desk: RunDependency, session: Editor, new: NewRun) -> str:
    """Start a run, or go on with one; what it has got already is not asked again."""
    _require_budget_permission(desk, session.role or "", new)
    id = await run_in_threadpool(lambda: desk.manager.start(desk.current_study(), new))
    about = new.model_dump(mode="json", exclude_defaults=True, exclude={"template"})
    await desk.manager.store.run_job(
        audit_log_storage.record_single_action, session.who, "started run", {"run": id, **about}
    )
    return id


def _require_budget_permission(desk: RunContext, role: str, new: NewRun) -> None:
    """A model with a budget is asked for more only by an owner, and one with a price never without a limit."""
    settings = desk.manager.store.head.settings.models.get(new.model)
    if settings is None or settings.price is None:
        return
    if new.budget is None:
        raise FinecombError("say where the run stops: a budget in dollars")
    if settings.budget is not None and new.budget > settings.budget and role != "owner":
        raise ProblemError("not-allowed", f"More than ${settings.budget:.2f} needs an owner of the study.")


@router.delete("/run")
async def stop_run(desk: RunDependency, session: Editor, id: Id) -> None:
    """Stop a run. All it has got is kept, and it can go on later."""
    desk.manager.stop(id)
    await desk.manager.store.run_job(audit_log_storage.record_single_action, session.who, "stopped run", {"run": id})


@router.post("/run/text")
async def retry_text(desk: RunDependency, session: Editor, id: Id, text: RetryRequest) -> None:
    """Ask for one text once more, with a longer reply where that is wanted."""
    await run_in_threadpool(lambda: desk.manager.retry_text(desk.current_study(), id, text.document, text.max_tokens))
    about = {"run": id, **text.model_dump(mode="json", exclude_defaults=True)}
    await desk.manager.store.run_job(audit_log_storage.record_single_action, session.who, "asked again", about)


@router.put("/run/quote")
async def decide_quote(desk: RunDependency, session: Editor, decision: PlacementDecision) -> None:
    """Accept the place of a quote that is not in the text as given, or refuse it."""
    from finecomb.annotators.llm.reply_parser import decide_placement
    from finecomb.collection.machine_work_storage import put_machine_work

    study = await run_in_threadpool(desk.current_study)
    work = [annotation for annotation in study.iter_annotations() if annotation.id == decision.annotation]
    if not work:
        raise ProblemError("not-found", f"No annotation is called {decision.annotation!r}.")
    changed = decide_placement(work[0], decision.mark, decision.accept, session.who)
    await desk.manager.store.change_study(put_machine_work, (), (changed,))
    about = decision.model_dump(mode="json")
    await desk.manager.store.run_job(
        audit_log_storage.record_single_action, session.who, "decided about a quote", about
    )
    desk.snapshots.invalidate()


@router.put("/runs/model")
async def add_model(desk: RunDependency, session: Owner, new: NewModel) -> None:
    """A model that the study may ask; of its key only the name of a variable of the server is kept."""
    from finecomb.annotators.llm.endpoint import parse_host

    parse_host(new.base_url)
    settings = desk.manager.store.head.settings
    fields = new.model_dump(exclude={"name"})
    models = {**settings.models, new.name: ModelSettings.model_validate(fields)}
    changed = settings.model_copy(update={"models": models})
    await desk.manager.store.change_study(researcher_actions_storage.set_settings, session.who, changed)
    desk.snapshots.invalidate()
