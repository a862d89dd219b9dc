r"""Which text a person should read next, so that the interval of the overall mean shrinks most.

Texts lie in strata (systems, domains, or how far judges disagree). With $W_h$ the share of stratum h among all texts,
$s_h$ the standard deviation of its values and $n_h$ how many people have read, the variance of the stratified mean is
$\sum_h W_h^2 s_h^2 / n_h$; Neyman (1934) makes $n_h$ proportional to $W_h s_h$. One text at a time that means: give one
of the stratum where $W_h^2 s_h^2 / (n_h (n_h + 1))$ is largest. A fixed share of texts is drawn at random from all
strata, so that no text ever has probability zero, and the probability with which a text was given is kept with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.frames import parse_json_object
from finecomb.core.records import Allocation
from finecomb.core.study import Study

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EXPLORATION = 0.1
"""Share of texts that are drawn from all strata alike."""
MIN_TEXTS_PER_STRATUM = 5
"""Texts that every stratum gets first."""


@dataclass(frozen=True, slots=True)
class TextDraw:
    """A text to be read next, and how likely it was to be this one."""

    text: int
    """Position among all texts."""
    stratum: int
    probability: float


def stratum_deviations(values: Sequence[Floats], prior: Floats | None = None) -> Floats:
    """Standard deviation of each stratum's values, (strata,), pulled towards the common one where there are few.

    `prior`, (strata,), is a guess of each, e.g. the spread of the judges' values there; it counts like four texts.
    Without it the guess is the common standard deviation. Never zero: a stratum of zeros may still hold an error.
    """
    degrees = np.array([max(len(stratum) - 1, 0) for stratum in values], dtype=np.float64)
    squares = np.array([float(((part - part.mean()) ** 2).sum()) if len(part) else 0.0 for part in values])
    common = squares.sum() / max(degrees.sum(), 1.0)
    guess = np.full(len(values), common) if prior is None else prior**2
    variances = (squares + 4 * guess) / (degrees + 4)
    least = max(common, float(guess.max(initial=0.0)), 1e-12) / 100
    return np.asarray(np.sqrt(np.maximum(variances, least)), dtype=np.float64)


def stratum_probabilities(
    sizes: Ints, counts: Ints, deviations: Floats, left: Ints, exploration: float = EXPLORATION
) -> Floats:
    """How likely the next text comes from each stratum, (strata,).

    `sizes` are all texts of each stratum, `counts` those read, `left` those that may still be given. Strata with fewer
    than five come first; then the one where the variance falls most has all but `exploration`, which is spread over
    what is left.
    """
    if not left.sum():
        raise FinecombError("no text is left to give out")
    open_ = left > 0
    even = np.where(open_, left, 0) / left.sum()
    shares = sizes / sizes.sum()
    drop = (shares * deviations) ** 2 / (np.maximum(counts, 1) * (np.maximum(counts, 1) + 1))
    drop = np.where(open_, np.where(counts < MIN_TEXTS_PER_STRATUM, np.inf, drop), -np.inf)
    first = np.flatnonzero(drop == drop.max())
    if np.isinf(drop.max()):
        first = first[counts[first] == counts[first].min()]
    best = np.zeros(len(sizes))
    best[first] = 1 / len(first)
    return np.asarray((1 - exploration) * best + exploration * even, dtype=np.float64)


def draw_next_text(
    strata: Ints,
    read: Ints,
    deviations: Floats,
    rng: np.random.Generator,
    closed: Ints | None = None,
    exploration: float = EXPLORATION,
) -> TextDraw:
    """The text to give next: a stratum by `stratum_probabilities`, and any of its texts alike.

    `strata`, (N,), is the stratum of every text; `read` are the positions of texts that people have read or are
    reading; `closed` those that this person may not have.
    """
    gone = np.zeros(len(strata), dtype=np.bool_)
    gone[read] = True
    counts = np.bincount(strata[read], minlength=len(deviations))
    if closed is not None:
        gone[closed] = True
    left = np.bincount(strata[~gone], minlength=len(deviations))
    sizes = np.bincount(strata, minlength=len(deviations))
    chances = stratum_probabilities(sizes, counts, deviations, left, exploration)
    stratum = int(rng.choice(len(chances), p=chances))
    text = int(rng.choice(np.flatnonzero(~gone & (strata == stratum))))
    return TextDraw(text, stratum, float(chances[stratum] / left[stratum]))


def judge_disagreement_per_text(judges: Floats) -> Floats:
    """How far judges differ on each text, (N,), in standard deviations of each judge: zeros for a single judge."""
    scale = judges.std(axis=1, keepdims=True)
    scaled = np.divide(judges - judges.mean(axis=1, keepdims=True), scale, out=np.zeros_like(judges), where=scale > 0)
    return np.asarray(scaled.std(axis=0), dtype=np.float64)


def cut_by_quantile(scores: Floats, parts: int) -> Ints:
    """Texts in as many parts of nearly equal size by a score, (N,): the lowest are 0. Equal scores stay together.

    >>> cut_by_quantile(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 5.0]), 3).tolist()
    [0, 0, 0, 1, 2, 2]
    >>> cut_by_quantile(np.array([0.0, 1.0, 1.0, 1.0]), 2).tolist()
    [0, 1, 1, 1]
    """
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, parts + 1)[1:-1]))
    side: Literal["left", "right"] = "right" if len(edges) and edges[0] == scores.max() else "left"
    _, numbered = np.unique(np.searchsorted(edges, scores, side=side), return_inverse=True)
    return numbered.astype(np.int64)


# --- the strata of a study ---------------------------------------------------------------------------------------


class JudgeTextSummary(NamedTuple):
    """What a judge did with one text, as far as it decides who reads it next."""

    judge: str
    document: str
    marks: int
    doubt: float
    """Sum over marks of confidence times what is missing to certainty; 0 where no mark has a confidence."""


@dataclass(frozen=True)
class TextStrata:
    """All texts with their strata."""

    documents: tuple[str, ...]
    names: tuple[str, ...]
    """Of the strata."""
    numbers: Ints
    """(texts,): the stratum of each text."""
    prior: Floats | None = None
    """(strata,): standard deviation of the judges' marks in each stratum; None without judges."""

    def stratum_name(self, document: str) -> str:
        """The stratum of one text by name."""
        return self.names[int(self.numbers[self.documents.index(document)])]


