from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from finecomb.annotators.coreference.chains import Chains, b_cubed, load_passages, muc
from finecomb.annotators.coreference.resolver import resolve_coreference
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import latent_ppl, render_annotated_text, state_steps
from finecomb.corpora.critics.coreference import Coreference, chain_gender, head_start, mention_states
from finecomb.corpora.critics.coreference_model import ModelKind
from finecomb.corpora.critics.coreference_tables import (
    ngram_contributions,
    ngrams_by_probability_shift,
    unlikely_ngrams,
)
from finecomb.corpora.critics.posteriors import PointPosterior
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.storage import load, save

STORY = "Anna met Paul. She thanked him, and he smiled at her. "
ODD = "Anna met Paul. He thanked her. Anna smiled. Anna slept. Paul thanked Anna. "


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def documents(text: str, count: int, name: str = "d") -> list[Document]:
    return [Document(id=f"{name}{at}", text=text * (1 + at % 3)) for at in range(count)]


def shown(text: str, chains: Chains) -> list[list[str]]:
    return [[text[start:end] for start, end in chain] for chain in chains]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("John Smith arrived. Smith sat, and he slept.", [["John Smith", "Smith", "he"]]),
        ("Mrs. Brown met Mr. Brown. She saw him.", [["Mrs. Brown", "She"], ["Mr. Brown", "him"]]),
        ("Captain Reyes waited. The captain slept.", [["Captain Reyes", "captain"]]),
        ("A girl ran. The girl fell. A girl laughed.", [["girl", "girl"]]),
        ("Anna hurt herself.", [["Anna", "herself"]]),
        ("The sailors ran. They fell. The men rose.", [["sailors", "They", "men"]]),
        ("Anna is a nurse. The nurse slept.", []),
        ("I think we won. I know it.", []),
        ("Rain fell. It stopped. Paris slept.", []),
        ("", []),
    ],
)
def test_the_sieve_joins_what_it_should(text: str, expected: list[list[str]]) -> None:
    assert shown(text, resolve_coreference(text)) == expected


def test_the_sieve_on_the_held_out_passages() -> None:
    """The figures that docs/critics/coreference.md reports."""
    pairs = [
        (passage.chains, resolve_coreference(passage.text))
        for passage in load_passages()
        if passage.id.startswith("held-out")
    ]
    assert len(pairs) == 22
    assert muc(pairs).f1 == pytest.approx(0.935, abs=5e-4)
    assert b_cubed(pairs).f1 == pytest.approx(0.915, abs=5e-4)


def test_states_have_genders_by_majority_and_sentences() -> None:
    text = "Ann's mother left. He said she knew Ann. It rained."
    sequence = mention_states(text, [[(0, 3), (36, 39)], [(6, 12), (27, 30)]])
    assert sequence is not None
    assert sequence[0] == (".", "N:0", "F:1", ".", "she:1", "N:0", ".")
    assert [text[start:end] for start, end in sequence[1]] == ["", "Ann", "mother", "", "she", "Ann", ""]


def test_chains_of_things_are_left_out() -> None:
    assert mention_states("The car stopped. It burned.", [[(4, 7), (17, 19)]]) is None


def test_the_head_of_a_description_is_its_place() -> None:
    text = "the old mother of Ann, who sang"
    assert text[head_start(text, (0, len(text))) :].startswith("mother")


def test_gender_is_that_of_most_pronouns() -> None:
    text = "Sam he she he"
    assert chain_gender(text, [(0, 3), (4, 6), (7, 10), (11, 13)]) == "M"
    assert chain_gender(text, [(0, 3)]) == "N"


@pytest.mark.parametrize("model", ["kneser-ney", "paper"])
def test_odd_reference_is_less_likely(model: ModelKind) -> None:
    fitted_on = [*documents(STORY, 30), *documents("Maria saw Peter. He greeted her.", 1)]
    critic = Coreference.fit(fitted_on, rng(), model=model)
    real, odd = score_documents(critic, documents(STORY, 9)), score_documents(critic, documents(ODD, 9))
    assert latent_ppl(odd).value > 2 * latent_ppl(real).value


def test_parts_name_their_text_and_what_was_expected() -> None:
    critic = Coreference.fit(documents(STORY, 30), rng())
    document = Document(id="x", text="Anna met Paul. She thanked him, and she smiled at him.")
    steps = state_steps(critic, document)
    assert [part.text for part in steps if part.text] == ["Anna", "Paul", "She", "him", "she", "him"]
    text = render_annotated_text(document.text, steps, below=-1.0)
    assert text.startswith("[Anna]0{0.0}")
    assert "expected he:1" in text


