"""The folder of a run: its record (`run.json`), its status (`status.json`) and its lock.

Several processes may read a run's folder, for example the workers of a server. The process that executes the run holds
the lock, and other processes can request that it stop.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from finecomb.core.errors import FinecombError
from finecomb.core.records import ModelSettings, Record, Time

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where a second process is not locked out
    fcntl = None  # type: ignore[assignment]

RUNS_FOLDER = "runs"
"""Name of the folder with the runs, inside a study's folder."""
RECORD_FILE, STATUS_FILE, LOCK_FILE = "run.json", "status.json", ".lock"
ERROR_FILE, STOP_FILE = "error.txt", ".stop"
RunState = Literal["running", "finished", "stopped"]
_HAS_FILE_LOCKS = fcntl is not None


class TextRetry(Record):
    """A repeated request for a text, changed so that the first reply is not reused from the cache."""

    number: int = Field(ge=1)
    """Number of the repetition, starting at 1."""
    max_tokens: int | None = None
    """Maximum number of tokens in the new reply, or None for the run's setting."""


class RunRecord(Record):
    """The model, settings, prompt and date of a run, stored as `run.json` in the run's folder."""

    name: str
    """ID of the annotator. With several samples, a number is appended."""
    settings: ModelSettings
    host: str
    protocol: str
    prompt: str
    """Hash of the template, the protocol and the reply schema."""
    template: str
    created: Time
    version: str
    retries: Mapping[str, TextRetry] = {}
    """Repeated requests by document ID."""
    generation: int = Field(default=1, ge=1)
    """Number of runs under this name so far; from 2 on, it is part of the IDs of annotations."""


class RunStatus(Record):
    """The progress of a run, stored as `status.json` in the run's folder."""

    state: RunState
    documents: tuple[str, ...]
    """IDs of the texts in the run."""
    failures: Mapping[str, str] = {}
    """Reasons why texts have no reply, by document ID."""
    why: str = ""
    """The reason for an early end."""
    when: Time
    """Time of the status."""


class RunBusyError(FinecombError):
    """An attempt to use a run's folder while another process holds its lock."""


def build_folder_name(name: str, identity: Sequence[Any]) -> str:
    """Return the name of a run's folder, from a display name and the JSON values that determine the requests."""
    short = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]
    safe = "".join(character if character.isalnum() or character in "-_." else "-" for character in name)
    return f"{safe}-{short}"


def list_run_folders(runs: Path) -> list[Path]:
    """List the folders of all runs, newest first."""
    folders = [file.parent for file in runs.glob(f"*/{RECORD_FILE}")]
    return sorted(folders, key=lambda folder: read_run_record(folder).created, reverse=True)


def read_run_record(folder: Path) -> RunRecord:
    """Read the record of a run."""
    return RunRecord.model_validate_json((folder / RECORD_FILE).read_bytes())


def write_run_record(folder: Path, record: RunRecord) -> None:
    """Write the record of a run."""
    _write_atomically(folder / RECORD_FILE, record.model_dump_json(indent=1))


def read_run_status(folder: Path) -> RunStatus | None:
    """Read the status of a run. Return None for runs of older versions.

    A run that is recorded as running but not locked counts as stopped.
    """
    file = folder / STATUS_FILE
    if not file.exists():
        return None
    status = RunStatus.model_validate_json(file.read_bytes())
    if status.state == "running" and not is_run_locked(folder):
        return status.model_copy(update={"state": "stopped", "why": "interrupted"})
    return status


def write_run_status(
    folder: Path,
    state: RunState,
    documents: tuple[str, ...],
    failures: Mapping[str, str] | None = None,
    why: str = "",
) -> None:
    """Write the status of a run."""
    status = RunStatus(state=state, documents=documents, failures=failures or {}, why=why, when=datetime.now(UTC))
    _write_atomically(folder / STATUS_FILE, status.model_dump_json())


def start_run_status(folder: Path, documents: tuple[str, ...]) -> tuple[str, ...]:
    """Set the status to `running`, and return the IDs of the texts in this and earlier sessions of the run."""
    status = read_run_status(folder)
    ids = tuple(dict.fromkeys([*(status.documents if status else ()), *documents]))
    write_run_status(folder, "running", ids)
    return ids


def write_run_error(folder: Path, why: str) -> None:
    """Write the error of a run, or delete the file if `why` is empty."""
    if why:
        _write_atomically(folder / ERROR_FILE, why)
    else:
        (folder / ERROR_FILE).unlink(missing_ok=True)


def _write_atomically(file: Path, text: str) -> None:
    """Replace a file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Synced before the rename, so that a crash leaves either the old or the new file.
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8") as target:
        target.write(text)
        target.flush()
        os.fsync(target.fileno())
    part.replace(file)


# --- locking -----------------------------------------------------------------------------------------------------


@contextmanager
def lock_run_folder(folder: Path) -> Iterator[None]:
    """Lock a run's folder for this process. The operating system releases the lock when the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _HAS_FILE_LOCKS:
        yield
        return
    descriptor = os.open(folder / LOCK_FILE, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunBusyError(f"{folder}: another process is executing this run; wait for it or stop it") from None
        yield
    finally:
        os.close(descriptor)


def is_run_locked(folder: Path) -> bool:
    """Return whether a process is executing the run."""
    file = folder / LOCK_FILE
    if not _HAS_FILE_LOCKS or not file.exists():
        return False
    # Closing the descriptor also releases the lock that this check acquired.
    descriptor = os.open(file, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
