"""The journal of a run: an append-only file of requests and replies, synced to disk before a call counts as done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from finecomb.annotators.llm.adaptation import ParameterChange
from finecomb.annotators.llm.chat import ChatMessage, ChatReply, StorableText
from finecomb.core.records import Record, Time

JOURNAL_FILE = "journal.jsonl"


class PrefixEntry(Record):
    """The messages that many requests start with, written once."""

    kind: Literal["head"] = "head"
    id: str
    """ID by which calls refer to the messages."""
    messages: tuple[ChatMessage, ...]


class CallEntry(Record):
    """A call that is about to be made. Until its outcome is recorded, the call may have been charged."""

    kind: Literal["call"] = "call"
    hash: str
    """Hash of the request."""
    attempt: int
    """Number of the attempt, starting at 1."""
    document: str
    head: str
    """ID of the messages that the request starts with."""
    message: str
    """The last message."""
    reserved: Decimal = Decimal(0)
    """The maximum cost of the call."""
    when: Time


class ReplyEntry(Record):
    """A reply as received."""

    kind: Literal["reply"] = "reply"
    hash: str
    reply: ChatReply
    cost: Decimal = Decimal(0)
    seconds: float = 0.0
    when: Time
    cached: bool = False
    """True if the reply was copied from another run at no cost."""


class FailureEntry(Record):
    """A call without a reply."""

    kind: Literal["failure"] = "failure"
    hash: str
    why: StorableText
    cost: Decimal = Decimal(0)
    """The maximum cost if the endpoint may have processed the request, otherwise 0."""
    when: Time
    final: bool = False
    """True if the endpoint rejected the request for good, so that a batch does not repeat it."""


class AdaptationEntry(Record):
    """A parameter that is sent differently from now on, because the endpoint rejected it."""

    kind: Literal["adaptation"] = "adaptation"
    host: str
    model: str
    change: ParameterChange
    when: Time


BatchStep = Literal["planned", "uploaded", "created", "collected", "failed"]


class BatchEntry(Record):
    """A step in the life of a batch. `planned` is on disk before the provider hears of the batch."""

    kind: Literal["batch"] = "batch"
    part: int
    """Number of the batch in the run, starting at 1."""
    step: BatchStep
    hashes: tuple[str, ...] = ()
    """Hashes of the requests, only in the first step."""
    digest: str = ""
    """Hash of the requests' content, only in the first step."""
    id: StorableText = ""
    """ID of the uploaded file or of the batch at the provider."""
    why: StorableText = ""
    """The reason of a failure."""
    when: Time


Entry = PrefixEntry | CallEntry | ReplyEntry | FailureEntry | AdaptationEntry | BatchEntry
_ENTRY_ADAPTER: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


@dataclass(frozen=True, slots=True)
class JournalContent:
    """The state of a run as recorded in its journal."""

    replies: Mapping[str, ReplyEntry] = field(default_factory=dict)
    """Replies by request hash. If a request has several, the first counts."""
    failures: Mapping[str, FailureEntry] = field(default_factory=dict)
    """The last failure of each request without a reply."""
    heads: frozenset[str] = frozenset()
    spent: Decimal = Decimal(0)
    """Cost of replies and failures, plus the maximum cost of calls without an outcome."""
    adaptations: tuple[AdaptationEntry, ...] = ()
    batches: Mapping[int, tuple[BatchEntry, ...]] = field(default_factory=dict)
    """The steps of each batch, by its number."""

    @classmethod
    def from_entries(cls, entries: Iterable[Entry]) -> JournalContent:
        """Summarise the entries of a journal."""
        replies: dict[str, ReplyEntry] = {}
        failures: dict[str, FailureEntry] = {}
        heads: set[str] = set()
        open_: dict[str, list[Decimal]] = {}
        adaptations: list[AdaptationEntry] = []
        batches: dict[int, tuple[BatchEntry, ...]] = {}
        spent = Decimal(0)
        for entry in entries:
            match entry:
                case PrefixEntry():
                    heads.add(entry.id)
                case CallEntry():
                    open_.setdefault(entry.hash, []).append(entry.reserved)
                case ReplyEntry():
                    replies.setdefault(entry.hash, entry)
                case FailureEntry():
                    failures[entry.hash] = entry
                case AdaptationEntry():
                    adaptations.append(entry)
                case BatchEntry():
                    batches[entry.part] = (*batches.get(entry.part, ()), entry)
            if isinstance(entry, FailureEntry | ReplyEntry):
                spent += entry.cost
                is_copy = isinstance(entry, ReplyEntry) and entry.cached
                if open_.get(entry.hash) and not is_copy:
                    open_[entry.hash].pop()  # an earlier call that a crash cut short may have been charged as well
        unanswered = {hash: entry for hash, entry in failures.items() if hash not in replies}
        reserved = sum((amount for amounts in open_.values() for amount in amounts), Decimal(0))
        return cls(replies, unanswered, frozenset(heads), spent + reserved, tuple(adaptations), batches)


def read_entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a journal, ignoring a last line that a crash cut off."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield _ENTRY_ADAPTER.validate_json(line)
            except ValidationError:
                if line.endswith(b"\n"):
                    raise


class Journal:
    """Writer of a journal.

    `add_entries` returns once the entries are on disk, and concurrent entries share one sync.
    """

    def __init__(self, folder: Path | None) -> None:
        self.path = folder / JOURNAL_FILE if folder else None
        self._file: IO[bytes] | None = None
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self.content = JournalContent.from_entries(read_entries(self.path)) if self.path else JournalContent()
        self.heads = set(self.content.heads)

    def open(self) -> None:
        """Open the file for appending and remove an incomplete last line."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        # A crash may leave half a line, which would corrupt the first new entry.
        complete_size = self.path.read_bytes().rfind(b"\n") + 1
        if complete_size < self._file.tell():
            self._file.truncate(complete_size)

    async def add_entries(self, *entries: Entry) -> None:
        """Write entries and wait until they are on disk."""
        if self._file is None:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lines = b"".join(entry.model_dump_json(exclude_defaults=False).encode() + b"\n" for entry in entries)
        self._waiting.append((lines, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_waiting_entries())
        await done

    async def _write_waiting_entries(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write_lines, b"".join(lines for lines, _ in batch))
            except OSError as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
            else:
                for _, done in batch:
                    if not done.done():
                        done.set_result(None)

    def _write_lines(self, lines: bytes) -> None:
        assert self._file is not None
        self._file.write(lines)
        self._file.flush()
        os.fsync(self._file.fileno())

    async def close(self) -> None:
        """Finish pending writes and close the file."""
        if self._writer is not None:
            await self._writer
        if self._file is not None:
            self._file.close()
            self._file = None


def read_cached_replies(runs: Path) -> dict[str, ReplyEntry]:
    """Read all replies in the journals of a study's runs, by request hash."""
    return read_shared_entries(runs)[0]


def read_shared_entries(runs: Path) -> tuple[dict[str, ReplyEntry], list[AdaptationEntry]]:
    """Read what the runs of a study share: replies by request hash, and what was learned about endpoints."""
    replies: dict[str, ReplyEntry] = {}
    adaptations: list[AdaptationEntry] = []
    for path in sorted(runs.glob(f"*/{JOURNAL_FILE}")):
        for entry in read_entries(path):
            if isinstance(entry, ReplyEntry):
                replies.setdefault(entry.hash, entry)
            elif isinstance(entry, AdaptationEntry):
                adaptations.append(entry)
    return replies, adaptations
