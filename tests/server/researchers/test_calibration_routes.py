"""Tests of calibration routes: permissions, storage and validity."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.collection.database.store import Store
from finecomb.core.records import Annotator, Document
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.judges.calibration_record import CALIBRATIONS_FOLDER, CalibrationRecord
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER
from tests.databases import Client, new_study_location, open_test_store


def with_judge(study: Study) -> list[StudyItem]:
    """Add a language model that repeats the marks of the first annotator."""
    judge = Annotator(id="judge", kind="llm", meta={"model": "m", "prompt": "3f2a"})
    copies = [
        annotation.model_copy(
            update={
                "id": f"judge/{annotation.document}",
                "annotator": "judge",
                "marks": tuple(mark.model_copy(update={"id": f"judge/{mark.id}"}) for mark in annotation.marks),
            }
        )
        for annotation in study.iter_annotations()
        if annotation.annotator == "reader-1"
    ]
    return [*study.items(), judge, *copies]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_test_store(new_study_location("sqlite", tmp_path), with_judge(fc.demo(readers=4)), time.time) as store:
        yield store


def page(client: Client, judge: str = "judge") -> Any:
    answer = client.get("/api/admin/calibration", params={"judge": judge})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_only_researchers_see_a_judge_and_only_editors_check_it(store: Store) -> None:
    annotator, viewer = Client(store).join_study(), Client(store).sign_in_researcher("viewer")
    for method in ("GET", "POST"):
        answer = annotator.request(method, "/api/admin/calibration", params={"judge": "judge"})
        assert answer.status_code == 401
    assert viewer.post("/api/admin/calibration", params={"judge": "judge"}).status_code == 403
    shown = page(viewer)
    assert (shown["record"], shown["judges"]) == (None, ["judge"])


@pytest.mark.long
def test_a_judge_is_checked_and_its_contract_kept(store: Store, tmp_path: Path) -> None:
    editor = Client(store).sign_in_researcher("editor", "ed")
    answer = editor.post("/api/admin/calibration", params={"judge": "judge"})
    assert answer.status_code == 200, answer.text
    checked = answer.json()
    assert checked["record"]["judge"] == "judge"
    assert {condition["state"] for condition in checked["stale"]} == {"no"}
    kept = CalibrationRecord.model_validate_json((tmp_path / CALIBRATIONS_FOLDER / "judge.json").read_bytes())
    assert kept.verdict == checked["record"]["verdict"]
    assert (tmp_path / CONTRACTS_FOLDER / "judge.json").is_file()
    assert page(editor)["record"] == checked["record"]
    assert "checked judge" in editor.get("/api/admin/audit").text


def test_what_cannot_be_checked_is_said_in_one_line(store: Store) -> None:
    editor = Client(store).sign_in_researcher("editor", "ed")
    answer = editor.post("/api/admin/calibration", params={"judge": "nobody"})
    assert answer.status_code == 422
    assert "nobody" in answer.json()["say"]
    assert "\n" not in answer.json()["say"]


@pytest.mark.long
def test_texts_of_a_new_system_make_a_contract_stale(store: Store) -> None:
    editor = Client(store).sign_in_researcher("editor", "ed")
    assert editor.post("/api/admin/calibration", params={"judge": "judge"}).status_code == 200
    lines = [Document(id=f"new-{n}", text="A new text.", meta={"model": "other"}).to_json() for n in range(3)]
    body = "\n".join('{"type":"document",' + line[1:] for line in lines).encode()
    sent = editor.post("/api/admin/documents", params={"name": "new.jsonl"}, content=body)
    assert sent.status_code == 200, sent.text
    (*_, systems) = page(editor)["stale"]
    assert (systems["state"], systems["detail"]) == ("yes", "other: 16%")