def test_tables_have_the_papers_columns() -> None:
    critic = Coreference.fit(documents(STORY, 30), rng())
    real, odd = score_documents(critic, documents(STORY, 12)), score_documents(critic, documents(ODD, 12))
    tables = critic.tables(real, {"odd": odd})
    assert tables["contributions"].columns == [
        "system", "z1", "z2", "z3", "z4", "z5", "real", "generated", "nll", "contribution"
    ]  # fmt: skip
    assert tables["unlikely"].columns[-3:] == ["log_p", "expected", "expected_log_p"]
    assert tables["more"]["rise"].is_sorted(descending=True)
    assert tables["less"]["rise"].is_sorted()


def test_contributions_add_up_to_the_difference() -> None:
    critic = Coreference.fit(documents(STORY, 30), rng())
    real, odd = score_documents(critic, documents(STORY, 12)), score_documents(critic, documents(ODD, 12))
    table = ngram_contributions(critic.prior, real.points, odd.points, count=10_000)
    difference = odd.values.sum() / odd.steps.sum() - real.values.sum() / real.steps.sum()
    assert table["contribution"].sum() == pytest.approx(difference)
    assert table["real"].sum() == pytest.approx(100)


def test_unlikely_and_shifted_keep_to_their_limits() -> None:
    critic = Coreference.fit(documents(STORY, 30), rng())
    zs = [
        posterior.z
        for posterior in (critic.project(d) for d in documents(ODD, 6))
        if isinstance(posterior, PointPosterior)
    ]
    table = unlikely_ngrams(critic.prior, zs, below=-1.0)
    assert (table["log_p"] < -1).all()
    assert (table["expected_log_p"] >= table["log_p"]).all()
    assert ngrams_by_probability_shift(critic.prior, zs[:1], zs[:1], is_rising=True).height == 0


def test_chains_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "chains.json"
    texts = documents(STORY, 4)
    path.write_text(json.dumps({document.id: resolve_coreference(document.text) for document in texts}))
    ours, theirs = Coreference.fit(texts, rng()), Coreference.fit(texts, rng(), chains=path)
    assert score_documents(theirs, texts).values == pytest.approx(score_documents(ours, texts).values)
    with pytest.raises(ProjectionError, match="has no entry in"):
        theirs.project(Document(id="other", text=STORY))
    with pytest.raises(FinecombError, match="document 'other' has no entry in"):
        Coreference.fit([Document(id="other", text=STORY)], rng(), chains=path)
    path = tmp_path / "beyond.json"
    path.write_text(json.dumps({"a": [[[0, 4], [90, 99]]]}))
    with pytest.raises(FinecombError, match=r"mention \[90, 99\] is outside the text of 4 characters"):
        Coreference.fit([Document(id="a", text="Anna")], rng(), chains=path)


def resolve_nothing(text: str) -> Chains:
    return []


def resolve_beyond(text: str) -> Chains:
    return [[(0, 4), (len(text), len(text) + 3)]]


def resolve_badly(text: str) -> Chains:
    raise LookupError("no model")


def test_a_resolver_may_be_the_users_own() -> None:
    with pytest.raises(FinecombError, match="none of the 2 fitting documents mentions a person twice"):
        Coreference.fit(documents(STORY, 2), rng(), resolver=f"{__name__}:resolve_nothing")
    with pytest.raises(FinecombError, match="resolver=nowhere:f"):
        Coreference.fit(documents(STORY, 2), rng(), resolver="nowhere:f")
    with pytest.raises(FinecombError, match=r"mention \[\d+, \d+\] is outside the text of \d+ characters"):
        Coreference.fit(documents(STORY, 2), rng(), resolver=f"{__name__}:resolve_beyond")
    with pytest.raises(FinecombError, match=r"document '.+': resolver .+:resolve_badly failed: LookupError: no model"):
        Coreference.fit(documents(STORY, 2), rng(), resolver=f"{__name__}:resolve_badly")


def test_a_document_without_persons_is_counted_with_its_reason() -> None:
    critic = Coreference.fit(documents(STORY, 5), rng())
    result = score_documents(critic, [Document(id="rain", text="It rained."), *documents(STORY, 2)])
    assert (
        Coreference.fit([Document(id="rain", text="It rained."), *documents(STORY, 2)], rng()).unused == result.dropped
    )
    assert [(loss.id, loss.why) for loss in result.dropped] == [
        ("rain", "mentions no person twice, so it has no coreference chains")
    ]


def test_a_critic_is_saved_without_pickle(tmp_path: Path) -> None:
    critic = Coreference.fit(documents(STORY, 5), rng(), order=3)
    save(critic, tmp_path / "critic")
    again = load(tmp_path / "critic")
    assert score_documents(again, documents(ODD, 3)).values == pytest.approx(
        score_documents(critic, documents(ODD, 3)).values
    )


def test_you_is_plural_for_the_authors_program_only() -> None:
    text = "Anna spoke. You know her, said Paul. You do."
    chain = [[(0, 4), (12, 15), (37, 40)]]
    assert [mention_states(text, chain, kind)[0][1] for kind in ("kneser-ney", "paper")] == ["N:0", "P:0"]  # type: ignore[index]
    assert chain_gender("your friends", [(0, 4)], "paper") == "N"
