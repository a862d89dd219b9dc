"""Small studies with known people and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, AnnotatorKind, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study

MarkTuples = Sequence[tuple[int, int, str]]
PROTOCOL = Protocol(
    name="slips",
    title="Slips",
    summary="Names and numbers that are wrong.",
    version="1",
    labels=(Label(name="name", gloss="A name."), Label(name="number", gloss="A number.")),
)
TEXT = "The Gulls beat the Terns by ten points on Friday, and the Herons lost to the Crakes once more at home. "


def make_judge_study(
    marks: Mapping[str, Mapping[str, MarkTuples]],
    kinds: Mapping[str, AnnotatorKind] | None = None,
    metas: Mapping[str, Mapping[str, Any]] | None = None,
    annotator_meta: Mapping[str, Mapping[str, Any]] | None = None,
    annotation_meta: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
) -> Study:
    """Build a study from {annotator: {document: marks}}, in which all documents have the same text."""
    documents = dict.fromkeys(document for own in marks.values() for document in own)
    items: list[Any] = [PROTOCOL]
    items += [Document(id=document, text=TEXT, meta=dict((metas or {}).get(document, {}))) for document in documents]
    for name, own in marks.items():
        kind = (kinds or {}).get(name, "human")
        items.append(Annotator(id=name, kind=kind, meta=dict((annotator_meta or {}).get(name, {}))))
        items += [
            Annotation(
                id=f"{name}/{document}", document=document, annotator=name, protocol=PROTOCOL.id, status="submitted",
                marks=tuple(_make_mark(f"{name}/{document}/{at}", *mark) for at, mark in enumerate(marked)),
                meta=dict((annotation_meta or {}).get((name, document), {})),
            )
            for document, marked in own.items()
        ]  # fmt: skip
    return Study.from_items(items)


def _make_mark(id: str, start: int, end: int, label: str) -> Mark:
    return Mark(id=id, spans=(Span(start, end),), quotes=(TEXT[start:end],), label=label)


def simulate_annotator(texts: int, seed: int, finds: float = 0.7, alarms: float = 0.1) -> dict[str, MarkTuples]:
    """Simulate an annotator who finds each error of a text with probability `finds` and adds false alarms."""
    rng, truth = np.random.default_rng(seed), np.random.default_rng(99)
    places = [(4, 9, "name"), (28, 31, "number"), (42, 48, "name"), (58, 64, "name")]
    marks: dict[str, MarkTuples] = {}
    for text in range(texts):
        wrong = [place for place in places if truth.random() < 0.5]
        own = [place for place in wrong if rng.random() < finds]
        own += [place for place in places if place not in wrong and rng.random() < alarms]
        marks[f"d{text:03}"] = sorted(own)
    return marks


def make_crowd_study(
    texts: int = 40, people: int = 4, judge: Mapping[str, MarkTuples] | None = None, **more: Any
) -> Study:
    """Build a study of people of equal skill and a judge, by default one of equal skill."""
    marks = {f"p{at}": simulate_annotator(texts, at) for at in range(people)}
    return make_judge_study({**marks, "judge": judge or simulate_annotator(texts, 77)}, {"judge": "llm"}, **more)
