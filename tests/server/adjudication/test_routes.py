"""Tests of adjudication over HTTP: disputes, decisions, concurrent researchers and the gold annotation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import finecomb as fc
from finecomb.collection.database.record_import import import_records
from finecomb.collection.database.store import Store
from finecomb.core.records import Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.statistics.gold.gold_merge import merge_into_gold as merge_gold
from finecomb.statistics.gold.scores import score_judges_against_gold
from tests.databases import Client, FakeClock

TEXT = "Dana Okafor led the Gulls on Saturday with 27 points, and Luis Prado added 18 off the bench."
PROTOCOL = fc.protocol("accuracy")
NAMES = ("zoe", "adam", "mia")


def make_mark(who: str, quote: str, label: str | None, correction: str = "", document: str = "r1", **more: Any) -> Mark:
    at = TEXT.index(quote)
    answers = {"correction": correction} if correction else {}
    id = f"{document}/{who}/{quote.replace(' ', '-')}"
    return Mark(id=id, spans=(Span(at, at + len(quote)),), quotes=(quote,), label=label, answers=answers, **more)


def make_annotation(who: str, *marks: Mark, document: str = "r1", **more: Any) -> Annotation:
    fields = {"id": f"{document}/{who}", "document": document, "annotator": who, "protocol": PROTOCOL.id, **more}
    return Annotation(marks=marks, **fields)


WORK = [
    make_annotation(
        "zoe",
        make_mark("zoe", "Saturday", "name", "Friday"),
        make_mark("zoe", "27", "number", "25"),
        make_mark("zoe", "Luis Prado", "name", "Per Lunde"),
    ),
    make_annotation(
        "adam",
        make_mark("adam", "Saturday", "name", "Friday"),
        make_mark("adam", "Luis Prado added", "context", "He is a Miller"),
    ),
    make_annotation(
        "mia",
        make_mark("mia", "Saturday", "name", "Sunday"),
        make_mark("mia", "Luis Prado added 18 off the bench", "word", "He started"),
        make_mark("mia", "led", "word"),
    ),
]


@pytest.fixture
def items() -> list[StudyItem]:
    return [
        Settings(title="Games", protocols=(PROTOCOL.id,), attention_checks=("check",)),
        PROTOCOL,
        *(Document(id=id, text=TEXT, meta={"model": "secret-system"}) for id in ("r1", "quiet", "unread", "check")),
        Document(id="agreed", text=TEXT),
        *(Annotator(id=name, kind="human") for name in NAMES),
        *WORK,
        *(make_annotation(name, document="quiet") for name in NAMES),
        *(make_annotation(name, document="check") for name in NAMES),
        *(make_annotation(n, make_mark(n, "27", "number", "25", "agreed"), document="agreed") for n in NAMES),
    ]


@pytest.fixture
def ann(store: Store) -> Client:
    return Client(store).sign_in_researcher("editor", "ann")


@pytest.fixture
def bea(store: Store) -> Client:
    return Client(store).sign_in_researcher("editor", "bea")


def get_page(client: Client, id: str = "r1", **more: str) -> Any:
    answer = client.get("/api/admin/adjudicate/document", params={"id": id, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def find_dispute(page: Any, quote: str) -> Any:
    """Return the dispute with a mark of that quote."""
    return next(each for each in page["places"] if any(quote in reading["quotes"] for reading in each["readings"]))


def send_decision(client: Client, page: Any, own: Any, what: str, base: int | None = None, **more: Any) -> Any:
    body = {"base": own["version"] if base is None else base, "what": what, **more}
    return client.put("/api/admin/adjudicate/place", params={"id": page["id"], "place": own["key"]}, json=body)


def decide(client: Client, page: Any, own: Any, what: str, **more: Any) -> Any:
    answer = send_decision(client, page, own, what, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def require_error(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["say"])


def mark_request(quote: str, label: str | None, **more: Any) -> dict[str, Any]:
    at = TEXT.index(quote)
    return {"spans": [[at, at + len(quote)]], "quotes": [quote], "label": label, **more}


def read_gold(store: Store, id: str = "r1") -> Annotation:
    (found,) = [each for each in store.read_study().annotations_on(id) if each.annotator == "gold"]
    return found


# --- reading ------------------------------------------------------------------------------------------------------


def test_places_hold_what_each_said_without_names(ann: Client) -> None:
    page = get_page(ann)
    assert [(each["votes"], each["agreed"], each["kept"]) for each in page["places"]] == [
        (1, False, False),  # led
        (3, True, True),  # Saturday
        (1, False, False),  # 27
        (3, False, True),  # Luis Prado
    ]
    prado = find_dispute(page, "Luis Prado")
    assert {reading["label"] for reading in prado["readings"]} == {"name", "context", "word"}
    assert [reading["annotator"] for reading in prado["readings"]] == [1, 2, 3]
    assert prado["merged"]["label"] is None  # no majority, as in `finecomb gold`
    assert prado["merged"]["quotes"] == ["Luis Prado added"]
    said = ann.get("/api/admin/adjudicate/document", params={"id": "r1"}).text
    assert not any(name in said for name in (*NAMES, "secret-system"))


def test_texts_with_most_to_decide_come_first(ann: Client) -> None:
    found = ann.get("/api/admin/adjudicate/documents").json()
    rows = [(row["id"], row["differ"], row["agreed"], row["state"]) for row in found["rows"]]
    assert rows == [("r1", 3, 1, "open"), ("agreed", 0, 1, "open"), ("quiet", 0, 0, "open")]
    assert (found["total"], found["done"]) == (3, 0)


def test_what_cannot_be_adjudicated_is_said(ann: Client) -> None:
    for id, status, words in (
        ("unread", 404, "submitted"),
        ("nowhere", 404, "does not exist"),
        ("check", 422, "check"),
    ):
        answer = ann.get("/api/admin/adjudicate/document", params={"id": id})
        assert words in require_error(answer, status)


def test_other_alignments_can_be_asked_for(ann: Client) -> None:
    assert len(get_page(ann, align="overlap-label")["places"]) == 6
    assert len(get_page(ann, align="gamma")["places"]) >= 4
    answer = ann.get("/api/admin/adjudicate/document", params={"id": "r1", "align": "item"})
    assert "no mark has an `item`" in require_error(answer, 422)


# --- decisions ----------------------------------------------------------------------------------------------------


def test_a_text_is_adjudicated_to_the_end(ann: Client, store: Store, clock: FakeClock) -> None:
    page = get_page(ann)
    page = decide(ann, page, find_dispute(page, "Saturday"), "merged")
    assert read_gold(store).status == "draft"
    prado = find_dispute(page, "Luis Prado")
    number = [reading["label"] for reading in prado["readings"]].index("context") + 1
    page = decide(ann, page, prado, "taken", reading=number)
    assert find_dispute(page, "Luis Prado")["decision"]["reading"] == number
    page = decide(ann, page, find_dispute(page, "led"), "not-an-error")
    clock.now += 60
    page = decide(ann, page, find_dispute(page, "27"), "changed", marks=[mark_request("with 27 points", "number")])
    assert page["state"] == "submitted"

    made = read_gold(store)
    assert (made.status, made.annotator, made.made_from) == ("submitted", "gold", ("r1/zoe", "r1/adam", "r1/mia"))
    assert {(mark.quotes[0], mark.label, mark.votes) for mark in made.marks} == {
        ("Saturday", "name", 3),
        ("with 27 points", "number", 1),
        ("Luis Prado added", "context", 3),
    }
    prado_gold = next(mark for mark in made.marks if mark.label == "context")
    assert prado_gold.made_from == ("r1/zoe/Luis-Prado", "r1/adam/Luis-Prado-added", WORK[2].marks[1].id)
    assert prado_gold.label_votes == {"name": 1, "context": 1, "word": 1}
    assert prado_gold.answers == {"correction": "He is a Miller"}
    kept: Any = made.meta["adjudication"]
    assert sorted(each["what"] for each in kept.values()) == ["changed", "merged", "not-an-error", "taken"]
    assert {each["by"] for each in kept.values()} == {"ann"}
    assert kept[find_dispute(page, "27")["key"]]["when"].startswith("2023-11-14T22:14")
    assert fc.check(store.read_study()) == []
    study = store.read_study()
    assert {annotator.id: annotator.kind for annotator in study.iter_annotators()}["gold"] == "gold"
    rows = score_judges_against_gold(study, match="optimal", draws=0).rows
    assert {row.columns["judge"] for row in rows} == set(NAMES)  # adjudicated gold is used like any other
    assert ann.get("/api/admin/adjudicate/documents").json()["done"] == 1
    assert "gold" not in merge_gold(study).view.study.annotations["annotator"].to_list()  # a merge does not read it
    log = [
        (line["did"], line["about"]["now"])
        for line in ann.get("/api/admin/audit").json()
        if line["did"] == "adjudicated"
    ]
    assert len(log) == 4


def test_one_place_can_become_two_marks(ann: Client, store: Store) -> None:
    page = get_page(ann)
    two = [mark_request("Luis Prado", "name", answers={"correction": "Per Lunde"}), mark_request("18", "number")]
    page = decide(ann, page, find_dispute(page, "Luis Prado"), "split", marks=two)
    made = read_gold(store)
    assert [mark.quotes[0] for mark in made.marks] == ["Luis Prado", "18"]
    assert len({mark.id for mark in made.marks}) == 2
    assert all(len(mark.made_from) == 3 for mark in made.marks)
    assert len(find_dispute(page, "Luis Prado")["gold"]) == 2
    again = decide(ann, page, find_dispute(page, "Luis Prado"), "taken", reading=1)
    assert len(read_gold(store).marks) == 1
    assert len(find_dispute(again, "Luis Prado")["gold"]) == 1


def test_one_that_nobody_marked_can_be_added_and_taken_back(ann: Client, store: Store) -> None:
    page = get_page(ann)
    new = {"key": "new-0f3c2a1b", "version": 0}
    page = decide(ann, page, new, "added", marks=[mark_request("the Gulls", "name")])
    assert [each["key"] for each in page["places"]].index("new-0f3c2a1b") == 1  # in text order
    assert (read_gold(store).marks[0].votes, read_gold(store).marks[0].made_from) == (0, ())
    own = page["places"][1]
    gone = ann.delete("/api/admin/adjudicate/place", params={"id": "r1", "place": own["key"], "base": own["version"]})
    assert gone.status_code == 200
    assert len(gone.json()["places"]) == 4
    assert read_gold(store).marks == ()
    assert require_error(
        send_decision(ann, page, find_dispute(page, "led"), "added", marks=[mark_request("led", "word")]), 422
    )


def test_leaving_for_discussion_keeps_gold_a_draft(ann: Client, store: Store) -> None:
    page = get_page(ann, "agreed")
    page = decide(ann, page, page["places"][0], "discuss")
    assert (read_gold(store, "agreed").status, page["state"]) == ("draft", "draft")
    row = next(row for row in ann.get("/api/admin/adjudicate/documents").json()["rows"] if row["id"] == "agreed")
    assert (row["decided"], row["discuss"], row["state"]) == (1, 1, "open")
    page = decide(ann, page, page["places"][0], "merged")
    assert read_gold(store, "agreed").status == "submitted"


def test_agreed_places_are_taken_in_one_go(ann: Client, store: Store) -> None:
    page = get_page(ann)
    keys = [each["key"] for each in page["places"] if each["agreed"]]
    for _ in range(2):  # repeating changes nothing
        answer = ann.put("/api/admin/adjudicate/agreed", params={"id": "r1"}, json={"places": keys})
        assert answer.status_code == 200, answer.text
    assert [mark.quotes for mark in read_gold(store).marks] == [("Saturday",)]
    assert read_gold(store).marks[0].answers == {"correction": "Friday / Sunday"}
    unlike = find_dispute(page, "Luis Prado")["key"]
    answer = ann.put("/api/admin/adjudicate/agreed", params={"id": "r1"}, json={"places": [unlike]})
    assert "no longer agree" in require_error(answer, 409)


def test_a_text_without_marks_has_gold_without_marks(ann: Client, store: Store) -> None:
    for _ in range(2):
        answer = ann.put("/api/admin/adjudicate/agreed", params={"id": "quiet"}, json={"places": []})
        assert answer.json()["state"] == "submitted"
    assert (read_gold(store, "quiet").status, read_gold(store, "quiet").marks) == ("submitted", ())
    answer = ann.put("/api/admin/adjudicate/agreed", params={"id": "agreed"}, json={"places": []})
    assert require_error(answer, 422)


def test_marks_are_checked_like_everybodys(ann: Client, store: Store) -> None:
    page = get_page(ann)
    own = find_dispute(page, "27")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"what": "changed", "marks": [{**mark_request("27", "number"), "quotes": ["28"]}]}, "differs from the text"),
        ({"what": "changed", "marks": [{**mark_request("27", "number"), "spans": [[0, 900]]}]}, "ends after the text"),
        ({"what": "changed", "marks": [mark_request("27", "nmber")]}, "did you mean 'number'"),
        (
            {"what": "changed", "marks": [mark_request("27", "number", answers={"colour": "red"})]},
            "its label has no question",
        ),
        ({"what": "changed", "marks": [{"spans": [], "quotes": [], "label": "number"}]}, "no spans"),
        (
            {"what": "changed", "marks": [mark_request("27", "number", alternatives=[[mark_request("led", "nmber")]])]},
            "of an alternative is not in protocol",
        ),
        ({"what": "changed", "marks": []}, "one mark"),
        ({"what": "split", "marks": [mark_request("27", "number")]}, "2 to 20 marks"),
        ({"what": "not-an-error", "marks": [mark_request("27", "number")]}, "no marks"),
        ({"what": "taken"}, "Select the mark to accept"),
        ({"what": "taken", "reading": 4}, "Mark 4 does not exist in this dispute."),
        ({"what": "perhaps"}, "what"),
    ]
    for body, words in wrong:
        assert words in require_error(send_decision(ann, page, own, **body), 422), body
    assert "No label has a majority" in require_error(
        send_decision(ann, page, find_dispute(page, "Luis Prado"), "merged"), 422
    )
    assert [each for each in store.read_study().annotations_on("r1") if each.annotator == "gold"] == []


# --- concurrent researchers and later marks ------------------------------------------------------------------------


def test_two_adjudicators_hear_of_each_other(ann: Client, bea: Client, store: Store) -> None:
    seen = get_page(ann)
    own = find_dispute(seen, "27")
    assert get_page(bea)["places"] == seen["places"]
    decide(bea, seen, own, "not-an-error")
    say = require_error(send_decision(ann, seen, own, "taken", reading=1), 409)
    assert "bea has decided this" in say
    assert decide(ann, seen, own, "not-an-error")["state"] == "draft"  # the same decision again is not a conflict
    fresh = get_page(ann)
    after = decide(ann, fresh, find_dispute(fresh, "27"), "taken", reading=1)
    assert find_dispute(after, "27")["decision"]["by"] == "ann"
    undone = {"id": "r1", "place": own["key"], "base": find_dispute(fresh, "27")["version"]}
    assert "ann has decided" in require_error(bea.delete("/api/admin/adjudicate/place", params=undone), 409)


def test_a_decision_on_one_taken_back_and_made_anew_is_a_conflict(ann: Client, bea: Client) -> None:
    page = get_page(ann)
    first = decide(ann, page, find_dispute(page, "27"), "not-an-error")
    own = find_dispute(first, "27")
    gone = bea.delete("/api/admin/adjudicate/place", params={"id": "r1", "place": own["key"], "base": own["version"]})
    decide(bea, page, find_dispute(gone.json(), "27"), "discuss")
    assert "bea" in require_error(send_decision(ann, page, own, "taken", reading=1), 409)


def test_saying_it_twice_is_saying_it_once(ann: Client, store: Store) -> None:
    page = get_page(ann)
    own = find_dispute(page, "27")
    one = decide(ann, page, own, "taken", reading=1)
    assert decide(ann, page, own, "taken", reading=1) == one  # a repeated request after a lost response
    assert len(read_gold(store).marks) == 1


def test_later_work_leaves_decisions_alone(ann: Client, store: Store) -> None:
    page = get_page(ann)
    for own in page["places"]:
        page = decide(
            ann,
            page,
            own,
            "not-an-error" if own["votes"] == 1 else "discuss" if own["merged"]["label"] is None else "merged",
        )
    page = decide(ann, page, find_dispute(page, "Luis Prado"), "taken", reading=2)
    assert read_gold(store).status == "submitted"
    before = read_gold(store)
    late = make_annotation(
        "noor",
        make_mark("noor", "27 points", "number", "25"),
        make_mark("noor", "Luis Prado", "name"),
        make_mark("noor", "18", "number"),
    )
    store.run_study_change_sync(
        lambda own, transaction: import_records(transaction, own.key, [Annotator(id="noor", kind="human"), late])
    )
    page = get_page(ann)
    open_ = [each for each in page["places"] if each["decision"] is None]
    assert [each["readings"][0]["quotes"] for each in open_] == [["18"]]
    assert find_dispute(page, "27")["later"] == 1
    assert find_dispute(page, "27")["decision"]["what"] == "not-an-error"
    assert read_gold(store) == before  # reading writes nothing
    row = ann.get("/api/admin/adjudicate/documents").json()["rows"][0]
    assert (row["id"], row["differ"], row["state"]) == ("r1", 1, "open")
    page = decide(ann, page, open_[0], "taken", reading=1)
    assert read_gold(store).status == "submitted"
    assert {mark.quotes for mark in before.marks} < {mark.quotes for mark in read_gold(store).marks}
    assert read_gold(store).made_from[-1] == "r1/noor"


def test_gold_keeps_another_reading_of_a_mistake(ann: Client, store: Store) -> None:
    page = get_page(ann)
    mark = mark_request("27", "number", alternatives=[[mark_request("led", "word"), mark_request("Saturday", "name")]])
    page = decide(ann, page, find_dispute(page, "27"), "changed", marks=[mark])
    assert find_dispute(page, "27")["gold"][0]["alternatives"] == mark["alternatives"]
    kept = next(mark for mark in read_gold(store).marks if mark.quotes == ("27",))
    ((*members,),) = kept.alternatives
    assert [(member.quotes, member.label) for member in members] == [(("led",), "word"), (("Saturday",), "name")]


def test_a_place_that_changed_meanwhile_is_said(ann: Client, store: Store) -> None:
    page = get_page(ann)
    late = make_annotation("noor", make_mark("noor", "27", "number"))
    store.run_study_change_sync(
        lambda own, transaction: import_records(transaction, own.key, [Annotator(id="noor", kind="human"), late])
    )
    assert "have changed since you opened the text" in require_error(
        send_decision(ann, page, find_dispute(page, "27"), "not-an-error"), 409
    )


def test_work_set_aside_leaves_the_decided_place(ann: Client, store: Store) -> None:
    page = get_page(ann)
    page = decide(ann, page, find_dispute(page, "led"), "taken", reading=1)
    aside = ann.put("/api/admin/annotation/excluded", params={"id": "r1/mia"}, json={"reason": "asleep"})
    assert aside.status_code == 200
    page = get_page(ann)
    own = next(each for each in page["places"] if each["decision"])
    assert (own["readings"], own["gold"][0]["quotes"]) == ([], ["led"])
    assert read_gold(store).marks[0].quotes == ("led",)


def test_gold_from_elsewhere_is_left_alone(ann: Client, store: Store) -> None:
    brought = make_annotation("gold", document="agreed", id="agreed/gold")
    store.run_study_change_sync(
        lambda own, transaction: import_records(transaction, own.key, [Annotator(id="gold", kind="gold"), brought])
    )
    answer = ann.get("/api/admin/adjudicate/document", params={"id": "agreed"})
    assert "already has gold" in require_error(answer, 422)
    rows = {row["id"]: row["state"] for row in ann.get("/api/admin/adjudicate/documents").json()["rows"]}
    assert rows["agreed"] == "elsewhere"
    page = get_page(ann)
    decide(ann, page, find_dispute(page, "27"), "not-an-error")  # other texts can be decided
    assert fc.check(store.read_study()) == []


def test_nobody_else_may_be_called_gold(ann: Client, store: Store) -> None:
    store.run_study_change_sync(
        lambda own, transaction: import_records(transaction, own.key, [Annotator(id="gold", kind="human")])
    )
    page = get_page(ann)
    assert "reserved for kind 'gold'" in require_error(
        send_decision(ann, page, find_dispute(page, "27"), "not-an-error"), 422
    )


def test_viewers_look_and_others_do_not(store: Store, client: Client) -> None:
    viewer = Client(store).sign_in_researcher("viewer", "vic")
    page = get_page(viewer)
    assert require_error(send_decision(viewer, page, find_dispute(page, "27"), "not-an-error"), 403)
    for path in ("documents", "document?id=r1", "rounds"):
        assert require_error(client.get(f"/api/admin/adjudicate/{path}"), 401)


def test_decisions_at_the_same_time_all_count(ann: Client, bea: Client, store: Store) -> None:
    page = get_page(ann)

    async def both() -> list[Any]:
        jobs = [
            asyncio.to_thread(send_decision, who, page, own, "not-an-error")
            for who, own in zip((ann, bea, ann, bea), page["places"], strict=True)
        ]
        return await asyncio.gather(*jobs)

    assert [answer.status_code for answer in asyncio.run(both())] == [200] * 4
    assert len(read_gold(store).meta["adjudication"]) == 4  # type: ignore[arg-type]
    assert read_gold(store).status == "submitted"


# --- the second pass ------------------------------------------------------------------------------------------------


def make_second_pass(who: str, *marks: Mark) -> Annotation:
    return make_annotation(who, *marks, id=f"r1/{who}/2", round=1)


def test_the_second_pass_is_seen_and_compared(ann: Client, store: Store) -> None:
    url = "/api/admin/adjudicate/rounds"
    found = ann.get(url).json()
    assert (found["round"], found["wanted"], found["begun"], found["rows"]) == (0, 12, 0, [])
    assert ann.patch("/api/admin/settings", json={"round": 1}).status_code == 200
    assert ann.get(url).json()["round"] == 1
    assert ann.patch("/api/admin/settings", json={"round": 0}).status_code == 200  # no second pass has started
    assert ann.patch("/api/admin/settings", json={"round": 1}).status_code == 200
    zoe = WORK[0].marks
    again = make_second_pass(
        "zoe",
        zoe[0].model_copy(update={"id": "z1", "made_from": (zoe[0].id,)}),
        make_mark(
            "zoe2", "Luis Prado added", "context", "He is a Miller", made_from=(zoe[2].id, "r1/adam/Luis-Prado-added")
        ),
        make_mark("zoe2", "led", "word", made_from=("r1/mia/led",)),
    )
    store.run_study_change_sync(lambda own, transaction: import_records(transaction, own.key, [again]))
    found = ann.get(url).json()
    assert (found["begun"], found["done"]) == (1, 1)
    own = found["rows"][0]
    assert (own["annotator"], own["kept"], own["changed"], own["withdrawn"], own["from_others"]) == ("zoe", 1, 1, 1, 1)
    assert set(found["agreement"]) == {"before", "after", "difference"}
    assert found["agreement"]["before"]["signature"].startswith("statistic:alpha|which:before")
    say = require_error(ann.patch("/api/admin/settings", json={"round": 0}), 422)
    assert "number of texts already reopened: 1" in say


def test_adjudication_follows_the_second_pass(ann: Client, store: Store) -> None:
    page = get_page(ann)
    page = decide(ann, page, find_dispute(page, "Luis Prado"), "discuss")
    assert ann.patch("/api/admin/settings", json={"round": 1}).status_code == 200
    zoe = WORK[0].marks[2]
    again = make_second_pass("zoe", make_mark("zoe2", "Luis Prado added", "context", made_from=(zoe.id,)))
    store.run_study_change_sync(lambda own, transaction: import_records(transaction, own.key, [again]))
    own = find_dispute(get_page(ann), "Luis Prado added")
    assert (own["decision"]["what"], own["later"]) == ("discuss", 0)  # the same dispute, after the discussion
    assert own["merged"]["label"] == "context"
