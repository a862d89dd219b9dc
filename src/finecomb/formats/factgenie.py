"""factgenie campaigns: `annotations.jsonl` with `config.yaml` beside it, and the texts in a folder `outputs`."""

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
from finecomb.core.question import Question
from finecomb.core.quotes import find_closest
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note
from finecomb.core.span import TEXT, Span
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import JsonObject, build_record, json_lines, parse_json, read_start, read_text, slug

ANNOTATIONS, CONFIG, OUTPUTS, INPUTS = "annotations.jsonl", "config.yaml", "outputs", "inputs"
_KNOWN_KEYS = ("dataset", "split", "setup_id", "example_idx", "annotator_group", "annotations", "round")
_CATEGORIES_KEY = "annotation_span_categories"


@dataclass(frozen=True, slots=True)
class OutputKey:
    """Which output a row is about. Setups are compared without regard to `.`, `-` and `_`: phi3.5 is phi3-5."""

    dataset: str
    split: str
    setup: str
    index: str

    @classmethod
    def from_row(cls, row: JsonObject) -> OutputKey:
        """The place that a row of annotations or of outputs names."""
        setup = re.sub(r"[._-]+", "-", row.get("setup_id", str).lower())
        return cls(row.get("dataset", str), row.get("split", str), setup, str(row.get("example_idx", (int, str))))

    def with_split(self, split: str) -> OutputKey:
        """The same in another split."""
        return OutputKey(self.dataset, split, self.setup, self.index)


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Protocol, documents, annotators and annotations of a campaign, given as its folder or its `annotations.jsonl`."""
    file = path / ANNOTATIONS if path.is_dir() else path
    config = _read_config(file.parent / CONFIG)
    protocol = options.protocol or _infer_protocol(config, file)
    wanted = _spans_by_output(file)
    outputs = _match_outputs(
        wanted, _read_outputs(options.texts or _require_ancestor_folder(file, OUTPUTS, "texts"), wanted)
    )
    yield protocol
    inputs = _InputLoader(options.data or _find_ancestor_folder(file, INPUTS))
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
    for line, text in json_lines(file):
        yield JsonObject(parse_json(text, f"{file}:{line}"), f"{file}:{line}")


# --- what was asked ------------------------------------------------------------------------------------------------


def _read_config(file: Path) -> JsonObject:
    if not file.exists():
        raise FormatError(f"{file}: no such file; a campaign has its categories in {CONFIG} beside {ANNOTATIONS}")
    try:
        return JsonObject(yaml.safe_load(read_text(file)), str(file))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FormatError(f"{file}: not YAML: {str(error).splitlines()[0]}") from None


def _category_names(config: JsonObject) -> list[str]:
    return [category.get("name", str) for category in config.iter_objects(_CATEGORIES_KEY)]


def _infer_protocol(config: JsonObject, file: Path) -> Protocol:
    """A protocol with the categories of the campaign; it is called after the task, e.g. `d2t-eval`."""
    snap = "word" if config.get("annotation_granularity", str, "words") == "words" else "character"
    labels = [
        build_record(
            Label,
            category.where,
            name=slug(category.get("name", str)),
            title=category.get("name", str),
            gloss=category.get("description", str, "").strip(),
            snap=snap,
        )
        for category in config.iter_objects(_CATEGORIES_KEY)
    ]
    name = _task_name(file)
    return build_record(
        Protocol,
        config.where,
        name=slug(name),
        version="1",
        title=name,
        summary="The categories of a factgenie campaign.",
        labels=tuple(labels),
        questions=(Question(name="explanation", ask="Why?", required=False),),
        instructions=config.get("annotator_instructions", str, ""),
    )


def _task_name(file: Path) -> str:
    """`annotations/human/TASK/...` and `annotations/model/TASK/...` name the task; else the campaign's folder does."""
    parts = file.resolve().parent.parts
    for kind, task in itertools.pairwise(parts):
        if kind in ("human", "model"):
            return task
    return parts[-1] if parts[-1:] else "campaign"


def _category_labels(config: JsonObject, protocol: Protocol) -> list[str]:
    """The label of each category by its index."""
    try:
        return [
            protocol.resolve_label(name).name if not protocol.has_label(slug(name)) else slug(name)
            for name in _category_names(config)
        ]
    except ProtocolError as error:
        raise FormatError(f"{config.where}: {_CATEGORIES_KEY}: {error}") from None


# --- texts ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OutputSpans:
    """Every span that a file has at one place, to tell which output it was marked in."""

    where: str
    spans: set[tuple[int, str]] = field(default_factory=set)

    def matching_span_count(self, output: JsonObject | None) -> int:
        """How many stand in an output where they say; -1 when there is no such output."""
        text = output.get("output", str) if output else ""
        return sum(text[start : start + len(words)] == words for start, words in self.spans) if output else -1


