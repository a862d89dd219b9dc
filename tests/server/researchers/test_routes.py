"""Tests of the researcher API: content, permissions and the audit log."""

from __future__ import annotations

import functools
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb import formats
from finecomb.collection import researcher_actions_storage
from finecomb.collection.database import incremental_read
from finecomb.collection.database.store import Store
from finecomb.core.protocol_yaml import format_yaml
from finecomb.core.records import Document
from finecomb.core.study import Study, StudyItem
from finecomb.server.researchers.routes import router
from finecomb.statistics.agreement.agreement import agree as compute_agreement
from tests.databases import Client, FakeClock, new_study_location, open_test_store

HOSTILE = "<script>alert(1)</script>{{7*7}}'\";--../../etc/passwd"


@functools.cache
def demo() -> Study:
    """Return the demo study with all annotations."""
    return fc.demo(readers=3)


@pytest.fixture
def items() -> list[StudyItem]:
    return list(demo().items())


@pytest.fixture
def owner(store: Store) -> Client:
    return Client(store).sign_in_researcher("owner", "ann")


def get(client: Client, path: str, **asked: Any) -> Any:
    answer = client.get(f"/api/admin/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def require_error(answer: Any, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return str(answer.json()["say"])


# --- permissions --------------------------------------------------------------------------------------------------

EDITOR_REQUESTS: list[tuple[str, str, dict[str, str], Any]] = [
    ("PUT", "annotator/excluded", {"id": "reader-1"}, {"reason": "copied"}),
    ("DELETE", "annotator/excluded", {"id": "reader-1"}, None),
    ("DELETE", "annotator/browser", {"id": "reader-1"}, None),
    ("PUT", "annotation/excluded", {"id": "harbour-a/reader-1"}, {"reason": "asleep"}),
    ("DELETE", "annotation/excluded", {"id": "harbour-a/reader-1"}, None),
    ("PUT", "annotator/name", {"id": "reader-1"}, {"name": "Ash"}),
    ("POST", "links", {}, {"count": 2}),
    ("DELETE", "links", {"annotator": "reader-1"}, None),
    ("PUT", "open-link", {}, {"on": True}),
    ("PUT", "state", {}, {"state": "paused"}),
    ("PATCH", "settings", {}, {"title": "Other"}),
    ("POST", "protocol", {}, fc.protocol("snac")),
    ("POST", "documents", {"name": "more.jsonl"}, [Document(id="new", text="One more text.")]),
]
OWNER_REQUESTS: list[tuple[str, str, dict[str, str], Any]] = [
    ("POST", "researchers", {}, {"id": "bea", "role": "viewer"}),
    ("PUT", "researcher", {"id": "ann"}, {"role": "owner"}),
    ("DELETE", "researcher", {"id": "gone"}, None),
]
READ_REQUESTS = [
    ("overview", {}),
    ("documents", {}),
    ("document", {"id": "harbour-a"}),
    ("annotator", {"id": "reader-1"}),
    ("study", {}),
    ("protocol", {"id": "scarecrow@2"}),
    ("researchers", {}),
    ("audit", {}),
    ("exports", {}),
    ("export", {"format": "jsonl"}),
]


def send(client: Client, method: str, path: str, asked: dict[str, str], body: Any) -> Any:
    content = None if body is None else json.dumps(body) if isinstance(body, dict) else to_file_text(body)
    kind = {"content-type": "application/json"} if isinstance(body, dict) else {}
    return client.request(method, f"/api/admin/{path}", params=asked, content=content, headers=kind)


def to_file_text(body: Any) -> str:
    return "".join(each.to_json() + "\n" for each in body) if isinstance(body, list) else format_yaml(body)


def test_every_route_is_in_these_lists() -> None:
    """Every new route must declare who may use it."""
    routes = {(method, route.path) for route in router.routes for method in route.methods}  # type: ignore[attr-defined]
    listed = {(method, path) for method, path, *_ in [*EDITOR_REQUESTS, *OWNER_REQUESTS]} | {
        ("GET", path) for path, _ in READ_REQUESTS
    }
    assert routes == {(method, f"/api/admin/{path}") for method, path in listed} | {("GET", "/api/admin/links")}


def test_viewers_may_look_and_nobody_else(store: Store) -> None:
    stranger, annotator, viewer = Client(store), Client(store).join_study(), Client(store).sign_in_researcher("viewer")
    for path, asked in READ_REQUESTS:
        require_error(stranger.get(f"/api/admin/{path}", params=asked), 401, "signed-out")
        require_error(annotator.get(f"/api/admin/{path}", params=asked), 401, "signed-out")
        assert viewer.get(f"/api/admin/{path}", params=asked).status_code == 200, path


def test_editors_may_change_and_it_is_written_down(store: Store) -> None:
    annotator, viewer, editor = Client(store).join_study(), Client(store).sign_in_researcher("viewer"), Client(store)
    editor.sign_in_researcher("editor", "ed")
    for change in EDITOR_REQUESTS:
        require_error(send(annotator, *change), 401, "signed-out")
        require_error(send(viewer, *change), 403, "not-allowed")
        before = len(get(editor, "audit"))
        answer = send(editor, *change)
        assert answer.status_code == 200, answer.text
        after = get(editor, "audit")
        assert (len(after), after[0]["who"]) == (before + 1, "ed"), change


def test_changes_need_the_token_of_our_pages(owner: Client) -> None:
    before = owner.store.read_study()
    del owner.headers["X-Finecomb-Token"]
    for change in [*EDITOR_REQUESTS, *OWNER_REQUESTS]:
        require_error(send(owner, *change), 403, "not-allowed")
    assert owner.store.read_study() == before


def test_only_owners_manage_researchers(store: Store) -> None:
    editor = Client(store).sign_in_researcher("editor")
    for change in OWNER_REQUESTS:
        require_error(send(editor, *change), 403, "not-allowed")


def test_editors_alone_see_links(store: Store) -> None:
    require_error(Client(store).sign_in_researcher("viewer").get("/api/admin/links"), 403, "not-allowed")
    assert get(Client(store).sign_in_researcher("editor"), "links")["open"].startswith("http://study.test/join/")


# --- reading ------------------------------------------------------------------------------------------------------


def test_the_overview_is_that_of_the_study(owner: Client) -> None:
    page = get(owner, "overview")
    alpha = compute_agreement(fc.view(demo(), fc.Filters(kinds=("human",))), ["alpha"])[0].estimate
    assert page["agreement"]["value"] == pytest.approx(alpha.value)
    assert page["annotations"] == {"done": 48, "of": 96}  # each text of the demo study needs three more annotators
    assert [row["id"] for row in page["others"]] == ["truth"]


def test_an_unchanged_overview_is_not_sent_again(owner: Client, clock: FakeClock) -> None:
    first = owner.get("/api/admin/overview")
    tag = {"if-none-match": first.headers["etag"]}
    again_ = owner.get("/api/admin/overview", headers=tag)
    assert (again_.status_code, again_.content) == (304, b"")
    owner.put("/api/admin/annotator/excluded", params={"id": "reader-1"}, json={"reason": "copied"})
    assert owner.get("/api/admin/overview", headers=tag).json()["annotations"]["done"] == 32


def test_while_people_save_a_moment_is_kept_for_some_seconds(owner: Client, clock: FakeClock) -> None:
    before = owner.get("/api/admin/overview").headers["etag"]
    Client(owner.store).join_study()
    assert owner.get("/api/admin/overview").headers["etag"] == before
    clock.now += 11
    assert owner.get("/api/admin/overview").headers["etag"] != before
    owner.store.run_study_change_sync(
        researcher_actions_storage.exclude_annotator, "somebody else", "reader-1", "copied"
    )
    clock.now += 11
    assert owner.get("/api/admin/overview").json()["annotations"]["done"] == 32


def test_documents_are_listed_and_shown(owner: Client) -> None:
    listed = get(owner, "documents", search="harbour", limit=2)
    assert [row["id"] for row in listed["rows"]] == ["harbour-a", "harbour-b"]
    assert listed["total"] == listed["counts"]["all"] == 4
    page = get(owner, "document", id="harbour-b")
    assert page["text"] == owner.store.get_document("harbour-b").text
    assert [each["annotator"] for each in page["readers"]] == ["reader-1", "reader-2", "reader-3", "truth"]
    say = require_error(owner.get("/api/admin/document", params={"id": "harbor-b"}), 404, "not-found")
    assert "did you mean 'harbour-b'?" in say


def test_what_is_read_again_equals_what_is_read_at_once(store: Store, items: list[StudyItem]) -> None:
    first = incremental_read.refresh_snapshot(store)
    assert first.study == store.read_study()
    store.run_study_change_sync(researcher_actions_storage.exclude_annotation, "ann", "harbour-b/reader-2", "asleep")
    store.run_study_change_sync(
        researcher_actions_storage.add_documents, "ann", [Document(id="new", text="One more text.")]
    )
    second = incremental_read.refresh_snapshot(store, first)
    assert second.study == store.read_study()
    assert second.study != first.study
    assert incremental_read.refresh_snapshot(store, second).study == second.study


# --- exclusion ----------------------------------------------------------------------------------------------------


def test_excluding_deletes_nothing_and_can_be_taken_back(owner: Client) -> None:
    before = owner.store.read_study()
    for path, id in [("annotator", "reader-1"), ("annotation", "harbour-a/reader-2")]:
        where = f"/api/admin/{path}/excluded"
        assert owner.put(where, params={"id": id}, json={"reason": "copied"}).status_code == 200
        assert len(owner.store.read_study().marks) == len(before.marks)
    page = get(owner, "annotator", id="reader-1")
    assert page["person"]["excluded"]["reason"] == "copied"
    assert page["person"]["excluded"]["by"] == "ann"
    assert owner.store.read_study().submitted_work().annotations["annotator"].to_list().count("reader-1") == 0
    for path, id in [("annotator", "reader-1"), ("annotation", "harbour-a/reader-2")]:
        owner.delete(f"/api/admin/{path}/excluded", params={"id": id})
    assert owner.store.read_study() == before


def test_nobody_is_not_changed(owner: Client) -> None:
    for path, body in [("annotator/excluded", {"reason": "x"}), ("annotation/excluded", {"reason": "x"})]:
        require_error(owner.put(f"/api/admin/{path}", params={"id": "../../nobody"}, json=body), 422, "refused")
    require_error(owner.put("/api/admin/annotator/name", params={"id": "nobody"}, json={"name": "x"}), 422, "refused")


def test_a_reason_is_needed(owner: Client) -> None:
    answer = owner.put("/api/admin/annotator/excluded", params={"id": "reader-1"}, json={"reason": ""})
    require_error(answer, 422, "refused")


def test_names_are_for_researchers(owner: Client) -> None:
    owner.put("/api/admin/annotator/name", params={"id": "reader-1"}, json={"name": HOSTILE})
    assert HOSTILE in [row["name"] for row in get(owner, "overview")["people"]]
    owner.put("/api/admin/annotator/name", params={"id": "reader-1"}, json={"name": ""})
    assert "reader-1" in [row["name"] for row in get(owner, "overview")["people"]]


# --- links --------------------------------------------------------------------------------------------------------


def test_personal_links_let_people_in_until_revoked(owner: Client) -> None:
    made = owner.post("/api/admin/links", json={"count": 2, "names": ["reader-1"]}).json()
    assert made[0]["annotator"] == "reader-1"
    assert len(made) == 3
    for each in made:
        path = each["url"].removeprefix("http://study.test")
        assert Client(owner.store).post(f"/api{path}").json()["annotator"] == each["annotator"]
    listed = {each["annotator"]: each for each in get(owner, "links")["personal"]}
    assert listed["reader-1"]["used"] is not None
    owner.delete("/api/admin/links", params={"annotator": "reader-1"})
    path = made[0]["url"].removeprefix("http://study.test")
    assert Client(owner.store).post(f"/api{path}").status_code == 404
    assert "reader-1" not in {each["annotator"] for each in get(owner, "links")["personal"]}


def test_the_open_link_is_replaced_and_turned_off(owner: Client) -> None:
    first = get(owner, "links")["open"]
    owner.put("/api/admin/open-link", json={"on": True})
    second = get(owner, "links")["open"]
    assert first != second
    owner.put("/api/admin/open-link", json={"on": False})
    assert get(owner, "links")["open"] == ""
    for each in (first, second):
        assert Client(owner.store).post(f"/api{each.removeprefix('http://study.test')}").status_code == 404


def test_links_for_nobody_are_refused(owner: Client) -> None:
    require_error(owner.post("/api/admin/links", json={}), 422, "refused")


# --- study management ---------------------------------------------------------------------------------------------


def test_the_state_is_set(owner: Client) -> None:
    for state in ("pilot", "open", "paused", "closed"):
        owner.put("/api/admin/state", json={"state": state})
        assert (owner.store.head.state, get(owner, "overview")["state"]) == (state, state)


def test_settings_that_are_not_sent_stay(owner: Client) -> None:
    before = owner.store.head.settings
    sent = {"price": 0.5, "strata": ["model"], "quotas": {"a": 3}, "attention_checks": ["harbour-a"]}
    answer = owner.patch("/api/admin/settings", json=sent)
    assert answer.status_code == 200
    after = owner.store.head.settings
    assert (after.price, after.strata, after.title) == (0.5, ("model",), before.title)
    assert get(owner, "study")["settings"] == answer.json()
    assert get(owner, "audit")[0]["about"] == sent


INVALID_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"attention_checks": ["harbor-a"]}, "did you mean 'harbour-a'?"),
    ({"strata": ["modell"]}, "did you mean 'model'?"),
    ({"offer": {"annotator": "nobody"}}, "not an annotator"),
    ({"annotators": 0}, "annotators"),
    ({"lease": "soon"}, "lease"),
    ({"protocols": ["other@1"]}, "other@1"),
    ({"unknown": 1}, "unknown"),
]


