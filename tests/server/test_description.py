"""Tests with valid and hostile requests generated from the API description: none makes the server fail."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase

from finecomb.collection import researcher_actions_storage
from finecomb.collection.database.store import Store
from finecomb.core.records import Settings
from finecomb.core.study import StudyItem
from finecomb.server import openapi
from tests.databases import Client, demo_items


@functools.cache
def operations() -> list[Any]:
    """Return all operations of the API description. The package is imported here, because that takes a while."""
    import schemathesis

    schema = schemathesis.openapi.from_dict(openapi.build_openapi_description())
    return [operation.ok() for operation in typing.cast("Iterable[Any]", schema.get_all_operations())]


def request_strategy(operation: Any) -> Any:
    """Return a strategy for requests that match the description, and others."""
    from schemathesis import GenerationMode

    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    return hypothesis.strategies.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))


@pytest.fixture
def items() -> list[StudyItem]:
    """A study whose settings are as large as allowed."""
    settings, *rest = demo_items()
    assert isinstance(settings, Settings)
    return [settings.model_copy(update={"lease": 525_600, "annotators": 100_000, "pilot": 1_000_000}), *rest]


def send_requests(operation: Any, clients: list[Client], task: str, examples: int) -> list[tuple[int, str]]:
    """Send generated requests for one operation with all clients in turn; `task` is the ID of a real task."""
    seen: list[tuple[int, str]] = []

    @hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=request_strategy(operation))
    def ask(case: Any) -> None:
        if "task" in (case.path_parameters or {}):
            case.path_parameters["task"] = task
        sent = case.as_transport_kwargs(base_url="http://study.test")
        for client in clients:
            headers = {**{name: str(value) for name, value in (sent.get("headers") or {}).items()}, **client.headers}
            content = {name: sent[name] for name in ("json", "params") if sent.get(name) is not None}
            if isinstance(sent.get("data"), str | bytes):
                content["content"] = sent["data"]
            answer = client.request(sent["method"], sent["url"], headers=headers, follow_redirects=False, **content)
            seen.append((answer.status_code, f"{sent['method']} {sent['url']}: {answer.text[:200]}"))

    ask()
    return seen


def server_failures(store: Store, examples: int, prefix: str = "/api") -> list[str]:
    """What the server failed at; before each operation the study is opened and everybody signed in anew, as some end
    that."""
    found: list[str] = []
    for operation in operations():
        if not operation.path.startswith(prefix):
            continue
        store.run_study_change_sync(researcher_actions_storage.set_study_status, "tests", "open")
        (link,) = store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 1)
        reader = Client(store).join_study(link.token)
        task = (reader.post("/api/next").json()["task"] or {"id": "none"})["id"]
        clients = [reader, Client(store).sign_in_researcher()]
        found += [said for status, said in send_requests(operation, clients, task, examples) if status >= 500]
    return found


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_no_request_made_from_the_description_makes_the_server_fail(store: Store) -> None:
    assert len(operations()) > 50
    assert server_failures(store, 1, "/api/tasks") == []


@pytest.mark.long
def test_no_request_of_many_makes_the_server_fail(store: Store) -> None:
    assert server_failures(store, 8) == []
