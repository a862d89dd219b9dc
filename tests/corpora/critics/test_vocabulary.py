from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.records import Document
from finecomb.corpora.critics.comparison import domain_warning
from finecomb.corpora.critics.criticism import criticize
from finecomb.corpora.critics.topics import Topics
from finecomb.corpora.critics.vocabulary import Vocabulary, extract_terms, prose_words, word_count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我们提出一个模型", list("我们提出一个模型")),
        ("ภาษาไทย", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]),
        ("The naïve café", ["the", "naïve", "café"]),
    ],
)
def test_scripts_without_spaces_are_read_by_our_own_tokens(text: str, expected: list[str]) -> None:
    assert extract_terms(text) == expected
    assert prose_words(text) == expected
    assert word_count(text) == len(expected)


def test_a_chinese_corpus_has_topics_and_lengths() -> None:
    """One long run of letters was one word before, and every document had a length of one."""
    rng = np.random.default_rng(0)
    pools = ["海船帆风港浪潮岸", "面包炉粉酵烤师房"]
    texts = ["".join(rng.choice(list(pools[at % 2]), 40)) + "。" for at in range(60)]
    documents = [Document(id=str(at), text=text) for at, text in enumerate(texts)]
    result = criticize("topics", documents, {}, topics=2, most=0.9)
    assert set(result.real.lengths.tolist()) == {40}
    assert isinstance(result.critic, Topics)
    assert set(result.critic.vocabulary.words) == set("".join(pools))


def test_words_that_the_critic_does_not_know_are_a_warning() -> None:
    rng = np.random.default_rng(0)
    pools = ["sea ship sail wind harbour wave".split(), "bread oven flour yeast baker loaf".split()]

    def documents(name: str, foreign: float) -> list[Document]:
        words = [
            [
                "".join(rng.choice(list("qwzxvk"), 5)) if rng.random() < foreign else str(rng.choice(pools[at % 2]))
                for _ in range(40)
            ]
            for at in range(40)
        ]
        return [Document(id=f"{name}{at}", text=" ".join(text)) for at, text in enumerate(words)]

    systems = {"near": documents("n", 0.0), "far": documents("f", 0.6)}
    result = criticize("topics", documents("r", 0.0), systems, topics=2, most=0.9)
    assert domain_warning("near", result.systems["near"], result.real) == ""
    assert domain_warning("far", result.systems["far"], result.real).startswith(
        "far: possibly out of domain; the topics critic knows"
    )


def test_the_share_of_known_words_is_counted() -> None:
    assert Vocabulary(("ab", "cd")).known_word_share("ab cd ef ab") == pytest.approx(0.75)
    assert np.isnan(Vocabulary(("ab",)).known_word_share("1 2"))
