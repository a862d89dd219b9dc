"""What goes between server and browser: the source of the OpenAPI description and of the TypeScript types.

An annotator gets a `Task`: the text under an opaque id, without the document's id, model or other meta. Whatever the
annotator does is kept in *entries* of the task, each saved on its own by one idempotent PUT:

    PUT /api/tasks/{task}/marks/{id}         MarkChange        -> Saved
    PUT /api/tasks/{task}/units/{start-end}  UnitChange        -> Saved
    PUT /api/tasks/{task}/answers            AnswersChange     -> Saved
    PUT /api/tasks/{task}/decisions/{id}     SuggestionChange  -> Saved
    PUT /api/tasks/{task}/finish             Finish            -> Saved
    PUT /api/tasks/{task}/reopen             Finish            -> Saved
    GET /api/me -> Me,  POST /api/next -> NextResponse,  GET /api/tasks/{task} -> Task
    PUT /api/steps/{step}                    StepDone          -> Saved
    PUT /api/steps/{step}/guess              Guess             -> Page
    GET /api/tasks/{task}/feedback -> Feedback
    GET /api/join/{token} -> Welcome,  POST /api/join/{token} -> SignedIn,  POST /api/join/{token}/decline -> Ending
    POST /api/leave

A link leads to the page `/join/{token}`, personal or open; the page shows `Welcome` and signs in by the POST. What a
recruiting platform adds to the address (`?PROLIFIC_PID=...`) goes along with every call of `/api/join`.

The way of an annotator is that of the protocol: consent (on the page of the link), survey, instructions, training,
qualification, work, thanks. `NextResponse` says what comes now: a `Page` to read or answer, or a `Task`. Exercises of
training and qualification and multiple-choice questions are tasks like any other, saved and handed in in the same way.

Every error is an `ErrorResponse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field

from finecomb.core.practice import Example
from finecomb.core.protocol import Group, Guideline, Label, Mode, Work
from finecomb.core.question import Question
from finecomb.core.records import AlternativeMark, Answer, Answers, Id, Json, OnboardingPhase, Phase, Record, Text, Time
from finecomb.core.span import Span
from finecomb.server.schema import ErrorCode, LabelLook, State


class AntecedentBody(Record):
    """Earlier words that a mark refers to."""

    spans: tuple[Span, ...] = Field(min_length=1, max_length=1000)
    quotes: tuple[Text, ...]


class MarkBody(Record):
    """A mark as it travels; its id is the entry's."""

    spans: tuple[Span, ...] = Field(min_length=1, max_length=1000)
    """`[start, end]` or `[part, start, end]`, in code points and in text order; start == end for words left out."""
    quotes: tuple[Text, ...]
    """What the spans cover; the server refuses any other."""
    label: Text | None
    """A label's name."""
    answers: Answers = {}
    """To the label's questions."""
    antecedent: AntecedentBody | None = None
    """Earlier words."""
    made_from: tuple[Id, ...] = Field(default=(), max_length=10)
    """The offered mark it was accepted or edited from."""
    alternatives: tuple[tuple[AlternativeMark, ...], ...] = Field(default=(), max_length=20)
    """The same mistake, read otherwise: each a complete other set of marks."""


class UnitBody(Record):
    """A part that was judged; being there says it was seen, also without marks."""

    answers: Answers = {}
    """To the unit's questions; `cannot_judge` with a reason."""
    seconds: float = Field(default=0, ge=0)
    """Active time spent on it."""


class AnswersBody(Record):
    """Answers about the whole text."""

    answers: Answers = {}
    """To the document's questions; `cannot_judge` with a reason."""
    no_errors: bool = False
    """Said explicitly: read, and nothing found."""


class SuggestionBody(Record):
    """What was decided about an offered mark."""

    decision: Literal["accepted", "edited", "rejected"]
    mark: Id | None = None
    """The mark that was made of it."""


ChangeId = Annotated[Id, Field(max_length=100)]
Body = TypeVar("Body", bound=Record)


