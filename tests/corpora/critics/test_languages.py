from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.languages import Languages
from finecomb.corpora.critics.languages_gibbs import (
    GibbsSampler,
    fold_in_texts,
    iterate_sweeps,
    sample_columns,
    token_schedule,
)
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.storage import load, save
from finecomb.reporting.figures.critic_figures import draw_critic_figures

Ints = NDArray[np.int64]
TONGUES = ["der die und ist nicht ein wir auf", "el los que para una por con sobre", "le les et dans nous pour qui est"]


def texts(*rows: list[int]) -> list[Ints]:
    return [np.array(row, np.int64) for row in rows]


def slow_log_joint(rows: list[Ints], topics: tuple[int, ...], alpha: list[float], beta: float, size: int) -> float:
    """log P(words, topics) by the chain rule: each token given those before it."""
    total, places = 0.0, iter(topics)
    by_topic: Counter[int] = Counter()
    by_word: Counter[tuple[int, int]] = Counter()
    for row in rows:
        counts: Counter[int] = Counter()
        for length, word in enumerate(row.tolist()):
            topic = next(places)
            total += math.log((counts[topic] + alpha[topic]) / (length + sum(alpha)))
            total += math.log((by_word[topic, word] + beta) / (by_topic[topic] + size * beta))
            counts[topic] += 1
            by_topic[topic] += 1
            by_word[topic, word] += 1
    return total


def documents(rng: np.random.Generator, count: int, mixed: bool = False, name: str = "d") -> list[Document]:
    result = []
    for at in range(count):
        pool = " ".join(TONGUES).split() if mixed else TONGUES[rng.integers(3)].split()
        result.append(Document(id=f"{name}{at}", text=" ".join(rng.choice(pool, 30))))
    return result


@given(st.lists(st.integers(0, 1), min_size=5, max_size=5))
def test_the_joint_likelihood_equals_its_definition(topics: list[int]) -> None:
    rows = texts([0, 1, 1], [2, 0])
    gibbs = GibbsSampler.from_texts(rows, 3, np.array([0.4, 0.7]), 0.1, np.random.default_rng(0))
    gibbs.topics = np.array(topics)
    gibbs.by_document, gibbs.by_word = np.zeros((2, 2)), np.zeros((3, 2))
    np.add.at(gibbs.by_document, (gibbs.documents, gibbs.topics), 1)
    np.add.at(gibbs.by_word, (gibbs.words, gibbs.topics), 1)
    assert gibbs.log_joint() == pytest.approx(slow_log_joint(rows, tuple(topics), [0.4, 0.7], 0.1, 3))


def test_one_lane_samples_the_posterior_exactly() -> None:
    rows, alpha = texts([0, 1], [1, 2]), np.array([0.5, 1.5])
    configurations = list(itertools.product(range(2), repeat=4))
    weights = np.exp([slow_log_joint(rows, configuration, alpha.tolist(), 0.3, 3) for configuration in configurations])
    rng = np.random.default_rng(1)
    gibbs, steps = GibbsSampler.from_texts(rows, 3, alpha, 0.3, rng), token_schedule(rows, 1)
    visits: Counter[tuple[int, ...]] = Counter()
    for _ in range(4000):
        gibbs.sweep(rng, steps)
        visits[tuple(gibbs.topics.tolist())] += 1
    frequencies = np.array([visits[configuration] for configuration in configurations]) / 4000
    assert frequencies == pytest.approx(weights / weights.sum(), abs=0.03)


def test_counts_stay_those_of_the_topics() -> None:
    rng = np.random.default_rng(2)
    rows = [rng.integers(0, 6, length) for length in (9, 3, 0, 14, 5)]
    gibbs = next(itertools.islice(iterate_sweeps(rows, 6, 3, rng), 25, None))
    by_document, by_word = np.zeros((5, 3)), np.zeros((6, 3))
    np.add.at(by_document, (gibbs.documents, gibbs.topics), 1)
    np.add.at(by_word, (gibbs.words, gibbs.topics), 1)
    assert (gibbs.by_document == by_document).all()
    assert (gibbs.by_word == by_word).all()


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.integers(1, 4))
def test_every_token_is_drawn_once_and_no_document_twice_at_a_time(lengths: list[int], lanes: int) -> None:
    rows = [np.zeros(length, np.int64) for length in lengths]
    steps = token_schedule(rows, lanes)
    home = np.repeat(np.arange(len(rows)), lengths)
    assert sorted(np.concatenate([np.zeros(0, np.int64), *steps])) == list(range(sum(lengths)))
    assert all(len(set(home[step])) == len(step) for step in steps)


