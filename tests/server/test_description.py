"""Requests made from the description of the API, sound and hostile ones: no answer says that the server failed."""

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
    """Everything that the description offers; the package is imported here, since that takes a while."""
    import schemathesis

    schema = schemathesis.openapi.from_dict(openapi.build_openapi_description())
    return [operation.ok() for operation in typing.cast("Iterable[Any]", schema.get_all_operations())]


def requests(operation: Any) -> Any:
    """Requests as the description has them, and others."""
    from schemathesis import GenerationMode

    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    return hypothesis.strategies.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))


@pytest.fixture
def items() -> list[StudyItem]:
    """A study whose settings are as large as they may be."""
    settings, *rest = demo_items()
    assert isinstance(settings, Settings)
    return [settings.model_copy(update={"lease": 525_600, "annotators": 100_000, "pilot": 1_000_000}), *rest]


def answers(operation: Any, clients: list[Client], task: str, examples: int) -> list[tuple[int, str]]:
    """The answers to requests made from the description of one operation, by everybody in turn; `task` is real."""
    seen: list[tuple[int, str]] = []

    @hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=requests(operation))
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


def failures(store: Store, examples: int, prefix: str = "/api") -> list[str]:
    """What the server failed at; before each operation the study is opened and everybody signed in anew, as some end
    that."""
    found: list[str] = []
    for operation in operations():
        if not operation.path.startswith(prefix):
            continue
        store.change_study_sync(researcher_actions_storage.set_state, "tests", "open")
        (link,) = store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 1)
        reader = Client(store).join_study(link.token)
        task = (reader.post("/api/next").json()["task"] or {"id": "none"})["id"]
        clients = [reader, Client(store).sign_in_researcher()]
        found += [said for status, said in answers(operation, clients, task, examples) if status >= 500]
    return found


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_no_request_made_from_the_description_makes_the_server_fail(store: Store) -> None:
    assert len(operations()) > 50
    assert failures(store, 1, "/api/tasks") == []


@pytest.mark.long
def test_no_request_of_many_makes_the_server_fail(store: Store) -> None:
    assert failures(store, 8) == []