def test_settings_that_mean_nothing_are_refused_in_words(owner: Client) -> None:
    before = owner.store.head.settings
    for sent, says in INVALID_SETTINGS:
        assert says in require_error(owner.patch("/api/admin/settings", json=sent), 422, "refused")
    assert owner.store.head.settings == before


def test_a_protocol_in_use_is_frozen_and_an_edit_is_a_new_version(owner: Client) -> None:
    text = owner.get("/api/admin/protocol", params={"id": "scarecrow@2"}).text
    edited = text.replace("title:", "title: Edited #", 1)
    say = require_error(owner.post("/api/admin/protocol", content=edited), 422, "refused")
    assert "increase its version" in say
    newer = edited.replace("version: '2'", "version: '3'", 1)
    assert newer != edited
    assert owner.post("/api/admin/protocol", content=newer).json()["id"] == "scarecrow@3"
    rows = {row["id"]: row for row in get(owner, "study")["protocols"]}
    assert (rows["scarecrow@2"]["annotations"], rows["scarecrow@2"]["current"]) == (64, False)
    assert (rows["scarecrow@3"]["annotations"], rows["scarecrow@3"]["current"]) == (0, True)
    assert get(owner, "overview")["protocol"] == "scarecrow@3"


INVALID_PROTOCOLS = [
    (b"name: x\n  labels: [", "mine.yaml:2:"),
    (b"name: x\nversion: '1'\ntitle: X\nlabls: []", "did you mean 'labels'?"),
    (b"\xff\xfe", "UTF-8"),
]


