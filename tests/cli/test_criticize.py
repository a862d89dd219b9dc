"""The whole way, from a notebook and from the command line."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics import compare
from finecomb.corpora.critics.criticism import criticize, is_for_fitting, split_for_fitting
from tests.corpora.critics.example_documents import make_titled_document
from tests.corpora.critics.test_human_judgements import study as sections_study
from tests.corpora.critics.test_sections import articles
from tests.test_cli import refused, run

OWN = """
from finecomb.corpora.critics import Markov, PointPosterior, PriorCritic

def initials(text):
    return [word[0] for word in text.split()]

def finals(text):
    return [word[-1] for word in text.split()]

class Initials(PriorCritic):
    name = "initials"

    def __init__(self, prior):
        self.prior = prior

    @classmethod
    def fit(cls, real, rng, add: float = 1.0):
        return cls(Markov.fit([initials(document.text) for document in real], add=add))

    def project(self, document):
        return PointPosterior(tuple(initials(document.text)))
"""


def write(path: Path, documents: list[Document]) -> Path:
    path.write_text("".join(json.dumps({"document": json.loads(document.to_json())}) + "\n" for document in documents))
    return path


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """real.jsonl, swapped.jsonl and alike.jsonl, and a module with critics, in the current folder."""
    write(tmp_path / "real.jsonl", articles(0, 160))
    write(tmp_path / "swapped.jsonl", articles(1, 60, ("why", "what", "how", "so")))
    write(tmp_path / "alike.jsonl", articles(2, 60))
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def table(*words: str) -> list[dict[str, Any]]:
    result = json.loads(run("criticize", *words, "--json").stdout)
    assert set(result) == {"table", "signature", "notes"}
    assert "version:" in result["signature"]
    rows: list[dict[str, Any]] = result["table"]
    return rows


@pytest.mark.long
def test_a_notebook_and_the_command_say_the_same(corpora: Path) -> None:
    rows = table("real.jsonl", "swapped.jsonl", "alike.jsonl", "--set", "min_count=5", "--draws", "200")
    real = articles(0, 160)
    systems = {"swapped": articles(1, 60, ("why", "what", "how", "so")), "alike": articles(2, 60)}
    result = criticize("sections", real, systems, min_count=5)
    expected = [row.row() for row in compare(result.real, result.systems, draws=200)]
    assert [row["difference"] for row in rows] == [row["difference"] for row in expected]
    assert [row["p_adjusted"] for row in rows] == [row["p_adjusted"] for row in expected]
    by_system = {row["system"]: row for row in rows if row["statistic"] == "ppl"}
    assert by_system["swapped"]["p_adjusted"] < 0.02
    assert by_system["alike"]["p"] > 0.01
    assert {"critic", "statistic", "system", "real", "generated", "difference", "low", "high", "p", "dropped"} <= set(
        rows[0]
    )


def test_documents_fitted_on_take_no_further_part() -> None:
    documents = [make_titled_document(str(at), ["a"]) for at in range(1000)]
    fit, held_out = split_for_fitting(documents, 0.3, seed=1)
    assert len(fit) + len(held_out) == 1000
    assert len(fit) == pytest.approx(300, abs=60)
    assert {document.id for document in fit} == {
        document.id for document in split_for_fitting(documents[::-1], 0.3, seed=1)[0]
    }
    assert all(is_for_fitting(document.id, 0.3, 1) for document in fit)


def test_seeds_give_splits_that_know_nothing_of_each_other() -> None:
    """A checksum in place of a hash would give one split and its mirror image, whatever the seed."""
    ids = [f"page-{at:04}" for at in range(2000)]
    splits = [[is_for_fitting(id, 0.5, seed) for id in ids] for seed in range(6)]
    for first, second in itertools.combinations(splits, 2):
        assert np.mean(np.equal(first, second)) == pytest.approx(0.5, abs=0.06)


def test_real_documents_that_were_fitted_on_are_refused(corpora: Path) -> None:
    message = refused("criticize", "real.jsonl", "alike.jsonl", "--fit", "real.jsonl")
    assert message.startswith("all 160 real documents, e.g. '0-0', were used for fitting")
    with pytest.raises(FinecombError, match="were used for fitting"):
        criticize("sections", articles(0, 20), {}, fit=articles(0, 20))


@pytest.mark.long
def test_systems_of_one_file_are_told_apart_by_meta(corpora: Path) -> None:
    mixed = [
        document.model_copy(update={"meta": {"model": name}})
        for name, seed in (("x", 3), ("y", 4))
        for document in articles(seed, 20)
    ]
    write(corpora / "mixed.jsonl", mixed)
    rows = table("real.jsonl", "mixed.jsonl", "--by", "model", "--set", "min_count=5", "--draws", "50")
    assert [(row["system"], row["documents"].split("+")[1]) for row in rows[::2]] == [("x", "20"), ("y", "20")]
    assert "no meta field 'model'" in refused(
        "criticize", "real.jsonl", "alike.jsonl", "--by", "model", "--set", "min_count=5"
    )


def test_a_critic_is_saved_and_used_again(corpora: Path) -> None:
    words = ("real.jsonl", "swapped.jsonl", "--set", "min_count=5", "--draws", "50")
    first = table(*words, "--save", "kept")
    again = table("alike.jsonl", "swapped.jsonl", "--critic", "kept", "--draws", "50")
    assert again[0]["generated"] == first[0]["generated"]
    assert "already exists" in refused("criticize", *words, "--save", "kept")


def test_your_own_class_and_your_own_function(corpora: Path) -> None:
    by_class = table("real.jsonl", "alike.jsonl", "--critic", "mine:Initials", "--draws", "50")
    by_function = table("real.jsonl", "alike.jsonl", "--critic", "mine:initials", "--draws", "50")
    assert by_class[0]["critic"] == "initials"
    assert [row["real"] for row in by_class] == pytest.approx([row["real"] for row in by_function])
    both = table("real.jsonl", "alike.jsonl", "--critic", "mine:initials,mine:finals", "--draws", "20")
    assert [row["critic"] for row in both] == ["initials", "initials", "finals", "finals"]
    mixed = table("real.jsonl", "alike.jsonl", "--critic", "mine:initials", "--prior", "dirichlet", "--draws", "50")
    assert [row["statistic"] for row in mixed] == ["nll"]


def test_several_critics_are_corrected_together(corpora: Path) -> None:
    rows = table(
        "real.jsonl", "swapped.jsonl", "--critic", "sections,mine:initials", "--set", "min_count=5", "--draws", "100"
    )
    assert {row["critic"] for row in rows} == {"sections", "initials"}
    ppl = sorted((row for row in rows if row["statistic"] == "ppl"), key=lambda row: row["p"])
    assert ppl[0]["p_adjusted"] == pytest.approx(min(1, 2 * ppl[0]["p"]))


@pytest.mark.parametrize("show", ["outliers", "parts", "text", "data", "transition-errors", "organisations"])
@pytest.mark.long
def test_every_table_can_be_shown(corpora: Path, show: str) -> None:
    rows = table("real.jsonl", "swapped.jsonl", "--set", "min_count=5", "--show", show, "--draws", "20")
    assert rows
    if show == "parts":
        assert rows[-1]["state"] == "</s>"
        assert all(row["text"] for row in rows[:-1])
    if show == "text":
        assert re.match(r"\[.+\]why\{-?\d+\.\d\}$", rows[0]["text"].split("\n")[0])
    if show == "outliers":
        assert all(row["text"] for row in rows)


@pytest.mark.long
def test_parts_of_a_document_by_id(corpora: Path) -> None:
    words = ("criticize", "real.jsonl", "swapped.jsonl", "--set", "min_count=5", "--draws", "0")
    assert "Parts of 1-3 in swapped" in run(*words, "--show", "parts", "--document", "1-3").stdout
    output = run(*words, "--show", "text", "--document", "1-3").stdout
    assert output.startswith("Text of 1-3 in swapped (sections critic)\n[")
    assert "no document has this ID" in refused(*words, "--show", "parts", "--document", "zz")
    assert "unknown table --show outlier; did you mean 'outliers'?" in refused(*words, "--show", "outlier")


@pytest.mark.long
def test_all_tables_and_figures_are_written(corpora: Path) -> None:
    run("criticize", "real.jsonl", "swapped.jsonl", "--set", "min_count=5", "--draws", "50", "--output", "made")
    names = {path.name for path in (corpora / "made").iterdir()}
    assert {"systems.csv", "outliers.csv", "transition-errors.csv", "transitions-swapped.svg"} <= names
    with (corpora / "made" / "systems.csv").open() as file:
        assert next(csv.DictReader(file))["system"] == "swapped"
    assert "already exists" in refused(
        "criticize", "real.jsonl", "swapped.jsonl", "--set", "min_count=5", "--output", "made"
    )


@pytest.mark.long
def test_other_figures_and_people_stand_beside(corpora: Path) -> None:
    from finecomb import formats

    formats.write(sections_study(), corpora / "readers")
    (corpora / "other.csv").write_text("system,mauve\nreal,0.96\nswapped,0.4\nalike,0.9\n")
    words = (
        "real.jsonl",
        "swapped.jsonl",
        "alike.jsonl",
        "--set",
        "min_count=5",
        "--draws",
        "20",
        "--beside",
        "other.csv",
    )
    rows = table(*words)
    assert {row["system"]: row["mauve"] for row in rows} == {"swapped": 0.4, "alike": 0.9}
    rows_beside = table(*words, "--people", "readers", "--show", "correlations")
    assert [row["figure"] for row in rows_beside] == ["sections ppl", "sections nll", "mauve"]
    assert all(row["pearson"] is None and row["why"] for row in rows_beside)  # the readers judged other systems
    organisations = table(*words, "--people", "readers", "--show", "incoherent")
    assert organisations[0] == {"organisation": "introduction > result", "annotations": 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "REAL and at least one file of GENERATED documents are required, or --synthetic"),
        (["real.jsonl"], "REAL and at least one file"),
        (["real.jsonl", "alike.jsonl", "--set", "min=5"], "--set min: none of the selected critics has this option"),
        (["real.jsonl", "alike.jsonl", "--set", "min_count=x"], "min_count=x: input should be a valid integer"),
        (
            ["real.jsonl", "alike.jsonl", "--critic", "setions"],
            "unknown critic 'setions'; did you mean 'sections'?",
        ),
        (
            ["real.jsonl", "alike.jsonl", "alike.jsonl"],
            "have the same name; rename one, or distinguish systems with --by",
        ),
        (["real.jsonl", "nothere.jsonl"], "not found"),
    ],
)
def test_a_mistake_is_one_clear_line(corpora: Path, words: list[str], message: str) -> None:
    extra = ["--set", "min_count=5"] if words and "--set" not in words and "setions" not in words else []
    assert message in refused("criticize", *words, *extra)


def test_nothing_is_dropped_silently(corpora: Path) -> None:
    broken = [Document(id="empty", text=""), Document(id="plain", text="words"), *articles(5, 3)]
    write(corpora / "broken.jsonl", broken)
    result = run("criticize", "real.jsonl", "broken.jsonl", "--set", "min_count=5", "--draws", "50", "--json")
    output = json.loads(result.stdout)
    assert output["table"][0]["dropped"] == "0+2"
    (note,) = output["notes"]
    assert note.startswith("broken: 2 of 5 documents have no score from the sections critic: 1 x is empty (empty)")


def test_what_could_not_be_fitted_on_is_told(corpora: Path) -> None:
    write(corpora / "some.jsonl", [*articles(6, 40), Document(id="void", text="")])
    words = ("real.jsonl", "alike.jsonl", "--fit", "some.jsonl", "--set", "min_count=5", "--draws", "0")
    notes = json.loads(run("criticize", *words, "--json").stdout)["notes"]
    assert notes == ["fitting: 1 documents could not be used by the sections critic: 1 x is empty (void)"]


def test_a_short_step_is_shown_with_the_words_around_it(corpora: Path) -> None:
    story = "Anna met Paul. She thanked him, and he smiled at her."
    people = [Document(id=f"p{at}", text=f"{story} It was day {at}.") for at in range(20)]
    odd = [Document(id=f"o{at}", text="Anna met Paul. He thanked her, and Anna smiled at Paul.") for at in range(3)]
    write(corpora / "people.jsonl", people)
    write(corpora / "odd.jsonl", odd)
    words = ("people.jsonl", "odd.jsonl", "--critic", "coreference", "--draws", "0")
    assert table(*words, "--show", "outliers")[0]["text"] == "... Anna met Paul. [He] thanked her, and Anna smiled ..."
    assert "[He]1{" in table(*words, "--show", "text")[0]["text"]


def test_a_vector_has_no_place_in_the_text(corpora: Path) -> None:
    words = ("criticize", "real.jsonl", "alike.jsonl", "--critic", "topics", "--set", "topics=2", "--set", "most=1")
    assert "steps of the topics critic have no position in the text" in refused(
        *words, "--show", "text", "--draws", "0"
    )
    rows = table(*words[1:], "--show", "outliers", "--draws", "0")
    assert all(row["text"].endswith(" ...") for row in rows)


def test_one_document_gives_null_with_a_reason(corpora: Path) -> None:
    write(corpora / "one.jsonl", articles(5, 1))
    row = table("real.jsonl", "one.jsonl", "--set", "min_count=5")[0]
    assert row["difference"] is None
    assert row["p"] is None
    assert row["why"] == "a comparison needs at least two generated documents with a score, found 1"


def test_the_self_test_prints_table_1_beside() -> None:
    words = ["training=300", "evaluation=50", "states=16", "segments=400", "length=8"]
    rows = table("--synthetic", *[part for option in words for part in ("--set", option)])
    assert [row["source"] for row in rows] == [
        "P_data",
        "drawn texts",
        "4-grams",
        "6-grams",
        "HSMM",
    ]
    assert rows[3]["paper"] == "2.28, 64.80"
    assert all(math.isfinite(row["latent_ppl"]) for row in rows)


def test_progress_is_shown_to_whoever_watches() -> None:
    from finecomb.corpora.critics.progress import track_progress, use_progress_watcher

    watched_work: list[tuple[str, int | None]] = []

    def watch(items: Any, words: str, total: int | None) -> Any:
        watched_work.append((words, total))
        return items

    with use_progress_watcher(watch):
        criticize("sections", articles(0, 60), {"a": articles(1, 5)}, min_count=5)
    assert ("fitting section classifiers", 3) in watched_work
    assert ("sections critic: a", 5) in watched_work
    assert list(track_progress(np.arange(3), "unwatched")) == [0, 1, 2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--show", "outlier"], "unknown table --show outlier; did you mean 'outliers'?"),
        (["--show", "correlations"], "--show correlations requires --people"),
        (["--document", "1-3"], "--document requires --show parts or --show text"),
        (["--beside", "missing.csv"], "missing.csv: file or folder not found"),
        (["--fit", "missing.jsonl"], "missing.jsonl: file or folder not found"),
        (["--set", "min_count=x"], "min_count=x: input should be a valid integer"),
        (["--set", "smoothing=much"], "smoothing=much: expected auto or add:X"),
        (["--set", "cost=much"], "cost=much: expected auto or a number above 0"),
    ],
)
def test_mistakes_are_found_before_anything_is_fitted(
    corpora: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    """What cannot be done is said at once: before, a table's name was looked at after the fit."""

    def fit_nothing(*_: object, **__: object) -> None:
        raise AssertionError("a classifier was fitted")

    monkeypatch.setattr("finecomb.corpora.critics.sections._cross_fit", fit_nothing)
    assert message in refused("criticize", "real.jsonl", "alike.jsonl", *words)


