"""factgenie campaigns: `annotations.jsonl` with `config.yaml` next to it, and the texts in a folder `outputs`."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml
from pydantic_core import to_json

from finecomb.core.errors import FormatError, ProtocolError, param
from finecomb.core.protocol import Label, Protocol
from finecomb.core.protocol_yaml import load_yaml
from finecomb.core.question import Question
from finecomb.core.quotes import find_closest_occurrence
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    iter_nonblank_lines,
    label_slug,
    parse_json,
    read_first_characters,
    read_text,
)

ANNOTATIONS_FILE, CONFIG_FILE, OUTPUTS_FOLDER, INPUTS_FOLDER = "annotations.jsonl", "config.yaml", "outputs", "inputs"
_KNOWN_KEYS = ("dataset", "split", "setup_id", "example_idx", "annotator_group", "annotations", "round")
_CATEGORIES_KEY = "annotation_span_categories"
_SPAN_KEYS = ("type", "text", "start", "id", "reason")


@dataclass(frozen=True, slots=True)
class OutputKey:
    """Key of the output that a row refers to. Setups are compared without `.`, `-` and `_`: phi3.5 equals phi3-5."""

    dataset: str
    split: str
    setup: str
    index: str

    @classmethod
    def from_row(cls, row: JsonObject) -> OutputKey:
        """Return the key of a row of annotations or of outputs."""
        setup = re.sub(r"[._-]+", "-", row.get("setup_id", str).lower())
        return cls(row.get("dataset", str), row.get("split", str), setup, str(row.get("example_idx", (int, str))))

    def with_split(self, split: str) -> OutputKey:
        """Return the key with another split."""
        return OutputKey(self.dataset, split, self.setup, self.index)


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read a campaign's protocol, documents, annotators and annotations from its folder or `annotations.jsonl`."""
    file = path / ANNOTATIONS_FILE if path.is_dir() else path
    config = _read_config(file.parent / CONFIG_FILE)
    protocol = options.protocol or _infer_protocol(config, file)
    wanted: dict[OutputKey, _OutputSpans] = {}
    for row in _read_rows(file):
        spans = wanted.setdefault(OutputKey.from_row(row), _OutputSpans(row.where)).spans
        spans.update(
            (_parse_start(annotation), annotation.get("text", str)) for annotation in row.iter_objects("annotations")
        )
    texts = options.texts or _find_ancestor_folder(file, OUTPUTS_FOLDER)
    if texts is None:
        raise FormatError(f"{file}: no folder {OUTPUTS_FOLDER!r} next to it or above it; name it with {param('texts')}")
    near = {place.with_split("") for place in wanted}
    output_files = sorted(texts.rglob("*.jsonl")) if texts.is_dir() else [texts]
    output_rows = ((OutputKey.from_row(row), row) for output_file in output_files for row in _read_rows(output_file))
    outputs = _match_outputs(wanted, {place: row for place, row in output_rows if place.with_split("") in near})
    yield protocol
    inputs = _InputLoader(options.data or _find_ancestor_folder(file, INPUTS_FOLDER))
    documents = {place: _build_document(outputs[place], inputs) for place in wanted}
    yield from {document.id: document for document in documents.values()}.values()
    people = _CampaignAnnotators(file, config, options.annotator)
    rounds: Counter[tuple[str, str]] = Counter()
    marks = _MarkBuilder(_category_labels(config, protocol))
    for row in _read_rows(file):
        annotator = people.build_annotator(row)
        if annotator.id not in people.seen:
            people.seen.add(annotator.id)
            yield annotator
        document = documents[OutputKey.from_row(row)]
        round_ = row.get("round", int, rounds[document.id, annotator.id])
        rounds[document.id, annotator.id] += 1
        yield _build_annotation(row, document, annotator.id, round_, protocol, marks)
    yield from marks.notes()


def _read_rows(file: Path) -> Iterator[JsonObject]:
    for line, text in iter_nonblank_lines(file):
        yield JsonObject(parse_json(text, f"{file}:{line}"), f"{file}:{line}")


# --- protocol ------------------------------------------------------------------------------------------------------


def _read_config(file: Path) -> JsonObject:
    if not file.exists():
        raise FormatError(
            f"{file}: no such file; a campaign requires its categories in {CONFIG_FILE} next to {ANNOTATIONS_FILE}"
        )
    try:
        return JsonObject(load_yaml(read_text(file), str(file)), str(file))
    except ProtocolError as error:
        raise FormatError(str(error)) from None


