"""Label Studio's JSON export (and import): tasks with their data, annotations and predictions.

Label Studio counts offsets in UTF-16 units, as JavaScript does; they are converted only by `Utf16Offsets`. Controls on
a region answer questions about that mark, and other controls answer questions about the document; the name of a control
is the name of its question. A relation `antecedent` leads from a mark to its antecedent. A relation `continued` links
further spans of a mark to its first span, because a region has only one span.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, did_you_mean, param, shorten
from finecomb.core.guarded_json import load_json
from finecomb.core.protocol import Protocol
from finecomb.core.question import Option, Question
from finecomb.core.quotes import find_at_offsets_or_unique
from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Exclusion, Mark, Note
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.spelling import fold_spelling
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.features import DOCUMENT_FIELDS, KNOWN_ANSWERS
from finecomb.formats.source_files import (
    JsonObject,
    build_implied_protocol,
    build_record,
    normalise_question_name,
    read_first_characters,
    resolve_label_name,
    stream_json_items,
)
from finecomb.formats.utf16 import Utf16Offsets

ANTECEDENT_RELATION, CONTINUED_RELATION = "antecedent", "continued"
CONTEXT_KEYS = ("prompt", "source", "context", "headline", "title", "article", "question", "input")
"""Keys of a task's data that hold contexts, not the judged text; other texts with marks also become contexts."""
META_KEY = "finecomb"
"""Key in a task's `meta` for data that Label Studio cannot represent."""
_LABEL_TYPES = ("labels", "hypertextlabels")
_CONTROL_TYPES = ("choices", "textarea", "rating", "number", "taxonomy", "datetime")
_WORK_KEYS = ("annotations", "completions", "predictions")
_WORK_PATTERN = re.compile(r'"(annotations|completions|predictions)"\s*:\s*\[\s*[\]{]')

RawAnswer = str | int | float | tuple[str, ...]  # an answer before its question is known; choices give a tuple


@functools.lru_cache(maxsize=8)
def _cached_utf16_offsets(text: str) -> Utf16Offsets:
    return Utf16Offsets(text)


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Region:
    """All results with one ID: position, labels, and answers of controls."""

    where: str
    place: JsonObject | None = None
    to_name: str = TEXT_PART
    labels: list[str] = field(default_factory=list)
    answers: dict[str, RawAnswer] = field(default_factory=dict)
    score: float | None = None
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _ParsedResult:
    """Results of one annotation: regions by ID, answers about the document, and relations between regions."""

    regions: dict[str, _Region] = field(default_factory=dict)
    answers: dict[str, RawAnswer] = field(default_factory=dict)
    relations: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _ReaderState:
    """State while a file is read."""

    protocol: Protocol
    options: Options
    annotators: dict[tuple[str, str], str] = field(default_factory=dict)
    passes: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Yield each task's document, then its annotations and predictions; without a protocol the file is read twice."""
    reading = _ReaderState(options.protocol or _infer_protocol(path), options)
    yield reading.protocol
    for index, task in _read_tasks(path):
        results = [(prediction, work, _parse_result(work)) for prediction, work in _iter_work(task)]
        names = {region.to_name for _, _, result in results for region in result.regions.values()}
        document = _build_document(task, index, names, reading)
        yield document
        for prediction, work, result in results:
            count = len(reading.annotators)
            annotator = _annotator_id(prediction, work, reading)
            if len(reading.annotators) > count:
                yield build_record(Annotator, work.where, id=annotator, kind="detector" if prediction else "human")
            yield _build_annotation(work, result, document, annotator, reading)
    for what, count in sorted(reading.counts.items()):
        yield Note(text=f"{count:,} {what}")


def _read_tasks(path: Path) -> Iterator[tuple[int, JsonObject]]:
    for index, value, line in stream_json_items(path):
        where = f"{path}:{line}"
        if not isinstance(index, int):
            raise FormatError(f"{where}: expected a list of tasks, found an object")
        task = JsonObject(value, where)
        if "data" not in task.value and "annotator" in task.value:
            raise task.build_error("'data' is missing, which suggests JSON-MIN; export as JSON instead")
        yield index, task


