"""thresh.tools JSON: a list of texts with edits.

Each item has `target` (the text), `source` (the prompt in Scarecrow's data, else the source), `metadata` and `edits`.
An edit has a `category`, `output_idx` and `input_idx` (ranges in target and source), and an `annotation` with answers.
A type may be chosen in steps, `{"fluency_type": {"val": "grammar", "grammar": "somewhat"}}`, which is the label
`fluency/grammar`. Where a label takes an antecedent, the first range is the mark and the others are its antecedents.
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
from finecomb.core.scales import option_values
from finecomb.core.span import TEXT, Span
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.features import KNOWN_ANSWERS
from finecomb.formats.snac import ANNOTATORS_PER_SUMMARY, error_type
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    implied_protocol,
    json_items,
    read_start,
    resolve_label,
)
from finecomb.protocols import load_shipped

SEVERITIES: dict[str, Answer] = {"minor": 1, "somewhat": 2, "a lot": 3}
_SEVERITY_WORDS = {value: word for word, value in SEVERITIES.items()}
_KNOWN_KEYS = ("id", "metadata", "source", "target", "edits")
_ANNOTATOR_KEYS = ("annotator", "rater")


@dataclass(frozen=True, slots=True)
class _EditType:
    """What an edit says: its label as spelled, its severity and the rest of its annotation."""

    label: str | None
    severity: Answer | None
    rest: Mapping[str, Any]


@dataclass(slots=True)
class _ReaderState:
    """What is known while a file is read."""

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
    """Each item's document, once, and its annotation, where it has edits; the file is read twice."""
    severities = SEVERITIES | _severity_values(options.protocol)
    spellings, pooled = _scan_labels(path, severities)
    reading = _ReaderState(options.protocol or _choose_protocol(path, spellings), severities, pooled, options.annotator)
    yield reading.protocol
    for _, value, line in json_items(path):
        yield from _read_item(JsonObject(value, f"{path}:{line}"), reading)
    lines = {
        "unlocated": "edits have no ranges; they are kept without a place",
        "reused": "ids stand for a second text, which got the id with -2, -3, ...",
        "astral": "targets have characters beyond U+FFFF; ranges were taken to count code points",
    }
    yield from (Note(text=f"{reading.counts[name]:,} {line}") for name, line in lines.items() if reading.counts[name])


def _scan_labels(path: Path, severities: Mapping[str, Answer]) -> tuple[set[str], bool]:
    """The labels that a file uses, and whether its edits have votes."""
    labels, pooled = set(), False
    for index, value, line in json_items(path):
        if not isinstance(index, int):
            raise FormatError(f"{path}:{line}: expected a list of items, found an object")
        for edit in JsonObject(value, f"{path}:{line}").iter_objects("edits", []):
            labels.add(_parse_edit_type(edit, severities).label)
            pooled = pooled or "votes" in edit.value
    return {label for label in labels if label is not None}, pooled


def _choose_protocol(path: Path, spellings: Iterable[str]) -> Protocol:
    """The shipped protocol that has all these labels, else one made of them."""
    spellings = list(spellings)
    for name in ("scarecrow", "snac") if spellings else ():
        try:
            if all(load_shipped(name).resolve_label(spelling) for spelling in spellings):
                return load_shipped(name)
        except ProtocolError:
            continue
    options = tuple(Option(value=value, title=word) for word, value in SEVERITIES.items())
    texts = [Question(name=name, ask=name.capitalize(), required=False) for name in KNOWN_ANSWERS if name != "severity"]
    severity = Question(name="severity", ask="Severity", scale="ordinal", options=options, required=False)
    return implied_protocol(f"thresh-{path.stem}", spellings, questions=(severity, *texts))


