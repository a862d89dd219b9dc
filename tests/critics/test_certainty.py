from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from finecomb.critics.certainty import NOT_SAID, certainty, certainty_row
from finecomb.critics.posteriors import Dirichlet, Factorised, Gaussian, Point, Samples
from finecomb.critics.priors import DirichletPrior, GaussianPrior
from tests.critics.test_sections import articles, fit


def with_prior(prior: object) -> Any:
    return SimpleNamespace(prior=prior)


def test_each_posterior_by_hand() -> None:
    states = Factorised(("a", "b"), np.array([[0.9, 0.1], [0.3, 0.7]]))
    assert certainty(with_prior(None), states) == pytest.approx(0.8)
    samples = Samples([("a", "b"), ("a", "b"), ("a", "a"), ("a", "b")])
    assert certainty(with_prior(None), samples) == pytest.approx(7 / 8)
    gaussian = Gaussian(np.zeros(2), np.array([0.5, 1.0]))
    assert certainty(with_prior(GaussianPrior(np.zeros(2), np.diag([2.0, 1.0]))), gaussian) == pytest.approx(0.375)
    counts = Dirichlet(np.array([9.0, 1.0]))
    assert certainty(with_prior(DirichletPrior(np.array([0.5, 0.5]))), counts) == pytest.approx(0.9)
    assert math.isnan(certainty(with_prior(None), Point(("a",))))


def test_a_critic_that_reads_the_likeliest_types_still_says_how_sure_it_is() -> None:
    critic = fit(articles(0, 120))
    assert isinstance(critic.project(articles(3, 1)[0]), Point)
    row = certainty_row(critic, "real", articles(3, 30))
    assert 0.5 < float(str(row["lowest 5%"])) <= float(str(row["certainty"])) < 1
    assert row["what"] == "mean probability of the most probable state"


def test_a_critic_that_believes_titles_cannot_say() -> None:
    critic = fit(articles(0, 60), labels="title")
    row = certainty_row(critic, "real", articles(3, 10))
    assert math.isnan(float(str(row["certainty"])))
    assert row["what"] == NOT_SAID
