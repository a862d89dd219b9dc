from __future__ import annotations

from pathlib import Path

import pytest

from finecomb.annotators.llm.chat import ChatMessage, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError
from finecomb.annotators.llm.journal import ReplyEntry
from finecomb.annotators.llm.providers import find_provider
from finecomb.annotators.llm.run_folder import read_run_status
from finecomb.annotators.llm.runner import (
    BUDGET_REACHED,
    CallProgress,
    ModelCall,
    RunOutcome,
    read_stored_run,
    run_task,
)
from finecomb.core.records import ModelSettings

Words = tuple[dict[str, list[str]], dict[str, str], RunOutcome]


class WordTask:
    """Asks for words until each document has as many as it wants, one call after the other."""

    def __init__(self, wanted: dict[str, int], **settings: object) -> None:
        self.settings = ModelSettings.model_validate({"model": "m", "attempts": 1, "concurrency": 2, **settings})
        self.provider, self.folder_name = find_provider("m"), "words"
        self.wanted, self.words = wanted, {name: [] for name in wanted}  # type: dict[str, int], dict[str, list[str]]
        self.document_ids = tuple(wanted)

    def open_folder(self, folder: Path) -> None:
        (folder / "task.txt").write_text(str(self.wanted), encoding="utf-8")

    def _call(self, document: str) -> ModelCall:
        message = ChatMessage(role="user", content=f"{document} {len(self.words[document])}")
        request = ChatRequest(model="m", messages=(message,))
        return ModelCall(document, request, request.hash_at_endpoint("here"))

    def first_calls(self) -> list[ModelCall]:
        return [self._call(document) for document in self.wanted]

    def add_reply(self, call: ModelCall, entry: ReplyEntry) -> ModelCall | None:
        self.words[call.document].append(entry.reply.text)
        return self._call(call.document) if len(self.words[call.document]) < self.wanted[call.document] else None

    def progress_counts(self) -> tuple[int, int]:
        return sum(map(len, self.words.values())), sum(self.wanted.values())

    def unfinished_reasons(self, outcome: RunOutcome) -> dict[str, str]:
        missing = [name for name in self.wanted if len(self.words[name]) < self.wanted[name]]
        return {name: outcome.failures.get(self._call(name).hash, outcome.stopped) for name in missing}

    def build_run(self, outcome: RunOutcome) -> Words:
        return self.words, self.unfinished_reasons(outcome), outcome


class Echo:
    """Answers with the message in capitals, and fails on some."""

    host = "here"

    def __init__(self, *failing: str) -> None:
        self.failing, self.asked = failing, []  # type: tuple[str, ...], list[str]

    async def complete(self, request: ChatRequest) -> ChatReply:
        message = request.messages[-1].content
        self.asked.append(message)
        if message in self.failing:
            raise CallError("no reply today")
        return ChatReply(text=message.upper(), prompt_tokens=10, completion_tokens=0)

    async def close(self) -> None:
        pass


def test_a_reply_may_ask_for_another_call(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def watch(progress: CallProgress) -> None:
        seen.append((progress.done, progress.total))

    words, missing, outcome = run_task(WordTask({"a": 3, "b": 1}), tmp_path, Echo(), watch)
    assert words == {"a": ["A 0", "A 1", "A 2"], "b": ["B 0"]}
    assert (missing, outcome.calls, outcome.cached, outcome.stopped) == ({}, 4, 0, "")
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    status = read_run_status(tmp_path / "words")
    assert status is not None
    assert (status.state, status.documents) == ("finished", ("a", "b"))


def test_stored_replies_are_followed_before_anything_is_sent(tmp_path: Path) -> None:
    run_task(WordTask({"a": 2}), tmp_path, Echo())
    echo = Echo()
    words, _, outcome = run_task(WordTask({"a": 3, "b": 1}), tmp_path, echo)
    assert words == {"a": ["A 0", "A 1", "A 2"], "b": ["B 0"]}
    assert sorted(echo.asked) == ["a 2", "b 0"]
    assert (outcome.calls, outcome.cached) == (2, 2)


def test_an_interrupted_run_is_read_with_its_failures(tmp_path: Path) -> None:
    def interrupt(progress: CallProgress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_task(WordTask({"a": 9, "b": 1}), tmp_path, Echo("b 0"), interrupt)
    status = read_run_status(tmp_path / "words")
    assert status is not None
    assert (status.state, status.why) == ("stopped", "interrupted")
    words, missing, outcome = read_stored_run(WordTask({"a": 9, "b": 1}), tmp_path)
    assert words["a"][:3] == ["A 0", "A 1", "A 2"]
    assert missing == {"a": "interrupted", "b": "no reply today"}
    assert [note.partition(";")[2] for note in outcome.call_notes()][1] == " run the same command again to resume"


def test_a_budget_stops_a_chain_of_calls() -> None:
    # At a dollar per token, each call reserves 19 dollars and costs 10, so that a fourth could exceed the budget.
    task = WordTask({"a": 9}, price=(1_000_000, 0), budget=45, concurrency=1)
    words, missing, outcome = run_task(task, None, Echo())
    assert (len(words["a"]), outcome.cost, outcome.stopped) == (3, 30.0, BUDGET_REACHED)
    assert missing == {"a": BUDGET_REACHED}
    assert list(outcome.call_notes())[1].endswith("no replies were stored, so the next run starts from the beginning")
