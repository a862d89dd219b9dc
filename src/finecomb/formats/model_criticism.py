"""JSON of Deng, Kuleshov and Rush (2022): a list of articles, each with its sections and their names.

A section is a segment whose title is its name. The text joins the sections with blank lines, as the authors' programs
do. Generated articles may have `null` as names, and then sections have no titles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, shorten
from finecomb.core.records import Document, Segment
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    build_titled_segments,
    read_first_characters,
    stream_json_items,
)

SECTION_SEPARATOR = "\n\n"
KNOWN_KEYS = ("id", "sections", "section_names")


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read one document per article; other keys, such as `predicted_section_names`, become meta."""
    for index, value, line in stream_json_items(path):
        if not isinstance(index, int):
            raise FormatError(f"{path}:{line}: expected a list of articles, found an object")
        fields = JsonObject(value, f"{path}:{line}")
        yield _build_document(fields, fields.get("id", str, f"{path.stem}-{index + 1}"))


def _build_document(fields: JsonObject, id: str) -> Document:
    sections = fields.get_texts("sections")
    names = fields.get_texts("section_names") if fields.value.get("section_names") is not None else [""] * len(sections)
    if len(sections) != len(names):
        raise fields.build_error(
            f"has {len(sections)} sections but {len(names)} section_names; each section requires one name"
        )
    return build_record(
        Document,
        fields.where,
        id=id,
        text=SECTION_SEPARATOR.join(sections),
        segments=tuple(build_titled_segments(sections, names, SECTION_SEPARATOR, fields.where)),
        meta=fields.other_fields(*KNOWN_KEYS),
    )


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a list of articles; a document without segments is one section. White space between segments is lost."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        separator = "[\n"
        for item in items:
            if isinstance(item, Document):
                file.write(separator + json.dumps(_encode_document(item), ensure_ascii=False))
                separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")
        sync_to_disk(file)


def _encode_document(document: Document) -> dict[str, Any]:
    position = 0
    for start, end in [*((segment.start, segment.end) for segment in document.segments), (len(document.text),) * 2]:
        if document.segments and (between := document.text[position:start].strip()):
            gap = f"document {document.id!r}: {shorten(between)!r} at [{position}, {start}) is outside any segment"
            raise FormatError(f"{gap}; an article stores only sections, so divide the entire text into segments")
        position = end
    parts = document.segments or (Segment(start=0, end=len(document.text)),)
    names = [segment.title for segment in parts]
    return {
        **{name: value for name, value in document.meta.items() if name not in KNOWN_KEYS},
        "id": document.id,
        "sections": [document.text[segment.start : segment.end] for segment in parts],
        "section_names": names if any(names) else None,
    }


def sniff(path: Path) -> bool:
    """Return True for a list whose first object has sections and their names."""
    start = read_first_characters(path, 1 << 16).lstrip()
    return start.startswith("[") and bool(
        re.match(r'\[\s*\{.*?"(?:sections|section_names)":\s*(?:\[|null)', start, re.S)
    )


FORMAT = Format(
    "model-criticism",
    "Articles of Deng et al. (2022)",
    read,
    write,
    sniff=sniff,
    holds=frozenset(["document segments", "document meta"]),
)
