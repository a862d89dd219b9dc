"""Columns of a study's data frames, and lossless conversion between records and frames."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from pydantic_core import from_json, to_json

from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Mark, Unit
from finecomb.core.span import TEXT_PART, Span

SPANS_TYPE = pl.List(pl.Struct({"part": pl.String, "start": pl.Int64, "end": pl.Int64}))
SEGMENTS_TYPE = pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64, "title": pl.String, "role": pl.String}))
TIME_TYPE = pl.Datetime("us", "UTC")
STRING_LIST_TYPE = pl.List(pl.String)
JSON_TYPE = pl.String  # JSON text, null when empty

ColumnSpecs = Mapping[str, tuple[pl.DataType | type[pl.DataType], str]]

DOCUMENT_COLUMNS: ColumnSpecs = {
    "id": (pl.String, "unique in the study"),
    "text": (pl.String, "text to judge"),
    "context": (JSON_TYPE, "named texts shown next to the text, as a JSON object"),
    "references": (STRING_LIST_TYPE, "human texts for the same input"),
    "segments": (SEGMENTS_TYPE, "start, end, title and role of each segment"),
    "data": (JSON_TYPE, "data from which the text was generated"),
    "meta": (JSON_TYPE, "facts hidden from annotators; `frames.meta_entry('model')` selects one"),
}
ANNOTATOR_COLUMNS: ColumnSpecs = {
    "id": (pl.String, "unique in the study"),
    "kind": (pl.String, "human, llm, detector, checker, gold or pooled"),
    "condition": (pl.String, "experimental condition, or empty"),
    "cell": (pl.String, "cell of the study's design, or empty"),
    "factors": (JSON_TYPE, "factors of the cell"),
    "survey": (JSON_TYPE, "survey answers"),
    "qualification": (JSON_TYPE, "protocol, score, passed and attempts"),
    "platform": (pl.String, "recruitment platform, or empty"),
    "excluded": (JSON_TYPE, "object with by, when and reason; null if not excluded"),
    "meta": (JSON_TYPE, "additional data"),
}
ANNOTATION_COLUMNS: ColumnSpecs = {
    "id": (pl.String, "unique in the study"),
    "document": (pl.String, "ID of the document"),
    "annotator": (pl.String, "ID of the annotator"),
    "protocol": (pl.String, "name and version, e.g. snac@2"),
    "round": (pl.Int64, "0 for the first pass"),
    "about": (pl.String, "ID of the annotation or mark that is judged, or null"),
    "phase": (pl.String, "training, qualification or work"),
    "status": (pl.String, "draft, submitted or excluded"),
    "answers": (JSON_TYPE, "answers to the document's questions"),
    "made_from": (STRING_LIST_TYPE, "IDs of the annotations from which it was merged"),
    "readers": (pl.Int64, "number of people pooled, or null"),
    "excluded": (JSON_TYPE, "object with by, when and reason; null if not excluded"),
    "started": (TIME_TYPE, "time of first opening"),
    "submitted": (TIME_TYPE, "time of submission"),
    "seconds": (pl.Float64, "elapsed time in seconds"),
    "active_seconds": (pl.Float64, "active time in seconds"),
    "meta": (JSON_TYPE, "additional data"),
}
MARK_COLUMNS: ColumnSpecs = {
    "id": (pl.String, "unique in the study"),
    "annotation": (pl.String, "ID of the annotation"),
    "document": (pl.String, "ID of the document"),
    "annotator": (pl.String, "ID of the annotator"),
    "protocol": (pl.String, "name and version"),
    "label": (pl.String, "name of the label, or null"),
    "spans": (SPANS_TYPE, "part, start and end in code points; empty if unlocated"),
    "quotes": (STRING_LIST_TYPE, "quote of each span"),
    "answers": (JSON_TYPE, "severity, explanation and other answers, as a JSON object"),
    "antecedents": (SPANS_TYPE, "earlier words that the mark refers to; null if none"),
    "antecedent_quotes": (STRING_LIST_TYPE, "quotes of the antecedents"),
    "antecedent_unlocated": (pl.String, "reason why the antecedents could not be located, or empty"),
    "confidence": (pl.Float64, "0 to 1, or null"),
    "votes": (pl.Int64, "number of annotators who marked the error, in pooled or merged data"),
    "label_votes": (JSON_TYPE, "votes by label, if no label has a majority"),
    "item": (pl.String, "value shared by marks that the source treats as one error"),
    "made_from": (STRING_LIST_TYPE, "IDs of the marks from which it was merged"),
    "alternatives": (JSON_TYPE, "alternative ways to mark the same error"),
    "basis": (pl.String, "record or base-rate, for a checker's marks"),
    "unlocated": (pl.String, "reason why `spans` is empty, if it is"),
    "meta": (JSON_TYPE, "additional data"),
}
UNIT_COLUMNS: ColumnSpecs = {
    "annotation": (pl.String, "ID of the annotation"),
    "document": (pl.String, "ID of the document"),
    "annotator": (pl.String, "ID of the annotator"),
    "protocol": (pl.String, "name and version"),
    "start": (pl.Int64, "start in code points"),
    "end": (pl.Int64, "end in code points, exclusive"),
    "answers": (JSON_TYPE, "answers to the unit's questions"),
    "scores": (JSON_TYPE, "detector score by label"),
    "seconds": (pl.Float64, "time in seconds"),
}
COLUMNS_BY_FRAME: Mapping[str, ColumnSpecs] = {
    "documents": DOCUMENT_COLUMNS,
    "annotators": ANNOTATOR_COLUMNS,
    "annotations": ANNOTATION_COLUMNS,
    "marks": MARK_COLUMNS,
    "units": UNIT_COLUMNS,
}


def polars_schema(columns: ColumnSpecs) -> dict[str, pl.DataType | type[pl.DataType]]:
    """Return the Polars type of each column."""
    return {name: kind for name, (kind, _) in columns.items()}


def build_frame(columns: ColumnSpecs, rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """Build a frame with these columns from rows with the same column order; lists must be given as JSON text."""
    rows = list(rows)
    series: list[pl.Series] = []
    for number, (name, (kind, _)) in enumerate(columns.items()):
        values = [row[number] for row in rows]
        if isinstance(kind, pl.List):  # decoding JSON is 50 times faster than building from lists
            series.append(pl.Series(name, values, pl.String, strict=True).str.json_decode(kind))
        else:
            series.append(pl.Series(name, values, kind, strict=True))
    return pl.DataFrame(series)


def parse_json_object(cell: str | None) -> dict[str, Any]:
    """Parse a cell of a JSON column into an object; null gives an empty object.

    >>> parse_json_object('{"model": "small", "top_p": 0.9}'), parse_json_object(None)
    ({'model': 'small', 'top_p': 0.9}, {})
    """
    value: dict[str, Any] = from_json(cell) if cell else {}
    return value


def parse_json_list(cell: str | None) -> list[Any]:
    """Parse a cell of a JSON column, e.g. `alternatives`, into a list; null gives an empty list."""
    value: list[Any] = from_json(cell) if cell else []
    return value


def parse_answers(cell: str | None) -> dict[str, Answer]:
    """Parse the answers in a cell; lists of choices become tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parse_json_object(cell).items()}


