"""Requests and responses of annotators: the source of the OpenAPI description and the TypeScript types.

An annotator gets a `Task`: the text under an opaque ID, without the document's ID, model or other meta. Everything the
annotator does is stored in *entries* of the task, each saved separately by one idempotent PUT:

    PUT /api/tasks/{task}/marks/{id}         MarkChange        -> SaveResponse
    PUT /api/tasks/{task}/units/{start-end}  UnitChange        -> SaveResponse
    PUT /api/tasks/{task}/answers            AnswersChange     -> SaveResponse
    PUT /api/tasks/{task}/decisions/{id}     SuggestionChange  -> SaveResponse
    PUT /api/tasks/{task}/finish             FinishRequest     -> SaveResponse
    PUT /api/tasks/{task}/reopen             FinishRequest     -> SaveResponse
    GET /api/me -> Me,  POST /api/next -> NextResponse,  GET /api/tasks/{task} -> Task
    PUT /api/steps/{step}                    StepCompletion    -> SaveResponse
    PUT /api/steps/{step}/guess              Guess             -> Page
    GET /api/tasks/{task}/feedback -> Feedback
    GET /api/join/{token} -> Welcome,  POST /api/join/{token} -> SignInResponse
    POST /api/join/{token}/decline -> Ending,  POST /api/leave

A personal or open link leads to the page `/join/{token}`, which shows `Welcome` and signs in by the POST. The
parameters that a recruiting platform adds (`?PROLIFIC_PID=...`) are passed to every call of `/api/join`.

Annotators follow the phases of the protocol: consent (on the page of the link), survey, instructions, training,
qualification, work, thanks. `NextResponse` contains the next `Page` to read or answer, or the next `Task`. Exercises
and multiple-choice questions are tasks as well, saved and submitted in the same way.

All errors are `ErrorResponse` objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field

from finecomb.core.practice import Example
from finecomb.core.protocol import Group, Guideline, Label, Mode, Work
from finecomb.core.question import Question
from finecomb.core.records import (
    AlternativeMark,
    AnnotationPhase,
    Answer,
    Answers,
    Id,
    Json,
    OnboardingPhase,
    Record,
    Text,
    Time,
)
from finecomb.core.span import Span
from finecomb.server.schema import ErrorCode, LabelLook, State


class AntecedentBody(Record):
    """Earlier words that a mark refers to."""

    spans: tuple[Span, ...] = Field(min_length=1, max_length=1000)
    quotes: tuple[Text, ...]


class MarkBody(Record):
    """Mark as the browser sends it. The entry's ID is the mark's ID."""

    spans: tuple[Span, ...] = Field(min_length=1, max_length=1000)
    """`[start, end]` or `[part, start, end]`, in code points and text order; start == end for an omission."""
    quotes: tuple[Text, ...]
    """Text of the spans, which the server verifies."""
    label: Text | None
    """Name of the label."""
    answers: Answers = {}
    """Answers to the questions of the label."""
    antecedent: AntecedentBody | None = None
    """Antecedent of the mark."""
    made_from: tuple[Id, ...] = Field(default=(), max_length=10)
    """Offered mark that was accepted or edited."""
    alternatives: tuple[tuple[AlternativeMark, ...], ...] = Field(default=(), max_length=20)
    """Other interpretations of the same error, each a complete set of marks."""


class UnitBody(Record):
    """Judged part. Its presence means that the part was read, even without marks."""

    answers: Answers = {}
    """Answers to the unit questions, or `cannot_judge` with a reason."""
    seconds: float = Field(default=0, ge=0)
    """Active seconds spent on the part."""


class AnswersBody(Record):
    """Answers about the whole text."""

    answers: Answers = {}
    """Answers to the document questions, or `cannot_judge` with a reason."""
    no_errors: bool = False
    """Confirmation that the text has no errors."""


class SuggestionBody(Record):
    """Decision about an offered mark."""

    decision: Literal["accepted", "edited", "rejected"]
    mark: Id | None = None
    """Mark made from the offered one."""


ChangeId = Annotated[Id, Field(max_length=100)]
Body = TypeVar("Body", bound=Record)


class Entry(Record, Generic[Body]):
    """Single item saved by an annotator in a task, in its latest version."""

    id: Id
    """Created by the browser for marks, `start-end` for judged parts, `text` for answers, and the offered mark's ID for
    decisions.
    """
    version: int = Field(ge=1)
    """Version, increased by the server with each accepted change."""
    body: Body | None
    """Content; None when deleted."""


class Change(Record, Generic[Body]):
    """Save request. A repeated change is applied once."""

    change: ChangeId
    """ID created by the browser. A repeated ID gets the response of the first request."""
    base: int = Field(default=0, ge=0)
    """Version that was changed; 0 for a new entry. Another version on the server is a `conflict`."""
    body: Body | None = None
    """New content; None deletes the entry."""
    active: float = Field(default=0, ge=0)
    """Active seconds in this task so far. The server keeps the maximum, limited to the elapsed time."""


class MarkEntry(Entry[MarkBody]):
    """Mark with its version."""


class MarkChange(Change[MarkBody]):
    """Save request for a mark."""


class UnitEntry(Entry[UnitBody]):
    """Judged part with its version."""


class UnitChange(Change[UnitBody]):
    """Save request for a judged part."""


class AnswersEntry(Entry[AnswersBody]):
    """Answers about the text, and the version of these answers."""


class AnswersChange(Change[AnswersBody]):
    """Save request for the answers about the text."""


class SuggestionEntry(Entry[SuggestionBody]):
    """Decision about an offered mark with its version."""


class SuggestionChange(Change[SuggestionBody]):
    """Save request for a decision about an offered mark."""


class FinishRequest(Record):
    """Request to submit or reopen a task. Repeating it changes nothing."""

    change: ChangeId
    active: float = Field(default=0, ge=0)


class ErrorResponse(Record):
    """Common form of all errors."""

    code: ErrorCode
    """Error code for the interface."""
    say: str
    """Message for the user."""
    stored: MarkEntry | UnitEntry | AnswersEntry | SuggestionEntry | None = None
    """For `conflict`, the entry as stored on the server."""
    missing: tuple[str, ...] = ()
    """For `incomplete`, the missing items as `kind/id: item`."""


class SaveResponse(Record):
    """Confirmation that a change is on disk."""

    change: Id
    version: int
    """New version of the entry; 0 for `finish`."""


class TextPart(Record):
    """Part of a text that is judged part by part."""

    start: int
    end: int
    title: Text = ""
    role: Text = ""


class OfferedMark(Record):
    """Mark suggested by a machine, without its source."""

    id: Id
    spans: tuple[Span, ...]
    quotes: tuple[Text, ...]
    label: Text | None
    answers: Answers = {}


class Practice(Record):
    """Part of a task that makes it an exercise or a multiple-choice question, without the solution."""

    part: Text = ""
    """Title of the qualification part; empty in training."""
    ask: Text = ""
    """Instruction for the exercise."""
    label: Text | None = None
    """Label that the exercise practises; None for several."""
    number: int
    """Position in its part, counted from 1."""
    of: int
    """Number of exercises in its part."""
    points: float = 0
    """Maximum points; 0 in training."""
    question: Question | None = None
    """Multiple-choice question, asked instead of those of the protocol. Its answer is named `answer`."""
    spans: tuple[Span, ...] = ()
    """Spans that a multiple-choice question is about."""
    verify: bool = False
    """True when answers may be compared with the solution before submission."""


class AnsweredQuestion(Record):
    """Question and answer in words."""

    ask: Text
    answer: Text


class JudgedWork(Record):
    """Work of another person that is to be judged, without their identity."""

    labels: tuple[Label, ...] = ()
    """Labels of the protocol under which the work was made."""
    looks: tuple[LabelLook, ...] = ()
    """Styles in the order of these labels; the last is for marks without a label."""
    marks: tuple[OfferedMark, ...] = ()
    """Mark to judge, or all marks of the annotation to judge."""
    said: tuple[AnsweredQuestion, ...] = ()
    """Answers about the mark, or about the text."""


class SolutionResult(Record):
    """Known error of an exercise, as shown afterwards."""

    spans: tuple[Span, ...]
    quotes: tuple[Text, ...]
    label: Text | None = None
    answers: Answers = {}
    antecedent: Text = ""
    why: Text = ""
    mark: Id | None = None
    """ID of the annotator's mark that found the error; None when the error was missed."""
    points: float = 0
    """Points earned for the error."""


