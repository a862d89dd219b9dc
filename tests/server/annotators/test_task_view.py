"""Tests of task views: part by part, with data, with hidden contexts and with conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from finecomb import protocols
from finecomb.collection.database import tables
from finecomb.core.protocol import Protocol
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Document, Mark, Offer, Segment, Settings
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.server import openapi
from finecomb.server.annotators import task_view
from tests.databases import Client, FakeClock, new_study_location, open_test_store

TEXT = "One. Two. Three. Four. Five."
CUT = (Segment(start=0, end=9, title="Start"), Segment(start=10, end=28, role="guest"))


def make_document(**more: Any) -> Document:
    return Document(id="d", text=TEXT, context={"prompt": "Count."}, data={"a": 1}, **more)


def with_work(protocol: Protocol, **work: Any) -> Protocol:
    return protocol.model_copy(update={"work": protocol.work.model_copy(update=work)})


def test_parts_are_the_documents_own_else_so_many_sentences() -> None:
    asked = with_work(protocols.load("snac"), sentences=2)
    parts = task_view.build_task_text(make_document(segments=CUT), asked).parts
    assert [(part.start, part.end, part.title, part.role) for part in parts] == [
        (0, 9, "Start", ""),
        (10, 28, "", "guest"),
    ]
    cut = [TEXT[part.start : part.end] for part in task_view.build_task_text(make_document(), asked).parts]
    assert cut == ["One. Two.", "Three. Four.", "Five."]
    assert task_view.build_task_text(make_document(segments=CUT), protocols.load("scarecrow")).parts == ()


@pytest.mark.parametrize(
    ("work", "context", "data"), [({"context": "hidden"}, {}, None), ({"data": True}, {"prompt": "Count."}, {"a": 1})]
)
def test_contexts_and_data_are_shown_as_the_protocol_says(work: Any, context: Any, data: Any) -> None:
    seen = task_view.build_task_text(make_document(), with_work(protocols.load("scarecrow"), **work)).document
    assert (seen.context, seen.data) == (context, data)


@pytest.mark.parametrize("name", protocols.names())
def test_a_guide_has_no_solutions_and_no_weights(name: str) -> None:
    asked = protocols.load(name)
    guide = task_view.build_guide(asked)
    said = guide.model_dump_json()
    assert {look.label for look in guide.looks} == {"", *(label.name for label in asked.labels)}
    for exercise in asked.exercises():
        assert exercise.feedback not in said or not exercise.feedback
    assert not {"weights", "training", "qualification", "meta", "source"} & set(type(guide).model_fields)


def test_the_arms_of_an_experiment_are_on_their_own_page_only() -> None:
    asked = protocols.load("turing")
    said = task_view.build_guide(asked).model_dump_json()
    for arm in asked.conditions:
        assert arm.title not in said
        assert not arm.instructions or arm.instructions.splitlines()[0] not in said
        assert not any(example.text in said for example in arm.examples)


def test_parts_are_judged_one_by_one(tmp_path: Path) -> None:
    asked = protocols.load("snac")
    items: list[StudyItem] = [
        Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES),
        asked,
        make_document(segments=CUT),
    ]
    with open_test_store(new_study_location("sqlite", tmp_path), items, clock := FakeClock()) as store:
        client = Client(store).join_study()
        task = client.next_task()
        assert client.save(task["id"], "units/3-9", {})[1]["code"] == "refused"
        clock.now += 5
        assert client.save(task["id"], "units/0-9", {"seconds": 2})[0] == 200
        assert client.finish(task["id"])[1]["missing"] == ["units/10-28: judged"]
        assert client.save(task["id"], "units/10-28", {"seconds": 99})[0] == 200
        assert client.finish(task["id"])[0] == 200
        (found,) = store.read_annotations(tables.annotation.c.id == task["id"])
        assert [(unit.start, unit.end, unit.seconds) for unit in found.units] == [(0, 9, 2), (10, 28, 5)]


def test_a_later_part_is_not_sent_before_the_earlier_ones_were_judged(tmp_path: Path) -> None:
    asked = protocols.load("snac")
    cut = (*CUT, Segment(start=29, end=39, title="The end"))
    long = Document(id="d", text=f"{TEXT} Six is it.", segments=cut)
    words: dict[str, Any] = {"label": None, "answers": {}}
    with open_test_store(
        new_study_location("sqlite", tmp_path),
        [Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES), asked, long],
        FakeClock(),
    ) as store:
        client = Client(store).join_study()
        task = client.next_task()
        id = task["id"]
        assert (task["text"], [part["title"] for part in task["parts"]]) == ("One. Two.", ["Start", "", ""])
        assert task["sentences"]["text"] == [[0, 4], [5, 9]]
        code, answer = client.save(id, "marks/m", {"spans": [[10, 15]], "quotes": ["wrong"], **words})
        assert (code, "Three" in answer["say"]) == (422, False)  # the error message does not reveal it either
        assert "the earlier parts first" in client.save(id, "units/10-28", {})[1]["say"]
        assert client.save(id, "units/0-9", {})[0] == 200
        assert client.get(f"/api/tasks/{id}").json()["text"] == TEXT
        assert client.save(id, "units/0-9", None, base=1)[0] == 200  # a part that was read stays visible
        assert client.get(f"/api/tasks/{id}").json()["text"] == TEXT
        assert client.save(id, "marks/m", {"spans": [[10, 15]], "quotes": ["Three"], **words})[0] == 200
        assert client.save(id, "units/10-28", {})[0] == 200
        whole = client.get(f"/api/tasks/{id}").json()
        assert (whole["text"], whole["parts"][2]["title"]) == (long.text, "The end")


def test_sections_that_are_only_rated_come_all_at_once() -> None:
    text = task_view.build_task_text(make_document(segments=CUT), protocols.load("sections"))
    assert text.cut_at_first_unjudged(frozenset()).document.text == TEXT


def test_a_mark_is_as_wide_as_its_label_asks_for(tmp_path: Path) -> None:
    asked = protocols.load("snac")
    items: list[StudyItem] = [Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES), asked, make_document()]
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        client = Client(store).join_study()
        id = client.next_task()["id"]

        def saved(start: int, end: int, label: str) -> tuple[int, str]:
            body = {"spans": [[start, end]], "quotes": [TEXT[start:end]], "label": label}
            code, answer = client.save(id, f"marks/{start}-{end}-{label}", body)
            return code, answer.get("say", "")

        code, say = saved(0, 3, "scene")
        assert (code, "must cover whole sentences, found 'One'" in say) == (422, True)
        assert saved(0, 4, "scene")[0] == saved(0, 9, "scene")[0] == saved(5, 16, "scene")[0] == 200
        code, say = saved(6, 9, "char")
        assert (code, "must cover whole words, found 'wo.'" in say) == (422, True)
        assert saved(5, 8, "char")[0] == saved(5, 9, "char")[0] == saved(7, 7, "char")[0] == 200


def test_only_parts_that_the_protocol_names_are_marked(tmp_path: Path) -> None:
    """A stored protocol without `marks_on` allows marks on every part, as before."""
    said = {}
    for name in ("scarecrow", "scarecrow@1", "likert"):
        asked = protocols.load(name)
        (tmp_path / name).mkdir()
        items: list[StudyItem] = [Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES), asked, make_document()]
        with open_test_store(new_study_location("sqlite", tmp_path / name), items, FakeClock()) as store:
            client = Client(store).join_study()
            body = {"spans": [["prompt", 0, 5]], "quotes": ["Count"], "label": None}
            code, answer = client.save(client.next_task()["id"], "marks/m", body)
            said[name] = code, answer.get("say", "")
    assert said["scarecrow@1"] == (200, "")
    assert said["scarecrow"] == (422, "This mark was not accepted: the prompt cannot be marked.")
    assert said["likert"] == (422, "This mark was not accepted: this study has no marks.")


def test_a_suggestion_is_accepted_as_the_machine_made_it(tmp_path: Path) -> None:
    asked = protocols.load("scarecrow")
    mark = Mark(id="m", spans=(Span(1, 3),), quotes=("ne",), label="incoherent")
    items: list[StudyItem] = [
        Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES, offer=Offer(annotator="machine", blind=0)),
        *(asked, make_document(), Annotator(id="machine", kind="llm")),
        Annotation(id="g", document="d", annotator="machine", protocol=asked.id, marks=(mark,)),
    ]
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        client = Client(store).join_study()
        task = client.next_task()
        (offered,) = task["offered"]
        body = {"spans": [[1, 3]], "quotes": ["ne"], "label": "incoherent"}
        assert client.save(task["id"], "marks/own", body)[0] == 422
        assert client.save(task["id"], "marks/accepted", body | {"made_from": [offered["id"]]})[0] == 200


def test_ratings_need_their_answers_and_nothing_else(tmp_path: Path) -> None:
    asked = protocols.load("turing")
    items: list[StudyItem] = [Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES), asked, make_document()]
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        client = Client(store).join_study()
        task = client.next_task()
        assert client.finish(task["id"])[1]["missing"] == ["answers/text: rating"]
        assert client.save(task["id"], "answers", {"answers": {"rating": 9}})[1]["code"] == "refused"
        client.save(task["id"], "answers", {"answers": {"rating": 1}})
        assert client.finish(task["id"])[1]["missing"] == ["answers/text: why"]
        client.save(task["id"], "answers", {"answers": {"rating": 1, "why": "it reads so"}}, base=1)
        assert client.finish(task["id"])[0] == 200


def test_the_api_describes_itself() -> None:
    found = openapi.build_openapi_description()
    assert {"Task", "Me", "NextResponse", "SaveResponse", "ErrorResponse", "MarkChange", "MarkEntry"} <= set(
        found["components"]["schemas"]
    )
    assert not [name for name in found["components"]["schemas"] if "_" in name or "[" in name]
    assert "HTTPValidationError" not in str(found)