def _severity_values(protocol: Protocol | None) -> dict[str, Answer]:
    """The values of a protocol's severities by the words for them."""
    if protocol is None:
        return {}
    questions = [*protocol.questions, *(question for label in protocol.labels for question in label.questions)]
    return {
        word: value
        for question in questions
        if question.name == "severity"
        for word, value in option_values(question).items()
    }


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
    rest = {key: entry for key, entry in annotation.items() if entry is not None and not (key == name and understood)}
    if severity is None and isinstance(rest.get("severity"), str):
        severity = severities.get(rest["severity"])
        rest = {key: entry for key, entry in rest.items() if severity is None or key != "severity"}
    return _EditType("/".join(steps) or None, severity, rest)


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
    number = len(reading.documents) + 1
    others = item.other_fields(*_KNOWN_KEYS)
    context = {name: value for name, value in others.items() if isinstance(value, str) and value and name != TEXT}
    source = item.get("source", str, "")
    meta = {name: value for name, value in others.items() if name not in context} | metadata.other_fields(
        *_ANNOTATOR_KEYS
    )
    if "system" in meta and "model" not in meta:
        meta["model"] = meta["system"]
    id = str(metadata.get("gid", (str, int), None) or item.get("id", (str, int), number))
    context |= {reading.source_name: source} if source else {}
    return _with_unique_id(
        build_record(Document, item.where, id=id, text=item.get("target", str), context=context, meta=meta), reading
    )


def _with_unique_id(document: Document, reading: _ReaderState) -> Document:
    """The document under an id that no other text has: ids may start anew within a file."""
    id, number = document.id, 1
    while (earlier := reading.documents.get(id)) and (earlier.text, earlier.context) != (
        document.text,
        document.context,
    ):
        number += 1
        id = f"{document.id}-{number}"
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
    label = None if typed.label is None else resolve_label(reading.protocol, typed.label, edit.where)
    output = _parse_ranges(edit, "output_idx", document, TEXT)
    marked, earlier = output, list[Span]()
    if label is not None and reading.protocol.resolve_label(label).antecedent != "none":
        marked, earlier = output[:1], output[1:]
    spans = sorted(marked + _parse_ranges(edit, "input_idx", document, reading.source_name))
    answers, meta = _split_answers(typed, reading.protocol, label)
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


def _split_answers(typed: _EditType, protocol: Protocol, label: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answers to questions we know, and whatever else the annotation holds."""
    names = {*KNOWN_ANSWERS, *(question.name for question in protocol.questions_of(label))} - {"severity"}
    answers = {
        name: value
        for name, value in typed.rest.items()
        if name in names and isinstance(value, str | bool | int | float)
    }
    rest = {name: value for name, value in typed.rest.items() if name not in answers}
    severity: dict[str, Any] = {} if typed.severity is None else {"severity": typed.severity}
    return severity | answers, rest


def _parse_ranges(edit: JsonObject, name: str, document: Document, part: str) -> list[Span]:
    text = document.part(part) or ""
    return [_parse_range(value, edit, name, text, part) for value in edit.get(name, list, [])]


def _parse_range(value: Any, edit: JsonObject, name: str, text: str, part: str) -> Span:
    pair = value if isinstance(value, list) and len(value) == 2 and all(type(edge) is int for edge in value) else None
    if pair is None:
        raise edit.error(f"{name!r}: expected ranges [start, end], found {shorten(repr(value), 40)}")
    start, end = pair
    if not 0 <= start <= end <= len(text):
        what = "target" if part == TEXT else "source"
        raise edit.error(f"{name!r}: [{start}, {end}] does not lie in the {what}, which has {len(text)} characters")
    return Span(start, end, part)


def _extract_quotes(spans: Iterable[Span], document: Document) -> tuple[str, ...]:
    return tuple(span.extract(document.part(span.part) or "") for span in spans)


# --- writing -----------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write one item for each annotation, and one without edits for each document that nobody annotated."""
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
    output = [[span.start, span.end] for span in mark.spans if span.part == TEXT]
    inputs = [[span.start, span.end] for span in mark.spans if span.part == source]
    if takes_antecedent:  # a second range would be read as an antecedent
        output = output[:1]
    if output and mark.antecedents:
        output += [[span.start, span.end] for span in mark.antecedents.spans if span.part == TEXT]
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
    """The category, and what was chosen below it: further steps of the label and the severity's word."""
    first, *steps = error_type(mark.label or "", protocol).replace("-", "_").split("/")
    severity = mark.answers.get("severity")
    chosen: Any = None if severity is None else _severity_word(severity)
    for step in reversed(steps):
        chosen = {"val": step} | ({} if chosen is None else {step: chosen})
    return first, chosen


def _severity_word(severity: Answer) -> str:
    return _SEVERITY_WORDS.get(severity, str(severity))


def sniff(path: Path) -> bool:
    """Whether it is a list whose items have a target and edits."""
    start = read_start(path, 1 << 16) if path.is_file() else ""
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
