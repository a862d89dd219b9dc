"""Somebody on the way from the link to the work: by hand in the browser, or over HTTP where that would take minutes."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
from playwright.sync_api import Browser

import finecomb as fc
from finecomb.collection import onboarding
from finecomb.core.protocol import Protocol
from finecomb.core.records import Document, Settings
from finecomb.core.study import Study
from finecomb.server.auth import CSRF_HEADER
from tests.browser.live_server import BrowserAnnotator, Server
from tests.onboarding_client import KnowsSolution, complete_page, knows_everything, next_step, submit_exercise


def onboarding_study(protocol: fc.Protocol, *documents: Document, **settings: object) -> Study:
    """A study with everything that the protocol has before the work."""
    made = Settings.model_validate({"title": "Harbour news", "protocols": [protocol.id], **settings})
    return Study.from_items([made, protocol, *documents])


def open_join_page(browser: Browser, server: Server, query: str = "", **options: object) -> BrowserAnnotator:
    """Somebody who opened the link."""
    page = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options)).new_page()  # type: ignore[arg-type]
    reader = BrowserAnnotator(page, server.open_link + query)
    reader.wait_for("page=join")
    return reader


class HttpSession(httpx.Client):
    """A reader's own session, without its pages."""

    def __init__(self, reader: BrowserAnnotator, server: Server) -> None:
        cookies = {str(each["name"]): str(each["value"]) for each in reader.page.context.cookies()}
        super().__init__(base_url=server.address, cookies=cookies)
        self.headers[CSRF_HEADER] = httpx.get(f"{server.address}/api/me", cookies=cookies).json()["csrf"]

    def save(self, task: str, entry: str, body: Any) -> tuple[int, Any]:
        sent = {"change": uuid.uuid4().hex, "base": 0, "body": body, "active": 1}
        answer = self.put(f"/api/tasks/{task}/{entry}", json=sent)
        return answer.status_code, answer.json()

    def finish(self, task: str) -> tuple[int, Any]:
        answer = self.put(f"/api/tasks/{task}/finish", json={"change": uuid.uuid4().hex, "active": 1})
        return answer.status_code, answer.json()


def advance_to(
    reader: BrowserAnnotator, server: Server, protocol: Protocol, until: str, knows: KnowsSolution = knows_everything
) -> None:
    """Go on over HTTP up to the page, or the exercise of a part, that has this name; then look at it."""
    known = {each.given.text: each for each in onboarding.practice_items_by_document(protocol).values()}
    with HttpSession(reader, server) as client:
        for _ in range(60):
            now = next_step(client)
            if now["page"]:
                if now["page"]["step"] == until:
                    break
                complete_page(client, now["page"])
            elif not now["task"] or not now["task"]["practice"]:
                break
            else:
                words = now["task"]["text"]  # of a text that is read part by part, its beginning
                item = next(each.given for text_, each in known.items() if text_.startswith(words))
                if item.name == until:
                    break
                submit_exercise(client, protocol, now["task"], item, knows)
    reader.page.reload()