def test_a_slip_in_a_protocol_is_named_by_place(owner: Client) -> None:
    for content, says in INVALID_PROTOCOLS:
        answer = owner.post("/api/admin/protocol", params={"name": "mine.yaml"}, content=content)
        assert says in require_error(answer, 422, "refused")
    assert list(owner.store.head.protocols) == ["scarecrow@2"]


# --- adding documents ---------------------------------------------------------------------------------------------


def upload(client: Client, name: str, content: bytes | str, **columns: str) -> Any:
    return client.post("/api/admin/documents", params={"name": name, **columns}, content=content)


def test_documents_come_in_by_upload(owner: Client) -> None:
    lines = "".join(Document(id=f"d{n}", text=HOSTILE).to_json() + "\n" for n in range(3))
    assert upload(owner, "more.jsonl", lines).json() == {"documents": 3, "notes": []}
    table = "Key,Body\nd7,One text\nd8,Another text\n"
    assert upload(owner, "more.csv", table, text="Body", id="Key").json()["documents"] == 2
    assert owner.store.get_document("d1").text == HOSTILE
    assert get(owner, "overview")["documents"] == 21


def test_every_format_that_holds_documents_can_be_uploaded(owner: Client, tmp_path: Path) -> None:
    renamed = [each.model_copy(update={"id": f"new-{each.id}"}) for each in fc.demo().iter_documents()]
    for name in ("texts.xlsx", "texts.csv", "texts.jsonl"):
        formats.save_records([*renamed], tmp_path / name)
        say = upload(owner, name, (tmp_path / name).read_bytes()).json()
        assert say["documents"] == 16, say
        renamed = [each.model_copy(update={"id": f"{each.id}-{name[-4:]}"}) for each in renamed]