def build_text_strata(
    metas: Mapping[str, Mapping[str, Any]], readings: Iterable[JudgeTextSummary], allocation: Allocation
) -> TextStrata:
    """The strata that a study's settings ask for, over all texts in the order of `metas`."""
    documents = tuple(metas)
    keys = [tuple(str(metas[id].get(name, "")) for name in allocation.strata) for id in documents]
    prior = None
    if allocation.judges:
        table, doubts = _judge_marks_and_doubts(documents, readings, allocation.judges)
        keys = [
            (*key, part) for key, part in zip(keys, _uncertainty_parts(table, doubts, allocation.parts), strict=True)
        ]
    names = sorted(set(keys))
    places = {key: place for place, key in enumerate(names)}
    numbers = np.array([places[key] for key in keys], dtype=np.int64)
    if allocation.judges:
        prior = np.array([_judge_deviation(table[:, numbers == stratum]) for stratum in range(len(names))])
    return TextStrata(documents, tuple("/".join(key) for key in names), numbers, prior)


def build_study_strata(study: Study, allocation: Allocation) -> TextStrata:
    """The same from a study's frames; attention checks are not among the texts."""
    checks = set(study.settings.attention_checks)
    rows = study.documents.select("id", "meta").iter_rows()
    metas = {id: parse_json_object(cell) for id, cell in rows if id not in checks}
    work = study.submitted_work()
    if study.settings.protocols:
        work = work.filter_annotations(pl.col("protocol") == study.settings.protocols[0])
    confidence = pl.col("confidence").fill_null(1.0)
    marks = work.marks.group_by("annotation").agg(pl.len(), (confidence * (1 - confidence)).sum().alias("doubt"))
    counts = {annotation: (count, doubt) for annotation, count, doubt in marks.iter_rows()}
    readings = [
        JudgeTextSummary(judge, document, *counts.get(id, (0, 0.0)))
        for id, judge, document in work.annotations.select("id", "annotator", "document").iter_rows()
        if judge in allocation.judges
    ]
    return build_text_strata(metas, readings, allocation)


def _judge_marks_and_doubts(
    documents: Sequence[str], readings: Iterable[JudgeTextSummary], judges: Sequence[str]
) -> tuple[Floats, Floats]:
    """Marks and doubts of every judge on every text, (judges, texts); NaN where it has not read."""
    places = {document: place for place, document in enumerate(documents)}
    marks, doubts = (np.full((len(judges), len(documents)), np.nan) for _ in range(2))
    for reading in readings:
        if reading.document in places and reading.judge in judges:
            at = judges.index(reading.judge), places[reading.document]
            marks[at], doubts[at] = reading.marks, reading.doubt
    return marks, doubts


def _uncertainty_parts(marks: Floats, doubts: Floats, parts: int) -> list[str]:
    """The part of each text by what judges make of it: `1` for the texts on which they leave least open."""
    is_read = np.isfinite(marks).all(axis=0)
    names = np.full(marks.shape[1], "not judged", dtype=object)
    if is_read.any():
        names[is_read] = [
            str(part + 1) for part in cut_by_quantile(_judge_uncertainty(marks[:, is_read], doubts[:, is_read]), parts)
        ]
    return [str(name) for name in names]


def _judge_uncertainty(marks: Floats, doubts: Floats) -> Floats:
    """How much judges leave open about each text: how far they disagree; of one its doubts, or else its marks."""
    if len(marks) > 1:
        return judge_disagreement_per_text(marks)
    return np.asarray(doubts[0] if doubts[0].any() else marks[0], dtype=np.float64)


def _judge_deviation(marks: Floats) -> float:
    """Mean over judges of the standard deviation of their marks."""
    read = [row[np.isfinite(row)] for row in marks]
    return float(np.mean([row.std() if len(row) else 0.0 for row in read]))
