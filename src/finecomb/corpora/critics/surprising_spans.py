"""Where in a text a critic is surprised: spans with nats, for every critic, and how usual they are in real texts.

A critic whose steps have a place in the text gives the nats of each step. One that reads a text as a whole leaves each
sentence out: critics of words (topics, languages) then say how much likelier the sentence is in any text than beside
the rest of this one, and others (your own vectors) by how much T(x) falls without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from finecomb.core.records import Document
from finecomb.core.sentences import sentences
from finecomb.corpora.critics.base import STATISTICS, Critic, StateStep, state_steps
from finecomb.corpora.critics.posteriors import Floats, Posterior
from finecomb.corpora.critics.priors import ProjectionError

MAX_STORED_SURPRISES = 2000
"""So many surprises of real texts are kept at most, evenly spread over all."""

_NATS_TOLERANCE = 1e-9  # nats that differ by rounding only are equal

CriticT = TypeVar("CriticT", bound=Critic)


class Surprise(NamedTuple):
    """A span of a text that a critic did not expect."""

    start: int
    end: int
    nats: float
    """-log P of the step, or how badly the sentence fits the rest; negative where it fits well."""
    state: str
    """What the critic reads there; empty for a sentence that was left out."""
    expected: str
    """What it would have expected most; empty where it cannot say."""


def find_surprises(critic: Critic, document: Document) -> list[Surprise]:
    """Every span of a document with its nats, in text order; raises `ProjectionError` where there is no posterior."""
    posterior = critic.project(document)
    if posterior.spans:
        return [
            _surprise_from_step(step)
            for step in state_steps(critic, document)
            if step.start is not None and step.text.strip()
        ]
    return list(_leave_one_out_surprises(critic, document, posterior))


def _surprise_from_step(step: StateStep) -> Surprise:
    start, end = step.start or 0, step.end or 0
    bare = step.text.strip()
    start += step.text.index(bare)
    return Surprise(start, min(end, start + len(bare)), step.nll, step.state, step.likeliest)


def _leave_one_out_surprises(critic: Critic, document: Document, posterior: Posterior) -> Iterator[Surprise]:
    """Each sentence with how badly it fits the rest; nothing for a text of one sentence."""
    places = [(int(start), int(end)) for start, end in sentences(document.text)]
    if len(places) < 2:
        return
    shorter = [_remove_span(document, start, end) for start, end in places]
    for (start, end), (_, rest) in zip(places, critic.project_all(shorter), strict=True):
        if isinstance(rest, ProjectionError):
            continue
        nats = _sentence_misfit(critic, document.text[start:end], posterior, rest)
        if np.isfinite(nats):
            yield Surprise(start, end, nats, "", "")


def _sentence_misfit(critic: Critic, sentence: str, whole: Posterior, rest: Posterior) -> float:
    """log P(sentence) in any text less log P(sentence | rest), or by how much T(x) falls without the sentence."""
    beside_rest, anywhere = critic.word_log_probs(sentence, rest), critic.word_log_probs(sentence, None)
    if beside_rest is None or anywhere is None:
        return _total_nats(critic, whole) - _total_nats(critic, rest)
    return float(anywhere.sum() - beside_rest.sum())


def _remove_span(document: Document, start: int, end: int) -> Document:
    return document.model_copy(update={"text": document.text[:start] + document.text[end:], "segments": ()})


def _total_nats(critic: Critic, posterior: Posterior) -> float:
    return float(STATISTICS[critic.statistic](critic, posterior).sum())


# --- how usual a surprise is -------------------------------------------------------------------------------------


def calibrate_surprises(critic: CriticT, held_out: Iterable[Document]) -> CriticT:
    """The critic, with the surprises of real documents that it was not fitted on; saving keeps them."""
    nats = np.sort([surprise.nats for document in held_out for surprise in _surprises_or_empty(critic, document)])
    if len(nats) > MAX_STORED_SURPRISES:
        nats = nats[np.linspace(0, len(nats) - 1, MAX_STORED_SURPRISES).round().astype(int)]
    object.__setattr__(critic, "usual_surprises", tuple(nats.tolist()))  # critics may be frozen
    return critic


def _surprises_or_empty(critic: Critic, document: Document) -> Sequence[Surprise]:
    try:
        return find_surprises(critic, document)
    except ProjectionError:
        return ()


def conformal_p_values(critic: Critic, nats: Sequence[float]) -> Floats:
    """For each surprise the share of real spans, itself among them, that surprise as much (a conformal p-value)."""
    usual = np.array(critic.usual_surprises)
    as_large = len(usual) - np.searchsorted(usual, np.asarray(nats, dtype=np.float64) - _NATS_TOLERANCE, side="left")
    shares: Floats = (1 + as_large) / (1 + len(usual))
    return shares