def _iter_work(task: JsonObject) -> Iterator[tuple[bool, JsonObject]]:
    """Yield the annotations and predictions of a task, each with True if it is a prediction."""
    for name in _WORK_KEYS:
        yield from ((name == "predictions", work) for work in task.iter_objects(name, []))


def _parse_result(work: JsonObject) -> _ParsedResult:
    result = _ParsedResult()
    for index, fields in enumerate(work.iter_objects("result", [])):
        kind = fields.get("type", str)
        if kind == "relation":
            ends = [str(fields.get(name, (str, int))) for name in ("from_id", "to_id")]
            if fields.get("direction", str, "right") == "left":
                ends.reverse()
            result.relations.append(
                (ends[0], ends[1], tuple(fold_spelling(label) for label in _get_text_list(fields, "labels")))
            )
            continue
        id = fields.get("id", (str, int), f"result-{index}")
        value = JsonObject(fields.get("value", dict), f"{fields.where}: 'value'")
        if kind in _LABEL_TYPES or ("start" in value.value and kind in _CONTROL_TYPES):
            region = result.regions.setdefault(str(id), _Region(fields.where))
            region.place = value if region.place is None or kind in _LABEL_TYPES else region.place
            region.to_name = fields.get("to_name", str, region.to_name)
            region.score = fields.get("score", (int, float), region.score)
            region.meta |= fields.get("meta", dict, {})
            if kind in _LABEL_TYPES:
                region.labels += [label for label in _get_text_list(value, kind) if label not in region.labels]
            else:
                region.answers[_control_question_name(fields, kind)] = _parse_raw_answer(kind, value)
        elif kind in _CONTROL_TYPES:
            result.answers[_control_question_name(fields, kind)] = _parse_raw_answer(kind, value)
        else:
            result.left_out[kind] += 1
    return result


def _get_text_list(fields: JsonObject, name: str) -> list[str]:
    """Return a field as a list of texts; the field may hold a list or a single text, or be absent."""
    value = fields.get(name, (list, str), [])
    values = [value] if isinstance(value, str) else value
    for member in values:
        if not isinstance(member, str):
            raise fields.build_error(f"{name!r}: expected a list of texts, found {shorten(repr(value), 40)}")
    return list(values)


def _control_question_name(fields: JsonObject, kind: str) -> str:
    return normalise_question_name(fields.get("from_name", str, kind))


def _parse_raw_answer(kind: str, value: JsonObject) -> RawAnswer:
    match kind:
        case "choices":
            return tuple(_get_text_list(value, "choices"))
        case "textarea":
            return "\n".join(_get_text_list(value, "text"))
        case "taxonomy":
            paths = [path if isinstance(path, list) else [path] for path in value.get("taxonomy", list)]
            return tuple("/".join(map(str, path)) for path in paths)
        case "datetime":
            return str(value.get("datetime", str))
    number: int | float = value.get(kind, (int, float))
    return number


# --- reading documents -------------------------------------------------------------------------------------------


def _build_document(task: JsonObject, index: int, names: set[str], reading: _ReaderState) -> Document:
    data = JsonObject(task.get("data", dict), f"{task.where}: 'data'")
    key = _choose_text_key(data, names, reading.options)
    texts = {
        name: value for name, value in data.value.items() if isinstance(value, str) and name not in (key, TEXT_PART)
    }
    text = data.get(key, str)
    meta = JsonObject(task.get("meta", dict, {}), f"{task.where}: 'meta'")
    if META_KEY in meta.value:
        ours = JsonObject(meta.value[META_KEY], f"{meta.where}: {META_KEY}")
        context = {name: texts[name] for name in _get_text_list(ours, "context") if name in texts}
        stored_fields = {name: ours.value[name] for name in DOCUMENT_FIELDS if name in ours.value and name != "context"}
        return build_record(Document, ours.where, id=ours.get("id", str), text=text, context=context, **stored_fields)
    context = {name: value for name, value in texts.items() if name in names or name in CONTEXT_KEYS}
    id = str(task.get("id", (str, int), index + 1))
    return build_record(
        Document, task.where, id=id, text=text, context=context, meta=meta.value | data.other_fields(key, *context)
    )


