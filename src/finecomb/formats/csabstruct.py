"""CSAbstruct: abstracts as lists of sentences with rhetorical labels.

A sentence is a segment whose title is its label; the text joins the sentences with single spaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, shorten
from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    build_titled_segments,
    iter_nonblank_lines,
    parse_json,
    read_first_characters,
)

KNOWN_KEYS = ("id", "sentences", "labels")


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read one document per line; other keys, such as `confs`, become meta."""
    for line, text in iter_nonblank_lines(path):
        where = f"{path}:{line}"
        fields = JsonObject(parse_json(text, where), where)
        yield _build_document(fields, fields.get("id", str, f"{path.stem}-{line}"))


def _build_document(fields: JsonObject, id: str) -> Document:
    sentences, labels = fields.get_texts("sentences"), fields.get_texts("labels")
    if len(sentences) != len(labels):
        raise fields.build_error(
            f"has {len(sentences)} sentences but {len(labels)} labels; each sentence requires one label"
        )
    return build_record(
        Document,
        fields.where,
        id=id,
        text=" ".join(sentences),
        segments=tuple(build_titled_segments(sentences, labels, " ", fields.where)),
        meta=fields.other_fields(*KNOWN_KEYS),
    )


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write one document per line; white space between segments becomes one space."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for item in items:
            if isinstance(item, Document):
                file.write(json.dumps(_encode_document(item), ensure_ascii=False) + "\n")
        sync_to_disk(file)


def _encode_document(document: Document) -> dict[str, Any]:
    position = 0
    for start, end in [*((segment.start, segment.end) for segment in document.segments), (len(document.text),) * 2]:
        if between := document.text[position:start].strip():
            gap = f"document {document.id!r}: {shorten(between)!r} at [{position}, {start}) is outside any segment"
            raise FormatError(
                f"{gap}; CSAbstruct stores only labelled sentences, so divide the entire text into segments"
            )
        position = end
    return {
        **{name: value for name, value in document.meta.items() if name not in KNOWN_KEYS},
        "id": document.id,
        "sentences": [document.text[segment.start : segment.end] for segment in document.segments],
        "labels": [segment.title or segment.role for segment in document.segments],
    }


def sniff(path: Path) -> bool:
    """Return True for lines of objects with sentences and labels."""
    start = read_first_characters(path, 1 << 16).lstrip()
    return start.startswith("{") and all(re.search(rf'"{name}":\s*\[', start) for name in ("sentences", "labels"))


FORMAT = Format(
    "csabstruct",
    "CSAbstruct",
    read,
    write,
    sniff=sniff,
    holds=frozenset(["document segments", "document meta"]),
)