class Entry(Record, Generic[Body]):
    """One thing an annotator did in a task; the server keeps its latest version."""

    id: Id
    """Of a mark: made by the browser. Of a judged part: `start-end`. Of the answers: `text`. Of a decision: the
    offered mark's id."""
    version: int = Field(ge=1)
    """Counted up by the server with every accepted change."""
    body: Body | None
    """None when it was deleted."""


class Change(Record, Generic[Body]):
    """A save. The same change may arrive any number of times and counts once."""

    change: ChangeId
    """Made by the browser; a repeated one is answered as the first was."""
    base: int = Field(default=0, ge=0)
    """The version that was changed; 0 for a new entry. Another one on the server is a `conflict`."""
    body: Body | None = None
    """None deletes."""
    active: float = Field(default=0, ge=0)
    """Active seconds in this task so far; the server keeps the most, and never more than wall time."""


class MarkEntry(Entry[MarkBody]):
    """A mark with its version."""


class MarkChange(Change[MarkBody]):
    """A save of a mark."""


class UnitEntry(Entry[UnitBody]):
    """A judged part with its version."""


class UnitChange(Change[UnitBody]):
    """A save of a judged part."""


class AnswersEntry(Entry[AnswersBody]):
    """The answers about the text with its version."""


class AnswersChange(Change[AnswersBody]):
    """A save of the answers about the text."""


class SuggestionEntry(Entry[SuggestionBody]):
    """A decision about an offered mark with its version."""


class SuggestionChange(Change[SuggestionBody]):
    """A save of a decision about an offered mark."""


class FinishRequest(Record):
    """Hands a task in; doing so twice is doing so once."""

    change: ChangeId
    active: float = Field(default=0, ge=0)


class ErrorResponse(Record):
    """The one shape of every error."""

    code: ErrorCode
    """What the interface goes by."""
    say: str
    """For people: what happened, what is safe, what to do."""
    stored: MarkEntry | UnitEntry | AnswersEntry | SuggestionEntry | None = None
    """For `conflict`: the entry as it is on the server."""
    missing: tuple[str, ...] = ()
    """For `incomplete`: `kind/id: what is missing`."""


class SaveResponse(Record):
    """The change is on disk."""

    change: Id
    version: int
    """Of the entry now; 0 for `finish`."""


class TextPart(Record):
    """One part of a text that is judged part by part."""

    start: int
    end: int
    title: Text = ""
    role: Text = ""


class OfferedMark(Record):
    """A mark that a machine suggests; who suggests it is not said."""

    id: Id
    spans: tuple[Span, ...]
    quotes: tuple[Text, ...]
    label: Text | None
    answers: Answers = {}


class Practice(Record):
    """What makes a task an exercise or a multiple-choice question; never its solution."""

    part: Text = ""
    """Title of the part of the qualification; empty in training."""
    ask: Text = ""
    """What to do."""
    label: Text | None = None
    """The one label it practises, when it practises one."""
    number: int
    """Counted from 1 in its part."""
    of: int
    """How many there are in its part."""
    points: float = 0
    """At stake; 0 in training."""
    question: Question | None = None
    """Of a multiple-choice question: asked in place of the protocol's; the answer is the text's answer `answer`."""
    spans: tuple[Span, ...] = ()
    """The words that such a question is about."""
    verify: bool = False
    """Whether answers may be compared with the solution before they are handed in."""


class AnsweredQuestion(Record):
    """A question and somebody's answer to it, both in words."""

    ask: Text
    answer: Text


class JudgedWork(Record):
    """Somebody's work that is to be judged; who did it is not said."""

    labels: tuple[Label, ...] = ()
    """Of the protocol it was made under, to look up what they mean."""
    looks: tuple[LabelLook, ...] = ()
    """In the order of these labels; the last is for marks without a label."""
    marks: tuple[OfferedMark, ...] = ()
    """The mark in question, or all marks of the annotation in question."""
    said: tuple[AnsweredQuestion, ...] = ()
    """What was answered about the mark, or about the text."""


class SolutionResult(Record):
    """A known error of an exercise, as it is shown afterwards."""

    spans: tuple[Span, ...]
    quotes: tuple[Text, ...]
    label: Text | None = None
    answers: Answers = {}
    antecedent: Text = ""
    why: Text = ""
    mark: Id | None = None
    """The annotator's mark that found it; None when it was missed."""
    points: float = 0
    """What finding it earned."""


