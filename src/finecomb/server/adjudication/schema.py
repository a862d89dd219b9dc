"""What goes between the server and the page on which researchers decide about gold."""

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

Align = Literal["auto", "item", "overlap", "overlap-label", "gamma"]
DISPUTE_KEY_PATTERN = r"[0-9a-f]{16}|new-[0-9a-z-]{8,40}"
"""Of a place: made by the server, or by the browser for one that nobody marked."""


class AdjudicationRow(ResponseRecord):
    """A text in the list, those with most to decide first."""

    id: Id
    start: str
    """Its first words."""
    places: int
    decided: int
    """Places about which something was decided, also those left for discussion."""
    discuss: int
    """Left for discussion."""
    differ: int
    """Undecided places where people differ."""
    agreed: int
    """Undecided places where all agree."""
    readers: int
    state: Literal["open", "done", "elsewhere"]
    """`done` when gold is handed in and covers every place; `elsewhere` when its gold was not decided here."""


class AdjudicationList(ResponseRecord):
    """Texts to adjudicate."""

    rows: tuple[AdjudicationRow, ...]
    total: int
    """Texts that somebody has handed in."""
    done: int
    why: str = ""
    """Why there is nothing to adjudicate."""


class AdjudicatedMark(Record):
    """Words, a label and answers; who said so is not told."""

    spans: tuple[Span, ...]
    quotes: tuple[Text, ...] = Field(max_length=50)
    label: Text | None
    answers: Answers = {}
    antecedents: Antecedents | None = None
    alternatives: tuple[tuple[AlternativeMark, ...], ...] = Field(default=(), max_length=50)
    """The same mistake, read otherwise: each a complete other set of marks."""


class OpinionCard(AdjudicatedMark):
    """What one annotator marked at a place."""

    annotator: int
    """A number in place of the name, the same throughout the text."""
    unlocated: str = ""


class DecisionCard(ResponseRecord):
    """What was decided about a place."""

    what: DecisionType
    by: str
    when: Time
    reading: int | None
    """Which reading was taken, counted from 1."""


class DisputeCard(ResponseRecord):
    """One place."""

    key: Id
    version: int
    """Sent back with a decision; 0 as long as there is none."""
    readings: tuple[OpinionCard, ...]
    votes: int
    readers: int
    agreed: bool
    """Whether everybody marked the same words with the same label."""
    kept: bool
    """Whether `finecomb gold` would keep it, with at least two votes."""
    merged: AdjudicatedMark | None
    """What `finecomb gold` makes of the readings; without a label where there is no majority."""
    decision: DecisionCard | None
    gold: tuple[AdjudicatedMark, ...]
    """What gold has there."""
    later: int
    """Readings that came in after the decision."""


class AdjudicatePage(ResponseRecord):
    """A text with its places."""

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
    """Of the gold annotation."""


class NewRuling(Record):
    """A decision about one place."""

    base: int = Field(ge=0)
    """The version of the decision that was on the screen."""
    what: DecisionType
    reading: int | None = Field(default=None, ge=1)
    """The one that is taken or changed."""
    marks: tuple[AdjudicatedMark, ...] = Field(default=(), max_length=20)
    """For `changed` and `added` one, for `split` two or more; the others say it without."""


class UnanimousDisputes(Record):
    """Places that all agree on, taken in one go."""

    places: tuple[Id, ...] = Field(max_length=10_000)
    """Those that were looked at; none for a text in which nobody marked anything."""


# --- the second pass ----------------------------------------------------------------------------------------------


class SecondPassRow(ResponseRecord):
    """What became of one annotator's marks in the second pass."""

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
    """The second pass: whether it runs, how far it is, and what it changed."""

    round: int
    """0 as long as only the first pass is given out."""
    wanted: int
    """Texts to be looked at again, over all annotators."""
    begun: int
    done: int
    rows: tuple[SecondPassRow, ...]
    """One for each annotator, all of them last."""
    agreement: Mapping[Literal["before", "after", "difference"], Figure]
    """Krippendorff's alpha on words, any label, of the same people on the same texts; none before somebody is done."""
    notes: tuple[str, ...] = ()