@pytest.mark.long
def test_what_was_fitted_is_saved_even_if_showing_fails(corpora: Path) -> None:
    words = ("real.jsonl", "alike.jsonl", "--set", "min_count=5", "--draws", "0", "--save", "kept")
    assert "has this ID" in refused("criticize", *words, "--show", "parts", "--document", "nobody")
    assert (corpora / "kept" / "critic.json").exists()


@pytest.mark.long
def test_a_saved_critic_leaves_out_what_it_was_fitted_on(corpora: Path) -> None:
    """By the command's own hint, on the same real documents."""
    first = table("real.jsonl", "alike.jsonl", "--set", "min_count=5", "--draws", "50", "--save", "kept")
    again = table("real.jsonl", "alike.jsonl", "--critic", "kept", "--draws", "50")
    assert again[0]["documents"] == first[0]["documents"]
    assert again[0]["real"] == pytest.approx(first[0]["real"])
    assert again[0]["p"] == first[0]["p"]


@pytest.mark.long
def test_one_fit_shows_several_tables_and_systems_against_each_other(corpora: Path) -> None:
    words = ("criticize", "real.jsonl", "swapped.jsonl", "alike.jsonl", "--set", "min_count=5", "--draws", "50")
    printed = run(*words, "--show", "systems,contrasts,diversity,unused").stdout
    titles = ("Systems", "Contrasts", "Diversity")
    assert [title in printed for title in titles] == [True] * 3
    rows = table(*words[1:], "--show", "contrasts")
    assert [(row["system"], row["against"]) for row in rows] == [("swapped", "alike")] * 2


