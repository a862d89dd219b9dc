"""What language models wrote about a text: how the reply was read, how each quote was placed, and the reply itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from finecomb.core.model_notes import META_KEY, MarkNote, read_reply_note
from finecomb.core.records import Annotation, Mark
from finecomb.core.study import Study

_PLACEMENT_METHODS = {
    "spelling": "in another spelling",
    "elided": "from its first to its last words",
    "near": "where the words are nearly the same",
}
_PLACEMENT_WORDS = {"exact": "placed exactly", "repaired": "repaired", "missing": "not placed"}


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One language model's reply to one text."""

    name: str
    words: str
    """How it was read, e.g. `marked: 3 quotes placed exactly, 1 not placed`."""
    texts: tuple[str, ...] = ()
    """The reply as it came, one text for each part that was asked; empty where it is not known."""


def is_from_model(annotation: Annotation) -> bool:
    """Whether an annotation was made from a reply of a language model."""
    return META_KEY in annotation.meta


def model_replies(annotations: Iterable[Annotation], raw: Mapping[str, str]) -> list[ModelReply]:
    """The replies behind annotations of one text; `raw` has them by the hash of the request."""
    return [_build_model_reply(annotation, raw) for annotation in annotations if is_from_model(annotation)]


def _build_model_reply(annotation: Annotation, raw: Mapping[str, str]) -> ModelReply:
    note = read_reply_note(annotation)
    texts = tuple(raw[call] for call in note.calls if call in raw) or ((note.reply,) if note.reply else ())
    return ModelReply(annotation.annotator, _describe_reply(annotation), texts)


def _describe_reply(annotation: Annotation) -> str:
    note = read_reply_note(annotation)
    if annotation.excluded is not None:
        return f"{annotation.excluded.reason}; not counted"
    kinds = Counter(_placement_status(mark) for mark in annotation.marks)
    quotes = ", ".join(f"{kinds[kind]} {words}" for kind, words in _PLACEMENT_WORDS.items() if kinds[kind])
    return "; ".join([f"{note.state}, quotes: {quotes}" if quotes else note.state, *note.flags])


def _placement_status(mark: Mark) -> str:
    if not mark.spans:
        return "missing"
    return "exact" if MarkNote.from_mark(mark).placed == "exact" else "repaired"


def describe_placement(mark: Mark) -> str:
    """How the quote of a language model was placed; empty for a mark of somebody who needs no quotes."""
    if META_KEY not in mark.meta:
        return ""
    note = MarkNote.from_mark(mark)
    if not mark.spans:
        return f"quote not placed: {mark.unlocated}"
    method = _PLACEMENT_METHODS.get(note.placed)
    wrote = f"; it wrote \u201c{note.quoted}\u201d" if note.quoted else ""
    words = f"quote repaired, {method}{wrote}" if method else "quote placed exactly"
    return "; ".join([words, *note.flags, *([f"place {note.decision} by a researcher"] if note.decision else [])])


def select_used_replies(study: Study, raw: Mapping[str, str]) -> dict[str, str]:
    """Those of many replies that annotations of the study were made from."""
    calls = {
        call
        for annotation in study.iter_annotations()
        if is_from_model(annotation)
        for call in read_reply_note(annotation).calls
    }
    return {call: raw[call] for call in sorted(calls) if call in raw}
