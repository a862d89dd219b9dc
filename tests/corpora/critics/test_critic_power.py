from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.records import Document
from finecomb.corpora.critics import critic_power
from finecomb.corpora.critics.base import Critic
from finecomb.corpora.critics.critic_power import DAMAGE_BY_NAME, PowerPoint, describe_power, power_curve
from finecomb.corpora.critics.storage import CRITICS, critic_class
from finecomb.statistics.inference.permutation_tests import unpaired_permutation_test
from tests.corpora.critics.example_documents import make_titled_document
from tests.corpora.critics.test_sections import articles, fit

RNG = np.random.default_rng(0)
OTHER = Document(id="o", text="Rain fell. The river rose.")


def damaged(name: str, document: Document) -> Document | None:
    return DAMAGE_BY_NAME[name](document, OTHER, np.random.default_rng(0))


def test_sections_change_places_with_their_texts_and_titles() -> None:
    whole = articles(0, 1)[0]
    changed = damaged("two sections swapped", whole)
    assert changed is not None
    pairs = [[(part.title, page.text[part.start : part.end]) for part in page.segments] for page in (whole, changed)]
    assert pairs[0] != pairs[1]
    assert sorted(pairs[0]) == sorted(pairs[1])
    assert sum(a != b for a, b in zip(*pairs, strict=True)) == 2


def test_a_section_comes_twice() -> None:
    changed = damaged("a section said again", make_titled_document("1", ["a", "b"]))
    assert changed is not None
    assert len(changed.segments) == 3
    assert len({part.title for part in changed.segments}) == 2


def test_sentences_and_halves_and_pronouns() -> None:
    text = "He came. She saw him. They left. Nobody knew."
    shuffled = damaged("sentences shuffled", Document(id="1", text=text))
    assert shuffled is not None
    assert shuffled.text != text
    assert sorted(shuffled.text.split()) == sorted(text.split())
    half = damaged("half of another text", Document(id="1", text=text))
    assert half is not None
    assert half.text == "He came. She saw him. The river rose."
    exchanged = damaged("he and she exchanged", Document(id="1", text=text))
    assert exchanged is not None
    assert sum(a != b for a, b in zip(exchanged.text.split(), text.split(), strict=True)) == 1


@pytest.mark.parametrize("name", DAMAGE_BY_NAME)
def test_what_cannot_be_damaged_is_left_out(name: str) -> None:
    assert damaged(name, Document(id="1", text="Nothing here")) is None


def test_every_critic_names_damage_that_there_is() -> None:
    for damages in [Critic.damages, *(critic_class(name).damages for name in CRITICS)]:
        assert set(damages) <= set(DAMAGE_BY_NAME)


def test_power_grows_with_damage_and_documents_and_false_alarms_stay_rare() -> None:
    critic = fit(articles(0, 120))
    rows = power_curve(critic, articles(3, 40), generated=20, runs=60)
    swapped = {(row.size, row.damaged): row for row in rows if row.damage == "two sections swapped"}
    assert (swapped[1.0, 1.0].real, swapped[1.0, 1.0].generated) == (40, 20)
    assert swapped[1.0, 1.0].seen == 1
    assert swapped[1.0, 0.0].seen < 0.2
    assert swapped[2.0, 0.1].seen >= swapped[0.5, 0.1].seen
    assert swapped[1.0, 1.0].low < 0.95
    assert swapped[1.0, 1.0].high == pytest.approx(1)
    assert describe_power(rows)[0] == (
        "the sections critic: with 40 held-out real and 20 generated documents, damage in each (two sections "
        "swapped) is detected in 100% of simulated tests"
    )


def test_a_damage_that_cannot_be_done_is_said() -> None:
    critic = fit(articles(0, 120))
    object.__setattr__(critic, "damages", ("he and she exchanged",))
    rows = power_curve(critic, articles(3, 10), runs=5)
    assert all(np.isnan(row.seen) and row.tried == 0 for row in rows)
    assert describe_power(rows) == [
        "the sections critic: fewer than two documents can be damaged (he and she exchanged) and scored"
    ]


def test_p_is_that_of_the_permutation_test_and_of_its_limit() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=120), rng.normal(0.25, size=120)
    oracle = unpaired_permutation_test(first, second, 20_000, rng).p
    assert critic_power._normal_approximation_p_value(first, second, rng) == pytest.approx(oracle, abs=0.01)
    assert np.mean([critic_power._permutation_p_value(first, second, rng) for _ in range(30)]) == pytest.approx(
        oracle, abs=0.02
    )


def test_rejections_without_damage_are_those_of_the_level() -> None:
    values = np.random.default_rng(5).normal(size=200)
    for sizes in ((20, 30), (150, 150)):
        seen, low, high = critic_power._rejection_rate(values, values, sizes, 0.0, 400, np.random.default_rng(6))
        assert low < 0.05 < high, seen


def test_a_row_has_both_numbers_of_documents() -> None:
    row = PowerPoint("c", "d", 1.0, 0.5, 40, 20, 0.9, 0.8, 0.95, 40).row()
    assert (row["documents"], row["seen"]) == ("40+20", 0.9)
