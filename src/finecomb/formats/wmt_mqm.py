"""MQM tables of the WMT shared tasks: one error per row between `<v>` and `</v>`, tab-separated without quoting."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finecomb import protocols
from finecomb.core.errors import FormatError, did_you_mean, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note
from finecomb.core.scales import option_value_by_spelling
from finecomb.core.span import TEXT_PART, Span, merge_spans
from finecomb.core.spelling import fold_spelling
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import build_record, iter_csv_rows, read_first_characters, resolve_label_name

COLUMNS = ("system", "doc", "doc_id", "seg_id", "rater", "source", "target", "category", "severity", "comment")
_COLUMN_ALIASES = {"doc_id": "docSegId", "seg_id": "globalSegId"}
"""Column names in files since 2022, by standard name."""
_OPTIONAL_COLUMNS = ("doc_id", "comment")
_NO_ERROR_CATEGORY = "no-error"
SOURCE_PART = "source"


# --- reading -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text without its tags, the tagged spans, and the number of unpaired tags."""

    text: str
    spans: tuple[Span, ...]
    odd: int

    @classmethod
    def parse(cls, text: str, part: str = TEXT_PART) -> TaggedText:
        """Remove the tags. An unclosed `<v>` extends to the end; an unopened `</v>` is ignored.

        >>> TaggedText.parse("a <v>b</v> c").spans
        (Span(start=2, end=3, part='text'),)
        """
        plain, opened, spans, odd = "", [], [], 0
        for piece in re.split(r"(</?v>)", text):
            if piece == "<v>":
                opened.append(len(plain))
            elif piece == "</v>":
                odd += not opened
                spans += [Span(opened.pop(), len(plain), part)] if opened else []
            else:
                plain += piece
        spans += [Span(start, len(plain), part) for start in opened]
        return cls(plain, tuple(sorted(spans)), odd + len(opened))


