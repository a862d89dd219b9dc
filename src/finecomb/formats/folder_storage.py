"""Storage of a study folder: its files, or the database that replaced them, and the change from one to the other.

A folder that is served becomes a database. The database is complete before it gets its name `study.db`, and the files
then move to `original/`. A crash at any point leaves either the files or the database in force:

- without `study.db` and `study.url`, the files are in force;
- with either of them and `original/README.txt`, the database alone is in force;
- with `study.db` but without `original/`, the folder was served by an earlier version. The database is in force, and
  records that only the files contain are read as well, until the next change imports them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from finecomb.collection.database.location import (
    DATABASE_FILENAME,
    POINTER_FILENAME,
    StudyLocation,
    parse_location,
    read_pointer,
)
from finecomb.core.errors import FinecombError
from finecomb.version import __version__

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where two writers are not kept apart
    fcntl = None  # type: ignore[assignment]

STUDY_FILES = ("study.yaml", "protocols", "documents.jsonl", "annotators.jsonl", "annotations.jsonl")
"""Files and folders of a study folder that a database replaces."""
ORIGINAL_FOLDER = "original"
CONFLICTS_FILE = "conflicts.jsonl"
"""File in `original/` with the records of files that differed from the database when they were moved."""
PENDING_FOLDER = ".finecomb-pending"
"""Folder with the new version of several files, which replaces them as a whole."""
_README_FILE, _MOVING_FILE = "README.txt", ".moving"
_LOCK_TIMEOUT_SECONDS = 60.0
_HAS_FILE_LOCKS = fcntl is not None


def database_in_force(path: Path) -> StudyLocation | None:
    """Return the database that holds the study of a folder or file, or None if files hold it."""
    if not path.is_dir():
        return parse_location(path)
    if pointed := read_pointer(path):
        return pointed
    return parse_location(path / DATABASE_FILENAME) if (path / DATABASE_FILENAME).exists() else None


def is_converted(path: Path) -> bool:
    """Return True if the database of a folder has replaced its files, so that files next to it are not read."""
    return (path / ORIGINAL_FOLDER / _README_FILE).is_file() or not has_study_files(path)


def has_study_files(path: Path) -> bool:
    """Return True if a folder has files of a study, apart from its database."""
    return any((path / name).exists() for name in STUDY_FILES)


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Keep other processes from writing to a study folder. The lock ends with the process, and leaves no file."""
    if not _HAS_FILE_LOCKS:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    deadline = time.monotonic() + _LOCK_TIMEOUT_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise FinecombError(f"{path}: another process is writing to this folder; try again later") from None
                time.sleep(0.02)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk."""
    with contextlib.suppress(OSError):  # not supported by every system
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- several files at once -------------------------------------------------------------------------------------------


@contextmanager
def replace_files_together(path: Path) -> Iterator[Path]:
    """Yield a folder for new versions of files in `path`, which take effect together once the block has succeeded.

    Call it within `lock_folder`. Once the folder has its final name, readers prefer the files in it.
    """
    finish_pending_write(path)
    part = path / f"{PENDING_FOLDER}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir()
        yield part
        for file in part.rglob("*"):
            if file.is_file():
                with file.open("rb") as opened:
                    os.fsync(opened.fileno())
        part.rename(path / PENDING_FOLDER)
    except OSError as error:
        raise FinecombError(f"{path}: cannot be written: {error.strerror or error}; nothing was changed") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    sync_folder(path)
    finish_pending_write(path)


def finish_pending_write(path: Path) -> None:
    """Move files of a write that was committed, but interrupted before its files were in place."""
    pending = path / PENDING_FOLDER
    if not pending.is_dir():
        return
    for file in sorted(pending.rglob("*")):
        if file.is_file():
            target = path / file.relative_to(pending)
            target.parent.mkdir(exist_ok=True)
            file.replace(target)
    sync_folder(path)
    shutil.rmtree(pending)


def current_file(path: Path, name: str) -> Path:
    """Return the file of a study folder that is in force: the pending version of an interrupted write, if any."""
    pending = path / PENDING_FOLDER / name
    return pending if pending.exists() else path / name


# --- from files to a database ----------------------------------------------------------------------------------------


def prepare_original_folder(path: Path, database: str, conflicts: str = "") -> None:
    """Create `original/` for the files that `database` replaces. Files next to a database are not read from then on."""
    folder, part = path / ORIGINAL_FOLDER, path / f".{ORIGINAL_FOLDER}.part"
    if folder.exists():
        if not (folder / _MOVING_FILE).exists():
            raise FinecombError(f"{folder}: the study's files move to a folder of this name; rename yours first")
        shutil.rmtree(folder)  # of an attempt that ended before the database was in force, so no file has moved
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    explanation = (
        f"These files were moved here by Finecomb {__version__} when the study became a database, {database}.\n"
        "No command reads them. `finecomb convert STUDY FOLDER` writes the study as files again.\n"
    )
    texts = {_README_FILE: explanation, _MOVING_FILE: ""} | ({CONFLICTS_FILE: conflicts} if conflicts else {})
    for name, text in texts.items():
        with (part / name).open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    part.rename(folder)
    sync_folder(path)


def move_original_files(path: Path) -> None:
    """Move the files that a database replaced to `original/`; continue a move that was interrupted."""
    folder = path / ORIGINAL_FOLDER
    if not (folder / _MOVING_FILE).exists():
        return
    for name in STUDY_FILES:
        if (path / name).exists() and not (folder / name).exists():
            (path / name).rename(folder / name)
    sync_folder(folder)
    sync_folder(path)
    (folder / _MOVING_FILE).unlink()


def write_pointer(path: Path, url: str) -> None:
    """Write the location of the PostgreSQL database that holds the study of a folder."""
    part = path / f".{POINTER_FILENAME}.part"
    with part.open("w", encoding="utf-8") as file:
        file.write(f"{url}\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path / POINTER_FILENAME)
    sync_folder(path)
