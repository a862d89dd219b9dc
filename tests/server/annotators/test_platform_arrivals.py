"""Tests of arrivals from recruiting platforms and of the way back."""

from __future__ import annotations

from typing import Any

import fastapi.testclient
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.collection import access_storage, arrivals_storage, researcher_actions_storage
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.database.store import Store
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol, Work
from finecomb.core.records import ONBOARDING_PHASES, Recruitment, Settings
from finecomb.core.study import StudyItem
from finecomb.server.annotators import platform_arrivals
from finecomb.server.annotators.platform_arrivals import parse_referral_parameters
from finecomb.server.app import create_app
from finecomb.server.auth import CSRF_HEADER, Auth
from finecomb.server.headers import MTURK_ORIGINS
from tests.databases import Client, demo_items

PROLIFIC = Recruitment(platform="prolific", completed="DONE1", screened_out="SCREEN1", no_consent="NO1")
TURK = Recruitment(platform="mturk")
PID = {"PROLIFIC_PID": "5f1aaa", "STUDY_ID": "st1", "SESSION_ID": "se1"}
HIT = {
    "workerId": "A1WORKER",
    "assignmentId": "3ASSIGN",
    "hitId": "3HIT",
    "turkSubmitTo": "https://workersandbox.mturk.com",
}
ONE_TEXT = Work(texts=1, once=True)


@pytest.fixture
def items() -> list[StudyItem]:
    """A study in which each person gets one text and may take part once."""
    settings, protocol, *documents = demo_items()
    assert isinstance(settings, Settings)
    assert isinstance(protocol, Protocol)
    asked = protocol.model_copy(update={"work": ONE_TEXT, "consent": "You agree."})
    skipped = tuple(phase for phase in ONBOARDING_PHASES if phase != "consent")
    return [settings.model_copy(update={"skip": skipped, "annotators": 50}), asked, *documents]


def set_recruitment(store: Store, recruitment: Recruitment) -> None:
    settings = store.head.settings.model_copy(update={"recruitment": recruitment})
    store.run_study_change_sync(researcher_actions_storage.update_settings, "tests", settings)


def join_path(store: Store, more: str = "") -> str:
    return f"/api/join/{access_storage.get_open_link_token(store)}{more}"


def join(store: Store, asked: dict[str, str], client: Client | None = None) -> tuple[Client, str]:
    client = client or Client(store)
    answer = client.post(join_path(store), params=asked)
    assert answer.status_code == 200, answer.text
    client.headers[CSRF_HEADER] = answer.json()["csrf"]
    return client, answer.json()["annotator"]


def require_error(answer: Any, code: str = "not-allowed") -> str:
    assert answer.json()["code"] == code, answer.text
    return str(answer.json()["say"])


def read_arrivals(store: Store) -> list[Arrival]:
    with store.database.read_transaction() as transaction:
        return arrivals_storage.read_all_arrivals(store, transaction)


# --- sign-in -----------------------------------------------------------------------------------------------------


def test_a_platforms_ids_are_ignored_unless_the_study_recruits_there(store: Store) -> None:
    join(store, PID)
    set_recruitment(store, TURK)
    require_error(Client(store).post(join_path(store), params=PID))
    assert [each.source.worker for each in read_arrivals(store)] == [""]


