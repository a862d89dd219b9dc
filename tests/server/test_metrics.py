"""Tests of health and metrics: complete, in Prometheus format, without personal data."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from finecomb.collection.database.store import Store
from finecomb.server.app import create_app
from finecomb.server.metrics import LATENCY_BUCKETS, ROW_WIDTH, TOKEN_ENV, Meter
from tests.databases import Client

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="[^"\\]*",?)+)\})? ([0-9.e+-]+|NaN)')


def samples(page: str) -> dict[str, float]:
    """Return all samples of a page by name and labels; each line must be a comment or a sample."""
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    matches = [SAMPLE.fullmatch(line) for line in lines]
    assert all(matches), lines
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def local(store: Store) -> TestClient:
    return TestClient(create_app(store), base_url="http://study.test", client=("127.0.0.1", 5000))


def test_requests_and_the_study_are_counted(store: Store) -> None:
    reader, watcher = Client(store).join_study(), Client(store)
    task = reader.next_task()["id"]
    reader.save(task, "answers", {"no_errors": True})
    reader.save(task, "answers", {"no_errors": True}, base=7)
    watcher._transport.client = ("127.0.0.1", 5000)  # type: ignore[attr-defined]
    page = samples(watcher.get("/metrics").text)
    assert page['finecomb_requests_total{kind="save",status="2xx"}'] == 1
    assert page['finecomb_requests_total{kind="save",status="4xx"}'] == 1
    assert page['finecomb_request_seconds_bucket{kind="save",le="+Inf"}'] == 2
    assert page['finecomb_request_seconds_count{kind="save"}'] == 2
    assert page["finecomb_annotators"] == page["finecomb_leases"] == 1
    assert page['finecomb_annotations{status="draft"}'] == 1
    assert page["finecomb_commits_total"] >= 3
    assert page["finecomb_commit_failures_total"] == 0
    assert page["finecomb_texts"] == len(store.assignment_plan().documents)


def test_numbers_name_nobody(store: Store) -> None:
    reader = Client(store).join_study()
    who = reader.get("/api/me").json()["annotator"]
    page = local(store).get("/metrics").text
    assert who not in page
    labels = {
        label
        for line in page.splitlines()
        if (match := SAMPLE.fullmatch(line))
        for label in re.findall(r"([a-z]+)=", match[2] or "")
    }
    assert labels <= {"kind", "status", "le", "version", "state"}


def test_buckets_grow_and_end_with_all() -> None:
    meter = Meter()
    for seconds in (0.001, 0.005, 0.3, 99.0):
        meter.count_request("save", 200, seconds)
    page = samples("\n".join(meter.prometheus_lines()))
    counts = [page[f'finecomb_request_seconds_bucket{{kind="save",le="{end}"}}'] for end in (*LATENCY_BUCKETS, "+Inf")]
    assert counts[0] == 2  # 0.005 itself belongs to the first bucket
    assert counts == sorted(counts)
    assert counts[-1] == 4
    assert page['finecomb_request_seconds_sum{kind="save"}'] == pytest.approx(99.306)


def test_processes_are_added_and_a_row_goes_on() -> None:
    cells = [0.0] * (2 * ROW_WIDTH)
    Meter(cells, 0).count_request("save", 200, 0.1)
    Meter(cells, 1).count_request("save", 204, 0.1)
    again = Meter(cells, 0)
    again.count_request("save", 201, 0.1)
    assert samples("\n".join(again.prometheus_lines()))['finecomb_requests_total{kind="save",status="2xx"}'] == 3


def test_other_machines_need_the_token(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = TestClient(create_app(store), base_url="http://study.test", client=("192.0.2.1", 5000))
    answer = stranger.get("/metrics")
    assert (answer.status_code, f"Set {TOKEN_ENV}" in answer.json()["say"]) == (403, True)
    assert local(store).get("/metrics").status_code == 200
    monkeypatch.setenv(TOKEN_ENV, "secret")
    assert stranger.get("/metrics", headers={"Authorization": "Bearer secret"}).status_code == 200
    assert stranger.get("/metrics", headers={"Authorization": "Bearer other"}).status_code == 403
    answer = local(store).get("/metrics")  # a local proxy may forward requests of others
    assert (answer.status_code, "as a bearer token" in answer.json()["say"]) == (403, True)


def test_health_says_whether_the_database_answers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from finecomb.collection.database.connection import DatabaseError

    browser = local(store)
    answer = browser.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})

    def fail() -> bool:
        raise DatabaseError("secret place: cannot be reached")

    monkeypatch.setattr(store, "refresh_and_check_current", fail)
    answer = browser.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})
