"""Tests of narratives and of splits that keep groups together."""

from __future__ import annotations

import numpy as np

from finecomb.annotators.detectors.coherence.narrative import (
    MAX_SENTENCE_LENGTH,
    Narrative,
    build_narrative,
    build_narratives,
    cross_validation_splits,
    train_dev_split,
)
from finecomb.core.records import Annotation, Document, Mark, Segment
from finecomb.core.span import Span

TEXT = "Nora leaves. Emil waits.\nA storm comes."
DOCUMENT = Document(id="d", text=TEXT, segments=(Segment(start=0, end=24), Segment(start=25, end=39)))


def mark(words: str, label: str) -> Mark:
    start = TEXT.index(words)
    return Mark(id=f"{words}/{label}", spans=(Span(start, start + len(words)),), quotes=(words,), label=label)


def test_marks_fall_to_the_sentences_that_they_touch() -> None:
    text = build_narrative(DOCUMENT, [mark("leaves. Emil", "ref"), mark("storm", "scene")])
    assert [sentence.labels for sentence in text.sentences] == [{"ref"}, {"ref"}, {"scene"}]
    assert [text.text[span.start : span.end] for span in text.sentences[1].spans] == ["Emil"]
    assert [sentence.opens for sentence in text.sentences] == [True, False, True]
    assert text.target_matrix(("char", "ref")).tolist() == [
        [False, True, True],
        [False, True, True],
        [False, False, True],
    ]


def test_segments_can_be_forgotten() -> None:
    text = build_narrative(DOCUMENT, segments=False)
    assert [sentence.opens for sentence in text.sentences] == [True, False, False]


def test_other_labels_are_left_out() -> None:
    annotation = Annotation(id="a", document="d", annotator="g", protocol="snac@1", marks=(mark("storm", "gram"),))
    assert not build_narratives([DOCUMENT], [annotation])[0].target_matrix(()).any()


def test_an_empty_text_has_no_sentence() -> None:
    assert build_narrative(Document(id="e", text="")).target_matrix(("char",)).shape == (0, 2)


def test_splits_test_every_text_once_and_never_cut_a_group() -> None:
    texts = [Narrative(str(number), "", (), str(number // 2)) for number in range(24)]
    every = cross_validation_splits(texts, 3, 0.2, np.random.default_rng(0))
    assert sorted(at for split in every for at in split.test) == list(range(24))
    for split in every:
        parts = [{texts[at].group for at in part} for part in (split.train, split.dev, split.test)]
        assert all(parts)
        assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]
        assert len(split.train) + len(split.dev) + len(split.test) == 24


def test_a_dev_split_has_nothing_to_test_on() -> None:
    texts = [Narrative(str(number), "", (), str(number)) for number in range(10)]
    split = train_dev_split(texts, 0.2, np.random.default_rng(0))
    assert (len(split.train), len(split.dev), len(split.test)) == (8, 2, 0)


def test_a_sentence_that_never_ends_is_cut() -> None:
    words = "word " * 100_000
    text = build_narrative(Document(id="long", text=words))
    assert max(sentence.end - sentence.start for sentence in text.sentences) <= MAX_SENTENCE_LENGTH
    assert " ".join(text.sentence_text(at) for at in range(len(text.sentences))).split() == words.split()
    assert build_narrative(Document(id="blob", text="x" * 10_000)).sentences[-1].end == 10_000
