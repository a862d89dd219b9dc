"""Probes of a model: the same texts asked once more, with one thing changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from finecomb import formats
from finecomb.core.records import Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.protocols import load
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.cli.test_annotate import run
from tests.test_cli import refused

TEXT = "On day {} they saw the the sea and and went home."


def reply(*quotes: str, label: str = "grammar-usage") -> str:
    around = {"before": "", "after": "", "label": label, "severity": 1, "explanation": "x"}
    return json.dumps({"marks": [{"quote": quote, **around} for quote in quotes]})


@pytest.fixture
def study(tmp_path: Path) -> Path:
    scarecrow = load("scarecrow")
    documents = [
        Document(id=f"d{n:02}", text=TEXT.format(n), meta={"model": ("m", "other")[n % 2], "prompt_id": f"{n // 2}"})
        for n in range(20)
    ]
    person = Annotator(id="p", kind="human")
    work = [
        Annotation(
            id=f"p/{document.id}", document=document.id, annotator="p", protocol=scarecrow.id,
            marks=(Mark(
                id=f"p/{document.id}/0", spans=(Span(19, 26),), quotes=(document.text[19:26],), label="grammar-usage",
                answers={"severity": 1, "explanation": "x"},
            ),),
        )
        for document in documents
    ]  # fmt: skip
    folder = tmp_path / "study"
    formats.save_records([Settings(protocols=(scarecrow.id,)), scarecrow, *documents, person, *work], folder)
    return folder


def day(body: dict[str, Any]) -> int:
    match = re.search(r"On day (\d+) they", body["messages"][-1]["content"])
    assert match
    return int(match[1])


def probed(study: Path, server: ScriptedServer, probe: str, *more: str) -> dict[str, Any]:
    words = ["annotate", study, "--model", "m", "--base-url", server.url, "--probe", probe, "--json", *more]
    result: dict[str, Any] = json.loads(run(*words).stdout)
    return {row["measure"]: row for row in result["table"]}


def test_a_repeated_reading_shows_what_is_chance_and_is_paid_once(study: Path) -> None:
    """The second reading of a text finds one mark more in three of four texts."""

    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        again = body["seed"] > 1000
        return ScriptedAnswer(reply("the the", "and and") if again and day(body) % 4 else reply("the the"))

    with ScriptedServer(script) as server:
        rows = probed(study, server, "repeat")
        assert len(server.requests) == 40
        assert probed(study, server, "repeat") == rows
        assert len(server.requests) == 40
    change = re.findall(r"-?[\d.]+", rows["marks per text, change"]["value"])
    assert float(change[0]) == 0.75
    assert 0 < float(change[1]) < 0.75 < float(change[2])
    whole = formats.read(study)
    metas = {one.id: dict(one.meta) for one in whole.iter_annotators()}
    assert metas["m~repeat"]["probe_of"] == "m"
    table = json.loads(
        run("calibrate", study, "--judge", "m", "--people", "p", "--people", "m~repeat", "--no-gamma", "--json").stdout
    )
    assert "repeat" in {row.get("probe") for row in table["table"]}


def test_labels_come_in_another_order_and_the_text_in_another_place(study: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(reply("the the"))) as server:
        probed(study, server, "labels", "--limit", "9")
        orders = [
            tuple(body["response_format"]["json_schema"]["schema"]["properties"]["marks"]["items"]["properties"]["label"]["enum"])
            for body in server.requests
        ]  # fmt: skip
        assert len(set(orders)) == 2
        assert len({frozenset(order) for order in orders}) == 1
        probed(study, server, "position", "--limit", "9")
        ends = {body["messages"][-1]["content"].endswith(">>>") for body in server.requests[-9:]}
        assert ends == {True}
        probed(study, server, "paraphrase", "--limit", "9")
        assert server.requests[-1]["messages"][0] != server.requests[0]["messages"][0]
        assert len(server.requests) == 9 + 3 * 9


def test_a_model_that_spares_its_own_texts_is_told(study: Path) -> None:
    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        return ScriptedAnswer(reply() if day(body) % 2 == 0 and day(body) % 6 else reply("the the"))

    with ScriptedServer(script) as server:
        rows = probed(study, server, "self")
    numbers = [float(part) for part in re.findall(r"-?[\d.]+", rows["marks per text beyond people's"]["value"])]
    assert numbers[2] < 0


def test_probes_that_cannot_be_are_refused(study: Path, tmp_path: Path) -> None:
    words = ("annotate", study, "--model", "m", "--base-url", "http://localhost:9/v1")
    assert "did you mean 'repeat'" in refused(*words, "--probe", "repat")
    assert "--own requires --probe self" in refused(*words, "--probe", "repeat", "--own", "m")
    assert "--verify and --probe cannot be used together" in refused(*words, "--probe", "labels", "--verify", "same")
    template = tmp_path / "mine.txt"
    template.write_text("{{labels}}\n=== user ===\n{{text}}\n", encoding="utf-8")
    assert "pass the file with --paraphrase" in refused(*words, "--probe", "paraphrase", "--prompt", str(template))


def test_annotate_warns_of_a_stale_contract(study: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(reply("the the"))) as server:
        words = ("annotate", study, "--model", "m", "--base-url", server.url)
        run(*words)
        probed(study, server, "repeat")
        people = ("--people", "p", "--people", "m~repeat")
        run("calibrate", study, "--judge", "m", *people, "--keep", "--no-gamma", "--draws", "20")
        assert "is no longer valid" not in " ".join(run(*words).stderr.split())
        path = study / "contracts" / "m.json"
        path.write_text(path.read_text().replace('"days": 30', '"days": 1').replace("2026-", "2020-", 1))
        warned = run(*words).stderr
        assert "the calibration of m is no longer valid" in " ".join(warned.split())