def _choose_text_key(data: JsonObject, names: set[str], options: Options) -> str:
    """Return the key of the judged text: the user's choice, `text`, the only text with regions, or the only text."""
    texts = [name for name, value in data.value.items() if isinstance(value, str)]
    column = options.columns.get(TEXT_PART)
    if column is not None:
        if column not in texts:
            raise data.build_error(f"has no text {column!r}{did_you_mean(column, texts)}")
        return column
    for candidates in ([TEXT_PART] if TEXT_PART in texts else [], [name for name in texts if name in names], texts):
        if len(candidates) == 1:
            return candidates[0]
    if not texts:
        raise data.build_error(f"has no field with a text; found {', '.join(data.value) or 'an empty object'}")
    raise data.build_error(
        f"has several texts ({', '.join(texts)}); pass {param('map', 'text=NAME')} to select the text to annotate"
    )


# --- reading annotations -----------------------------------------------------------------------------------------


def _annotator_id(prediction: bool, work: JsonObject, reading: _ReaderState) -> str:
    """Return the annotator's ID. People are identified by number; their names and addresses are not kept."""
    if prediction:
        annotator = str(work.get("model_version", (str, int, float), "model") or "model")
    else:
        by = work.get("completed_by", (int, str, dict), None)
        person = by if isinstance(by, dict) else {"id": by}
        identity = next((person[name] for name in ("id", "email") if person.get(name) not in (None, "")), None)
        annotator = str(identity) if identity is not None else reading.options.annotator or "annotator"
    key = ("detector" if prediction else "human", annotator)
    taken = annotator in reading.annotators.values()
    return reading.annotators.setdefault(key, f"{annotator}-{key[0]}" if taken else annotator)


def _build_annotation(
    work: JsonObject, result: _ParsedResult, document: Document, annotator: str, reading: _ReaderState
) -> Annotation:
    round = reading.passes[document.id, annotator]
    reading.passes[document.id, annotator] += 1
    id = f"{document.id}/{annotator}" + (f"/{round}" if round else "")
    protocol = reading.protocol
    for kind, count in result.left_out.items():
        reading.counts[f"results of type {kind!r} are not about text and were omitted"] += count
    questions = {question.name: question for question in protocol.document_questions}
    cancelled = work.get("was_cancelled", bool, False)
    why = Exclusion(by="Label Studio", reason="cancelled (skipped) by the annotator")
    marks, relations = _build_marks(id, result, document, reading)
    meta = {name: entry for name, entry in work.value.items() if name in ("id", "updated_at") and entry is not None}
    meta |= {"ground_truth": True} if work.value.get("ground_truth") is True else {}
    meta |= {"relations": relations} if relations else {}
    return build_record(
        Annotation,
        work.where,
        id=id,
        document=document.id,
        annotator=annotator,
        protocol=protocol.id,
        round=round,
        status="excluded" if cancelled else "submitted",
        excluded=why if cancelled else None,
        marks=marks,
        answers={name: _parse_answer(raw, questions.get(name)) for name, raw in result.answers.items()},
        submitted=work.get("created_at", (str, int), None),
        seconds=work.get("lead_time", (int, float), None),
        meta=meta,
    )


@dataclass(slots=True)
class _RegionLinks:
    """Regions that belong to another region, and relations that have another meaning."""

    continued: dict[str, list[str]] = field(default_factory=dict)
    antecedents: dict[str, list[str]] = field(default_factory=dict)
    swallowed: set[str] = field(default_factory=set)
    others: list[dict[str, Any]] = field(default_factory=list)


def _link_regions(result: _ParsedResult) -> _RegionLinks:
    ties = _RegionLinks()
    for start, end, labels in result.relations:
        if start not in result.regions or end not in result.regions or start == end:
            continue
        end_labels = {fold_spelling(label) for label in result.regions[end].labels}
        if CONTINUED_RELATION in labels:
            ties.continued.setdefault(start, []).append(end)
            ties.swallowed.add(end)
        elif ANTECEDENT_RELATION in labels or end_labels == {ANTECEDENT_RELATION}:
            ties.antecedents.setdefault(start, []).append(end)
            ties.swallowed |= {end} if end_labels <= {ANTECEDENT_RELATION} else set()
        else:
            ties.others.append({"from": start, "to": end, "labels": list(labels)})
    return ties


