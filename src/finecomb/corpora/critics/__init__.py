"""Critics: structure that no single reader sees (Deng, Kuleshov and Rush 2022)."""

from __future__ import annotations

from finecomb.corpora.critics.base import (
    Critic,
    CriticScores,
    PriorCritic,
    StateStep,
    annotated,
    latent_nll,
    latent_ppl,
    parts,
)
from finecomb.corpora.critics.comparison import Comparison, compare
from finecomb.corpora.critics.outliers import Outlier, outliers
from finecomb.corpora.critics.posteriors import Dirichlet, Factorised, Gaussian, Point, Posterior, Samples
from finecomb.corpora.critics.priors import DirichletPrior, GaussianPrior, Markov, Prior, ProjectionError
from finecomb.corpora.critics.scoring import scores
from finecomb.corpora.critics.storage import CRITICS, load, named, save

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
    "Point",
    "Posterior",
    "Prior",
    "PriorCritic",
    "ProjectionError",
    "Samples",
    "StateStep",
    "annotated",
    "compare",
    "latent_nll",
    "latent_ppl",
    "load",
    "named",
    "outliers",
    "parts",
    "save",
    "scores",
]
