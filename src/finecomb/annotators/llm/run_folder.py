"""The folder of a run: what was asked (`run.json`), how far it is (`status.json`), and who is at work in it.

Several processes may look at one folder, as the workers of a server do: whoever is at work holds its lock, and others
leave their wish that the run stops there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from finecomb.core.errors import FinecombError
from finecomb.core.records import ModelSettings, Record, Time

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where nothing keeps a second process away
    fcntl = None  # type: ignore[assignment]

RUNS_FOLDER = "runs"
"""The folder of runs in a study's folder."""
RECORD_FILE, STATUS_FILE, LOCK_FILE = "run.json", "status.json", ".lock"
ERROR_FILE, STOP_FILE = "error.txt", ".stop"
RunState = Literal["running", "finished", "stopped"]
_HAS_LOCKS = fcntl is not None


class TextRetry(Record):
    """A text that is asked once more: the cache holds its first reply, so the new request must differ."""

    number: int = Field(ge=1)
    """1 for the first time that it is asked again."""
    max_tokens: int | None = None
    """Most tokens of the new reply; those of the run when None."""


class RunRecord(Record):
    """What a run is: who was asked, what, how and since when; `run.json` in the run's folder."""

    name: str
    """Of the annotator; samples have a number after it."""
    settings: ModelSettings
    host: str
    protocol: str
    prompt: str
    """Hash of template, protocol and the form of replies."""
    template: str
    created: Time
    version: str
    retries: Mapping[str, TextRetry] = {}
    """Texts that were asked again, by document."""


class RunStatus(Record):
    """How far a run is; `status.json` in the run's folder."""

    state: RunState
    documents: tuple[str, ...]
    """The texts it is about."""
    failures: Mapping[str, str] = {}
    """Why texts have no reply, by document."""
    why: str = ""
    """Why it ended before its last text."""
    when: Time
    """When that was so."""


class RunBusyError(FinecombError):
    """Another process is at work in the run's folder."""


def run_folders(runs: Path) -> list[Path]:
    """The folders of all runs, the newest first."""
    folders = [file.parent for file in runs.glob(f"*/{RECORD_FILE}")]
    return sorted(folders, key=lambda folder: read_record(folder).created, reverse=True)


def read_record(folder: Path) -> RunRecord:
    """What a run is."""
    return RunRecord.model_validate_json((folder / RECORD_FILE).read_bytes())


def write_record(folder: Path, record: RunRecord) -> None:
    """Write down what a run is."""
    _write_atomically(folder / RECORD_FILE, record.model_dump_json(indent=1))


def read_status(folder: Path) -> RunStatus | None:
    """How far a run is; None for one of an older version. One that nobody works on any more is not running."""
    file = folder / STATUS_FILE
    if not file.exists():
        return None
    status = RunStatus.model_validate_json(file.read_bytes())
    if status.state == "running" and not is_locked(folder):
        return status.model_copy(update={"state": "stopped", "why": "interrupted"})
    return status


def write_status(
    folder: Path,
    state: RunState,
    documents: tuple[str, ...],
    failures: Mapping[str, str] | None = None,
    why: str = "",
) -> None:
    """Write down how far a run is."""
    status = RunStatus(state=state, documents=documents, failures=failures or {}, why=why, when=datetime.now(UTC))
    _write_atomically(folder / STATUS_FILE, status.model_dump_json())


def read_error(folder: Path) -> str:
    """Why the last try of a run came to nothing; empty where it did not."""
    file = folder / ERROR_FILE
    return file.read_text(encoding="utf-8") if file.exists() else ""


def write_error(folder: Path, why: str) -> None:
    """Write down why a run came to nothing, or with nothing that it did not."""
    if why:
        _write_atomically(folder / ERROR_FILE, why)
    else:
        (folder / ERROR_FILE).unlink(missing_ok=True)


def _write_atomically(file: Path, text: str) -> None:
    """Put a whole file in the place of another."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8") as target:
        target.write(text)
        target.flush()
        os.fsync(target.fileno())
    part.replace(file)


# --- one process at a time ---------------------------------------------------------------------------------------


@contextmanager
def lock_run_folder(folder: Path) -> Iterator[None]:
    """Hold a run's folder for this process alone. The lock is the system's own: a killed process leaves none behind."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _HAS_LOCKS:
        yield
        return
    descriptor = os.open(folder / LOCK_FILE, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunBusyError(f"{folder}: another process is at work on this run; wait for it or stop it") from None
        yield
    finally:
        os.close(descriptor)


def request_stop(folder: Path) -> None:
    """Leave the wish that whoever follows a run stops it."""
    (folder / STOP_FILE).touch()


def is_stop_requested(folder: Path) -> bool:
    """Whether somebody wishes that a run stops."""
    return (folder / STOP_FILE).exists()


def clear_stop_request(folder: Path) -> None:
    """A run starts anew: what was wished before is of no concern."""
    (folder / STOP_FILE).unlink(missing_ok=True)


def is_locked(folder: Path) -> bool:
    """Whether a process is at work on a run."""
    file = folder / LOCK_FILE
    if not _HAS_LOCKS or not file.exists():
        return False
    descriptor = os.open(file, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
