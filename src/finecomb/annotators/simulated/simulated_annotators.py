"""Pretended annotators over known true errors. What they are told to be is what a good statistic should find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Mark
from finecomb.core.span import TEXT, Offsets, Span, covered_token_mask, token_range
from finecomb.core.tokens import Tokenizer, words
from finecomb.engine.seeds import seeded_generator

_ERROR_END_PROBABILITY = 0.3  # chance that a planted error ends after a token: 3.3 tokens on average
_BURN_IN_TOKENS = 200  # tokens
_SECONDS_PER_TOKEN, _SECONDS_PER_MARK = 0.5, 12.0


@dataclass(frozen=True, slots=True)
class SimulatedAnnotator:
    """One pretended annotator."""

    id: str
    recall: float = 0.6
    """Chance of noticing a true error."""
    precision: float = 0.8
    """Share of the marks that stem from a true error, in expectation."""
    jitter: float = 0.5
    """Standard deviation, in tokens, of each boundary."""
    confusion: float = 0.1
    """Chance that the label is another one."""

    def __post_init__(self) -> None:
        for name in ("recall", "precision", "confusion"):
            if not 0 <= getattr(self, name) <= 1:
                raise FinecombError(f"a simulated annotator's {name} lies between 0 and 1, not {getattr(self, name)}")
        if not self.precision:
            raise FinecombError(
                "a simulated annotator's precision is more than 0; otherwise there is no end to the marks"
            )
        if self.jitter < 0:
            raise FinecombError(f"a simulated annotator's jitter is at least 0, not {self.jitter}")

    def to_annotator(self) -> Annotator:
        """As the study lists it."""
        traits = {
            "recall": self.recall,
            "precision": self.precision,
            "jitter": self.jitter,
            "confusion": self.confusion,
        }
        return Annotator(id=self.id, kind="human", meta={"simulated": True, **traits})


def make_crowd(count: int, like: SimulatedAnnotator, spread: float, seed: int) -> list[SimulatedAnnotator]:
    """`count` annotators around `like`; recall and precision differ by `spread` (standard deviation)."""
    people = []
    for number in range(1, count + 1):
        recall, precision = seeded_generator(seed, "crowd", number).normal([like.recall, like.precision], spread)
        id = f"{like.id}-{number}"
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
    tokenize: Tokenizer = words,
) -> Iterator[Annotation]:
    """What `people` would mark in `documents`, whose true errors are in `truth` by document id.

    Depends only on the seed and the ids, not on the order of documents or people.
    """
    for document in documents:
        offsets = tokenize(document.text)
        true = truth[document.id].marks if document.id in truth else ()
        for person in people:
            yield _simulate_annotation(document, offsets, true, person, protocol, seed)


def _simulate_annotation(
    document: Document,
    offsets: Offsets,
    true: Sequence[Mark],
    person: SimulatedAnnotator,
    protocol: Protocol,
    seed: int,
) -> Annotation:
    rng = seeded_generator(seed, document.id, person.id)
    noticed = [mark for mark in true if mark.spans and rng.random() < person.recall]
    marks = [_simulate_noticed_mark(mark, document, offsets, person, protocol, rng) for mark in noticed]
    marks += _invent_false_marks(document, offsets, true, person, protocol, rng)
    marks.sort(key=lambda mark: mark.spans)
    id = f"{document.id}/{person.id}"
    numbered = tuple(mark.model_copy(update={"id": f"{id}/{number}"}) for number, mark in enumerate(marks, 1))
    seconds = float(rng.gamma(8, (_SECONDS_PER_TOKEN * len(offsets) + _SECONDS_PER_MARK * len(marks) + 5) / 8))
    return Annotation(
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
    """A true error as this person marks it: edges moved, label perhaps another, answers as in truth."""
    spans = tuple(_jitter_span(span, offsets, person.jitter, rng) for span in mark.spans)
    spans = tuple(sorted(spans)) if spans == tuple(sorted(spans)) else mark.spans
    quotes = tuple(span.extract(document.part(span.part) or "") for span in spans)
    first = token_range(spans[0], offsets)[0] if spans[0].part == TEXT else 0
    label = _confuse_label(mark.label, person.confusion, _allowed_labels(first, protocol), rng)
    answers = mark.answers if label == mark.label else _random_answers(protocol.questions_of(label), rng)
    antecedents = (
        mark.antecedents if label == mark.label else _required_antecedents(label, first, document, offsets, protocol)
    )
    return Mark(
        id="m", spans=spans, quotes=quotes, label=label, answers=answers, antecedents=antecedents, made_from=(mark.id,)
    )


def _jitter_span(span: Span, offsets: Offsets, jitter: float, rng: np.random.Generator) -> Span:
    """Both edges moved by whole tokens; at least one token of the true span stays inside."""
    first, last = token_range(span, offsets)
    if span.part != TEXT or first == last or not jitter:
        return span
    moves = np.rint(rng.normal(0, jitter, 2)).astype(int)
    start = int(np.clip(first + moves[0], 0, last - 1))
    end = int(np.clip(last + moves[1], max(start, first) + 1, len(offsets)))
    return Span(int(offsets[start, 0]), int(offsets[end - 1, 1]))


def _allowed_labels(first: int, protocol: Protocol) -> list[str]:
    """Labels that a mark beginning at token `first` can carry: one that needs earlier words cannot be first."""
    return [label.name for label in protocol.labels if first or label.antecedent != "required"]


def _required_antecedents(
    label: str | None, first: int, document: Document, offsets: Offsets, protocol: Protocol
) -> Antecedents | None:
    """Where the label needs earlier words: up to three tokens at the beginning of the text."""
    if label is None or protocol.resolve_label(label).antecedent != "required":
        return None
    before = Span(int(offsets[0, 0]), int(offsets[min(first, 3) - 1, 1]))
    return Antecedents(spans=(before,), quotes=(before.extract(document.text),))


def _confuse_label(label: str | None, chance: float, labels: Sequence[str], rng: np.random.Generator) -> str | None:
    others = [other for other in labels if other != label]
    return str(rng.choice(others)) if others and rng.random() < chance else label


def _invent_false_marks(
    document: Document,
    offsets: Offsets,
    true: Sequence[Mark],
    person: SimulatedAnnotator,
    protocol: Protocol,
    rng: np.random.Generator,
) -> list[Mark]:
    """Marks where nothing is wrong, so many that precision comes out in expectation."""
    located = sum(bool(mark.spans) for mark in true)
    expected = person.recall * located * (1 - person.precision) / person.precision
    clean = np.flatnonzero(
        ~covered_token_mask([span for mark in true for span in mark.spans if span.part == TEXT], offsets)
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
    """A mark on the tokens [first, last) with a label drawn at random; None where no label can stand."""
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
        answers=_random_answers(protocol.questions_of(label), rng),
        antecedents=_required_antecedents(label, first, document, offsets, protocol),
    )


def _random_answers(questions: Iterable[Question], rng: np.random.Generator) -> dict[str, Answer]:
    """Some answer to every required question that is always asked."""
    required = (question for question in questions if question.required and not question.when)
    return {question.name: question.scale_type.example(question, rng) for question in required}


def plant_errors(
    documents: Iterable[Document], protocol: Protocol, rate: float, seed: int = 0, tokenize: Tokenizer = words
) -> Iterator[Annotation]:
    """Invented true errors, `rate` per 100 tokens on average, for texts whose real ones are not known.

    They neither overlap nor touch, which leaves room for 23 per 100 tokens at most; a higher rate gives as many.
    The annotations belong to annotator `truth`, of kind gold.
    """
    if rate < 0:
        raise FinecombError(f"a rate of errors is at least 0, not {rate}")
    for document in documents:
        rng = seeded_generator(seed, "plant", document.id)
        offsets = tokenize(document.text)
        marks = _plant_marks(document, offsets, protocol, rng, rate)
        id = f"{document.id}/truth"
        numbered = tuple(mark.model_copy(update={"id": f"{id}/{number}"}) for number, mark in enumerate(marks, 1))
        yield Annotation(id=id, document=document.id, annotator="truth", protocol=protocol.id, marks=numbered)


def _plant_marks(
    document: Document, offsets: Offsets, protocol: Protocol, rng: np.random.Generator, rate: float
) -> list[Mark]:
    if not protocol.labels:
        raise FinecombError(f"protocol {protocol.id} has no labels, so no errors can be planted")
    marks: list[Mark] = []
    for free, end in _error_token_ranges(len(offsets), rate, rng):
        if mark := _make_random_mark(free, end, document, offsets, protocol, rng):
            marks.append(mark)
    return marks


def _error_token_ranges(length: int, rate: float, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Half-open ranges of tokens with at least one token between them, `rate` per 100 tokens."""
    if not rate:
        return
    gap = max(1.0, 100 / rate - 1 / _ERROR_END_PROBABILITY)  # from the end of one to the start of the next, on average
    start = -_BURN_IN_TOKENS  # so that the first token is as likely to be wrong as any other
    while (start := start + int(rng.geometric(1 / gap)) - 1) < length:
        end = start + int(rng.geometric(_ERROR_END_PROBABILITY))
        if start >= 0:
            yield start, min(end, length)
        start = end + 1
