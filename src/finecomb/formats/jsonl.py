"""A JSONL file of plain texts, or of all records of a study.

A line is an object with a `text`; `id`, `context`, `references`, `segments`, `data` and `meta` have the same meaning as
in a document, `prompt` is a context, and all other keys become meta. Alternatively a line is a record under its type:
`{"document": {...}}`, `{"annotation": {...}}`, `{"annotator": ...}`, `{"protocol": ...}`, `{"settings": ...}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, did_you_mean, param
from finecomb.core.guarded_json import load_json
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Settings
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES
from finecomb.formats.imports.guess import find_mark_lists
from finecomb.formats.mark_table import META_SHORTHANDS
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    iter_nonblank_lines,
    parse_json,
    read_first_characters,
)

TYPE_BY_KIND: dict[str, type[Settings | Protocol | Document | Annotator | Annotation]] = {
    "settings": Settings,
    "protocol": Protocol,
    "document": Document,
    "annotator": Annotator,
    "annotation": Annotation,
}
_DOCUMENT_FIELDS = ("id", "text", "context", "references", "segments", "data", "meta")
_CONTEXT_FIELDS = ("prompt", "source", "headline")
_OTHER_FORMAT_KEYS = {
    "label",
    "labels",
    "entities",
    "spans",
    "tokens",
    "sentences",
    "annotations",
    "output",
    "box_score",
    "_input_hash",
}


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read records in file order; a plain text without an ID gets its line number as ID."""
    for number, line in iter_nonblank_lines(path):
        where = f"{path}:{number}"
        value = JsonObject(parse_json(line, where), where).value
        kind = next(iter(value)) if len(value) == 1 else ""
        if kind in TYPE_BY_KIND:
            yield build_record(TYPE_BY_KIND[kind], where, **JsonObject(value[kind], where).value)
        else:
            yield _build_document(value, number, where, options)


def _build_document(value: dict[str, Any], number: int, where: str, options: Options) -> Document:
    theirs = {their: our for our, their in options.columns.items()}
    for our in options.columns:
        if our not in (*_DOCUMENT_FIELDS, "document", *_CONTEXT_FIELDS, *META_SHORTHANDS) and not our.startswith(
            ("context.", "meta.")
        ):
            raise FormatError(
                f"{where}: {param('map', f'{our}=...')}: unknown "
                f"field{did_you_mean(our, [*_DOCUMENT_FIELDS, *_CONTEXT_FIELDS, *META_SHORTHANDS])}"
            )
    named = {theirs.get(name, name): member for name, member in value.items()}
    if "text" not in named and "box_score" in named and isinstance(named.get("summary"), list):
        named["text"] = " ".join(map(str, named.pop("summary")))  # RotoWire stores its text as a list of words
    if "text" not in named:
        raise FormatError(
            f"{where}: 'text' is missing{did_you_mean('text', value)}; name it with {param('map', 'text=NAME')}"
        )
    fields: dict[str, Any] = {name: named[name] for name in _DOCUMENT_FIELDS if named.get(name) is not None}
    fields["id"] = str(named.get("document", named.get("id", f"line-{number}")))
    context = dict(JsonObject(fields.get("context", {}), where).value)
    meta = dict(JsonObject(fields.get("meta", {}), where).value)
    for name, member in named.items():
        if name in (*_DOCUMENT_FIELDS, "document") or member is None:
            continue
        if name in _CONTEXT_FIELDS or name.startswith("context."):
            context[name.removeprefix("context.")] = member
        else:
            meta[name.removeprefix("meta.")] = member
    return build_record(Document, where, **{**fields, "context": context, "meta": meta})


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write every record under its type."""
    names: dict[type[StudyItem], str] = {kind: name for name, kind in TYPE_BY_KIND.items()}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for item in items:
            if type(item) in names:
                file.write(f'{{"{names[type(item)]}":{item.to_json()}}}\n')
        sync_to_disk(file)


def sniff(path: Path) -> bool:
    """Return True if the first line is a record under its type, or a text without keys of other formats."""
    if not path.name.lower().endswith((".jsonl", ".ndjson")) or not path.is_file():
        return False
    try:
        value = load_json(read_first_characters(path, 1 << 20).lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    if set(value) <= set(TYPE_BY_KIND):
        return True
    # texts with marks in any field are read by the format `rows`, which does not lose them
    return "text" in value and not _OTHER_FORMAT_KEYS & set(value) and not find_mark_lists([value])


FORMAT = Format(
    "jsonl",
    "JSON lines",
    read,
    write,
    suffixes=(".jsonl", ".ndjson"),
    sniff=sniff,
    holds=ALL_FEATURES,
    options=frozenset(["columns"]),
)
