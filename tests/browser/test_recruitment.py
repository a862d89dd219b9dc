"""From a platform's page and back, in a real browser: inside a frame of another site, and in a tab of its own."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, Route, expect

import finecomb as fc
from finecomb.collection import arrivals_storage
from finecomb.collection.arrivals import Arrival
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.protocol import Work
from finecomb.core.records import ONBOARDING_PHASES, Document, Recruitment, Settings
from finecomb.core.study import Study
from tests.browser.accessibility import axe_violations
from tests.browser.live_server import Server, serve_study

pytestmark = pytest.mark.long

SUBMIT = "https://workersandbox.mturk.com/mturk/externalSubmit"
PREVIEW = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "3HIT"}
ACCEPTED = {
    "assignmentId": "3ASSIGN",
    "hitId": "3HIT",
    "workerId": "A1WORKER",
    "turkSubmitTo": "https://workersandbox.mturk.com",
}


def study(recruitment: Recruitment) -> Study:
    """One text to rate, and a consent to give."""
    asked = fc.protocol("turing").model_copy(update={"work": Work(texts=1), "conditions": ()})
    skip = tuple(phase for phase in ONBOARDING_PHASES if phase != "consent")
    settings = Settings(title="Harbour", protocols=(asked.id,), skip=skip, recruitment=recruitment, price=1)
    texts = [Document(id=f"d{n}", text="The ferry left at dawn. Nobody waved.") for n in range(2)]
    return Study.from_items([settings, asked, *texts])


class _Pages(http.server.BaseHTTPRequestHandler):
    """A platform's page: shows whatever its address names after `#`, as workers see a HIT."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        show = "<script>const f = document.querySelector('iframe'); f.src = decodeURIComponent(location.hash.slice(1))"
        self.wfile.write(f"<!doctype html><iframe width=1200 height=800></iframe>{show}</script>".encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def platform() -> Iterator[str]:
    """Another site: 127.0.0.1 is one, localhost is another."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def address(server: Server, asked: dict[str, str]) -> str:
    """Where the study is for the outside: on localhost."""
    return f"{server.open_link.replace('127.0.0.1', 'localhost')}?{urlencode(asked)}"


def show(page: Page, outside: str, inside: str) -> FrameLocator:
    page.goto("about:blank")
    page.goto(f"{outside}/#{inside.replace('%', '%25')}")
    return page.frame_locator("iframe")


def rate(where: Page | FrameLocator) -> None:
    """Rate the one text and hand it in."""
    expect(where.locator("[data-question=rating]").first).to_be_visible(timeout=20_000)
    where.locator("[data-question=rating] label:has(input[value='1'])").click()
    where.locator("[data-question=why] textarea").fill("That nobody waved is an odd thing to say.")
    where.locator("[data-action=finish]").first.click()
    expect(where.locator("[data-code]")).to_be_visible(timeout=20_000)


def hand_in(page: Page, where: Page | FrameLocator) -> dict[str, list[str]]:
    """Press the button that leads back, and return what Mechanical Turk gets."""
    sent: list[str] = []

    def answer(route: Route) -> None:
        sent.append(route.request.post_data or "")
        route.fulfill(status=200, content_type="text/html", body="<h1>Thank you</h1>")

    page.context.route(SUBMIT, answer)
    where.locator("[data-action=back]").click()
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible(timeout=20_000)
    return parse_qs(sent[0])


def came(server: Server) -> list[Arrival]:
    store = open_store(parse_location(server.folder / DATABASE_FILENAME))
    try:
        with store.database.read_transaction() as transaction:
            return arrivals_storage.read_all_arrivals(store, transaction)
    finally:
        store.close()


def test_a_hit_is_done_inside_the_platforms_page(browser: Browser, tmp_path: Path) -> None:
    with platform() as outside:
        recruitment = Recruitment(platform="mturk", frame=(outside,))
        with serve_study(study(recruitment), tmp_path / "study") as server:
            page = browser.new_context(viewport={"width": 1300, "height": 900}).new_page()
            inside = show(page, outside, address(server, PREVIEW))
            expect(inside.get_by_role("heading", name="Harbour")).to_be_visible(timeout=20_000)
            expect(inside.locator("[data-action=start]")).to_have_count(0)
            inside = show(page, outside, address(server, ACCEPTED))
            inside.locator("[data-action=start]").click(timeout=20_000)
            rate(inside)
            cookies = [each for each in page.context.cookies() if each["name"].startswith("finecomb")]
            assert {(each["sameSite"], each["secure"], each["httpOnly"]) for each in cookies} == {("None", True, True)}
            assert all(each.get("partitionKey") for each in cookies)
            code = inside.locator("[data-code]").inner_text()
            assert hand_in(page, inside) == {"assignmentId": ["3ASSIGN"], "code": [code]}
            assert [(each.source.worker, each.source.session) for each in came(server)] == [("A1WORKER", "3ASSIGN")]
            (work,) = server.read_study().iter_annotations()
            assert work.answers["rating"] == 1


def test_another_sites_page_shows_nothing(browser: Browser, tmp_path: Path) -> None:
    recruitment = Recruitment(platform="mturk", frame=("https://worker.mturk.com",))
    with platform() as outside, serve_study(study(recruitment), tmp_path / "study") as server:
        page = browser.new_context().new_page()
        refused: list[str] = []
        page.on("console", lambda said: refused.append(said.text))
        inside = show(page, outside, address(server, ACCEPTED))
        page.wait_for_timeout(1500)
        assert inside.locator("[data-page=join]").count() == 0
        assert any("frame-ancestors" in each for each in refused)


def test_a_hit_opens_a_tab_where_pages_stay_out_of_frames(browser: Browser, tmp_path: Path) -> None:
    with serve_study(study(Recruitment(platform="mturk")), tmp_path / "study") as server:
        let = ["local-network-access"]  # a public page shows one of this machine
        page = browser.new_context(viewport={"width": 1300, "height": 900}, permissions=let).new_page()
        hit = f"<!doctype html><iframe width=1200 height=800 src='{address(server, ACCEPTED)}'></iframe>"
        page.route("https://worker.mturk.com/", lambda route: route.fulfill(content_type="text/html", body=hit))
        page.goto("https://worker.mturk.com/")
        with page.expect_popup() as opened:
            page.frame_locator("iframe").locator("[data-action=window]").click(timeout=20_000)
        tab = opened.value
        tab.locator("[data-action=start]").click(timeout=20_000)
        rate(tab)
        assert hand_in(tab, tab)["assignmentId"] == ["3ASSIGN"]


def test_prolific_from_the_link_to_its_code(browser: Browser, tmp_path: Path) -> None:
    recruitment = Recruitment(platform="prolific", completed="DONE1", no_consent="NO1")
    asked = {"PROLIFIC_PID": "5f1aaa", "STUDY_ID": "st1", "SESSION_ID": "se1"}
    with serve_study(study(recruitment), tmp_path / "study") as server:
        page = browser.new_context().new_page()
        page.goto(server.open_link)
        expect(page.get_by_text("This link does not identify you")).to_be_visible(timeout=20_000)
        page.goto(f"{server.open_link}?{urlencode(asked)}")
        page.locator("[data-action=decline]").click(timeout=20_000)
        expect(page.locator("[data-code]")).to_have_text("NO1", timeout=20_000)
        page.goto(f"{server.open_link}?{urlencode(asked)}")
        page.locator("[data-action=start]").click(timeout=20_000)
        rate(page)
        back = "https://app.prolific.com/submissions/complete?cc=DONE1"
        assert page.locator("[data-action=back]").get_attribute("href") == back
        again = page.context.new_page()  # the same browser: the code is shown again
        again.goto(f"{server.open_link}?{urlencode(asked)}")
        again.locator("[data-action=start]").click(timeout=20_000)
        expect(again.locator("[data-code]")).to_have_text("DONE1", timeout=20_000)
        elsewhere = browser.new_context().new_page()  # another one: a worker id alone opens nothing
        elsewhere.goto(f"{server.open_link}?{urlencode(asked)}")
        elsewhere.locator("[data-action=start]").click(timeout=20_000)
        expect(elsewhere.get_by_text("You started in another browser.")).to_be_visible(timeout=20_000)


@pytest.mark.parametrize("width", [1300, 360])
def test_the_researcher_sees_who_came_and_decides(browser: Browser, tmp_path: Path, width: int) -> None:
    recruitment = Recruitment(platform="prolific")
    with serve_study(study(recruitment), tmp_path / "study") as server:
        worker = browser.new_context().new_page()
        for pid in ("5f1aaa", "5f2bbb"):
            worker.goto(f"{server.open_link}?PROLIFIC_PID={pid}")
            worker.locator("[data-action=start]").click(timeout=20_000)
            rate(worker)
        page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        page.goto(server.admin_link)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{server.address}/admin#/annotators")
        expect(page.get_by_text("The same browser was used to sign in as reader-2.")).to_be_visible(timeout=20_000)
        assert "5f1aaa" not in page.content()
        page.get_by_role("button", name="Add a bonus… reader-1").click()
        form = page.get_by_role("form", name="Bonus for reader-1")
        form.get_by_label("Amount").fill("2.5")
        form.get_by_label("Reason for the bonus").fill("careful work")
        form.get_by_role("button", name="Save").click()
        expect(page.get_by_text("$2.50, change…")).to_be_visible(timeout=20_000)
        with page.expect_download() as file:
            page.get_by_role("button", name="Bonuses for Prolific").click()
        assert Path(file.value.path()).read_text() == "5f1aaa,2.50\n"
        assert axe_violations(page) == []
        page.goto(f"{server.address}/admin#/settings")
        expect(page.get_by_text("PROLIFIC_PID={{%PROLIFIC_PID%}}")).to_be_visible(timeout=20_000)
        page.get_by_role("textbox", name=re.compile("^Completion code")).fill("DONE9")
        page.locator("form", has_text="Study URL for the platform").get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved.")).to_be_visible(timeout=20_000)
        assert axe_violations(page) == []
        if width < 400:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert server.read_study().settings.recruitment.completed == "DONE9"
