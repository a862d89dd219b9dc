"""Changes to a study where it is stored: in the files of a folder, or in its database, also while it is served."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from finecomb.collection.database.location import (
    DATABASE_FILENAME,
    StudyLocation,
    is_postgres_url,
    parse_location,
    study_database_location,
)
from finecomb.core.errors import FinecombError, ParameterError, StudyError, param
from finecomb.core.records import Note, Settings
from finecomb.core.study import Study, StudyItem, merge_work
from finecomb.core.study_checks import check_items
from finecomb.formats import database, folder
from finecomb.formats.folder_storage import (
    database_in_force,
    finish_pending_write,
    is_converted,
    lock_folder,
    move_original_files,
    prepare_original_folder,
    sync_folder,
    write_pointer,
)
from finecomb.formats.stored_differences import find_differences

if TYPE_CHECKING:
    from finecomb.collection.database.connection import Transaction
    from finecomb.collection.database.store import Store

RecordBuilder = Callable[[Study], Iterable[StudyItem]]
"""Function that returns the records to add or replace in the current study; an exception leaves it unchanged."""


def change_study(path: Path, build: RecordBuilder, did: str) -> Study:
    """Add or replace records of a study where it is stored, all or none, and return the changed study.

    `build` is called with the study as it is at that moment, and no other process can write until its records are
    stored. `did` describes the change in the audit log of a database.
    """
    if not is_postgres_url(path) and not path.exists():
        raise FinecombError(f"{path}: no such file or folder")
    if path.is_dir():
        if not folder.is_study_folder(path):
            raise FinecombError(f"{path}: not a study folder; write a new study with {param('output')} instead")
        with lock_folder(path):
            finish_pending_write(path)
            if database_in_force(path) is None:
                before = Study.from_items(check_items(folder.read_files(path)), str(path))
                records = list(build(before))
                after = _check_change(before, records)
                folder.replace_records(path, records)
                return after
            _retire_files(path)
    elif not database.is_database(path):
        raise FinecombError(f"{path}: not a study folder or database; write a new study with {param('output')} instead")
    with _open_store(study_database_location(path)) as store:
        return store.run_study_change_sync(_change_stored_study, build, did, str(path))


def _change_stored_study(store: Store, transaction: Transaction, build: RecordBuilder, did: str, origin: str) -> Study:
    from finecomb.collection import audit_log_storage, record_storage
    from finecomb.collection.database.store import iter_study_records

    before = Study.from_items(iter_study_records(transaction, store.key), origin)
    records = list(build(before))
    after = _check_change(before, records)
    record_storage.replace_records(store, transaction, records)
    if settings := [record for record in after.items() if isinstance(record, Settings)]:
        record_storage.replace_records(store, transaction, settings)  # lists protocols that are new
    audit_log_storage.record_action(store, transaction, "finecomb", did, records=len(records))
    return after


def _check_change(before: Study, records: Iterable[StudyItem]) -> Study:
    """Return the changed study, or raise an error if it would be invalid."""
    return Study.from_items(check_items(merge_work(before, records, replace=True)), before.origin)


@contextmanager
def _open_store(location: StudyLocation) -> Iterator[Store]:
    from finecomb.collection.database.store import open_store

    store = None
    try:
        store = open_store(location)
        yield store
    except sqlite3.Error as error:  # such as a read-only folder or a full disk
        raise FinecombError(f"{location}: cannot be written: {error}; nothing was changed") from None
    finally:
        if store is not None:
            store.close()


# --- from a folder to a database -------------------------------------------------------------------------------------


def ensure_database(path: Path, db: str = "") -> list[str]:
    """Turn a study folder into a database, if it is not one yet, and return notes about the change.

    Without `db`, the database is `study.db` in the folder. Otherwise it is in PostgreSQL, and the folder points to it.
    """
    with lock_folder(path):
        finish_pending_write(path)
        location = database_in_force(path)
        if db:
            return _attach_postgres(path, study_database_location(path, db), location)
        if location is None:
            return _convert_folder(path)
        return _retire_files(path)


def _convert_folder(path: Path) -> list[str]:
    part = path / f".{DATABASE_FILENAME}.part"
    _remove_database(part)
    try:
        _write_database(part, folder.read_files(path), path)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        prepare_original_folder(path, DATABASE_FILENAME)
        part.replace(path / DATABASE_FILENAME)  # from here on, the database is in force
    except OSError as error:
        raise FinecombError(f"{path}: cannot be written: {error.strerror or error}; nothing was changed") from None
    finally:
        _remove_database(part)
    sync_folder(path)
    move_original_files(path)
    return [f"the study is now stored in {path / DATABASE_FILENAME}; its files were moved to {path / 'original'}"]


def _write_database(part: Path, items: Iterable[StudyItem], path: Path) -> None:
    from finecomb.collection.database.store import open_store

    try:
        open_store(parse_location(part), check_items(item for item in items if not isinstance(item, Note))).close()
    except StudyError as error:
        raise StudyError(folder.locate_problems(error.problems, path)) from None


def _remove_database(file: Path) -> None:
    for left in file.parent.glob(f"{file.name}*"):  # and its journal
        left.unlink()


def _retire_files(path: Path) -> list[str]:
    """Import what only the files of a folder of an earlier version contain, and move them to `original/`."""
    if is_converted(path):
        move_original_files(path)  # of a change that was interrupted
        return []
    differences = find_differences(path)
    with _open_store(parse_location(path / DATABASE_FILENAME)) as store:
        store.run_study_change_sync(_import_missing, differences.missing, folder.read_settings(path))
    prepare_original_folder(path, DATABASE_FILENAME, differences.conflict_lines())
    move_original_files(path)
    notes = [f"the study is stored in {path / DATABASE_FILENAME}; its files were moved to {path / 'original'}"]
    if differences.missing:
        notes.append(f"records that only the files contained were imported: {len(differences.missing):,}")
    if differences.conflicts:
        notes.append(
            f"records of the files that differed from the database were not imported: {len(differences.conflicts):,}; "
            f"`finecomb check {path}` lists them"
        )
    return notes


def _import_missing(store: Store, transaction: Transaction, missing: Iterable[StudyItem], settings: Settings) -> None:
    from finecomb.collection.database.record_import import import_records

    import_records(transaction, store.key, [settings, *missing])


def _attach_postgres(path: Path, wanted: StudyLocation, current: StudyLocation | None) -> list[str]:
    from finecomb.collection.database.store import open_store

    if current is not None and current.file is None:
        if str(current) != str(wanted):
            raise ParameterError(
                f"{param('db', str(wanted))}: the study of this folder is stored in {current}; omit {param('db')}",
                parameter="db",
            )
        move_original_files(path)
        return []
    if current is not None:
        raise ParameterError(
            f"{path}: the study is stored in {current}; copy it with `finecomb backup {path} -o FILE` and "
            f"`finecomb restore FILE {wanted}`, and serve {wanted}",
            parameter="db",
        )
    try:
        items = check_items(item for item in folder.read_files(path) if not isinstance(item, Note))
        open_store(wanted, items).close()
    except StudyError as error:
        raise StudyError(folder.locate_problems(error.problems, path)) from None
    try:
        prepare_original_folder(path, str(wanted))
        write_pointer(path, str(wanted))  # from here on, the database is in force
    except OSError as error:
        note = (
            f"the study was imported into {wanted}, but {path} cannot be written ({error.strerror}), so commands "
            f"on this folder read its files; pass {wanted} to commands instead"
        )
        return [note]
    move_original_files(path)
    return [f"the study is now stored in {wanted}; the files of {path} were moved to {path / 'original'}"]
