"""Replies of language models on a text page: parsing, location of quotes, and the raw reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from finecomb.core.model_notes import META_KEY, MarkNote, read_reply_note
from finecomb.core.records import Annotation, Mark

_PLACEMENT_METHODS = {
    "spelling": "with different spelling",
    "elided": "by its first and last words",
    "near": "by approximate matching",
}
_PLACEMENT_STATUS_TITLES = {"exact": "located exactly", "repaired": "located approximately", "missing": "not located"}


@dataclass(frozen=True, slots=True)
class ModelReply:
    """Reply of a language model to one text, as one raw reply per part of the request; empty if unknown.

    `words` describe how it was parsed, e.g. `marked, quotes: 3 located exactly, 1 not located`.
    """

    name: str
    words: str
    texts: tuple[str, ...] = ()


def is_from_model(annotation: Annotation) -> bool:
    """Return True if an annotation was parsed from the reply of a language model."""
    return META_KEY in annotation.meta


def model_replies(annotations: Iterable[Annotation], raw: Mapping[str, str]) -> list[ModelReply]:
    """Return the replies behind the annotations of a text; `raw` maps request hashes to replies."""
    replies = []
    for annotation in filter(is_from_model, annotations):
        note = read_reply_note(annotation)
        texts = tuple(raw[call] for call in note.calls if call in raw) or ((note.reply,) if note.reply else ())
        if annotation.excluded is not None:
            replies.append(ModelReply(annotation.annotator, f"excluded: {annotation.excluded.reason}", texts))
            continue
        kinds = Counter(
            "missing" if not mark.spans else "exact" if MarkNote.from_mark(mark).placed == "exact" else "repaired"
            for mark in annotation.marks
        )
        quotes = ", ".join(f"{kinds[kind]} {words}" for kind, words in _PLACEMENT_STATUS_TITLES.items() if kinds[kind])
        words = "; ".join([f"{note.state}, quotes: {quotes}" if quotes else note.state, *note.flags])
        replies.append(ModelReply(annotation.annotator, words, texts))
    return replies


def describe_quote_placement(mark: Mark) -> str:
    """Describe how the quote of a language model was located; empty for marks that do not come from a model."""
    if META_KEY not in mark.meta:
        return ""
    note = MarkNote.from_mark(mark)
    if not mark.spans:
        return f"quote not located: {mark.unlocated}"
    method = _PLACEMENT_METHODS.get(note.placed)
    wrote = f"; the model wrote \u201c{note.quoted}\u201d" if note.quoted else ""
    words = f"quote located {method}{wrote}" if method else "quote located exactly"
    return "; ".join([words, *note.flags, *([f"position {note.decision} by a researcher"] if note.decision else [])])
