"""Small studies with known true values, for tests of measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from finecomb.core.protocol import Group, Label, Protocol, Weight
from finecomb.core.records import Annotation, Annotator, Answer, Document, Mark
from finecomb.core.results import Estimate, Finding
from finecomb.core.span import Span
from finecomb.core.study import Study

LABELS = ("a", "b", "c")
PROTOCOL = Protocol(
    name="p",
    version="1",
    title="P",
    summary="Three labels in two groups.",
    groups=(Group(name="first"), Group(name="second")),
    labels=(Label(name="a", group="first"), Label(name="b", group="first"), Label(name="c", group="second")),
    unlabelled=True,
)
WEIGHTED_PROTOCOL = PROTOCOL.model_copy(
    update={
        "name": "q",
        "weights": (Weight(weight=25, labels=("a",), severity=(3,)), Weight(weight=1, severity=(1, 2, 3))),
    }
)
MarkedWords = tuple[str | None, int, int] | tuple[str | None, int, int, dict[str, Answer]]
"""Label, first and last word (half-open), and answers of a mark."""


def make_marks(owner: str, text: str, words: Sequence[MarkedWords]) -> tuple[Mark, ...]:
    """Build marks on the words of a text whose words are separated by one space."""
    starts = np.cumsum([0, *(len(word) + 1 for word in text.split(" "))]).tolist()
    made = []
    for number, (label, first, last, *answers) in enumerate(words):
        span = Span(starts[first], starts[last] - 1)
        more: dict[str, Any] = {"answers": answers[0]} if answers else {}
        made.append(Mark(id=f"{owner}/{number}", spans=(span,), quotes=(span.extract(text),), label=label, **more))
    return tuple(made)


def make_measure_study(
    texts: dict[str, str],
    read: Sequence[tuple[str, str, Sequence[MarkedWords]]],
    meta: dict[str, dict[str, Any]] | None = None,
    protocol: Protocol = PROTOCOL,
    answers: dict[tuple[str, str], dict[str, Answer]] | None = None,
) -> Study:
    """Build a study from texts by ID and triples of document, annotator and marks."""
    people = dict.fromkeys(person for _, person, _ in read)
    annotations = [
        Annotation(
            id=f"{document}/{person}",
            document=document,
            annotator=person,
            protocol=protocol.id,
            marks=make_marks(f"{document}/{person}", texts[document], own),
            answers=(answers or {}).get((document, person), {}),
        )
        for document, person, own in read
    ]
    documents = [Document(id=id, text=text, meta=(meta or {}).get(id, {})) for id, text in texts.items()]
    return Study.from_items([protocol, *documents, *(Annotator(id=id, kind="human") for id in people), *annotations])


def single_estimate(findings: Sequence[Finding], **columns: object) -> Estimate:
    """Return the estimate of the only finding with these columns."""
    found = [each for each in findings if columns.items() <= each.columns.items()]
    assert len(found) == 1, [dict(each.columns) for each in findings]
    return found[0].estimate


def single_column(findings: Sequence[Finding], name: str, **columns: object) -> Any:
    """Return another column of the only finding with these columns."""
    found = [each for each in findings if columns.items() <= each.columns.items()]
    assert len(found) == 1
    return found[0].columns[name]