def _spans_by_output(file: Path) -> dict[OutputKey, _OutputSpans]:
    spans_by_place: dict[OutputKey, _OutputSpans] = {}
    for row in _read_rows(file):
        spans = spans_by_place.setdefault(OutputKey.from_row(row), _OutputSpans(row.where)).spans
        spans.update(
            (_parse_start(annotation), annotation.get("text", str)) for annotation in row.iter_objects("annotations")
        )
    return spans_by_place


def _parse_start(span: JsonObject) -> int:
    start: int = span.get("start", int)
    if start < 0:
        raise span.error(f"'start': expected a whole number from 0, found {start}")
    return start


def _find_ancestor_folder(file: Path, name: str) -> Path | None:
    """The folder called `name` that is nearest above or beside a file."""
    return next((parent / name for parent in file.resolve().parents if (parent / name).is_dir()), None)


def _require_ancestor_folder(file: Path, name: str, parameter: str) -> Path:
    folder = _find_ancestor_folder(file, name)
    if folder is None:
        raise FormatError(f"{file}: no folder {name!r} beside it or above it; name it with {param(parameter)}")
    return folder


def _read_outputs(folder: Path, wanted: Iterable[OutputKey]) -> dict[OutputKey, JsonObject]:
    """The outputs that could be wanted, whatever their split."""
    near = {place.with_split("") for place in wanted}
    files = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else [folder]
    rows = ((OutputKey.from_row(row), row) for file in files for row in _read_rows(file))
    return {place: row for place, row in rows if place.with_split("") in near}


def _match_outputs(
    wanted: Mapping[OutputKey, _OutputSpans], outputs: Mapping[OutputKey, JsonObject]
) -> dict[OutputKey, JsonObject]:
    """The output of each place. Rows may name another split than their outputs do: the spans tell which it is."""
    there = dict.fromkeys(place.split for place in outputs)
    matches: dict[OutputKey, JsonObject] = {}
    for split, places in itertools.groupby(sorted(wanted, key=lambda place: place.split), lambda place: place.split):
        mine = list(places)
        scores = {
            candidate: sum(
                wanted[place].matching_span_count(outputs.get(place.with_split(candidate))) for place in mine
            )
            for candidate in [split, *there]
        }
        best = max(scores, key=lambda candidate: scores[candidate])  # the split that the rows name, on a tie
        for place in mine:
            if place.with_split(best) not in outputs:
                raise FormatError(
                    f"{wanted[place].where}: no output of {place.setup!r} for example {place.index} of "
                    f"{place.dataset}/{place.split}; name the folder of outputs with {param('texts')}"
                )
            matches[place] = outputs[place.with_split(best)]
    return matches


class _InputLoader:
    """What the texts were made from, as far as it is there: `inputs/.../DATASET/SPLIT.json`, one item per example."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.known: dict[tuple[str, str], list[Any]] = {}

    def get_input(self, dataset: str, split: str, index: str) -> Any:
        items = self.known.get((dataset, split))
        if items is None:
            items = self.known[dataset, split] = self._load(dataset, split)
        return items[int(index)] if index.isdecimal() and int(index) < len(items) else None

    def _load(self, dataset: str, split: str) -> list[Any]:
        name = f"{split}.json"
        files = sorted(self.folder.rglob("*.json")) if self.folder else []
        file = next(
            (candidate for candidate in files if candidate.name == name and candidate.parent.name == dataset), None
        )
        value = parse_json(read_text(file), str(file)) if file else []
        lists = (
            [candidate for candidate in value.values() if isinstance(candidate, list)]
            if isinstance(value, dict)
            else [value]
        )
        return lists[0] if len(lists) == 1 and isinstance(lists[0], list) else []


def _build_document(output: JsonObject, inputs: _InputLoader) -> Document:
    """A text; one that we exported brings its own id and meta."""
    key = OutputKey.from_row(output)
    setup = output.get("setup_id", str)
    meta = {"model": setup, "dataset": key.dataset, "split": key.split, "example_idx": key.index}
    id = f"{key.dataset}/{key.split}/{setup}/{key.index}"
    return build_record(
        Document,
        output.where,
        id=output.get("id", str, id),
        text=output.get("output", str),
        data=inputs.get_input(key.dataset, key.split, key.index),
        meta=output.get("metadata", dict, {}) if "id" in output.value else meta | output.get("metadata", dict, {}),
    )


# --- who and what --------------------------------------------------------------------------------------------------


class _CampaignAnnotators:
    """Annotators by group. A campaign with a model is that model's; in one with people, a group is a person."""

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
    """Makes marks and counts those that do not stand where the file says."""

    def __init__(self, labels: list[str]) -> None:
        self.labels = labels
        self.seen: set[str] = set()
        self.moved = self.lost = 0

    def build_mark(self, span: JsonObject, id: str, document: Document) -> Mark:
        """A mark with the source's id, unless it was there before."""
        kind, key, reason = span.get("type", int), span.get("id", str, ""), span.get("reason", str, "")
        if not 0 <= kind < len(self.labels):
            raise span.error(f"'type': expected 0 to {len(self.labels) - 1}, a category of {CONFIG}, found {kind}")
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
        """Where the file says, else at the nearest place with the same words, else nowhere; `start` is then kept.

        A model that begins a quote in lower case means the words that stand there; what it wrote is kept as `quoted`.
        """
        start, quote = _parse_start(span), span.get("text", str)
        meta = span.other_fields("type", "text", "start", "id", "reason")
        there = text[start : start + len(quote)]
        if there == quote and start <= len(text):
            return {"spans": (Span(start, start + len(quote)),), "meta": meta}
        if there.casefold() == quote.casefold() and len(there) == len(quote):
            spelled = {"spans": (Span(start, start + len(quote)),), "quotes": (there,)}
            return spelled | {"meta": meta | {"quoted": quote}}
        place = find_closest(quote, text, start)
        self.moved += place is not None
        self.lost += place is None
        if place is None:
            return {"spans": (), "unlocated": "the text is not in the output", "meta": meta | {"start": start}}
        return {"spans": (Span(*place),), "meta": meta | {"start": start}}

    def notes(self) -> Iterator[Note]:
        """What the user should hear."""
        if self.moved:
            yield Note(
                text=f"{self.moved:,} spans do not stand where the file says; moved to the nearest place that fits"
            )
        if self.lost:
            yield Note(text=f"{self.lost:,} spans are not in their text; their marks were kept without a place")


