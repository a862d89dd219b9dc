"""Tests of judging other people's work: assignment, display and storage."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from finecomb import protocols
from finecomb.collection import researcher_actions_storage
from finecomb.collection.database import tables
from finecomb.collection.database.store import Store
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Document, Exclusion, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.core.study_checks import check_study
from tests.databases import Client

TEXT = "The secret sky was green. It was not."
EXCLUDED = Exclusion(by="ann", reason="test")


def make_mark(id: str, start: int, label: str = "commonsense") -> Mark:
    quote = TEXT[start : start + 3]
    answers = {"severity": 2, "explanation": "so"}
    return Mark(id=id, spans=(Span(start, start + 3),), quotes=(quote,), label=label, answers=answers)


def make_annotation(id: str, annotator: str, **more: Any) -> Annotation:
    return Annotation(**({"id": id, "document": "d1", "annotator": annotator, "protocol": "scarecrow@2"} | more))


def make_audit_study() -> list[StudyItem]:
    """Make a study whose marks are audited, with marks that count and marks that do not."""
    scarecrow, audit = protocols.load("scarecrow"), protocols.load("audit")
    lost = Mark(id="lost", spans=(), quotes=("gone",), label=None, unlocated="not found")
    return [
        Settings(protocols=(audit.id, scarecrow.id), skip=ONBOARDING_PHASES, annotators=2),
        scarecrow,
        audit,
        Document(id="d1", text=TEXT, meta={"model": "gpt-secret"}),
        Document(id="d2", text=TEXT, meta={"model": "other"}),
        *(Annotator(id=id, kind="human") for id in ("worker-one", "worker-two")),
        Annotator(id="machine", kind="llm"),
        Annotator(id="rules", kind="detector"),
        Annotator(id="bad", kind="human", excluded=EXCLUDED),
        make_annotation("a1", "worker-one", marks=(make_mark("m1", 0), make_mark("m2", 4, "redundant"), lost)),
        make_annotation("a2", "worker-two", marks=(make_mark("m3", 0),), document="d2"),
        make_annotation("a3", "machine", marks=(make_mark("m4", 8),)),
        make_annotation("a4", "rules", marks=(make_mark("m5", 8),)),
        make_annotation("a5", "bad", marks=(make_mark("m6", 8),)),
        make_annotation("a6", "worker-one", marks=(make_mark("m7", 8),), document="d2", status="draft"),
        make_annotation("a7", "worker-two", marks=(make_mark("m8", 8),), excluded=EXCLUDED),
    ]


@pytest.fixture
def items() -> list[StudyItem]:
    return make_audit_study()


def judge_all(client: Client, answer: dict[str, Any]) -> list[Any]:
    """Judge all available work, and return the tasks."""
    met = []
    while (now := client.post("/api/next").json())["task"]:
        met.append(now["task"])
        assert client.save(now["task"]["id"], "answers", {"answers": answer})[0] == 200
        assert client.finish(now["task"]["id"])[0] == 200
    assert now["why"] == "all-done"
    return met


def test_every_mark_is_judged_twice_and_never_by_who_made_it(store: Store) -> None:
    links = {
        each.annotator: each.token
        for each in store.run_job_sync(researcher_actions_storage.create_personal_links, "ann", 2, ["worker-one"])
    }
    for name, token in links.items():
        client = Client(store).join_study(token)
        of = client.get("/api/me").json()["of"]
        met = judge_all(client, {"verdict": "legitimate"})
        assert len(met) == of <= (2 if name == "worker-one" else 4)
        assert [task["number"] for task in met] == list(range(1, of + 1))
    done = store.read_annotations(tables.annotation.c.protocol == "audit@1")
    assert Counter(each.about for each in done) == {"m1": 2, "m2": 2, "m3": 2, "m4": 2}
    assert {each.about for each in done if each.annotator == "worker-one"} <= {"m3", "m4"}
    assert {each.document for each in done if each.about == "m3"} == {"d2"}
    assert [each for each in check_study(store.read_study()) if each.level == "error"] == []
    assert Client(store).join_study().post("/api/next").json()["why"] == "none-now"


def test_a_mark_is_shown_with_what_was_said_and_not_who_said_it(client: Client) -> None:
    met = judge_all(client.join_study(), {"verdict": "artefact"})
    assert len(met) == 4
    for task in met:
        about = task["about"]
        (shown,) = about["marks"]
        (start, end), *_ = shown["spans"]
        assert shown["quotes"] == [TEXT[start:end]]
        assert shown["label"] in {each["name"] for each in about["labels"]}
        assert shown["label"] in {each["label"] for each in about["looks"]}
        assert len(about["said"]) == 2
        assert task["marks"] == []
        said = str(task).replace("'", '"')
        assert not any(f'"{secret}' in said for secret in ("worker", "machine", "gpt", 'm1"', 'a1"', 'd1"'))


def test_what_is_judged_first_is_balanced_over_labels_and_systems(client: Client) -> None:
    met = judge_all(client.join_study(), {"verdict": "legitimate"})
    done = client.store.read_annotations(tables.annotation.c.protocol == "audit@1")
    cell = {"m1": "commonsense/gpt", "m2": "redundant/gpt", "m3": "commonsense/other", "m4": "commonsense/gpt"}
    order = [cell[each.about or ""] for each in sorted(done, key=lambda each: int(str(each.meta["order"])))]
    assert len(met) == 4
    assert len(set(order[:3])) == 3


def test_work_handed_in_later_is_judged_too_and_excluded_work_no_more(store: Store) -> None:
    client = Client(store).join_study()
    store.run_study_change_sync(researcher_actions_storage.exclude_annotator, "ann", "worker-one", "test")
    assert client.get("/api/me").json()["of"] == 2
    store.run_study_change_sync(researcher_actions_storage.restore_annotation, "ann", "a7")
    assert client.get("/api/me").json()["of"] == 3


def test_a_sample_of_documents_can_be_named(store: Store) -> None:
    settings = store.head.settings.model_copy(update={"meta": {"documents": ["d2"]}})
    store.run_study_change_sync(researcher_actions_storage.update_settings, "ann", settings)
    assert len(judge_all(Client(store).join_study(), {"verdict": "legitimate"})) == 1


class TestExplanations:
    @pytest.fixture
    def items(self) -> list[StudyItem]:
        turing, comments = protocols.load("turing"), protocols.load("comments")
        said: list[dict[str, Any]] = [
            {"rating": 1, "why": "It is about a hat."},
            {"rating": 3, "change": "Fewer hats."},
            {"rating": 2, "change": "  "},
            {"rating": 4},
        ]
        return [
            Settings(protocols=(comments.id, turing.id), skip=ONBOARDING_PHASES),
            turing,
            comments,
            Document(id="d1", text=TEXT),
            *(Annotator(id=f"worker-{n}", kind="human") for n in range(4)),
            *(
                make_annotation(f"a{n}", f"worker-{n}", answers=each, protocol="turing@2")
                for n, each in enumerate(said)
            ),
        ]

    def test_only_what_was_explained_is_coded_by_two(self, store: Store) -> None:
        for _ in range(3):
            client = Client(store).join_study()
            client.post("/api/next")
        met = judge_all(client.join_study(), {"codes": ["genre", "grammar"]})
        assert len(met) <= 2
        client = Client(store).join_study()
        done = [each.about for each in store.read_annotations(tables.annotation.c.protocol == "comments@1")]
        assert set(done) == {"a0", "a1"}
        assert max(Counter(done).values()) <= 2

    def test_the_rating_is_said_in_words_beside_the_explanation(self, client: Client) -> None:
        met = judge_all(client.join_study(), {"codes": ["genre"]})
        said = {task["about"]["said"][0]["answer"]: task["about"]["said"][1]["answer"] for task in met}
        assert said == {"Definitely human": "It is about a hat.", "Possibly machine": "Fewer hats."}
        assert all(task["text"] == TEXT and task["about"]["marks"] == [] for task in met)
