"""Requests and responses of researchers. They are never sent to annotators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from finecomb.api.collection import links
from finecomb.core.records import (
    AnnotationPhase,
    AnnotationStatus,
    AnnotatorKind,
    Answers,
    Exclusion,
    Id,
    Json,
    QualificationRecord,
    Record,
    Segment,
    Settings,
    Text,
    Time,
)
from finecomb.core.results import Estimate
from finecomb.core.span import Span
from finecomb.server.derived_fields import parameter_field
from finecomb.server.schema import LabelLook, State

Role = Literal["owner", "editor", "viewer"]
ReviewReason = Literal["fast", "few", "apart", "checks"]
"""Reason for a review: very fast, few marks, low agreement, or failed attention checks."""


class ResponseRecord(Record):
    """Base class of responses, whose fields are always present and required in the API description."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


# --- figures ------------------------------------------------------------------------------------------------------


class Figure(ResponseRecord):
    """Number with its interval; null with a reason in `why` when undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""
    """Reason for a missing value or interval."""
    signature: str = ""
    """Signature of the estimate."""

    @classmethod
    def from_estimate(cls, estimate: Estimate, scale: float = 1) -> Figure:
        """Build a figure from an estimate, multiplied by `scale`."""
        ends = (estimate.value, estimate.low, estimate.high)
        value, low, high = (None if math.isnan(end) else end * scale for end in ends)
        return cls(value=value, low=low, high=high, why=estimate.why, signature=str(estimate.signature))


class Quartiles(ResponseRecord):
    """Median and quartiles."""

    median: float | None
    lower: float | None = None
    upper: float | None = None
    count: int = 0
    """Number of values."""
    why: str = ""
    signature: str = ""


class StudyProgress(ResponseRecord):
    """Progress towards a planned total."""

    done: int
    of: int


# --- overview -----------------------------------------------------------------------------------------------------


class LabelRow(ResponseRecord):
    """Agreement on one label."""

    label: str
    marks: int
    agreement: Figure


class ModelRow(ResponseRecord):
    """Progress and results of one system's texts."""

    model: str | None
    """Name of the system; None when unknown."""
    teeth: tuple[int, ...]
    """Number of annotations per document, in descending order."""
    progress: StudyProgress
    rate: Figure
    """Marks per 100 words."""


class AnnotatorRow(ResponseRecord):
    """Annotator with progress and quality figures."""

    id: Id
    name: str
    """Display name, or the ID."""
    kind: AnnotatorKind
    progress: StudyProgress
    """Submitted texts out of those expected."""
    drafts: int
    marks: Figure
    """Marks per text."""
    active: Quartiles
    """Active seconds per text."""
    pay: float | None
    """Pay per active hour."""
    agreement: Figure
    """F1 on words with the majority of the others."""
    checks: StudyProgress
    """Passed attention checks out of those taken."""
    look: tuple[ReviewReason, ...]
    """Reasons for a review."""
    excluded: Exclusion | None = None


class WatchedFigure(ResponseRecord):
    """Mean over texts with an interval that is valid at any time, so that collection may stop once it is narrow."""

    measure: Literal["texts with an error", "marks per text"]
    kind: Literal["bounded", "counts"]
    """Kind of interval: `bounded` is exact from the first text on; `counts` is approximate and starts at 30 texts."""
    says: str
    """Description of the interval."""
    texts: int
    figure: Figure


class RecentChange(ResponseRecord):
    """Changes within the last day."""

    annotations: int
    """Submitted annotations."""
    marks: int
    """Marks in these annotations."""
    people: int
    """People who submitted something for the first time."""
    agreement: float | None
    """Agreement one day ago; null when undefined."""


class Overview(ResponseRecord):
    """Overview page for researchers."""

    title: str
    state: State
    protocol: Id
    looks: tuple[LabelLook, ...]
    per_document: int
    """Annotators that each document needs."""
    documents: int
    annotations: StudyProgress
    drafts: int
    pace: Figure
    """Annotations per day over the last week."""
    days: float | None
    """Days until completion at this pace."""
    agreement: Figure
    """Krippendorff's alpha on words, any label."""
    active: Quartiles
    """Active seconds per text."""
    pay: Quartiles
    """Pay per hour, over annotators."""
    spent: float | None
    """Pay, bonuses, fees and staff so far; null when no price is set."""
    pay_floor: float | None
    """Minimum pay per hour; null when not set."""
    budget: float | None
    """Budget of the study, or its expected total cost."""
    currency: str
    labels: tuple[LabelRow, ...]
    models: tuple[ModelRow, ...]
    watched: tuple[WatchedFigure, ...]
    """Means with intervals that are valid at any time; empty without marks."""
    people: tuple[AnnotatorRow, ...]
    """People, those who need review first."""
    others: tuple[AnnotatorRow, ...]
    """Models, detectors, checkers and gold."""
    since: RecentChange
    moved: Mapping[str, Id]
    """Most influential text per figure: `agreement`, `active`, `label/NAME`, `model/NAME`, `watched/MEASURE`."""
    as_of: Time
    """Time of computation."""


# --- documents ----------------------------------------------------------------------------------------------------

DocumentFilter = Literal["all", "unfinished", "disputed"]


class DocumentRow(ResponseRecord):
    """Document in the list."""

    id: Id
    start: str
    """First words of the text."""
    model: str | None
    progress: StudyProgress
    marks: int
    alpha: float | None
    """Agreement on its words; null when undefined."""
    disputed: bool
    check: bool
    """True for an attention check."""