def _build_marks(
    annotation: str, result: _ParsedResult, document: Document, reading: _ReaderState
) -> tuple[list[Mark], list[dict[str, Any]]]:
    """Return the marks, and the relations between them that have no equivalent in a study."""
    places = {id: _locate_region(region, document, reading) for id, region in result.regions.items()}
    ties = _link_regions(result)
    marks = []
    for id, region in result.regions.items():
        if id in ties.swallowed:
            continue
        spans = _span_fields([places[region_id] for region_id in (id, *ties.continued.get(id, ()))])
        earlier = [places[region_id] for region_id in ties.antecedents.get(id, ())]
        antecedents = build_record(Antecedents, region.where, **_span_fields(earlier)) if earlier else None
        labels: list[str | None] = [label for label in region.labels if fold_spelling(label) != ANTECEDENT_RELATION]
        labels = labels or [None]
        for number, label in enumerate(labels):
            mark_id = f"{annotation}/{id}" + (f"/{number}" if number else "")
            item = id if len(labels) > 1 else None
            marks.append(_build_mark(mark_id, region, label, spans, antecedents, item, reading.protocol))
    return marks, ties.others


def _build_mark(
    id: str,
    region: _Region,
    label: str | None,
    spans: Mapping[str, Any],
    antecedents: Antecedents | None,
    item: str | None,
    protocol: Protocol,
) -> Mark:
    name = None if label is None else resolve_label_name(protocol, label, region.where)
    questions = {question.name: question for question in protocol.questions_for_label(name)}
    answers = {
        question_name: _parse_answer(raw, questions.get(question_name)) for question_name, raw in region.answers.items()
    }
    more = {"confidence": region.score, "item": item, "meta": region.meta}
    return build_record(
        Mark, region.where, id=id, **spans, label=name, answers=answers, antecedents=antecedents, **more
    )


_QuotedSpan = tuple[Span | None, str]  # span of a region, and its quote


def _span_fields(places: Iterable[_QuotedSpan]) -> dict[str, Any]:
    """Return the spans and their quotes in text order; if not located, return only the quotes and the reason."""
    places = list(places)
    if any(span is None for span, _ in places):
        return {
            "spans": (),
            "quotes": tuple(quote for _, quote in places),
            "unlocated": "its offsets and quote disagree",
        }
    ordered = sorted((span, quote) for span, quote in places if span is not None)
    return {"spans": tuple(span for span, _ in ordered), "quotes": tuple(quote for _, quote in ordered)}


def _locate_region(region: _Region, document: Document, reading: _ReaderState) -> _QuotedSpan:
    part = region.to_name if region.to_name in document.context else TEXT_PART
    text = document.part_text(part) or ""
    value = region.place or JsonObject({}, region.where)
    offsets = JsonObject(value.get("globalOffsets", dict, value.value), value.where)
    start, end = (offsets.get(name, (int, str), -1) for name in ("start", "end"))
    first, last = (
        _cached_utf16_offsets(text).to_code_point(offset) if isinstance(offset, int) else None  # a path into HTML
        for offset in (start, end)
    )
    words_given = value.get("text", str, None)
    quote = "" if words_given is None else words_given
    if first is not None and last is not None and first <= last:
        words = text[first:last]
        if words_given is None or words_given in (words, words.replace("\n", "\\n")):
            return Span(first, last, part), words
    # Pre-annotations made in Python often count code points; other offsets are shifted when line ends were changed.
    raw = (start, end) if isinstance(start, int) and isinstance(end, int) else (-1, -1)
    elsewhere = find_at_offsets_or_unique(quote, *raw, text) if quote else None
    reading.counts["regions were located by their quote, because their offsets do not match"] += elsewhere is not None
    reading.counts["regions could not be located; they are kept without spans"] += elsewhere is None
    reading.counts += Counter()  # drops zero counts
    return (Span(*elsewhere, part) if elsewhere else None), quote


# --- reading questions -------------------------------------------------------------------------------------------


