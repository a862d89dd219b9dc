"""What goes between the server and the researcher's pages; never sent to annotators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from finecomb.core.estimate import Estimate
from finecomb.core.records import (
    AnnotatorKind,
    Answers,
    Exclusion,
    Id,
    Json,
    Phase,
    QualificationRecord,
    Record,
    Segment,
    Settings,
    Status,
    Text,
    Time,
)
from finecomb.core.span import Span
from finecomb.server.schema import LabelLook, State

Role = Literal["owner", "editor", "viewer"]
ReviewReason = Literal["fast", "few", "apart", "checks"]
"""Why to look at somebody first: very fast, few marks, apart from the others, failed attention checks."""


class ResponseRecord(Record):
    """Base of what only the server sends: every field is always there, and the description says so."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


# --- numbers ------------------------------------------------------------------------------------------------------


class Figure(ResponseRecord):
    """A number with its interval; undefined is null, and `why` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""
    """Why there is no value, or no interval."""
    signature: str = ""
    """How it was made."""

    @classmethod
    def from_estimate(cls, estimate: Estimate, scale: float = 1) -> Figure:
        """An estimate as it travels, times `scale`."""
        ends = (estimate.value, estimate.low, estimate.high)
        value, low, high = (None if math.isnan(end) else end * scale for end in ends)
        return cls(value=value, low=low, high=high, why=estimate.why, signature=str(estimate.signature))


class Quartiles(ResponseRecord):
    """A median with the quartiles around it."""

    median: float | None
    lower: float | None = None
    upper: float | None = None
    count: int = 0
    """Of how many values."""
    why: str = ""
    signature: str = ""


class StudyProgress(ResponseRecord):
    """How much of what is planned is there."""

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
    """None where documents do not say."""
    teeth: tuple[int, ...]
    """Annotations of each document, most first."""
    progress: StudyProgress
    rate: Figure
    """Marks per 100 words."""


class AnnotatorRow(ResponseRecord):
    """One annotator's row."""

    id: Id
    name: str
    """As the researcher calls them; the id when there is no name."""
    kind: AnnotatorKind
    progress: StudyProgress
    """Texts handed in, of those they can expect."""
    drafts: int
    marks: Figure
    """Per text."""
    active: Quartiles
    """Seconds per text."""
    pay: float | None
    """Per hour of active time."""
    agreement: Figure
    """F1 on words with what most of the others marked."""
    checks: StudyProgress
    """Attention checks passed, of those taken."""
    look: tuple[ReviewReason, ...]
    """Why to look at them first."""
    excluded: Exclusion | None = None


class WatchedFigure(ResponseRecord):
    """A mean over texts whose interval holds at every moment, so that one may stop when it is narrow enough."""

    measure: Literal["texts with an error", "marks per text"]
    kind: Literal["bounded", "counts"]
    """`bounded` holds exactly from the first text on, `counts` nearly and from 30 texts on."""
    says: str
    """Which kind of interval it is, in words."""
    texts: int
    figure: Figure


class RecentChange(ResponseRecord):
    """What changed within the last day."""

    annotations: int
    """Handed in."""
    marks: int
    """In them."""
    people: int
    """Who handed something in for the first time."""
    agreement: float | None
    """What it was a day ago; null where it was undefined."""


class Overview(ResponseRecord):
    """The researcher's first page."""

    title: str
    state: State
    protocol: Id
    looks: tuple[LabelLook, ...]
    per_document: int
    """Annotators that each document should get."""
    documents: int
    annotations: StudyProgress
    drafts: int
    pace: Figure
    """Annotations a day over the last week."""
    days: float | None
    """To go at this pace."""
    agreement: Figure
    """Krippendorff's alpha on words, any label."""
    active: Quartiles
    """Seconds per text."""
    pay: Quartiles
    """Per hour, over annotators."""
    spent: float | None
    """Pay, bonuses, fees and staff so far; null where no price is set."""
    pay_floor: float | None
    """What an hour pays at least; null where the study does not say."""
    budget: float | None
    """The study's, else what it costs when all is handed in."""
    currency: str
    labels: tuple[LabelRow, ...]
    models: tuple[ModelRow, ...]
    watched: tuple[WatchedFigure, ...]
    """Means that may be watched; none where nothing is marked."""
    people: tuple[AnnotatorRow, ...]
    """Those to look at first come first."""
    others: tuple[AnnotatorRow, ...]
    """Models, detectors, checkers and gold."""
    since: RecentChange
    moved: Mapping[str, Id]
    """The text that moved a figure most: `agreement`, `active`, `label/NAME`, `model/NAME`, `watched/MEASURE`."""
    as_of: Time
    """When it was computed."""


# --- documents ----------------------------------------------------------------------------------------------------

DocumentFilter = Literal["all", "unfinished", "disputed"]


class DocumentRow(ResponseRecord):
    """A document in the list."""

    id: Id
    start: str
    """Its first words."""
    model: str | None
    progress: StudyProgress
    marks: int
    alpha: float | None
    """Agreement on its words; null where undefined."""
    disputed: bool
    check: bool
    """Whether it is an attention check."""


