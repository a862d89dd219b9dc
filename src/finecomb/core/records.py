"""Records that are stored and exchanged; immutable and validated on creation. docs/model.md describes each record."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    PlainSerializer,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from finecomb.core.span import TEXT_PART, Span


class Record(BaseModel):
    """Base class of stored and exchanged records. Records are immutable and reject unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    def to_json(self) -> str:
        """Return the record as one line of JSON without default values."""
        return self.model_dump_json(exclude_defaults=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema with each field's docstring as its description."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, prose in field_descriptions(cls).items():
            properties.get(cls.model_fields[name].alias or name, {}).setdefault("description", prose)
        return schema


@functools.cache
def field_descriptions(record: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of a record's fields, by field name.

    Pydantic could read them, but would do so each time a class is created.
    """
    inherited = [field_descriptions(base) for base in reversed(record.__bases__) if issubclass(base, Record)]
    prose = {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in itertools.pairwise(_class_statements(record))
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }
    return {name: text for part in (*inherited, prose) for name, text in part.items() if name in record.model_fields}


def _class_statements(record: type[BaseModel]) -> list[ast.stmt]:
    """Return the statements of a class definition; empty for a class that was created from a generic class."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    except OSError:
        return []
    return definition.body if isinstance(definition, ast.ClassDef) else []


def check_storable(text: str) -> str:
    """Reject text that files and databases cannot store: NUL characters and unpaired surrogates."""
    if "\0" in text:
        raise ValueError(f"contains a NUL character at position {text.index(chr(0))}; remove it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"contains half of a surrogate pair at position {error.start}; decode the text as UTF-16"
            ) from None
    return text


def _check_storable_json(value: Any) -> Any:
    match value:
        case str():
            check_storable(value)
        case float() if not math.isfinite(value):
            raise ValueError("contains NaN or an infinity, which JSON cannot represent; use null")
        case dict():
            for key, member in value.items():
                check_storable(key)
                _check_storable_json(member)
        case list():
            for member in value:
                _check_storable_json(member)
    return value


def _check_id(value: str) -> str:
    if value != value.strip() or not value:
        raise ValueError(f"an ID must have visible characters and no white space around them, found {value!r}")
    return check_storable(value)


def _require_time_zone_and_convert_to_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time must have a time zone, e.g. 2026-01-31T09:30:00Z")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"time {value.isoformat()} is outside the years 1 to 9999 in UTC") from None


Text = Annotated[str, AfterValidator(check_storable)]
Id = Annotated[str, AfterValidator(_check_id)]
Time = Annotated[
    datetime,
    AfterValidator(_require_time_zone_and_convert_to_utc),
    PlainSerializer(lambda time: time.isoformat().replace("+00:00", "Z"), return_type=str, when_used="json"),
]
Json = Annotated[JsonValue, AfterValidator(_check_storable_json)]
Meta = Mapping[Text, Json]
Answer = bool | int | float | Text | tuple[Text, ...]
Answers = Mapping[Text, Answer]

AnnotatorKind = Literal["human", "llm", "detector", "checker", "gold", "pooled"]
AnnotationStatus = Literal["draft", "submitted", "excluded"]
AnnotationPhase = Literal["training", "qualification", "work"]
OnboardingPhase = Literal["consent", "survey", "instructions", "training", "qualification"]


class Segment(Record):
    """One segment of a document: a paragraph, a section with its title, or a turn with its role."""

    start: int = Field(ge=0)
    """Start in code points."""
    end: int = Field(ge=0)
    """End in code points, exclusive."""
    title: Text = ""
    """Heading or type of a section."""
    role: Text = ""
    """Speaker in a conversation."""

    @model_validator(mode="after")
    def _check_order(self) -> Segment:
        if self.end < self.start:
            raise ValueError(f"segment [{self.start}, {self.end}) ends before it starts")
        return self


class Document(Record):
    """One text to judge."""

    id: Id
    """ID, unique in the study."""
    text: Text
    """Text to judge; empty if a release has no texts, or in a pair."""
    context: Mapping[Id, Text] = Field(default_factory=dict)
    """Named texts shown next to it, e.g. `prompt`, `source`, `headline`."""
    references: tuple[Text, ...] = ()
    """Human texts for the same input; checkers do not use them."""
    segments: tuple[Segment, ...] = ()
    """Segments in text order, without overlaps."""
    data: Json = None
    """Data from which the text was generated, e.g. a box score."""
    meta: Meta = Field(default_factory=dict)
    """Facts about the text that are hidden from annotators: `model`, `topic`, `top_p`, ..."""

    @model_validator(mode="after")
    def _check_segments(self) -> Document:
        if TEXT_PART in self.context:
            raise ValueError(f"a context cannot be named {TEXT_PART!r}, which is the name of the text itself")
        last = 0
        for index, segment in enumerate(self.segments):
            if segment.start < last:
                raise ValueError(
                    f"segment {index} starts at {segment.start}, before the previous segment ends at {last}"
                )
            last = segment.end
        if last > len(self.text):
            raise ValueError(f"segments end at {last}, but the text has {len(self.text)} characters")
        return self

    def part_text(self, name: str) -> str | None:
        """Return the text of a part by name (`text` or a context); None if the document does not have the part."""
        return self.text if name == TEXT_PART else self.context.get(name)


def _check_quotes(spans: tuple[Span, ...], quotes: tuple[str, ...], unlocated: str) -> None:
    if not spans and not unlocated:
        raise ValueError("has no spans; give the reason in `unlocated` and keep the quote")
    if spans and unlocated:
        raise ValueError("has both spans and `unlocated`; remove one of them")
    if spans and len(quotes) != len(spans):
        raise ValueError(f"has {len(spans)} spans but {len(quotes)} quotes; each span requires a quote")
    for span in spans:
        if span.part != TEXT_PART:
            check_storable(span.part)
    if len(spans) > 1 and any(later < earlier for earlier, later in itertools.pairwise(spans)):
        raise ValueError(f"spans {[span.to_wire() for span in spans]} must be in text order")


class Antecedents(Record):
    """Earlier words that a mark refers to."""

    spans: tuple[Span, ...]
    """Spans in text order."""
    quotes: tuple[Text, ...]
    """Quote of each span."""
    unlocated: Text = ""
    """Reason why `spans` is empty, if the quote was not located."""

    @model_validator(mode="after")
    def _check_spans(self) -> Antecedents:
        _check_quotes(self.spans, self.quotes, self.unlocated)
        return self


class AlternativeMark(Record):
    """One mark of an alternative way to mark the same error."""

    spans: tuple[Span, ...]
    """Spans in text order."""
    quotes: tuple[Text, ...]
    """Quote of each span."""
    label: Text | None
    """Label of the protocol."""

    @model_validator(mode="after")
    def _check_spans(self) -> AlternativeMark:
        _check_quotes(self.spans, self.quotes, "")
        return self


class Mark(Record):
    """One claimed error: labelled spans of a document."""

    id: Id
    """ID chosen by the annotator's client, unique in the study."""
    spans: tuple[Span, ...]
    """Spans in text order; several for a discontinuous error, none if the quote was not located."""
    quotes: tuple[Text, ...]
    """Quote of each span when it was marked; a changed text is detected on load."""
    label: Text | None
    """Name of a label of the protocol, e.g. `redundant`; None if marks without a label are allowed."""
    answers: Answers = Field(default_factory=dict)
    """Answers to the label's questions by name, e.g. `severity`, `explanation`."""
    antecedents: Antecedents | None = None
    """Earlier words that the marked words repeat, contradict or refer to."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """Confidence of the annotator, 0 to 1."""
    votes: int | None = Field(default=None, ge=0)
    """Number of annotators who marked it, in pooled or merged data."""
    label_votes: Mapping[Text, int] | None = None
    """Votes by label if no label has a majority; `no type` counts marks without a label."""
    item: Text | None = None
    """Key shared by marks that the source treats as the same error."""
    made_from: tuple[Id, ...] = ()
    """IDs of the marks that this mark was merged, adjudicated, accepted or edited from."""
    alternatives: tuple[tuple[AlternativeMark, ...], ...] = ()
    """Alternative sets of marks; matching all marks of one set counts as finding this mark."""
    basis: Literal["record", "base-rate"] | None = None
    """Evidence of a checker: proved from the record, or only the base rate of such errors."""
    unlocated: Text = ""
    """Reason why `spans` is empty."""
    meta: Meta = Field(default_factory=dict)
    """Additional data of the source."""

    @model_validator(mode="after")
    def _check_spans(self) -> Mark:
        _check_quotes(self.spans, self.quotes, self.unlocated)
        return self


class Unit(Record):
    """One segment or sentence that was judged, with or without marks."""

    start: int = Field(ge=0)
    """Start in code points."""
    end: int = Field(ge=0)
    """End in code points, exclusive."""
    answers: Answers = Field(default_factory=dict)
    """Answers to the unit's questions."""
    scores: Mapping[Text, float] = Field(default_factory=dict)
    """Detector score by label."""
    seconds: float | None = Field(default=None, ge=0)
    """Time in seconds."""

    @model_validator(mode="after")
    def _check_order(self) -> Unit:
        if self.end < self.start:
            raise ValueError(f"unit [{self.start}, {self.end}) ends before it starts")
        return self


class Exclusion(Record):
    """Exclusion of a record from statistics, with person, time and reason; nothing is deleted."""

    by: Text
    """Person who decided."""
    when: Time | None = None
    """Time in UTC."""
    reason: Text
    """Reason."""


class Annotation(Record):
    """One annotator's pass over one document under one protocol."""

    id: Id
    """ID, unique in the study."""
    document: Id
    """ID of the document."""
    annotator: Id
    """ID of the annotator."""
    protocol: Id
    """Name and version of the protocol, e.g. `snac@2`."""
    round: int = Field(default=0, ge=0, lt=2**31)
    """Number that distinguishes retests, samples of a language model, attempts and second passes."""
    about: Id | None = None
    """ID of the annotation or mark that is judged."""
    phase: AnnotationPhase = "work"
    """Phase; training and qualification are never included in statistics."""
    status: AnnotationStatus = "submitted"
    """Status; statistics use submitted work by default."""
    marks: tuple[Mark, ...] = ()
    """Marks; an annotation without marks means that no error was found."""
    units: tuple[Unit, ...] = ()
    """Segments or sentences judged one by one, in text order."""
    answers: Answers = Field(default_factory=dict)
    """Answers to the document's questions."""
    made_from: tuple[Id, ...] = ()
    """IDs of the annotations that this annotation was merged from."""
    readers: int | None = Field(default=None, ge=1)
    """Number of people pooled."""
    excluded: Exclusion | None = None
    """Exclusion, if it is excluded."""
    started: Time | None = None
    """Time of first opening."""
    submitted: Time | None = None
    """Time of submission."""
    seconds: float | None = Field(default=None, ge=0)
    """Elapsed time in seconds."""
    active_seconds: float | None = Field(default=None, ge=0)
    """Active time in seconds."""
    meta: Meta = Field(default_factory=dict)
    """Data hidden from annotators: raw replies, display order, source fields."""

    @property
    def unique_key(self) -> tuple[str, str, str, int, str | None]:
        """Key that is unique among the annotations of a study."""
        return self.document, self.annotator, self.protocol, self.round, self.about


class Attempt(Record):
    """One attempt at a qualification."""

    round: int = Field(ge=0)
    """Number of the attempt, from 0."""
    score: float
    """Points earned."""
    parts: Mapping[Text, float] = Field(default_factory=dict)
    """Points by part."""
    when: Time | None = None
    """Time of grading."""


class QualificationRecord(Record):
    """An annotator's results in a protocol's qualification."""

    protocol: Id
    """Name and version of the protocol."""
    score: float
    """Best score."""
    passed: bool
    """True if the annotator passed."""
    attempts: tuple[Attempt, ...] = ()
    """All attempts."""


class Annotator(Record):
    """The author of annotations: a person, a model, a detector, a checker, gold or pooled annotators."""

    id: Id
    """ID, unique in the study; never a platform's worker ID."""
    kind: AnnotatorKind
    """Type of annotator."""
    condition: Text = ""
    """Experimental condition, e.g. a type of training."""
    cell: Text = ""
    """Assigned cell of the study's design, e.g. `examples/gpt3/news`."""
    factors: Mapping[Text, Text] = Field(default_factory=dict)
    """Factors of that cell by name, e.g. `domain`."""
    survey: Answers = Field(default_factory=dict)
    """Survey answers."""
    qualification: QualificationRecord | None = None
    """Results of the qualification."""
    platform: Text = ""
    """Recruitment platform, e.g. `prolific`."""
    excluded: Exclusion | None = None
    """Exclusion of all their work, if they are excluded."""
    meta: Meta = Field(default_factory=dict)
    """Additional data, e.g. a model's settings."""


class Offer(Record):
    """Machine marks that annotators can accept, edit or reject."""

    annotator: Id
    """Annotator whose marks are suggested."""
    blind: float = Field(default=0.2, ge=0, le=1)
    """Share of documents shown without suggestions, to measure anchoring."""


class Allocation(Record):
    """Adaptive assignment of the texts that most reduce the confidence interval of the mean; any text can be drawn."""

    strata: tuple[Text, ...] = ()
    """Meta fields that divide the texts into strata, e.g. `model`."""
    judges: tuple[Id, ...] = ()
    """Annotators who have annotated every text. Their disagreement divides the texts further; with a single judge, its
    uncertainty or its number of marks does.
    """
    parts: int = Field(default=3, ge=2, le=10)
    """Number of strata formed from the judges."""
    measure: Text = "count"
    """Quantity to estimate: `count` (marks per text) or `answer:NAME` (a number asked about the document)."""
    exploration: float = Field(default=0.1, gt=0, le=1)
    """Share of texts drawn uniformly from all strata."""

    @model_validator(mode="after")
    def _check_strata(self) -> Allocation:
        if not re.fullmatch("count|answer:.+", self.measure):
            raise ValueError(f"measure must be `count` or `answer:NAME`, found {self.measure!r}")
        if not self.strata and not self.judges:
            raise ValueError("requires `strata` (meta fields) or `judges` (annotators who have annotated every text)")
        return self


def _check_web_address(value: str) -> str:
    if value and not re.match(r"https?://[^\s/]", value):
        raise ValueError(f"an address must begin with https:// or http://, found {value!r}")
    return value


def _check_origin(value: str) -> str:
    local = r"http://(localhost|127\.0\.0\.1)(:\d+)?"
    if not re.fullmatch(rf"https://[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?|{local}", value):
        raise ValueError(f"an origin must be https:// and a host, e.g. https://worker.mturk.com, found {value!r}")
    return value


Origin = Annotated[str, AfterValidator(_check_origin)]
"""Origin of a web page; pages on the local machine need no TLS."""


class Recruitment(Record):
    """Recruitment platform and completion codes."""

    platform: Literal["", "prolific", "mturk"] = ""
    """Platform whose IDs are read from the link that people open."""
    completed: Text = ""
    """Completion code for people who finished; if empty, each person gets an individual code."""
    screened_out: Text = ""
    """Code for people who did not pass the qualification; if empty, each person gets an individual code."""
    no_consent: Text = ""
    """Code for people who did not consent; if empty, each person gets an individual code."""
    back: Annotated[Text, AfterValidator(_check_web_address)] = ""
    """Return address, in which `{code}` is replaced by the code; the platform's own address if empty."""
    frame: tuple[Origin, ...] = ()
    """Sites that may embed the annotation pages, e.g. `https://worker.mturk.com`; otherwise the pages open in a tab."""
    batch: int | None = Field(default=None, ge=1, le=1_000_000)
    """Texts per task on the platform (a HIT, a session); the same person may take another task. None: all texts in one
    task.
    """
    reward: float | None = Field(default=None, ge=0, le=1_000_000)
    """Amount that the platform itself pays per finished task; any amount due beyond it is a bonus."""

    @model_validator(mode="after")
    def _check_platform(self) -> Recruitment:
        if not self.platform and (self.batch is not None or self.reward is not None):
            name = "batch" if self.batch is not None else "reward"
            raise ValueError(f"{name!r} requires a platform; add e.g. `platform: mturk`, or remove it")
        return self


class CellBlock(Record):
    """Cells of a design: every combination of the values of its factors."""

    factors: Mapping[Text, tuple[Text, ...]]
    """Values by factor: `condition` for the protocol's conditions, any other name for a meta field."""
    people: int | None = Field(default=None, ge=1)
    """Accepted people required per cell (default: the design's number)."""
    pay: float | None = Field(default=None, ge=0)
    """Pay per person in these cells (default: the design's pay)."""
    texts: int | None = Field(default=None, ge=1)
    """Texts per person in these cells (default: the design's number)."""
    training: Text = ""
    """Condition of the protocol whose training material is shown, if it is not the one among the factors."""
    eligible: Mapping[Text, tuple[bool | int | float | Text, ...]] = Field(default_factory=dict)
    """Survey answers required in these cells, in addition to those of the design."""

    @field_validator("factors", mode="before")
    @classmethod
    def _wrap_factor_values(cls, value: Any) -> Any:
        return wrap_single_values(value)

    @field_validator("eligible", mode="before")
    @classmethod
    def _wrap_eligible_answers(cls, value: Any) -> Any:
        return wrap_single_values(value)

    @model_validator(mode="after")
    def _check_factors_given(self) -> CellBlock:
        _check_factors(self.factors)
        return self


def wrap_single_values(value: Any) -> Any:
    """Wrap single values of a mapping in lists; other inputs are returned unchanged, to be rejected by validation."""
    if not isinstance(value, Mapping):
        return value
    return {name: part if isinstance(part, list | tuple) else (part,) for name, part in value.items()}


def _check_factors(factors: Mapping[str, tuple[str, ...]]) -> None:
    if not factors:
        raise ValueError("has no factors; name at least one, e.g. `condition` or `domain`")
    for name, values in factors.items():
        if not values:
            raise ValueError(f"factor {name!r} has no values; add at least one")
        if repeated := next((value for value in values if values.count(value) > 1), None):
            raise ValueError(f"factor {name!r} lists {repeated!r} twice; remove one of them")


class Design(Record):
    """Assignment of people to texts: cells that are filled with a number of accepted people each."""

    cross: Mapping[Text, tuple[Text, ...]] = Field(default_factory=dict)
    """Values by factor, if every combination is a cell."""
    cells: tuple[CellBlock, ...] = ()
    """The cells, if only some combinations are used or cells differ in more than their factors."""
    people: int | None = Field(default=None, ge=1)
    """Accepted people required per cell."""
    pay: float | None = Field(default=None, ge=0)
    """Pay per person who submits all texts."""
    currency: Text = ""
    """Currency of the pay; required if people are paid."""
    texts: int | None = Field(default=None, ge=1)
    """Texts per person (default: the protocol's number)."""
    eligible: Mapping[Text, tuple[bool | int | float | Text, ...]] = Field(default_factory=dict)
    """Survey answers required of all participants, e.g. `native: [yes]`."""
    requirements: Text = ""
    """Requirements in prose, as shown to participants; the platform checks them."""
    reopen: bool = True
    """Reopen the place of an excluded person for someone else."""
    apart_from: tuple[Text, ...] = ()
    """Studies whose participants are excluded from this one: `#name` in the same database, a study folder or its URL.
    """

    @field_validator("cross", "eligible", mode="before")
    @classmethod
    def _wrap_values(cls, value: Any) -> Any:
        return wrap_single_values(value)

    @model_validator(mode="after")
    def _check_cells(self) -> Design:
        if bool(self.cross) == bool(self.cells):
            raise ValueError("requires either `cross` (values by factor) or `cells` (a list)")
        if self.cross:
            _check_factors(self.cross)
        if self.people is None and any(block.people is None for block in self.blocks):
            raise ValueError("the number of accepted people per cell is missing; add e.g. `people: 130`")
        if not self.currency and any(block.pay or self.pay for block in self.blocks):
            raise ValueError("the pay currency is missing; add e.g. `currency: USD`")
        return self

    @property
    def blocks(self) -> tuple[CellBlock, ...]:
        """Cells in blocks; a cross is one block."""
        return self.cells or (CellBlock(factors=self.cross),)


ONBOARDING_PHASES: tuple[OnboardingPhase, ...] = ("consent", "survey", "instructions", "training", "qualification")
"""Phases before the work, in order."""


class ChunkSize(Record):
    """Size of the chunks in which a long text is sent to a model."""

    words: int = Field(ge=1)
    """Maximum words per chunk."""
    overlap: int = Field(default=0, ge=0)
    """Maximum words that a chunk shares with the previous one; at most half of `words`."""

    @model_validator(mode="after")
    def _limit_overlap(self) -> ChunkSize:
        if self.overlap > self.words // 2:
            raise ValueError(f"overlap must be at most half of words ({self.words // 2}), found {self.overlap}")
        return self


class LongPromptRates(Record):
    """Factors on the prices of a model for prompts above a number of tokens."""

    tokens: int = Field(ge=1)
    """Number of prompt tokens above which the factors apply."""
    input: Decimal = Field(default=Decimal(1), ge=0)
    """Factor on the prices of prompt tokens."""
    output: Decimal = Field(default=Decimal(1), ge=0)
    """Factor on the price of reply tokens."""


class ModelRates(Record):
    """Prices of a model in US dollars per million tokens, as an entry of a price file."""

    host: Text = "*"
    """Host of the endpoint, or `*` for all."""
    model: Text
    """Name of the model at the endpoint; `*` stands for any characters."""
    since: date | None = None
    """First day on which the prices apply."""
    checked: date | None = None
    """Day on which the prices were compared with the provider's page."""
    source: Text = ""
    """Address of the provider's price list."""
    input: Decimal = Field(ge=0, allow_inf_nan=False)
    """Price of prompt tokens."""
    output: Decimal = Field(ge=0, allow_inf_nan=False)
    """Price of reply tokens, including reasoning."""
    cache_read: Decimal | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of prompt tokens read from the cache (default: that of prompt tokens)."""
    cache_write: Decimal | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of prompt tokens written to the cache (default: twice that of prompt tokens)."""
    cache_write_1h: Decimal | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of prompt tokens written to the cache for one hour (default: twice that of prompt tokens)."""
    batch: Decimal | None = Field(default=None, gt=0, le=1)
    """Factor on all prices for requests in batches (default: 1)."""
    above: LongPromptRates | None = None
    """Higher prices for long prompts."""
    file: Text = ""
    """Hash of the price file."""


class ModelSettings(Record):
    """A language model as an annotator: endpoint, prompting and cost limits, without the API key."""

    model: Text
    """Name of the model at the endpoint; `local:NAME` or a GGUF file for a model that runs in this process."""
    base_url: Text = ""
    """URL of the endpoint, e.g. `http://localhost:11434/v1`; not needed for providers with a fixed URL."""
    key_env: Text = ""
    """Environment variable that holds the API key; the key itself is never stored."""
    samples: int = Field(default=1, ge=1, le=100)
    """Samples per text; each sample is a separate annotator."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; not sent if None."""
    max_tokens: int = Field(default=2048, ge=1)
    """Maximum tokens per reply; a reply that reaches the maximum is truncated and not parsed."""
    shots: int = Field(default=0, ge=0)
    """Number of gold texts shown as examples."""
    price: tuple[float, float] | None = None
    """Price per million tokens, sent and received."""
    rates: ModelRates | None = None
    """Entry of the price file for the model; not used if `price` is given."""
    effort: Text = ""
    """Reasoning effort, such as `low` or `high`; not sent if empty."""
    thinking_tokens: int | None = Field(default=None, ge=0)
    """Maximum number of reasoning tokens; not sent if None."""
    api_version: Text = ""
    """Version of the provider's API, for Azure, Anthropic and Gemini."""
    extra: Mapping[Text, Json] = Field(default_factory=dict)
    """Further parameters of requests, sent as they are; a dot in a name leads into an object."""
    budget: float | None = Field(default=None, gt=0)
    """Maximum cost; calls that could exceed it are not made."""
    concurrency: int = Field(default=8, ge=1, le=512)
    """Maximum concurrent calls."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Maximum calls per minute; no limit if None."""
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """Maximum estimated tokens per minute; no limit if None."""
    timeout: float = Field(default=600, gt=0)
    """Timeout per call in seconds, from the first byte sent to the last received."""
    attempts: int = Field(default=6, ge=1, le=50)
    """Maximum attempts per call if the endpoint is busy, fails or closes the connection."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Context length of the model in tokens; longer texts are rejected before the first call."""
    by_segment: bool = False
    """Annotate segment by segment, even if the protocol uses entire texts."""
    chunk: ChunkSize | None = None
    """Send long texts in chunks of whole sentences; None sends each text at once."""
    seed: int = Field(default=0, ge=0)
    """Seed for shots and the order of pairs; sent to the endpoint together with the sample number."""


class AuditPlan(Record):
    """Random sample of a study's marks to be judged, and how it was drawn."""

    marks: tuple[Id, ...]
    """IDs of the marks; no others are assigned."""
    by: tuple[Text, ...] = ()
    """Meta fields or annotator fields that define the groups, in addition to the label."""
    per_label: int = Field(default=10, ge=1)
    """Maximum number of marks per label and group."""
    seed: int = Field(default=0, ge=0)
    """Seed of the draw."""


class Settings(Record):
    """Contents of `study.yaml`: title and settings of a study."""

    title: Text = ""
    """Title shown on pages and in reports."""
    protocols: tuple[Id, ...] = ()
    """Names and versions of protocols; the first is the default."""
    annotators: int | None = Field(default=None, ge=1, le=100_000)
    """Annotators required per document."""
    strata: tuple[Text, ...] = ()
    """Meta fields that assignment balances, e.g. `model`."""
    quotas: Mapping[Text, Annotated[int, Field(ge=0, le=1_000_000_000)]] = Field(default_factory=dict)
    """Maximum annotations per condition of annotators or per value of a stratum, by name."""
    attention_checks: tuple[Id, ...] = ()
    """IDs of documents with known answers, which a gold annotation provides."""
    models: Mapping[Text, ModelSettings] = Field(default_factory=dict)
    """Language models by the name that `finecomb annotate --model` takes; the names are also the IDs of their
    annotators.
    """
    offer: Offer | None = None
    """Machine marks suggested to annotators (default: none)."""
    allocation: Allocation | None = None
    """Adaptive assignment of the text that most reduces the confidence interval of the mean; without it, the text with
    the fewest annotators comes next.
    """
    skip: tuple[OnboardingPhase, ...] = ()
    """Phases of the protocol to skip, e.g. for people who were trained elsewhere."""
    mode: Text = ""
    """Active mode of the protocol, e.g. `in-the-data` (default: the protocol's own)."""
    planned: tuple[Text, ...] = ()
    """Planned analyses, as commands without the study, e.g. `test --what scores --by condition`."""
    audit: AuditPlan | None = None
    """Marks to judge, if the study is an audit of marks."""
    round: int = Field(default=0, ge=0, le=1)
    """Assigned pass: 0 for the first; 1 for the second, in which annotators see the marks of others."""
    recruitment: Recruitment = Recruitment()
    """Recruitment platform and completion codes."""
    design: Design | None = None
    """Cells to be filled with accepted people; without a design, every text gets the same number of annotators."""
    lease: int = Field(default=120, ge=1, le=525_600)
    """Minutes for which a text stays assigned to an inactive annotator."""
    pilot: int = Field(default=5, ge=1, le=1_000_000)
    """Number of documents assigned in pilot mode."""
    price: float | None = Field(default=None, ge=0, le=1_000_000)
    """Pay per annotation."""
    base_pay: float = Field(default=0, ge=0, le=1_000_000)
    """Pay for participation, including people who do not pass the qualification."""
    pay_floor: float | None = Field(default=None, gt=0, le=1_000_000)
    """Minimum hourly pay; the page of a cell whose people earned less shows the bonus that is due."""
    fees: float = Field(default=0, ge=0, le=100)
    """Platform fee as a share of pay, e.g. 0.2."""
    staff_minutes: float = Field(default=0, ge=0, le=100_000_000)
    """Minutes of staff time spent on the study so far."""
    staff_rate: float = Field(default=0, ge=0, le=1_000_000)
    """Hourly cost of staff."""
    budget: float | None = Field(default=None, gt=0, le=1_000_000_000)
    """Budget for participants; charts show it next to the cost, and exceeding it does not stop the study."""
    currency: Text = "USD"
    """Currency of all amounts; the currency of a design with pay takes precedence."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed for assignment and sampling."""
    meta: Meta = Field(default_factory=dict)
    """Additional data."""

    @property
    def effective_currency(self) -> str:
        """Currency of all amounts."""
        return (self.design.currency if self.design else "") or self.currency


REPLACED_BY_META, REPLACES_META = "replaced_by", "replaces"
"""Keys in the `meta` of a document whose text was edited: the ID of the new text, and of the earlier text."""


class Note(Record):
    """A message for the user from an importer, e.g. the number of quotes that were not located."""

    text: str
    """Message."""
    is_error: bool = False
    """True if `finecomb check` counts it as an error, e.g. a stored record that cannot be read."""


def iter_quoted_spans(mark: Mark) -> Iterator[tuple[Span, str]]:
    """Yield every located span of a mark, of its antecedents and of its alternatives, each with its quote."""
    located = zip(mark.spans, mark.quotes, strict=False)
    if mark.antecedents is None and not mark.alternatives:
        return located
    others: list[Antecedents | AlternativeMark] = list(itertools.chain.from_iterable(mark.alternatives))
    if mark.antecedents:
        others.insert(0, mark.antecedents)
    return itertools.chain(located, *(zip(other.spans, other.quotes, strict=False) for other in others))
