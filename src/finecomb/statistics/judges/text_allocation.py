r"""Allocation of texts to people that narrows the interval of the overall mean as fast as possible.

Texts belong to strata (systems, domains, or the disagreement of judges). With $W_h$ the share of stratum h among all
texts, $s_h$ the standard deviation of its values and $n_h$ the number of annotated texts, the variance of the
stratified mean is $\sum_h W_h^2 s_h^2 / n_h$. Neyman (1934) makes $n_h$ proportional to $W_h s_h$. For one text at a
time, this selects the stratum with the largest $W_h^2 s_h^2 / (n_h (n_h + 1))$. A fixed share of texts is drawn at
random from all strata, so that no text has probability zero. The probability of each drawn text is stored.
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
EXPLORATION_SHARE = 0.1
"""Share of draws that select a text at random from all strata."""
MIN_TEXTS_PER_STRATUM = 5
"""Minimum number of annotated texts per stratum; strata with fewer texts come first."""


@dataclass(frozen=True, slots=True)
class TextDraw:
    """Drawn text with its inclusion probability."""

    text: int
    """Position of the drawn text among all texts."""
    stratum: int
    probability: float


def shrunk_stratum_deviations(values: Sequence[Floats], prior: Floats | None = None) -> Floats:
    """Return the standard deviation of each stratum, (strata,), shrunk towards a guess if there are few values.

    `prior`, (strata,), is the guess, e.g. the standard deviation of the judges' values; it counts as four texts.
    Without it the guess is the pooled standard deviation. The result is never 0, because a stratum of zeros may still
    contain an error.
    """
    degrees = np.array([max(len(stratum) - 1, 0) for stratum in values], dtype=np.float64)
    squares = np.array([float(((part - part.mean()) ** 2).sum()) if len(part) else 0.0 for part in values])
    common = squares.sum() / max(degrees.sum(), 1.0)
    guess = np.full(len(values), common) if prior is None else prior**2
    variances = (squares + 4 * guess) / (degrees + 4)
    min_variance = max(common, float(guess.max(initial=0.0)), 1e-12) / 100
    return np.asarray(np.sqrt(np.maximum(variances, min_variance)), dtype=np.float64)


def stratum_probabilities(
    sizes: Ints, counts: Ints, deviations: Floats, left: Ints, exploration: float = EXPLORATION_SHARE
) -> Floats:
    """Return the probability that the next text comes from each stratum, (strata,).

    `sizes` are the numbers of texts per stratum, `counts` those annotated, `left` those still available. Strata with
    fewer than five annotated texts come first. After that, the stratum that reduces the variance most has probability 1
    minus `exploration`, and `exploration` is spread over all available texts.
    """
    if not left.sum():
        raise FinecombError("no text is left to assign")
    open_ = left > 0
    even = np.where(open_, left, 0) / left.sum()
    shares = sizes / sizes.sum()
    drop = (shares * deviations) ** 2 / (np.maximum(counts, 1) * (np.maximum(counts, 1) + 1))
    drop = np.where(open_, np.where(counts < MIN_TEXTS_PER_STRATUM, np.inf, drop), -np.inf)
    first = np.flatnonzero(drop == drop.max())
    if np.isinf(drop.max()):
        # Among strata below the minimum, those with the fewest annotated texts come first.
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
    exploration: float = EXPLORATION_SHARE,
) -> TextDraw:
    """Draw the next text: a stratum by `stratum_probabilities`, then one of its texts at random.

    `strata`, (N,), is the stratum of each text. `read` are the positions of texts that people have annotated or are
    annotating, and `closed` those of texts that the next annotator must not get.
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
    """Return the standard deviation of the judges' standardised values on each text, (N,); 0 for a single judge."""
    scale = judges.std(axis=1, keepdims=True)
    scaled = np.divide(judges - judges.mean(axis=1, keepdims=True), scale, out=np.zeros_like(judges), where=scale > 0)
    return np.asarray(scaled.std(axis=0), dtype=np.float64)


def cut_by_quantile(scores: Floats, parts: int) -> Ints:
    """Divide texts into nearly equal parts by score, (N,), numbered from 0 for the lowest; ties stay together.

    >>> cut_by_quantile(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 5.0]), 3).tolist()
    [0, 0, 0, 1, 2, 2]
    >>> cut_by_quantile(np.array([0.0, 1.0, 1.0, 1.0]), 2).tolist()
    [0, 1, 1, 1]
    """
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, parts + 1)[1:-1]))
    side: Literal["left", "right"] = "right" if len(edges) and edges[0] == scores.max() else "left"
    _, numbered = np.unique(np.searchsorted(edges, scores, side=side), return_inverse=True)
    return numbered.astype(np.int64)


# --- strata of a study -------------------------------------------------------------------------------------------


class JudgeTextSummary(NamedTuple):
    """Number of marks and uncertainty of one judge on one text."""

    judge: str
    document: str
    marks: int
    doubt: float
    """Sum of confidence * (1 - confidence) over marks; 0 if no mark has a confidence."""


@dataclass(frozen=True)
class TextStrata:
    """Texts of a study with their strata."""

    documents: tuple[str, ...]
    names: tuple[str, ...]
    """Names of the strata."""
    numbers: Ints
    """(texts,): stratum number of each text."""
    prior: Floats | None = None
    """(strata,): standard deviation of the numbers of marks by judges; None without judges."""


def build_text_strata(
    metas: Mapping[str, Mapping[str, Any]], readings: Iterable[JudgeTextSummary], allocation: Allocation
) -> TextStrata:
    """Build the strata defined by the study's settings, over all texts in the order of `metas`."""
    documents = tuple(metas)
    keys = [tuple(str(metas[id].get(name, "")) for name in allocation.strata) for id in documents]
    # Number of marks and uncertainty of each judge on each text; NaN if the judge did not annotate the text
    marks, doubts = np.full((2, len(allocation.judges), len(documents)), np.nan)
    if allocation.judges:
        position_by_document = {document: place for place, document in enumerate(documents)}
        for summary in readings:
            if summary.document in position_by_document and summary.judge in allocation.judges:
                cell = allocation.judges.index(summary.judge), position_by_document[summary.document]
                marks[cell], doubts[cell] = summary.marks, summary.doubt
        is_read = np.isfinite(marks).all(axis=0)
        parts = np.full(len(documents), "not judged", dtype=object)
        if is_read.any():
            # Uncertainty is the disagreement of several judges, or the doubt (otherwise the marks) of one judge.
            single = doubts[0, is_read] if doubts[0, is_read].any() else marks[0, is_read]
            scores = judge_disagreement_per_text(marks[:, is_read]) if len(marks) > 1 else single
            parts[is_read] = [str(part + 1) for part in cut_by_quantile(scores, allocation.parts)]
        keys = [(*key, str(part)) for key, part in zip(keys, parts, strict=True)]
    names = sorted(set(keys))
    places = {key: place for place, key in enumerate(names)}
    numbers = np.array([places[key] for key in keys], dtype=np.int64)
    prior = None
    if allocation.judges:
        prior = np.zeros(len(names))
        for stratum in range(len(names)):
            counts = [row[np.isfinite(row)] for row in marks[:, numbers == stratum]]
            prior[stratum] = np.mean([row.std() if len(row) else 0.0 for row in counts])
    return TextStrata(documents, tuple("/".join(key) for key in names), numbers, prior)


def build_study_strata(study: Study, allocation: Allocation) -> TextStrata:
    """Build the strata of a study from its tables, without attention checks."""
    # Attention checks are not part of the sample.
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