def test_folding_in_gives_the_posterior_mean() -> None:
    topic_words, alpha = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.array([0.6, 0.9])
    (row,) = texts([0, 1, 2])
    weight, mean = 0.0, np.zeros(2)
    for topics in itertools.product(range(2), repeat=3):
        counts = np.bincount(topics, minlength=2)
        chance = math.prod(topic_words[topic, word] for topic, word in zip(topics, row, strict=True))
        chance *= math.prod(math.gamma(a + n) / math.gamma(a) for a, n in zip(alpha, counts, strict=True))
        weight, mean = weight + chance, mean + chance * counts
    rngs = [np.random.default_rng(seed) for seed in range(500)]
    means = fold_in_texts([row] * 500, topic_words, alpha, rngs, 40)
    assert means.mean(axis=0) == pytest.approx(mean / weight, abs=0.03)


def test_draws_have_the_given_weights() -> None:
    rng = np.random.default_rng(3)
    drawn = sample_columns(np.tile([1.0, 0.0, 3.0], (40_000, 1)), rng.random(40_000))
    assert np.bincount(drawn, minlength=3) / 40_000 == pytest.approx([0.25, 0, 0.75], abs=0.01)


@pytest.fixture(scope="module")
def critic() -> Languages:
    rng = np.random.default_rng(0)
    return Languages.fit(documents(rng, 60), rng, sweeps=80)


def test_languages_are_found(critic: Languages) -> None:
    table = critic.tables(score_documents(critic, documents(np.random.default_rng(1), 9)), {})["languages"]
    assert {frozenset(words.split()[:8]) for words in table["words"]} == {frozenset(words.split()) for words in TONGUES}
    assert (critic.prior.alpha < 0.2).all()


@pytest.mark.parametrize("statistic", ["nll", "plugin", "kl"])
def test_mixed_documents_are_unlikely(critic: Languages, statistic: str) -> None:
    rng = np.random.default_rng(2)
    real = score_documents(critic, documents(rng, 40), statistic)  # type: ignore[arg-type]
    mixed = score_documents(critic, documents(rng, 40, mixed=True), statistic)  # type: ignore[arg-type]
    assert mixed.values.min() > np.median(real.values)


def test_mixing_and_the_simplex_show_it(critic: Languages) -> None:
    rng = np.random.default_rng(4)
    real, mixed = score_documents(critic, documents(rng, 20)), score_documents(critic, documents(rng, 10, mixed=True))
    table = critic.tables(real, {"model": mixed})["mixing"]
    assert table["system"].to_list() == ["real", "model"]
    assert table["outside"][0] < 0.05 < 0.4 < table["outside"][1]
    root = ElementTree.fromstring(draw_critic_figures(critic, real, {"model": mixed})["simplex"])
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 30


def test_a_projection_depends_on_the_text_alone(critic: Languages) -> None:
    batch = documents(np.random.default_rng(5), 7)
    together, alone = score_documents(critic, batch), score_documents(critic, [batch[4]])
    assert together.values[4] == alone.values[0]


def test_a_document_without_known_words_is_counted(critic: Languages) -> None:
    result = score_documents(critic, [Document(id="odd", text="zzz"), Document(id="empty", text="")])
    assert [loss.why for loss in result.dropped] == ["has no word of the critic's vocabulary"] * 2


def test_a_critic_is_saved_without_pickle(critic: Languages, tmp_path: Path) -> None:
    save(critic, tmp_path / "critic")
    batch = documents(np.random.default_rng(6), 4)
    assert score_documents(load(tmp_path / "critic"), batch).values == pytest.approx(
        score_documents(critic, batch).values
    )


def test_one_language_is_refused() -> None:
    with pytest.raises(FinecombError, match="languages must be at least 2, found 1"):
        Languages.fit(documents(np.random.default_rng(0), 3), np.random.default_rng(0), languages=1)
