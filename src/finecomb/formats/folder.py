"""Native format: a folder with `study.yaml`, `protocols/` and three JSONL files, or with the database of the study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from finecomb.collection.database.location import DATABASE_FILENAME, POINTER_FILENAME
from finecomb.core.errors import FormatError, Problem, StudyError
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import explain_validation_error, format_yaml, parse_protocol, parse_yaml
from finecomb.core.records import Annotation, Annotator, Document, Record, Settings
from finecomb.core.study import StudyItem
from finecomb.formats import database
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES
from finecomb.formats.folder_storage import (
    PENDING_FOLDER,
    current_file,
    database_in_force,
    is_converted,
    replace_files_together,
)
from finecomb.formats.source_files import iter_nonblank_lines, read_text

R = TypeVar("R", bound=Record)

SETTINGS_FILE = "study.yaml"
RECORD_FILES: dict[type[Record], str] = {
    Document: "documents.jsonl",
    Annotator: "annotators.jsonl",
    Annotation: "annotations.jsonl",
}
_FILE_BY_KIND = {"document": "documents.jsonl", "annotator": "annotators.jsonl", "annotation": "annotations.jsonl"}
_MAX_PROBLEMS = 1000
_JSON_ERROR_POSITION = re.compile(r" at line \d+ column (\d+)$")  # within the single line that was parsed


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read settings, protocols, documents, annotators and annotations, in that order."""
    if not path.is_dir():
        raise FormatError(f"{path}: not a folder; a study is a folder with {SETTINGS_FILE}")
    location = database_in_force(path)
    if location is None:
        return read_files(path)
    if location.file is None or is_converted(path):
        return database.read_location(location)
    return database.merge_folder_and_database(read_files(path), path)


def read_files(path: Path) -> Iterator[StudyItem]:
    """Read the files of a study folder, without a database in it.

    Files that another process replaces meanwhile are an error, because records of two versions do not fit together.
    """
    before = _file_versions(path)
    yield read_settings(path)
    yield from read_protocols(path)
    for kind, name in RECORD_FILES.items():
        if current_file(path, name).exists():
            yield from read_records(current_file(path, name), kind)  # type: ignore[misc]
    if _file_versions(path) != before:
        raise FormatError(f"{path}: the study was changed while it was read; run the command again")


def _file_versions(path: Path) -> list[tuple[int, int] | None]:
    """Return the inode and modification time of each file, which change when it is replaced or edited."""
    files = [current_file(path, name) for name in (SETTINGS_FILE, *RECORD_FILES.values())]
    states = [file.stat() if file.exists() else None for file in files]
    return [(state.st_ino, state.st_mtime_ns) if state else None for state in states]


def read_settings(path: Path) -> Settings:
    """Read the settings in a study folder; defaults if `study.yaml` is missing."""
    file = current_file(path, SETTINGS_FILE)
    text = read_text(file) if file.exists() else ""
    return parse_yaml(Settings, text, str(file)) if text.strip() else Settings()


def read_protocols(path: Path) -> Iterator[Protocol]:
    """Read the protocols in a study folder; each file must be named after its protocol and version."""
    names = {file.name for folder in (path, path / PENDING_FOLDER) for file in folder.glob("protocols/*.yaml")}
    for name in sorted(names):
        file = current_file(path, f"protocols/{name}")
        protocol = parse_protocol(read_text(file), str(file))
        if file.stem != protocol.id:
            raise FormatError(f"{file}: contains protocol {protocol.id}; rename the file to {protocol.id}.yaml")
        yield protocol


def read_records(path: Path, kind: type[R]) -> Iterator[R]:
    """Read the records of one JSONL file; a single error at the end reports all malformed lines."""
    slips: list[Problem] = []
    for number, line in iter_nonblank_lines(path):
        try:
            value = kind.model_validate_json(line)
        except ValidationError as error:
            where = f"{path}:{number}"
            slips += [Problem(_explain_problem(slip, kind), where=where) for slip in error.errors()]
            if len(slips) >= _MAX_PROBLEMS:
                break
            continue
        if not slips:
            yield value
    if slips:
        raise StudyError(slips)


