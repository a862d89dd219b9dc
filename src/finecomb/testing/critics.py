"""Conformance checks of critics."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from finecomb.core.records import Document
from finecomb.corpora.critics.base import nll
from finecomb.corpora.critics.criticism import fit_critic
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.storage import load, required_user_code, save, state_digest


def check_critic(name: str, documents: Sequence[Document], **options: Any) -> None:
    """Check a critic: finite scores, seeds, a saved copy with the same scores, and documents that it cannot use.

    Parameters
    ----------
    name : str
        Name of the critic, or `module:Class`.
    documents : sequence of Document
        Real documents on which the critic is fitted, at least two.
    **options
        Options of the critic's `fit`.

    Raises
    ------
    AssertionError
        If log P(z) is not one finite number per step, fitting with the same seed gives a different critic, a saved
        critic gives different scores, or an empty document raises anything but a `ProjectionError`.
    """
    critic = fit_critic(name, documents, 0, options)
    scores = score_documents(critic, documents)
    assert len(scores.ids), f"critic {name}: no document can be scored: {scores.dropped[0].why}"
    assert np.isfinite(scores.values).all(), f"critic {name}: a score is not finite"
    document = next(document for document in documents if document.id == scores.ids[0])
    posterior = critic.project(document)
    terms, steps = nll(critic, posterior), critic.log_prior(posterior.point_estimate())
    assert terms.ndim == 1, f"critic {name}: expected one number per step, found an array of shape {terms.shape}"
    assert terms.shape == steps.shape, f"critic {name}: E log P(z) has {terms.shape} steps, log P(z) {steps.shape}"
    twin = fit_critic(name, documents, 0, options)
    assert state_digest(twin) == state_digest(critic), f"critic {name}: the same seed gives a different critic"
    with tempfile.TemporaryDirectory() as folder:
        save(critic, Path(folder))
        again = score_documents(load(Path(folder), required_user_code(critic)), documents)
    assert np.allclose(again.values, scores.values), f"critic {name}: the saved critic gives different scores"
    try:
        critic.project(Document(id="empty", text=""))
    except ProjectionError:
        pass  # the reason is listed with the document
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise AssertionError(
            f"critic {name}: an empty document must raise a ProjectionError, found {reason}"
        ) from error
