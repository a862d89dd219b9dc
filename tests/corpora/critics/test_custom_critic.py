"""A user's own critic: one function and a stock prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics import latent_ppl, load, save, score_documents, state_steps
from finecomb.corpora.critics.base import DroppedDocument
from finecomb.corpora.critics.comparison import describe_unfitted_documents
from finecomb.corpora.critics.criticism import fit_critic
from finecomb.corpora.critics.custom_critic import CustomCritic, NgramPrior, PriorKind

HERE = "tests.corpora.critics.test_custom_critic"


def letters(text: str) -> Sequence[str]:
    return list(text)


def numbers(text: str) -> Sequence[float]:
    return [float(number) for number in text.split()]


def spelled(text: str) -> str:
    return text


def nothing(text: str) -> None:
    return None


def ragged(text: str) -> Sequence[float]:
    return [1.0] * len(text)


def texts(*lines: str) -> list[Document]:
    return [Document(id=f"d{at}", text=line) for at, line in enumerate(lines)]


def fit(function: str, kind: PriorKind, *lines: str, **options: float) -> CustomCritic:
    return CustomCritic.fit(texts(*lines), np.random.default_rng(0), f"{HERE}:{function}", kind, **options)  # type: ignore[arg-type]


def test_labels_and_a_chain() -> None:
    critic = fit("letters", "markov", "ab", "ab", "aab", add=0.5)
    assert critic.name == "letters"
    result = score_documents(critic, texts("ab"))
    # begin: a 3 of 3; after a: a 1, b 3; after b: end 3; a half is added to each of three
    assert result.values[0] == pytest.approx(-math.log(3.5 / 4.5 * 3.5 / 5.5 * 3.5 / 4.5))


def test_labels_and_n_grams_sum_to_one_and_name_what_they_expected() -> None:
    critic = fit("letters", "ngram", *["abab"] * 6, "abb", order=2)
    rows = state_steps(critic, texts("ab")[0])
    assert [row.state for row in rows] == ["a", "b", "</s>"]
    assert rows[1].likeliest == "b"
    assert isinstance(critic.prior, NgramPrior)
    assert critic.prior.ngrams.next_probs(np.array([0])).sum() == pytest.approx(1)
    assert (
        score_documents(critic, texts("bbbb")).values_per_step[0]
        > score_documents(critic, texts("abab")).values_per_step[0]
    )


def test_numbers_and_a_gaussian() -> None:
    critic = fit("numbers", "gaussian", "0 0", "1 1", "0 1", "1 0.5")
    result = score_documents(critic, texts("0.5 0.5", "9 9"))
    assert result.values[1] > result.values[0]
    assert math.isnan(latent_ppl(result).value)


def test_proportions_and_a_dirichlet() -> None:
    critic = fit("letters", "dirichlet", *["aaaaab", "aaaab", "aaab", "aaaaaab"] * 3)
    usual, odd = score_documents(critic, texts("aaaaab", "abbbbb"), "kl").values
    assert odd > usual


@pytest.mark.parametrize("kind", ["markov", "ngram", "gaussian", "dirichlet"])
def test_it_is_stored_by_the_name_of_its_function(kind: PriorKind, tmp_path: Path) -> None:
    lines = ("0 1", "1 0", "2 2", "1 1") if kind == "gaussian" else ("ab", "aab", "b", "abab")
    critic = fit("numbers" if kind == "gaussian" else "letters", kind, *lines)
    save(critic, tmp_path / "c")
    again = load(tmp_path / "c", code=[critic.function])
    assert (
        score_documents(again, texts(*lines)).values.tolist() == score_documents(critic, texts(*lines)).values.tolist()
    )


@pytest.mark.parametrize("kind", ["markov", "ngram", "dirichlet"])
def test_a_label_never_seen_and_a_text_without_labels_are_reasons(kind: PriorKind) -> None:
    critic = fit("letters", kind, "ab", "ba")
    assert [loss.why for loss in score_documents(critic, texts("ac", "")).dropped] == [
        "state 'c' does not occur in the fitting documents",
        "letters returns an empty list",
    ]


@pytest.mark.parametrize(
    ("function", "kind", "lines", "message"),
    [
        (
            "spelled",
            "markov",
            ("ab", "b"),
            "document 'd0': spelled returned 'ab'; expected a list of labels or numbers",
        ),
        ("nothing", "markov", ("ab", "b"), "returned None"),
        ("letters", "markov", ("ab", ""), "at least two texts, found 1 of 2"),
        ("letters", "gaussian", ("ab", "cd"), "the same number of numeric values"),
        ("ragged", "gaussian", ("ab", "cde"), "the same number of numeric values"),
        ("numbers", "gaussian", ("1 1", "1 1"), "all documents have the same vector"),
        (
            "numbers",
            "gaussian",
            ("1 nan", "1 1"),
            "at least two texts, found 1 of 2; 'd0': numbers returns NaN or an inf",
        ),
        ("numbers", "markov", ("1 nan", "1 1"), "'d0': numbers returns NaN or an infinite value"),
        ("numbers", "markov", ("1 1", "one"), "document 'd1': numbers failed: ValueError: could not convert"),
        ("nowhere", "markov", ("a", "b"), "has no attribute 'nowhere'"),
    ],
)
def test_what_cannot_be_fitted_is_one_clear_line(
    function: str, kind: PriorKind, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(FinecombError, match=message):
        fit(function, kind, *lines)


def test_texts_that_cannot_be_fitted_on_are_counted() -> None:
    critic = fit("letters", "markov", "ab", "", "ba")
    assert critic.unused == (DroppedDocument("d1", "letters returns an empty list"),)
    assert describe_unfitted_documents(critic) == (
        "fitting: 1 documents could not be used by the letters critic: 1 x letters returns an empty list (d1)"
    )


def test_a_vector_of_another_size_or_of_nan_is_a_reason() -> None:
    critic = fit("numbers", "gaussian", "0 0", "1 1", "0 1")
    assert [loss.why for loss in score_documents(critic, texts("1", "nan 1")).dropped] == [
        "has a vector of 1 numbers; the critic expects 2",
        "numbers returns NaN or an infinite value",
    ]


@pytest.mark.parametrize("function", ["", "letters"])
def test_an_own_critic_without_a_function_is_refused(function: str) -> None:
    with pytest.raises(FinecombError, match="critic=own requires a function; use critic=MODULE:FUNCTION"):
        fit_critic("own", texts("ab", "ba"), 0, {"function": function} if function else {})
