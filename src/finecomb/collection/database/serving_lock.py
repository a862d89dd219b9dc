"""One study, one server: a lock beside a SQLite file, held for as long as the process lives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from finecomb.collection.database.location import StudyLocation
from finecomb.core.errors import FinecombError

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where nothing keeps a second server away
    fcntl = None  # type: ignore[assignment]


class StudyInUseError(FinecombError):
    """Another process serves the study."""


def lock_file_path(location: StudyLocation) -> Path | None:
    """The file that is locked: `.study.db.lock` beside `study.db`; none for PostgreSQL, which many may serve."""
    return location.file.with_name(f".{location.file.name}.lock") if location.file else None


@contextmanager
def hold_study_lock(location: StudyLocation, command: str) -> Iterator[None]:
    """Hold a study for this process alone; refused with a line that names the one that has it.

    The lock is the system's own, so that a killed process leaves none behind.
    """
    path = lock_file_path(location)
    if path is None or fcntl is None:
        yield
        return
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise FinecombError(
            f"{path}: cannot be written: {error.strerror}; the study's folder must be writable"
        ) from None
    try:
        _acquire_file_lock(descriptor, location)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"finecomb {command}, process {os.getpid()}".encode())
        yield
    finally:
        os.close(descriptor)


def _acquire_file_lock(descriptor: int, location: StudyLocation) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 200).decode(errors="replace") or "another process"
        raise StudyInUseError(f"{location}: is in use by {holder}; stop that one first") from None
