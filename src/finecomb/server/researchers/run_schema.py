"""What goes between the server and the researcher's page about runs of language models. Never a key."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from finecomb.core.records import Id, Record, Text, Time
from finecomb.server.researchers.schema import ResponseRecord

Price = Annotated[float, Field(ge=0, le=1_000_000)]
RunState = Literal["running", "finished", "stopped"]
TextState = Literal["marked", "no errors", "answered", "unreadable", "refused", "truncated", "empty", "no reply", ""]
"""What came back for a text; empty when nothing was asked yet."""


class QuoteCounts(ResponseRecord):
    """How the quotes of a run were placed."""

    exact: int
    near: int
    """In another spelling, elided, or with a slip; also what was flagged."""
    missing: int
    """Not in the text, or not to be told where."""


class RunRow(ResponseRecord):
    """One run: who was asked, how far it is, what came back, and what it cost."""

    id: Id
    """The name of its folder."""
    name: str
    """Of the annotator."""
    model: str
    endpoint: str
    """Where the model answers: its choice under the study's models, else the host."""
    choice: str
    """The name under the study's models; empty when it is no longer there."""
    protocol: Id
    prompt: str
    """Hash of what is asked."""
    samples: int
    temperature: float | None
    max_tokens: int
    state: RunState
    why: str
    """Why it ended early."""
    created: Time
    when: Time
    """When the state was reached."""
    teeth: tuple[TextState, ...]
    """What came back for each text, in order; with several samples, text by text."""
    look: int
    """Texts to look at: failures that nobody has decided about."""
    quotes: QuoteCounts
    cost: float
    budget: float | None
    priced: bool
    seconds_left: float | None


class ModelChoice(ResponseRecord):
    """A model that can be asked from the page."""

    name: str
    model: str
    endpoint: str
    priced: bool
    samples: int
    max_tokens: int
    budget: float | None
    problem: str
    """Why it cannot be asked now; empty when it can."""


class RunList(ResponseRecord):
    """All runs of a study, and what can be asked."""

    runs: tuple[RunRow, ...]
    models: tuple[ModelChoice, ...]
    protocols: tuple[Id, ...]
    """Those of the study; the first is in force."""
    texts: int
    cost: float
    """Of all runs together."""
    keys: tuple[str, ...]
    """Names of environment variables that the server may take keys from."""


class FailedText(ResponseRecord):
    """A text without a reading: what came instead, as it came."""

    document: Id
    annotation: Id
    """Empty where no reply came at all."""
    state: TextState
    why: str
    reply: str
    """As it came; empty when nothing did."""
    marks_read: int
    """Complete marks in a reply that was cut off."""
    when: Time | None
    seconds: float | None
    tokens: int | None
    settled: str
    """Who decided to leave the text out; empty while nobody has."""


class PlacedQuote(ResponseRecord):
    """A quote that does not stand in its text as it was given."""

    mark: Id
    annotation: Id
    document: Id
    label: Text | None
    quoted: Text
    """As the model wrote it."""
    words: Text
    """The words of the text that it was placed on; empty when it was not placed."""
    why: str
    """How it was placed, or why not."""
    decision: Literal["", "accepted", "refused"]


class RunPage(ResponseRecord):
    """One run with what is to be looked at."""

    run: RunRow
    failures: tuple[FailedText, ...]
    quotes: tuple[PlacedQuote, ...]
    """Those to look at, the first few hundred."""


class NewRun(Record):
    """A run to be started, or to go on."""

    model: Text = Field(min_length=1, max_length=200)
    """A name under the study's models, or `local:` and the name of one that runs here."""
    name: Text = Field(default="", max_length=200)
    """Of the annotator; the model's when empty."""
    protocol: Id | None = None
    """The one in force when null."""
    first: int | None = Field(default=None, ge=1, le=10_000_000)
    """Only the first so many texts."""
    document: Id | None = None
    """Only this text: to try, or to see what is sent."""
    samples: int = Field(default=1, ge=1, le=20)
    max_tokens: int = Field(default=2048, ge=1, le=1_000_000)
    budget: float | None = Field(default=None, gt=0, le=1_000_000)
    template: Text = Field(default="", max_length=200_000)
    """A prompt of one's own; written from the protocol when empty."""


class SentPiece(ResponseRecord):
    """A stretch of a message: the template's own words, or what a variable was filled with."""

    variable: str
    text: str


class SentMessage(ResponseRecord):
    """A message as the model gets it."""

    role: str
    pieces: tuple[SentPiece, ...]


class OtherPrompt(ResponseRecord):
    """A prompt of an earlier run, and the words in which the one to be sent differs from it."""

    run: str
    """Name of the last run with that prompt."""
    prompt: str
    """Its hash."""
    is_same_name: bool
    """Whether it is the last run under the name that is to be used."""
    changes: tuple[str, ...]


class RunPreview(ResponseRecord):
    """Exactly what would be sent for one text, and what the whole would cost."""

    document: Id
    number: int
    """Of the text among those to be asked, from 1."""
    texts: int
    calls: int
    messages: tuple[SentMessage, ...]
    tokens: int
    """About so many in this text's request."""
    prompt: str
    likely: float | None
    most: float | None
    """Null where no price is known."""
    same_as: str
    """An earlier run with the same prompt; empty when there is none."""
    clash: str
    """Why the name cannot be used for this; empty when it can."""
    others: tuple[OtherPrompt, ...]
    """Other prompts of earlier runs, the last one under the same name first."""


class RetryRequest(Record):
    """Ask for a text once more."""

    document: Id
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """As many as before when null."""


class PlacementDecision(Record):
    """Accept an approximate placement, or refuse it."""

    mark: Id
    annotation: Id
    accept: bool


class NewModel(Record):
    """A model that the study may ask from now on."""

    name: Id = Field(max_length=200)
    model: Text = Field(min_length=1, max_length=200)
    base_url: Text = Field(default="", max_length=1000)
    key_env: Text = Field(default="", max_length=200)
    """The name of an environment variable of the server; never a key."""
    price: tuple[Price, Price] | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
