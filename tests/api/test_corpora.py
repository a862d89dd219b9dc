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
from finecomb.api.corpora import stress
from finecomb.core.errors import FinecombError, ParameterError, flag_style, param
from finecomb.core.notes import Note
from tests.cli.test_stress import LINES
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
    assert falls.notes[0].startswith("metric=command:false: ended with 1")
    printed = run("stress", texts, "-m", "command:false", "-m", "rouge1", "--corruption", "shuffled").stderr
    assert "note: --metric command:false: ended with 1" in printed


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
        ({"metric": "detector:"}, "metric=detector: say which, e.g. metric=detector:..."),
        ({"corruption": "shufled"}, "corruption=shufled: unknown; did you mean 'shuffled'?"),
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
    with pytest.raises(FinecombError, match=r"^the study: has no texts to damage$"):
        stress([{"id": "a", "text": " "}])


def test_a_note_that_is_copied_keeps_its_parameters() -> None:
    note = Note(f"use {param('licence')}")
    for twin in (copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (twin, twin.text(flag_style)) == ("use licence", "use --licence")
