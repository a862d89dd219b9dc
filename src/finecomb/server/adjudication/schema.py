"""Requests and responses of the adjudication page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from finecomb.core.protocol import Label
from finecomb.core.question import Question
from finecomb.core.records import AlternativeMark, Answers, Antecedents, Id, Json, Record, Text, Time
from finecomb.core.span import Span
from finecomb.server.researchers.schema import Figure, ResponseRecord
from finecomb.server.schema import LabelLook
from finecomb.statistics.gold.decisions import DecisionType

DISPUTE_KEY_PATTERN = r"[0-9a-f]{16}|new-[0-9a-z-]{8,40}"
"""Key of a dispute, created by the server, or by the browser for an error that no annotator marked."""


class AdjudicationRow(ResponseRecord):
    """Text in the list of texts to adjudicate."""

    id: Id
    start: str
    """First words of the text."""
    places: int
    decided: int
    """Disputes with a decision, including those left for discussion."""
    discuss: int
    """Disputes left for discussion."""
    differ: int
    """Undecided disputes on which the annotators differ."""
    agreed: int
    """Undecided disputes on which all annotators agree."""
    readers: int
    state: Literal["open", "done", "elsewhere"]
    """`done` when gold is submitted and covers every dispute; `elsewhere` when gold has another source."""


class AdjudicationList(ResponseRecord):
    """Texts to adjudicate."""

    rows: tuple[AdjudicationRow, ...]
    total: int
    """Number of submitted texts."""
    done: int
    why: str = ""
    """Reason why there is nothing to adjudicate."""


class AdjudicatedMark(Record):
    """Span, label and answers, without the annotator."""

    spans: tuple[Span, ...]
    quotes: tuple[Text, ...] = Field(max_length=50)
    label: Text | None
    answers: Answers = {}
    antecedents: Antecedents | None = None
    alternatives: tuple[tuple[AlternativeMark, ...], ...] = Field(default=(), max_length=50)
    """Other interpretations of the same error, each a complete set of marks."""


class OpinionCard(AdjudicatedMark):
    """Mark of one annotator in a dispute."""

    annotator: int
    """Number in place of the annotator's name, the same throughout the text."""
    unlocated: str = ""


class DecisionCard(ResponseRecord):
    """Decision about a dispute."""

    what: DecisionType
    by: str
    when: Time
    reading: int | None
    """Accepted mark, counted from 1."""


class DisputeCard(ResponseRecord):
    """Dispute with the marks of all annotators."""

    key: Id
    version: int
    """Version to send with a decision; 0 without a decision."""
    readings: tuple[OpinionCard, ...]
    votes: int
    readers: int
    agreed: bool
    """True when all annotators marked the same words with the same label."""
    kept: bool
    """True when `finecomb gold` would keep the mark, with at least two votes."""
    merged: AdjudicatedMark | None
    """Mark that `finecomb gold` merges from the marks; without a label when there is no majority."""
    decision: DecisionCard | None
    gold: tuple[AdjudicatedMark, ...]
    """Marks of gold for the dispute."""
    later: int
    """Number of marks added after the decision."""


class AdjudicatePage(ResponseRecord):
    """Text with its disputes."""

    id: Id
    text: Text
    context: Mapping[Id, Text]
    data: Json
    labels: tuple[Label, ...]
    looks: tuple[LabelLook, ...]
    questions: tuple[Question, ...]
    unlabelled: bool
    readers: int
    places: tuple[DisputeCard, ...]
    state: Literal["untouched", "draft", "submitted"]
    """State of the gold annotation."""


class NewRuling(Record):
    """Decision about one dispute."""

    base: int = Field(ge=0)
    """Version of the decision shown on the page."""
    what: DecisionType
    reading: int | None = Field(default=None, ge=1)
    """Number of the mark that is accepted or changed."""
    marks: tuple[AdjudicatedMark, ...] = Field(default=(), max_length=20)
    """One mark for `changed` and `added`, two or more for `split`, otherwise none."""


class UnanimousDisputes(Record):
    """Disputes with unanimous marks to accept."""

    places: tuple[Id, ...] = Field(max_length=10_000)
    """Keys of the disputes shown; empty for a text without marks."""


# --- the second pass ----------------------------------------------------------------------------------------------


class SecondPassRow(ResponseRecord):
    """Changes to one annotator's marks in the second pass."""

    annotator: str
    texts: int
    before: int
    after: int
    kept: int
    changed: int
    boundaries: int
    label: int
    answers: int
    withdrawn: int
    from_others: int
    new: int


class SecondPass(ResponseRecord):
    """Progress and results of the second pass."""

    round: int
    """Current pass; 0 during the first pass."""
    wanted: int
    """Texts to review again, over all annotators."""
    begun: int
    done: int
    rows: tuple[SecondPassRow, ...]
    """One row per annotator, then a row for all annotators."""
    agreement: Mapping[Literal["before", "after", "difference"], Figure]
    """Krippendorff's alpha on words for any label, with the same people and texts; empty before a text is done."""
    notes: tuple[str, ...] = ()