def _infer_protocol(config: JsonObject, file: Path) -> Protocol:
    """Infer a protocol from the categories of the campaign; it is named after the task, e.g. `d2t-eval`."""
    snap = "word" if config.get("annotation_granularity", str, "words") == "words" else "character"
    labels = [
        build_record(
            Label,
            category.where,
            name=label_slug(category.get("name", str)),
            title=category.get("name", str),
            gloss=category.get("description", str, "").strip(),
            snap=snap,
        )
        for category in config.iter_objects(_CATEGORIES_KEY)
    ]
    # The task of `annotations/human/TASK/...` or `annotations/model/TASK/...`, or the name of the folder
    parts = file.resolve().parent.parts
    tasks = [task for kind, task in itertools.pairwise(parts) if kind in ("human", "model")]
    name = next(iter(tasks), parts[-1] if parts else "campaign")
    return build_record(
        Protocol,
        config.where,
        name=label_slug(name),
        version="1",
        title=name,
        summary="The categories of a factgenie campaign.",
        labels=tuple(labels),
        questions=(Question(name="explanation", ask="Why?", required=False),),
        instructions=config.get("annotator_instructions", str, ""),
    )


def _category_labels(config: JsonObject, protocol: Protocol) -> list[str]:
    """Return the label of each category by index."""
    try:
        return [
            protocol.resolve_label(name).name if not protocol.has_label(label_slug(name)) else label_slug(name)
            for name in [category.get("name", str) for category in config.iter_objects(_CATEGORIES_KEY)]
        ]
    except ProtocolError as error:
        raise FormatError(f"{config.where}: {_CATEGORIES_KEY}: {error}") from None


# --- texts ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OutputSpans:
    """All spans in a file that refer to the same output, used to identify that output."""

    where: str
    spans: set[tuple[int, str]] = field(default_factory=set)

    def matching_span_count(self, output: JsonObject | None) -> int:
        """Return the number of spans that match the output's text at their offsets; -1 if `output` is None."""
        text = output.get("output", str) if output else ""
        return sum(text[start : start + len(words)] == words for start, words in self.spans) if output else -1


def _parse_start(span: JsonObject) -> int:
    start: int = span.get("start", int)
    if start < 0:
        raise span.build_error(f"'start': expected an integer of at least 0, found {start}")
    return start


def _find_ancestor_folder(file: Path, name: str) -> Path | None:
    """Return the nearest folder with this name above or next to a file."""
    return next((parent / name for parent in file.resolve().parents if (parent / name).is_dir()), None)


def _match_outputs(
    wanted: Mapping[OutputKey, _OutputSpans], outputs: Mapping[OutputKey, JsonObject]
) -> dict[OutputKey, JsonObject]:
    """Match each key to its output. If rows and outputs name different splits, the best match of the spans decides."""
    splits = dict.fromkeys(place.split for place in outputs)
    matches: dict[OutputKey, JsonObject] = {}
    for split, places in itertools.groupby(sorted(wanted, key=lambda place: place.split), lambda place: place.split):
        mine = list(places)
        scores = {
            candidate: sum(
                wanted[place].matching_span_count(outputs.get(place.with_split(candidate))) for place in mine
            )
            for candidate in [split, *splits]
        }
        best = max(scores, key=lambda candidate: scores[candidate])  # in a tie, the split that the rows name
        for place in mine:
            if place.with_split(best) not in outputs:
                raise FormatError(
                    f"{wanted[place].where}: no output of {place.setup!r} for example {place.index} of "
                    f"{place.dataset}/{place.split}; name the folder of outputs with {param('texts')}"
                )
            matches[place] = outputs[place.with_split(best)]
    return matches


