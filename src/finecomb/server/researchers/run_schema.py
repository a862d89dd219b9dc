"""Requests and responses about language model runs. They never contain a key."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from finecomb.api.annotators import annotate
from finecomb.core.records import Id, ModelSettings, Record, Text, Time
from finecomb.server.derived_fields import parameter_field
from finecomb.server.researchers.schema import ResponseRecord

Price = Annotated[float, Field(ge=0, le=1_000_000)]
RunState = Literal["running", "finished", "stopped"]
TextState = Literal["marked", "no errors", "answered", "unreadable", "refused", "truncated", "empty", "no reply", ""]
"""Result for a text; empty when it was not sent yet."""


class QuoteCounts(ResponseRecord):
    """Number of quotes of a run by the method of location."""

    exact: int
    near: int
    """Different spelling, omitted words or small deviations; also flagged quotes."""
    missing: int
    """Not in the text, or at an ambiguous position."""


class RunRow(ResponseRecord):
    """Run with its model, progress, results and cost."""

    id: Id
    """Name of the run's folder."""
    name: str
    """Name of the annotator."""
    model: str
    endpoint: str
    """Endpoint of the model: its name in the study, or the host."""
    choice: str
    """Name of the model in the study; empty when the model was removed."""
    protocol: Id
    prompt: str
    """Hash of the prompt."""
    samples: int
    temperature: float | None
    max_tokens: int
    state: RunState
    why: str
    """Reason for an early end."""
    created: Time
    when: Time
    """Time at which the state was reached."""
    teeth: tuple[TextState, ...]
    """Results per text, in order; with several samples, text by text."""
    look: int
    """Number of failed texts that need review."""
    quotes: QuoteCounts
    cost: float
    budget: float | None
    priced: bool
    seconds_left: float | None


class ModelChoice(ResponseRecord):
    """Model that is available on the page."""

    name: str
    model: str
    endpoint: str
    priced: bool
    samples: int
    max_tokens: int
    budget: float | None
    problem: str
    """Reason why the model cannot be used now; empty when it can be used."""


class RunList(ResponseRecord):
    """All runs of a study, and the available models."""

    runs: tuple[RunRow, ...]
    models: tuple[ModelChoice, ...]
    protocols: tuple[Id, ...]
    """Protocols of the study, the current one first."""
    texts: int
    cost: float
    """Total cost of all runs."""
    keys: tuple[str, ...]
    """Environment variables from which the server may take keys."""


class FailedText(ResponseRecord):
    """Text without a valid reply."""

    document: Id
    annotation: Id
    """Annotation ID; empty without any reply."""
    state: TextState
    why: str
    reply: str
    """Raw reply; empty without one."""
    marks_read: int
    """Complete marks in a truncated reply."""
    when: Time | None
    seconds: float | None
    tokens: int | None
    settled: str
    """Researcher who decided to omit the text; empty while undecided."""


class PlacedQuote(ResponseRecord):
    """Quote that does not match its text exactly."""

    mark: Id
    annotation: Id
    document: Id
    label: Text | None
    quoted: Text
    """Quote as the model wrote it."""
    words: Text
    """Words of the text at the quote's position; empty when the quote was not located."""
    why: str
    """Method by which the quote was located, or the reason why it was not."""
    decision: Literal["", "accepted", "refused"]


class RunPage(ResponseRecord):
    """Run with its failures and doubtful quotes."""

    run: RunRow
    failures: tuple[FailedText, ...]
    quotes: tuple[PlacedQuote, ...]
    """Quotes to review, limited to a few hundred."""


class NewRun(Record):
    """Run to start or resume, with parameters of `finecomb.annotate`."""

    model: Text = Field(min_length=1, max_length=200)
    """Name of one of the study's models, or `local:` and the name of a local model."""
    name: Text = parameter_field(annotate, "name", max_length=200)
    protocol: Id | None = None
    """Protocol; the current one when null."""
    first: int | None = parameter_field(annotate, "limit", le=10_000_000)
    document: Id | None = None
    """Single text, for a test or a preview."""
    samples: int = parameter_field(annotate, "samples", ModelSettings, le=20)
    max_tokens: int = parameter_field(annotate, "max_tokens", ModelSettings, le=1_000_000)
    budget: float | None = parameter_field(annotate, "budget", ModelSettings, le=1_000_000)
    template: Text = Field(default="", max_length=200_000)
    """Custom prompt; derived from the protocol when empty."""


class SentPiece(ResponseRecord):
    """Part of a message: text of the template, or the value of a variable."""

    variable: str
    text: str


class SentMessage(ResponseRecord):
    """Message as sent to the model."""

    role: str
    pieces: tuple[SentPiece, ...]


class OtherPrompt(ResponseRecord):
    """Prompt of an earlier run, and its differences from the new one."""

    run: str
    """Name of the last run with that prompt."""
    prompt: str
    """Hash of the prompt."""
    is_same_name: bool
    """True for the last run with the same name."""
    changes: tuple[str, ...]


class RunPreview(ResponseRecord):
    """Exact request for one text, and the cost of the whole run."""

    document: Id
    number: int
    """Position of the text among those to send, counted from 1."""
    texts: int
    calls: int
    messages: tuple[SentMessage, ...]
    tokens: int
    """Estimated tokens of this request."""
    prompt: str
    likely: float | None
    most: float | None
    """Maximum cost; null when no price is known."""
    same_as: str
    """Earlier run with the same prompt; empty when there is none."""
    clash: str
    """Reason why the run cannot start; empty when it can."""
    others: tuple[OtherPrompt, ...]
    """Other prompts of earlier runs, the last one with the same name first."""


class RetryRequest(Record):
    """Request to send a text again."""

    document: Id
    max_tokens: int | None = parameter_field(
        annotate, "max_tokens", le=1_000_000, description="Maximum tokens; unchanged when null."
    )


class PlacementDecision(Record):
    """Decision about an approximate position of a quote."""

    mark: Id
    annotation: Id
    accept: bool


class NewModel(Record):
    """Model to add to the study."""

    name: Id = Field(max_length=200)
    model: Text = Field(min_length=1, max_length=200)
    base_url: Text = parameter_field(annotate, "base_url", ModelSettings, max_length=1000)
    key_env: Text = parameter_field(
        annotate,
        "key_env",
        ModelSettings,
        max_length=200,
        description="Name of an environment variable on the server, never a key.",
    )
    price: tuple[Price, Price] | None = None
    temperature: float | None = parameter_field(annotate, "temperature", ModelSettings)
