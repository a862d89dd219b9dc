"""Differences between the files of a study folder and the database that holds the study."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from finecomb.collection.database.location import StudyLocation
from finecomb.core.errors import FinecombError, Problem, StudyError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Note, Settings
from finecomb.core.study import StudyItem
from finecomb.formats import database, folder
from finecomb.formats.folder_storage import (
    CONFLICTS_FILE,
    ORIGINAL_FOLDER,
    STUDY_FILES,
    database_in_force,
    is_converted,
)

_CONTENT_FIELDS: Mapping[type, set[str]] = {
    Annotation: {"document", "protocol", "marks", "units", "answers"},
    Annotator: {"kind"},
}
"""Fields whose difference is a conflict. Others, such as progress and exclusions, change while a study is served."""


@dataclass(frozen=True, slots=True)
class StoredDifferences:
    """Records of files compared with the records of a database."""

    missing: tuple[StudyItem, ...]
    """Records that only the files contain."""
    conflicts: tuple[StudyItem, ...]
    """Records of the files whose content differs from that of the database."""
    settings: tuple[str, ...] = ()
    """Names of settings that differ."""

    def conflict_lines(self) -> str:
        """Return the conflicts as JSON lines, each with the type of the record."""
        return "".join(f"{_format_conflict(record)}\n" for record in self.conflicts)


def _format_conflict(record: StudyItem) -> str:
    return to_json({"type": type(record).__name__.lower(), "record": from_json(record.to_json())}).decode()


def find_differences(path: Path, location: StudyLocation | None = None) -> StoredDifferences:
    """Compare the files of a folder with the database that is in force."""
    location = location or database_in_force(path)
    assert location is not None
    stored: dict[tuple[type, str], StudyItem] = {}
    current = Settings()
    for item in database.read_location(location):
        if isinstance(item, Settings):
            current = item
        elif not isinstance(item, Note):
            stored[type(item), item.id] = item
    missing: list[StudyItem] = []
    conflicts: list[StudyItem] = []
    settings: tuple[str, ...] = ()
    for item in folder.read_files(path):
        if isinstance(item, Settings):
            if (path / folder.SETTINGS_FILE).exists():
                settings = tuple(
                    name
                    for name in Settings.model_fields
                    if name != "protocols" and getattr(item, name) != getattr(current, name)
                )
        elif not isinstance(item, Note):
            other = stored.get((type(item), item.id))
            if other is None:
                missing.append(item)
            elif _content(other) != _content(item):
                conflicts.append(item)
    return StoredDifferences(tuple(missing), tuple(conflicts), settings)


def _content(item: Any) -> object:
    return item.model_dump(include=_CONTENT_FIELDS.get(type(item)))


# --- problems --------------------------------------------------------------------------------------------------------


def storage_problems(path: Path) -> list[Problem]:
    """Return a warning for each file of a folder that differs from the database in force, with the fix."""
    location = database_in_force(path) if path.is_dir() else None
    if location is None:
        return []
    problems = list(_unresolved_conflicts(path))
    beside = [name for name in STUDY_FILES if (path / name).exists()]
    if not beside:
        return problems
    try:
        differences = find_differences(path, location)
    except (FinecombError, StudyError) as error:
        return [
            *problems,
            Problem(f"next to the database, but cannot be compared: {error}", "warning", where=str(path)),
        ]
    if is_converted(path):
        problems += _unread_files(path, beside, differences)
    else:
        problems += _earlier_version_files(path, differences)
    return problems


def _unread_files(path: Path, beside: list[str], differences: StoredDifferences) -> Iterator[Problem]:
    for name in beside:
        kind = {"protocols": Protocol, "documents.jsonl": Document, "annotators.jsonl": Annotator}.get(name, Annotation)
        if name == folder.SETTINGS_FILE:
            changed = "".join(f"; it differs in {', '.join(differences.settings)}" for _ in differences.settings[:1])
        else:
            records = [record for record in (*differences.missing, *differences.conflicts) if isinstance(record, kind)]
            changed = (
                f"; {len(records):,} of its records differ from the database ({_list_ids(records)})" if records else ""
            )
        fix = f"`{_fix_command(path, name)}` applies it" if changed else "it contains nothing new"
        message = (
            f"the study is stored in a database, so no command reads this file{changed}; {fix}, and you can delete it"
        )
        yield Problem(message, "warning", where=str(path / name))


def _earlier_version_files(path: Path, differences: StoredDifferences) -> Iterator[Problem]:
    for record in differences.conflicts:
        kind = type(record).__name__.lower()
        message = (
            f"{kind} {_id_of(record)!r} differs from the database, which is in force; "
            f"`{_fix_command(path, folder.RECORD_FILES.get(type(record), 'protocols'))}` takes the version of the file"
        )
        yield Problem(message, "warning", where=str(path / folder.RECORD_FILES.get(type(record), "protocols")))
    for record in differences.missing:
        kind = type(record).__name__.lower()
        command = f"finecomb serve {shlex.quote(str(path))}"
        message = f"{kind} {_id_of(record)!r} is not in the database yet; `{command}` imports it"
        yield Problem(message, "warning", where=str(path / folder.RECORD_FILES.get(type(record), "protocols")))
    if differences.settings:
        message = (
            f"{', '.join(differences.settings)}: differs from the database, which is in force; "
            f"`{_fix_command(path, folder.SETTINGS_FILE)}` takes the version of the file"
        )
        yield Problem(message, "warning", where=str(path / folder.SETTINGS_FILE))


def _unresolved_conflicts(path: Path) -> Iterator[Problem]:
    file = path / ORIGINAL_FOLDER / CONFLICTS_FILE
    if not file.exists():
        return
    rows = [from_json(line) for line in file.read_text(encoding="utf-8").splitlines()]
    names = {"document": "documents.jsonl", "annotator": "annotators.jsonl", "annotation": "annotations.jsonl"}
    for kind in dict.fromkeys(row["type"] for row in rows):
        ids = [
            row["record"].get("id") or f"{row['record']['name']}@{row['record']['version']}"
            for row in rows
            if row["type"] == kind
        ]
        listed = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
        original = path / ORIGINAL_FOLDER
        fix = _fix_command(path, names.get(kind, "protocols"), original)
        message = (
            f"{len(ids):,} {kind}{'' if len(ids) == 1 else 's'} differed from the database when the files were moved "
            f"({listed}); `{fix}` takes the version of the files, or delete this file to keep the database's"
        )
        yield Problem(message, "warning", where=str(file))


def _fix_command(path: Path, name: str, source: Path | None = None) -> str:
    study = shlex.quote(str(path))
    file = shlex.quote(str((source or path) / name))
    if name == folder.SETTINGS_FILE:
        return f"finecomb edit {study} --settings {file}"
    if name == "documents.jsonl":
        return f"finecomb edit {study} --documents {file}"
    if name == "protocols":
        return f"finecomb edit {study} --protocol {shlex.quote(str((source or path) / name))}/NAME.yaml"
    return f"finecomb merge {study} {shlex.quote(str(source or path))} --into {study} --replace"


def _id_of(record: StudyItem) -> str:
    return str(getattr(record, "id", ""))


def _list_ids(records: list[StudyItem]) -> str:
    ids = [_id_of(record) for record in records]
    return ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