@dataclass(slots=True)
class _Row:
    """One row: segment, spans and other cells."""

    where: str
    cells: Mapping[str, str]
    source: TaggedText
    target: TaggedText

    @property
    def document_id(self) -> str:
        return f"{self.cells['system']}/{self.cells['doc']}/{self.cells['seg_id']}"

    @property
    def key(self) -> tuple[str, str]:
        return self.document_id, self.cells["rater"]


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read the protocol, a document per segment of each system, raters, and an annotation per rated segment."""
    protocol = options.protocol or protocols.load_shipped("mqm")
    yield protocol
    documents: dict[str, Document] = {}
    raters: dict[str, None] = {}
    last: dict[tuple[str, str], str] = {}
    for row in _read_rows(path):
        _add_document(row, documents)
        raters[row.cells["rater"]] = None
        last[row.key] = row.where
    yield from documents.values()
    yield from (build_record(Annotator, str(path), id=rater, kind="human") for rater in raters)
    open_: dict[tuple[str, str], _RaterSegment] = {}
    counts = _ImportCounts()
    for row in _read_rows(path):
        work = open_.setdefault(row.key, _RaterSegment(row))
        work.add_row(row, protocol, counts)
        if last[row.key] == row.where:
            yield open_.pop(row.key).build_annotation(protocol)
    yield from counts.notes()


def _read_rows(path: Path) -> Iterator[_Row]:
    names: dict[str, str] = {}
    for line, row in iter_csv_rows(path, "\t", csv.QUOTE_NONE):
        names = names or _map_columns(list(row), path)
        cells = {ours: row[theirs] for ours, theirs in names.items()}
        where = f"{path}:{line}"
        for name in ("system", "doc", "seg_id", "rater", "category"):
            cells[name] = cells[name].strip()
            if not cells[name]:
                raise FormatError(f"{where}: column {name!r} is empty")
        yield _Row(where, cells, TaggedText.parse(cells["source"], SOURCE_PART), TaggedText.parse(cells["target"]))
    if not names:
        raise FormatError(f"{path}: the file has no rows; expected the tab-separated columns {', '.join(COLUMNS)}")


def _map_columns(header: list[str], path: Path) -> dict[str, str]:
    """Return the column names in the file by standard name; other columns keep their name."""
    names = {name: name if name in header else _COLUMN_ALIASES.get(name, name) for name in COLUMNS}
    for name, theirs in list(names.items()):
        if theirs not in header:
            if name not in _OPTIONAL_COLUMNS:
                raise FormatError(f"{path}:1: column {name!r} is missing{did_you_mean(name, header)}")
            del names[name]
    return names | {column: column for column in header if column not in names.values()}


def _add_document(row: _Row, documents: dict[str, Document]) -> None:
    """Store the segment of a row, or check that it equals the stored one."""
    earlier = documents.get(row.document_id)
    if earlier is None:
        meta = {"model": row.cells["system"]} | {
            name: row.cells[name] for name in ("doc", "doc_id", "seg_id") if row.cells.get(name)
        }
        context = {SOURCE_PART: row.source.text}
        documents[row.document_id] = build_record(
            Document, row.where, id=row.document_id, text=row.target.text, context=context, meta=meta
        )
    elif (earlier.text, earlier.context[SOURCE_PART]) != (row.target.text, row.source.text):
        name = "target" if earlier.text != row.target.text else SOURCE_PART
        raise FormatError(
            f"{row.where}: column {name!r}: the text differs from an earlier row of segment {row.document_id!r}; use "
            "the same text in all its rows"
        )


@dataclass(slots=True)
class _ImportCounts:
    odd: int = 0
    unmarked: int = 0

    def notes(self) -> Iterator[Note]:
        if self.odd:
            yield Note(
                text=(f"{self.odd:,} tags <v> or </v> are unpaired; an unclosed <v> extends to the end of its text")
            )
        if self.unmarked:
            yield Note(text=f"{self.unmarked:,} errors mark no words; they were kept without spans")


@dataclass
class _RaterSegment:
    """One rater's rows on one segment."""

    first: _Row
    marks: list[Mark] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return "/".join(self.first.key)

    def add_row(self, row: _Row, protocol: Protocol, counts: _ImportCounts) -> None:
        counts.odd += row.source.odd + row.target.odd
        if fold_spelling(row.cells["category"]) == _NO_ERROR_CATEGORY:
            self.comments += [row.cells["comment"]] if row.cells.get("comment") else []
            return
        spans = tuple(sorted(row.target.spans + row.source.spans))
        texts = {TEXT_PART: row.target.text, SOURCE_PART: row.source.text}
        counts.unmarked += not spans
        mark = build_record(
            Mark,
            row.where,
            id=f"{self.id}/{len(self.marks)}",
            spans=spans,
            quotes=tuple(span.extract(texts[span.part]) for span in spans),
            unlocated="" if spans else "the file marks no words",
            label=resolve_label_name(protocol, row.cells["category"], f"{row.where}: column 'category'"),
            answers=_parse_answers(row, protocol),
            meta={name: cell for name, cell in row.cells.items() if name not in COLUMNS and cell},
        )
        self.marks.append(mark)

    def build_annotation(self, protocol: Protocol) -> Annotation:
        document, rater = self.first.key
        return build_record(
            Annotation,
            self.first.where,
            id=self.id,
            document=document,
            annotator=rater,
            protocol=protocol.id,
            marks=tuple(self.marks),
            meta={"comment": "; ".join(self.comments)} if self.comments else {},
        )


def _parse_answers(row: _Row, protocol: Protocol) -> dict[str, Any]:
    answers: dict[str, Any] = {"comment": row.cells["comment"]} if row.cells.get("comment") else {}
    if grade := row.cells["severity"].strip():
        severity = next((question for question in protocol.questions if question.name == "severity"), None)
        values = (
            {fold_spelling(word): value for word, value in option_value_by_spelling(severity).items()}
            if severity
            else {fold_spelling(grade): grade}
        )
        if fold_spelling(grade) not in values:
            near = did_you_mean(grade, values)
            raise FormatError(f"{row.where}: column 'severity': {shorten(grade, 40)!r} is not in {protocol.id}{near}")
        answers["severity"] = values[fold_spelling(grade)]
    return answers