class DocumentList(ResponseRecord):
    """Page of the document list."""

    rows: tuple[DocumentRow, ...]
    total: int
    """Number of documents with this filter and search."""
    counts: Mapping[DocumentFilter, int]
    """Number of documents per filter, with the same search."""


class AnnotatorMark(ResponseRecord):
    """Mark as shown to researchers."""

    id: Id
    spans: tuple[Span, ...]
    quotes: tuple[Text, ...]
    label: Text | None
    answers: Answers = {}
    antecedents: tuple[Span, ...] = ()
    votes: int | None = None
    unlocated: str = ""
    placed: str = ""
    """Method by which a language model's quote was located; empty for people."""


class AnnotationBars(ResponseRecord):
    """Annotation of a document, shown as a row of bars."""

    annotation: Id
    annotator: Id
    name: str
    kind: AnnotatorKind
    protocol: Id
    round: int
    phase: AnnotationPhase
    status: AnnotationStatus
    excluded: Exclusion | None = None
    """Exclusion of the annotation, or else of its annotator."""
    seconds: float | None = None
    """Active seconds where known, else elapsed seconds."""
    marks: tuple[AnnotatorMark, ...]
    answers: Answers = {}


class DocumentPage(ResponseRecord):
    """Document with all its annotations."""

    id: Id
    text: Text
    context: Mapping[Id, Text]
    references: tuple[Text, ...]
    segments: tuple[Segment, ...]
    meta: Mapping[Text, Json]
    progress: StudyProgress
    alpha: float | None
    looks: tuple[LabelLook, ...]
    answers: Mapping[str, tuple[int | float | str | bool, ...]]
    """Options of each ordinal question in ascending order, e.g. to show severity as dots."""
    readers: tuple[AnnotationBars, ...]
    """Annotations of people, then machines, then gold."""


# --- annotators ---------------------------------------------------------------------------------------------------


class AnnotatorWork(ResponseRecord):
    """Annotation in an annotator's list."""

    annotation: Id
    document: Id
    status: AnnotationStatus
    phase: AnnotationPhase
    submitted: Time | None
    seconds: float | None
    marks: int
    check: Literal["", "passed", "failed"] = ""
    excluded: Exclusion | None = None


class LabelCount(ResponseRecord):
    """Number of marks with one label."""

    label: str
    marks: int
    share: Figure
    """Share of the annotator's marks."""


class WrittenComment(ResponseRecord):
    """Comment about a whole text."""

    document: Id
    question: str
    text: str


class AnnotatorPage(ResponseRecord):
    """Page of one annotator."""

    person: AnnotatorRow
    condition: str
    platform: str
    qualification: QualificationRecord | None
    survey: Answers
    meta: Mapping[Text, Json]
    looks: tuple[LabelLook, ...]
    labels: tuple[LabelCount, ...]
    agreement: tuple[LabelRow, ...]
    """Agreement with the others, by label."""
    pieces: tuple[AnnotatorWork, ...]
    notes: tuple[WrittenComment, ...]
    """Comments, and reasons why a text could not be judged."""


class ReasonedDecision(Record):
    """Reason for a decision."""

    reason: Text = Field(min_length=1, max_length=2000)


# --- export -------------------------------------------------------------------------------------------------------


class Export(ResponseRecord):
    """Export format."""

    format: str
    title: str
    file: str
    """File name of the download."""
    loses: str
    """Features of this study that the format would lose, with counts; empty when there are none."""


# --- study management ---------------------------------------------------------------------------------------------


class NewState(Record):
    """Status to set: open, paused, closed or pilot."""

    state: State


class ProtocolRow(ResponseRecord):
    """Version of a protocol."""

    id: Id
    title: str
    annotations: int
    """Annotations under this version; it is frozen once there are any."""
    current: bool
    """True for the current protocol."""


class StudyConfig(ResponseRecord):
    """State and settings of the study."""

    state: State
    settings: Settings
    per_document: int
    """Default number of annotators per document, from the protocol."""
    protocols: tuple[ProtocolRow, ...]
    documents: int
    facts: tuple[str, ...]
    """Keys of document meta that can be used as strata."""
    machines: tuple[Id, ...]
    """Annotators whose marks can be offered."""


class UploadResult(ResponseRecord):
    """Result of an upload."""

    documents: int
    notes: tuple[str, ...] = ()
    """Notes about the file."""


class PersonalLinkResponse(ResponseRecord):
    """New personal link, shown once."""

    annotator: Id
    url: str


class AnnotatorLinks(ResponseRecord):
    """Valid links of one annotator."""

    annotator: Id
    links: int
    used: Time | None
    """Time of last use."""


class Links(ResponseRecord):
    """Open link and personal links."""

    open: str
    """URL of the open link; empty when it is off."""
    personal: tuple[AnnotatorLinks, ...]


class NewLinks(Record):
    """Personal links to create."""

    count: int = parameter_field(links, "new", le=500)
    names: tuple[Id, ...] = Field(default=(), max_length=500)
    """IDs of people, new or known."""


class OpenLinkRequest(Record):
    """Request to create a new open link, or to turn it off."""

    on: bool


class DisplayName(Record):
    """Display name of an annotator; empty for the ID."""

    name: Text = Field(max_length=200)


class ResearcherRow(ResponseRecord):
    """Researcher with access to the study."""

    id: Id
    role: Role
    since: Time


class Invitation(Record):
    """Researcher to invite."""

    id: Id = Field(max_length=200)
    role: Role


class NewRole(Record):
    """Role to set."""

    role: Role


class SignInLink(ResponseRecord):
    """Single-use link, shown once."""

    url: str


class AuditEntry(ResponseRecord):
    """Entry of the audit log."""

    when: Time
    who: str
    did: str
    about: Mapping[str, Json]
