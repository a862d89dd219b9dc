"""The sections critic, by titles and by a classifier, and its tables and figure."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from finecomb import formats
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, Segment
from finecomb.corpora.critics import Factorised, latent_nll, load, save, score_documents, state_steps
from finecomb.corpora.critics.base import Ints
from finecomb.corpora.critics.sections import (
    SectionOptions,
    Sections,
    _best_costs,
    _SectionFolds,
    expected_transition_counts,
)
from finecomb.corpora.critics.sections_tables import frequent_section_sequences, transition_errors
from finecomb.corpora.critics.storage import fit_option_names
from finecomb.reporting.figures.critic_figures import draw_critic_figures
from finecomb.reporting.figures.transition_graph import transition_graph
from tests.corpora.critics.example_documents import make_sectioned_document, make_titled_document

WORDS = {
    "why": "reason question unknown gap asked",
    "how": "measured mixed heated sampled weighed",
    "what": "rose fell higher lower percent",
    "so": "means suggests therefore implies conclude",
}


def article(rng: np.random.Generator, id: str, order: tuple[str, ...]) -> Document:
    """A document whose sections can be told by their words, mostly."""
    everything = " ".join(WORDS.values()).split()
    sections = []
    for title in order:
        usual = rng.choice(WORDS[title].split(), 8)
        sections.append((title, " ".join([*usual, *rng.choice(everything, 4)])))
    return make_sectioned_document(id, sections)


def articles(seed: int, count: int, order: tuple[str, ...] = ("why", "how", "what", "so")) -> list[Document]:
    rng = np.random.default_rng(seed)
    return [article(rng, f"{seed}-{number}", order) for number in range(count)]


def fit(documents: list[Document], **options: object) -> Sections:
    return Sections.fit(documents, np.random.default_rng(0), **options)  # type: ignore[arg-type]


REAL = articles(0, 120)


# --- real abstracts ----------------------------------------------------------------------------------------------


def abstracts(data: Path, name: str) -> list[Document]:
    path = data / "csabstruct" / f"{name}.jsonl"
    return [item for item in formats.stream_records(path) if isinstance(item, Document)]


@pytest.fixture(scope="module")
def csabstruct(data: Path) -> Sections:
    return fit(abstracts(data, "train"), labels="title", merge_repeats=True, smoothing="add:1")


@pytest.mark.parametrize(("name", "document", "transition"), [("train", 4.3773, 0.9309), ("dev", 4.6056, 0.9670)])
def test_csabstruct_is_as_recomputed(
    data: Path, csabstruct: Sections, name: str, document: float, transition: float
) -> None:
    """The README of the data, section 8."""
    result = score_documents(csabstruct, abstracts(data, name))
    assert latent_nll(result, draws=0).value == pytest.approx(document, abs=5e-5)
    assert result.values.sum() / result.steps.sum() == pytest.approx(transition, abs=5e-5)
    assert result.dropped == ()


@pytest.mark.parametrize("name", ["train", "dev"])
def test_permuting_labels_is_seen(data: Path, csabstruct: Sections, name: str) -> None:
    shuffle = random.Random(0)
    shuffled = []
    for document in abstracts(data, name):
        titles = [segment.title for segment in document.segments]
        shuffle.shuffle(titles)
        segments = [Segment(start=s.start, end=s.end, title=t) for s, t in zip(document.segments, titles, strict=True)]
        shuffled.append(Document(id=document.id, text=document.text, segments=tuple(segments)))
    assert latent_nll(score_documents(csabstruct, shuffled), draws=0).value == pytest.approx(13.2, abs=0.6)


# --- reading sections --------------------------------------------------------------------------------------------


def test_titles_are_normalised_and_back_matter_is_left_out() -> None:
    document = make_titled_document("x", ["1 Introduction", "Results", "See also", "References"])
    back_matter = "see also,external link,reference,further reading,note,source"
    sections = SectionOptions(labels="title", drop=back_matter).select_sections(document)
    assert [section.title for section in sections] == ["introduction", "result"]


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        (SectionOptions(min_sections=3), "has 2 sections, but at least 3 are required"),
        (SectionOptions(min_words=9), "has a section of fewer than 9 words"),
        (SectionOptions(max_words=2), "has a section of more than 2 words"),
    ],
)
def test_filters_of_appendix_e_say_what_they_left_out(choices: SectionOptions, why: str) -> None:
    with pytest.raises(FinecombError, match=re.escape(why)):
        choices.select_sections(make_titled_document("x", ["a", "b"]))


@pytest.mark.parametrize(("text", "why"), [("", "is empty"), (" \n", "is empty"), ("words", "has no segments")])
def test_a_document_without_sections_is_dropped_with_a_reason(text: str, why: str) -> None:
    result = score_documents(fit(REAL, min_count=5), [Document(id="x", text=text)])
    assert result.dropped[0].why.startswith(why)


def test_documents_without_segments_are_cut_at_a_marker() -> None:
    text = "reason gap <sec>  <sec>measured heated"
    sections = SectionOptions(split="<sec>").select_sections(Document(id="x", text=text))
    assert [text[section.start : section.end] for section in sections] == ["reason gap ", "measured heated"]


# --- by title ----------------------------------------------------------------------------------------------------


def test_equal_neighbours_are_joined_with_their_text() -> None:
    critic = fit(
        [make_titled_document("1", ["a", "b"]), make_titled_document("2", ["a", "b"])],
        labels="title",
        merge_repeats=True,
    )
    document = make_titled_document("x", ["a", "a", "b"])
    rows = state_steps(critic, document)
    assert [row.state for row in rows] == ["a", "b", "</s>"]
    assert rows[0].text == "words of a\n\nwords of a"


def test_section_types_of_which_none_was_seen_are_a_reason() -> None:
    critic = fit([make_titled_document("1", ["a", "b"]), make_titled_document("2", ["a", "b"])], labels="title")
    losses = score_documents(critic, [make_titled_document("x", ["c"]), make_titled_document("y", ["a", "c"])]).dropped
    assert [(loss.id, loss.why) for loss in losses] == [
        ("x", "has no transition between section types that occur in the fitting documents")
    ]


def test_smoothing_is_chosen_on_held_out_documents() -> None:
    """Where every document is alike, the least is added; where orders are random, the most."""
    rng = np.random.default_rng(0)
    alike = fit([make_titled_document(str(at), ["a", "b", "c"]) for at in range(60)], labels="title")
    assert math.exp(alike.prior.log_transitions[0, 0]) > 0.999
    few = fit(
        [make_titled_document(str(at), rng.permutation(list("abcdefgh")).tolist()) for at in range(12)], labels="title"
    )
    assert math.exp(few.prior.log_transitions.min()) > 0.02


@pytest.mark.parametrize("smoothing", ["add", "add:-1", "add:x", "kneser", "add:inf", "add:nan"])
def test_a_smoothing_that_is_none_is_refused(smoothing: str) -> None:
    with pytest.raises(FinecombError, match="expected auto or add:X"):
        fit(REAL[:5], labels="title", smoothing=smoothing)


# --- by a classifier ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def critic() -> Sections:
    return fit(REAL, min_count=5)


def test_types_are_told_from_the_text_alone(critic: Sections) -> None:
    document = articles(9, 1)[0]
    untitled = tuple(Segment(start=segment.start, end=segment.end) for segment in document.segments)
    posterior = critic.project(Document(id="x", text=document.text, segments=untitled))
    assert posterior.point_estimate() == ("why", "how", "what", "so")
    assert critic.facts["accuracy"] > 0.9


def test_a_swap_is_seen(critic: Sections) -> None:
    real, swapped = (score_documents(critic, articles(seed, 60, order)) for seed, order in (
        (1, ("why", "how", "what", "so")),
        (2, ("why", "what", "how", "so")),
    ))  # fmt: skip
    assert swapped.values.mean() > real.values.mean() + 3


def test_one_by_one_and_in_batches_are_the_same(critic: Sections) -> None:
    documents = [*articles(3, 3), Document(id="x", text=""), *articles(4, 300)]
    together = [posterior for _, posterior in critic.project_all(documents)]
    for document, posterior in list(zip(documents, together, strict=True))[:8]:
        if document.id != "x":
            assert critic.project(document) == posterior


def test_the_full_posterior_doubts(critic: Sections) -> None:
    full = fit(REAL, min_count=5, posterior="full")
    posterior = full.project(articles(9, 1)[0])
    assert isinstance(posterior, Factorised)
    assert 0 < posterior.entropy() < math.log(4) * 4
    assert score_documents(full, articles(9, 1)).values[0] > 0


def test_expected_counts_of_a_certain_posterior_are_counts() -> None:
    certain = Factorised(("a", "b"), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    assert expected_transition_counts(certain).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]


def test_the_prior_of_titles_is_the_authors_way() -> None:
    by_title = fit(REAL, min_count=5, prior="title", smoothing="add:0.01")
    after_how = by_title.prior.log_transitions[1 + by_title.prior.states.index("how")]
    assert by_title.prior.states[int(after_how.argmax())] == "what"
    assert math.exp(after_how.max()) > 0.99


def test_a_critic_read_again_scores_as_before(critic: Sections, tmp_path: Path) -> None:
    save(critic, tmp_path / "c")
    again = load(tmp_path / "c")
    documents = articles(5, 20)
    assert score_documents(again, documents).values.tolist() == score_documents(critic, documents).values.tolist()


@pytest.mark.parametrize(
    ("documents", "options", "why"),
    [
        (REAL[:1], {}, "at least two fitting documents with sections, found 1"),
        ([Document(id="x", text=""), Document(id="y", text="")], {}, "found 0; 'x' is empty"),
        (REAL, {"min_count": 1000}, "at least two section types with 1000 sections or more, found 0"),
        (REAL, {"min_count": 5, "classifier": "svm"}, "expected tfidf, encoder:NAME or transformer:NAME"),
        (REAL, {"merge_repeats": True, "posterior": "full"}, "cannot be used with posterior=full"),
    ],
)
def test_what_cannot_be_fitted_is_one_clear_line(
    documents: list[Document], options: dict[str, object], why: str
) -> None:
    with pytest.raises(FinecombError, match=re.escape(why)):
        fit(documents, **options)


def test_all_documents_equal_is_no_trouble() -> None:
    same = [Document(id=str(at), text=REAL[0].text, segments=REAL[0].segments) for at in range(30)]
    result = score_documents(fit(same, min_count=5), same[:3])
    assert len(set(result.values.tolist())) == 1
    assert np.isfinite(result.values).all()


# --- tables and figure -------------------------------------------------------------------------------------------


def test_transition_errors_are_counted_by_hand() -> None:
    critic = fit([make_titled_document(str(at), ["a", "b"]) for at in range(200)], labels="title", smoothing="add:0.1")
    result = score_documents(
        critic,
        [
            make_titled_document("1", ["a", "a", "b"]),
            make_titled_document("2", ["a", "b"]),
            make_titled_document("3", ["b"]),
        ],
    )
    rows = transition_errors(critic.prior, "s", result).rows(named=True)
    table = {(row["from"], row["to"]): row["percent"] for row in rows}
    assert table == pytest.approx(
        {
            ("a", "a"): 100 / 9,
            ("<s>", "b"): 100 / 9,
            ("total failures", ""): 200 / 9,
            ("repetitions among failures", ""): 50,
        }
    )


def test_organisations_are_counted() -> None:
    critic = fit([make_titled_document(str(at), ["a", "b"]) for at in range(9)], labels="title")
    result = score_documents(
        critic,
        [
            make_titled_document("1", ["a", "b"]),
            make_titled_document("2", ["a", "b"]),
            make_titled_document("3", ["b"]),
        ],
    )
    assert frequent_section_sequences("s", result)["organisation"].to_list() == ["a > b", "b"]
    assert frequent_section_sequences("s", result)["percent"].to_list() == pytest.approx([200 / 3, 100 / 3])


def test_tables_and_the_graph_come_out(critic: Sections) -> None:
    real, swapped = (
        score_documents(critic, articles(6, 40)),
        score_documents(critic, articles(7, 40, ("why", "why", "what", "so"))),
    )
    tables = critic.tables(real, {"swapped": swapped})
    assert set(tables) == {"data", "transition-errors", "organisations"}
    assert tables["data"]["documents"].to_list() == [120]
    assert tables["data"]["median sections"].to_list() == [4]
    (svg,) = draw_critic_figures(critic, real, {"swapped": swapped}).values()
    drawn = ElementTree.fromstring(svg)
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"why", "what"} <= set(texts)
    assert any(text and text.startswith("+") for text in texts)


def test_names_in_the_graph_are_escaped() -> None:
    svg = transition_graph("<system>", [("<b>&", "so", 0.5, 0.01)], ["<b>&", "so"]).to_svg()
    drawn = {element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert {"<b>&", "so"} <= drawn
    assert any("<system>" in text for text in drawn)


def test_long_names_beside_the_graph_are_not_cut() -> None:
    names = ["a", "b", "c", "material and method"]  # the last stands left of the circle
    changes = [(first, "a", 0.5, 0.5) for first in names]
    drawn = ElementTree.fromstring(transition_graph("model", changes, names).to_svg())
    _, _, width, _ = (float(part) for part in drawn.attrib["viewBox"].split())
    (name,) = (text for text in drawn.iter("{http://www.w3.org/2000/svg}text") if text.text == names[-1])
    assert (name.attrib["text-anchor"], width) == ("end", float(drawn.attrib["width"]))
    assert float(name.attrib["x"]) - 7 * len(names[-1]) >= 0


def test_every_option_is_described() -> None:
    page = (Path(__file__).parents[3] / "docs" / "critics" / "sections.md").read_text(encoding="utf-8")
    assert [name for name in fit_option_names(Sections.fit) if f"`{name}`" not in page] == []


def test_titles_too_rare_for_the_chain_are_counted() -> None:
    odd = article(np.random.default_rng(9), "odd", ("why", "how", "what", "so"))
    odd = odd.model_copy(
        update={"segments": (odd.segments[0].model_copy(update={"title": "Preface"}), *odd.segments[1:])}
    )
    critic = fit([*REAL, odd], prior="title")
    assert [(loss.id, loss.why) for loss in critic.unused] == [
        ("odd", "has a section type that the classifier does not know")
    ]
    assert fit([*REAL, odd]).unused == ()


def noisy_articles(count: int, seed: int = 0) -> list[Document]:
    """Sections of which two words tell the type, half of them wrongly, among 25 that tell nothing."""
    rng = np.random.default_rng(seed)

    def text(title: str) -> str:
        source = str(rng.choice(list(WORDS))) if rng.random() < 0.5 else title
        return " ".join([*(f"word{at}" for at in rng.integers(100, size=25)), *rng.choice(WORDS[source].split(), 2)])

    return [make_sectioned_document(str(number), [(title, text(title)) for title in WORDS]) for number in range(count)]


@pytest.mark.long
def test_the_cost_of_an_error_is_chosen_inside_the_folds() -> None:
    documents = noisy_articles(150)
    accuracies = {cost: fit(documents, min_count=5, cost=cost).facts["accuracy"] for cost in ("auto", "10")}
    assert accuracies["auto"] > accuracies["10"] + 0.015
    with pytest.raises(FinecombError, match="cost=x: expected auto or a number above 0"):
        fit(documents, min_count=5, cost="x")


def test_the_cost_for_a_fold_knows_nothing_of_its_documents() -> None:
    """A fold whose types are all wrong changes the choice for others, and not its own."""
    rng = np.random.default_rng(0)
    calls: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    class Recorder:
        classes = ("a", "b")

        def __init__(self, rows: Ints) -> None:
            self.rows = tuple(rows.tolist())

    def learn(rows: Ints, titles: Sequence[str], cost: float) -> Any:
        return Recorder(rows)

    def apply(model: Any, rows: Ints) -> Any:
        calls.append((model.rows, tuple(rows.tolist())))
        return np.full((len(rows), 2), 0.5)

    fold = np.repeat(np.arange(3), 4)
    titles = rng.choice(["a", "b"], 12)
    sections = _SectionFolds(learn, apply, titles, np.ones(12, bool), fold)
    by_fold, overall = _best_costs(sections, (0.1, 1.0, 10.0), 3)
    assert (by_fold, overall) == ([0.1] * 3, 0.1)  # all alike: the first
    for learnt, judged in calls:
        assert len({fold[row] for row in learnt}) == len({fold[row] for row in judged}) == 1
        assert not set(learnt) & set(judged)
    assert _best_costs(sections, (0.1, 1.0, 10.0), 2) == ([1.0, 1.0], 1.0)


def test_parts_of_a_document_with_an_unseen_title_keep_their_texts() -> None:
    critic = fit(
        [make_titled_document(str(at), ["a", "b", "c"]) for at in range(20)], labels="title", smoothing="add:1"
    )
    rows = state_steps(critic, make_titled_document("odd", ["a", "zzz", "b", "c"]))
    assert [(row.state, row.text) for row in rows] == [("a", "words of a"), ("c", "words of c"), ("</s>", "")]
    table = transition_errors(
        critic.prior, "s", score_documents(critic, [make_titled_document("odd", ["a", "zzz", "b", "c"])])
    )
    assert table.filter(table["from"] == "zzz").is_empty()
