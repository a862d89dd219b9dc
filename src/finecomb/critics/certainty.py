"""How sure a critic is of what it reads: a critic that guesses z cannot judge how likely z is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from finecomb.core.records import Document
from finecomb.critics.base import Critic
from finecomb.critics.posteriors import Dirichlet, Factorised, Gaussian, Posterior, Samples
from finecomb.critics.priors import DirichletPrior, GaussianPrior, ProjectionError

MEANINGS = {
    Factorised: "mean probability of the most probable state",
    Samples: "mean share of samples that agree on a state",
    Gaussian: "share of the prior's variance that the text removes",
    Dirichlet: "share of the posterior's weight that comes from the text",
}
"""What the certainty of each kind of posterior is; 1 is certain, always."""
NOT_SAID = "it takes z as read and does not say how sure it is"


def certainty(critic: Critic, posterior: Posterior) -> float:
    """How sure a posterior is, at most 1, as `MEANINGS` says; NaN where it cannot be told."""
    prior = getattr(critic, "prior", None)
    match posterior:
        case Factorised():
            return float(posterior.probabilities.max(axis=1).mean())
        case Samples() if isinstance(posterior.zs[0], tuple):
            best = posterior.point()
            return float(np.mean([[a == b for a, b in zip(z, best, strict=True)] for z in posterior.zs]))
        case Gaussian() if isinstance(prior, GaussianPrior):
            return float(1 - np.mean(posterior.variance / np.diag(prior.covariance)))
        case Dirichlet() if isinstance(prior, DirichletPrior):
            return float(1 - prior.alpha.sum() / posterior.alpha.sum())
    return math.nan


def certainty_row(critic: Critic, side: str, documents: Iterable[Document]) -> dict[str, object]:
    """One row of the table `certainty`: the median over documents, the lowest twentieth, and what it means."""
    posteriors = list(_posteriors(critic, documents))
    values = np.array([certainty(critic, posterior) for posterior in posteriors])
    known = values[~np.isnan(values)]
    meaning = MEANINGS.get(type(posteriors[0]), "") if len(known) else ""
    return {
        "critic": critic.name,
        "system": side,
        "documents": len(posteriors),
        "certainty": float(np.median(known)) if len(known) else math.nan,
        "lowest 5%": float(np.quantile(known, 0.05)) if len(known) else math.nan,
        "what": meaning or (NOT_SAID if posteriors else "no document could be projected"),
    }


def _posteriors(critic: Critic, documents: Iterable[Document]) -> Iterator[Posterior]:
    """Posteriors with all their doubt, also where the critic then takes the most probable z."""
    for _, posterior in critic.doubtful().project_all(documents):
        if not isinstance(posterior, ProjectionError):
            yield posterior