# --- out -----------------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a folder with `annotations.jsonl`, `config.yaml` and `outputs/`."""
    path.mkdir(parents=True)
    (path / OUTPUTS).mkdir()
    labels: dict[str, Label] = {}
    people: dict[str, Annotator] = {}
    places: dict[str, dict[str, Any]] = {}
    with (path / ANNOTATIONS).open("wb") as file:
        for item in items:
            match item:
                case Protocol():
                    labels |= {label.name: label for label in item.labels if label.name not in labels}
                case Document():
                    places[item.id] = _output_key_fields(item, len(places))
                    _append_output(item, places[item.id], path / OUTPUTS)
                case Annotator():
                    people[item.id] = item
                case Annotation() if item.document in places:  # an exercise is the protocol's
                    _append_annotation(item, places, list(people), list(labels), file)
        sync_to_disk(file)
    config = {_CATEGORIES_KEY: [_encode_category(label) for label in labels.values()]} | {
        "annotators": _encode_annotators(people.values())
    }
    (path / CONFIG).write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _output_key_fields(document: Document, number: int) -> dict[str, Any]:
    """Dataset, split, setup and example of a document: its own when it came from a campaign, else made up."""
    meta: Callable[[str, Any], Any] = document.meta.get
    model = meta("model", "unknown")
    index = meta("example_idx", number)
    return {
        "dataset": str(meta("dataset", "study")),
        "split": str(meta("split", "all")),
        "setup_id": str(model),
        "example_idx": index if isinstance(index, int | str) and not isinstance(index, bool) else number,
    }


def _append_output(document: Document, place: Mapping[str, Any], folder: Path) -> None:
    name = "-".join(slug(place[field]).replace("/", "-") for field in ("dataset", "setup_id", "split"))
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
        | {name: value for name, value in mark.meta.items() if name not in ("type", "text", "start", "id", "reason")}
        for mark in annotation.marks
        if mark.label in labels
        for span, quote in zip(mark.spans, mark.quotes, strict=False)
        if span.part == TEXT
    ]
    row = dict(places[annotation.document]) | {
        "annotations": spans,
        "annotator_group": people.index(annotation.annotator),
        "round": annotation.round,
    }
    more = {name: value for name, value in annotation.meta.items() if name not in row}
    file.write(to_json(row | more) + b"\n")


def _encode_category(label: Label) -> dict[str, str]:
    name = label.display_title if slug(label.display_title) == label.name else label.name
    return {"name": name, "description": label.gloss}


def _encode_annotators(people: Iterable[Annotator]) -> list[dict[str, Any]]:
    return [{"group": group, "id": person.id, "kind": person.kind} for group, person in enumerate(people)]


def sniff(path: Path) -> bool:
    """Whether `path` is a campaign's folder or its annotations."""
    start = read_start(path / ANNOTATIONS if path.is_dir() else path)
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
