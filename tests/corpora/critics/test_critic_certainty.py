from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from finecomb.corpora.critics.critic_certainty import NO_CERTAINTY_REASON, certainty_row, posterior_certainty
from finecomb.corpora.critics.posteriors import Dirichlet, Factorised, Gaussian, PointPosterior, Samples
from finecomb.corpora.critics.priors import DirichletPrior, GaussianPrior
from finecomb.engine.partitions import Executor
from tests.corpora.critics.test_sections import articles, fit
from tests.engine.faulty_work import (
    FaultOptions,
    FaultyCritic,
    InterruptedEngine,
    LosingEngine,
    PicklingEngine,
    to_documents,
)
from tests.engine.faulty_work import make_texts as texts


def with_prior(prior: object) -> Any:
    return SimpleNamespace(prior=prior)


def test_each_posterior_by_hand() -> None:
    states = Factorised(("a", "b"), np.array([[0.9, 0.1], [0.3, 0.7]]))
    assert posterior_certainty(with_prior(None), states) == pytest.approx(0.8)
    samples = Samples([("a", "b"), ("a", "b"), ("a", "a"), ("a", "b")])
    assert posterior_certainty(with_prior(None), samples) == pytest.approx(7 / 8)
    gaussian = Gaussian(np.zeros(2), np.array([0.5, 1.0]))
    assert posterior_certainty(with_prior(GaussianPrior(np.zeros(2), np.diag([2.0, 1.0]))), gaussian) == pytest.approx(
        0.375
    )
    counts = Dirichlet(np.array([9.0, 1.0]))
    assert posterior_certainty(with_prior(DirichletPrior(np.array([0.5, 0.5]))), counts) == pytest.approx(0.9)
    assert math.isnan(posterior_certainty(with_prior(None), PointPosterior(("a",))))


def test_a_critic_that_reads_the_likeliest_types_still_says_how_sure_it_is() -> None:
    critic = fit(articles(0, 120))
    assert isinstance(critic.project(articles(3, 1)[0]), PointPosterior)
    row = certainty_row(critic, "real", articles(3, 30))
    assert 0.5 < float(str(row["lowest 5%"])) <= float(str(row["certainty"])) < 1
    assert row["what"] == "mean probability of the most probable state"


def test_certainty_is_the_same_whoever_works_and_goes_on_after_a_run_was_cut_off(tmp_path: Path) -> None:
    critic, documents = fit(articles(0, 30)), articles(3, 10)
    critic.batch = 2
    alone = certainty_row(critic, "real", documents)
    assert certainty_row(critic, "real", documents, Executor(PicklingEngine())) == alone
    with pytest.raises(KeyboardInterrupt):
        certainty_row(critic, "real", documents, Executor.from_folder(InterruptedEngine(3), tmp_path / "p"))
    spread = Executor.from_folder(InterruptedEngine(), tmp_path / "p")
    assert certainty_row(critic, "real", documents, spread) == alone
    assert spread.reused_row_count == 6
    other = Executor.from_folder(InterruptedEngine(), tmp_path / "p")
    certainty_row(fit(articles(1, 30)), "real", documents, other)
    assert other.reused_row_count == 0


def test_documents_at_which_a_critic_breaks_down_are_left_out() -> None:
    documents = to_documents(texts(4, d1="poison here", d3="death"))
    critic = FaultyCritic(FaultOptions())
    assert certainty_row(critic, "real", documents[:3])["documents"] == 2
    lost = certainty_row(critic, "real", documents[2:], Executor(LosingEngine()))
    assert lost["documents"] == 1


def test_a_critic_that_believes_titles_cannot_say() -> None:
    critic = fit(articles(0, 60), labels="title")
    row = certainty_row(critic, "real", articles(3, 10))
    assert math.isnan(float(str(row["certainty"])))
    assert row["what"] == NO_CERTAINTY_REASON
