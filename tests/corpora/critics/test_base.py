"""The seam: Latent NLL and PPL from a posterior and a prior, parts, storage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics import (
    Critic,
    Dirichlet,
    DirichletPrior,
    Factorised,
    Gaussian,
    GaussianPrior,
    Markov,
    PointPosterior,
    Posterior,
    PriorCritic,
    ProjectionError,
    Samples,
    critic_class,
    latent_nll,
    latent_ppl,
    load,
    save,
    score_documents,
    state_steps,
)
from finecomb.corpora.critics.base import kl_divergence, nll, plugin_nll
from finecomb.corpora.critics.priors import SavedState, transition_counts
from finecomb.corpora.critics.storage import parse_fit_options


class Letters(PriorCritic):
    """z is the words of the text, one letter each; a Markov chain over them."""

    name = "letters"

    def __init__(self, prior: Markov) -> None:
        self.prior = prior

    @classmethod
    def fit(cls, real: Sequence[Document], rng: np.random.Generator, add: float = 1.0, ends: bool = True) -> Self:
        return cls(Markov.fit([document.text.split() for document in real], add=add, ends=ends))

    def project(self, document: Document) -> Posterior:
        words = document.text.split()
        starts = [2 * at for at in range(len(words))]
        return PointPosterior(tuple(words), tuple((start, start + 1) for start in starts))

    def state(self) -> SavedState:
        assert isinstance(self.prior, Markov)
        return {"prior": self.prior.state()}

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        return cls(Markov.from_state(state["prior"]))


class Vectors(PriorCritic):
    """z is two numbers in the text."""

    name = "vectors"
    discrete = False

    def __init__(self, prior: GaussianPrior) -> None:
        self.prior = prior

    @classmethod
    def fit(cls, real: Sequence[Document], rng: np.random.Generator) -> Self:
        return cls(GaussianPrior.fit(np.array([[float(x) for x in document.text.split()] for document in real])))

    def project(self, document: Document) -> Posterior:
        return PointPosterior(np.array([float(x) for x in document.text.split()]))


def texts(*lines: str) -> list[Document]:
    return [Document(id=f"d{at}", text=line) for at, line in enumerate(lines)]


RNG = np.random.default_rng(0)
REAL = texts("a b", "a b", "a a b", "b")


def test_the_nll_of_a_document_is_the_sum_over_its_transitions_with_the_one_into_the_end() -> None:
    critic = Letters.fit(REAL, RNG)
    # begin: a 3, b 1, end 0; after a: a 1, b 3, end 0; after b: end 4; one is added to each of the three
    expected = -math.log(4 / 7 * 4 / 7 * 5 / 7)
    result = score_documents(critic, texts("a b"))
    assert result.values.tolist() == pytest.approx([expected])
    assert result.steps.tolist() == [3]
    assert latent_nll(result).value == pytest.approx(expected)
    assert latent_ppl(result).value == pytest.approx(math.exp(expected / 3))


def test_without_an_end_state_there_is_one_transition_less() -> None:
    critic = Letters.fit(REAL, RNG, ends=False)
    result = score_documents(critic, texts("a b"))
    assert result.values.tolist() == pytest.approx([-math.log(4 / 6 * 4 / 6)])
    assert result.steps.tolist() == [2]


def test_latent_ppl_is_exp_of_summed_nll_over_summed_steps_not_a_mean_of_perplexities() -> None:
    critic = Letters.fit(REAL, RNG)
    result = score_documents(critic, texts("a b", "b b b b a"))
    assert latent_ppl(result).value == pytest.approx(math.exp(result.values.sum() / result.steps.sum()))


def test_latent_ppl_is_refused_where_z_is_a_vector() -> None:
    critic = Vectors.fit(texts("0 1", "1 0", "2 2", "1 1"), RNG)
    result = score_documents(critic, texts("1 1", "0 0"))
    assert math.isnan(latent_ppl(result).value)
    assert "vector" in latent_ppl(result).why
    assert latent_nll(result).value == pytest.approx(float(result.values.mean()))


def test_what_has_no_score_is_listed_with_its_reason() -> None:
    critic = Letters.fit(REAL, RNG)
    result = score_documents(critic, texts("a b", "", "a c", "b"))
    assert result.ids == ("d0", "d3")
    assert [(loss.id, loss.why) for loss in result.dropped] == [
        ("d1", "has no steps"),
        ("d2", "state 'c' does not occur in the fitting documents"),
    ]


def test_a_step_of_probability_zero_is_a_reason_and_not_an_infinite_perplexity() -> None:
    critic = Letters.fit(REAL, RNG, add=0)
    assert (
        score_documents(critic, texts("b a")).dropped[0].why
        == "a step has probability 0 under the prior; use smoothing"
    )


def test_a_corpus_of_which_nothing_could_be_projected_is_undefined_with_a_reason() -> None:
    result = score_documents(Letters.fit(REAL, RNG), texts("", "c"))
    assert math.isnan(latent_nll(result).value)
    assert latent_nll(result).why == "no document could be projected"


def test_kl_of_a_point_among_vectors_is_undefined() -> None:
    critic = Vectors.fit(texts("0 1", "1 0", "2 2", "1 1"), RNG)
    assert "undefined (NaN)" in score_documents(critic, texts("1 1"), "kl").dropped[0].why


def test_parts_have_their_text_and_what_the_critic_expected() -> None:
    critic = Letters.fit(REAL, RNG)
    rows = state_steps(critic, texts("a a")[0])
    assert [(row.text, row.state, row.likeliest) for row in rows] == [
        ("a", "a", "a"),
        ("a", "a", "b"),
        ("", "</s>", "b"),
    ]
    assert rows[2].start is None
    assert sum(row.nll for row in rows) == pytest.approx(score_documents(critic, texts("a a")).values[0])
    assert rows[1].likeliest_nll == pytest.approx(-math.log(4 / 7))


# --- posteriors against priors, the slow way ---------------------------------------------------------------------


@st.composite
def factors(draw: st.DrawFn) -> tuple[Markov, Factorised]:
    size, steps, seed = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    states = tuple("abc"[:size])
    prior = Markov.from_counts(states, rng.random((size + 1, size + 1)), 0.1, draw(st.booleans()))
    return prior, Factorised(states, rng.dirichlet(np.ones(size), steps))


@given(factors())
def test_the_expectation_under_factors_is_the_sum_over_all_paths(case: tuple[Markov, Factorised]) -> None:
    prior, posterior = case
    expected = 0.0
    for path in itertools.product(range(len(prior.states)), repeat=len(posterior.probabilities)):
        probability = math.prod(posterior.probabilities[step, state] for step, state in enumerate(path))
        expected += probability * prior.log_prob([prior.states[state] for state in path]).sum()
    assert prior.expected_log_prob(posterior).sum() == pytest.approx(expected)


@given(factors())
def test_a_certain_posterior_equals_the_point(case: tuple[Markov, Factorised]) -> None:
    prior, posterior = case
    path = posterior.point_estimate()
    certain = Factorised(prior.states, np.eye(len(prior.states))[[prior.states.index(state) for state in path]])
    assert prior.expected_log_prob(certain) == pytest.approx(prior.log_prob(path))
    assert certain.entropy() == 0


@given(factors())
def test_rows_of_a_markov_prior_sum_to_one(case: tuple[Markov, Factorised]) -> None:
    prior, _ = case
    assert np.exp(prior.log_transitions).sum(axis=1) == pytest.approx(np.ones(len(prior.states) + 1))


def test_impossible_transitions_count_only_where_they_can_happen() -> None:
    prior = Markov.fit([["a", "b"]], add=0)
    certain = Factorised(("a", "b"), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert prior.expected_log_prob(certain).tolist() == [0, 0, 0]
    doubtful = Factorised(("a", "b"), np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert np.isneginf(prior.expected_log_prob(doubtful)[1])


def test_the_gaussian_prior_is_the_multivariate_normal() -> None:
    rng = np.random.default_rng(1)
    prior = GaussianPrior(rng.normal(size=3), np.cov(rng.normal(size=(3, 9))))
    z = rng.normal(size=3)
    assert prior.log_prob(z)[0] == pytest.approx(stats.multivariate_normal(prior.mean, prior.covariance).logpdf(z))
    posterior = Gaussian(z, np.array([0.1, 0.2, 0.3]))
    draws = rng.normal(posterior.mean, np.sqrt(posterior.variance), size=(200_000, 3))
    sampled = stats.multivariate_normal(prior.mean, prior.covariance).logpdf(draws)
    assert prior.expected_log_prob(posterior)[0] == pytest.approx(
        sampled.mean(), abs=5 * sampled.std() / math.sqrt(len(draws))
    )


def test_the_dirichlet_prior_in_closed_form_equals_many_draws() -> None:
    rng = np.random.default_rng(2)
    prior, posterior = DirichletPrior(np.array([0.6, 2.0, 3.0])), Dirichlet(np.array([2.0, 3.0, 5.0]))
    draws = rng.dirichlet(posterior.alpha, size=200_000)
    assert prior.log_prob(draws[0])[0] == pytest.approx(stats.dirichlet(prior.alpha).logpdf(draws[0]))
    sampled = stats.dirichlet(prior.alpha).logpdf(draws.T)
    assert prior.expected_log_prob(posterior)[0] == pytest.approx(
        sampled.mean(), abs=5 * sampled.std() / math.sqrt(len(draws))
    )
    assert posterior.entropy() == pytest.approx(stats.dirichlet(posterior.alpha).entropy())


def test_the_dirichlet_prior_finds_the_alpha_it_was_drawn_from() -> None:
    rng = np.random.default_rng(3)
    alpha = np.array([0.5, 1.0, 4.0])
    counts = np.array([rng.multinomial(80, rng.dirichlet(alpha)) for _ in range(4000)], dtype=float)
    assert DirichletPrior.fit(counts).alpha == pytest.approx(alpha, rel=0.1)


def test_statistics_of_a_gaussian_are_the_formula_the_plug_in_and_the_divergence() -> None:
    critic = Vectors(GaussianPrior(np.zeros(2), np.eye(2)))
    posterior = Gaussian(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    assert plugin_nll(critic, posterior)[0] == pytest.approx(math.log(2 * math.pi) + 0.5)
    assert nll(critic, posterior)[0] == pytest.approx(math.log(2 * math.pi) + 0.5 + 0.5)
    divergence = 0.5 * (1 + 1 - 2 - 2 * math.log(0.5))  # trace + distance - K - log det
    assert kl_divergence(critic, posterior)[0] == pytest.approx(divergence)


def test_samples_give_the_mean_over_samples() -> None:
    critic = Letters.fit(REAL, RNG)
    zs = [("a", "b"), ("a", "b"), ("b", "b")]
    expected = np.mean([critic.log_prior(z).sum() for z in zs])
    assert critic.expected_log_prior(Samples(zs)).sum() == pytest.approx(expected)
    assert Samples(zs).point_estimate() == ("a", "b")


def test_transition_counts_are_those_of_pairs() -> None:
    counts = transition_counts([["a", "b", "a"], ["b"]], ["a", "b"])
    assert counts.tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]


# --- storage -----------------------------------------------------------------------------------------------------


def test_a_saved_critic_scores_as_before(tmp_path: Path) -> None:
    critic = Letters.fit(REAL, RNG)
    save(critic, tmp_path / "critic")
    again = load(tmp_path / "critic", code=["tests.corpora.critics.test_base:Letters"])
    assert score_documents(again, REAL).values.tolist() == score_documents(critic, REAL).values.tolist()
    assert {path.name for path in (tmp_path / "critic").iterdir()} == {"critic.json", "arrays.npz"}


def test_a_critic_without_state_says_that_it_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="vectors critic cannot be saved"):
        save(Vectors.fit(texts("0 1", "1 0", "3 2"), RNG), tmp_path)


def test_a_folder_that_holds_no_critic_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="cannot be read as a saved critic"):
        load(tmp_path)


def test_a_pickle_in_the_arrays_is_refused(tmp_path: Path) -> None:
    save(Letters.fit(REAL, RNG), tmp_path)
    hidden = {"prior.log_transitions": np.array([{}], dtype=object)}
    np.savez(tmp_path / "arrays.npz", allow_pickle=True, **hidden)
    with pytest.raises(FinecombError, match="cannot be read as a saved critic"):
        load(tmp_path, code=["tests.corpora.critics.test_base:Letters"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("section", "did you mean 'sections'"),
        ("nowhere:Critic", "module 'nowhere' is not installed; if it is your own file, pass allow_code=nowhere.py"),
        ("tests.corpora.critics.test_base:Nothing", "has no attribute"),
        ("tests.corpora.critics.test_base:texts", "is not a critic"),
    ],
)
def test_a_critic_that_is_not_there_is_one_clear_line(name: str, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        critic_class(name)


def test_options_are_checked_against_what_fit_takes() -> None:
    assert parse_fit_options(Letters.fit, {"add": "0.5", "ends": "no"}, "letters") == {"add": 0.5, "ends": False}
    with pytest.raises(FinecombError, match="no option 'ad'; did you mean 'add'"):
        parse_fit_options(Letters.fit, {"ad": "1"}, "letters")
    with pytest.raises(FinecombError, match="add=x: input should be a valid number"):
        parse_fit_options(Letters.fit, {"add": "x"}, "letters")


def test_a_critic_must_say_its_expectation_for_other_posteriors() -> None:
    class Bare(Critic):
        name = "bare"

        @classmethod
        def fit(cls, real: Sequence[Document], rng: np.random.Generator) -> Self:
            return cls()

        def project(self, document: Document) -> Posterior:
            raise ProjectionError("never")

        def log_prior(self, z: object) -> np.ndarray:
            return np.zeros(1)

    with pytest.raises(TypeError, match="Gaussian"):
        Bare().expected_log_prior(Gaussian(np.zeros(1), np.ones(1)))
    assert score_documents(Bare(), REAL).dropped[0].why == "never"
