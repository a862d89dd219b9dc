"""Lock file next to a SQLite database, which prevents two servers from serving the same study."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from finecomb.collection.database.location import StudyLocation
from finecomb.core.errors import FinecombError

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where a second server is not prevented
    fcntl = None  # type: ignore[assignment]


class StudyInUseError(FinecombError):
    """Attempt to serve a study that another process already serves."""


def lock_file_path(location: StudyLocation) -> Path | None:
    """Return the path of a study's lock file, `.study.db.lock` next to `study.db`, or None for PostgreSQL."""
    if location.file is None:
        return None
    file = location.file.resolve()  # a symbolic link is the same study
    return file.with_name(f".{file.name}.lock")


@contextmanager
def hold_study_lock(location: StudyLocation, command: str) -> Iterator[None]:
    """Lock a study for this process, or raise an error that names the process holding the lock.

    The operating system releases the lock when the process ends, even when it is killed.
    """
    path = lock_file_path(location)
    if path is None or fcntl is None:
        yield
        return
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise FinecombError(
            f"{path}: cannot be written ({error.strerror}); the study's folder must be writable"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 200).decode(errors="replace") or "another process"
            raise StudyInUseError(f"{location}: in use by {holder}; stop that process first") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"finecomb {command}, process {os.getpid()}".encode())
        yield
    finally:
        os.close(descriptor)