class _InputLoader:
    """Loader of the source data of the texts, if available: `inputs/.../DATASET/SPLIT.json`, one item per example."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.known: dict[tuple[str, str], list[Any]] = {}


def _build_document(output: JsonObject, inputs: _InputLoader) -> Document:
    """Build a document; the ID and meta of texts that Finecomb exported are restored."""
    key = OutputKey.from_row(output)
    setup = output.get("setup_id", str)
    meta = {"model": setup, "dataset": key.dataset, "split": key.split, "example_idx": key.index}
    id = f"{key.dataset}/{key.split}/{setup}/{key.index}"
    items = inputs.known.get((key.dataset, key.split))
    if items is None:
        name = f"{key.split}.json"
        files = sorted(inputs.folder.rglob("*.json")) if inputs.folder else []
        file = next(
            (candidate for candidate in files if candidate.name == name and candidate.parent.name == key.dataset), None
        )
        value = parse_json(read_text(file), str(file)) if file else []
        lists = (
            [candidate for candidate in value.values() if isinstance(candidate, list)]
            if isinstance(value, dict)
            else [value]
        )
        items = inputs.known[key.dataset, key.split] = (
            lists[0] if len(lists) == 1 and isinstance(lists[0], list) else []
        )
    return build_record(
        Document,
        output.where,
        id=output.get("id", str, id),
        text=output.get("output", str),
        data=items[int(key.index)] if key.index.isdecimal() and int(key.index) < len(items) else None,
        meta=output.get("metadata", dict, {}) if "id" in output.value else meta | output.get("metadata", dict, {}),
    )


# --- annotators and annotations ------------------------------------------------------------------------------------


class _CampaignAnnotators:
    """Annotators by group. A model's campaign has one annotator; in a campaign with people, each group is a person."""

    def __init__(self, file: Path, config: JsonObject, name: str) -> None:
        self.folder = file.resolve().parent.name or "campaign"
        self.config, self.name = config, name
        self.seen: set[str] = set()
        self.is_model = "model" in config.value or "model" in file.resolve().parts
        self.listed = {person.get("group", int): person for person in config.iter_objects("annotators", [])}

    def build_annotator(self, row: JsonObject) -> Annotator:
        nested = JsonObject(row.get("metadata", dict, {}), f"{row.where}: metadata")
        group = row.get("annotator_group", (int, str), nested.get("annotator_group", (int, str), 0))
        if group in self.listed:
            person = self.listed[group]
            return build_record(
                Annotator, person.where, id=person.get("id", str), kind=person.get("kind", str, "human")
            )
        base = self.name or self.folder
        if not self.is_model:
            return build_record(Annotator, row.where, id=f"{base}/{group}", kind="human")
        settings = {name: self.config.value[name] for name in ("model", "model_args") if self.config.value.get(name)}
        id = base if group in (0, "0") else f"{base}/{group}"
        return build_record(Annotator, row.where, id=id, kind="llm", meta=settings)


def _build_annotation(
    row: JsonObject, document: Document, annotator: str, round: int, protocol: Protocol, make: _MarkBuilder
) -> Annotation:
    id = f"{document.id}/{annotator}" + (f"/{round}" if round else "")
    split = row.get("split", str)
    meta = row.other_fields(*_KNOWN_KEYS) | ({"split": split} if split != document.meta.get("split", split) else {})
    marks = [make.build_mark(span, f"{id}/{n}", document) for n, span in enumerate(row.iter_objects("annotations"))]
    return build_record(
        Annotation,
        row.where,
        id=id,
        document=document.id,
        annotator=annotator,
        protocol=protocol.id,
        round=round,
        marks=tuple(marks),
        meta=meta,
    )


class _MarkBuilder:
    """Builder of marks; it counts the marks whose quote was not found at their offsets."""

    def __init__(self, labels: list[str]) -> None:
        self.labels = labels
        self.seen: set[str] = set()
        self.moved = self.lost = 0

    def build_mark(self, span: JsonObject, id: str, document: Document) -> Mark:
        """Build a mark with its ID from the file, or with a new ID if another mark already has that ID."""
        kind, key, reason = span.get("type", int), span.get("id", str, ""), span.get("reason", str, "")
        if not 0 <= kind < len(self.labels):
            raise span.build_error(
                f"'type': expected the index of a category in {CONFIG_FILE} (0 to {len(self.labels) - 1}), found {kind}"
            )
        id = key if key and key not in self.seen else id
        self.seen.add(id)
        return build_record(
            Mark,
            span.where,
            id=id,
            label=self.labels[kind],
            answers={"explanation": reason} if reason else {},
            **({"quotes": (span.get("text", str),)} | self._locate_span(span, document.text)),
        )

    def _locate_span(self, span: JsonObject, text: str) -> dict[str, Any]:
        """Locate a span at its offsets, otherwise at the nearest match; if it is not found, keep `start`.

        If a model begins a quote in lower case, the text's own words are marked and the model's quote is kept as
        `quoted`.
        """
        start, quote = _parse_start(span), span.get("text", str)
        meta = span.other_fields("type", "text", "start", "id", "reason")
        words = text[start : start + len(quote)]
        if words == quote and start <= len(text):
            return {"spans": (Span(start, start + len(quote)),), "meta": meta}
        if words.casefold() == quote.casefold() and len(words) == len(quote):
            spelled = {"spans": (Span(start, start + len(quote)),), "quotes": (words,)}
            return spelled | {"meta": meta | {"quoted": quote}}
        place = find_closest_occurrence(quote, text, start)
        self.moved += place is not None
        self.lost += place is None
        if place is None:
            return {"spans": (), "unlocated": "the quote is not in the output", "meta": meta | {"start": start}}
        return {"spans": (Span(*place),), "meta": meta | {"start": start}}

    def notes(self) -> Iterator[Note]:
        """Yield notes for the user."""
        if self.moved:
            yield Note(
                text=(
                    f"{self.moved:,} spans do not match the text at their offsets; they were moved to the nearest match"
                )
            )
        if self.lost:
            yield Note(text=f"{self.lost:,} spans are not in their text; their marks were kept without spans")