def _infer_protocol(path: Path) -> Protocol:
    """Infer a protocol from the labels and controls in a file."""
    labels: set[str] = set()
    mark_answers: dict[str, list[RawAnswer]] = {}
    answers: dict[str, list[RawAnswer]] = {}
    antecedents = False
    for _, task in _read_tasks(path):
        for _, work in _iter_work(task):
            result = _parse_result(work)
            _collect_answers(result.answers, answers)
            antecedents = antecedents or bool(_link_regions(result).antecedents)
            for region in result.regions.values():
                labels.update(label for label in region.labels if fold_spelling(label) != ANTECEDENT_RELATION)
                _collect_answers(region.answers, mark_answers)
    questions = tuple(_infer_question(name, raws) for name, raws in mark_answers.items())
    document_questions = tuple(_infer_question(name, raws) for name, raws in answers.items())
    question_lists: dict[str, Any] = {"questions": questions, "document_questions": document_questions}
    return build_implied_protocol(f"label-studio-{path.stem}", labels, antecedents=antecedents, **question_lists)


def _collect_answers(answers: Mapping[str, RawAnswer], into: dict[str, list[RawAnswer]]) -> None:
    for name, raw in answers.items():
        raws = into.setdefault(name, [])
        if raw not in raws:
            raws.append(raw)


def _infer_question(name: str, raws: list[RawAnswer]) -> Question:
    """Infer a question from its answers."""
    ask = name.replace("_", " ").capitalize()
    values = sorted({word for raw in raws if isinstance(raw, tuple) for word in raw})
    more: dict[str, Any] = {"scale": "text"}
    if all(isinstance(raw, int | float) for raw in raws):
        more = {"scale": "number"}
    elif all(isinstance(raw, tuple) for raw in raws) and set(values) <= {"true", "false"} and _is_single_choice(raws):
        more = {"scale": "yes-no"}
    elif all(isinstance(raw, tuple) for raw in raws) and len(values) > 1:
        options = tuple(Option.model_construct(value=value) for value in values)
        more = {"scale": "nominal" if _is_single_choice(raws) else "several", "options": options}
    return build_record(Question, name, name=name, ask=ask, required=False, **more)


def _is_single_choice(raws: Iterable[RawAnswer]) -> bool:
    return all(isinstance(raw, tuple) and len(raw) == 1 for raw in raws)


def _parse_answer(raw: RawAnswer, question: Question | None) -> Answer:
    """Convert an answer to the scale of its question, if possible."""
    if isinstance(raw, tuple) and (question.scale_type.many if question else len(raw) != 1):
        return raw
    text = "\n".join(raw) if isinstance(raw, tuple) else str(raw)
    if isinstance(raw, int | float) and (question is None or question.scale_type.bounded):
        return raw
    answer = question.scale_type.parse(question, text) if question else text
    return text if answer is None else answer


# --- writing -----------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write tasks; the work of people is written as annotations, that of models and detectors as predictions."""
    documents: dict[str, Document] = {}
    kinds: dict[str, str] = {}
    works: dict[str, list[tuple[str, str]]] = {}
    for item in items:
        if isinstance(item, Document):
            documents[item.id] = item
        elif isinstance(item, Annotator):
            kinds[item.id] = item.kind
        elif isinstance(item, Annotation) and item.document in documents:
            kind = kinds.get(item.annotator, "human")
            named, encoded = _encode_annotation(item, documents[item.document], kind)
            works.setdefault(item.document, []).append((named, json.dumps(encoded, ensure_ascii=False)))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("[")
        for number, (id, document) in enumerate(documents.items(), 1):
            stored_fields = load_json(document.model_dump_json(exclude_defaults=True, exclude={"text", "context"}))
            ours = {META_KEY: stored_fields | ({"context": list(document.context)} if document.context else {})}
            task = {"id": number, "data": {TEXT_PART: document.text, **document.context}, "meta": ours}
            file.write((",\n" if number > 1 else "\n") + json.dumps(task, ensure_ascii=False).removesuffix("}"))
            for name in ("annotations", "predictions"):
                listed = ", ".join(work for named, work in works.get(id, []) if named == name)
                file.write(f', "{name}": [{listed}]')
            file.write("}")
        file.write("\n]\n")
        sync_to_disk(file)


