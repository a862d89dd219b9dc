"""A database and a folder of an earlier Finecomb, before people had a package of their own, give the same tables.

Both hold one study with people at every point of the way: survey, training, a test that was not passed, work with
offered marks, an attention check that was kept, a second pass, adjudication, bonuses and workers of a platform.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb.cli import app
from finecomb.collection import arrivals_storage, assignment_storage, onboarding_storage, pay
from finecomb.collection.annotator_meta import AnnotatorMeta, Bonus
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import Store, open_store
from finecomb.collection.onboarding import PracticeItem, Step
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.records import Annotation, Annotator

FILES = Path(__file__).parent / "files" / "before-people"
EXPECTED: dict[str, Any] = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
NOT_COMPARED = {"signature", "low", "high", "why"}
"""What says how sure a number is; rules for intervals may change, numbers may not."""


EVERYBODY = [word for kind in ("human", "llm", "detector", "checker", "pooled") for word in ("--kind", kind)]
MIXED = {"measure": EVERYBODY, "agree": EVERYBODY}
"""Statistics read people alone today, and everybody but gold then."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    shutil.copy(FILES / "study.db", tmp_path / "study.db")
    return tmp_path / "study.db"


@pytest.fixture
def store(database: Path) -> Iterator[Store]:
    opened = open_store(parse_location(database))
    try:
        yield opened
    finally:
        opened.close()


def table(command: str, study: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, [command, str(study), *MIXED.get(command, ()), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["table"]
    chosen = [row for row in rows if command != "measure" or row["value"]]
    return [{name: value for name, value in row.items() if name not in NOT_COMPARED} for row in chosen]


def comparable(command: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the column `level`, which is new; of `stats`, which counts work only today, what there is in all."""
    if command == "stats":
        return [{name: rows[0][name] for name in ("documents", "annotators")}]
    hidden = {"level"} if command == "measure" else set()
    return [{name: value for name, value in row.items() if name not in hidden} for row in rows]


def same(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(rows) == len(expected)
    for row, before in zip(rows, expected, strict=True):
        assert {name: rounded(value) for name, value in row.items()} == {n: rounded(v) for n, v in before.items()}


def rounded(value: object) -> object:
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.parametrize("command", ["stats", "measure", "agree", "rounds", "screen"])
@pytest.mark.parametrize("kind", ["folder", "database"])
def test_tables_are_those_of_before(command: str, kind: str, database: Path) -> None:
    study = FILES / "folder" if kind == "folder" else database
    same(comparable(command, table(command, study)), comparable(command, EXPECTED[command]))


def test_pay_is_that_of_before(store: Store) -> None:
    with store.database.read_transaction() as transaction:
        arrivals = arrivals_storage.read_all_arrivals(store, transaction)
    earned = pay.compute_earnings(store.read_study(), arrivals, store.head.protocol)
    assert pay.format_pay_file("pay", earned) == (FILES / "pay.csv").read_text(encoding="utf-8")


def whereabouts(store: Store, annotator: str) -> list[Any]:
    with store.database.read_transaction() as transaction:
        step = onboarding_storage.read_onboarding_state(store, transaction, annotator).step
        state = assignment_storage.read_assignment_state(store, transaction, annotator)
    at = step.id if isinstance(step, Step) else step.document if isinstance(step, PracticeItem) else step
    return [at, [task.document for task in state.given], list(state.free), state.ahead, state.why]


def test_everybody_is_where_they_were(store: Store) -> None:
    people = [annotator.id for annotator in store.read_annotators() if annotator.kind == "human"]
    assert {id: whereabouts(store, id) for id in people} == EXPECTED["whereabouts"]


def test_folder_and_database_hold_the_same_records(database: Path) -> None:
    assert list(fc.read(FILES / "folder").items()) == list(fc.read(database).items())


def test_what_is_kept_about_a_person_has_types() -> None:
    study = fc.read(FILES / "folder")
    people = {annotator.id: annotator for annotator in study.iter_annotators()}
    progress = AnnotatorMeta.from_annotator(people["reader-1"])
    assert (progress.name, progress.bonus) == ("Ada", Bonus(2.5, "thorough"))
    assert progress.setting == {"town": "harbour"}
    assert {"consent", "survey", "instructions"} <= progress.done_step_ids("before@1")
    assert AnnotatorMeta.from_annotator(people["zoe"]).find_step_record("before@1", "survey") is not None
    assert AnnotatorMeta.from_annotator(people["zoe"]).done_step_ids("before@1") == {"consent"}


def test_what_is_kept_about_a_task_has_types_and_is_written_as_it_was_read() -> None:
    annotations = list(fc.read(FILES / "folder").iter_annotations())
    every = [TaskMeta.from_meta(annotation.meta) for annotation in annotations]
    for annotation, circumstances in zip(annotations, every, strict=True):
        assert circumstances.to_meta() == annotation.meta
    work = [one for one, annotation in zip(every, annotations, strict=True) if annotation.phase == "work"]
    assert any(one.blind for one in work)
    assert any(one.offered for one in work)
    assert any(one.attention_check and one.kept == ("failed-check",) for one in work)
    assert any(one.copies for one in work)
    assert any(one.adjudication and one.rulings for one in work)
    assert all(one.rest.keys() <= {"decisions"} for one in every)


def test_types_keep_what_is_not_ours() -> None:
    meta = {"order": 3, "offered": [], "pilot": "yes", "batch": 7}
    circumstances = TaskMeta.from_meta(meta)
    assert (circumstances.order, circumstances.offered, circumstances.pilot) == (3, (), False)
    assert circumstances.to_meta() == meta
    person = Annotator(id="ann", kind="human", meta={"steps": "none", "bonus": 3, "batch": 7})
    assert AnnotatorMeta.from_annotator(person) == AnnotatorMeta()
    assert Annotation(id="a", document="d", annotator="ann", protocol="p", meta=meta).meta == meta