# --- out -----------------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write one row per mark and a `No-error` row per annotation without marks.

    The source is the context `source`, otherwise the only context.
    """
    documents: dict[str, tuple[int, Document]] = {}
    protocols: dict[str, Protocol] = {}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for item in items:
            if isinstance(item, Protocol):
                protocols[item.id] = item
            elif isinstance(item, Document):
                documents[item.id] = len(documents) + 1, item
            elif isinstance(item, Annotation) and item.document in documents:  # exercises belong to the protocol
                number, document = documents[item.document]
                for cells in _annotation_rows(item, document, number, protocols.get(item.protocol)):
                    file.write("\t".join(cells[name] for name in COLUMNS) + "\n")
        sync_to_disk(file)


def _annotation_rows(
    annotation: Annotation, document: Document, number: int, protocol: Protocol | None
) -> Iterator[dict[str, str]]:
    where = f"document {document.id!r}"
    context = document.context
    source = context.get(SOURCE_PART, next(iter(context.values())) if len(context) == 1 else "")
    meta = {
        name: str(document.meta.get(name, default))
        for name, default in {
            "model": "unknown",
            "doc": document.id,
            "doc_id": str(number),
            "seg_id": str(number),
        }.items()
    }
    base = {name: _check_field(cell, f"{where}: {name}") for name, cell in meta.items()}
    base |= {"rater": _check_field(annotation.annotator, "annotator"), "system": base.pop("model")}
    texts = {
        TEXT_PART: _check_field(document.text, f"{where}: text"),
        SOURCE_PART: _check_field(source, f"{where}: source"),
    }
    comment = annotation.meta.get("comment", "")
    none = {"category": "No-error", "severity": "No-error", "comment": _check_field(str(comment), f"{where}: comment")}
    marks = [mark for mark in annotation.marks if mark.label is not None]
    if not marks:
        yield base | none | {"source": texts[SOURCE_PART], "target": texts[TEXT_PART]}
    for mark in marks:
        spans = merge_spans(mark.spans)
        tagged = {
            "source": _insert_tags(texts[SOURCE_PART], spans, SOURCE_PART),
            "target": _insert_tags(texts[TEXT_PART], spans, TEXT_PART),
        }
        yield base | tagged | _mark_cells(mark, protocol)


def _mark_cells(mark: Mark, protocol: Protocol | None) -> dict[str, str]:
    """Return the category and severity of a mark in the spelling of the tables, if the protocol defines one."""
    label = protocol.resolve_label(mark.label) if protocol and mark.label and protocol.has_label(mark.label) else None
    category = label.aliases[0] if label and label.aliases else mark.label or ""
    severity = mark.answers.get("severity", "")
    severity_question = (
        next((question for question in protocol.questions if question.name == "severity"), None) if protocol else None
    )
    options = (
        {option.value: option.title or str(option.value) for option in severity_question.options}
        if severity_question
        else {}
    )
    where = f"mark {mark.id!r}"
    return {
        "category": _check_field(category, f"{where}: label"),
        "severity": _check_field(
            options.get(severity, str(severity)) if not isinstance(severity, tuple) else "", where
        ),
        "comment": _check_field(str(mark.answers.get("comment", "")), f"{where}: comment"),
    }


def _insert_tags(text: str, spans: Iterable[Span], part: str) -> str:
    """Insert tags around spans; at the same position, ends come first, then omissions."""
    edges = [
        edge
        for span in spans
        if span.part == part
        for edge in ([(span.start, 2, "<v>"), (span.end, 0, "</v>")] if len(span) else [(span.start, 1, "<v></v>")])
    ]
    pieces, position = [], 0
    for place, _, tag in sorted(edges):
        pieces += [text[position:place], tag]
        position = place
    return "".join([*pieces, text[position:]])


def _check_field(text: str, where: str) -> str:
    if match := re.search(r"[\t\r\n]|</?v>", text):
        raise FormatError(f"{where}: contains {match[0]!r}, which a WMT table cannot store; use another output format")
    return text


def sniff(path: Path) -> bool:
    """Return True if the first line has the columns of an MQM table."""
    header = read_first_characters(path).partition("\n")[0].rstrip("\r").split("\t")
    return {"system", "rater", "source", "target", "category", "severity"} <= {*header}


FORMAT = Format(
    "wmt-mqm",
    "a WMT MQM table",
    read,
    write,
    sniff=sniff,
    holds=frozenset(
        [
            *("document context", "annotation without marks", "mark severity", "mark comment"),
            *("mark several spans", "mark omission", "mark on context"),
        ]
    ),
    options=frozenset(["protocol"]),
)
