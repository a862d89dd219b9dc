"""API routes for calibrating judges against people, and for checking that a calibration is still valid."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from finecomb.api.judges import calibrate
from finecomb.api.monitoring import expiry_states
from finecomb.collection import audit_log_storage
from finecomb.collection.database.location import DATABASE_FILENAME
from finecomb.collection.database.store import Store
from finecomb.core.records import Id as Name
from finecomb.server.error_responses import ProblemError
from finecomb.server.researchers.routes import Editor, Id, Snapshots, Viewer
from finecomb.server.researchers.schema import ResponseRecord
from finecomb.server.researchers.snapshot import MACHINE_KINDS, Snapshot, label_looks
from finecomb.server.schema import LabelLook
from finecomb.statistics.judges.calibration_record import (
    CALIBRATIONS_FOLDER,
    CalibrationRecord,
)
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, StaleCondition

router = APIRouter(prefix="/api/admin", tags=["researchers"])


class CalibrationPage(ResponseRecord):
    """Last calibration of a judge, and whether it is still valid."""

    judge: str
    judges: tuple[Name, ...]
    """Annotators that can be calibrated: models, detectors and checkers."""
    record: CalibrationRecord | None
    """Calibration; None when the judge was never calibrated."""
    stale: tuple[StaleCondition, ...]
    looks: tuple[LabelLook, ...]
    names: dict[str, str]
    """Display names of annotators, by ID."""


@router.get("/calibration")
def calibration(request: Request, snapshots: Snapshots, _: Viewer, judge: Id) -> CalibrationPage:
    """Return the stored calibration of a judge, without computing anything."""
    file = _study_folder(request, snapshots.store) / CALIBRATIONS_FOLDER / _calibration_file_name(judge)
    snapshot = snapshots.compute_page(lambda pages: pages.snapshot)
    is_stored = judge in snapshot.kind_by_annotator and file.is_file()
    return _calibration_page(
        snapshot, judge, CalibrationRecord.model_validate_json(file.read_bytes()) if is_stored else None
    )


@router.post("/calibration")
async def calibrate_judge(request: Request, snapshots: Snapshots, session: Editor, judge: Id) -> CalibrationPage:
    """Calibrate a judge against people, and store the result with the study."""
    folder = _study_folder(request, snapshots.store)
    snapshot = await run_in_threadpool(snapshots.compute_page, lambda pages: pages.snapshot)
    record = (await run_in_threadpool(calibrate, snapshot.study, judge)).record
    for place, kept in ((CALIBRATIONS_FOLDER, record), (CONTRACTS_FOLDER, record.contract)):
        file = folder / place / _calibration_file_name(record.judge)
        file.parent.mkdir(exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(kept.model_dump_json(indent=1), encoding="utf-8")
        part.replace(file)
    await snapshots.store.run_job(
        audit_log_storage.record_standalone_action,
        session.who,
        "checked judge",
        {"judge": judge, "verdict": record.verdict},
    )
    return await run_in_threadpool(_calibration_page, snapshot, judge, record)


def _calibration_page(snapshot: Snapshot, judge: str, record: CalibrationRecord | None) -> CalibrationPage:
    judges = [id for id, kind in snapshot.kind_by_annotator.items() if kind in MACHINE_KINDS]
    return CalibrationPage(
        judge=judge,
        judges=tuple(judges),
        record=record,
        stale=tuple(expiry_states(snapshot.study, record)) if record else (),
        looks=label_looks(snapshot.protocol),
        names={id: name for id, name in snapshot.name_by_annotator.items() if name != id},
    )


# --- files -------------------------------------------------------------------------------------------------------


def _study_folder(request: Request, store: Store) -> Path:
    """Return the folder of the study, in which calibrations are stored."""
    runs: Path | None = request.app.state.runs
    file = store.database.place.file
    if runs is not None:
        return runs.parent
    if file is not None and file.name == DATABASE_FILENAME:
        return file.parent
    raise ProblemError(
        "refused",
        "Calibrations are stored in the study's folder. Serve the folder, with --db for a PostgreSQL database.",
    )


def _calibration_file_name(judge: str) -> str:
    return f"{judge.replace('/', '-')}.json"