class Feedback(Record):
    """Feedback on an exercise or a multiple-choice question."""

    points: float = 0
    of: float = 0
    """Maximum points; `points` and `of` are 0 in training."""
    solutions: tuple[SolutionResult, ...] = ()
    """Known errors in text order."""
    extra: tuple[Id, ...] = ()
    """IDs of the annotator's marks that match no known error."""
    answers: Answers = {}
    """Right answers about the text, where known."""
    units: Mapping[Id, Answers] = {}
    """Right answers about parts, by part ID."""
    right: bool = True
    """True when all known answers were given and all known errors found."""
    say: Text = ""
    """Feedback in words."""


class Task(Record):
    """Text to annotate, with the work so far."""

    id: Id
    """Opaque ID, which reveals nothing about the text."""
    number: int
    """Position in the annotator's order, counted from 1."""
    text: Text
    context: Mapping[Id, Text] = {}
    """Named contexts, unless the protocol hides them. The texts of a pair are named `first` and `second` by position,
    in answers and marks as well.
    """
    parts: tuple[TextPart, ...] = ()
    """Parts, when the protocol goes part by part. When errors are marked, `text` ends with the part to judge, and the
    next one is sent after that. Later parts have only their offsets.
    """
    sentences: Mapping[Text, tuple[tuple[int, int], ...]] = {}
    """Offsets of the sentences by part, when a label covers whole sentences."""
    data: Json = None
    """Data, when the protocol shows it."""
    offered: tuple[OfferedMark, ...] = ()
    """Marks to accept, edit or reject."""
    marks: tuple[MarkEntry, ...] = ()
    """Marks, without deleted ones. The fields below omit deleted entries as well."""
    units: tuple[UnitEntry, ...] = ()
    answers: AnswersEntry | None = None
    decisions: tuple[SuggestionEntry, ...] = ()
    """Decisions about offered marks."""
    phase: AnnotationPhase = "work"
    practice: Practice | None = None
    """Exercise, in training and qualification."""
    about: JudgedWork | None = None
    """Work to judge, when the task is not about the text."""
    round: int = 0
    """1 in the second pass, where `offered` are the marks of others; in the qualification, the attempt."""
    status: Literal["draft", "submitted"] = "draft"
    active: float = 0
    """Active seconds so far."""
    lease: Time | None = None
    """Time until which the task is reserved for this annotator; each save renews it."""