# --- writing -------------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a folder with `annotations.jsonl`, `config.yaml` and `outputs/`."""
    path.mkdir(parents=True)
    (path / OUTPUTS_FOLDER).mkdir()
    labels: dict[str, Label] = {}
    people: dict[str, Annotator] = {}
    places: dict[str, dict[str, Any]] = {}
    with (path / ANNOTATIONS_FILE).open("wb") as file:
        for item in items:
            match item:
                case Protocol():
                    labels |= {label.name: label for label in item.labels if label.name not in labels}
                case Document():
                    # Dataset, split, setup and example of a document, generated unless it came from a campaign
                    number = len(places)
                    meta: Callable[[str, Any], Any] = item.meta.get
                    model = meta("model", "unknown")
                    index = meta("example_idx", number)
                    places[item.id] = {
                        "dataset": str(meta("dataset", "study")),
                        "split": str(meta("split", "all")),
                        "setup_id": str(model),
                        "example_idx": index
                        if isinstance(index, int | str) and not isinstance(index, bool)
                        else number,
                    }
                    _append_output(item, places[item.id], path / OUTPUTS_FOLDER)
                case Annotator():
                    people[item.id] = item
                case Annotation() if item.document in places:  # exercises belong to the protocol
                    _append_annotation(item, places, list(people), list(labels), file)
        sync_to_disk(file)
    categories = [
        {
            "name": label.display_title if label_slug(label.display_title) == label.name else label.name,
            "description": label.gloss,
        }
        for label in labels.values()
    ]
    config = {_CATEGORIES_KEY: categories} | {
        "annotators": [
            {"group": group, "id": person.id, "kind": person.kind} for group, person in enumerate(people.values())
        ]
    }
    (path / CONFIG_FILE).write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _append_output(document: Document, place: Mapping[str, Any], folder: Path) -> None:
    name = "-".join(label_slug(place[field]).replace("/", "-") for field in ("dataset", "setup_id", "split"))
    row = dict(place) | {"output": document.text, "id": document.id, "metadata": document.meta}
    with (folder / f"{name}.jsonl").open("ab") as file:
        file.write(to_json(row) + b"\n")


def _append_annotation(
    annotation: Annotation,
    places: Mapping[str, Mapping[str, Any]],
    people: list[str],
    labels: list[str],
    file: IO[bytes],
) -> None:
    spans = [
        {"type": labels.index(mark.label), "text": quote, "start": span.start, "id": mark.id}
        | ({"reason": mark.answers["explanation"]} if "explanation" in mark.answers else {})
        | {name: value for name, value in mark.meta.items() if name not in _SPAN_KEYS}
        for mark in annotation.marks
        if mark.label in labels
        for span, quote in zip(mark.spans, mark.quotes, strict=False)
        if span.part == TEXT_PART
    ]
    row = dict(places[annotation.document]) | {
        "annotations": spans,
        "annotator_group": people.index(annotation.annotator),
        "round": annotation.round,
    }
    more = {name: value for name, value in annotation.meta.items() if name not in row}
    file.write(to_json(row | more) + b"\n")


def sniff(path: Path) -> bool:
    """Return True if `path` is a campaign's folder or its annotations."""
    start = read_first_characters(path / ANNOTATIONS_FILE if path.is_dir() else path)
    return all(f'"{name}"' in start for name in ("setup_id", "example_idx", "annotations"))


FORMAT = Format(
    "factgenie",
    "a factgenie campaign",
    read,
    write,
    sniff=sniff,
    holds=frozenset(
        [
            *("document meta", "annotator kind", "annotation round", "annotation without marks", "annotation meta"),
            *("mark id", "mark explanation", "mark omission", "mark meta"),
        ]
    ),
    options=frozenset(["protocol", "texts", "data", "annotator"]),
)
