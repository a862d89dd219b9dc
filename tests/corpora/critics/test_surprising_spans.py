from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from finecomb.core.records import Document
from finecomb.corpora.critics import Markov, PointPosterior, PriorCritic
from finecomb.corpora.critics.storage import load, save
from finecomb.corpora.critics.surprising_spans import (
    MAX_STORED_SURPRISES,
    calibrate_surprises,
    conformal_p_values,
    find_surprises,
)
from finecomb.corpora.critics.topics import Topics
from tests.corpora.critics.test_sections import articles, fit
from tests.corpora.critics.test_topics import THEMES

RNG = np.random.default_rng(0)


def story(rng: np.random.Generator, id: str, strange_at: int | None = None) -> Document:
    """Six sentences of one theme; one of them may be of another."""
    theme = int(rng.integers(3))
    themes = [(theme + 1) % 3 if at == strange_at else theme for at in range(6)]
    texts = [" ".join(rng.choice(THEMES[at].split(), 8)).capitalize() + "." for at in themes]
    return Document(id=id, text=" ".join(texts))


@pytest.fixture(scope="module")
def topics() -> Topics:
    rng = np.random.default_rng(0)
    critic = Topics.fit([story(rng, f"f{at}") for at in range(90)], rng, topics=5)
    return calibrate_surprises(critic, [story(rng, f"h{at}") for at in range(60)])


def test_steps_with_a_place_are_spans_with_their_nats() -> None:
    critic = fit(articles(0, 120))
    (swapped,) = articles(1, 1, ("why", "what", "how", "so"))
    found = find_surprises(critic, swapped)
    places = [(segment.start, segment.end) for segment in swapped.segments]
    assert [(surprise.start, surprise.end) for surprise in found] == places
    assert found[1].nats > 5 > found[0].nats
    assert (found[1].state, found[1].expected) == ("what", "how")


def test_a_vector_critic_finds_the_foreign_sentence_by_leaving_it_out(topics: Topics) -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for at in range(20):
        found = find_surprises(topics, story(rng, "s", strange_at=at % 6))
        assert len(found) == 6
        hits += int(np.argmax([surprise.nats for surprise in found])) == at % 6
    assert hits >= 18


def test_a_text_of_one_sentence_has_no_sentence_to_leave_out(topics: Topics) -> None:
    assert find_surprises(topics, Document(id="1", text="Sea ship sail wind.")) == []


def test_how_unusual_is_the_share_of_real_spans_that_surprise_as_much() -> None:
    critic = Lengths(Markov.fit([["a"]]))
    object.__setattr__(critic, "usual_surprises", (1.0, 2.0, 2.0, 3.0))
    assert conformal_p_values(critic, [0.5, 2.0, 2.5, 4.0]).tolist() == pytest.approx([1, 0.8, 0.4, 0.2])


def test_people_are_marked_as_often_as_the_threshold_says(topics: Topics) -> None:
    rng = np.random.default_rng(9)
    nats = [surprise.nats for at in range(60) for surprise in find_surprises(topics, story(rng, f"n{at}"))]
    assert np.mean(conformal_p_values(topics, nats) <= 0.1) == pytest.approx(0.1, abs=0.05)


class Lengths(PriorCritic):
    name = "lengths"

    def __init__(self, prior: Markov) -> None:
        self.prior = prior

    @classmethod
    def fit(cls, real, rng):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    def project(self, document: Document) -> PointPosterior:
        return PointPosterior(tuple("a" if len(word) < 4 else "b" for word in document.text.split()))


def test_your_own_critic_without_places_leaves_sentences_out_too() -> None:
    critic = Lengths(Markov.fit([["a", "a", "a"]] * 20 + [["a", "b", "a"]], add=0.1))
    found = find_surprises(critic, Document(id="1", text="It is so. Tremendous elephants. He can go."))
    assert [surprise.nats for surprise in found].index(max(surprise.nats for surprise in found)) == 1


def test_what_is_usual_is_saved_with_the_critic(topics: Topics, tmp_path: Path) -> None:
    save(topics, tmp_path / "kept")
    assert load(tmp_path / "kept").usual_surprises == topics.usual_surprises
    assert len(topics.usual_surprises) == 360


def test_of_many_surprises_an_even_sample_is_kept(monkeypatch: pytest.MonkeyPatch, topics: Topics) -> None:
    monkeypatch.setattr("finecomb.corpora.critics.surprising_spans.MAX_STORED_SURPRISES", 50)
    critic = Topics(topics.vocabulary, topics.topics, topics.prior)
    calibrate_surprises(critic, [story(RNG, f"x{at}") for at in range(20)])
    assert len(critic.usual_surprises) == 50 < MAX_STORED_SURPRISES
    assert list(critic.usual_surprises) == sorted(critic.usual_surprises)