class TaskSummary(Record):
    """Task in the annotator's list."""

    id: Id
    number: int
    status: Literal["draft", "submitted"]


class Guide(Record):
    """Protocol as shown to annotators, without solutions and weights."""

    id: str
    title: Text
    summary: Text
    language: Text
    groups: tuple[Group, ...]
    labels: tuple[Label, ...]
    looks: tuple[LabelLook, ...]
    """Styles in the order of the labels; the last is for marks without a label."""
    unlabelled: bool
    marks_on: tuple[Text, ...] | None = None
    """Parts that may be marked; None for all parts."""
    questions: tuple[Question, ...]
    unit_questions: tuple[Question, ...]
    document_questions: tuple[Question, ...]
    rules: tuple[Text, ...]
    guidelines: tuple[Guideline, ...]
    mode: Mode | None
    """Mode in use."""
    work: Work
    instructions: Text
    examples: tuple[Example, ...]
    thanks: Text


class PartResult(Record):
    """Points in one part of the qualification."""

    title: Text
    count: int
    """Number of exercises or questions."""
    points: float
    of: float
    each: float = 0
    """Points per exercise or question."""
    lose: float | None = None
    """Points lost per missed error; None for all-or-nothing scoring."""


class ItemResult(Record):
    """Graded exercise or question; `GET /api/tasks/{task}/feedback` has the details."""

    task: Id
    title: Text
    points: float
    of: float
    chosen: bool = False
    """True for a multiple-choice question."""
    kinds: tuple[Text, ...] = ()
    """Labels on which points were lost, in the order of the protocol."""


