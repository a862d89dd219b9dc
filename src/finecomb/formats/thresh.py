"""thresh.tools JSON: a list of texts with edits.

Each item has `target` (the text), `source` (the prompt in Scarecrow's data, otherwise the source), `metadata` and
`edits`. An edit has a `category`, `output_idx` and `input_idx` (ranges in target and source), and an `annotation` with
answers. A type may be selected in steps, `{"fluency_type": {"val": "grammar", "grammar": "somewhat"}}`, which is the
label `fluency/grammar`. If a label takes an antecedent, the first range is the mark and the others are its antecedents.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, ProtocolError, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.question import Option, Question
from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Mark, Note
from finecomb.core.scales import option_value_by_spelling
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.features import KNOWN_ANSWERS
from finecomb.formats.snac import ANNOTATORS_PER_SUMMARY, snac_error_type
from finecomb.formats.source_files import (
    JsonObject,
    build_implied_protocol,
    build_record,
    read_first_characters,
    resolve_label_name,
    stream_json_items,
)
from finecomb.protocols import load_shipped

SEVERITY_BY_WORD: dict[str, Answer] = {"minor": 1, "somewhat": 2, "a lot": 3}
_SEVERITY_WORDS = {value: word for word, value in SEVERITY_BY_WORD.items()}
_KNOWN_KEYS = ("id", "metadata", "source", "target", "edits")
_ANNOTATOR_KEYS = ("annotator", "rater")


@dataclass(frozen=True, slots=True)
class _EditType:
    """Content of an edit: the spelling of its label, its severity, and the rest of its annotation."""

    label: str | None
    severity: Answer | None
    rest: Mapping[str, Any]


@dataclass(slots=True)
class _ReaderState:
    """State while a file is read."""

    protocol: Protocol
    severities: Mapping[str, Answer]
    pooled: bool
    annotator: str
    documents: dict[str, Document] = field(default_factory=dict)
    passes: Counter[tuple[str, str]] = field(default_factory=Counter)
    annotators: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def source_name(self) -> str:
        return _source_name(self.protocol.name)


def _source_name(protocol: str) -> str:
    return "prompt" if protocol == "scarecrow" else "source"


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Yield each item's document once, and its annotation if it has edits; the file is read twice."""
    severities = dict(SEVERITY_BY_WORD)
    if options.protocol:
        of_labels = (question for label in options.protocol.labels for question in label.questions)
        for question in (*options.protocol.questions, *of_labels):
            severities |= option_value_by_spelling(question) if question.name == "severity" else {}
    spellings, pooled = _scan_labels(path, severities)
    reading = _ReaderState(options.protocol or _choose_protocol(path, spellings), severities, pooled, options.annotator)
    yield reading.protocol
    for _, value, line in stream_json_items(path):
        yield from _read_item(JsonObject(value, f"{path}:{line}"), reading)
    # By count: the note for one, and for several
    lines = {
        "unlocated": (
            "edit has no range and is kept without a span",
            "edits have no ranges and are kept without spans",
        ),
        "reused": (
            "ID is used for a second text, which was renamed with -2, -3, ...",
            "IDs are used for a second text, which was renamed with -2, -3, ...",
        ),
        "astral": (
            "target has characters beyond U+FFFF; its ranges were interpreted as code points",
            "targets have characters beyond U+FFFF; their ranges were interpreted as code points",
        ),
    }
    for name, (singular, plural) in lines.items():
        if count := reading.counts[name]:
            yield Note(text=f"{count:,} {singular if count == 1 else plural}")


def _scan_labels(path: Path, severities: Mapping[str, Answer]) -> tuple[set[str], bool]:
    """Return the labels that a file uses, and True if its edits have votes."""
    labels, pooled = set(), False
    for index, value, line in stream_json_items(path):
        if not isinstance(index, int):
            raise FormatError(f"{path}:{line}: expected a list of items, found an object")
        for edit in JsonObject(value, f"{path}:{line}").iter_objects("edits", []):
            labels.add(_parse_edit_type(edit, severities).label)
            pooled = pooled or "votes" in edit.value
    return {label for label in labels if label is not None}, pooled


