"""A simulated study after Clark et al. (2021): four kinds of training, three domains, scripted people over HTTP.

How often each person is right is known, so the tables that come out of `finecomb test` must have it in their intervals.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb import protocols
from finecomb.cli import app
from finecomb.core.records import Document, Settings
from finecomb.core.study import Study, StudyItem
from tests.databases import Client, FakeClock, new_study_location, open_test_store
from tests.onboarding_client import complete_onboarding

pytestmark = pytest.mark.long

ACCURACY = {"none": 0.55, "instructions": 0.6, "examples": 0.65, "comparison": 0.7}
DOMAINS = ("stories", "news", "recipes")
PEOPLE = 180
TURING = protocols.load("turing")


def texts() -> list[Document]:
    """Make texts whose author cannot be told from the text; the simulated people look it up."""
    return [
        Document(id=f"{domain}-{model}-{n}", text=f"Text {hash_} of its kind.", meta={"domain": domain, "model": model})
        for hash_, (domain, model, n) in enumerate(
            (domain, model, n) for domain in DOMAINS for model in ("human", "gpt3") for n in range(35)
        )
    ]


def rate(client: Client, machine: dict[str, bool], accuracy: float, chance: random.Random) -> int:
    """Rate every text, right with probability `accuracy`, and return the number of texts."""
    count = 0
    while (now := client.post("/api/next").json())["task"]:
        task = now["task"]
        right = chance.random() < accuracy
        said = machine[task["text"]] if right else not machine[task["text"]]
        rating = chance.choice((3, 4) if said else (1, 2))
        reason = {"why" if rating == 1 else "change": "The middle sentence decided it for me."}
        assert client.save(task["id"], "answers", {"answers": {"rating": rating, **reason}})[0] == 200
        assert client.finish(task["id"])[0] == 200
        count += 1
    assert now["why"] == "all-done"
    return count


def take_part(client: Client, machine: dict[str, bool], number: int) -> None:
    """Take part as one person, from the link to the completion code."""
    client.cookies.clear()
    client.join_study()
    condition = client.store.read_annotators()[-1].condition
    _, met = complete_onboarding(client, TURING)
    rounds = 3 if condition in ("examples", "comparison") else 1
    assert [page["kind"] for page in met] == ["instructions"] + rounds * ["examples"]
    assert rate(client, machine, ACCURACY[condition], random.Random(f"reader {number}")) == 5
    assert client.get("/api/me").json()["ending"]["why"] == "done"


@pytest.fixture(scope="module")
def clark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the exported study."""
    folder = tmp_path_factory.mktemp("clark")
    documents = texts()
    machine = {each.text: each.meta["model"] != "human" for each in documents}
    items: list[StudyItem] = [Settings(protocols=(TURING.id,), annotators=14, seed=1), TURING, *documents]
    with open_test_store(new_study_location("sqlite", folder), items, FakeClock()) as store:
        with Client(store) as client:  # one event loop for all
            for number in range(PEOPLE):
                take_part(client, machine, number)
        fc.write(store.read_study(), folder / "study")
    return folder / "study"


def tables(study: Path, by: str) -> list[dict[str, Any]]:
    made = CliRunner().invoke(
        app, ["test", str(study), "--what", "human-or-machine", "--by", by, "--draws", "200", "--json"]
    )
    assert made.exit_code == 0, made.output
    found: list[dict[str, Any]] = json.loads(made.stdout)["table"]
    return [row for row in found if row["measure"] == "accuracy"]


def test_people_are_spread_evenly_over_conditions_and_settings(clark: Path) -> None:
    study: Study = fc.read(clark)
    people = {each.id: each for each in study.iter_annotators()}
    cells = Counter((each.condition, str(each.meta["setting"])) for each in people.values())
    assert set(cells.values()) == {PEOPLE // 12}
    domains = dict(zip(study.documents["id"], (each.meta["domain"] for each in study.iter_documents()), strict=True))
    for one in people.values():
        setting = one.meta["setting"]
        assert isinstance(setting, dict)
        assert set(setting) == {"domain", "model"}
    for each in study.iter_annotations():
        setting = people[each.annotator].meta["setting"]
        assert isinstance(setting, dict)
        assert domains[each.document] == setting["domain"]
    assert max(Counter(each.document for each in study.iter_annotations()).values()) <= 14


def test_the_accuracy_of_each_condition_lies_in_its_interval(clark: Path) -> None:
    """With other seeds, one study in five has a condition outside, as expected of four 95% intervals."""
    rows = tables(clark, "condition")
    assert {row["condition"] for row in rows} == set(ACCURACY)
    for row in rows:
        assert row["evaluators"] == PEOPLE // 4
        assert row["low"] <= ACCURACY[row["condition"]] <= row["high"], row


def test_nearly_all_cells_have_their_accuracy_in_their_interval(clark: Path) -> None:
    """Of twelve 95% intervals, more than two would miss in 2 studies of 100."""
    rows = tables(clark, "condition,domain")
    assert len(rows) == 12
    assert sum(not row["low"] <= ACCURACY[row["condition"]] <= row["high"] for row in rows) <= 2


def test_texts_of_people_and_machines_are_drawn_alike(clark: Path) -> None:
    drawn = Counter(each.document.split("-")[1] for each in fc.read(clark).iter_annotations())
    total = PEOPLE * 5
    assert abs(drawn["human"] - total / 2) < 3 * (total / 4) ** 0.5
