from __future__ import annotations

import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import latent_ppl
from finecomb.corpora.critics.outliers import outliers
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.storage import load, save
from finecomb.corpora.critics.topics import Topics
from finecomb.corpora.critics.vocabulary import Vocabulary, extract_terms
from finecomb.reporting.figures.critic_figures import draw_critic_figures
from finecomb.reporting.figures.topic_covariance import (
    clustered_topic_order,
    covariance_colours,
    encode_png,
    topic_covariance_chart,
)

THEMES = ["sea ship sail wind harbour captain", "bread oven flour yeast baker dough", "court judge law trial jury plea"]


def documents(rng: np.random.Generator, count: int, mixed: bool = False, name: str = "d") -> list[Document]:
    """Texts of one theme each, or of all themes at once."""
    result = []
    for at in range(count):
        pool = " ".join(THEMES).split() if mixed else THEMES[rng.integers(3)].split()
        result.append(Document(id=f"{name}{at}", text=" ".join(rng.choice(pool, 60))))
    return result


@pytest.fixture(scope="module")
def critic() -> Topics:
    rng = np.random.default_rng(0)
    return Topics.fit(documents(rng, 120), rng, topics=3)


def test_topics_are_the_themes(critic: Topics) -> None:
    real = score_documents(critic, documents(np.random.default_rng(1), 60))
    table = critic.tables(real, {})["topics"]
    themes = {frozenset(words.split()[:6]) for words in table["words"]}
    assert themes == {frozenset(theme.split()) for theme in THEMES}
    assert table["share"].sum() == pytest.approx(1)


def test_kl_rates_mixtures_of_all_themes_as_unlikely(critic: Topics) -> None:
    rng = np.random.default_rng(2)
    real, mixed = score_documents(critic, documents(rng, 60)), score_documents(critic, documents(rng, 60, mixed=True))
    assert real.statistic == "kl"
    assert np.median(mixed.values) > np.quantile(real.values, 0.9)


def test_latent_ppl_is_refused_with_a_reason(critic: Topics) -> None:
    assert latent_ppl(score_documents(critic, documents(np.random.default_rng(1), 5))).why.startswith(
        "Latent PPL is a mean over the states"
    )


def test_a_document_without_known_words_is_counted(critic: Topics) -> None:
    result = score_documents(critic, [Document(id="odd", text="zzz yyy"), *documents(np.random.default_rng(1), 2)])
    assert [(loss.id, loss.why) for loss in result.dropped] == [("odd", "has no word of the critic's vocabulary")]


def test_the_least_likely_document_is_an_outlier(critic: Topics) -> None:
    rng = np.random.default_rng(3)
    real, mixed = (
        score_documents(critic, documents(rng, 40)),
        score_documents(critic, documents(rng, 15, mixed=True, name="m")),
    )
    assert outliers(real, mixed)[0].p == pytest.approx(1 / 41)


def test_the_figure_has_a_panel_for_each_corpus(critic: Topics) -> None:
    rng = np.random.default_rng(3)
    real, mixed = score_documents(critic, documents(rng, 40)), score_documents(critic, documents(rng, 15, mixed=True))
    svg = draw_critic_figures(critic, real, {"a < b": mixed})["covariances"]
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["real", "a < b"]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}image"))) == 3  # two panels and the scale


def test_a_critic_is_saved_without_pickle(critic: Topics, tmp_path: Path) -> None:
    save(critic, tmp_path / "critic")
    texts = documents(np.random.default_rng(4), 5)
    assert score_documents(load(tmp_path / "critic"), texts).values == pytest.approx(
        score_documents(critic, texts).values
    )


def test_the_seed_decides() -> None:
    texts = documents(np.random.default_rng(5), 30)
    fits = [Topics.fit(texts, np.random.default_rng(seed), topics=2, iterations=3).topics for seed in (1, 1, 2)]
    assert (fits[0] == fits[1]).all()
    assert (fits[0] != fits[2]).any()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["sea ship"], "at least two documents, found 1"),
        (
            ["same words here"] * 9,
            "none of 3 words in 9 documents occurs at least 5 times and in at most 50% of the documents",
        ),
        (["", "", ""], "of 0 words in 3 documents"),
    ],
)
def test_what_cannot_be_fitted_is_refused(texts: list[str], message: str) -> None:
    real = [Document(id=str(at), text=text) for at, text in enumerate(texts)]
    with pytest.raises(FinecombError, match=message):
        Topics.fit(real, np.random.default_rng(0), topics=2)


def test_vocabularies_keep_words_that_are_neither_rare_nor_everywhere() -> None:
    texts = ["the cat " + "sat " * 5, "the dog " + "sat ran " * 3, "the bird ran ran", "the end"]
    assert Vocabulary.fit(texts, max_df=0.5, min_count=5).words == ("ran", "sat")


def test_formulas_and_commands_are_no_words() -> None:
    assert extract_terms(r"let \frac be @xmath12 or xmath3, see @xcite") == ["let", "be", "or", "see"]


@given(st.lists(st.lists(st.sampled_from("ab cd ef gh".split())).map(" ".join), min_size=1, max_size=5))
def test_bags_count_words(texts: list[str]) -> None:
    vocabulary = Vocabulary(("ab", "ef", "gh"))
    expected = [[text.split().count(word) for word in vocabulary.words] for text in texts]
    assert vocabulary.bags_of_words(texts).toarray().tolist() == expected


def test_clustering_puts_alike_topics_side_by_side() -> None:
    covariance = np.kron(np.eye(2), np.full((2, 2), 3.0))[np.ix_([0, 2, 1, 3], [0, 2, 1, 3])]
    order = clustered_topic_order(covariance).tolist()
    assert abs(order.index(0) - order.index(2)) == abs(order.index(1) - order.index(3)) == 1


def test_colours_are_clamped() -> None:
    shades = covariance_colours(np.array([[-9.0, -5, 0, 5, 9]]))
    assert (shades[0, 0] == shades[0, 1]).all()
    assert (shades[0, 3] == shades[0, 4]).all()
    assert shades[0, 2].min() > 240


def test_images_are_png() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    data = encode_png(pixels)
    start = data.index(b"IDAT") + 4
    size = int.from_bytes(data[start - 8 : start - 4], "big")
    lines = np.frombuffer(zlib.decompress(data[start : start + size]), np.uint8).reshape(2, 10)
    assert (lines[:, 1:].reshape(2, 3, 3) == pixels).all()


def test_two_topics_need_no_clustering() -> None:
    assert topic_covariance_chart({"real": np.random.default_rng(0).normal(size=(9, 2))}).to_svg().startswith("<svg")


def test_a_document_without_known_words_is_not_fitted_on() -> None:
    real = [*documents(np.random.default_rng(0), 40), Document(id="numbers", text="1 2 3")]
    assert [loss.id for loss in Topics.fit(real, np.random.default_rng(0), topics=2).unused] == ["numbers"]


def test_more_topics_than_documents_is_said() -> None:
    texts = documents(np.random.default_rng(5), 12)
    critic = Topics.fit(texts, np.random.default_rng(0), topics=20, least=1, iterations=2)
    assert critic.cautions == (
        "20 topics were fitted on 12 documents; use fewer topics than documents with --set topics=N",
    )
    assert Topics.fit(texts, np.random.default_rng(0), topics=3, least=1, iterations=2).cautions == ()
