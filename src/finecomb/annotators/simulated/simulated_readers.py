"""Simulated readers of texts with known errors, to measure how often a calibration reaches each verdict.

Half of the texts are clean. The others have 1 + Poisson(1.5) errors of 1 to about 10 tokens, some of which are easier
to find than others. A reader finds an error with the probability of the error times the reader's share, with boundaries
that differ by up to a token, and adds false marks to any text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import ParameterError, did_you_mean
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.judges.replacement import DisagreementSums, sum_mark_disagreement

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOKENS_PER_TEXT = 60
CLEAN_SHARE = 0.5
SKILL_BY_F1 = {0.4: (0.615, 0.37), 0.6: (0.812, 0.145)}
"""Mean probability of finding an error and false marks per text, by the F1 between two readers."""
RECALL_SHARE_AT_MARGIN = {0.4: 0.72, 0.6: 0.69}
"""Share of a person's recall at which alpha with people is 80% of that between people, by the F1 between people."""
SimulatedJudge = Literal[
    "person", "80% agreement", "half recall", "5% recall", "marks nothing", "marks everything", "random marks"
]
"""Behaviour of a simulated judge: that of one more reader, or of a worse one."""
_PROTOCOL = Protocol(
    name="simulated-errors", title="Simulated errors", summary="Errors of simulated texts.", version="1",
    labels=(Label(name="error", gloss="An error."),),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReaderMarks:
    """Marks of one simulated reader."""

    text: Ints
    first: Ints
    """First token of each mark in its text."""
    last: Ints
    """Token after the mark."""

    def to_units(self, texts: int) -> Bools:
        """Return whether each token is marked, (texts * tokens,)."""
        edges = np.zeros(texts * TOKENS_PER_TEXT + 1, dtype=np.int64)
        np.add.at(edges, self.text * TOKENS_PER_TEXT + self.first, 1)
        np.add.at(edges, self.text * TOKENS_PER_TEXT + self.last, -1)
        return np.cumsum(edges[:-1]) > 0


@dataclass(frozen=True, slots=True)
class SimulatedReadings:
    """Marks of simulated people and of a judge on the same texts."""

    texts: int
    people: tuple[ReaderMarks, ...]
    judge: ReaderMarks

    def sum_disagreement(self, seed: int = 0) -> DisagreementSums:
        """Return the sums of the replacement test, without building a study."""
        marked = np.sum([reader.to_units(self.texts) for reader in self.people], axis=0).astype(np.float64)
        return sum_mark_disagreement(
            np.arange(self.texts + 1) * TOKENS_PER_TEXT,
            marked,
            np.full(len(marked), float(len(self.people))),
            self.judge.to_units(self.texts).astype(np.float64),
            (self.judge.first, self.judge.last),
            seed,
        )

    def to_study(self) -> Study:
        """Return the readings as a study with the annotators `person-1`, `person-2`, ... and `judge`."""
        words = [f"word{token}" for token in range(TOKENS_PER_TEXT)]
        text = " ".join(words)
        starts = np.cumsum([0, *(len(word) + 1 for word in words)])
        ids = [f"text-{number + 1:04}" for number in range(self.texts)]
        items: list[Protocol | Document | Annotator | Annotation] = [
            _PROTOCOL,
            *(Document(id=id, text=text) for id in ids),
        ]
        readers = {f"person-{number + 1}": marks for number, marks in enumerate(self.people)} | {"judge": self.judge}
        for name, reader in readers.items():
            items.append(Annotator(id=name, kind="llm" if name == "judge" else "human"))
            spans: list[list[Span]] = [[] for _ in ids]
            for at, first, last in zip(reader.text.tolist(), reader.first, reader.last, strict=True):
                spans[at].append(Span(int(starts[first]), int(starts[last]) - 1))
            items += [
                Annotation(
                    id=f"{name}/{id}", document=id, annotator=name, protocol=_PROTOCOL.id, status="submitted",
                    marks=tuple(
                        Mark(
                            id=f"{name}/{id}/{place}", spans=(span,), quotes=(text[span.start : span.end],),
                            label="error",
                        )
                        for place, span in enumerate(own)
                    ),
                )
                for id, own in zip(ids, spans, strict=True)
            ]  # fmt: skip
        return Study.from_items(items)


def simulate_readings(
    judge: SimulatedJudge = "person", texts: int = 200, people: int = 4, f1: float = 0.6, seed: int | list[int] = 0
) -> SimulatedReadings:
    """Simulate people who agree with an F1 of about `f1` (0.4 or 0.6), and a judge of a known kind."""
    if f1 not in SKILL_BY_F1:
        raise ParameterError(f"people's F1 must be 0.4 or 0.6, found {f1:g}", parameter="f1")
    if judge not in get_args(SimulatedJudge):
        near = did_you_mean(judge, get_args(SimulatedJudge))
        raise ParameterError(f"unknown judge {judge!r}{near}", parameter="judge")
    rng = np.random.default_rng(seed)
    recall, alarms = SKILL_BY_F1[f1]
    counts = np.where(rng.random(texts) < CLEAN_SHARE, 0, 1 + rng.poisson(1.5, texts))
    text = np.repeat(np.arange(texts), counts)
    first, last = _draw_places(len(text), rng)
    probability = rng.beta(4 * recall, 4 * (1 - recall), len(text))

    def read(probability: Floats) -> ReaderMarks:
        found = rng.random(len(text)) < probability
        size = int(found.sum())
        start = np.clip(first[found] + rng.integers(-1, 2, size), 0, TOKENS_PER_TEXT - 1)
        end = np.clip(np.maximum(last[found] + rng.integers(-1, 2, size), start + 1), 1, TOKENS_PER_TEXT)
        false_text = np.repeat(np.arange(texts), rng.poisson(alarms, texts))
        false_first, false_last = _draw_places(len(false_text), rng)
        return ReaderMarks(
            np.concatenate([text[found], false_text]),
            np.concatenate([start, false_first]),
            np.concatenate([end, false_last]),
        )

    readers = tuple(read(probability) for _ in range(people))
    recall_share = {"person": 1.0, "80% agreement": RECALL_SHARE_AT_MARGIN[f1], "half recall": 0.5}
    if judge in recall_share:
        marks = read(probability * recall_share[judge])
    elif judge == "5% recall":
        marks = read(np.full(len(text), 0.05))
    elif judge == "random marks":
        size = len(read(probability).text)
        marks = ReaderMarks(rng.integers(texts, size=size), *_draw_places(size, rng))
    else:
        every = np.arange(texts if judge == "marks everything" else 0)
        marks = ReaderMarks(every, np.zeros_like(every), np.full_like(every, TOKENS_PER_TEXT))
    return SimulatedReadings(texts, readers, marks)


def _draw_places(count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the first and last token of `count` spans."""
    length = np.minimum(rng.geometric(0.3, count), TOKENS_PER_TEXT // 4)
    first = rng.integers(0, TOKENS_PER_TEXT - length + 1)
    return first, first + length