class Feedback(Record):
    """How an exercise or a multiple-choice question went."""

    points: float = 0
    of: float = 0
    """Both 0 in training."""
    solutions: tuple[SolutionResult, ...] = ()
    """In text order."""
    extra: tuple[Id, ...] = ()
    """The annotator's marks that found nothing."""
    answers: Answers = {}
    """The right answers about the text, where they are known."""
    units: Mapping[Id, Answers] = {}
    """The right answers about parts, by the parts' ids."""
    right: bool = True
    """Whether every known answer was given and every known error found."""
    say: Text = ""
    """In words."""


class Task(Record):
    """One text to judge, with what was done so far."""

    id: Id
    """Opaque; says nothing about the text."""
    number: int
    """Counted from 1 in this annotator's order."""
    text: Text
    context: Mapping[Id, Text] = {}
    """Named texts beside it, unless the protocol hides them. The texts of a pair are called `first` and `second`, by
    their place, and so they are in answers and marks."""
    parts: tuple[TextPart, ...] = ()
    """Where the protocol goes part by part. Where errors are marked so, `text` ends with the part that is to be judged,
    and the next one is sent once that was; of later parts only their place is told."""
    sentences: Mapping[Text, tuple[tuple[int, int], ...]] = {}
    """Start and end of the sentences by part, where a label goes with whole ones."""
    data: Json = None
    """Where the protocol shows it."""
    offered: tuple[OfferedMark, ...] = ()
    """Marks to accept, edit or reject."""
    marks: tuple[MarkEntry, ...] = ()
    """Without deleted ones, here and below."""
    units: tuple[UnitEntry, ...] = ()
    answers: AnswersEntry | None = None
    decisions: tuple[SuggestionEntry, ...] = ()
    """What was decided about offered marks."""
    phase: Phase = "work"
    practice: Practice | None = None
    """In training and qualification."""
    about: JudgedWork | None = None
    """Where somebody's work is judged rather than the text."""
    round: int = 0
    """1 in the second pass, whose `offered` are the other annotators' marks; in the qualification, the attempt."""
    status: Literal["draft", "submitted"] = "draft"
    active: float = 0
    """Active seconds so far."""
    lease: Time | None = None
    """Until when it is kept for this annotator; every save renews it."""


class TaskSummary(Record):
    """A task in the annotator's list: one tooth of the comb."""

    id: Id
    number: int
    status: Literal["draft", "submitted"]


class Guide(Record):
    """What annotators see of the protocol: never solutions, never weights."""

    id: str
    title: Text
    summary: Text
    language: Text
    groups: tuple[Group, ...]
    labels: tuple[Label, ...]
    looks: tuple[LabelLook, ...]
    """In the order of the labels; the last is for marks without a label."""
    unlabelled: bool
    marks_on: tuple[Text, ...] | None = None
    """Parts that may be marked; every part when absent."""
    questions: tuple[Question, ...]
    unit_questions: tuple[Question, ...]
    document_questions: tuple[Question, ...]
    rules: tuple[Text, ...]
    guidelines: tuple[Guideline, ...]
    mode: Mode | None
    """The one in force."""
    work: Work
    instructions: Text
    examples: tuple[Example, ...]
    thanks: Text


class PartResult(Record):
    """Points in one part of the qualification."""

    title: Text
    count: int
    """Exercises or questions in it."""
    points: float
    of: float
    each: float = 0
    """What one of them is worth."""
    lose: float | None = None
    """What each known error that was not found costs; None where it is all or nothing."""


class ItemResult(Record):
    """One exercise or question after grading; `GET /api/tasks/{task}/feedback` says the rest."""

    task: Id
    title: Text
    points: float
    of: float
    chosen: bool = False
    """Whether it is a multiple-choice question."""
    kinds: tuple[Text, ...] = ()
    """Labels on which points were lost, in the order of the protocol."""


