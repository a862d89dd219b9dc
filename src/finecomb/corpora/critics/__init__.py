"""Critics: structural differences between generated and real documents (Deng, Kuleshov and Rush 2022)."""

from __future__ import annotations

from finecomb.corpora.critics.base import (
    Critic,
    CriticScores,
    PriorCritic,
    StateStep,
    latent_nll,
    latent_ppl,
    render_annotated_text,
    state_steps,
)
from finecomb.corpora.critics.comparison import Comparison, compare
from finecomb.corpora.critics.outliers import Outlier, outliers
from finecomb.corpora.critics.posteriors import Dirichlet, Factorised, Gaussian, PointPosterior, Posterior, Samples
from finecomb.corpora.critics.priors import DirichletPrior, GaussianPrior, Markov, Prior, ProjectionError
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.storage import CRITICS, critic_class, load, save

__all__ = [
    "CRITICS",
    "Comparison",
    "Critic",
    "CriticScores",
    "Dirichlet",
    "DirichletPrior",
    "Factorised",
    "Gaussian",
    "GaussianPrior",
    "Markov",
    "Outlier",
    "PointPosterior",
    "Posterior",
    "Prior",
    "PriorCritic",
    "ProjectionError",
    "Samples",
    "StateStep",
    "compare",
    "critic_class",
    "latent_nll",
    "latent_ppl",
    "load",
    "outliers",
    "render_annotated_text",
    "save",
    "score_documents",
    "state_steps",
]
