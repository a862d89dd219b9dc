"""Functions about corpora, called from Python and compared with what the commands print."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path

import polars as pl
import pytest

import finecomb as fc
from finecomb.api.corpora import criticize, prepare, stress
from finecomb.core.errors import FinecombError, ParameterError, format_as_flag, param
from finecomb.core.notes import ParameterNote
from tests.cli.test_criticize import OWN, write
from tests.cli.test_stress import LINES
from tests.corpora.critics.test_sections import articles
from tests.test_cli import run


def assert_short(result: object) -> None:
    text = repr(result)
    assert len(text.splitlines()) <= 15
    assert len(text) <= 2000
    assert "<table>" in result._repr_html_()  # type: ignore[attr-defined]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(map(json.dumps, LINES)))
    return file


# --- stress ------------------------------------------------------------------------------------------------------


def test_stress_gives_what_the_command_prints(texts: Path) -> None:
    words = ("--metric", "rouge1", "--metric", "chrf", "--corruption", "shuffled,numbers", "--draws", "50")
    printed = json.loads(run("stress", texts, *words, "--json").stdout)
    for source in (texts, str(texts), fc.read(texts)):
        falls = stress(source, metric=["rouge1", "chrf"], corruption=["shuffled", "numbers"], draws=50)
        assert [row.value for row in falls.rows()] == pytest.approx([row["value"] for row in printed["table"]])
        assert [row.value for row in falls.ranks.rows()] == pytest.approx([row["value"] for row in printed["ranks"]])
    assert_short(falls)
    assert_short(falls.ranks)


def test_stress_reads_a_data_frame() -> None:
    frame = pl.DataFrame([{"id": row["id"], "text": row["text"]} for row in LINES])
    falls = stress(frame, metric="detector:rules", corruption="repeated", draws=0)
    assert falls.find(corruption="repeated").texts == 8
    rows = stress(frame.to_dicts(), metric="detector:rules", corruption="repeated", draws=0)
    assert rows.to_dicts() == falls.to_dicts()


def test_a_metric_that_fails_is_a_note_in_the_words_of_each_client(texts: Path) -> None:
    falls = stress(texts, metric=["command:false", "rouge1"], corruption="shuffled", draws=0)
    assert falls.failed == 1
    assert falls.notes[0].startswith("metric=command:false failed with exit code 1")
    printed = run("stress", texts, "-m", "command:false", "-m", "rouge1", "--corruption", "shuffled").stderr
    assert "note: --metric command:false failed with exit code 1" in printed


def test_stress_reports_its_progress_by_metric(texts: Path) -> None:
    calls: list[tuple[int, int | None]] = []
    stress(
        texts, metric=["rouge1", "rouge2"], corruption="shuffled", draws=0,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    assert calls == [(1, 2), (2, 2)]


def test_stress_works_inside_an_event_loop(texts: Path) -> None:
    async def work() -> int:
        return len(stress(texts, metric="rouge1", corruption="shuffled", draws=0))

    assert asyncio.run(work()) == 1


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"metric": "detector:"}, "metric=detector requires a value, e.g. metric=detector:NAME"),
        ({"corruption": "shufled"}, "unknown corruption=shufled; did you mean 'shuffled'?"),
        ({"draws": -1}, "draws must be at least 0, found -1"),
        ({"metric": "command:cat", "workers": 2}, "workers does not apply to command:cat; it applies to rouge1"),
        ({"metrics": "rouge1"}, "stress() has no parameter 'metrics'; did you mean 'metric'?"),
    ],
)
def test_stress_refuses_what_cannot_be(texts: Path, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        stress(texts, **keywords)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


def test_stress_names_the_study_that_has_no_texts() -> None:
    with pytest.raises(FinecombError, match=r"^the study: no texts found$"):
        stress([{"id": "a", "text": " "}])


def test_a_note_that_is_copied_keeps_its_parameters() -> None:
    note = ParameterNote(f"use {param('licence')}")
    for twin in (copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (twin, twin.format_text(format_as_flag)) == ("use licence", "use --licence")


# --- criticize ---------------------------------------------------------------------------------------------------


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """real.jsonl and alike.jsonl, and a module with a critic, in the current folder."""
    write(tmp_path / "real.jsonl", articles(0, 60))
    write(tmp_path / "alike.jsonl", articles(2, 20))
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_criticize_gives_what_the_command_prints(corpora: Path) -> None:
    words = ("--critic", "mine:initials", "--draws", "20", "--json")
    printed = json.loads(run("criticize", "real.jsonl", "alike.jsonl", *words).stdout)
    studies = {"alike": fc.read("alike.jsonl")}
    for real, generated in (
        ("real.jsonl", ["alike.jsonl"]),
        (Path("real.jsonl"), "alike.jsonl"),
        (fc.read("real.jsonl"), studies),
        (fc.read("real.jsonl"), studies["alike"]),
    ):
        result = criticize(real, generated, critic="mine:initials", draws=20)
        assert [row.system for row in result] == ["alike", "alike"]
        assert [row.difference for row in result] == pytest.approx([row["difference"] for row in printed["table"]])
        assert result.signature == printed["signature"]
        assert list(result.notes) == printed["notes"]
    assert_short(result)


def test_criticize_reads_tables_of_texts(corpora: Path) -> None:
    real = [{"id": document.id, "text": document.text} for document in articles(0, 60)]
    generated = pl.DataFrame([{"id": document.id, "text": document.text} for document in articles(2, 20)])
    from_files = criticize("real.jsonl", "alike.jsonl", critic="mine:initials", draws=20)
    result = criticize(real, {"alike": generated}, critic="mine:initials", draws=20)
    assert [row.difference for row in result] == pytest.approx([row.difference for row in from_files])
    alone = criticize(pl.DataFrame(real), generated, critic="mine:initials", draws=20, fit=None)
    assert alone.to_dicts() == criticize(real, generated.to_dicts(), critic="mine:initials", draws=20).to_dicts()
    assert {row.system for row in alone} == {"generated"}


def test_criticize_holds_every_table_saves_and_writes(corpora: Path) -> None:
    result = criticize(
        "real.jsonl", "alike.jsonl", critic="mine:initials", draws=0, show="systems,outliers,parts",
        save=corpora / "kept", output=corpora / "made",
    )  # fmt: skip
    assert list(result.tables) == ["systems", "outliers", "parts"]
    assert result.tables["systems"].rows() == result.rows()
    assert result.tables["parts"].title.startswith("Parts of ")
    assert result.saved == (corpora / "kept",)
    assert (corpora / "kept" / "critic.json").exists()
    assert {file.name for file in result.written} >= {"systems.csv", "outliers.csv"}
    assert all(file.exists() for file in result.written)
    for table in result.tables.values():
        assert_short(table)


def test_criticize_reports_progress_and_works_inside_an_event_loop(corpora: Path) -> None:
    calls: list[int] = []

    async def work() -> int:
        result = criticize(
            "real.jsonl", "alike.jsonl", critic="mine:initials", draws=0, progress=lambda done, _: calls.append(done)
        )
        return len(result)

    assert asyncio.run(work()) == 2
    assert calls


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"critic": "mine:Nothing"}, "critic=mine:Nothing: module 'mine' has no attribute 'Nothing'"),
        ({"set_": "min"}, "set_=min: expected NAME=VALUE, e.g. set_=model=gpt2"),
        ({"set_": "min=5"}, "set_=min: none of the selected critics has this option"),
        ({"show": "outlier"}, "unknown table show=outlier; did you mean 'outliers'?"),
        ({"show": "correlations"}, "show=correlations requires people with a study that uses the sections protocol"),
        ({"document": "1-3"}, "document requires show=parts or show=text"),
        ({"fit_share": 2}, "fit_share must be at most 0.95, found 2"),
        ({"synthetic": True, "workers": 2}, "workers does not apply to synthetic; it applies to REAL"),
        ({"fit": "nowhere.jsonl"}, "nowhere.jsonl: file or folder not found"),
        ({"output": "."}, ". already exists; pass force to write into it"),
    ],
)
def test_criticize_refuses_what_cannot_be(corpora: Path, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(FinecombError) as error:
        criticize("real.jsonl", ["alike.jsonl"], **keywords)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


def test_criticize_needs_real_and_generated_documents() -> None:
    with pytest.raises(FinecombError, match=r"or synthetic; show=power,certainty requires REAL only$"):
        criticize()


def test_a_saved_critic_whose_code_is_not_named_is_refused_as_such(corpora: Path) -> None:
    criticize("real.jsonl", "alike.jsonl", critic="mine:initials", draws=0, save="kept")
    with pytest.raises(FinecombError, match=r"if you trust it, pass code=mine:initials$"):
        criticize("real.jsonl", "alike.jsonl", critic="kept", draws=0)


# --- prepare -----------------------------------------------------------------------------------------------------

RAW = [{"id": f"t{at}", "text": f"Text {at % 4} is here . It is short .", "model": "ab"[at % 2]} for at in range(7)]


def test_prepare_gives_what_the_command_prints(tmp_path: Path) -> None:
    file, output = tmp_path / "raw.jsonl", tmp_path / "out.jsonl"
    file.write_text("\n".join(map(json.dumps, RAW)))
    printed = json.loads(run("prepare", file, "-o", output, "--detokenise", "--balance", "model", "--json").stdout)
    study = fc.read(file)
    for texts in (file, [str(file)], study, RAW, pl.DataFrame(RAW), list(study.iter_documents())):
        result = prepare(texts, detokenise=True, balance="model")
        assert result.to_dicts() == printed["table"]
        assert list(result.notes) == printed["notes"]
        assert [document.text for document in result.documents] == [
            document.text for document in fc.read(output).iter_documents()
        ]
    assert len(result.study.documents) == 4
    assert result.dropped["t4"] == "duplicate of another text"
    assert_short(result)


def test_prepare_drops_copies_of_priming_texts() -> None:
    result = prepare(RAW, priming=[{"id": "p", "text": RAW[0]["text"]}], overlap=0.9)
    assert "shares more than 90% of its words with a priming text" in result.dropped["t0"]


def test_prepare_says_why_no_text_is_left() -> None:
    result = prepare(RAW, words="100-")
    assert result.documents == ()
    assert result.find(what="dropped: fewer than 100 words").texts == 7


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"overlap": 0.5}, "overlap requires priming"),
        (
            {"prompt": "start"},
            "prompt=start requires start; add the words that texts begin with, e.g. start='Once upon a time'",
        ),
        ({"start": "Once"}, "start requires prompt=start; add it or omit start"),
        ({"per_cell": 2}, "per_cell requires balance; name the fields to balance, e.g. balance=topic,model"),
        ({"balance": "modle"}, "balance=modle: no text has this meta field; did you mean 'model'?"),
        ({"sections": "with-titles", "words": "1-"}, "sections=with-titles cannot be used with prompt or words"),
        ({"prompt": "ending"}, "prompt must be one of first-sentence, headline"),
    ],
)
def test_prepare_refuses_what_cannot_be(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        prepare(RAW, **keywords)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


def test_prepare_needs_texts() -> None:
    with pytest.raises(FinecombError, match="no texts to prepare"):
        prepare([])