def _encode_annotation(annotation: Annotation, document: Document, kind: str) -> tuple[str, dict[str, Any]]:
    result = [mark_result for mark in annotation.marks if mark.spans for mark_result in _encode_mark(mark, document)]
    result += [_encode_answer(name, answer, f"answer-{name}", {}) for name, answer in annotation.answers.items()]
    if kind not in ("human", "gold"):
        return "predictions", {"model_version": annotation.annotator, "result": result}
    by: Any = {"email": annotation.annotator}
    if annotation.annotator.isascii() and annotation.annotator.isdecimal() and annotation.annotator[0] != "0":
        by = int(annotation.annotator)
    times = load_json(annotation.model_dump_json(include={"submitted"}))
    work: dict[str, Any] = {"completed_by": by, "result": result, "was_cancelled": annotation.status == "excluded"}
    work |= {"ground_truth": kind == "gold"}
    work |= {"created_at": times["submitted"]} if annotation.submitted else {}
    work |= {"lead_time": annotation.seconds} if annotation.seconds is not None else {}
    return "annotations", work


def _encode_mark(mark: Mark, document: Document) -> Iterator[dict[str, Any]]:
    labels = [mark.label] if mark.label is not None else []
    first, *others = (_encode_span(span, document) for span in mark.spans)
    more: dict[str, Any] = {"score": mark.confidence} if mark.confidence is not None else {}
    more |= {"meta": dict(mark.meta)} if mark.meta else {}
    yield _encode_region(mark.id, first, labels, mark.spans[0].part) | more
    for name, answer in mark.answers.items():
        yield _encode_answer(name, answer, mark.id, {key: first[key] for key in ("start", "end")}, mark.spans[0].part)
    for number, (span, value) in enumerate(zip(mark.spans[1:], others, strict=True), 2):
        yield _encode_region(f"{mark.id}/{number}", value, labels, span.part)
        yield _encode_relation(mark.id, f"{mark.id}/{number}", CONTINUED_RELATION)
    for number, span in enumerate(mark.antecedents.spans if mark.antecedents else (), 1):
        yield _encode_region(
            f"{mark.id}/antecedent-{number}", _encode_span(span, document), [ANTECEDENT_RELATION], span.part
        )
        yield _encode_relation(mark.id, f"{mark.id}/antecedent-{number}", ANTECEDENT_RELATION)


def _encode_span(span: Span, document: Document) -> dict[str, Any]:
    text = document.part_text(span.part) or ""
    units = _cached_utf16_offsets(text)
    return {"start": units.to_utf16(span.start), "end": units.to_utf16(span.end), "text": span.extract(text)}


def _encode_region(id: str, value: dict[str, Any], labels: list[str], part: str) -> dict[str, Any]:
    return {"id": id, "from_name": "label", "to_name": part, "type": "labels", "value": value | {"labels": labels}}


def _encode_relation(start: str, end: str, label: str) -> dict[str, Any]:
    return {"from_id": start, "to_id": end, "type": "relation", "direction": "right", "labels": [label]}


def _encode_answer(name: str, answer: Answer, id: str, place: dict[str, Any], part: str = TEXT_PART) -> dict[str, Any]:
    kind, value = "choices", dict[str, Any]()
    match answer:
        case bool():
            value = {"choices": ["true" if answer else "false"]}
        case int() | float():
            kind, value = "number", {"number": answer}
        case str():
            kind, value = "textarea", {"text": [answer]}
        case _:
            value = {"choices": list(answer)}
    return {"id": id, "from_name": name, "to_name": part, "type": kind, "value": place | value}


def sniff(path: Path) -> bool:
    """Return True for a list of tasks with data and annotations or predictions."""
    start = read_first_characters(path, 1 << 16) if path.is_file() else ""
    return bool(re.match(r"\s*\[\s*\{", start) and '"data"' in start and _WORK_PATTERN.search(start))


FORMAT = Format(
    *("label-studio", "Label Studio JSON", read, write),
    suffixes=(".json",),
    sniff=sniff,
    holds=frozenset(
        [
            *(f"document {name}" for name in DOCUMENT_FIELDS),
            *(f"annotation {name}" for name in ("without marks", "answers", "submitted", "seconds")),
            *(f"mark {name}" for name in KNOWN_ANSWERS),
            *("mark other answers", "mark several spans", "mark omission", "mark on context", "mark without label"),
            *("mark antecedents", "mark confidence", "mark meta"),
        ]
    ),
    options=frozenset(["protocol", "columns", "annotator"]),
)