@pytest.mark.long
def test_a_system_without_scores_has_no_document_to_show(corpora: Path) -> None:
    write(corpora / "empty.jsonl", [Document(id=f"e{number}", text="") for number in range(3)])
    words = ("criticize", "real.jsonl", "empty.jsonl", "--set", "min_count=5", "--draws", "0", "--show", "parts")
    assert "no document of empty can be ranked" in refused(*words)


@pytest.mark.long
def test_a_document_is_chosen_by_its_system_too(corpora: Path) -> None:
    write(
        corpora / "twin.jsonl",
        [document.model_copy(update={"id": f"1-{at}"}) for at, document in enumerate(articles(9, 9))],
    )
    words = ("criticize", "real.jsonl", "swapped.jsonl", "twin.jsonl", "--set", "min_count=5", "--draws", "0")
    shown = ("--show", "parts", "--document", "1-3")
    assert "Parts of 1-3 in swapped" in run(*words, *shown).stdout
    assert "Parts of 1-3 in twin" in run(*words, *shown, "--system", "twin").stdout
    assert "unknown --system twins; did you mean 'twin'" in refused(*words, *shown, "--system", "twins")


@pytest.mark.long
def test_clusters_and_splits_stand_in_the_signature(corpora: Path) -> None:
    prompted = [
        document.model_copy(update={"meta": {"prompt": str(at // 3)}}) for at, document in enumerate(articles(7, 30))
    ]
    write(corpora / "prompted.jsonl", prompted)
    words = ("real.jsonl", "prompted.jsonl", "--set", "min_count=5", "--draws", "50", "--cluster", "prompt")
    result = json.loads(run("criticize", *words, "--splits", "2", "--json").stdout)
    assert "cluster:prompt|splits:2" in result["signature"]
    assert "units:cluster" in result["table"][0]["signature"]
    assert "cannot be used with a saved critic" in refused(
        "criticize", *(*words[:2], "--critic", saved_here(corpora)), "--splits", "2"
    )


def saved_here(folder: Path) -> str:
    run("criticize", "real.jsonl", "alike.jsonl", "--set", "min_count=5", "--draws", "0", "--save", folder / "kept")
    return str(folder / "kept")


def test_before_it_judges_a_critic_tells_whether_it_can(corpora: Path) -> None:
    result = json.loads(run("criticize", "real.jsonl", "--show", "power", "--json").stdout)
    seen = {(row["damage"], row["damaged"]): row["seen"] for row in result["table"]}
    assert seen["two sections swapped", 1.0] == 1
    assert seen["two sections swapped", 0.0] < 0.2
    assert any(
        "damage in each (two sections swapped) is detected in 100% of simulated tests" in note
        for note in result["notes"]
    )
    rows = table("real.jsonl", "swapped.jsonl", "alike.jsonl", "--show", "certainty")
    assert [row["system"] for row in rows] == ["real", "alike", "swapped"]
    assert all(row["certainty"] > 0.5 for row in rows)
    assert "REAL and at least one file" in refused("criticize", "real.jsonl", "--show", "power,systems")


def test_perplexity_by_words_and_mauve_stand_beside(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def surprisal(model: str) -> Any:
        return lambda text: (2.0 * len(text.split()), len(text), len(text.split()))

    def mauve(model: str, real: list[str], generated: list[str]) -> float:
        return 0.9 if len(real) == len(generated) else 0.5

    monkeypatch.setattr("finecomb.corpora.stress.stress_metrics._load_surprisal_model", surprisal)
    monkeypatch.setattr("finecomb.corpora.stress.stress_metrics.mauve", mauve)
    rows = table("real.jsonl", "swapped.jsonl", "--word-ppl", "any", "--mauve", "any", "--draws", "50")
    assert [row["word ppl"] for row in rows] == pytest.approx([math.e**2] * 2)
    assert {row["mauve"] for row in rows} == {0.5}