def _choose_protocol(path: Path, spellings: Iterable[str]) -> Protocol:
    """Return the shipped protocol with all these labels, or a protocol inferred from them."""
    spellings = list(spellings)
    for name in ("scarecrow", "snac") if spellings else ():
        try:
            if all(load_shipped(name).resolve_label(spelling) for spelling in spellings):
                return load_shipped(name)
        except ProtocolError:
            continue
    options = tuple(Option(value=value, title=word) for word, value in SEVERITY_BY_WORD.items())
    texts = [Question(name=name, ask=name.capitalize(), required=False) for name in KNOWN_ANSWERS if name != "severity"]
    severity = Question(name="severity", ask="Severity", scale="ordinal", options=options, required=False)
    return build_implied_protocol(f"thresh-{path.stem}", spellings, questions=(severity, *texts))


def _parse_edit_type(edit: JsonObject, severities: Mapping[str, Answer]) -> _EditType:
    category = edit.get("category", str, None)
    annotation: dict[str, Any] = edit.get("annotation", dict, {})
    name = f"{category}_type"
    value, steps = annotation.get(name), [category] if category is not None else []
    while isinstance(value, dict) and isinstance(value.get("val"), str):
        steps.append(value["val"])
        value = value.get(value["val"])
    severity = severities.get(value) if isinstance(value, str) else None
    if isinstance(value, str) and severity is None and category is not None:
        steps.append(value)
    understood = value is None or (isinstance(value, str) and category is not None)
    other_fields = {
        key: entry for key, entry in annotation.items() if entry is not None and not (key == name and understood)
    }
    if severity is None and isinstance(other_fields.get("severity"), str):
        severity = severities.get(other_fields["severity"])
        other_fields = {key: entry for key, entry in other_fields.items() if severity is None or key != "severity"}
    return _EditType("/".join(steps) or None, severity, other_fields)


def _read_item(item: JsonObject, reading: _ReaderState) -> Iterator[StudyItem]:
    metadata = JsonObject(item.get("metadata", dict, {}), f"{item.where}: 'metadata'")
    document = _build_document(item, metadata, reading)
    if document.id not in reading.documents:
        reading.documents[document.id] = document
        reading.counts["astral"] += any(ord(character) > 0xFFFF for character in document.text)
        yield document
    if item.get("edits", list, None) is None:
        return
    named = next(
        (metadata.get(key, (str, int)) for key in _ANNOTATOR_KEYS if metadata.value.get(key) is not None), "annotator"
    )
    annotator = reading.annotator or str(named)
    if annotator not in reading.annotators:
        reading.annotators.add(annotator)
        yield build_record(Annotator, item.where, id=annotator, kind="pooled" if reading.pooled else "human")
    yield _build_annotation(item, document, annotator, reading)


def _build_document(item: JsonObject, metadata: JsonObject, reading: _ReaderState) -> Document:
    others = item.other_fields(*_KNOWN_KEYS)
    context = {name: value for name, value in others.items() if isinstance(value, str) and value and name != TEXT_PART}
    source = item.get("source", str, "")
    meta = {name: value for name, value in others.items() if name not in context} | metadata.other_fields(
        *_ANNOTATOR_KEYS
    )
    if "system" in meta and "model" not in meta:
        meta["model"] = meta["system"]
    own_id = str(metadata.get("gid", (str, int), None) or item.get("id", (str, int), len(reading.documents) + 1))
    context |= {reading.source_name: source} if source else {}
    document = build_record(Document, item.where, id=own_id, text=item.get("target", str), context=context, meta=meta)
    # Numbering may restart within a file, so a repeated ID gets a suffix
    id, number, content = own_id, 1, (document.text, document.context)
    while (earlier := reading.documents.get(id)) and (earlier.text, earlier.context) != content:
        number += 1
        id = f"{own_id}-{number}"
    reading.counts["reused"] += number > 1 and earlier is None
    return document.model_copy(update={"id": id})