class QualificationResult(Record):
    """How the qualification went."""

    passed: bool
    score: float
    of: float
    needed: float
    precision: float | None = None
    """Share of the marks that were right; None when nothing was marked."""
    precision_needed: float | None = None
    parts: tuple[PartResult, ...]
    items: tuple[ItemResult, ...]
    attempt: int
    """Counted from 1."""
    attempts: int
    """How many are allowed."""


class Page(Record):
    """A step of the way without a text to judge: something to read, to answer, or how the test went."""

    step: Id
    """To be said back by `PUT /api/steps/{step}` when it is done."""
    kind: Literal["survey", "instructions", "examples", "intro", "label", "result"]
    """`examples`: the practice of one arm of an experiment; `intro`: how training or a part of the test begins;
    `label`: what a label means, before the exercise that practises it."""
    phase: OnboardingPhase
    title: Text = ""
    say: Text = ""
    """Markdown."""
    questions: tuple[Question, ...] = ()
    """Of a survey."""
    answers: Answers = {}
    """Given before."""
    examples: tuple[Example, ...] = ()
    """Of a practice round: one text, or two side by side; with its answer only once there is a guess."""
    number: int = 0
    """Of a practice round: counted from 1."""
    of: int = 0
    """How many practice rounds there are."""
    guess: Answer | None = None
    """What was guessed; of two texts `a` or `b`."""
    is_open: bool = False
    """Whether the answer is among the examples."""
    result: QualificationResult | None = None


class StepCompletion(Record):
    """A page was read or answered; saying so twice is saying so once."""

    change: ChangeId
    answers: Answers = {}
    """Of a survey."""
    active: float = Field(default=0, ge=0)
    """Active seconds on it."""


class Guess(Record):
    """What somebody thinks in a practice round, before the answer is shown; only the first guess is kept."""

    change: ChangeId
    guess: Answer | None = None
    """An answer to the question about the text, or of two texts `a` or `b`."""
    active: float = Field(default=0, ge=0)
    """Active seconds so far."""


class ProgressSection(Record):
    """A stretch of the way, for the list of what is done and what is to come."""

    phase: Literal["survey", "instructions", "training", "qualification", "work"]
    state: Literal["done", "now", "ahead"]


class Ending(Record):
    """How somebody's part ended, and what they take back to where they were recruited."""

    why: Literal["done", "screened-out", "no-consent"]
    code: str = ""
    back: Text = ""
    """An address to go on to."""
    form: Mapping[str, str] = {}
    """Fields to be sent there by a form, where the platform wants one; then `back` is the form's address."""
    more: bool = False
    """Whether the same person may take another task on the platform and go on."""


class Me(Record):
    """Who is signed in and how far they are."""

    annotator: Id
    title: Text
    """Of the study."""
    state: State
    guide: Guide
    tasks: tuple[TaskSummary, ...]
    """In the order they were given out."""
    of: int
    """How many texts this annotator can expect in all."""
    way: tuple[ProgressSection, ...] = ()
    """What comes before the work, and the work; only what this study has."""
    ending: Ending | None = None
    """Once there is nothing more to do."""
    code: str = ""
    """To be typed in another browser in order to go on there; only for people whom a platform sent."""
    csrf: str
    """To be sent as `X-Finecomb-Token` with every request that changes something."""


class NextResponse(Record):
    """The answer to "what next?"."""

    task: Task | None = None
    page: Page | None = None
    """In place of a task."""
    why: Literal["", "all-done", "none-now", "paused", "closed", "screened-out", "ended"] = ""
    """Why there is neither: everything done, nothing free at the moment, the qualification not passed, or excluded."""


class Welcome(Record):
    """What a link opens, before anybody is signed in."""

    title: Text
    """Of the study."""
    personal: bool
    """Whether the link is one person's own; by the open link everybody comes in as somebody new."""
    state: State
    summary: Text
    consent: Text = ""
    """What people agree to by starting."""
    preview: bool = False
    """Whether somebody only looks, before having accepted the work on a platform: nobody can start then."""
    window: bool = False
    """Whether the page wants a tab of its own where it finds itself inside a platform's page."""


class SignInResponse(Record):
    """The cookie is set; `GET /api/me` says the rest."""

    annotator: Id
    csrf: str
