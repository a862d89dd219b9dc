"""Simulated annotators over known true errors. Statistics should recover the annotators' parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Mark
from finecomb.core.span import TEXT_PART, Offsets, Span, covered_token_mask, token_range
from finecomb.core.tokens import Tokenizer, word_offsets
from finecomb.engine.seeds import seeded_generator

_ERROR_END_PROBABILITY = 0.3  # probability that a planted error ends after a token, so 3.3 tokens on average
_BURN_IN_TOKENS = 200  # simulated before the text begins, so that gaps and errors reach their stationary distribution
_SECONDS_PER_TOKEN, _SECONDS_PER_MARK = 0.5, 12.0


@dataclass(frozen=True, slots=True)
class SimulatedAnnotator:
    """A simulated annotator and its error rates."""

    id: str
    recall: float = 0.6
    """Probability of noticing a true error."""
    precision: float = 0.8
    """Expected share of the marks that correspond to a true error."""
    jitter: float = 0.5
    """Standard deviation of the shift of each boundary, in tokens."""
    confusion: float = 0.1
    """Probability of assigning a wrong label."""

    def __post_init__(self) -> None:
        for name in ("recall", "precision", "confusion"):
            if not 0 <= getattr(self, name) <= 1:
                raise FinecombError(f"{name} of a simulated annotator must be from 0 to 1, found {getattr(self, name)}")
        if not self.precision:
            raise FinecombError("precision of a simulated annotator must be greater than 0, found 0")
        if self.jitter < 0:
            raise FinecombError(f"jitter of a simulated annotator must be at least 0, found {self.jitter}")

    def to_annotator(self) -> Annotator:
        """Return the annotator record for a study."""
        traits = {
            "recall": self.recall,
            "precision": self.precision,
            "jitter": self.jitter,
            "confusion": self.confusion,
        }
        return Annotator(id=self.id, kind="human", meta={"simulated": True, **traits})


def make_crowd(count: int, like: SimulatedAnnotator, spread: float, seed: int) -> list[SimulatedAnnotator]:
    """Create `count` annotators modelled on `like`, with normally distributed recall and precision (SD `spread`)."""
    people = []
    for number in range(1, count + 1):
        recall, precision = seeded_generator(seed, "crowd", number).normal([like.recall, like.precision], spread)
        id = f"{like.id}-{number}"
        # Clipped above 0, because a precision of 0 would require infinitely many false marks.
        bounded = [float(np.clip(value, 0.02, 1)) for value in (recall, precision)]
        rates = bounded if spread else [like.recall, like.precision]
        people.append(SimulatedAnnotator(id, rates[0], rates[1], like.jitter, like.confusion))
    return people


def simulate_annotations(
    documents: Iterable[Document],
    truth: dict[str, Annotation],
    people: Sequence[SimulatedAnnotator],
    protocol: Protocol,
    seed: int = 0,
    tokenize: Tokenizer = word_offsets,
) -> Iterator[Annotation]:
    """Yield the annotations of `people` for `documents`, given the true errors in `truth` by document ID.

    The result depends only on the seed and the IDs, not on the order of documents or annotators.
    """
    for document in documents:
        offsets = tokenize(document.text)
        true = truth[document.id].marks if document.id in truth else ()
        for person in people:
            rng = seeded_generator(seed, document.id, person.id)
            noticed = [mark for mark in true if mark.spans and rng.random() < person.recall]
            marks = [_simulate_noticed_mark(mark, document, offsets, person, protocol, rng) for mark in noticed]
            marks += _invent_false_marks(document, offsets, true, person, protocol, rng)
            marks.sort(key=lambda mark: mark.spans)
            id = f"{document.id}/{person.id}"
            numbered = tuple(mark.model_copy(update={"id": f"{id}/{number}"}) for number, mark in enumerate(marks, 1))
            seconds = float(rng.gamma(8, (_SECONDS_PER_TOKEN * len(offsets) + _SECONDS_PER_MARK * len(marks) + 5) / 8))
            yield Annotation(
                id=id,
                document=document.id,
                annotator=person.id,
                protocol=protocol.id,
                marks=numbered,
                seconds=round(seconds, 1),
            )


def _simulate_noticed_mark(
    mark: Mark,
    document: Document,
    offsets: Offsets,
    person: SimulatedAnnotator,
    protocol: Protocol,
    rng: np.random.Generator,
) -> Mark:
    """Simulate the mark of a noticed error: boundaries moved, label possibly confused, otherwise the true answers."""
    moved = []
    for span in mark.spans:
        start, end = token_range(span, offsets)
        if span.part != TEXT_PART or start == end or not person.jitter:
            moved.append(span)
            continue
        # Both boundaries move by whole tokens, and at least one token of the true span stays.
        moves = np.rint(rng.normal(0, person.jitter, 2)).astype(int)
        new_start = int(np.clip(start + moves[0], 0, end - 1))
        new_end = int(np.clip(end + moves[1], max(new_start, start) + 1, len(offsets)))
        moved.append(Span(int(offsets[new_start, 0]), int(offsets[new_end - 1, 1])))
    # The spans of a mark must stay in text order.
    spans = tuple(moved) if moved == sorted(moved) else mark.spans
    quotes = tuple(span.extract(document.part_text(span.part) or "") for span in spans)
    first = token_range(spans[0], offsets)[0] if spans[0].part == TEXT_PART else 0
    others = [other for other in _allowed_labels(first, protocol) if other != mark.label]
    label = str(rng.choice(others)) if others and rng.random() < person.confusion else mark.label
    answers = mark.answers if label == mark.label else _random_answers(protocol.questions_for_label(label), rng)
    antecedents = (
        mark.antecedents
        if label == mark.label
        else _invent_required_antecedents(label, first, document, offsets, protocol)
    )
    return Mark(
        id="m", spans=spans, quotes=quotes, label=label, answers=answers, antecedents=antecedents, made_from=(mark.id,)
    )


def _allowed_labels(first: int, protocol: Protocol) -> list[str]:
    """Return the labels possible at token `first`. Labels that require an antecedent are not possible at the start."""
    return [label.name for label in protocol.labels if first or label.antecedent != "required"]


def _invent_required_antecedents(
    label: str | None, first: int, document: Document, offsets: Offsets, protocol: Protocol
) -> Antecedents | None:
    """Return up to three tokens from the start of the text as antecedent if the label requires one, otherwise None."""
    if label is None or protocol.resolve_label(label).antecedent != "required":
        return None
    before = Span(int(offsets[0, 0]), int(offsets[min(first, 3) - 1, 1]))
    return Antecedents(spans=(before,), quotes=(before.extract(document.text),))


def _invent_false_marks(
    document: Document,
    offsets: Offsets,
    true: Sequence[Mark],
    person: SimulatedAnnotator,
    protocol: Protocol,
    rng: np.random.Generator,
) -> list[Mark]:
    """Create false marks in error-free tokens, enough to reach the precision in expectation."""
    located = sum(bool(mark.spans) for mark in true)
    expected = person.recall * located * (1 - person.precision) / person.precision
    clean = np.flatnonzero(
        ~covered_token_mask([span for mark in true for span in mark.spans if span.part == TEXT_PART], offsets)
    )
    if not len(clean) or not protocol.labels:
        return []
    marks = []
    for _ in range(rng.poisson(expected)):
        first = int(rng.choice(clean))
        last = first
        while last + 1 in clean and last - first < 6 and rng.random() < 0.6:
            last += 1
        marks.append(_make_random_mark(first, last + 1, document, offsets, protocol, rng))
    return [mark for mark in marks if mark is not None]


def _make_random_mark(
    first: int, last: int, document: Document, offsets: Offsets, protocol: Protocol, rng: np.random.Generator
) -> Mark | None:
    """Create a mark on the tokens [first, last) with a random label, or return None if no label is possible there."""
    labels = _allowed_labels(first, protocol)
    if not labels:
        return None
    label = str(rng.choice(labels))
    span = Span(int(offsets[first, 0]), int(offsets[last - 1, 1]))
    return Mark(
        id="m",
        spans=(span,),
        quotes=(span.extract(document.text),),
        label=label,
        answers=_random_answers(protocol.questions_for_label(label), rng),
        antecedents=_invent_required_antecedents(label, first, document, offsets, protocol),
    )


def _random_answers(questions: Iterable[Question], rng: np.random.Generator) -> dict[str, Answer]:
    """Return a random answer to each required question without a condition."""
    required = (question for question in questions if question.required and not question.when)
    return {question.name: question.scale_type.example(question, rng) for question in required}


def plant_errors(
    documents: Iterable[Document], protocol: Protocol, rate: float, seed: int = 0, tokenize: Tokenizer = word_offsets
) -> Iterator[Annotation]:
    """Yield annotations with random true errors, `rate` per 100 tokens on average, for texts whose errors are unknown.

    The errors neither overlap nor touch, so at most 23 are planted per 100 tokens on average. Higher rates have
    no further effect. The annotations belong to the annotator `truth`, of kind gold.
    """
    if rate < 0:
        raise FinecombError(f"the error rate must be at least 0, found {rate}")
    for document in documents:
        rng = seeded_generator(seed, "plant", document.id)
        offsets = tokenize(document.text)
        if not protocol.labels:
            raise FinecombError(f"cannot plant errors because protocol {protocol.id} has no labels")
        marks: list[Mark] = []
        # Mean distance from the end of an error to the start of the next
        gap = max(1.0, 100 / rate - 1 / _ERROR_END_PROBABILITY) if rate else math.inf
        start = -_BURN_IN_TOKENS  # so that the first token is as likely to be in an error as any other
        while rate and (start := start + int(rng.geometric(1 / gap)) - 1) < len(offsets):
            end = start + int(rng.geometric(_ERROR_END_PROBABILITY))
            if start >= 0:
                mark = _make_random_mark(start, min(end, len(offsets)), document, offsets, protocol, rng)
                marks += [mark] if mark else []
            start = end + 1  # at least one token between two errors
        id = f"{document.id}/truth"
        numbered = tuple(mark.model_copy(update={"id": f"{id}/{number}"}) for number, mark in enumerate(marks, 1))
        yield Annotation(id=id, document=document.id, annotator="truth", protocol=protocol.id, marks=numbered)