class QualificationResult(Record):
    """Result of the qualification."""

    passed: bool
    score: float
    of: float
    needed: float
    precision: float | None = None
    """Share of the marks that were right; None without marks."""
    precision_needed: float | None = None
    parts: tuple[PartResult, ...]
    items: tuple[ItemResult, ...]
    attempt: int
    """Attempt, counted from 1."""
    attempts: int
    """Maximum number of attempts."""


class Page(Record):
    """Onboarding page to read or answer, or the result of the qualification."""

    step: Id
    """Step ID for `PUT /api/steps/{step}`."""
    kind: Literal["survey", "instructions", "examples", "intro", "label", "result"]
    """`examples` is the practice of one condition, `intro` the start of the training or of a qualification part, and
    `label` the meaning of a label before its exercise.
    """
    phase: OnboardingPhase
    title: Text = ""
    say: Text = ""
    """Content in Markdown."""
    questions: tuple[Question, ...] = ()
    """Survey questions."""
    answers: Answers = {}
    """Earlier survey answers."""
    examples: tuple[Example, ...] = ()
    """Texts of a practice round, one or two side by side, with the solution only after the guess."""
    number: int = 0
    """Number of the practice round, counted from 1."""
    of: int = 0
    """Number of practice rounds."""
    guess: Answer | None = None
    """Guess; `a` or `b` for two texts."""
    is_open: bool = False
    """True when the examples include the solution."""
    result: QualificationResult | None = None


class StepCompletion(Record):
    """Completion of an onboarding page. Repeating it changes nothing."""

    change: ChangeId
    answers: Answers = {}
    """Survey answers."""
    active: float = Field(default=0, ge=0)
    """Active seconds on the page."""


class Guess(Record):
    """Guess in a practice round, before the solution is shown. Only the first guess counts."""

    change: ChangeId
    guess: Answer | None = None
    """Answer to the question about the text, or `a` or `b` for two texts."""
    active: float = Field(default=0, ge=0)
    """Active seconds so far."""


class ProgressSection(Record):
    """Section of the progress bar."""

    phase: Literal["survey", "instructions", "training", "qualification", "work"]
    state: Literal["done", "now", "ahead"]


class Ending(Record):
    """End of a person's participation, with the completion code and the link back to the platform."""

    why: Literal["done", "screened-out", "no-consent"]
    code: str = ""
    back: Text = ""
    """URL to return to."""
    form: Mapping[str, str] = {}
    """Form fields to send, when the platform requires a form; `back` is then the form's URL."""
    more: bool = False
    """True when the person may continue with another task on the platform."""


class Me(Record):
    """Signed-in annotator and their progress."""

    annotator: Id
    title: Text
    """Title of the study."""
    state: State
    guide: Guide
    tasks: tuple[TaskSummary, ...]
    """Tasks in order of assignment."""
    of: int
    """Total number of tasks that the annotator can expect."""
    way: tuple[ProgressSection, ...] = ()
    """Sections of the progress bar that the study has, including the work."""
    ending: Ending | None = None
    """Ending, once there is nothing more to do."""
    code: str = ""
    """Code for continuing in another browser, for people from a platform only."""
    csrf: str
    """Token to send as `X-Finecomb-Token` with every request that changes something."""


class NextResponse(Record):
    """Next task or page."""

    task: Task | None = None
    page: Page | None = None
    """Page instead of a task."""
    why: Literal["", "all-done", "none-now", "paused", "closed", "screened-out", "ended"] = ""
    """Reason for having neither: all done, none available, not qualified, excluded, or study paused or closed."""


class Welcome(Record):
    """Study behind a link, before sign-in."""

    title: Text
    """Title of the study."""
    personal: bool
    """True for a personal link; the open link registers a new person."""
    state: State
    summary: Text
    consent: Text = ""
    """Terms that people accept by starting."""
    preview: bool = False
    """True when the task was not accepted on the platform yet, so that work cannot start."""
    window: bool = False
    """True when the page should open in its own tab instead of the platform's frame."""


class SignInResponse(Record):
    """Confirmation of sign-in; the cookie is set, and `GET /api/me` has the details."""

    annotator: Id
    csrf: str