BAD_FILES = [
    ("more.jsonl", Document(id="harbour-a", text="x").to_json(), "already exist in the study: 'harbour-a'"),
    ("more.jsonl", 2 * (Document(id="d", text="x").to_json() + "\n"), "duplicate document ID"),
    ("more.jsonl", Document(id="d", text="x").to_json() + '\n{"id": "e"}\n', "more.jsonl:2"),
    ("more.jsonl", "", "more.jsonl"),
    ("../../etc/passwd", "x", "unknown file type"),
    ("more.exe", "x", "unknown file type"),
    ("more.xlsx", "not a workbook", "more.xlsx"),
]


def test_an_upload_with_a_slip_adds_nothing(owner: Client) -> None:
    for name, content, says in BAD_FILES:
        say = require_error(upload(owner, name, content), 422, "refused")
        assert says in say
        assert "/tmp" not in say
    assert len(owner.store.read_study().documents) == 16


def test_an_upload_beyond_the_limit_is_refused(owner: Client) -> None:
    require_error(upload(owner, "more.jsonl", b"x" * 64_000_001), 413, "too-large")


# --- researchers --------------------------------------------------------------------------------------------------


def test_researchers_are_invited_given_roles_and_removed(owner: Client) -> None:
    url = owner.post("/api/admin/researchers", json={"id": "bea", "role": "viewer"}).json()["url"]
    bea = Client(owner.store)
    assert bea.post(url.removeprefix("http://study.test"), follow_redirects=False).status_code == 303
    assert get(bea, "overview")["title"]
    assert {row["id"]: row["role"] for row in get(owner, "researchers")} == {"ann": "owner", "bea": "viewer"}
    owner.put("/api/admin/researcher", params={"id": "bea"}, json={"role": "editor"})
    assert get(bea, "session")["role"] == "editor"
    owner.delete("/api/admin/researcher", params={"id": "bea"})
    require_error(bea.get("/api/admin/overview"), 401, "signed-out")


