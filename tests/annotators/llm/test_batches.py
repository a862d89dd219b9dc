"""Batches against fakes of the providers: submission, resumption after a crash, partial results and budgets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from finecomb import formats
from finecomb.annotators.llm.journal import BatchEntry, CallEntry, JournalContent, read_entries
from finecomb.core.records import Document
from finecomb.protocols import load
from tests.annotators.llm.fakes.base import KEY, FakeServer, Received
from tests.annotators.llm.fakes.chat_servers import FakeAzure, FakeMistral, FakeOpenAI
from tests.annotators.llm.fakes.native_servers import FakeAnthropic, FakeGemini
from tests.annotators.llm.test_scenarios import MODEL, Run, annotate

COUNT = 6
KINDS = [FakeOpenAI, FakeAzure, FakeAnthropic, FakeGemini, FakeMistral]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    documents = [Document(id=f"d{number}", text=f"On day {number} they saw the sea.") for number in range(COUNT)]
    folder = tmp_path / "study"
    formats.save_records([load("scarecrow"), *documents], folder)
    return folder


def collect(study: Path, server: FakeServer, *options: object, rounds: int = 6) -> Run:
    """Repeat the command until no batch is waiting."""
    for _ in range(rounds):
        run = annotate(study, server, "--batch", *options)
        if "run the same command again to collect" not in run.output:
            return run
    raise AssertionError(run.output)


def reply_counts(run: Run) -> Counter[str]:
    return Counter(entry.hash for entry in run.replies)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_submitted_and_collected(study: Path, kind: type[FakeServer]) -> None:
    with kind() as server:
        first = annotate(study, server, "--batch", "--price", "1,2")
        assert first.exit_code == 0
        assert "batch 1" in first.output
        assert len(server.batches) == 1
        run = collect(study, server, "--price", "1,2")
        assert (run.exit_code, len(server.batches), len(server.calls)) == (0, 1, 1)  # one call is made before a batch
        again = annotate(study, server, "--batch", "--price", "1,2")
        assert (again.exit_code, len(server.batches), len(server.calls)) == (0, 1, 1)
    assert sorted(reply_counts(run).values()) == [1] * COUNT
    assert len(formats.read(study).annotations) == COUNT
    content = JournalContent.from_entries(run.entries)
    assert content.spent == sum(entry.cost for entry in run.replies)


def test_rejected_parameters_are_learned_before_the_batch(study: Path) -> None:
    with FakeOpenAI() as server:
        server.rejected = {"max_tokens"}
        run = collect(study, server)
        assert run.exit_code == 0
        lines = [json.loads(line) for line in server.files["file-1"].splitlines()]
    assert all("max_completion_tokens" in line["body"] for line in lines)
    assert len({line["custom_id"] for line in lines}) == COUNT - 1


@pytest.mark.parametrize("kind", [FakeOpenAI, FakeAnthropic, FakeGemini, FakeMistral])
def test_a_lost_answer_to_the_creation_makes_no_second_batch(study: Path, kind: type[FakeServer]) -> None:
    with kind() as server:

        def cut() -> None:
            raise ConnectionAbortedError

        server.hooks["created"] = cut
        first = annotate(study, server, "--batch")
        assert "the connection" in first.output
        run = collect(study, server)
        assert (run.exit_code, len(server.batches)) == (0, 1)
    assert sorted(reply_counts(run).values()) == [1] * COUNT


def test_two_candidates_are_not_decided_by_us(study: Path) -> None:
    with FakeAnthropic() as server:

        def cut() -> None:
            server.batches["msgbatch_9"] = {**server.batches["msgbatch_1"], "id": "msgbatch_9"}
            raise ConnectionAbortedError

        server.hooks["created"] = cut
        annotate(study, server, "--batch")
        run = annotate(study, server, "--batch")
        assert "2 batches that may belong to this run (msgbatch_9, msgbatch_1)" in run.output
        run = collect(study, server, "--batch-id", "msgbatch_1")
        assert (run.exit_code, len(server.results)) == (0, 1)


def test_a_rejected_batch_is_shown_and_costs_nothing(study: Path) -> None:
    class Rejecting(FakeOpenAI):
        def advance(self, batch: dict[str, Any]) -> dict[str, Any]:
            batch["status"] = "failed"
            batch["errors"] = {"data": [{"code": "invalid_json_line", "line": 3, "message": "not JSON", "param": None}]}
            return batch

    MODEL[Rejecting] = "openai:judge-large"
    with Rejecting() as server:
        run = annotate(study, server, "--batch", "--price", "1,2")
        assert run.exit_code == 3
        assert "batch 1 was rejected: line 3: not JSON" in run.output
    assert JournalContent.from_entries(run.entries).spent == run.replies[0].cost


class Partial(FakeOpenAI):
    """The first batch ends early: one line is missing, one failed, one is cut, one occurs twice."""

    batch_states = ("validating", "in_progress", "expired")

    def finish(self, batch: dict[str, Any]) -> None:
        super().finish(batch)
        if batch["id"] != "batch_1":
            return
        lines = self.files[batch["output_file_id"]].splitlines()
        expired = {"id": "x", "custom_id": json.loads(lines[1])["custom_id"], "response": None}
        expired["error"] = {"code": "batch_expired", "message": "This request could not be executed before it expired."}
        self.files["errors"] = json.dumps(expired).encode() + b"\n"
        batch["error_file_id"] = "errors"
        self.files[batch["output_file_id"]] = b"\n".join([lines[0], lines[0], lines[3], lines[4][:50]])


def test_partial_results_are_kept_and_the_rest_continues(study: Path) -> None:
    MODEL[Partial] = "openai:judge-large"
    with Partial() as server:
        run = collect(study, server)
        assert (run.exit_code, len(server.batches)) == (0, 2)
        assert len(server.files[server.batches["batch_2"]["input_file_id"]].splitlines()) == 3
    assert sorted(reply_counts(run).values()) == [1] * COUNT


def test_a_line_with_an_error_status_failed(study: Path) -> None:
    class TooLong(FakeOpenAI):
        def result_lines(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
            lines = super().result_lines(requests)
            body = {"error": {"message": "too long", "code": "context_length_exceeded"}}
            lines[0]["response"] = {"status_code": 400, "request_id": "r", "body": body}
            return lines

    MODEL[TooLong] = "openai:judge-large"
    with TooLong() as server:
        run = collect(study, server)
        assert (run.exit_code, len(server.batches)) == (3, 1)
    assert f"{COUNT - 1} of {COUNT} texts read" in run.output


def test_the_four_results_of_anthropic(study: Path) -> None:
    class Mixed(FakeAnthropic):
        def result(self, item: dict[str, Any]) -> dict[str, Any]:
            kinds = ["canceled", "expired"] if len(self.batches) == 1 else []
            number = len(self.seen) if item["custom_id"] not in self.seen else 9
            self.seen.add(item["custom_id"])
            if number < len(kinds):
                return {"custom_id": item["custom_id"], "result": {"type": kinds[number]}}
            return super().result(item)

        def __init__(self) -> None:
            super().__init__()
            self.seen: set[str] = set()

    MODEL[Mixed] = "anthropic:judge-large"
    with Mixed() as server:
        run = collect(study, server)
        assert (run.exit_code, len(server.batches), len(server.results["msgbatch_2"])) == (0, 2, 2)
    assert sorted(reply_counts(run).values()) == [1] * COUNT


@pytest.mark.parametrize("last", ["BATCH_STATE_SUCCEEDED", "JOB_STATE_PARTIALLY_SUCCEEDED"])
def test_unknown_states_are_waited_for(study: Path, last: str) -> None:
    class Slow(FakeGemini):
        states = ("BATCH_STATE_PENDING", "BATCH_STATE_NEW_AND_UNKNOWN", last)

    MODEL[Slow] = "gemini:judge-large"
    with Slow() as server:
        assert "new_and_unknown" in annotate(study, server, "--batch").output
        assert collect(study, server).exit_code == 0


def test_a_job_that_ran_out_of_time_has_results(study: Path) -> None:
    class Late(FakeMistral):
        batch_states = ("QUEUED", "RUNNING", "TIMEOUT_EXCEEDED")

    MODEL[Late] = "mistral:judge-large"
    with Late() as server:
        assert collect(study, server).exit_code == 0


def test_the_budget_is_reserved_before_a_batch(study: Path) -> None:
    with FakeOpenAI() as server:
        run = collect(study, server, "--price", "1,2", "--budget", 0.05)
        assert "the budget was reached" in run.output
        assert run.exit_code == 3
        sizes = [len(server.files[batch["input_file_id"]].splitlines()) for batch in server.batches.values()]
    assert all(0 < size < COUNT - 1 for size in sizes)
    assert JournalContent.from_entries(run.entries).spent <= 0.05


def test_batches_are_refused_where_there_are_none(study: Path) -> None:
    with FakeOpenAI() as server:
        run = annotate(study, server, "--batch", model="deepseek:judge-large")
        assert "--batch does not apply to deepseek" in run.output
        assert "--wait requires --batch" in annotate(study, server, "--wait").output
        assert server.received == []


CHILD = "from finecomb.cli import main; main()"


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        (FakeOpenAI, "uploaded"),
        (FakeOpenAI, "created"),
        (FakeAnthropic, "created"),
        *(
            pytest.param(kind, point, marks=pytest.mark.long)
            for kind in (FakeGemini, FakeMistral)
            for point in ("uploaded", "created")
        ),
    ],
)
def test_a_killed_client_resumes_without_a_second_batch(study: Path, kind: type[FakeServer], point: str) -> None:
    with kind() as server:
        reached: list[bool] = []

        def wait_for_kill() -> None:
            reached.append(True)
            time.sleep(2)
            raise ConnectionAbortedError

        server.hooks[point] = wait_for_kill
        words = ["annotate", study, "--model", MODEL[kind], "--base-url", server.url, "--batch"]
        command = [sys.executable, "-c", CHILD, *map(str, words), "--key-env", "FAKE_KEY"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not reached and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert reached
        run = collect(study, server)
        assert (run.exit_code, len(server.batches), len(server.calls)) == (0, 1, 1)
    assert sorted(reply_counts(run).values()) == [1] * COUNT


def test_a_batch_is_on_disk_before_the_provider_hears_of_it(study: Path) -> None:
    with FakeOpenAI() as server:
        on_disk: list[tuple[int, int]] = []

        def look() -> None:
            (journal,) = study.glob("runs/*/journal.jsonl")
            entries = list(read_entries(journal))
            planned = [entry for entry in entries if isinstance(entry, BatchEntry) and entry.step == "planned"]
            calls = {entry.hash for entry in entries if isinstance(entry, CallEntry)}
            on_disk.append((len(planned[0].hashes), len(calls)))

        server.hooks["uploaded"] = look
        annotate(study, server, "--batch")
    assert on_disk == [(COUNT - 1, COUNT)]


def test_results_that_were_downloaded_are_not_downloaded_again(study: Path) -> None:
    with FakeOpenAI() as server:
        annotate(study, server, "--batch")
        run = collect(study, server)
        (journal,) = study.glob("runs/*/journal.jsonl")
        lines = journal.read_bytes().splitlines(keepends=True)
        # As if the client had died after two of the results were written to the journal.
        first_result = next(number for number, line in enumerate(lines) if b'"step":"created"' in line) + 1
        journal.write_bytes(b"".join(lines[: first_result + 2]) + lines[first_result + 2][:40])
        server.received.clear()
        again = collect(study, server)
        assert again.exit_code == 0
        assert not [request for request in server.received if is_download(request)]
    assert reply_counts(again) == reply_counts(run)


def is_download(request: Received) -> bool:
    return request.path.endswith("/content")
