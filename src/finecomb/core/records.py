"""What is stored and sent: frozen records, checked when made. DESIGN in docs/model.md says what each is for."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
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

from finecomb.core.span import TEXT, Span


class Record(BaseModel):
    """Base of everything stored or sent: immutable, and no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    def to_json(self) -> str:
        """One line of JSON without what has its default value."""
        return self.model_dump_json(exclude_defaults=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The JSON schema with the prose under each field as its description."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, prose in field_descriptions(cls).items():
            properties.get(cls.model_fields[name].alias or name, {}).setdefault("description", prose)
        return schema


@functools.cache
def field_descriptions(record: type[BaseModel]) -> dict[str, str]:
    """The prose under each field of a record. Pydantic could read it, but would do so whenever a class is made."""
    inherited = [field_descriptions(base) for base in reversed(record.__bases__) if issubclass(base, Record)]
    prose = {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in itertools.pairwise(_class_statements(record))
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }
    return {name: text for part in (*inherited, prose) for name, text in part.items() if name in record.model_fields}


def _class_statements(record: type[BaseModel]) -> list[ast.stmt]:
    """What stands in the definition of a class; nothing where it was made from a generic one."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    except OSError:
        return []
    return definition.body if isinstance(definition, ast.ClassDef) else []


def check_storable(text: str) -> str:
    """Refuse the two things that no file or database can hold: a NUL and half a surrogate pair."""
    if "\0" in text:
        raise ValueError(f"has a NUL character at position {text.index(chr(0))}; remove it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"has half of a surrogate pair at position {error.start}; decode the text as UTF-16"
            ) from None
    return text


def _check_storable_json(value: Any) -> Any:
    match value:
        case str():
            check_storable(value)
        case float() if not math.isfinite(value):
            raise ValueError("holds NaN or an infinity, which JSON cannot hold; use null")
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
        raise ValueError(f"an id needs visible characters and none of white space around them, not {value!r}")
    return check_storable(value)


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time needs its zone, e.g. 2026-01-31T09:30:00Z")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"time {value.isoformat()} lies outside the years 1 to 9999 in UTC") from None


Text = Annotated[str, AfterValidator(check_storable)]
Id = Annotated[str, AfterValidator(_check_id)]
Time = Annotated[
    datetime,
    AfterValidator(_to_utc),
    PlainSerializer(lambda time: time.isoformat().replace("+00:00", "Z"), return_type=str, when_used="json"),
]
Json = Annotated[JsonValue, AfterValidator(_check_storable_json)]
Meta = Mapping[Text, Json]
Answer = bool | int | float | Text | tuple[Text, ...]
Answers = Mapping[Text, Answer]

AnnotatorKind = Literal["human", "llm", "detector", "checker", "gold", "pooled"]
Status = Literal["draft", "submitted", "excluded"]
Phase = Literal["training", "qualification", "work"]
OnboardingPhase = Literal["consent", "survey", "instructions", "training", "qualification"]


class Segment(Record):
    """One part of a document: a paragraph, a section with its title, a turn with its role."""

    start: int = Field(ge=0)
    """First code point in the text."""
    end: int = Field(ge=0)
    """One past the last code point."""
    title: Text = ""
    """A section's heading or type."""
    role: Text = ""
    """Who speaks, in a conversation."""

    @model_validator(mode="after")
    def _check_order(self) -> Segment:
        if self.end < self.start:
            raise ValueError(f"segment [{self.start}, {self.end}) ends before it starts")
        return self


class Document(Record):
    """One text to be judged."""

    id: Id
    """Unique in the study."""
    text: Text
    """What is judged; may be empty where a release has no texts, or in a pair."""
    context: Mapping[Id, Text] = Field(default_factory=dict)
    """Named texts beside it, e.g. `prompt`, `source`, `headline`."""
    references: tuple[Text, ...] = ()
    """What people wrote for the same input; no checker reads them."""
    segments: tuple[Segment, ...] = ()
    """Parts in text order that do not overlap."""
    data: Json = None
    """What the text was made from, e.g. a box score."""
    meta: Meta = Field(default_factory=dict)
    """Facts about the text that annotators never see: `model`, `topic`, `top_p`, ..."""

    @model_validator(mode="after")
    def _check_segments(self) -> Document:
        if TEXT in self.context:
            raise ValueError(f"a context cannot be called {TEXT!r}; that is the name of the text itself")
        last = 0
        for index, segment in enumerate(self.segments):
            if segment.start < last:
                raise ValueError(f"segment {index} starts at {segment.start}, before the previous one ends at {last}")
            last = segment.end
        if last > len(self.text):
            raise ValueError(f"segments reach to {last}, but the text has {len(self.text)} characters")
        return self

    def part(self, name: str) -> str | None:
        """The text of a part by name: `text` or a context; None when there is no such part."""
        return self.text if name == TEXT else self.context.get(name)


def _check_quotes(spans: tuple[Span, ...], quotes: tuple[str, ...], unlocated: str) -> None:
    if not spans and not unlocated:
        raise ValueError("has no spans; say why in `unlocated` and keep the quote")
    if spans and unlocated:
        raise ValueError("has spans and also `unlocated`; remove one of them")
    if spans and len(quotes) != len(spans):
        raise ValueError(f"has {len(spans)} spans but {len(quotes)} quotes; each span needs its quote")
    for span in spans:
        if span.part != TEXT:
            check_storable(span.part)
    if len(spans) > 1 and any(later < earlier for earlier, later in itertools.pairwise(spans)):
        raise ValueError(f"spans {[span.to_wire() for span in spans]} are not in text order")


class Antecedents(Record):
    """The earlier words that a mark refers to."""

    spans: tuple[Span, ...]
    """In text order."""
    quotes: tuple[Text, ...]
    """What the spans cover."""
    unlocated: Text = ""
    """Why `spans` is empty, where the quote could not be placed."""

    @model_validator(mode="after")
    def _check_spans(self) -> Antecedents:
        _check_quotes(self.spans, self.quotes, self.unlocated)
        return self


class AlternativeMark(Record):
    """One mark of another way to mark the same error."""

    spans: tuple[Span, ...]
    """In text order."""
    quotes: tuple[Text, ...]
    """What the spans cover."""
    label: Text | None
    """A label of the protocol."""

    @model_validator(mode="after")
    def _check_spans(self) -> AlternativeMark:
        _check_quotes(self.spans, self.quotes, "")
        return self


class Mark(Record):
    """One claimed error: spans of one document that carry one label."""

    id: Id
    """Made by whoever marked; unique in the study."""
    spans: tuple[Span, ...]
    """In text order; several when the error is discontinuous; none when the quote could not be placed."""
    quotes: tuple[Text, ...]
    """What the spans covered when marked, so drift in the text is caught on load."""
    label: Text | None
    """A label of the protocol by name, e.g. `redundant`; None where a mark without a type is allowed."""
    answers: Answers = Field(default_factory=dict)
    """Answers to the label's questions by name, e.g. `severity`, `explanation`."""
    antecedents: Antecedents | None = None
    """The earlier words that this one repeats, contradicts or refers to."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """How sure whoever marked was, 0 to 1."""
    votes: int | None = Field(default=None, ge=0)
    """How many readers marked it, in pooled or merged data."""
    label_votes: Mapping[Text, int] | None = None
    """Votes by label, where there was no majority; `no type` counts marks without a label."""
    item: Text | None = None
    """Ties marks that the source says are the same error."""
    made_from: tuple[Id, ...] = ()
    """Ids of the marks it was merged, adjudicated, accepted or edited from."""
    alternatives: tuple[tuple[AlternativeMark, ...], ...] = ()
    """Each a complete other set of marks; matching all of one set counts as finding this mark."""
    basis: Literal["record", "base-rate"] | None = None
    """Whether a checker proved it from the record or knows only how often such claims are wrong."""
    unlocated: Text = ""
    """Why `spans` is empty."""
    meta: Meta = Field(default_factory=dict)
    """What the source has and we do not."""

    @model_validator(mode="after")
    def _check_spans(self) -> Mark:
        _check_quotes(self.spans, self.quotes, self.unlocated)
        return self


class Unit(Record):
    """One segment or sentence that was judged, also when it has no mark."""

    start: int = Field(ge=0)
    """First code point in the text."""
    end: int = Field(ge=0)
    """One past the last code point."""
    answers: Answers = Field(default_factory=dict)
    """Answers to the unit's questions."""
    scores: Mapping[Text, float] = Field(default_factory=dict)
    """A detector's score by label."""
    seconds: float | None = Field(default=None, ge=0)
    """How long it took."""

    @model_validator(mode="after")
    def _check_order(self) -> Unit:
        if self.end < self.start:
            raise ValueError(f"unit [{self.start}, {self.end}) ends before it starts")
        return self


class Exclusion(Record):
    """That something was set aside, by whom, when and why; nothing is deleted."""

    by: Text
    """Who decided."""
    when: Time | None = None
    """When, in UTC."""
    reason: Text
    """Why, in words."""


class Annotation(Record):
    """One annotator's pass over one document under one protocol."""

    id: Id
    """Unique in the study."""
    document: Id
    """Id of the document."""
    annotator: Id
    """Id of the annotator."""
    protocol: Id
    """Name and version, e.g. `snac@2`."""
    round: int = Field(default=0, ge=0, lt=2**31)
    """Separates retests, samples of a language model, attempts and second passes."""
    about: Id | None = None
    """Id of the one annotation or mark being judged."""
    phase: Phase = "work"
    """Training and qualification never enter statistics."""
    status: Status = "submitted"
    """Statistics read submitted work unless asked."""
    marks: tuple[Mark, ...] = ()
    """Possibly none: that is data too."""
    units: tuple[Unit, ...] = ()
    """Segments or sentences judged one by one, in text order."""
    answers: Answers = Field(default_factory=dict)
    """Answers to the document's questions."""
    made_from: tuple[Id, ...] = ()
    """Ids of the annotations it was made from."""
    readers: int | None = Field(default=None, ge=1)
    """How many people were pooled."""
    excluded: Exclusion | None = None
    """Why it was set aside."""
    started: Time | None = None
    """When it was first opened."""
    submitted: Time | None = None
    """When it was handed in."""
    seconds: float | None = Field(default=None, ge=0)
    """Wall time."""
    active_seconds: float | None = Field(default=None, ge=0)
    """Time at the keyboard."""
    meta: Meta = Field(default_factory=dict)
    """What annotators never see: raw replies, order shown, source fields."""

    @property
    def key(self) -> tuple[str, str, str, int, str | None]:
        """What no two annotations of a study share."""
        return self.document, self.annotator, self.protocol, self.round, self.about


class Attempt(Record):
    """One try at a qualification."""

    round: int = Field(ge=0)
    """0 for the first."""
    score: float
    """Points reached."""
    parts: Mapping[Text, float] = Field(default_factory=dict)
    """Points by part."""
    when: Time | None = None
    """When it was graded."""


class QualificationRecord(Record):
    """How an annotator did in a protocol's qualification."""

    protocol: Id
    """Name and version."""
    score: float
    """Best score."""
    passed: bool
    """Whether it was enough."""
    attempts: tuple[Attempt, ...] = ()
    """Every try."""


class Annotator(Record):
    """Whoever made annotations: a person, a model, a detector, a checker, gold or pooled readers."""

    id: Id
    """Unique in the study; never a platform's worker id."""
    kind: AnnotatorKind
    """What sort of annotator."""
    condition: Text = ""
    """The experimental condition, e.g. a kind of training."""
    cell: Text = ""
    """The cell of the study's design that they were assigned to, e.g. `examples/gpt3/news`."""
    factors: Mapping[Text, Text] = Field(default_factory=dict)
    """The factors of that cell by name, e.g. `domain`."""
    survey: Answers = Field(default_factory=dict)
    """Answers about themselves."""
    qualification: QualificationRecord | None = None
    """How they did in the qualification."""
    platform: Text = ""
    """Where they were recruited, e.g. `prolific`."""
    excluded: Exclusion | None = None
    """Why all their work is set aside."""
    meta: Meta = Field(default_factory=dict)
    """Anything else, e.g. a model's settings."""


class Offer(Record):
    """Machine marks that annotators are shown to accept, edit or reject."""

    annotator: Id
    """Whose marks are offered."""
    blind: float = Field(default=0.2, ge=0, le=1)
    """Share of documents shown without them, so that anchoring can be measured."""


class Allocation(Record):
    """Texts drawn so that the interval of the mean over all texts shrinks most; every text keeps a chance."""

    strata: tuple[Text, ...] = ()
    """Document meta that cuts the texts into strata, e.g. `model`."""
    judges: tuple[Id, ...] = ()
    """Annotators who have read every text; how far they disagree cuts the texts further, of a single one how unsure it
    is, or how much it marks."""
    parts: int = Field(default=3, ge=2, le=10)
    """How many parts the texts are cut into by judges."""
    measure: Text = "count"
    """What is to be known exactly: `count`, marks per text, or `answer:NAME`, a number asked of the whole text."""
    exploration: float = Field(default=0.1, gt=0, le=1)
    """Share of texts that are drawn from all strata alike."""

    @model_validator(mode="after")
    def _check_strata(self) -> Allocation:
        if not re.fullmatch("count|answer:.+", self.measure):
            raise ValueError(f"measures `count` or `answer:NAME`, not {self.measure!r}")
        if not self.strata and not self.judges:
            raise ValueError("needs `strata`, document meta that cuts the texts, or `judges` who have read them")
        return self


def _check_web_address(value: str) -> str:
    if value and not re.match(r"https?://[^\s/]", value):
        raise ValueError(f"an address begins with https://, unlike {value!r}")
    return value


def _check_origin(value: str) -> str:
    local = r"http://(localhost|127\.0\.0\.1)(:\d+)?"
    if not re.fullmatch(rf"https://[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?|{local}", value):
        raise ValueError(f"an origin is https:// and a host, e.g. https://worker.mturk.com, unlike {value!r}")
    return value


Origin = Annotated[str, AfterValidator(_check_origin)]
"""Where a page comes from; a page of this machine may do without TLS, to try things out."""


class Recruitment(Record):
    """Where annotators come from, and what they take back to show that they took part."""

    platform: Literal["", "prolific", "mturk"] = ""
    """Whose ids are read from the link that people open."""
    completed: Text = ""
    """Code for those who finished; each person gets one of their own when empty."""
    screened_out: Text = ""
    """Code for those who did not pass the qualification; likewise."""
    no_consent: Text = ""
    """Code for those who do not agree to take part; likewise."""
    back: Annotated[Text, AfterValidator(_check_web_address)] = ""
    """Address to go back to, `{code}` standing for the code; the platform's own when empty."""
    frame: tuple[Origin, ...] = ()
    """Whose pages may show ours inside them, e.g. `https://worker.mturk.com`; otherwise ours open in a tab."""
    batch: int | None = Field(default=None, ge=1, le=1_000_000)
    """Texts of one task on the platform (a HIT, a session); the same person may take the next. None: all in one."""
    reward: float | None = Field(default=None, ge=0, le=1_000_000)
    """What the platform itself pays for one finished task; what is owed beyond that is a bonus."""

    @model_validator(mode="after")
    def _check_platform(self) -> Recruitment:
        if not self.platform and (self.batch is not None or self.reward is not None):
            name = "batch" if self.batch is not None else "reward"
            raise ValueError(f"{name!r} belongs to tasks on a platform; add e.g. `platform: mturk`, or leave it out")
        return self


class CellBlock(Record):
    """Some cells of a design: every combination of the values of its factors."""

    factors: Mapping[Text, tuple[Text, ...]]
    """Values by factor: `condition` for the protocol's conditions, any other name for document meta."""
    people: int | None = Field(default=None, ge=1)
    """How many accepted people each of these cells needs; the design's number when absent."""
    pay: float | None = Field(default=None, ge=0)
    """What one person earns in these cells; the design's pay when absent."""
    texts: int | None = Field(default=None, ge=1)
    """How many texts one person reads in these cells; the design's number when absent."""
    training: Text = ""
    """The condition of the protocol whose material is shown, where it is not the one among the factors."""
    eligible: Mapping[Text, tuple[bool | int | float | Text, ...]] = Field(default_factory=dict)
    """Answers to survey questions that people in these cells need, beside those that the design asks for."""

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
    """A mapping whose single values became lists of one; anything else as it is, to be refused with its own words."""
    if not isinstance(value, Mapping):
        return value
    return {name: part if isinstance(part, list | tuple) else (part,) for name, part in value.items()}


def _check_factors(factors: Mapping[str, tuple[str, ...]]) -> None:
    if not factors:
        raise ValueError("has no factors; name one at least, e.g. `condition` or `domain`")
    for name, values in factors.items():
        if not values:
            raise ValueError(f"factor {name!r} has no values")
        if repeated := next((value for value in values if values.count(value) > 1), None):
            raise ValueError(f"factor {name!r} lists {repeated!r} twice")


class Design(Record):
    """Who reads what in a study: cells, each filled with so many accepted people."""

    cross: Mapping[Text, tuple[Text, ...]] = Field(default_factory=dict)
    """Values by factor, where every combination of them is a cell."""
    cells: tuple[CellBlock, ...] = ()
    """The cells, where not every combination is one, or where they differ in more than their factors."""
    people: int | None = Field(default=None, ge=1)
    """How many accepted people each cell needs."""
    pay: float | None = Field(default=None, ge=0)
    """What one person earns who hands in all texts."""
    currency: Text = ""
    """Of the pay; has to be said where there is pay."""
    texts: int | None = Field(default=None, ge=1)
    """How many texts one person reads; the protocol's number when absent."""
    eligible: Mapping[Text, tuple[bool | int | float | Text, ...]] = Field(default_factory=dict)
    """Answers to survey questions that everybody needs who takes part, e.g. `native: [yes]`."""
    requirements: Text = ""
    """What people need to take part, in words, as they are told; a platform checks it."""
    reopen: bool = True
    """Whether the place of somebody who is excluded is given to somebody else."""
    apart_from: tuple[Text, ...] = ()
    """Studies whose people may not take part here: `#name` in the same database, a study's folder or its URL."""

    @field_validator("cross", "eligible", mode="before")
    @classmethod
    def _wrap_values(cls, value: Any) -> Any:
        return wrap_single_values(value)

    @model_validator(mode="after")
    def _check_cells(self) -> Design:
        if bool(self.cross) == bool(self.cells):
            raise ValueError("needs either `cross`, the values of each factor, or `cells`, a list")
        if self.cross:
            _check_factors(self.cross)
        if self.people is None and any(block.people is None for block in self.blocks):
            raise ValueError("does not say how many accepted people each cell needs; add e.g. `people: 130`")
        if not self.currency and any(block.pay or self.pay for block in self.blocks):
            raise ValueError("pays people, but does not say in which currency; add e.g. `currency: USD`")
        return self

    @property
    def blocks(self) -> tuple[CellBlock, ...]:
        """Its cells in blocks; a cross is one block."""
        return self.cells or (CellBlock(factors=self.cross),)


ONBOARDING_PHASES: tuple[OnboardingPhase, ...] = ("consent", "survey", "instructions", "training", "qualification")
"""What comes before the work, in order."""


class ModelSettings(Record):
    """A language model as an annotator: where it answers, how it is asked, and what it may cost. Never a key."""

    model: Text
    """As the endpoint calls it; `local:NAME` or a GGUF file for one that runs in this process."""
    base_url: Text = ""
    """Of an OpenAI-compatible endpoint, e.g. `http://localhost:11434/v1`."""
    key_env: Text = ""
    """The environment variable that holds the key; the key itself is nowhere."""
    samples: int = Field(default=1, ge=1, le=100)
    """How often each text is asked; each sample is an annotator of its own."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Not sent when None."""
    max_tokens: int = Field(default=2048, ge=1)
    """Most tokens of a reply; a reply that reaches them is truncated and not read."""
    shots: int = Field(default=0, ge=0)
    """How many gold texts are shown as examples."""
    price: tuple[float, float] | None = None
    """Per million tokens sent and received."""
    budget: float | None = Field(default=None, gt=0)
    """No call is made that could cost more than is left."""
    concurrency: int = Field(default=8, ge=1, le=512)
    """Most calls at a time."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """No limit when None."""
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """Of calls as they are estimated; no limit when None."""
    timeout: float = Field(default=120, gt=0)
    """Seconds for one call, from the first byte sent to the last received."""
    attempts: int = Field(default=6, ge=1, le=50)
    """How often a call is tried when the endpoint is busy, fails or cuts the connection."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Tokens that fit into the model; texts that need more are refused before the first call."""
    by_segment: bool = False
    """Ask part by part, also where the protocol goes by whole texts."""
    seed: int = Field(default=0, ge=0)
    """For shots and the order of pairs; sent to the endpoint with the number of the sample."""


class AuditPlan(Record):
    """The marks of a study that were drawn at random to be judged, and how."""

    marks: tuple[Id, ...]
    """Their ids; nothing else is given out."""
    by: tuple[Text, ...] = ()
    """Document meta or annotator fields by which they were drawn, beside the label."""
    per_label: int = Field(default=10, ge=1)
    """How many of each label and group, at most."""
    seed: int = Field(default=0, ge=0)
    """For the draw."""


class Settings(Record):
    """`study.yaml`: what a study is called and how it is run."""

    title: Text = ""
    """Shown on pages and reports."""
    protocols: tuple[Id, ...] = ()
    """Names and versions; the first is the default."""
    annotators: int | None = Field(default=None, ge=1, le=100_000)
    """How many annotators each document should get."""
    strata: tuple[Text, ...] = ()
    """Document meta that assignment balances, e.g. `model`."""
    quotas: Mapping[Text, Annotated[int, Field(ge=0, le=1_000_000_000)]] = Field(default_factory=dict)
    """Most annotations per condition of annotators or per value of a stratum, by its name."""
    attention_checks: tuple[Id, ...] = ()
    """Ids of documents whose answers are known: a gold annotation says them."""
    models: Mapping[Text, ModelSettings] = Field(default_factory=dict)
    """Language models by the name that `finecomb annotate --model` takes; also the ids of their annotators."""
    offer: Offer | None = None
    """Machine marks shown to annotators; none unless set."""
    allocation: Allocation | None = None
    """Which text comes next: the one where the interval of the mean over all texts shrinks most; without it, the one
    with fewest annotators."""
    skip: tuple[OnboardingPhase, ...] = ()
    """Phases of the protocol that are left out, e.g. for people who were trained elsewhere."""
    mode: Text = ""
    """Which of the protocol's `modes` is in force, e.g. `in-the-data`; the protocol's own when empty."""
    planned: tuple[Text, ...] = ()
    """The tables that will be computed, as commands without the study, e.g. `test --what scores --by condition`."""
    audit: AuditPlan | None = None
    """The marks to be judged where the study is an audit of them."""
    round: int = Field(default=0, ge=0, le=1)
    """Which pass is given out: 0 for the first; 1 for the second, in which annotators see the others' marks."""
    recruitment: Recruitment = Recruitment()
    """Where annotators come from."""
    design: Design | None = None
    """Cells to be filled with accepted people; without one, every text gets so many annotators."""
    lease: int = Field(default=120, ge=1, le=525_600)
    """Minutes that a text is kept for somebody who does nothing."""
    pilot: int = Field(default=5, ge=1, le=1_000_000)
    """How many documents are handed out in pilot mode."""
    price: float | None = Field(default=None, ge=0, le=1_000_000)
    """Pay per annotation."""
    base_pay: float = Field(default=0, ge=0, le=1_000_000)
    """Pay for taking part, also for those who do not pass the qualification."""
    pay_floor: float | None = Field(default=None, gt=0, le=1_000_000)
    """What an hour of work pays at least; where the people of a cell got less, its page names the bonus they lack."""
    fees: float = Field(default=0, ge=0, le=100)
    """The platform's share on top of pay, e.g. 0.2."""
    staff_minutes: float = Field(default=0, ge=0, le=100_000_000)
    """Minutes that staff spent on the study so far."""
    staff_rate: float = Field(default=0, ge=0, le=1_000_000)
    """What an hour of staff costs."""
    budget: float | None = Field(default=None, gt=0, le=1_000_000_000)
    """What the people may cost in all; cost is drawn against it, and nothing stops when it is spent."""
    currency: Text = "USD"
    """Of all amounts; that of a design which pays people goes before it."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """For assignment and sampling."""
    meta: Meta = Field(default_factory=dict)
    """Anything else."""

    @property
    def effective_currency(self) -> str:
        """The currency of all amounts."""
        return (self.design.currency if self.design else "") or self.currency


class Note(Record):
    """A line for the user about what a reader met, e.g. how many quotes could not be placed."""

    text: str
    """The line."""
    is_error: bool = False
    """Whether `finecomb check` counts it among the errors, as with a stored record that cannot be read."""


def iter_quoted_spans(mark: Mark) -> Iterator[tuple[Span, str]]:
    """Every located span of a mark, of its antecedents and of its alternatives, with its quote."""
    located = zip(mark.spans, mark.quotes, strict=False)
    if mark.antecedents is None and not mark.alternatives:
        return located
    others: list[Antecedents | AlternativeMark] = list(itertools.chain.from_iterable(mark.alternatives))
    if mark.antecedents:
        others.insert(0, mark.antecedents)
    return itertools.chain(located, *(zip(other.spans, other.quotes, strict=False) for other in others))