def test_somebody_stays_owner(owner: Client) -> None:
    say = require_error(
        owner.put("/api/admin/researcher", params={"id": "ann"}, json={"role": "viewer"}), 422, "refused"
    )
    assert "only owner" in say


# --- export -------------------------------------------------------------------------------------------------------


def test_every_format_is_on_offer_with_what_it_loses(owner: Client) -> None:
    offered = {each["format"]: each for each in get(owner, "exports")}
    assert set(offered) == {name for name, each in formats.FORMATS.items() if each.write}
    assert offered["jsonl"]["loses"] == offered["folder"]["loses"] == ""
    assert "the protocol (1)" in offered["csv"]["loses"]
    assert not any("_" in each["loses"] for each in offered.values())
    assert offered["folder"]["file"] == "saltby-the-demo-study.folder.zip"


def test_a_download_is_what_convert_writes(items: list[StudyItem], clock: FakeClock, tmp_path: Path) -> None:
    """Check downloads on one database only, because all formats take a while and both databases return the same."""
    with open_test_store(new_study_location("sqlite", tmp_path), items, clock) as store:
        check_downloads(Client(store).sign_in_researcher(), tmp_path)


def check_downloads(owner: Client, tmp_path: Path) -> None:
    for each in get(owner, "exports"):
        format, name = each["format"], each["file"]
        answer = owner.get("/api/admin/export", params={"format": format})
        direct = tmp_path / f"direct-{name.removesuffix('.zip')}"
        if answer.status_code == 422:  # a format that cannot be written gives the reason
            with pytest.raises(fc.FinecombError) as caught:
                formats.save_records(owner.store.iter_records(), direct, format)
            assert answer.json()["say"] == str(caught.value)
            continue
        assert f'filename="{name}"' in answer.headers["content-disposition"]
        formats.save_records(owner.store.iter_records(), direct, format)
        path = save_download(answer.content, tmp_path / name)
        assert formats.read(path, format, OPTIONS[format]) == formats.read(direct, format, OPTIONS[format]), format


def save_download(content: bytes, path: Path) -> Path:
    """Save a download to a file."""
    if path.suffix != ".zip":
        path.write_bytes(content)
        return path
    zipfile.ZipFile(io.BytesIO(content)).extractall(path.parent)
    return path.with_suffix("")


OPTIONS = {
    name: formats.Options(protocol=fc.protocol("scarecrow")) if "protocol" in each.options else formats.Options()
    for name, each in formats.FORMATS.items()
}


def test_a_study_comes_back_from_its_export_as_it_is(owner: Client, tmp_path: Path) -> None:
    answer = owner.get("/api/admin/export", params={"format": "jsonl"})
    (tmp_path / "study.jsonl").write_bytes(answer.content)
    assert formats.read(tmp_path / "study.jsonl") == owner.store.read_study()


def test_an_unknown_format_is_refused(owner: Client) -> None:
    for format in ("frank", "../folder", "nothing"):
        require_error(owner.get("/api/admin/export", params={"format": format}), 422, "refused")


# --- isolation from annotators ------------------------------------------------------------------------------------


def test_hostile_words_come_back_as_they_were(owner: Client) -> None:
    owner.store.run_study_change_sync(
        researcher_actions_storage.add_documents, "ann", [Document(id=HOSTILE, text=HOSTILE, meta={"model": HOSTILE})]
    )
    answer = owner.get("/api/admin/document", params={"id": HOSTILE})
    assert answer.json()["text"] == HOSTILE
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert [row["id"] for row in get(owner, "documents", search=HOSTILE)["rows"]] == [HOSTILE]
    assert get(owner, "documents", model=HOSTILE)["total"] == 1
