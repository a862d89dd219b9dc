"""The researcher's side of the API about judges: may one stand in for people, and does its contract still hold?"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from finecomb.collection import audit_log_storage
from finecomb.collection.database.location import DATABASE_FILENAME
from finecomb.collection.database.store import Store
from finecomb.core.records import Id as Name
from finecomb.core.study import Study
from finecomb.server.error_responses import ProblemError
from finecomb.server.researchers.routes import Editor, Id, Snapshots, Viewer
from finecomb.server.researchers.schema import ResponseRecord
from finecomb.server.researchers.snapshot import MACHINE_KINDS, Snapshot, label_looks
from finecomb.server.schema import LabelLook
from finecomb.statistics.judges.calibration import calibrate, read_judge_binding
from finecomb.statistics.judges.calibration_record import (
    CALIBRATIONS_FOLDER,
    CalibrationRecord,
    build_calibration_record,
)
from finecomb.statistics.judges.validity import (
    CONTRACTS_FOLDER,
    StaleCondition,
    stale_conditions,
    text_counts_by_system,
)

router = APIRouter(prefix="/api/admin", tags=["researchers"])


class CalibrationPage(ResponseRecord):
    """One judge beside people, as it was last checked, and whether that still holds."""

    judge: str
    judges: tuple[Name, ...]
    """Who could be checked: models, detectors, checkers."""
    record: CalibrationRecord | None
    """Null where it was never checked."""
    stale: tuple[StaleCondition, ...]
    looks: tuple[LabelLook, ...]
    names: dict[str, str]
    """What researchers call people, by id."""


@router.get("/calibration")
def calibration(request: Request, snapshots: Snapshots, _: Viewer, judge: Id) -> CalibrationPage:
    """What is known of a judge; nothing is computed."""
    folder = _study_folder(request, snapshots.store)
    snapshot = snapshots.read(lambda pages: pages.snapshot)
    return _calibration_page(
        snapshot, judge, _read_calibration(folder, judge) if judge in snapshot.kind_by_annotator else None
    )


@router.post("/calibration")
async def calibrate_judge(request: Request, snapshots: Snapshots, session: Editor, judge: Id) -> CalibrationPage:
    """Check a judge against people now, and keep the result and its contract with the study."""
    folder = _study_folder(request, snapshots.store)
    snapshot = await run_in_threadpool(snapshots.read, lambda pages: pages.snapshot)
    record = await run_in_threadpool(_run_calibration, snapshot.study, judge)
    _write_calibration(folder, record)
    await snapshots.store.run_job(
        audit_log_storage.record_single_action,
        session.who,
        "checked judge",
        {"judge": judge, "verdict": record.verdict},
    )
    return await run_in_threadpool(_calibration_page, snapshot, judge, record)


def _run_calibration(study: Study, judge: str) -> CalibrationRecord:
    return build_calibration_record(calibrate(study, judge), made=datetime.now(UTC))


def _calibration_page(snapshot: Snapshot, judge: str, record: CalibrationRecord | None) -> CalibrationPage:
    judges = [id for id, kind in snapshot.kind_by_annotator.items() if kind in MACHINE_KINDS]
    return CalibrationPage(
        judge=judge,
        judges=tuple(judges),
        record=record,
        stale=tuple(_stale_conditions(snapshot.study, record)) if record else (),
        looks=label_looks(snapshot.protocol),
        names={id: name for id, name in snapshot.name_by_annotator.items() if name != id},
    )


def _stale_conditions(study: Study, record: CalibrationRecord) -> list[StaleCondition]:
    binding = read_judge_binding(study, record.judge, record.contract.binding.protocol)
    metas = (document.meta for document in study.iter_documents())
    return stale_conditions(record.contract, binding, datetime.now(UTC), text_counts_by_system(record.contract, metas))


# --- files -------------------------------------------------------------------------------------------------------


def _study_folder(request: Request, store: Store) -> Path:
    """The study's folder, where calibrations and contracts are kept."""
    runs: Path | None = request.app.state.runs
    file = store.database.place.file
    if runs is not None:
        return runs.parent
    if file is not None and file.name == DATABASE_FILENAME:
        return file.parent
    raise ProblemError(
        "refused", "Calibrations are kept in the study's folder: serve the folder, with --db for its work."
    )


def _calibration_file_name(judge: str) -> str:
    return f"{judge.replace('/', '-')}.json"


def _read_calibration(folder: Path, judge: str) -> CalibrationRecord | None:
    file = folder / CALIBRATIONS_FOLDER / _calibration_file_name(judge)
    return CalibrationRecord.model_validate_json(file.read_bytes()) if file.is_file() else None


def _write_calibration(folder: Path, record: CalibrationRecord) -> None:
    """Write calibration and contract, each as a whole."""
    for place, kept in ((CALIBRATIONS_FOLDER, record), (CONTRACTS_FOLDER, record.contract)):
        file = folder / place / _calibration_file_name(record.judge)
        file.parent.mkdir(exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(kept.model_dump_json(indent=1), encoding="utf-8")
        part.replace(file)
