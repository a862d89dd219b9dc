"""Security tests: unblinding, forged requests, scripts, foreign files and unlimited attempts."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from finecomb import protocols
from finecomb.collection import access_storage, researcher_actions_storage
from finecomb.collection.database import tables
from finecomb.collection.database.connection import DatabaseError
from finecomb.collection.database.store import Store
from finecomb.core.errors import ParameterError
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Document, Mark, Offer, Recruitment, Settings
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.server import auth
from finecomb.server.app import create_app
from finecomb.server.auth import CSRF_HEADER, Auth
from finecomb.server.connections import build_uvicorn_config, parse_trusted_proxies
from tests.databases import Client, FakeClock, new_study_location, open_test_store

SENTINEL = "gpt-sentinel"
TEXT = "The ferry was built by seven men in a week. It has nine crew."


def make_identifying_study() -> list[StudyItem]:
    """Make a study in which every ID, meta and reference names the model."""
    asked = protocols.load("scarecrow")
    documents = [
        Document(
            id=f"{SENTINEL}-{number}",
            text=TEXT + str(number),
            context={"prompt": "Write about a ferry."},
            references=(SENTINEL,),
            data={"model": SENTINEL},
            meta={"model": SENTINEL, SENTINEL: 1},
        )
        for number in range(6)
    ]
    machine = Annotator(id=f"{SENTINEL}-detector", kind="detector", meta={"model": SENTINEL})
    offered = [
        Annotation(
            id=f"{SENTINEL}-annotation-{number}",
            document=document.id,
            annotator=machine.id,
            protocol=asked.id,
            marks=(Mark(id=f"{SENTINEL}-{number}-m", spans=(Span(4, 9),), quotes=("ferry",), label="incoherent"),),
            meta={"model": SENTINEL},
        )
        for number, document in enumerate(documents)
    ]
    offer = Offer(annotator=machine.id, blind=0.5)
    settings = Settings(
        protocols=(asked.id,), strata=("model",), offer=offer, skip=ONBOARDING_PHASES, meta={"model": SENTINEL}
    )
    return [settings, asked, *documents, machine, *offered]


class TestBlinding:
    @pytest.fixture
    def items(self) -> list[StudyItem]:
        return make_identifying_study()

    def test_no_answer_to_an_annotator_names_the_model(self, client: Client) -> None:
        token = access_storage.get_open_link_token(client.store)
        seen = [client.get(f"/api/join/{token}").text]
        client.join_study(token)
        for _ in range(6):
            seen += [(answer := client.post("/api/next")).text, client.get("/api/me").text]
            task = answer.json()["task"]
            body = {"spans": [[4, 9]], "quotes": ["ferry"], "label": "incoherent"}
            for offered in task["offered"]:
                seen.append(
                    client.put(
                        f"/api/tasks/{task['id']}/decisions/{offered['id']}", json=_change(decision="accepted")
                    ).text
                )
                body["made_from"] = [offered["id"]]
            for change in (
                body,
                body,
                body | {"spans": [["meta", 0, 1]]},
                body | {"quotes": ["wrong"]},
                body | {"label": "x"},
            ):
                seen.append(client.put(f"/api/tasks/{task['id']}/marks/m{task['id']}", json=_change(**change)).text)
            seen.append(client.get(f"/api/tasks/{task['id']}").text)
            seen.append(client.put(f"/api/tasks/{task['id']}/finish", json={"change": "f"}).text)
            client.save(task["id"], f"marks/m{task['id']}", None, base=1)
            client.submit_without_errors(task["id"])
        assert len(seen) > 50
        assert [text for text in seen if SENTINEL in text] == []

    def test_what_was_offered_and_decided_is_kept_and_the_blind_share_is_blind(self, client: Client) -> None:
        client.join_study()
        blind = 0
        for _ in range(6):
            task = client.next_task()
            for offered in task["offered"]:
                body = {"spans": offered["spans"], "quotes": offered["quotes"], "label": "incoherent"}
                more = {"made_from": [offered["id"]], "answers": {"severity": 1, "explanation": "so"}}
                assert client.save(task["id"], f"marks/{task['id']}", body | more)[0] == 200
                decided = {"decision": "accepted", "mark": task["id"]}
                assert client.save(task["id"], f"decisions/{offered['id']}", decided)[0] == 200
            again = client.next_task()
            assert [mark["body"]["made_from"] for mark in again["marks"]] == [[each["id"]] for each in task["offered"]]
            assert [each["id"] for each in again["decisions"]] == [each["id"] for each in task["offered"]]
            (found,) = client.store.read_annotations(tables.annotation.c.id == task["id"])
            if found.meta.get("blind"):
                blind += 1
                assert task["offered"] == []
                client.submit_without_errors(task["id"])
            else:
                (machine_mark,) = found.marks[0].made_from
                assert machine_mark.startswith(SENTINEL)
                assert found.meta["offered"] == [machine_mark]
                assert found.meta["decisions"] == {machine_mark: {"decision": "accepted", "mark": task["id"]}}
                assert client.finish(task["id"])[0] == 200
        assert 0 < blind < 6


def _change(**body: Any) -> Any:
    return {"change": "c" + str(hash(str(body))), "base": 0, "body": body}


# --- injection ---------------------------------------------------------------------------------------------------

HOSTILE_TEXTS = [
    "<script>alert(1)</script>",
    "'; DROP TABLE entry; --",
    "{{7*7}}${7*7}%(x)s%s",
    "../../etc/passwd",
    "\u202e\u2028\ufeff😀e\u0301",
    '"><img src=x onerror=alert(1)>',
]


@pytest.mark.parametrize("nasty", HOSTILE_TEXTS)
def test_strange_strings_are_kept_as_they_are_and_do_nothing(client: Client, nasty: str) -> None:
    task = client.join_study().next_task()
    answers = {"severity": 1, "explanation": nasty}
    body = {"spans": [[0, 3]], "quotes": [task["text"][:3]], "label": "incoherent", "answers": answers}
    answer = client.put(f"/api/tasks/{task['id']}/marks/{task['id']}", json={"change": nasty, "body": body})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    cannot = {"change": nasty + "2", "body": {"answers": {"cannot_judge": nasty}}}
    assert client.put(f"/api/tasks/{task['id']}/answers", json=cannot).status_code == 200
    unasked = {"change": nasty + "3", "base": 1, "body": {"answers": {nasty: nasty}}}
    refusal = client.put(f"/api/tasks/{task['id']}/answers", json=unasked)
    assert (refusal.status_code, refusal.json()["code"]) == (422, "refused")
    (found,) = client.store.read_annotations(tables.annotation.c.id == task["id"])
    assert found.marks[0].answers["explanation"] == nasty
    assert found.answers == {"cannot_judge": nasty}


@pytest.mark.parametrize("nasty", HOSTILE_TEXTS)
def test_strange_strings_in_addresses_find_nothing(client: Client, nasty: str) -> None:
    client.join_study()
    for path in ("/api/tasks/{}", "/api/join/{}", "/static/{}", "/sign-in/{}", "/{}"):
        answer = client.get(path.replace("{}", nasty.replace("?", "%3F").replace("#", "%23")))
        assert answer.status_code in (404, 422), path
        assert nasty not in answer.text


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/%2e%2e/store/store.py", "/static//etc/passwd"]
)
def test_no_file_outside_the_front_end_is_served(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


# --- headers, tokens, sizes --------------------------------------------------------------------------------------


def test_every_answer_keeps_the_browser_strict(client: Client) -> None:
    for path in ("/", "/admin", "/api/me", "/nothing", "/static/nothing.js", "/api/openapi.json", "/sign-in/x"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self'"), path
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert client.get("/api/me").headers["cache-control"] == "no-store"


def test_cookies_are_out_of_reach(store: Store) -> None:
    answer = Client(store).post(f"/api/join/{access_storage.get_open_link_token(store)}")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie
    secure = Client(store)
    secure.app.state.auth.origin = "https://study.test"  # type: ignore[attr-defined]
    answer = secure.post(f"/api/join/{access_storage.get_open_link_token(store)}")
    assert "; secure" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "headers",
    [
        {CSRF_HEADER: ""},
        {CSRF_HEADER: "0" * 32},
        {"origin": "https://evil.test"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_forged_request_changes_nothing(client: Client, headers: dict[str, str]) -> None:
    client.join_study()
    answer = client.post("/api/next", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "not-allowed")
    assert client.get("/api/me").json()["tasks"] == []


def test_somebody_elses_token_does_not_fit(store: Store) -> None:
    one, other = Client(store).join_study(), Client(store).join_study()
    assert one.post("/api/next", headers={CSRF_HEADER: other.headers[CSRF_HEADER]}).status_code == 403


@pytest.mark.parametrize(
    "damage", [lambda value: value[:-1] + "x", lambda value: "x" + value, lambda _: "", lambda _: "."]
)
def test_a_cookie_that_was_tampered_with_is_nobodys(client: Client, damage: Any) -> None:
    client.join_study()
    name = Auth(client.store).cookie_name("annotator")
    value = client.cookies[name]
    client.cookies.clear()
    client.cookies.set(name, damage(value))
    answer = client.get("/api/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "signed-out")


def test_a_session_expires_and_a_revoked_link_signs_out(client: Client, clock: FakeClock) -> None:
    (made,) = client.store.run_job_sync(researcher_actions_storage.create_personal_links, "ann", 1)
    client.join_study(made.token)
    clock.now += access_storage.SESSION_LIFETIME_SECONDS_BY_KIND["annotator"] + 1
    assert client.get("/api/me").json()["code"] == "signed-out"
    client.join_study(made.token)
    assert client.get("/api/me").json()["annotator"] == made.annotator
    client.store.run_study_change_sync(researcher_actions_storage.revoke_annotator_links, "ann", made.annotator)
    assert client.get("/api/me").json()["code"] == "signed-out"
    assert client.post(f"/api/join/{made.token}").json()["code"] == "not-found"


def test_a_new_open_link_closes_the_old_one_for_good(client: Client) -> None:
    old = access_storage.get_open_link_token(client.store)
    client.store.run_study_change_sync(researcher_actions_storage.replace_or_remove_open_link, "ann", False)
    assert client.post(f"/api/join/{old}").status_code == 404
    client.store.run_study_change_sync(researcher_actions_storage.replace_or_remove_open_link, "ann", True)
    assert client.post(f"/api/join/{old}").status_code == 404
    assert access_storage.get_open_link_token(client.store) != old
    client.join_study()


def test_tries_are_limited(client: Client, clock: FakeClock) -> None:
    for _ in range(10):
        assert client.post("/api/join/guess").status_code == 404
    answer = client.post("/api/join/guess")
    assert (answer.status_code, answer.json()["code"]) == (429, "too-many")
    client.join_study()  # others behind the same address are not locked out with a guesser
    clock.now += 601
    assert client.post("/api/join/guess").status_code == 404


def test_who_comes_back_by_the_open_link_goes_on_as_before(client: Client) -> None:
    first = client.join_study().get("/api/me").json()["annotator"]
    client.join_study()
    assert client.get("/api/me").json()["annotator"] == first
    assert Client(client.store).join_study().get("/api/me").json()["annotator"] != first


def test_a_database_that_is_away_is_no_refusal_and_gives_nothing_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise DatabaseError("postgresql://somebody@secret-host/db: cannot be reached")

    monkeypatch.setattr(client.store.database, "_begin_snapshot", away)
    answer = client.get("/api/join/guess")
    assert (answer.status_code, answer.json()["code"]) == (500, "failed")
    assert "secret-host" not in answer.text


def test_large_bodies_are_for_uploads_only(client: Client) -> None:
    for path in ("links", "researchers", "settings"):
        answer = client.post(f"/api/admin/{path}", content=b"[" + b"1," * 600_000 + b"1]")
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


def test_an_invitation_ends_with_the_role_it_was_made_for(client: Client) -> None:
    store = client.store
    spare = store.run_study_change_sync(researcher_actions_storage.invite_researcher, "ann", "bob", "owner")
    used = store.run_study_change_sync(researcher_actions_storage.invite_researcher, "ann", "bob", "owner")
    assert not store.run_job_sync(access_storage.sign_in_with_link, spare, "researcher")  # the later one replaced it
    assert store.run_job_sync(access_storage.sign_in_with_link, used, "researcher")
    again = store.run_study_change_sync(researcher_actions_storage.invite_researcher, "ann", "bob", "owner")
    store.run_study_change_sync(researcher_actions_storage.invite_researcher, "ann", "cat", "owner")
    store.run_study_change_sync(researcher_actions_storage.remove_researcher, "ann", "cat")  # before she ever signed in
    store.run_job_sync(access_storage.add_or_update_researcher, "dan", "owner")
    store.run_study_change_sync(researcher_actions_storage.set_researcher_role, "ann", "bob", "viewer")
    assert not store.run_job_sync(access_storage.sign_in_with_link, again, "researcher")


def test_two_changes_of_the_settings_at_once_both_count(client: Client) -> None:
    store = client.store
    before = store.head.settings
    other = store.head.protocol.model_copy(update={"version": "9"})
    store.run_job_sync(researcher_actions_storage.update_settings, "ann", before.model_copy(update={"lease": 77}))
    store.run_study_change_sync(
        researcher_actions_storage.add_and_activate_protocol, "ann", other
    )  # its owner has not seen the new lease
    assert (store.head.settings.lease, store.head.protocol.id) == (77, other.id)


def test_answers_that_were_deleted_can_be_given_anew_on_another_device(client: Client) -> None:
    task = client.join_study().next_task()["id"]
    for change, base, body in (("a", 0, {"no_errors": True}), ("b", 1, None), ("c", 0, {"no_errors": True})):
        answer = client.put(f"/api/tasks/{task}/answers", json={"change": change, "base": base, "body": body})
        assert answer.status_code == 200, answer.text
    assert answer.json()["version"] == 3


def test_what_is_too_large_is_refused_whatever_it_says_about_its_size(client: Client) -> None:
    task = client.join_study().next_task()["id"]
    answer = client.put(f"/api/tasks/{task}/answers", content=b"x" * 1_000_001)
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    pieces = (b"x" * 100_000 for _ in range(11))
    answer = client.put(f"/api/tasks/{task}/answers", content=pieces, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


# --- errors and roles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing/here", 404, "not-found"),
        ("GET", "/api/nothing", 404, "not-found"),
        ("DELETE", "/api/me", 405, "not-found"),
        ("GET", "/api/me", 401, "signed-out"),
        ("POST", "/api/next", 401, "signed-out"),
        ("GET", "/api/admin/session", 401, "signed-out"),
    ],
)
def test_every_error_has_one_shape(client: Client, method: str, path: str, status: int, code: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["say"]


def test_our_own_mistakes_say_so_and_tell_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.join_study()

    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("finecomb.collection.assignment_storage.read_assignment_state", broken)
    answer = client.get("/api/me")
    assert (answer.status_code, answer.json()["code"]) == (500, "failed")
    assert "secret" not in answer.text


def test_words_for_people_follow_the_style(client: Client) -> None:
    from finecomb.server.error_responses import MESSAGE_BY_CODE

    for words in MESSAGE_BY_CODE.values():
        assert not re.search(r"invalid|please|oops|error|!", words, re.IGNORECASE), words


def test_no_researchers_route_is_open_to_anybody_else(client: Client) -> None:
    client.join_study()
    tried = 0
    for path, methods in client.get("/api/openapi.json").json()["paths"].items():
        if path.startswith("/api/admin/"):
            for method in methods:
                answer = client.request(method.upper(), path.replace("{", "").replace("}", ""))
                assert (answer.status_code, answer.json()["code"]) == (401, "signed-out"), path
                tried += 1
    assert tried >= 2


def test_an_annotators_session_is_no_researchers(client: Client) -> None:
    client.join_study()
    of = Auth(client.store).cookie_name
    client.cookies.set(of("researcher"), client.cookies[of("annotator")])
    assert client.get("/api/admin/session").json()["code"] == "signed-out"


def test_without_the_front_end_the_page_says_how_to_build_it(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("finecomb.server.pages.STATIC_FOLDER", tmp_path)
    for path in ("/", "/join/x", "/admin", "/admin/documents"):
        answer = client.get(path)
        assert (answer.status_code, "make frontend" in answer.text) == (503, True)


# --- session lifetime ---------------------------------------------------------------------------------------------


def test_an_owner_who_follows_a_lesser_invitation_stays_the_owner(store: Store) -> None:
    owner = Client(store).sign_in_researcher("owner", "ann")
    token = store.run_job_sync(researcher_actions_storage.invite_researcher, "ann", "ann", "viewer")
    assert Client(store).post(f"/sign-in/{token}", follow_redirects=False).status_code == 303
    assert owner.get("/api/admin/session").json()["role"] == "owner"


def test_a_researcher_who_is_away_for_long_is_signed_out(store: Store, clock: FakeClock) -> None:
    owner = Client(store).sign_in_researcher()
    for _ in range(5):
        clock.now += access_storage.MAX_RESEARCHER_IDLE_SECONDS / 2
        assert owner.get("/api/admin/session").status_code == 200
    clock.now += access_storage.MAX_RESEARCHER_IDLE_SECONDS + 1
    assert owner.get("/api/admin/session").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/admin/export?format=jsonl", None),
        ("GET", "/api/admin/pay", None),
        ("POST", "/api/admin/researchers", {"id": "bea", "role": "viewer"}),
        ("PUT", "/api/admin/researcher?id=owner", {"role": "owner"}),
        ("DELETE", "/api/admin/researcher?id=owner", None),
    ],
)
def test_what_matters_needs_a_sign_in_of_today(
    store: Store, clock: FakeClock, method: str, path: str, body: object
) -> None:
    owner = Client(store).sign_in_researcher()
    for _ in range(3):
        clock.now += access_storage.MAX_RESEARCHER_IDLE_SECONDS - 1
        assert owner.get("/api/admin/session").status_code == 200
    answer = owner.request(method, path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (401, "signed-out")
    assert "finecomb links" in answer.json()["say"]


def test_exports_and_pay_files_leave_a_line_in_the_audit_log(store: Store) -> None:
    owner = Client(store).sign_in_researcher()
    assert owner.get("/api/admin/export?format=jsonl").status_code == 200
    assert owner.get("/api/admin/pay").status_code == 200
    log = [(line["who"], line["did"]) for line in owner.get("/api/admin/audit").json()]
    assert log[:2] == [("owner", "took a pay file"), ("owner", "exported")]


def test_looking_at_wrong_links_is_limited_too(client: Client) -> None:
    codes = [client.get(f"/api/join/wrong-{n}").status_code for n in range(13)]
    assert codes == [404] * 10 + [429] * 3


def send_wrong_links(
    store: Store, peer: str, public_url: str, tries: int = 13, proxies: Sequence[str] = ()
) -> list[int]:
    """Send wrong links from a peer that claims another forwarded address each time, and return the statuses."""
    trusted = parse_trusted_proxies(proxies, public_url)
    config = build_uvicorn_config(create_app(store, public_url), public_url, trusted_proxies=trusted)
    config.load()
    client = TestClient(config.loaded_app, base_url="http://study.test", client=(peer, 50_000))
    return [
        client.get(f"/api/join/wrong-{n}", headers={"x-forwarded-for": f"198.51.100.{n}"}).status_code
        for n in range(tries)
    ]


@pytest.mark.parametrize(
    ("peer", "public_url", "limited"),
    [
        ("203.0.113.9", "", True),
        ("127.0.0.1", "", True),
        ("203.0.113.9", "https://study.test", True),
        ("127.0.0.1", "https://study.test", False),  # the proxy, which knows the client's address
    ],
)
def test_nobody_but_the_proxy_says_where_a_request_comes_from(
    store: Store, peer: str, public_url: str, limited: bool
) -> None:
    assert send_wrong_links(store, peer, public_url) == ([404] * 10 + [429] * 3 if limited else [404] * 13)


@pytest.mark.parametrize("proxies", [("10.89.0.0/24",), ("10.89.0.1",), ("fd00::/8", "10.0.0.0/8")])
def test_a_proxy_of_a_container_network_is_trusted_on_request(store: Store, proxies: tuple[str, ...]) -> None:
    assert send_wrong_links(store, "10.89.0.1", "https://study.test") == [404] * 10 + [429] * 3
    assert send_wrong_links(store, "10.89.0.1", "https://study.test", proxies=proxies) == [404] * 13
    assert send_wrong_links(store, "203.0.113.9", "https://study.test", proxies=proxies) == [404] * 10 + [429] * 3


@pytest.mark.parametrize(
    ("proxies", "public_url", "message"),
    [
        (["10.0.0.1"], "", "trusted_proxies requires public_url"),
        (["*"], "https://study.test", r"trusted_proxies=\*: expected an IP address or network"),
        (["0.0.0.0/0"], "https://study.test", "lets every client forge its address"),
        (["10.0.0.1/8"], "https://study.test", "expected an IP address or network"),
        (["proxy"], "https://study.test", "expected an IP address or network"),
    ],
)
def test_a_proxy_that_would_let_clients_forge_their_address_is_refused(
    proxies: list[str], public_url: str, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_trusted_proxies(proxies, public_url)


def test_a_full_network_keeps_out_newcomers_and_not_those_who_are_known(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_MAX_JOINS_PER_ADDRESS", 3)
    changed = store.head.settings.model_copy(update={"recruitment": Recruitment(platform="prolific")})
    store.run_study_change_sync(researcher_actions_storage.update_settings, "owner", changed)
    browsers = {
        name: TestClient(create_app(store), base_url="http://study.test", client=("203.0.113.9", 50_000))
        for name in ("ann", "bea", "carl", "dora")
    }

    def join(name: str) -> int:
        browsers[name].cookies = {
            key: value for key, value in browsers[name].cookies.items() if "device" in key
        }  # signed out, in the same browser
        query = {"PROLIFIC_PID": f"{name:x<24}", "STUDY_ID": "s" * 24, "SESSION_ID": f"{name:y<24}"}
        token = access_storage.get_open_link_token(store)
        return browsers[name].post(f"/api/join/{token}", params=query).status_code

    assert [join(name) for name in browsers] == [200, 200, 200, 429]
    assert [join("ann") for _ in range(4)] == [200, 200, 200, 429]
    assert join("bea") == 200


def test_joins_from_one_network_are_throttled(store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_MAX_JOINS_PER_ADDRESS", 3)

    def joins(peer: str) -> int:
        client = TestClient(create_app(store), base_url="http://study.test", client=(peer, 50_000))
        return client.post(f"/api/join/{access_storage.get_open_link_token(store)}").status_code

    assert [joins("203.0.113.9") for _ in range(5)] == [200] * 3 + [429] * 2
    assert joins("203.0.113.10") == 200
    assert [joins("2001:db8::1"), joins("2001:db8::2"), joins("2001:db8::3"), joins("2001:db8::4")] == [200] * 3 + [429]
    assert [joins("127.0.0.1") for _ in range(5)] == [200] * 5  # local requests
    clock.now += access_storage.ATTEMPT_WINDOW_SECONDS + 1
    assert joins("203.0.113.9") == 200


def test_a_planted_cookie_is_not_gone_on_with(store: Store) -> None:
    """With HTTPS, only cookies count that no other site of the same domain can set."""

    def browser() -> TestClient:
        return TestClient(create_app(store, "https://study.test"), base_url="https://study.test")

    attacker, victim = browser(), browser()
    planted = attacker.post(f"/api/join/{access_storage.get_open_link_token(store)}")
    for name, value in attacker.cookies.items():
        victim.cookies.set(name.removeprefix("__Host-"), value)
    own = victim.post(f"/api/join/{access_storage.get_open_link_token(store)}")
    assert own.json()["annotator"] != planted.json()["annotator"]


def test_no_token_reaches_a_log(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        client = Client(store)
        token = access_storage.get_open_link_token(store)
        client.get(f"/join/{token}")
        client.join_study()
        invitation = store.run_job_sync(researcher_actions_storage.invite_researcher, "tests", "eve", "owner")
        client.post(f"/sign-in/{invitation}", follow_redirects=False)
        client.get(f"/api/join/{token}")
    lines = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert not [line for line in lines if token in line or invitation in line]


def test_annotators_see_the_protocols_title_and_never_the_folder(tmp_path: Path) -> None:
    asked = protocols.load("scarecrow")
    items: list[StudyItem] = [
        Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES),
        asked,
        Document(id="d", text=TEXT),
    ]
    folder = tmp_path / "gpt4-vs-human"
    folder.mkdir()
    with open_test_store(new_study_location("sqlite", folder), items, FakeClock()) as store:
        client = Client(store)
        token = access_storage.get_open_link_token(store)
        seen = [client.get(f"/join/{token}").text, client.get(f"/api/join/{token}").text]
        client.join_study()
        seen += [client.get("/").text, client.get("/api/me").text, client.post("/api/next").text]
        assert client.get("/api/me").json()["title"] == asked.title
    assert not [text for text in seen if "gpt4" in text]
