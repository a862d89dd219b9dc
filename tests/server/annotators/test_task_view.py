"""What annotators see under the protocols that go part by part, show data, hide contexts or have arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from finecomb import protocols
from finecomb.core.protocol import Protocol
from finecomb.core.records import PHASES, Document, Segment, Settings
from finecomb.core.study import Item
from finecomb.server import openapi
from finecomb.server.annotators import task_view
from finecomb.store import tables
from tests.databases import Client, Clocked, new_place, opened

TEXT = "One. Two. Three. Four. Five."
CUT = (Segment(start=0, end=9, title="Start"), Segment(start=10, end=28, role="guest"))


def document(**more: Any) -> Document:
    return Document(id="d", text=TEXT, context={"prompt": "Count."}, data={"a": 1}, **more)


def with_work(protocol: Protocol, **work: Any) -> Protocol:
    return protocol.model_copy(update={"work": protocol.work.model_copy(update=work)})


def test_parts_are_the_documents_own_else_so_many_sentences() -> None:
    asked = with_work(protocols.load("snac"), sentences=2)
    parts = task_view.task_text(document(segments=CUT), asked).parts
    assert [(part.start, part.end, part.title, part.role) for part in parts] == [
        (0, 9, "Start", ""),
        (10, 28, "", "guest"),
    ]
    cut = [TEXT[part.start : part.end] for part in task_view.task_text(document(), asked).parts]
    assert cut == ["One. Two.", "Three. Four.", "Five."]
    assert task_view.task_text(document(segments=CUT), protocols.load("scarecrow")).parts == ()


@pytest.mark.parametrize(
    ("work", "context", "data"), [({"context": "hidden"}, {}, None), ({"data": True}, {"prompt": "Count."}, {"a": 1})]
)
def test_contexts_and_data_are_shown_as_the_protocol_says(work: Any, context: Any, data: Any) -> None:
    seen = task_view.task_text(document(), with_work(protocols.load("scarecrow"), **work)).document
    assert (seen.context, seen.data) == (context, data)


@pytest.mark.parametrize("name", protocols.names())
def test_a_guide_has_no_solutions_and_no_weights(name: str) -> None:
    asked = protocols.load(name)
    guide = task_view.guide(asked)
    said = guide.model_dump_json()
    assert {look.label for look in guide.looks} == {"", *(label.name for label in asked.labels)}
    for exercise in asked.exercises():
        assert exercise.feedback not in said or not exercise.feedback
    assert not {"weights", "training", "qualification", "meta", "source"} & set(type(guide).model_fields)


def test_the_arms_of_an_experiment_are_on_their_own_page_only() -> None:
    asked = protocols.load("turing")
    said = task_view.guide(asked).model_dump_json()
    for arm in asked.conditions:
        assert arm.title not in said
        assert not arm.instructions or arm.instructions.splitlines()[0] not in said
        assert not any(example.text in said for example in arm.examples)


def test_parts_are_judged_one_by_one(tmp_path: Path) -> None:
    asked = protocols.load("snac")
    items: list[Item] = [Settings(protocols=(asked.id,), skip=PHASES), asked, document(segments=CUT)]
    with opened(new_place("sqlite", tmp_path), items, clock := Clocked()) as store:
        client = Client(store).joined()
        task = client.next()
        assert client.save(task["id"], "units/3-9", {})[1]["code"] == "refused"
        clock.now += 5
        assert client.save(task["id"], "units/10-28", {"seconds": 99})[0] == 200
        assert client.finish(task["id"])[1]["missing"] == ["units/0-9: judged"]
        assert client.save(task["id"], "units/0-9", {"seconds": 2})[0] == 200
        assert client.finish(task["id"])[0] == 200
        (found,) = store.annotations(tables.annotation.c.id == task["id"])
        assert [(unit.start, unit.end, unit.seconds) for unit in found.units] == [(0, 9, 2), (10, 28, 5)]


def test_ratings_need_their_answers_and_nothing_else(tmp_path: Path) -> None:
    asked = protocols.load("turing")
    items: list[Item] = [Settings(protocols=(asked.id,), skip=PHASES), asked, document()]
    with opened(new_place("sqlite", tmp_path), items, Clocked()) as store:
        client = Client(store).joined()
        task = client.next()
        assert client.finish(task["id"])[1]["missing"] == ["answers/text: rating"]
        assert client.save(task["id"], "answers", {"answers": {"rating": 9}})[1]["code"] == "refused"
        client.save(task["id"], "answers", {"answers": {"rating": 1}})
        assert client.finish(task["id"])[1]["missing"] == ["answers/text: why"]
        client.save(task["id"], "answers", {"answers": {"rating": 1, "why": "it reads so"}}, base=1)
        assert client.finish(task["id"])[0] == 200


def test_the_api_describes_itself() -> None:
    found = openapi.description()
    assert {"Task", "Me", "NextResponse", "Saved", "ErrorResponse", "MarkChange", "MarkEntry"} <= set(
        found["components"]["schemas"]
    )
    assert not [name for name in found["components"]["schemas"] if "_" in name or "[" in name]
    assert "HTTPValidationError" not in str(found)
