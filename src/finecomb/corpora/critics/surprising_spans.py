"""Surprising spans of a text under any critic, in nats, calibrated on real texts.

If a critic's steps have positions in the text, each step has its own surprise. Otherwise each sentence is left out in
turn. Critics with word models (topics, languages) compare the sentence's probability in any text with its probability
given the rest of this text. Others (custom critics of vectors) measure how much T(x) falls without the sentence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from finecomb.core.records import Document
from finecomb.core.sentences import sentence_offsets
from finecomb.corpora.critics.base import STATISTICS, Critic, state_steps
from finecomb.corpora.critics.posteriors import Floats, Posterior
from finecomb.corpora.critics.priors import ProjectionError

MAX_STORED_SURPRISES = 2000
"""Maximum number of surprise values of real texts to store, evenly spaced over the sorted values."""

_NATS_TOLERANCE = 1e-9  # differences below this are rounding errors

CriticT = TypeVar("CriticT", bound=Critic)


class Surprise(NamedTuple):
    """Span of a text that a critic did not expect."""

    start: int
    end: int
    nats: float
    """-log P of the step, or how badly a sentence fits the rest of the text; negative if it fits well."""
    state: str
    """State that the critic assigns; empty for a left-out sentence."""
    expected: str
    """Most probable state; empty if not available."""


def find_surprises(critic: Critic, document: Document) -> list[Surprise]:
    """Return all spans of a document with their surprise, in text order; raise `ProjectionError` if impossible."""
    posterior = critic.project(document)
    if not posterior.spans:
        return list(_leave_one_out_surprises(critic, document, posterior))
    surprises: list[Surprise] = []
    for step in state_steps(critic, document):
        if step.start is not None and (stripped := step.text.strip()):
            start = step.start + step.text.index(stripped)
            end = min(step.end or 0, start + len(stripped))
            surprises.append(Surprise(start, end, step.nll, step.state, step.likeliest))
    return surprises


def _leave_one_out_surprises(critic: Critic, document: Document, posterior: Posterior) -> Iterator[Surprise]:
    """Yield each sentence with a measure of how badly it fits the rest of the text; nothing if it is the only one."""
    offsets = [(int(start), int(end)) for start, end in sentence_offsets(document.text)]
    if len(offsets) < 2:
        return
    shorter = [
        document.model_copy(update={"text": document.text[:start] + document.text[end:], "segments": ()})
        for start, end in offsets
    ]
    for (start, end), (_, rest_posterior) in zip(offsets, critic.project_all(shorter), strict=True):
        if isinstance(rest_posterior, ProjectionError):
            continue
        sentence = document.text[start:end]
        beside_rest, anywhere = critic.word_log_probs(sentence, rest_posterior), critic.word_log_probs(sentence, None)
        if beside_rest is None or anywhere is None:
            nats = _total_nats(critic, posterior) - _total_nats(critic, rest_posterior)
        else:
            nats = float(anywhere.sum() - beside_rest.sum())
        if np.isfinite(nats):
            yield Surprise(start, end, nats, "", "")


def _total_nats(critic: Critic, posterior: Posterior) -> float:
    return float(STATISTICS[critic.statistic](critic, posterior).sum())


# --- calibration on real texts -----------------------------------------------------------------------------------


def calibrate_surprises(critic: CriticT, held_out: Iterable[Document]) -> CriticT:
    """Store the surprise values of held-out real documents in a critic, which saves them, and return the critic."""
    found: list[Surprise] = []
    for document in held_out:
        with contextlib.suppress(ProjectionError):
            found += find_surprises(critic, document)
    nats = np.sort([surprise.nats for surprise in found])
    if len(nats) > MAX_STORED_SURPRISES:
        nats = nats[np.linspace(0, len(nats) - 1, MAX_STORED_SURPRISES).round().astype(int)]
    object.__setattr__(critic, "usual_surprises", tuple(nats.tolist()))  # critics may be frozen dataclasses
    return critic


def conformal_p_values(critic: Critic, nats: Sequence[float]) -> Floats:
    """Return conformal p-values: the share of real spans, and the span itself, that are at least as surprising."""
    usual = np.array(critic.usual_surprises)
    as_large = len(usual) - np.searchsorted(usual, np.asarray(nats, dtype=np.float64) - _NATS_TOLERANCE, side="left")
    shares: Floats = (1 + as_large) / (1 + len(usual))
    return shares
