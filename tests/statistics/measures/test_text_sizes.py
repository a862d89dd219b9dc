from __future__ import annotations

import re

import pytest

import finecomb as fc
from finecomb.core.records import Annotation, Annotator, Document, Mark, Segment
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.measures.text_sizes import (
    annotation_work_summary,
    text_size_summary,
    uncounted_annotation_counts,
)


def test_words_are_counted_as_one_would_by_hand() -> None:
    study = fc.demo()
    sizes = {row["model"]: row for row in text_size_summary(study, ["model"]).iter_rows(named=True)}
    texts = [document for document in study.iter_documents() if document.meta["model"] == "human"]
    lengths = [len(re.findall(r"\w+", document.text)) for document in texts]
    assert sizes["human"]["words"] == sum(lengths)
    assert (sizes["human"]["fewest"], sizes["human"]["most"]) == (min(lengths), max(lengths))
    assert sizes["human"]["words per text"] == pytest.approx(sum(lengths) / len(lengths))


def study() -> Study:
    """Build a text of two segments and three sentences, with pooled, training and draft annotations."""
    text = "One is here. Two is here. Three is here."
    segments = (Segment(start=0, end=25), Segment(start=26, end=len(text)))
    mark = Mark(id="m", spans=(Span(0, 3),), quotes=("One",), label="CharE", votes=2)
    snac = fc.protocol("snac")
    annotations = [
        Annotation(id="crowd", document="d", annotator="crowd", protocol=snac.id, readers=3, marks=(mark,), seconds=60),
        Annotation(id="draft", document="d", annotator="ann", protocol=snac.id, status="draft"),
        Annotation(id="exercise", document="d", annotator="ann", protocol=snac.id, phase="training"),
    ]
    people = [Annotator(id="crowd", kind="pooled"), Annotator(id="ann", kind="human")]
    return Study.from_items([snac, Document(id="d", text=text, segments=segments), *people, *annotations])


def test_sentences_segments_and_votes() -> None:
    sizes = text_size_summary(study()).row(0, named=True)
    assert (sizes["documents"], sizes["sentences"], sizes["segments"]) == (1, 3, 2)
    work = annotation_work_summary(study().submitted_work()).row(0, named=True)
    assert (work["readings"], work["marks"], work["votes"], work["median seconds"]) == (3, 1, 2, 60)


def test_exercises_and_drafts_are_no_work() -> None:
    assert uncounted_annotation_counts(study()) == {"exercises": 1, "drafts": 1, "excluded annotations": 0}
    assert annotation_work_summary(study().submitted_work()).row(0, named=True)["annotations"] == 1
