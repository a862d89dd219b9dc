"""Tests of the onboarding over HTTP: pages, exercises, the qualification and its result, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from finecomb import protocols
from finecomb.collection import researcher_actions_storage
from finecomb.collection.database import tables
from finecomb.collection.database.store import Store
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, Document, Settings
from finecomb.core.study import StudyItem
from finecomb.core.study_checks import check_study
from tests.databases import KINDS, Client, FakeClock, new_study_location, open_test_store
from tests.onboarding_client import (
    complete_onboarding,
    complete_page,
    find_exercise,
    knows_nothing,
    next_step,
    solve_exercise,
    submit_step,
    valid_survey_answers,
)

TEXTS = [
    Document(id=f"secret-{n}", text="One two. Three four. Five six.", meta={"model": "gpt-secret"}) for n in range(3)
]


def protocol_with_attempts(name: str = "accuracy", attempts: int = 2) -> Protocol:
    found = protocols.load(name)
    assert found.qualification is not None
    test = found.qualification.model_copy(update={"attempts": attempts})
    return Protocol.model_validate({**found.model_dump(), "qualification": test.model_dump()})


def make_study(protocol: Protocol, **settings: Any) -> list[StudyItem]:
    return [Settings(protocols=(protocol.id,), **settings), protocol, *TEXTS]


@pytest.fixture
def items() -> list[StudyItem]:
    return make_study(protocol_with_attempts())


def read_annotator(store: Store) -> Annotator:
    (found,) = store.read_annotators()
    return found


def get_valid_survey_answers(client: Client) -> dict[str, Any]:
    page = next_step(client)["page"]
    assert page["kind"] == "survey"
    return valid_survey_answers(page)


@pytest.mark.parametrize("name", protocols.names())
def test_every_protocol_can_be_gone_from_link_to_text(name: str, tmp_path: Path) -> None:
    asked = protocols.load(name)
    if asked.work.unit in ("annotation", "mark"):
        pytest.skip("judges other people's work: see test_judged_work")
    with open_test_store(new_study_location("sqlite", tmp_path), make_study(asked), FakeClock()) as store:
        client = Client(store).join_study()
        now, met = complete_onboarding(client, asked)
        assert now["task"]["phase"] == "work"
        assert now["task"]["practice"] is None
        kinds = [each.get("kind", "task") for each in met]
        assert ("survey" in kinds) == bool(asked.survey)
        assert kinds.count("task") == len(asked.practice_documents)
        assert [each["practice"]["number"] for each in met if "practice" in each][:1] in ([], [1])
        assert check_study(store.read_study()) == []
        legs = client.get("/api/me").json()["way"]
        assert [each["state"] for each in legs] == ["done"] * (len(legs) - 1) + ["now"]


def test_what_was_shown_and_answered_is_kept_with_times_and_version(client: Client, clock: FakeClock) -> None:
    client.join_study()
    said = get_valid_survey_answers(client)
    clock.now += 20
    assert submit_step(client, "survey", said, active=1e6)[0] == 200
    one = read_annotator(client.store)
    assert one.survey == said
    step = next(each for each in one.meta["steps"] if each["step"] == "survey")  # type: ignore[union-attr, index, call-overload]
    assert step == {
        "step": "survey",
        "protocol": "accuracy@2",
        "shown": "2023-11-14T22:13:20Z",
        "done": "2023-11-14T22:13:40Z",
        "seconds": 20,
    }


def test_a_survey_needs_its_answers_and_no_others(client: Client) -> None:
    client.join_study()
    said = get_valid_survey_answers(client)
    asked = [each.name for each in protocol_with_attempts().survey if each.required]
    code, answer = submit_step(client, "survey")
    assert (code, answer["code"], answer["missing"]) == (409, "incomplete", [f"steps/survey: {name}" for name in asked])
    assert submit_step(client, "survey", said | {"shoe_size": 40})[1]["code"] == "refused"
    assert "expected" in submit_step(client, "survey", said | {asked[0]: "perhaps"})[1]["say"]
    assert read_annotator(client.store).survey == {}
    assert submit_step(client, "survey", said)[0] == 200


def test_a_step_said_twice_counts_once_and_one_of_the_future_is_refused(client: Client) -> None:
    client.join_study()
    said = get_valid_survey_answers(client)
    assert submit_step(client, "instructions")[1]["code"] == "not-allowed"
    assert submit_step(client, "survey", said)[0] == 200
    assert submit_step(client, "survey", said | {"gender": "other"})[0] == 200
    assert read_annotator(client.store).survey == said
    assert submit_step(client, "training")[1]["code"] == "not-allowed"
    assert submit_step(client, "instructions")[1]["code"] == "not-allowed"  # it has not been shown yet
    for strange in ("result-1", "nowhere", "%00", "x" * 65):
        assert submit_step(client, strange)[0] in (403, 422)
    assert next_step(client)["page"]["step"] == "instructions"


def test_leaving_and_returning_on_another_device_goes_on_where_one_was(store: Store) -> None:
    asked = protocol_with_attempts()
    (link,) = store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 1)
    here, there = Client(store).join_study(link.token), Client(store).join_study(link.token)
    while not (now := next_step(here))["task"]:
        assert next_step(there)["page"] == now["page"]
        complete_page(here, now["page"])
    task = now["task"]
    here.save(task["id"], "answers", {"no_errors": True})
    again = next_step(there)["task"]
    assert (again["id"], again["answers"]["body"]["no_errors"]) == (task["id"], True)
    assert there.save(task["id"], "answers", {"no_errors": False})[1]["code"] == "conflict"
    assert here.finish(task["id"])[0] == there.finish(task["id"])[0] == 200
    assert next_step(there)["task"]["id"] != task["id"] if next_step(there)["task"] else next_step(there)["page"]
    now, _ = complete_onboarding(there, asked)
    assert next_step(here)["task"]["id"] == now["task"]["id"]


def test_an_exercise_waits_however_long(store: Store, clock: FakeClock) -> None:
    client = Client(store).join_study()
    while not (now := next_step(client))["task"]:
        complete_page(client, now["page"])
    clock.now += 30 * 24 * 3600
    assert now["task"]["lease"] is None
    assert client.save(now["task"]["id"], "answers", {"no_errors": True})[0] == 200
    assert client.get(f"/api/tasks/{now['task']['id']}").json()["lease"] is None
    other = Client(store).join_study()
    complete_onboarding(other, protocol_with_attempts())
    assert client.finish(now["task"]["id"])[0] == 200


# --- passing and failing -----------------------------------------------------------------------------------------


def test_failing_retrying_and_passing(client: Client) -> None:
    asked = protocol_with_attempts()
    client.join_study()
    now = None
    while not now or not now["page"] or now["page"]["kind"] != "result":
        now = next_step(client)
        if now["task"]:
            solve_exercise(client, asked, now["task"], knows_nothing)
        elif now["page"]["kind"] != "result":
            complete_page(client, now["page"])
    result = now["page"]["result"]
    assert (result["passed"], result["score"], result["attempt"], result["attempts"]) == (False, 0, 1, 2)
    assert (result["precision"], [part["points"] for part in result["parts"]]) == (None, [0])
    assert client.get("/api/me").json()["ending"] is None
    one = read_annotator(client.store)
    assert one.qualification is not None
    assert (one.qualification.passed, [each.score for each in one.qualification.attempts]) == (False, [0])
    complete_page(client, now["page"])
    now, met = complete_onboarding(client, asked)
    assert now["task"]["phase"] == "work"
    assert {each["phase"] for each in met} == {"qualification"}
    assert {each["round"] for each in met if "round" in each} == {1}
    result = met[-1]["result"]
    assert (result["passed"], result["score"], result["attempt"], result["precision"]) == (True, 100, 2, 1)
    one = read_annotator(client.store)
    assert one.qualification is not None
    assert [(each.round, each.score) for each in one.qualification.attempts] == [(0, 0), (1, 100)]
    assert (one.qualification.score, one.qualification.passed) == (100, True)
    rounds = [each.round for each in client.store.read_annotations(tables.annotation.c.phase == "qualification")]
    assert sorted(rounds) == [0, 1]
    assert check_study(client.store.read_study()) == []


def test_who_fails_for_good_is_told_so_and_gets_a_code_of_their_own(client: Client) -> None:
    now, met = complete_onboarding(client.join_study(), protocol_with_attempts(), knows_nothing)
    assert now == {"task": None, "page": None, "why": "screened-out"}
    assert [each["result"]["passed"] for each in met if each.get("result")] == [False, False]
    me = client.get("/api/me").json()
    assert (me["ending"]["why"], len(me["ending"]["code"])) == ("screened-out", 8)
    assert [(leg["phase"], leg["state"]) for leg in me["way"]][-2:] == [("qualification", "done"), ("work", "ahead")]
    assert submit_step(client, "result-2")[0] == 200
    assert submit_step(client, "part-3-1")[1]["code"] == "not-allowed"


def test_leaving_during_an_attempt_does_not_use_it_up(tmp_path: Path) -> None:
    asked = protocol_with_attempts("scarecrow", 1)
    with open_test_store(
        new_study_location("sqlite", tmp_path), make_study(asked, skip=("training",)), FakeClock()
    ) as store:
        (link,) = store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 1)
        client = Client(store).join_study(link.token)
        done = 0
        while done < 7:
            now = next_step(client)
            if now["page"]:
                complete_page(client, now["page"])
            else:
                solve_exercise(client, asked, now["task"])
                done += 1
        assert read_annotator(store).qualification is None
        now, met = complete_onboarding(Client(store).join_study(link.token), asked)
        assert now["task"]["phase"] == "work"
        result = met[-1]["result"]
        assert (result["score"], [part["points"] for part in result["parts"]]) == (100, [25, 15, 25, 15, 20])
        assert [(part["count"], part["of"]) for part in result["parts"]] == [
            (5, 25),
            (5, 15),
            (5, 25),
            (5, 15),
            (1, 20),
        ]
        assert len(result["items"]) == 21
        assert sum(each["chosen"] for each in result["items"]) == 10


def test_one_mark_short_costs_what_the_part_says(tmp_path: Path) -> None:
    asked = protocol_with_attempts("scarecrow", 1)
    with open_test_store(
        new_study_location("sqlite", tmp_path), make_study(asked, skip=("training",)), FakeClock()
    ) as store:
        client = Client(store).join_study()
        _, met = complete_onboarding(
            client, asked, lambda name, n: not (name.startswith("task") and n >= 4) and not name.endswith("-3")
        )
        result = met[-1]["result"]
        (one,) = [each for each in result["items"] if each["of"] == 20]
        assert one["points"] == 16
        found = client.get(f"/api/tasks/{one['task']}/feedback").json()
        assert (found["points"], found["of"], found["right"]) == (16, 20, False)
        assert [each["points"] for each in found["solutions"] if each["mark"]] == [4] * 4
        assert sum(each["points"] for each in found["solutions"] if each["mark"] is None) == 0
        assert found["extra"] == []
        spans = [each["spans"] for each in found["solutions"]]
        assert spans == sorted(spans)


# --- feedback ----------------------------------------------------------------------------------------------------


def advance_to_task(client: Client, asked: Protocol, phase: str) -> Any:
    """Advance to the first task of a phase and return it."""
    while True:
        now = next_step(client)
        if now["page"]:
            complete_page(client, now["page"])
        elif now["task"]["phase"] == phase:
            return now["task"]
        else:
            solve_exercise(client, asked, now["task"])


def get_feedback(client: Client, task: Any) -> Any:
    answer = client.get(f"/api/tasks/{task['id']}/feedback")
    return answer.status_code, answer.json()


def test_solutions_are_shown_after_training_each_and_after_the_whole_test(client: Client) -> None:
    asked = protocol_with_attempts()
    task = advance_to_task(client.join_study(), asked, "training")
    assert get_feedback(client, task)[1]["code"] == "not-allowed"
    solve_exercise(client, asked, task, lambda _, n: n == 0)
    code, found = get_feedback(client, task)
    exercise = find_exercise(client, asked, task)
    assert (code, found["points"], found["of"], found["right"]) == (200, 0, 0, False)
    assert [each["mark"] is None for each in found["solutions"]].count(False) == 1
    assert {each["why"] for each in found["solutions"]} == {each.why for each in exercise.solutions}  # type: ignore[union-attr]
    assert client.finish(task["id"], verb="reopen")[1]["say"] == "Submitted exercises cannot be changed."
    task = advance_to_task(client, asked, "qualification")
    assert get_feedback(client, task)[1]["code"] == "not-allowed"
    text = client.get(f"/api/tasks/{task['id']}").text
    assert not any(each.why and each.why in text for each in asked.qualification.parts[0].exercises[0].solutions)  # type: ignore[union-attr]
    solve_exercise(client, asked, task)
    code, found = get_feedback(client, task)
    assert (code, found["points"], found["right"], found["extra"]) == (200, 100, True, [])
    now, _ = complete_onboarding(client, asked)
    assert get_feedback(client, now["task"])[1]["code"] == "not-allowed"
    other = Client(client.store).join_study()
    assert get_feedback(other, task)[1]["code"] == "not-found"


def test_answers_can_be_verified_before_they_are_handed_in(tmp_path: Path) -> None:
    asked = protocols.load("sections")
    with open_test_store(new_study_location("sqlite", tmp_path), make_study(asked), FakeClock()) as store:
        client = Client(store).join_study()
        task = advance_to_task(client, asked, "training")
        assert task["practice"]["verify"] is True
        code, found = get_feedback(client, task)
        assert (code, found["right"], len(found["units"])) == (200, False, len(task["parts"]))
        solve_exercise(client, asked, task)
        assert get_feedback(client, task)[1]["right"] is True


def test_a_question_asks_only_itself(tmp_path: Path) -> None:
    asked = protocol_with_attempts("scarecrow", 1)
    with open_test_store(
        new_study_location("sqlite", tmp_path), make_study(asked, skip=("training",)), FakeClock()
    ) as store:
        client = Client(store).join_study()
        while not (task := advance_to_task(client, asked, "qualification"))["practice"]["question"]:
            solve_exercise(client, asked, task)
        (start, end), text = task["practice"]["spans"][0], task["text"]
        assert text[start:end] == find_exercise(client, asked, task).quote  # type: ignore[union-attr]
        assert (task["practice"]["number"], task["practice"]["of"], task["practice"]["points"]) == (1, 5, 3)
        body = {"spans": [[0, 1]], "quotes": [text[:1]], "label": "redundant"}
        assert client.save(task["id"], "marks/m", body)[1]["code"] == "refused"
        assert client.save(task["id"], "answers", {"answers": {"answer": "nonsense"}})[1]["code"] == "refused"
        assert client.finish(task["id"])[1]["missing"] == ["answers/text: answer"]


# --- changes by researchers --------------------------------------------------------------------------------------


def test_who_is_excluded_in_mid_way_gets_nothing_more(client: Client) -> None:
    asked = protocol_with_attempts()
    task = advance_to_task(client.join_study(), asked, "training")
    client.store.run_study_change_sync(
        researcher_actions_storage.exclude_annotator, "ann", read_annotator(client.store).id, "scripted"
    )
    assert next_step(client) == {"task": None, "page": None, "why": "ended"}
    assert client.save(task["id"], "answers", {"no_errors": True})[1]["code"] == "not-allowed"
    assert submit_step(client, "survey")[1]["code"] == "not-allowed"
    client.store.run_study_change_sync(
        researcher_actions_storage.restore_annotator, "ann", read_annotator(client.store).id
    )
    assert next_step(client)["task"]["id"] == task["id"]


def test_who_took_part_gets_a_code_when_the_study_closes(client: Client) -> None:
    client.join_study()
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", "closed")
    assert client.get("/api/me").json()["ending"] is None  # nothing was done
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", "open")
    advance_to_task(client, protocol_with_attempts(), "qualification")
    assert client.get("/api/me").json()["ending"] is None
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", "closed")
    assert client.get("/api/me").json()["ending"]["code"]


def test_who_passed_while_others_took_the_last_text_gets_a_code(tmp_path: Path) -> None:
    asked = protocol_with_attempts()
    items: list[StudyItem] = [Settings(protocols=(asked.id,), annotators=1), asked, TEXTS[0]]
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        first, second = Client(store).join_study(), Client(store).join_study()
        task = complete_onboarding(first, asked)[0]["task"]
        assert complete_onboarding(second, asked)[0]["why"] == "none-now"
        assert second.get("/api/me").json()["ending"] is None  # a text may still become available
        first.submit_without_errors(task["id"])
        assert second.get("/api/me").json()["ending"]["code"]


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_a_study_that_stands_still_does_so_on_the_whole_way(client: Client, state: Any) -> None:
    client.join_study()
    said = get_valid_survey_answers(client)
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", state)
    assert next_step(client)["why"] == state
    assert submit_step(client, "survey", said)[1]["code"] == state
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", "open")
    assert submit_step(client, "survey", said)[0] == 200


def test_a_new_version_in_mid_way_starts_the_way_anew_and_keeps_what_was_done(client: Client) -> None:
    asked = protocol_with_attempts()
    task = advance_to_task(client.join_study(), asked, "qualification")
    later = Protocol.model_validate({**asked.model_dump(), "version": "3"})
    client.store.run_study_change_sync(researcher_actions_storage.add_and_activate_protocol, "ann", later)
    page = next_step(client)["page"]
    assert (page["step"], page["answers"]) == ("survey", dict(read_annotator(client.store).survey))
    assert submit_step(client, "part-1-1")[1]["code"] == "not-allowed"  # a step of the old protocol
    solve_exercise(client, asked, task)
    assert read_annotator(client.store).qualification is None  # the old qualification no longer decides anything
    now, _ = complete_onboarding(client, later)
    assert now["task"]["phase"] == "work"
    steps = [(each["step"], each["protocol"]) for each in read_annotator(client.store).meta["steps"]]  # type: ignore[union-attr, index, call-overload]
    assert ("instructions", "accuracy@2") in steps
    assert ("instructions", "accuracy@3") in steps
    assert check_study(client.store.read_study()) == []


def test_imported_practice_counts_and_can_be_gone_on_with(store: Store, tmp_path: Path) -> None:
    asked = protocol_with_attempts()
    client = Client(store).join_study()
    task = advance_to_task(client, asked, "qualification")
    words = {"spans": [[0, 3]], "quotes": [task["text"][:3]], "label": None}
    client.save(task["id"], "marks/half-done", words)
    for kind in KINDS:
        folder = tmp_path / kind
        folder.mkdir()
        with open_test_store(new_study_location(kind, folder), list(store.iter_records()), FakeClock()) as copy:
            (link,) = copy.run_job_sync(
                researcher_actions_storage.create_personal_links, "tests", 0, [read_annotator(copy).id]
            )
            again = Client(copy).join_study(link.token)
            now = next_step(again)["task"]
            assert (now["id"], [each["id"] for each in now["marks"]]) == (task["id"], ["half-done"])
            assert again.save(task["id"], "marks/half-done", None, base=1)[0] == 200
            found, _ = complete_onboarding(again, asked)
            assert found["task"]["phase"] == "work"


def test_nothing_on_the_way_tells_where_texts_come_from(client: Client) -> None:
    now, met = complete_onboarding(client.join_study(), protocol_with_attempts())
    said = str([now, met, client.get("/api/me").json()])
    assert "secret" not in said


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_test_store(
        new_study_location("sqlite", tmp_path_factory.mktemp("arms")), make_study(protocols.load("turing")), FakeClock()
    ) as it:
        yield it


def test_each_arm_of_an_experiment_has_its_own_practice(arms: Store) -> None:
    asked = protocols.load("turing")
    seen = {}
    for _ in range(4):
        client = Client(arms).join_study()
        me = client.get("/api/me").json()["annotator"]
        condition = next(each.condition for each in arms.read_annotators() if each.id == me)
        _, met = complete_onboarding(client, asked)
        seen[condition] = next(each for each in met if each["kind"] == "examples")
    assert set(seen) == {each.name for each in asked.conditions}
    for arm in asked.conditions:
        page = seen[arm.name]
        assert (page["phase"], page["say"]) == ("training", arm.instructions)
        assert len(page["examples"]) == (1 if arm.examples else 2 if arm.pairs else 0)
        assert page["of"] == (3 if arm.examples or arm.pairs else 0)
        assert arm.title not in str(page)