class DocumentList(ResponseRecord):
    """Some rows of the list, and how many there are."""

    rows: tuple[DocumentRow, ...]
    total: int
    """Of this filter and search."""
    counts: Mapping[DocumentFilter, int]
    """Of each filter, with the same search."""


class AnnotatorMark(ResponseRecord):
    """A mark in the browser."""

    id: Id
    spans: tuple[Span, ...]
    quotes: tuple[Text, ...]
    label: Text | None
    answers: Answers = {}
    antecedents: tuple[Span, ...] = ()
    votes: int | None = None
    unlocated: str = ""
    placed: str = ""
    """How a machine's quote found its place, in words; empty for people."""


class AnnotationBars(ResponseRecord):
    """One annotation of a document: a row of bars."""

    annotation: Id
    annotator: Id
    name: str
    kind: AnnotatorKind
    protocol: Id
    round: int
    phase: Phase
    status: Status
    excluded: Exclusion | None = None
    """Of the annotation or, failing that, of the annotator."""
    seconds: float | None = None
    """Active, where known."""
    marks: tuple[AnnotatorMark, ...]
    answers: Answers = {}


class DocumentPage(ResponseRecord):
    """A document with everything that anybody said about it."""

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
    """Options of each question, from least to most: severity becomes dots."""
    readers: tuple[AnnotationBars, ...]
    """People first, then machines, then gold."""


# --- annotators ---------------------------------------------------------------------------------------------------


class AnnotatorWork(ResponseRecord):
    """One annotation of an annotator."""

    annotation: Id
    document: Id
    status: Status
    phase: Phase
    submitted: Time | None
    seconds: float | None
    marks: int
    check: Literal["", "passed", "failed"] = ""
    excluded: Exclusion | None = None


class LabelCount(ResponseRecord):
    """How often."""

    label: str
    marks: int
    share: Figure
    """Of all their marks."""


class WrittenComment(ResponseRecord):
    """Something an annotator wrote about a text as a whole."""

    document: Id
    question: str
    text: str


class AnnotatorPage(ResponseRecord):
    """Everything about one annotator."""

    person: AnnotatorRow
    condition: str
    platform: str
    qualification: QualificationRecord | None
    survey: Answers
    meta: Mapping[Text, Json]
    looks: tuple[LabelLook, ...]
    labels: tuple[LabelCount, ...]
    agreement: tuple[LabelRow, ...]
    """With the others, by label."""
    pieces: tuple[AnnotatorWork, ...]
    notes: tuple[WrittenComment, ...]
    """Comments, and why something could not be judged."""


class ReasonedDecision(Record):
    """A decision with its reason."""

    reason: Text = Field(min_length=1, max_length=2000)


# --- export -------------------------------------------------------------------------------------------------------


class Export(ResponseRecord):
    """A format on offer."""

    format: str
    title: str
    file: str
    """What the download is called."""
    loses: str
    """What the format cannot hold of this study and leaves out, with counts; empty for nothing."""


# --- running the study --------------------------------------------------------------------------------------------


class NewState(Record):
    """Open, pause or close the study, or hand out its first texts only."""

    state: State


class ProtocolRow(ResponseRecord):
    """One version of a protocol."""

    id: Id
    title: str
    annotations: int
    """Made under it; from the first one on it is frozen."""
    current: bool
    """Whether texts are given out under it."""


class StudyConfig(ResponseRecord):
    """How the study is run."""

    state: State
    settings: Settings
    per_document: int
    """Annotators that each document gets when the settings do not say: the protocol's number."""
    protocols: tuple[ProtocolRow, ...]
    documents: int
    facts: tuple[str, ...]
    """Names of document meta that assignment can balance."""
    machines: tuple[Id, ...]
    """Annotators whose marks can be offered."""


class UploadResult(ResponseRecord):
    """What an upload brought."""

    documents: int
    notes: tuple[str, ...] = ()
    """What the reader of the file had to say."""


class PersonalLinkResponse(ResponseRecord):
    """A link just made; it is shown once."""

    annotator: Id
    url: str


class AnnotatorLinks(ResponseRecord):
    """Links that work for one annotator."""

    annotator: Id
    links: int
    used: Time | None
    """When one was last followed."""


class Links(ResponseRecord):
    """How people come in."""

    open: str
    """The open link; empty when it is off."""
    personal: tuple[AnnotatorLinks, ...]


class NewLinks(Record):
    """Personal links to be made."""

    count: int = Field(default=0, ge=0, le=500)
    """For so many new people."""
    names: tuple[Id, ...] = Field(default=(), max_length=500)
    """For people with these ids, new or known."""


class OpenLinkRequest(Record):
    """Whether there is an open link; turning it on makes a new one."""

    on: bool


class DisplayName(Record):
    """What researchers call an annotator; empty for the id."""

    name: Text = Field(max_length=200)


class ResearcherRow(ResponseRecord):
    """Somebody who may see these pages."""

    id: Id
    role: Role
    since: Time


class Invitation(Record):
    """One more researcher."""

    id: Id = Field(max_length=200)
    role: Role


class NewRole(Record):
    """Another role."""

    role: Role


class SignInLink(ResponseRecord):
    """A link; it works once and is shown once."""

    url: str


class AuditEntry(ResponseRecord):
    """A line of the audit log."""

    when: Time
    who: str
    did: str
    about: Mapping[str, Json]