def _build_annotation(item: JsonObject, document: Document, annotator: str, reading: _ReaderState) -> Annotation:
    round = reading.passes[document.id, annotator]
    reading.passes[document.id, annotator] += 1
    id = f"{document.id}/{annotator}" + (f"/{round}" if round else "")
    whose = {"document": document.id, "annotator": annotator, "protocol": reading.protocol.id, "round": round}
    edits = enumerate(item.iter_objects("edits"))
    marks = tuple(_build_mark(f"{id}/{number}", edit, document, reading) for number, edit in edits)
    readers = ANNOTATORS_PER_SUMMARY if reading.pooled and reading.protocol.name == "snac" else None
    return build_record(Annotation, item.where, id=id, **whose, readers=readers, marks=marks)


def _build_mark(id: str, edit: JsonObject, document: Document, reading: _ReaderState) -> Mark:
    typed = _parse_edit_type(edit, reading.severities)
    label = None if typed.label is None else resolve_label_name(reading.protocol, typed.label, edit.where)
    output = _parse_ranges(edit, "output_idx", document, TEXT_PART)
    marked, earlier = output, list[Span]()
    if label is not None and reading.protocol.resolve_label(label).antecedent != "none":
        marked, earlier = output[:1], output[1:]
    spans = sorted(marked + _parse_ranges(edit, "input_idx", document, reading.source_name))
    # Answers to known questions; other fields of the edit's type are metadata
    questions = {*KNOWN_ANSWERS, *(question.name for question in reading.protocol.questions_for_label(label))}
    answers: dict[str, Any] = {} if typed.severity is None else {"severity": typed.severity}
    meta: dict[str, Any] = {}
    for name, value in typed.rest.items():
        is_answer = name in questions - {"severity"} and isinstance(value, str | bool | int | float)
        (answers if is_answer else meta)[name] = value
    meta |= edit.other_fields("id", "category", "output_idx", "input_idx", "annotation", "votes")
    reading.counts["unlocated"] += not spans
    return build_record(
        Mark,
        edit.where,
        id=id,
        spans=spans,
        quotes=_extract_quotes(spans, document),
        unlocated="" if spans else "the file gives no range",
        label=label,
        answers=answers,
        antecedents=Antecedents(spans=tuple(sorted(earlier)), quotes=_extract_quotes(sorted(earlier), document))
        if earlier
        else None,
        votes=edit.get("votes", int, None),
        meta=meta,
    )


def _parse_ranges(edit: JsonObject, name: str, document: Document, part: str) -> list[Span]:
    text = document.part_text(part) or ""
    spans: list[Span] = []
    for value in edit.get(name, list, []):
        if not (isinstance(value, list) and len(value) == 2 and all(type(edge) is int for edge in value)):
            raise edit.build_error(f"{name!r}: expected ranges [start, end], found {shorten(repr(value), 40)}")
        start, end = value
        if not 0 <= start <= end <= len(text):
            what = f"the {'target' if part == TEXT_PART else 'source'}, which has {len(text)} characters"
            raise edit.build_error(f"{name!r}: [{start}, {end}] is not within {what}")
        spans.append(Span(start, end, part))
    return spans


def _extract_quotes(spans: Iterable[Span], document: Document) -> tuple[str, ...]:
    return tuple(span.extract(document.part_text(span.part) or "") for span in spans)


# --- writing -----------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write an item per annotation, and an item without edits per document without annotations."""
    documents: dict[str, Document] = {}
    antecedents: set[tuple[str, str | None]] = set()
    waiting: dict[str, None] = {}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        comma = "[\n"
        for item in items:
            if isinstance(item, Document):
                documents[item.id] = item
                waiting[item.id] = None
            elif isinstance(item, Protocol):
                antecedents |= {(item.id, label.name) for label in item.labels if label.antecedent != "none"}
            elif isinstance(item, Annotation) and item.document in documents:
                waiting.pop(item.document, None)
                file.write(comma + _encode_annotation(item, documents[item.document], antecedents))
                comma = ",\n"
        for id in waiting:
            file.write(comma + _to_json_line(_encode_document(documents[id], "")))
            comma = ",\n"
        file.write("[]\n" if comma.startswith("[") else "\n]\n")
        sync_to_disk(file)