def json_entry_names(column: pl.Series) -> list[str]:
    """Return the distinct names of the entries in a JSON column, in order of first appearance."""
    cells = column.drop_nulls().unique(
        maintain_order=True
    )  # Many cells are equal, so each distinct one is parsed once.
    return list(dict.fromkeys(name for cell in cells if cell for name in from_json(cell)))


def json_entry(column: str, name: str) -> pl.Expr:
    """Return an expression for an entry of a JSON column, e.g. `json_entry("answers", "severity")`, as text or null."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return pl.col(column).str.json_path_match(f"$.{name}").alias(name)
    return pl.col(column).map_elements(lambda cell: _json_entry_text(cell, name), pl.String).alias(name)


def meta_entry(name: str) -> pl.Expr:
    """Return an expression for one entry of a `meta` column as text; null if absent.

    For example, `study.documents.select(meta_entry("model"))`. Unlike `json_entry` it keeps every digit of a long
    number, since meta holds IDs of other systems.
    """
    return pl.col("meta").map_elements(lambda cell: _json_entry_text(cell, name), pl.String).alias(name)


def _json_entry_text(cell: str, name: str) -> str | None:
    value = parse_json_object(cell).get(name)
    return value if value is None or isinstance(value, str) else to_json(value).decode()


def encode_json_cell(value: Any) -> str | None:
    """Return a value encoded as JSON text, or None if it is empty."""
    return None if value is None or value == {} or value == () else to_json(value).decode()


def encode_list_cell(values: Iterable[Any]) -> str:
    """Encode a list as JSON text; `[]` if it is empty."""
    return to_json(values).decode() if values else "[]"


_TEXT_SPAN_TEMPLATE = f'{{"part":"{TEXT_PART}","start":%d,"end":%d}}'


def encode_spans_cell(spans: Sequence[Span]) -> str:
    """Encode spans as JSON text."""
    on_text = [_TEXT_SPAN_TEMPLATE % (span.start, span.end) for span in spans if span.part == TEXT_PART]
    if len(on_text) == len(spans):  # the usual case, and faster; names of other parts may need escaping
        return f"[{','.join(on_text)}]"
    return encode_list_cell([{"part": span.part, "start": span.start, "end": span.end} for span in spans])


def document_row(document: Document) -> tuple[Any, ...]:
    """Return a document as a row with `DOCUMENT_COLUMNS`."""
    d = document
    data = None if d.data is None else to_json(d.data).decode()
    return (
        d.id,
        d.text,
        encode_json_cell(d.context),
        encode_list_cell(d.references),
        encode_list_cell(d.segments),
        data,
        encode_json_cell(d.meta),
    )


def annotator_row(annotator: Annotator) -> tuple[Any, ...]:
    """Return an annotator as a row with `ANNOTATOR_COLUMNS`."""
    a = annotator
    qualification = a.qualification.to_json() if a.qualification else None
    excluded = a.excluded.to_json() if a.excluded else None
    assigned = (a.condition, a.cell, encode_json_cell(a.factors))
    return (
        a.id,
        a.kind,
        *assigned,
        encode_json_cell(a.survey),
        qualification,
        a.platform,
        excluded,
        encode_json_cell(a.meta),
    )


def annotation_row(annotation: Annotation) -> tuple[Any, ...]:
    """Return an annotation as a row with `ANNOTATION_COLUMNS`."""
    a = annotation
    key = (a.id, a.document, a.annotator, a.protocol, a.round, a.about, a.phase, a.status)
    excluded = a.excluded.to_json() if a.excluded else None
    times = (a.started, a.submitted, a.seconds, a.active_seconds)
    return (
        *key,
        encode_json_cell(a.answers),
        encode_list_cell(a.made_from),
        a.readers,
        excluded,
        *times,
        encode_json_cell(a.meta),
    )


def mark_row(mark: Mark, annotation: Annotation) -> tuple[Any, ...]:
    """Return a mark as a row with `MARK_COLUMNS`."""
    m, before = mark, mark.antecedents
    owner = (annotation.id, annotation.document, annotation.annotator, annotation.protocol)
    antecedents = (
        (encode_spans_cell(before.spans), encode_list_cell(before.quotes), before.unlocated)
        if before
        else (None, None, None)
    )
    votes = (
        m.confidence,
        m.votes,
        None if m.label_votes is None else to_json(m.label_votes).decode(),
        m.item,
        encode_list_cell(m.made_from),
        encode_json_cell(m.alternatives),
    )
    return (
        *(
            m.id,
            *owner,
            m.label,
            encode_spans_cell(m.spans),
            encode_list_cell(m.quotes),
            encode_json_cell(m.answers),
            *antecedents,
        ),
        *(*votes, m.basis, m.unlocated, encode_json_cell(m.meta)),
    )


def unit_row(unit: Unit, annotation: Annotation) -> tuple[Any, ...]:
    """Return a unit as a row with `UNIT_COLUMNS`."""
    owner = (annotation.id, annotation.document, annotation.annotator, annotation.protocol)
    return (*owner, unit.start, unit.end, encode_json_cell(unit.answers), encode_json_cell(unit.scores), unit.seconds)


_JSON_COLUMNS = frozenset(
    "context data meta factors survey qualification excluded answers label_votes alternatives scores".split()
)


def _parse_row(row: dict[str, Any], drop: tuple[str, ...] = ()) -> dict[str, Any]:
    """Convert a row to keyword arguments for its record: parse JSON, and omit nulls so that defaults apply."""
    filled = {name: value for name, value in row.items() if value is not None and name not in drop}
    return {name: from_json(value) if name in _JSON_COLUMNS else value for name, value in filled.items()}


def _build_records(frame: pl.DataFrame, make: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    for row in frame.iter_rows(named=True):
        yield make(row)


def iter_documents(frame: pl.DataFrame) -> Iterator[Document]:
    """Iterate over a documents frame as records."""
    yield from _build_records(frame, lambda row: Document.model_validate(_parse_row(row)))


def iter_annotators(frame: pl.DataFrame) -> Iterator[Annotator]:
    """Iterate over an annotators frame as records."""
    yield from _build_records(frame, lambda row: Annotator.model_validate(_parse_row(row)))


def iter_annotations(annotations: pl.DataFrame, marks: pl.DataFrame, units: pl.DataFrame) -> Iterator[Annotation]:
    """Iterate over an annotations frame as records with their marks and units."""
    marks_by = _group_by_annotation(marks, _mark_from_row)
    units_by = _group_by_annotation(units, _unit_from_row)
    for row in annotations.iter_rows(named=True):
        contents = {"marks": marks_by.get(row["id"], ()), "units": units_by.get(row["id"], ())}
        yield Annotation.model_validate(_parse_row(row) | contents)


def iter_marks(frame: pl.DataFrame) -> Iterator[Mark]:
    """Iterate over a marks frame as records."""
    return _build_records(frame, _mark_from_row)


def _group_by_annotation(frame: pl.DataFrame, make: Callable[[dict[str, Any]], Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for row in frame.iter_rows(named=True):
        groups.setdefault(row["annotation"], []).append(make(row))
    return groups


_OWNER_COLUMNS = ("annotation", "document", "annotator", "protocol")


def parse_spans(cell: Iterable[Mapping[str, Any]]) -> tuple[Span, ...]:
    """Parse a cell of a `spans` column."""
    return tuple(Span(span["start"], span["end"], span["part"]) for span in cell)


def text_by_part(documents: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Return the text of every part of a documents frame (text and contexts), by document and part."""
    texts: dict[tuple[str, str], str] = {}
    for id, text, context in documents.select("id", "text", "context").iter_rows():
        texts[id, TEXT_PART] = text
        texts |= {(id, name): words for name, words in parse_json_object(context).items()}
    return texts


