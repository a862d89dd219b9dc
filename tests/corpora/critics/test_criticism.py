"""Who was fitted on takes no further part, by text and not by id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics import compare, load, save
from finecomb.corpora.critics.comparison import COPY_REASON
from finecomb.corpora.critics.criticism import (
    DUPLICATE_REASON,
    FITTED_ON_REASON,
    content_fingerprint,
    criticize,
    fit_critic,
    score_real_and_systems,
    split_for_fitting,
)
from tests.corpora.critics.example_documents import make_titled_document
from tests.corpora.critics.test_sections import articles


def renamed(documents: list[Document], prefix: str) -> list[Document]:
    return [document.model_copy(update={"id": f"{prefix}{document.id}"}) for document in documents]


def test_a_fingerprint_is_of_what_a_document_says() -> None:
    one, other = articles(0, 2)
    assert content_fingerprint(one) == content_fingerprint(renamed([one], "x")[0]) != content_fingerprint(other)
    assert content_fingerprint(Document(id="a", text="some  words\n here")) == content_fingerprint(
        Document(id="b", text="some words here")
    )
    assert content_fingerprint(one) != content_fingerprint(one.model_copy(update={"segments": one.segments[:-1]}))


def test_a_saved_critic_remembers_what_it_was_fitted_on(tmp_path: Path) -> None:
    """By the old hint, untouched documents that had been fitted on were compared and got a small p."""
    real = articles(0, 120)
    save(fit_critic("sections", real, 0, {"min_count": 5}), tmp_path / "kept")
    critic = load(tmp_path / "kept")
    assert len(critic.fitted_on) == 120
    with pytest.raises(FinecombError, match=r"all 120 real documents, e\.g\. 'x0-0', were used for fitting"):
        score_real_and_systems(critic, renamed(real, "x"), {})
    result = score_real_and_systems(critic, [*renamed(real[:30], "x"), *articles(5, 40)], {})
    assert len(result.real.ids) == 40
    assert {loss.why for loss in result.real.dropped} == {FITTED_ON_REASON}


def test_texts_that_stand_twice_are_held_out_once() -> None:
    real = articles(0, 100)
    fit, held_out = split_for_fitting(real, 0.5, 0)
    copies = [*real, *renamed(fit[:10], "again-"), *renamed(held_out[:10], "again-")]
    kept = [document for document in copies if not document.id.startswith("again-") or document not in fit]
    result = criticize("sections", kept, {}, fit=fit, min_count=5)
    assert sorted(result.real.ids) == sorted(document.id for document in held_out)
    reasons = [loss.why for loss in result.real.dropped]
    assert (reasons.count(FITTED_ON_REASON), reasons.count(DUPLICATE_REASON)) == (len(fit) + 10, 10)


def test_copies_in_generated_documents_are_reported_and_not_judged() -> None:
    real = articles(0, 100)
    fit, held_out = split_for_fitting(real, 0.5, 0)
    generated = [*renamed(fit[:7], "copy-"), *articles(3, 20)]
    result = criticize("sections", held_out, {"parrot": generated}, fit=fit, min_count=5)
    assert len(result.systems["parrot"].ids) == 20
    assert [loss.why for loss in result.systems["parrot"].dropped] == [COPY_REASON] * 7
    assert compare(result.real, result.systems, draws=20)[0].copies == 7


def test_real_documents_that_cannot_be_scored_are_not_said_to_be_fitted_on() -> None:
    real = articles(0, 60)
    critic = fit_critic("sections", real, 0, {"min_count": 5})
    empty = Document(id="void", text="")
    with pytest.raises(
        FinecombError,
        match=r"no real document can be scored: 1 were used for fitting or are duplicates, and 1 cannot be read by "
        r"the critic \(e\.g\. 'void': is empty\); add other real documents",
    ):
        score_real_and_systems(critic, [real[0], empty], {})


def test_a_critic_that_was_never_told_has_no_memory() -> None:
    critic = fit_critic("sections", articles(0, 60), 0, {"min_count": 5})
    object.__setattr__(critic, "fitted_on", frozenset())
    assert len(score_real_and_systems(critic, articles(0, 60), {}).real.ids) == 60


def test_titles_never_seen_skip_a_transition_and_not_a_document() -> None:
    real = [make_titled_document(str(at), ["a", "b", "c"]) for at in range(30)]
    critic = fit_critic("sections", real, 0, {"labels": "title", "smoothing": "add:1"})
    table = np.exp(critic.prior.log_transitions)  # type: ignore[attr-defined]
    result = score_real_and_systems(critic, [make_titled_document("odd", ["a", "zzz", "b", "c"])], {}).real
    # begin-a, b-c and c-end count; a-zzz and zzz-b do not
    assert result.values[0] == pytest.approx(-np.log(table[0, 0] * table[2, 2] * table[3, 3]))
    assert (result.steps[0], result.dropped) == (3, ())
    nothing = score_real_and_systems(critic, [make_titled_document("x", ["zzz"])], {}).real
    assert nothing.dropped[0].why == "has no transition between section types that occur in the fitting documents"