def _to_json_line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _encode_document(document: Document, protocol: str) -> dict[str, Any]:
    source = _source_name(protocol.partition("@")[0])
    others = {name: text for name, text in document.context.items() if name != source and name not in _KNOWN_KEYS}
    meta = dict(document.meta)
    return {
        "id": document.id,
        "metadata": meta,
        "source": document.context.get(source, ""),
        "target": document.text,
    } | others


def _encode_annotation(annotation: Annotation, document: Document, antecedents: set[tuple[str, str | None]]) -> str:
    base = _encode_document(document, annotation.protocol)
    base["metadata"] |= {"annotator": annotation.annotator}
    edits = []
    for number, mark in enumerate(annotation.marks):
        takes_antecedent = (annotation.protocol, mark.label) in antecedents
        edits.append({"id": number, **_encode_edit(mark, annotation.protocol, takes_antecedent)})
    return _to_json_line(base | {"edits": edits})


def _encode_edit(mark: Mark, protocol: str, takes_antecedent: bool) -> dict[str, Any]:
    source = _source_name(protocol.partition("@")[0])
    output = [[span.start, span.end] for span in mark.spans if span.part == TEXT_PART]
    inputs = [[span.start, span.end] for span in mark.spans if span.part == source]
    if takes_antecedent:  # a second range would be read as an antecedent
        output = output[:1]
    if output and mark.antecedents:
        output += [[span.start, span.end] for span in mark.antecedents.spans if span.part == TEXT_PART]
    edit: dict[str, Any] = {}
    annotation: dict[str, Any] = dict(mark.meta)
    if mark.label is not None:
        edit["category"], chosen = _encode_label(mark, protocol)
        annotation |= {f"{edit['category']}_type": chosen} if chosen is not None else {}
    elif "severity" in mark.answers:
        annotation["severity"] = _severity_word(mark.answers["severity"])
    annotation |= {name: mark.answers[name] for name in KNOWN_ANSWERS if name != "severity" and name in mark.answers}
    edit |= {name: ranges for name, ranges in (("output_idx", output), ("input_idx", inputs)) if ranges}
    edit |= {"votes": mark.votes} if mark.votes is not None else {}
    return edit | ({"annotation": annotation} if annotation else {})


def _encode_label(mark: Mark, protocol: str) -> tuple[str, Any]:
    """Return the category of an edit and the choices below it: further parts of the label, and the severity."""
    first, *steps = snac_error_type(mark.label or "", protocol).replace("-", "_").split("/")
    severity = mark.answers.get("severity")
    chosen: Any = None if severity is None else _severity_word(severity)
    for step in reversed(steps):
        chosen = {"val": step} | ({} if chosen is None else {step: chosen})
    return first, chosen


def _severity_word(severity: Answer) -> str:
    return _SEVERITY_WORDS.get(severity, str(severity))


def sniff(path: Path) -> bool:
    """Return True for a list whose items have a target and edits."""
    start = read_first_characters(path, 1 << 16) if path.is_file() else ""
    return start.lstrip().startswith("[") and '"target"' in start and '"edits"' in start


FORMAT = Format(
    *("thresh", "thresh JSON", read, write),
    suffixes=(".json",),
    sniff=sniff,
    holds=frozenset(
        [
            *("document context", "document meta", "annotation round", "annotation without marks", "mark votes"),
            *("mark antecedents", "mark without label", "mark omission", "mark meta"),
            *(f"mark {name}" for name in KNOWN_ANSWERS),
        ]
    ),
    options=frozenset(["protocol", "annotator"]),
)