def _mark_from_row(row: dict[str, Any]) -> Mark:
    before = ("antecedents", "antecedent_quotes", "antecedent_unlocated")
    values = _parse_row(row, drop=(*_OWNER_COLUMNS, *before)) | {
        "label": row["label"],
        "spans": parse_spans(row["spans"]),
    }
    if row["antecedents"] is not None:
        spans, quotes, unlocated = (row[name] for name in before)
        values["antecedents"] = Antecedents(spans=parse_spans(spans), quotes=tuple(quotes), unlocated=unlocated or "")
    return Mark.model_validate(values)


def _unit_from_row(row: dict[str, Any]) -> Unit:
    return Unit.model_validate(_parse_row(row, drop=_OWNER_COLUMNS))


def group_sort_key(key: Iterable[object]) -> tuple[tuple[int, float, str], ...]:
    """Return a sort key for group values: numbers first, then words, then missing values.

    >>> sorted([("1.0",), ("0.4",), ("none",), ("10",), (None,)], key=group_sort_key)
    [('0.4',), ('1.0',), ('10',), ('none',), (None,)]
    """
    parts: list[tuple[int, float, str]] = []
    for value in key:
        try:
            parts.append((2, 0.0, "") if value is None else (0, float(str(value)), str(value)))
        except ValueError:
            parts.append((1, 0.0, str(value)))
    return tuple(parts)


def sort_by_groups(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Sort the rows of a table by the values of the `by` columns."""
    keys = table.select(by).rows()
    return table[sorted(range(len(table)), key=lambda row: group_sort_key(keys[row]))]