def test_a_worker_comes_back_from_another_browser_only_when_a_researcher_lets_them(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    _, first = join(store, PID)
    assert "another browser" in require_error(Client(store).post(join_path(store), params=PID), "other-browser")
    released = Client(store).sign_in_researcher().delete("/api/admin/annotator/browser", params={"id": first})
    assert released.status_code == 200
    _, again = join(store, PID)
    assert "another browser" in require_error(Client(store).post(join_path(store), params=PID), "other-browser")
    _, other = join(store, PID | {"PROLIFIC_PID": "5f2bbb"})
    assert first == again != other
    assert {each.platform for each in store.read_annotators() if each.id in (first, other)} == {"prolific"}


def test_another_id_in_the_same_browser_is_somebody_else_and_leaves_a_trace(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    client, first = join(store, PID)
    _, second = join(store, PID | {"PROLIFIC_PID": "5f2bbb"}, client)
    assert first != second
    one, two = read_arrivals(store)
    assert one.source.device == two.source.device != ""


def test_the_code_of_the_first_browser_opens_the_second(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    first, who = join(store, PID)
    code = first.get("/api/me").json()["code"]
    assert len(code) == 8
    second = Client(store)
    answer = second.post(join_path(store), params=PID | {"code": "AAAAAAAA"})
    assert (answer.status_code, answer.json()["code"]) == (403, "other-browser")
    assert second.post(join_path(store), params=PID | {"code": f" {code.lower()} "}).json()["annotator"] == who
    assert second.get("/api/me").json()["code"] != code  # now bound to the second browser
    assert Client(store).post(join_path(store), params=PID | {"code": code}).status_code == 403
    guesses = [Client(store).post(join_path(store), params=PID | {"code": str(n)}).status_code for n in range(10)]
    assert guesses[0] == 403
    assert guesses[-1] == 429


def test_who_came_by_a_link_of_ours_has_no_code(store: Store) -> None:
    assert Client(store).join_study().get("/api/me").json()["code"] == ""


def test_coming_back_in_the_same_browser_is_no_new_arrival(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    client, first = join(store, PID)
    assert join(store, PID, client)[1] == first
    assert len(read_arrivals(store)) == 1
    assert join(store, PID | {"SESSION_ID": "se2"}, client)[1] == first
    assert [each.source.session for each in read_arrivals(store)] == ["se1", "se2"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"PROLIFIC_PID": ""},
        {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"},
        {"PROLIFIC_PID": "x" * 101},
        {"PROLIFIC_PID": "=cmd()"},
        {"prolific_pid": "5f1aaa"},
    ],
)
def test_an_edited_address_is_refused_in_words(store: Store, method: str, asked: dict[str, str]) -> None:
    set_recruitment(store, PROLIFIC)
    say = require_error(Client(store).request(method, join_path(store), params=asked))
    assert say == "This link does not identify you. Go back to Prolific and open the study from there."
    assert read_arrivals(store) == []


def test_a_personal_link_needs_no_id_of_a_platform(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    (made,) = store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 1, ())
    client = Client(store).join_study(made.token)
    assert client.get("/api/me").json()["annotator"] == made.annotator
    assert Client(store).get(f"/api/join/{made.token}").json()["personal"]


def test_a_preview_shows_and_does_not_start(store: Store) -> None:
    set_recruitment(store, TURK)
    looking = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "3HIT"}
    assert Client(store).get(join_path(store), params=looking).json()["preview"]
    assert "Accept the task" in require_error(Client(store).post(join_path(store), params=looking))
    assert not Client(store).get(join_path(store), params=HIT).json()["preview"]


def test_who_finished_cannot_take_part_again_where_everybody_may_once(store: Store) -> None:
    set_recruitment(store, TURK)
    client, first = join(store, HIT)
    assert join(store, HIT | {"assignmentId": "3SECOND"}, client)[1] == first  # returned the task and accepted it again
    client.submit_without_errors(client.next_task()["id"])
    assert join(store, HIT | {"assignmentId": "3SECOND"}, client)[1] == first  # to get the completion code
    say = require_error(client.post(join_path(store), params=HIT | {"assignmentId": "3THIRD"}))
    assert say.startswith("You have already taken part in this study")
    assert "Mechanical Turk" in say


def test_by_the_open_link_a_browser_takes_part_once(store: Store) -> None:
    client = Client(store).join_study()
    (first,) = read_arrivals(store)
    client.post("/api/leave")
    assert join(store, {}, client)[1] == first.annotator
    assert join(store, {})[1] != first.annotator


def test_starting_is_agreeing_and_is_kept_once(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    client, who = join(store, PID)
    join(store, PID | {"SESSION_ID": "se2"}, client)
    one = next(each for each in store.read_annotators() if each.id == who)
    assert one.meta["steps"] == [
        {"step": "consent", "protocol": "scarecrow@2", "done": "2023-11-14T22:13:20Z"},
    ]


def test_who_does_not_agree_takes_a_code_back_and_leaves_nothing(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    people_before = store.read_annotators()
    ending = Client(store).post(join_path(store, "/decline"), params=PID).json()
    assert ending == {
        "why": "no-consent",
        "code": "NO1",
        "back": "https://app.prolific.com/submissions/complete?cc=NO1",
        "form": {},
        "more": False,
    }
    assert (store.read_annotators(), read_arrivals(store)) == (people_before, [])
    require_error(Client(store).post("/api/join/wrong/decline"), "not-found")
    require_error(Client(store).post(join_path(store, "/decline"), headers={"sec-fetch-site": "cross-site"}))


# --- validation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "believed"),
    [
        ("https://www.mturk.com", True),
        ("https://workersandbox.mturk.com/", True),
        ("http://www.mturk.com", False),
        ("https://mturk.com.evil.example", False),
        ("https://evilmturk.com", False),
        ("https://www.mturk.com@evil.example", False),
        ("https://evil.example/?.mturk.com", False),
        ("https://evil.example#.mturk.com", False),
        ("https://www.mturk.com:8443", False),
        ("https://www.mturk.com/else", False),
        ("https://[", False),
        ("javascript:alert(1)//.mturk.com", False),
        ("https://" + "a" * 300 + ".mturk.com", False),
    ],
)
def test_work_is_handed_in_to_mechanical_turk_only(address: str, believed: bool) -> None:
    assert bool(parse_referral_parameters(TURK, HIT | {"turkSubmitTo": address}).submit) == believed


@given(
    st.dictionaries(st.sampled_from([*PID, *HIT]), st.text(max_size=130)), st.sampled_from(["", "prolific", "mturk"])
)
def test_what_a_link_says_is_an_id_or_nothing(asked: dict[str, str], platform: Any) -> None:
    found = parse_referral_parameters(Recruitment(platform=platform), asked)
    for id in (found.worker, found.place, found.session):
        assert id == "" or (id in asked.values() and len(id) <= 100 and id.isascii() and id[0].isalnum())
    assert platform or found == ArrivalSource()


@pytest.mark.parametrize(
    "wrong",
    [
        {"back": "javascript:alert(1)"},
        {"back": "prolific"},
        {"frame": ["https://*.mturk.com"]},
        {"frame": ["http://evil.example"]},
        {"frame": ["https://a.example/x"]},
        {"frame": ["'self'; script-src *"]},
        {"platform": "other"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, FinecombError)):
        Recruitment.model_validate(wrong)


# --- devices and addresses ---------------------------------------------------------------------------------------


def join_from_address(store: Store, host: str) -> str:
    browser = fastapi.testclient.TestClient(create_app(store), base_url="http://study.test", client=(host, 1))
    assert browser.post(join_path(store)).status_code == 200
    return read_arrivals(store)[-1].source.address


def test_addresses_are_hashed_with_the_studys_secret(store: Store) -> None:
    first = join_from_address(store, "203.0.113.7")
    assert len(first) == 32
    assert first == join_from_address(store, "203.0.113.7") != join_from_address(store, "203.0.113.8")
    assert join_from_address(store, "2001:db8::1") == join_from_address(store, "2001:db8::ffff:2")  # one network
    assert (
        join_from_address(store, "127.0.0.1") == join_from_address(store, "::1") == ""
    )  # the address of a proxy is not stored


# --- way back ----------------------------------------------------------------------------------------------------


def test_prolific_gets_its_codes(store: Store) -> None:
    set_recruitment(store, PROLIFIC)
    _, who = join(store, PID)
    door = Auth(store)
    done, out = (
        platform_arrivals.build_ending(door, who, "done"),
        platform_arrivals.build_ending(door, who, "screened-out"),
    )
    assert (done.code, out.code) == ("DONE1", "SCREEN1")
    assert done.back == "https://app.prolific.com/submissions/complete?cc=DONE1"


def test_the_code_comes_when_the_last_text_is_handed_in_and_not_when_it_is_opened(store: Store) -> None:
    two = store.head.protocol.model_copy(update={"version": "3", "work": Work(texts=2)})
    store.run_study_change_sync(researcher_actions_storage.add_and_activate_protocol, "tests", two)
    settings = store.head.settings.model_copy(update={"protocols": (two.id,)})
    store.run_study_change_sync(researcher_actions_storage.update_settings, "tests", settings)
    client = Client(store).join_study()

    def ending() -> Any:
        me = client.get("/api/me").json()
        assert (me["way"][-1]["state"] == "done") == (me["ending"] is not None)
        return me["ending"]

    client.submit_without_errors(client.next_task()["id"])
    last = client.next_task()["id"]
    assert ending() is None
    client.submit_without_errors(last)
    assert ending()["why"] == "done"
    assert client.finish(last, verb="reopen")[0] == 200
    assert ending() is None
    assert client.finish(last)[0] == 200
    assert ending()["code"]


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_who_finished_keeps_the_code_whatever_becomes_of_the_study_or_of_them(store: Store, state: Any) -> None:
    client = Client(store).join_study()
    client.submit_without_errors(client.next_task()["id"])
    before = client.get("/api/me").json()["ending"]
    other = Client(store).join_study()
    store.run_study_change_sync(researcher_actions_storage.set_study_status, "tests", state)
    for each in read_arrivals(store):
        store.run_study_change_sync(researcher_actions_storage.exclude_annotator, "tests", each.annotator, "copied")
    assert client.get("/api/me").json()["ending"] == before
    assert other.get("/api/me").json()["ending"] is None


def test_nobody_new_comes_into_a_closed_study_and_who_was_there_does(store: Store) -> None:
    set_recruitment(store, TURK)
    client, first = join(store, HIT)
    store.run_study_change_sync(researcher_actions_storage.set_study_status, "tests", "closed")
    assert Client(store).get(join_path(store), params=HIT).json()["state"] == "closed"
    require_error(Client(store).post(join_path(store), params=HIT | {"workerId": "A9OTHER"}), "closed")
    assert join(store, HIT, client)[1] == first
    assert {each.annotator for each in read_arrivals(store)} == {first}


def test_mechanical_turk_gets_a_form(store: Store) -> None:
    set_recruitment(store, TURK)
    _, who = join(store, HIT)
    done = platform_arrivals.build_ending(Auth(store), who, "done")
    assert done.back == "https://workersandbox.mturk.com/mturk/externalSubmit"
    assert done.form == {"assignmentId": "3ASSIGN", "code": done.code}
    assert platform_arrivals.build_declined_ending(Auth(store), parse_referral_parameters(TURK, HIT)).form == {}


def test_codes_of_ones_own_differ_by_person_and_by_ending(store: Store) -> None:
    set_recruitment(store, Recruitment(back="https://panel.example/end?c={code}&x=1"))
    (_, one), (_, two) = join(store, {}), join(store, {})
    door = Auth(store)
    ends = [platform_arrivals.build_ending(door, who, why) for who in (one, two) for why in ("done", "screened-out")]
    assert len({each.code for each in ends}) == 4
    assert ends[0].back == f"https://panel.example/end?c={ends[0].code}&x=1"


def test_a_code_is_quoted_in_an_address(store: Store) -> None:
    set_recruitment(store, Recruitment(completed="A&b=c d", back="https://panel.example/?c={code}"))
    _, who = join(store, {})
    assert platform_arrivals.build_ending(Auth(store), who, "done").back == "https://panel.example/?c=A%26b%3Dc%20d"


# --- frames ------------------------------------------------------------------------------------------------------


def embedding_headers(store: Store, page: str) -> tuple[str, str, str]:
    found = Client(store).get(page).headers
    policy = dict(each.strip().split(" ", 1) for each in found["content-security-policy"].split(";"))
    return policy["frame-ancestors"], policy["form-action"], found.get("x-frame-options", "")


STRICT = ("'none'", "'self'", "DENY")


def test_pages_are_in_nobodys_frame_unless_the_study_says_so(store: Store) -> None:
    join_page = f"/join/{access_storage.get_open_link_token(store)}"
    for page in ("/", join_page, "/admin", "/api/me", "/sign-in/x", "/static/x"):
        assert embedding_headers(store, page) == STRICT
    set_recruitment(store, PROLIFIC)
    assert embedding_headers(store, join_page) == STRICT
    set_recruitment(store, TURK)  # the page of the link may be framed, because it opens a tab
    assert embedding_headers(store, join_page) == (" ".join(MTURK_ORIGINS), "'self' https://*.mturk.com", "")
    assert embedding_headers(store, "/") == ("'none'", "'self' https://*.mturk.com", "DENY")
    assert Client(store).get(join_path(store), params=HIT).json()["window"]
    set_recruitment(store, TURK.model_copy(update={"frame": ("https://worker.mturk.com",)}))
    for page in ("/", join_page):
        assert embedding_headers(store, page) == ("https://worker.mturk.com", "'self' https://*.mturk.com", "")
    for page in ("/admin", "/api/me", "/sign-in/x", "/static/x"):
        assert embedding_headers(store, page) == STRICT
    assert not Client(store).get(join_path(store), params=HIT).json()["window"]


def test_cookies_are_partitioned_in_a_frame_and_strict_otherwise(store: Store) -> None:
    plain = Client(store).post(join_path(store)).headers.get_list("set-cookie")
    assert len(plain) == 2
    assert all("SameSite=Strict" in each and "HttpOnly" in each and "Partitioned" not in each for each in plain)
    set_recruitment(store, TURK.model_copy(update={"frame": ("https://worker.mturk.com",)}))
    framed = Client(store).post(join_path(store), params=HIT).headers.get_list("set-cookie")
    assert len(framed) == 2
    assert all(
        each.endswith("; HttpOnly; Max-Age=5184000; Path=/; SameSite=None; Secure; Partitioned") for each in framed[1:]
    )
    assert all("SameSite=None; Secure; Partitioned" in each for each in framed)
    token = store.run_job_sync(researcher_actions_storage.invite_researcher, "tests", "ann", "owner")
    signed = Client(store).post(f"/sign-in/{token}", follow_redirects=False).headers["set-cookie"]
    assert "SameSite=Strict" in signed
