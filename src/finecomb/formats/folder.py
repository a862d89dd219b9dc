"""The native form: a folder with `study.yaml`, `protocols/`, three JSONL files, and the database of a served study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from finecomb.collection.database.location import DATABASE_FILENAME
from finecomb.core.errors import FormatError, Problem, StudyError
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_text import explain_validation_error, format_yaml, parse_protocol, parse_yaml
from finecomb.core.records import Annotation, Annotator, Document, Record, Settings
from finecomb.core.study import StudyItem
from finecomb.formats import database
from finecomb.formats.atomic_file import replace_atomically, sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES
from finecomb.formats.source_files import json_lines, read_text

R = TypeVar("R", bound=Record)

SETTINGS_FILE = "study.yaml"
RECORD_FILES: dict[type[Record], str] = {
    Document: "documents.jsonl",
    Annotator: "annotators.jsonl",
    Annotation: "annotations.jsonl",
}
_FILE_BY_KIND = {"document": "documents.jsonl", "annotator": "annotators.jsonl", "annotation": "annotations.jsonl"}
_MAX_PROBLEMS = 1000
_JSON_ERROR_POSITION = re.compile(r" at line \d+ column (\d+)$")  # of the one line that was parsed


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Settings, protocols, documents, annotators, annotations, in that order."""
    if not path.is_dir():
        raise FormatError(f"{path}: not a folder; a study is a folder with {SETTINGS_FILE}")
    return (
        database.merge_folder_and_database(read_files(path), path)
        if (path / DATABASE_FILENAME).exists()
        else read_files(path)
    )


def read_files(path: Path) -> Iterator[StudyItem]:
    """The same without the database that `finecomb serve` keeps in the folder."""
    yield read_settings(path)
    yield from read_protocols(path)
    for kind, name in RECORD_FILES.items():
        if (path / name).exists():
            yield from read_records(path / name, kind)  # type: ignore[misc]


def read_settings(path: Path) -> Settings:
    """What `study.yaml` in a study's folder says; the defaults when there is none."""
    file = path / SETTINGS_FILE
    text = read_text(file) if file.exists() else ""
    return parse_yaml(Settings, text, str(file)) if text.strip() else Settings()


def read_protocols(path: Path) -> Iterator[Protocol]:
    """The protocols in a study's folder; each file is called by its protocol's name and version."""
    for file in sorted((path / "protocols").glob("*.yaml")):
        protocol = parse_protocol(read_text(file), str(file))
        if file.stem != protocol.id:
            raise FormatError(f"{file}: holds protocol {protocol.id}; call the file {protocol.id}.yaml")
        yield protocol


def read_records(path: Path, kind: type[R]) -> Iterator[R]:
    """Records of one JSONL file; all malformed lines are raised together at the end."""
    slips: list[Problem] = []
    for number, line in json_lines(path):
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


def _format_column(match: re.Match[str]) -> str:
    """The column alone, since the line of the file is said; 0 is the end of the line, where nothing is."""
    return f" at column {match[1]}" if match[1] != "0" else ""


def _explain_problem(problem: object, kind: type[Record]) -> str:
    if isinstance(problem, dict) and problem["type"] == "json_invalid":
        return f"not JSON: {_JSON_ERROR_POSITION.sub(_format_column, problem['ctx']['error'])}"
    return explain_validation_error(problem, kind)


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write the folder; settings name the protocols that were written."""
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
    """Put a protocol into a study's folder."""
    (path / "protocols" / f"{protocol.id}.yaml").write_text(format_yaml(protocol), encoding="utf-8")


def write_settings(settings: Settings, names: Iterable[str], path: Path) -> None:
    """Put `study.yaml` into a study's folder; it names the protocols that were written."""
    listed = settings.protocols + tuple(name for name in names if name not in settings.protocols)
    (path / SETTINGS_FILE).write_text(format_yaml(settings.model_copy(update={"protocols": listed})), encoding="utf-8")


def add_annotations(
    path: Path, protocols: Iterable[Protocol], annotators: Iterable[Annotator], annotations: Iterable[Annotation]
) -> None:
    """Put annotators and annotations into a study's folder; those with the same id are replaced, all others stay.

    Each file is replaced as a whole once its successor is on disk, annotators first, so that the study is sound at
    every moment.
    """
    (path / "protocols").mkdir(exist_ok=True)
    names = []
    for protocol in protocols:
        names.append(protocol.id)
        write_protocol(protocol, path)
    settings = read_settings(path)
    if set(names) - set(settings.protocols):
        write_settings(settings, names, path)
    _replace_records(path / RECORD_FILES[Annotator], annotators)
    _replace_records(path / RECORD_FILES[Annotation], annotations)


def _replace_records(file: Path, records: Iterable[Annotator | Annotation]) -> None:
    lines = {record.id: record.to_json() for record in records}
    kept = [line.rstrip("\r\n") for _, line in json_lines(file)] if file.exists() else []
    with (
        replace_atomically(file, force=True) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as target,
    ):
        for line in kept:
            target.write(lines.pop(from_json(line)["id"], line) + "\n")
        target.writelines(line + "\n" for line in lines.values())
        sync_to_disk(target)


def locate_problems(problems: Iterable[Problem], path: Path) -> list[Problem]:
    """Give each problem its file and line; files are read again only when there are problems."""
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
                lines[name] = [number for number, _ in json_lines(path / name)]
            numbers = lines[name]
            line = f":{numbers[problem.row]}" if 0 <= problem.row < len(numbers) else ""
            result.append(problem.with_location(f"{path / name}{line}"))
    return result


def is_study_folder(path: Path) -> bool:
    """Whether `path` is a study's folder."""
    if (path / "documents.parquet").exists():
        return False  # the same study as tables, which `parquet` reads
    return path.is_dir() and ((path / SETTINGS_FILE).exists() or (path / "documents.jsonl").exists())


FORMAT = Format("folder", "a study folder", read, write, sniff=is_study_folder, holds=ALL_FEATURES)
