"""Hypothesis strategies for studies, and what it means that a format gave back what it was given."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from finecomb.core.protocol import Label, Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Segment, Settings, Unit
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES

PROTOCOL = Protocol(
    name="test",
    version="1",
    title="Test",
    summary="For tests.",
    unlabelled=True,
    labels=(Label(name="red", antecedent="optional"), Label(name="blue", aliases=("BlueE",)), Label(name="not-green")),
    questions=(
        Question(name="severity", ask="How bad?", scale="ordinal", options=(1, 2, 3), required=False),
        Question(name="explanation", ask="Why?", required=False),
        Question(name="correction", ask="What instead?", required=False),
        Question(name="comment", ask="Anything else?", required=False),
        Question(name="sure", ask="Sure?", scale="yes-no", required=False),
    ),
    document_questions=(Question(name="rating", ask="Rate", scale="number", required=False),),
    unit_questions=(Question(name="verdict", ask="Fine?", scale="nominal", options=("yes", "no"), required=False),),
)

# Letters, spaces, an emoji beyond the BMP, a combining accent, Hebrew, Chinese, markup and quotes.
PLAIN_ALPHABET = "ab cd. 😀é\u0301שם中文<&>\"'"
MULTILINE_ALPHABET = PLAIN_ALPHABET + "\n\r\t,;|"


def texts(alphabet: str = MULTILINE_ALPHABET, min_size: int = 0, max_size: int = 40) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=min_size, max_size=max_size)


def words(alphabet: str = PLAIN_ALPHABET) -> st.SearchStrategy[str]:
    """Answers and titles: visible text without white space around it."""
    return texts(alphabet, 1, 12).map(str.strip).filter(bool)


def ids(prefix: str) -> st.SearchStrategy[str]:
    return st.integers(0, 10**6).map(lambda number: f"{prefix}{number}")


@st.composite
def documents(draw: st.DrawFn, id: str, holds: frozenset[str], alphabet: str = MULTILINE_ALPHABET) -> Document:
    text = draw(texts(alphabet, min_size=1))
    context = (
        {"prompt": draw(texts(alphabet, min_size=1))} if "document context" in holds and draw(st.booleans()) else {}
    )
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=4))) if "document segments" in holds else []
    segments = tuple(
        Segment(start=start, end=end, title=draw(words()))
        for start, end in itertools.pairwise(cuts)
        if draw(st.booleans())
    )
    return Document(
        id=id,
        text=text,
        context=context,
        segments=segments,
        references=tuple(draw(st.lists(words(alphabet), max_size=2))) if "document references" in holds else (),
        data={"score": [1, None, "x"]} if "document data" in holds and draw(st.booleans()) else None,
        meta={"model": draw(st.sampled_from(["gpt2", "human"])), "top_p": 0.9} if "document meta" in holds else {},
    )


@st.composite
def spans(
    draw: st.DrawFn, text: str, holds: frozenset[str], part: str = TEXT_PART, several: bool = True
) -> tuple[Span, ...]:
    most = 2 if several and "mark several spans" in holds else 1
    edges = sorted(draw(st.sets(st.integers(0, len(text)), min_size=2, max_size=2 * most)))
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    if "mark omission" in holds and draw(st.booleans()) and len(pairs) == 1:
        pairs = [(pairs[0][0], pairs[0][0])]
    return tuple(Span(start, end, part) for start, end in pairs)


@st.composite
def marks(draw: st.DrawFn, id: str, document: Document, holds: frozenset[str], alphabet: str = PLAIN_ALPHABET) -> Mark:
    part = "prompt" if "mark on context" in holds and document.context and draw(st.booleans()) else TEXT_PART
    text = document.part_text(part) or ""
    where = draw(spans(text, holds, part))
    label = draw(st.sampled_from(["red", "blue", "not-green", *([None] if "mark without label" in holds else [])]))
    answers: dict[str, Any] = {}
    if "mark severity" in holds and draw(st.booleans()):
        answers["severity"] = draw(st.sampled_from([1, 2, 3]))
    for name in ("explanation", "correction", "comment"):
        if f"mark {name}" in holds and draw(st.booleans()):
            answers[name] = draw(words(alphabet))
    if "mark other answers" in holds and draw(st.booleans()):
        answers["sure"] = draw(st.booleans())
    antecedents = None
    if "mark antecedents" in holds and label == "red" and draw(st.booleans()):
        earlier = draw(spans(document.text, holds - {"mark omission"}, several=False))
        antecedents = Antecedents(spans=earlier, quotes=tuple(span.extract(document.text) for span in earlier))
    lost = "mark unlocated" in holds and draw(st.integers(0, 5)) == 0
    return Mark(
        id=id,
        spans=() if lost else where,
        quotes=tuple(span.extract(text) for span in where),
        unlocated="not found" if lost else "",
        label=label,
        answers=answers,
        antecedents=antecedents,
        confidence=draw(st.sampled_from([None, 0.5])) if "mark confidence" in holds else None,
        votes=draw(st.sampled_from([None, 2])) if "mark votes" in holds else None,
        item=draw(st.sampled_from([None, "item-1"])) if "mark item" in holds else None,
        basis=draw(st.sampled_from([None, "record"])) if "mark basis" in holds else None,
        meta={"row": 7} if "mark meta" in holds and draw(st.booleans()) else {},
    )


@st.composite
def studies(
    draw: st.DrawFn, holds: frozenset[str] = ALL_FEATURES, alphabet: str = MULTILINE_ALPHABET, most: int = 3
) -> list[StudyItem]:
    """A small sound study that uses no feature outside `holds`, as a list of records."""
    docs = [draw(documents(f"doc-{n}", holds, alphabet)) for n in range(draw(st.integers(1, most)))]
    people = [Annotator(id=f"ann-{n}", kind="human") for n in range(draw(st.integers(1, 2)))]
    annotations = []
    for document in docs:
        for person in people:
            id = f"{document.id}-{person.id}"
            fewest = 0 if "annotation without marks" in holds else 1
            count = draw(st.integers(fewest, 3))
            own = tuple(draw(marks(f"{id}-m{n}", document, holds, alphabet)) for n in range(count))
            units = (
                (Unit(start=0, end=len(document.text), answers={"verdict": "yes"}),)
                if "unit" in holds and draw(st.booleans())
                else ()
            )
            answers = {"rating": 2} if "annotation answers" in holds and draw(st.booleans()) else {}
            meta = {"source": "x"} if "annotation meta" in holds and draw(st.booleans()) else {}
            annotations.append(
                Annotation(
                    id=id,
                    document=document.id,
                    annotator=person.id,
                    protocol=PROTOCOL.id,
                    marks=own,
                    units=units,
                    answers=answers,
                    meta=meta,
                )
            )
    return [Settings(protocols=(PROTOCOL.id,)), PROTOCOL, *docs, *people, *annotations]


def canonical_form(items: Iterable[StudyItem], holds: frozenset[str] = ALL_FEATURES) -> dict[str, Any]:
    """A study as plain values that do not depend on order, nor on ids or protocols that a format cannot hold."""
    result: dict[str, Any] = {"documents": {}, "annotators": {}, "annotations": []}
    for item in items:
        if isinstance(item, Document):
            result["documents"][item.id] = item.model_dump()
        elif isinstance(item, Annotator):
            result["annotators"][item.id] = item.model_dump()
        elif isinstance(item, Annotation):
            result["annotations"].append(_canonical_annotation(item, holds))
        elif isinstance(item, Protocol) and "protocol" in holds:
            result[item.id] = item.model_dump()
    result["annotations"].sort(key=lambda each: (each["document"], each["annotator"], each["round"]))
    return result


def _canonical_annotation(annotation: Annotation, holds: frozenset[str]) -> dict[str, Any]:
    value = annotation.model_dump()
    value["marks"] = sorted(
        value["marks"],
        key=lambda mark: repr((mark["spans"], mark["quotes"], mark["label"], sorted(mark["answers"].items()))),
    )
    if "annotation id" not in holds:
        del value["id"]
    if "protocol" not in holds:
        del value["protocol"]
    if "mark id" not in holds:
        for mark in value["marks"]:
            del mark["id"]
    return value


def round_trip(
    format: Format, items: Iterable[StudyItem], path: Path, options: Options | None = None
) -> list[StudyItem]:
    """Write `items` to `path` and read them again."""
    assert format.write is not None
    assert format.read is not None
    options = options or Options()
    format.write(list(items), path, options)
    return list(format.read(path, options))


Change = Callable[[StudyItem], StudyItem]