def _format_error_column(match: re.Match[str]) -> str:
    """Return only the column of a JSON error, because messages already name the line; column 0 is omitted."""
    return f" at column {match[1]}" if match[1] != "0" else ""


def _explain_problem(problem: object, kind: type[Record]) -> str:
    if isinstance(problem, dict) and problem["type"] == "json_invalid":
        return f"invalid JSON: {_JSON_ERROR_POSITION.sub(_format_error_column, problem['ctx']['error'])}"
    return explain_validation_error(problem, kind)


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a study folder; its settings list the protocols that were written."""
    path.mkdir(parents=True)
    (path / "protocols").mkdir()
    settings, names = Settings(), []
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context((path / name).open("w", encoding="utf-8", newline="\n"))
            for kind, name in RECORD_FILES.items()
        }
        for item in items:
            if isinstance(item, Settings):
                settings = item
            elif isinstance(item, Protocol):
                names.append(item.id)
                write_protocol(item, path)
            elif type(item) in files:
                files[type(item)].write(item.to_json() + "\n")
        for file in files.values():
            sync_to_disk(file)
    write_settings(settings, names, path)


def write_protocol(protocol: Protocol, path: Path) -> None:
    """Write a protocol to a study folder."""
    (path / "protocols" / f"{protocol.id}.yaml").write_text(format_yaml(protocol), encoding="utf-8")


def write_settings(settings: Settings, names: Iterable[str], path: Path) -> None:
    """Write `study.yaml` to a study folder; the file lists the protocols `names`."""
    listed = settings.protocols + tuple(name for name in names if name not in settings.protocols)
    (path / SETTINGS_FILE).write_text(format_yaml(settings.model_copy(update={"protocols": listed})), encoding="utf-8")


def replace_records(path: Path, records: Iterable[StudyItem]) -> None:
    """Add records to the files of a study folder, or replace those with the same ID; all take effect together.

    Call it within `lock_folder`.
    """
    lines: dict[str, dict[str, str]] = {name: {} for name in RECORD_FILES.values()}
    names: dict[str, None] = {}
    settings = read_settings(path)
    with replace_files_together(path) as folder:
        for record in records:
            if isinstance(record, Protocol):
                names[record.id] = None
                (folder / "protocols").mkdir(exist_ok=True)
                write_protocol(record, folder)
            elif isinstance(record, Settings):
                settings = record
            elif isinstance(record, Document | Annotator | Annotation):
                lines[RECORD_FILES[type(record)]][record.id] = record.to_json()
        if settings != read_settings(path) or set(names) - set(settings.protocols):
            write_settings(settings, names, folder)
        for name, changed in lines.items():
            if not changed:
                continue
            kept = (
                [line.rstrip("\r\n") for _, line in iter_nonblank_lines(path / name)] if (path / name).exists() else []
            )
            with (folder / name).open("w", encoding="utf-8", newline="\n") as target:
                for line in kept:
                    target.write(changed.pop(from_json(line)["id"], line) + "\n")
                target.writelines(line + "\n" for line in changed.values())


def locate_problems(problems: Iterable[Problem], path: Path) -> list[Problem]:
    """Add file and line to each problem; files are read again only if there are problems."""
    lines: dict[str, list[int]] = {}
    result = []
    for problem in problems:
        name = _FILE_BY_KIND.get(problem.kind)
        if problem.where or (name is None and problem.kind != "settings"):
            result.append(problem)
        elif name is None:
            result.append(problem.with_location(str(path / SETTINGS_FILE)))
        else:
            if name not in lines:
                lines[name] = [number for number, _ in iter_nonblank_lines(path / name)]
            numbers = lines[name]
            line = f":{numbers[problem.row]}" if 0 <= problem.row < len(numbers) else ""
            result.append(problem.with_location(f"{path / name}{line}"))
    return result


def is_study_folder(path: Path) -> bool:
    """Return True if `path` is a study folder."""
    if (path / "documents.parquet").exists():
        return False  # a study in Parquet, which the format `parquet` reads
    names = (SETTINGS_FILE, "documents.jsonl", DATABASE_FILENAME, POINTER_FILENAME)
    return path.is_dir() and any((path / name).exists() for name in names)


FORMAT = Format("folder", "a study folder", read, write, sniff=is_study_folder, holds=ALL_FEATURES)
