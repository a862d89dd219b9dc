"""Small studies for tests of agreement, and naive implementations for reading them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from hypothesis import strategies as st

from finecomb.core.protocol import Label, Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, AnnotatorKind, Answers, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.agreement.alpha import Ratings

PROTOCOL = Protocol(
    name="test",
    version="1",
    title="Test",
    summary="For tests.",
    unlabelled=True,
    labels=(Label(name="red"), Label(name="blue"), Label(name="green")),
    questions=(Question(name="severity", ask="How bad?", scale="ordinal", options=(1, 2, 3), required=False),),
    document_questions=(
        Question(name="rating", ask="Rate", scale="ordinal", options=(1, 2, 3, 4, 5), required=False),
        Question(name="verdict", ask="Well?", scale="ordinal", options=("bad", "fair", "good"), required=False),
        Question(name="reasons", ask="Why?", scale="several", options=("a", "b"), required=False),
    ),
    unit_questions=(Question(name="fine", ask="Fine?", scale="yes-no", required=False),),
)

MarkTuple = tuple[int, int, str | None]
"""Start, end and label of a mark."""


def make_mark(id: str, text: str, given: MarkTuple, item: str | None = None, answers: Answers | None = None) -> Mark:
    start, end, label = given
    return Mark(
        id=id, spans=(Span(start, end),), quotes=(text[start:end],), label=label, item=item, answers=answers or {}
    )


def make_marked_study(
    texts: Mapping[str, str], read: Mapping[tuple[str, str], Iterable[MarkTuple]], kind: AnnotatorKind = "human"
) -> Study:
    """Build a study from texts by ID and the marks of each (document, annotator)."""
    people = dict.fromkeys(person for _, person in read)
    return Study.from_items(
        [
            PROTOCOL,
            *(Document(id=id, text=text, meta={"model": f"m{at % 2}"}) for at, (id, text) in enumerate(texts.items())),
            *(Annotator(id=id, kind=kind) for id in people),
            *(
                Annotation(
                    id=f"{document}/{person}",
                    document=document,
                    annotator=person,
                    protocol="test@1",
                    readers=3 if kind == "pooled" else None,
                    marks=tuple(
                        make_mark(f"{document}/{person}/{at}", texts[document], each) for at, each in enumerate(own)
                    ),
                )
                for (document, person), own in read.items()
            ),
        ]
    )


def make_rated_study(answers: Mapping[tuple[str, str], Answers]) -> Study:
    """Build a study from the answers of each (document, annotator) about the document."""
    texts = dict.fromkeys(document for document, _ in answers)
    people = dict.fromkeys(person for _, person in answers)
    return Study.from_items(
        [
            PROTOCOL,
            *(Document(id=id, text="A text.") for id in texts),
            *(Annotator(id=id, kind="human") for id in people),
            *(
                Annotation(
                    id=f"{document}/{person}", document=document, annotator=person, protocol="test@1", answers=own
                )
                for (document, person), own in answers.items()
            ),
        ]
    )


TEXT = "one two three four"  # words at 0-3, 4-7, 8-13, 14-18


@st.composite
def studies(draw: st.DrawFn, documents: int = 3) -> Study:
    """Generate studies of up to three texts, each with one to four annotators and freely overlapping marks."""
    texts = {f"d{at}": draw(st.sampled_from([TEXT, "one two.", "x", ""])) for at in range(documents)}
    read: dict[tuple[str, str], list[MarkTuple]] = {}
    for id, text in texts.items():
        for person in draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=4, unique=True)):
            read[id, person] = []
            for _ in range(draw(st.integers(0, 3)) if text else 0):
                start = draw(st.integers(0, len(text) - 1))
                end = draw(st.integers(start + 1, len(text)))
                read[id, person].append((start, end, draw(st.sampled_from(["red", "blue", None]))))
    return make_marked_study(texts, read)


@st.composite
def ratings(draw: st.DrawFn) -> Ratings:
    """Generate ratings of 1-6 units by 2-4 annotators, with values 0 to 3 and missing ones."""
    annotators, units = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    choice = st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan])
    rows = [draw(st.lists(choice, min_size=units, max_size=units)) for _ in range(annotators)]
    return np.array(rows)
