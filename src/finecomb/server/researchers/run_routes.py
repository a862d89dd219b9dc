"""API routes for language model runs: list, start, stop, and handle failures."""

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
    """Objects shared by the routes for runs."""

    def __init__(self, snapshots: SnapshotCache, manager: RunManager, journals: JournalCache) -> None:
        self.snapshots, self.manager, self.journals = snapshots, manager, journals

    def current_study(self) -> Study:
        """Return the study of the current snapshot."""
        return self.snapshots.compute_page(lambda pages: pages.snapshot.study)


def _run_context(request: Request, snapshots: Snapshots) -> RunContext:
    """Return the run context, which is created on the first request of a researcher."""
    state = request.app.state
    if not hasattr(state, "run_desk"):
        from finecomb.annotators.llm.endpoint import require_call_packages
        from finecomb.server.researchers.model_runs import RunManager, default_runs_folder
        from finecomb.server.researchers.run_view import JournalCache

        try:
            require_call_packages()
        except FinecombError as error:
            raise ProblemError("refused", f"On the server, {error}") from None
        runs = state.runs or default_runs_folder(snapshots.store)
        manager = RunManager(snapshots.store, runs, state.key_envs, snapshots.invalidate)
        state.run_desk = RunContext(snapshots, manager, JournalCache())
    desk: RunContext = state.run_desk
    return desk


RunDependency = Annotated[RunContext, Depends(_run_context)]


@router.get("/runs")
def list_runs(desk: RunDependency, _: Viewer) -> RunList:
    """List all runs with state, cost and failures, and the available models."""
    from finecomb.server.researchers.run_view import build_run_list

    return build_run_list(desk.manager, desk.journals, desk.current_study())


@router.get("/run")
def get_run(desk: RunDependency, _: Viewer, id: Id) -> RunPage:
    """Return one run with its failures, their raw replies, and quotes that do not match their text exactly."""
    from finecomb.server.researchers.run_view import build_run_page

    return build_run_page(desk.manager, desk.journals, desk.current_study(), id)


@router.post("/runs/preview")
def preview_run(desk: RunDependency, _: Editor, new: NewRun) -> RunPreview:
    """Return the exact request for one text and the cost of the whole run, without sending anything."""
    from finecomb.server.researchers.run_view import build_run_preview

    return build_run_preview(desk.manager, desk.current_study(), new)


@router.post("/runs")
async def start_run(desk: RunDependency, session: Editor, new: NewRun) -> str:
    """Start or resume a run. Existing replies are reused."""
    settings = desk.manager.store.head.settings.models.get(new.model)
    if not (settings is None or settings.price is None):
        if new.budget is None:
            raise FinecombError("a budget in US dollars is required; the run stops when it is reached")
        if settings.budget is not None and new.budget > settings.budget and (session.role or "") != "owner":
            raise ProblemError("not-allowed", f"Only owners of the study can spend more than ${settings.budget:.2f}.")
    id = await run_in_threadpool(lambda: desk.manager.start_run(desk.current_study(), new))
    about = new.model_dump(mode="json", exclude_defaults=True, exclude={"template"})
    await desk.manager.store.run_job(
        audit_log_storage.record_standalone_action, session.who, "started run", {"run": id, **about}
    )
    return id


@router.delete("/run")
async def stop_run(desk: RunDependency, session: Editor, id: Id) -> None:
    """Stop a run. Its results are kept, and it can be resumed."""
    desk.manager.stop_run(id)
    await desk.manager.store.run_job(
        audit_log_storage.record_standalone_action, session.who, "stopped run", {"run": id}
    )


@router.post("/run/text")
async def retry_text(desk: RunDependency, session: Editor, id: Id, text: RetryRequest) -> None:
    """Send one text again, optionally with a longer reply."""
    await run_in_threadpool(lambda: desk.manager.retry_text(desk.current_study(), id, text.document, text.max_tokens))
    about = {"run": id, **text.model_dump(mode="json", exclude_defaults=True)}
    await desk.manager.store.run_job(audit_log_storage.record_standalone_action, session.who, "asked again", about)


@router.put("/run/quote")
async def decide_quote(desk: RunDependency, session: Editor, decision: PlacementDecision) -> None:
    """Accept or reject the position of a quote that does not match the text exactly."""
    from finecomb.annotators.llm.reply_parser import record_placement_decision
    from finecomb.collection.machine_work_storage import upsert_machine_work

    study = await run_in_threadpool(desk.current_study)
    work = [annotation for annotation in study.iter_annotations() if annotation.id == decision.annotation]
    if not work:
        raise ProblemError("not-found", f"Unknown annotation {decision.annotation!r}.")
    changed = record_placement_decision(work[0], decision.mark, decision.accept, session.who)
    await desk.snapshots.change_study(upsert_machine_work, (), (changed,))
    about = decision.model_dump(mode="json")
    await desk.manager.store.run_job(
        audit_log_storage.record_standalone_action, session.who, "decided about a quote", about
    )


@router.put("/runs/model")
async def add_model(desk: RunDependency, session: Owner, new: NewModel) -> None:
    """Add a model to the study. Only the name of the environment variable with its key is stored."""
    from finecomb.annotators.llm.endpoint import parse_host
    from finecomb.annotators.llm.endpoint_consent import confirm_endpoint

    parse_host(new.base_url)
    settings = desk.manager.store.head.settings
    model = ModelSettings.model_validate(new.model_dump(exclude={"name"}))
    models = {**settings.models, new.name: model}
    confirm_endpoint(model, str(desk.manager.store.database.place))
    changed = settings.model_copy(update={"models": models})
    await desk.snapshots.change_study(researcher_actions_storage.update_settings, session.who, changed)
