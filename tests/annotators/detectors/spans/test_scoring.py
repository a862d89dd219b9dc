"""Tests that scoring all spans at once equals applying the network to each span."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from finecomb.annotators.detectors.spans.examples import (
    WordSpan,
    build_span_text,
    sample_training_spans,
    word_label_matrix,
)
from finecomb.annotators.detectors.spans.scoring import SpanHead, all_span_logits, softmax, word_probabilities
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span


def head(width: int, hidden: int, longest: int, classes: int, seed: int = 0) -> SpanHead:
    rng = np.random.default_rng(seed)
    shapes = [(width, hidden), (width, hidden), (longest, hidden), (hidden, classes), (classes,)]
    return SpanHead(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))


def slow_logits(starts: NDArray[Any], ends: NDArray[Any], weights: SpanHead, first: int, last: int) -> NDArray[Any]:
    """Apply the layers to [start; end; length] of one span."""
    hidden = starts[first] @ weights.start + ends[last] @ weights.end + weights.length[last - first]
    logits: NDArray[Any] = np.maximum(hidden, 0) @ weights.out + weights.bias
    return logits


def test_every_span_is_scored_as_by_its_definition() -> None:
    weights = head(6, 5, 4, 3)
    rng = np.random.default_rng(1)
    starts, ends = (rng.normal(size=(9, 6)).astype(np.float32) for _ in range(2))
    logits = all_span_logits(starts, ends, weights)
    assert [len(rows) for rows in logits] == [9, 8, 7, 6]
    for extra, rows in enumerate(logits):
        for first, row in enumerate(rows):
            assert row == pytest.approx(slow_logits(starts, ends, weights, first, first + extra), abs=1e-4)


def test_a_word_has_the_highest_chance_of_the_spans_over_it() -> None:
    weights = head(6, 5, 3, 3)
    rng = np.random.default_rng(2)
    starts, ends = (rng.normal(size=(5, 6)).astype(np.float32) for _ in range(2))
    logits = all_span_logits(starts, ends, weights)
    chances = word_probabilities(logits, 5)
    for word in range(5):
        covering = [
            softmax(logits[extra])[first, 1:]
            for extra in range(3)
            for first in range(5 - extra)
            if first <= word <= first + extra
        ]
        assert chances[word] == pytest.approx(np.max(covering, axis=0), abs=1e-6)


def test_a_text_without_words_has_no_spans() -> None:
    none = np.zeros((0, 6), dtype=np.float32)
    assert all_span_logits(none, none, head(6, 5, 3, 3)) == []


def test_the_first_layer_is_applied_to_words_and_not_to_spans() -> None:
    """The cost must not grow with the number of spans: 9 words have 30 spans of up to four words."""

    class CountedArray(np.ndarray):
        """An array that counts the rows it is multiplied with."""

        rows: list[int] = []

        def __rmatmul__(self, other: NDArray[Any]) -> NDArray[Any]:  # type: ignore[override]
            self.rows.append(len(other))
            product: NDArray[Any] = other @ np.asarray(self)
            return product

        __array_ufunc__ = None  # type: ignore[assignment]

    weights = head(6, 5, 4, 3)
    counted = SpanHead(weights.start.view(CountedArray), weights.end.view(CountedArray), *(
        getattr(weights, name) for name in ("length", "out", "bias")
    ))  # fmt: skip
    vectors = np.ones((9, 6), dtype=np.float32)
    assert sum(map(len, all_span_logits(vectors, vectors, counted))) == 30
    assert CountedArray.rows == [9, 9]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_the_factored_network_is_the_one_that_was_fitted() -> None:
    """The layers applied to [start; end; length] must equal the sum of three products."""
    torch = pytest.importorskip("torch")
    from finecomb.annotators.detectors.spans.classifier import SpanSettings, _build_network, _extract_span_head

    torch.manual_seed(0)
    network = _build_network(torch, SpanSettings(labels=("x", "y"), hidden=7, lengths=4, longest=5), 6)
    rng = np.random.default_rng(3)
    starts, ends = (rng.normal(size=(8, 6)).astype(np.float32) for _ in range(2))
    for extra, rows in enumerate(all_span_logits(starts, ends, _extract_span_head(network, 6))):
        first = torch.arange(len(rows))
        length = network["lengths"](torch.full_like(first, extra))
        inputs = torch.cat([torch.from_numpy(starts)[first], torch.from_numpy(ends)[first + extra], length], dim=1)
        slow = network["out"](torch.relu(network["first"](inputs))).detach().numpy()
        assert rows == pytest.approx(slow, abs=1e-5)


DOCUMENT = Document(id="d", text="One two, three four five six seven eight.")


def annotated(*spans: tuple[int, int, str]) -> Annotation:
    marks = tuple(
        Mark(id=str(number), spans=(Span(start, end),), quotes=(DOCUMENT.text[start:end],), label=label)
        for number, (start, end, label) in enumerate(spans)
    )
    return Annotation(id="a", document="d", annotator="p", protocol="snac@1", marks=marks)


def test_marks_become_whole_words_and_the_same_words_once() -> None:
    text = build_span_text(DOCUMENT, [annotated((5, 7, "x"), (4, 7, "x"), (9, 19, "y"), (0, 3, "other"))], ("x", "y"))
    assert [(span.first, span.last, span.label) for span in text.spans] == [(1, 1, 1), (3, 4, 2)]
    assert word_label_matrix(text, 2).sum(axis=0).tolist() == [1, 2]


def test_three_unmarked_spans_of_the_same_length_for_each() -> None:
    text = build_span_text(DOCUMENT, [annotated((4, 7, "x"), (9, 19, "y"))], ("x", "y"))
    spans = sample_training_spans(text, 30, np.random.default_rng(0))
    assert spans[:2] == [WordSpan(1, 1, 1), WordSpan(3, 4, 2)]
    negatives = spans[2:]
    assert sorted(span.last - span.first for span in negatives) == [0, 0, 0, 1, 1, 1]
    assert all(span.label == 0 and (span.first, span.last) not in {(1, 1), (3, 4)} for span in negatives)


def test_spans_that_are_too_long_are_left_out() -> None:
    text = build_span_text(DOCUMENT, [annotated((0, 40, "x"))], ("x",))
    assert sample_training_spans(text, 3, np.random.default_rng(0)) == []
