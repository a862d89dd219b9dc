"""FRANK: judgements of summaries pooled into numbers, and metric scores of the same summaries.

Read only. The release has no texts, so documents are empty; a summary is identified by its article's hash and its
model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, param
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Document, Note, Settings
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    JsonObject,
    build_implied_protocol,
    build_record,
    label_slug,
    read_first_characters,
    stream_json_items,
)

METRICS_FILE = "baseline_factuality_metrics_outputs.json"
POOLED_ANNOTATOR = "pooled"
KEY_FIELDS = ("hash", "model_name")
FLIP_PREFIX = "Flip_"
"""Prefix of derived fields, which are not read: the factuality when errors of one category are ignored."""


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read the protocol, the annotators, each summary with its judgement, and the metric scores."""
    beside = path.with_name(METRICS_FILE)
    metrics_file = options.data or (beside if beside.is_file() and beside != path else None)
    metrics: dict[str, str] = {}  # annotator ID by metric
    for name in _numeric_field_names(metrics_file) if metrics_file else ():
        slug = label_slug(name)
        is_taken = slug in (*metrics.values(), POOLED_ANNOTATOR)
        metrics[name] = f"{slug}-{len(metrics)}" if is_taken else slug
    protocol = options.protocol or _infer_protocol(path)
    yield Settings(protocols=(protocol.id,))
    yield protocol
    yield Annotator(id=POOLED_ANNOTATOR, kind="pooled")
    for name, id in metrics.items():
        yield build_record(Annotator, str(metrics_file), id=id, kind="detector", meta={"name": name})
    documents: set[str] = set()
    for fields in _read_records(path):
        document = _build_document(fields)
        documents.add(document.id)
        yield document
        numbers = {name: value for name, value in fields.other_fields(*KEY_FIELDS).items() if _is_number(value)}
        yield build_record(
            Annotation,
            fields.where,
            id=f"{document.id}/{POOLED_ANNOTATOR}",
            document=document.id,
            annotator=POOLED_ANNOTATOR,
            protocol=protocol.id,
            answers={
                _normalise_question_name(name): value
                for name, value in numbers.items()
                if not name.startswith(FLIP_PREFIX)
            },
            meta={name: value for name, value in numbers.items() if name.startswith(FLIP_PREFIX)},
        )
    if metrics_file:
        yield from _read_metric_scores(metrics_file, metrics, documents, protocol)


def _read_records(path: Path) -> Iterator[JsonObject]:
    for index, value, line in stream_json_items(path):
        if not isinstance(index, int):
            raise FormatError(f"{path}:{line}: expected a list of records, found an object")
        yield JsonObject(value, f"{path}:{line}")


def _numeric_field_names(path: Path) -> list[str]:
    """Return the names of fields with numbers anywhere in the file, in order of first appearance."""
    names: dict[str, None] = {}
    for fields in _read_records(path):
        names |= dict.fromkeys(
            name for name, value in fields.value.items() if _is_number(value) and name not in KEY_FIELDS
        )
    return list(names)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _infer_protocol(path: Path) -> Protocol:
    names = [name for name in _numeric_field_names(path) if not name.startswith(FLIP_PREFIX)]
    if "Factuality" not in names:
        hint = f"; the metrics file must be given with the judgements, as {param('data', path.name)}" if names else ""
        raise FormatError(f"{path}: no record has a number in the field 'Factuality'{hint}")
    questions = {_normalise_question_name(name): name.replace("_", " ") for name in names}
    return build_implied_protocol(
        "frank",
        [],
        title="FRANK",
        document_questions=tuple(
            build_record(
                Question, str(path), name=name, ask=f"{title}, where 1 means no error", scale="number", required=False
            )
            for name, title in questions.items()
        ),
    )


def _normalise_question_name(name: str) -> str:
    """Convert a field name: `Factuality` becomes `factuality`, `RelE` becomes `rel_e`."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).strip("_").lower()
    return snake if snake[:1].isalpha() and snake.isascii() else f"q_{snake}"


def _document_id(fields: JsonObject) -> str:
    return f"{fields.get('hash', str)}/{fields.get('model_name', str)}"


def _build_document(fields: JsonObject) -> Document:
    meta = {"model": fields.get("model_name", str), "hash": fields.get("hash", str)}
    more = {name: value for name, value in fields.other_fields(*KEY_FIELDS).items() if not _is_number(value)}
    return build_record(Document, fields.where, id=_document_id(fields), text="", meta=more | meta)


def _read_metric_scores(
    path: Path, ids: dict[str, str], documents: set[str], protocol: Protocol
) -> Iterator[StudyItem]:
    """Yield an annotation per score; missing scores yield none."""
    strange = 0
    for fields in _read_records(path):
        document = _document_id(fields)
        if document not in documents:
            strange += 1
            continue
        for name, annotator in ids.items():
            if _is_number(score := fields.value.get(name)):
                yield build_record(
                    Annotation,
                    fields.where,
                    id=f"{document}/{annotator}",
                    document=document,
                    annotator=annotator,
                    protocol=protocol.id,
                    answers={"score": score},
                )
    if strange:
        yield Note(text=f"{strange:,} records of {path.name} are omitted, because their summaries have no judgement")


def sniff(path: Path) -> bool:
    """Return True for a list whose first record has the fields of a judgement."""
    start = read_first_characters(path)
    return start.lstrip().startswith("[") and all(f'"{name}"' in start for name in (*KEY_FIELDS, "Factuality"))


FORMAT = Format("frank", "FRANK", read, sniff=sniff, options=frozenset(["protocol", "data"]))
