"""What annotators are asked, as data: labels in groups, questions, work, training, qualification, weights."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from finecomb.core.errors import ProtocolError, did_you_mean, shorten
from finecomb.core.records import Answer, Answers, Document, Id, Json, Mark, Meta, Record, Segment, Text
from finecomb.core.span import TEXT, Span

Scale = Literal["nominal", "ordinal", "number", "yes-no", "several", "text", "rewrite"]
Scope = Literal["document", "unit"]
Snap = Literal["word", "sentence", "character"]


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/-]*", value):
        raise ValueError(f"a name has lower-case letters, digits, '-', '.', '/' and '_' only, not {value!r}")
    return value


def _question_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError(f"a question's name has lower-case letters, digits and '_' only, not {value!r}")
    return value


def _as_option(value: Any) -> Any:
    return value if isinstance(value, dict | Record) else {"value": value}


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None
    return value


def _file_name(value: str) -> str:
    if "/" in value:
        raise ValueError(f"a protocol's name is also the name of its file and has no '/', unlike {value!r}")
    return value


def _name_or_family(value: str) -> str:
    _name(value.removesuffix("*") if value.endswith("/*") else value)
    return value


Name = Annotated[str, AfterValidator(_name)]
Names = Annotated[str, AfterValidator(_name_or_family)]
"""The name of a label, or `accuracy/*` for all that begin so."""
QuestionName = Annotated[str, AfterValidator(_question_name)]
Pattern = Annotated[str, AfterValidator(_pattern)]


class Option(Record):
    """One answer to choose; in YAML a bare value will do."""

    value: bool | int | float | Text
    """What is stored."""
    title: Text = ""
    """What is shown; the value itself when empty."""
    gloss: Text = ""
    """One line that explains it."""
    group: Text = ""
    """Heading under which it is listed."""
    aliases: tuple[Text, ...] = ()
    """Other spellings that importers accept."""


class When(Record):
    """Ask only after certain answers to another question."""

    question: QuestionName
    """The other question."""
    among: tuple[bool | int | float | Text, ...] = Field(min_length=1)
    """The answers after which this one is asked."""


class Question(Record):
    """Something asked of a mark, a unit, a document or an annotator."""

    name: QuestionName
    """Under which the answer is stored.

    `severity`, `explanation`, `correction`, `comment` and `cannot_judge` have a known meaning.
    """
    ask: Text
    """The question as people read it."""
    help: Text = ""
    """A quiet line below it."""
    scale: Scale = "text"
    """`nominal`, `ordinal` and `several` choose among options; the rest do not, `rewrite` being an edited text."""
    options: tuple[Annotated[Option, BeforeValidator(_as_option)], ...] = ()
    """In order; for `ordinal` from least to most."""
    required: bool = True
    """Whether work can be finished without it."""
    when: When | None = None
    """Ask only after certain answers."""
    low: float | None = None
    """Smallest number accepted."""
    high: float | None = None
    """Largest number accepted."""

    @model_validator(mode="after")
    def _options_fit(self) -> Question:
        chooses = self.scale in ("nominal", "ordinal", "several")
        if chooses and len(self.options) < 2:
            raise ValueError(f"scale '{self.scale}' needs at least two options")
        if self.options and not chooses:
            raise ValueError(f"scale '{self.scale}' takes no options; use nominal, ordinal or several")
        if self.scale == "several" and not all(isinstance(value, str) for value in self.values):
            raise ValueError("scale 'several' needs options that are text; put them in quotes")
        _unique("option", [str(option.value) for option in self.options])
        if self.scale != "number" and (self.low, self.high) != (None, None):
            raise ValueError(f"scale '{self.scale}' takes neither low nor high; they are for number")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} is more than high {self.high:g}")
        return self

    @functools.cached_property
    def values(self) -> tuple[bool | int | float | str, ...]:
        """The values of its options."""
        return tuple(option.value for option in self.options)

    def problem(self, answer: Answer) -> str:
        """What is wrong with `answer`, in words, or an empty string."""
        match self.scale:
            case "text" | "rewrite":
                wrong = "" if isinstance(answer, str) else "expected text"
            case "yes-no":
                wrong = "" if isinstance(answer, bool) else "expected true or false"
            case "number":
                wrong = self._number_problem(answer)
            case "several":
                wrong = self._several_problem(answer)
            case _:
                wrong = "" if _among(answer, self.values) else f"expected one of {_listed(self.values)}"
        return wrong and f"answer {shorten(repr(answer), 40)} to '{self.name}': {wrong}"

    def _number_problem(self, answer: Answer) -> str:
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            return "expected a number"
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return "" if low <= answer <= high else f"expected a number from {low:g} to {high:g}"

    def _several_problem(self, answer: Answer) -> str:
        if not isinstance(answer, tuple | list):
            return f"expected a list from {_listed(self.values)}"
        strange = [each for each in answer if not _among(each, self.values)]
        return f"{strange[0]!r} is not among {_listed(self.values)}" if strange else ""


def _among(answer: object, values: Iterable[object]) -> bool:
    return any(type(answer) is type(value) and answer == value for value in values)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)


def _unique(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} is there twice")
        seen.add(name)


class Group(Record):
    """A family of labels, chosen first where the choice has two levels."""

    name: Name
    """Lower case with hyphens."""
    title: Text = ""
    """As people read it."""
    gloss: Text = ""
    """One line that explains it."""


class Solution(Record):
    """A mark as an author writes it: by quote, not by offset."""

    quote: Text = ""
    """The words marked; empty for an omission, which needs `before`."""
    before: Text = ""
    """For an omission: the words before which something is missing."""
    label: Name | None = None
    """The label it carries."""
    nth: int = Field(default=1, ge=1)
    """Which occurrence of the quote (or of `before`), counted from 1."""
    part: Text = TEXT
    """The text or the name of a context."""
    antecedent: Text = ""
    """The earlier words it refers to, by quote."""
    answers: Answers = {}
    """Answers to the label's questions."""
    why: Text = ""
    """The reason, shown as feedback."""

    @model_validator(mode="after")
    def _words_given(self) -> Solution:
        if bool(self.quote) == bool(self.before):
            raise ValueError("needs either a quote or, for an omission, `before`")
        return self

    def span(self, text: str, context: Mapping[str, str]) -> Span:
        """Where it is."""
        found = locate(
            self.quote or self.before, text if self.part == TEXT else context.get(self.part, ""), self.nth, self.part
        )
        return found if self.quote else Span(found.start, found.start, self.part)


class Example(Record):
    """A text with its marks, to be studied."""

    text: Text
    """Our own words, never a paper's."""
    context: Mapping[Id, Text] = {}
    """E.g. the prompt."""
    data: Json = None
    """What the text was made from."""
    marks: tuple[Solution, ...] = ()
    """What is wrong in it; none shows what is not an error."""
    answers: Answers = {}
    """The right answers to the document's questions."""
    why: Text = ""
    """What it teaches."""

    @model_validator(mode="after")
    def _quotes_found(self) -> Example:
        _find_all(self.marks, self.text, self.context)
        return self


def _find_all(marks: Iterable[Solution], text: str, context: Mapping[str, str]) -> None:
    for mark in marks:
        mark.span(text, context)
        if mark.antecedent and not any(mark.antecedent in each for each in (text, *context.values())):
            raise ValueError(f"antecedent {mark.antecedent!r} is not in the text")


def locate(quote: str, text: str, nth: int = 1, part: str = TEXT) -> Span:
    """The nth occurrence of `quote` in `text`.

    >>> locate("an", "banana", 2)
    Span(start=3, end=5, part='text')
    """
    at = -1
    for _ in range(nth):
        at = text.find(quote, at + 1)
        if at < 0:
            often = "" if nth == 1 else f" {nth} times"
            raise ValueError(f"quote {shorten(quote)!r} is not in the {part}{often}")
    return Span(at, at + len(quote), part)


class Label(Record):
    """One kind of error."""

    name: Name
    """Lower case with hyphens, as stored in marks."""
    title: Text = ""
    """As people read it; made from the name when empty."""
    group: Name | None = None
    """The group it belongs to."""
    aliases: tuple[Text, ...] = ()
    """Other spellings that importers and `--label` accept."""
    gloss: Text = ""
    """What it means, in a line or two."""
    rules: tuple[Text, ...] = ()
    """When to use it and when not."""
    examples: tuple[Example, ...] = ()
    """Our own texts that show it."""
    antecedent: Literal["none", "optional", "required"] = "none"
    """Whether earlier words are picked with it."""
    snap: Snap = "word"
    """What a selection widens to."""
    questions: tuple[Question, ...] = ()
    """Asked of each mark, after those asked of every mark."""
    flag: Annotated[str, Field(pattern=r"^[^\s]{1,3}$")] | None = None
    """Two letters shown above a mark; made from the title when absent."""
    key: Annotated[str, Field(pattern=r"^[^\s]$")] | None = None
    """The key that sets it; the first free letter of the name when absent."""

    @property
    def shown(self) -> str:
        """Its title, or one made from its name."""
        return self.title or self.name.replace("-", " ").replace("_", " ").capitalize()


class Guideline(Record):
    """A rule that can be checked on a mark: shown as a hint, applied when gold is made."""

    name: Name
    """To refer to it."""
    say: Text
    """The hint as people read it."""
    quote: Pattern
    """Regular expression that the whole quote must match."""
    labels: tuple[Name, ...] = ()
    """Only for marks with these labels; all when empty."""
    action: Literal["relabel", "split"]
    """`relabel` gives the label `to`; `split` makes one mark of each group that the expression captures."""
    to: Name | None = None
    """The label the guidelines ask for."""

    @model_validator(mode="after")
    def _fits(self) -> Guideline:
        if self.action == "relabel" and self.to is None:
            raise ValueError("action 'relabel' needs the label in 'to'")
        if self.action == "split" and re.compile(self.quote).groups < 2:
            raise ValueError("action 'split' needs at least two groups in 'quote', one for each new mark")
        return self


class Trim(Record):
    """Differences of size that are no difference of opinion: removed when annotators are merged."""

    leading: tuple[Text, ...] = ()
    """Words dropped from the start, e.g. determiners."""
    trailing: Text = ""
    """Characters dropped from the end, e.g. punctuation."""


class Weight(Record):
    """What a mark counts in a weighted score; the first that fits is taken."""

    weight: float
    """Points per mark."""
    labels: tuple[Names, ...] = ()
    """Only these labels; `accuracy/*` means all that begin so; all when empty."""
    severity: tuple[bool | int | float | Text, ...] = ()
    """Only these severities; all when empty."""


class Mode(Record):
    """One way of taking the task, e.g. errors in the real world or in the data."""

    name: Name
    """To choose it."""
    title: Text = ""
    """As people read it."""
    rule: Text
    """What annotators are told."""


class Condition(Record):
    """One arm of an experiment, e.g. a kind of training."""

    name: Name
    """Stored with the annotator."""
    title: Text = ""
    """As researchers read it."""
    instructions: Text = ""
    """Shown before the work."""
    examples: tuple[Example, ...] = ()
    """Shown before the work, with their answers."""
    pairs: tuple[tuple[Example, Example], ...] = ()
    """Shown side by side, with their answers."""


class Work(Record):
    """What is put before an annotator at a time, and how often."""

    unit: Literal["document", "segment", "annotation", "mark", "pair"] = "document"
    """`segment` goes part by part; `annotation` and `mark` judge somebody's work; `pair` compares two texts."""
    sentences: int = Field(default=3, ge=1)
    """Sentences per part where a text has no segments."""
    annotators: int = Field(default=3, ge=1)
    """How many each document should get."""
    texts: int | None = Field(default=None, ge=1)
    """How many texts a person gets, when it is fixed."""
    once: bool = False
    """One person takes part only once, across all conditions."""
    data: bool = False
    """Show `document.data` beside the text."""
    context: Literal["above", "beside", "hidden"] = "above"
    """Where the named contexts are shown."""
    verify: bool = False
    """In training, compare answers with the solution at once."""


class Exercise(Record):
    """A text to work on whose solution is known."""

    name: Name
    """Its id is `protocol@version/name`."""
    ask: Text = ""
    """What to do."""
    text: Text
    """Our own words."""
    context: Mapping[Id, Text] = {}
    """E.g. the prompt."""
    segments: tuple[Text, ...] = ()
    """Quotes that cut the text into parts, in order; each begins one."""
    data: Json = None
    """What the text was made from."""
    label: Name | None = None
    """The one label it practises, when it practises one."""
    solutions: tuple[Solution, ...] = ()
    """Every known error."""
    answers: Answers = {}
    """The right answers to the document's questions."""
    units: tuple[Answers, ...] = ()
    """The right answers to the questions of each part, in order."""
    feedback: Text = ""
    """Said afterwards."""

    @model_validator(mode="after")
    def _quotes_found(self) -> Exercise:
        _find_all(self.solutions, self.text, self.context)
        cuts = [locate(quote, self.text).start for quote in self.segments]
        if cuts != sorted(set(cuts)):
            raise ValueError("segments are not in text order")
        if self.units and len(self.units) != len(cuts):
            raise ValueError(f"has {len(self.units)} unit answers for {len(cuts)} segments")
        return self

    def document(self, id: str) -> Document:
        """The exercise as a document."""
        cuts = [locate(quote, self.text).start for quote in self.segments]
        ends = [len(self.text[start:end].rstrip()) + start for start, end in zip(cuts, [*cuts[1:], None], strict=False)]
        segments = tuple(Segment(start=start, end=end) for start, end in zip(cuts, ends, strict=True))
        return Document(id=id, text=self.text, context=self.context, segments=segments, data=self.data)

    def spans(self) -> tuple[Span, ...]:
        """Where its solutions are."""
        return tuple(solution.span(self.text, self.context) for solution in self.solutions)


class Choice(Record):
    """A multiple-choice question about marked words in a short text."""

    name: Name
    """Its id is `protocol@version/name`."""
    text: Text
    """Our own words."""
    context: Mapping[Id, Text] = {}
    """E.g. the prompt."""
    quote: Text = ""
    """The words in question."""
    ask: Text
    """The question."""
    options: tuple[Annotated[Option, BeforeValidator(_as_option)], ...] = Field(min_length=2)
    """What can be chosen."""
    answer: bool | int | float | Text
    """What is right."""
    feedback: Text = ""
    """Said afterwards."""

    @model_validator(mode="after")
    def _fits(self) -> Choice:
        locate(self.quote, self.text)
        if not _among(self.answer, (option.value for option in self.options)):
            raise ValueError(f"answer {self.answer!r} is not among the options")
        return self


class Training(Record):
    """What people read and try before they are tested; it never filters anybody."""

    intro: Text = ""
    """Said first."""
    exercises: tuple[Exercise, ...] = ()
    """With feedback after each."""


class Part(Record):
    """One part of a qualification: exercises in which marks are found, or multiple-choice questions."""

    name: Name
    """Under which its points are stored."""
    title: Text = ""
    """As people read it."""
    intro: Text = ""
    """Said first."""
    points: float = Field(gt=0)
    """For each exercise or question."""
    exercises: tuple[Exercise, ...] = ()
    """Points go down by `lose` for each solution short of `needed`, not below 0."""
    choices: tuple[Choice, ...] = ()
    """All points or none."""
    needed: int | None = Field(default=None, ge=1)
    """Solutions that earn all points; all of them when absent."""
    match: Literal["label", "place"] = "label"
    """Whether a mark finds a solution only with its label, or with any label at its place."""
    lose: float | None = Field(default=None, gt=0)
    """Points lost for each solution short of `needed`; points / needed when absent."""

    @model_validator(mode="after")
    def _fits(self) -> Part:
        if bool(self.exercises) == bool(self.choices):
            raise ValueError("needs either exercises or choices")
        for exercise in self.exercises:
            if not exercise.solutions:
                raise ValueError(f"exercise {exercise.name!r} has no solutions to find")
            if self.needed is not None and self.needed > len(exercise.solutions):
                raise ValueError(
                    f"needs {self.needed} solutions, but exercise {exercise.name!r} has {len(exercise.solutions)}"
                )
        return self

    @property
    def total(self) -> float:
        """The most points it can give."""
        return self.points * (len(self.exercises) + len(self.choices))


class Qualification(Record):
    """The test that decides who may work."""

    parts: tuple[Part, ...] = Field(min_length=1)
    """Taken in order."""
    pass_at: float = Field(gt=0)
    """Points that are enough."""
    min_precision: float | None = Field(default=None, ge=0, le=1)
    """Share of a person's marks that must be right, when it matters."""
    attempts: int = Field(default=1, ge=1)
    """How often it may be tried."""
    feedback: Literal["solutions", "written"] = "solutions"
    """`solutions` are shown afterwards; `written` adds a line for each mark found, missed and extra."""

    @model_validator(mode="after")
    def _fits(self) -> Qualification:
        _unique("part", [part.name for part in self.parts])
        exercises = [exercise.name for part in self.parts for exercise in part.exercises]
        _unique("exercise", exercises + [choice.name for part in self.parts for choice in part.choices])
        if self.pass_at > self.total:
            raise ValueError(f"pass_at {self.pass_at:g} is more than all points together, {self.total:g}")
        return self

    @property
    def total(self) -> float:
        """The most points it can give."""
        return sum(part.total for part in self.parts)


class Protocol(Record):
    """What annotators are asked. Data, never code; versioned, frozen once work has started."""

    name: Annotated[Name, AfterValidator(_file_name)]
    """Lower case with hyphens."""
    version: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"), BeforeValidator(lambda v: str(v) if type(v) is int else v)
    ]
    """Counted up with every change."""
    title: Text
    """As people read it."""
    source: Text = ""
    """The paper it follows."""
    summary: Text
    """What it finds out, in a line or two."""
    language: Text = "en"
    """Of the words people read."""
    groups: tuple[Group, ...] = ()
    """Families of labels, in the order shown."""
    labels: tuple[Label, ...] = ()
    """Kinds of error, in the order shown."""
    unlabelled: bool = False
    """Whether a mark may have no label."""
    questions: tuple[Question, ...] = ()
    """Asked of every mark."""
    unit_questions: tuple[Question, ...] = ()
    """Asked of every unit."""
    document_questions: tuple[Question, ...] = ()
    """Asked of the document as a whole."""
    rules: tuple[Text, ...] = ()
    """Guidelines in prose."""
    guidelines: tuple[Guideline, ...] = ()
    """Guidelines that can be checked."""
    trim: Trim = Trim()
    """Differences of size that are ignored when annotators are merged."""
    weights: tuple[Weight, ...] = ()
    """What a mark counts in a weighted score."""
    mode: Name | None = None
    """Which of `modes` is in force."""
    modes: tuple[Mode, ...] = ()
    """Ways of taking the task."""
    work: Work = Work()
    """What is put before an annotator at a time."""
    conditions: tuple[Condition, ...] = ()
    """Arms of an experiment, assigned at random."""
    consent: Text = ""
    """What people agree to first."""
    survey: tuple[Question, ...] = ()
    """Asked of annotators about themselves."""
    instructions: Text = ""
    """Read before the work, in Markdown."""
    examples: tuple[Example, ...] = ()
    """Whole texts with their marks and answers."""
    training: Training | None = None
    """What people try before they are tested."""
    qualification: Qualification | None = None
    """The test that decides who may work."""
    thanks: Text = ""
    """Said at the end."""
    meta: Meta = {}
    """Anything else."""

    @property
    def id(self) -> str:
        """Name and version, e.g. `snac@1`."""
        return f"{self.name}@{self.version}"

    @model_validator(mode="after")
    def _fits(self) -> Protocol:
        _unique("group", [group.name for group in self.groups])
        _unique("label", [label.name for label in self.labels])
        for what, questions in self._question_lists():
            _unique("question", [question.name for question in questions])
            _check_conditions(what, questions)
        _unique("flag", [label.flag for label in self.labels if label.flag])
        _unique("key", [label.key.lower() for label in self.labels if label.key])
        spellings = [{fold(label.name), *map(fold, label.aliases)} for label in self.labels]
        _unique("label or alias", [spelling for own in spellings for spelling in sorted(own)])
        _unique("exercise", self._exercise_names())
        groups = {group.name for group in self.groups}
        for label in self.labels:
            if label.group is not None and label.group not in groups:
                nearest = did_you_mean(label.group, groups)
                raise ValueError(f"label '{label.name}' is in group {label.group!r}, which is not listed{nearest}")
        self._check_references()
        modes = [mode.name for mode in self.modes]
        if self.mode is not None and self.mode not in modes:
            raise ValueError(f"mode {self.mode!r} is not among modes{did_you_mean(self.mode, modes)}")
        return self

    def _question_lists(self) -> list[tuple[str, tuple[Question, ...]]]:
        marks = [(f"label '{label.name}'", self.questions + label.questions) for label in self.labels]
        return [
            ("questions", self.questions),
            *marks,
            ("unit_questions", self.unit_questions),
            ("document_questions", self.document_questions),
            ("survey", self.survey),
        ]

    def _check_references(self) -> None:
        """Labels named anywhere in the protocol exist, and known answers are answers that can be given."""
        exercises, examples = self.exercises(), self._all_examples()
        marks = [mark for example in examples for mark in example.marks]
        marks += [solution for exercise in exercises for solution in exercise.solutions]
        names = [mark.label for mark in marks if mark.label is not None]
        names += [exercise.label for exercise in exercises if exercise.label is not None]
        names += [name for rule in self.guidelines for name in (*rule.labels, *([rule.to] if rule.to else []))]
        names += [name for weight in self.weights for name in weight.labels]
        known = {label.name for label in self.labels}
        for name in names:
            if not any(_matches(name, each) for each in known):
                raise ValueError(f"label {name!r} is used but not listed{did_you_mean(name, known)}")
        for mark in marks:
            _check_answers(mark.answers, self.questions_of(mark.label))
        for answers in [*(example.answers for example in examples), *(exercise.answers for exercise in exercises)]:
            _check_answers(answers, self.document_questions)
        for unit in (unit for exercise in exercises for unit in exercise.units):
            _check_answers(unit, self.unit_questions)

    def _all_examples(self) -> list[Example]:
        """Those of the protocol, of its labels and of its conditions."""
        of_conditions = [
            example
            for condition in self.conditions
            for example in (*condition.examples, *(each for pair in condition.pairs for each in pair))
        ]
        return [*self.examples, *(example for label in self.labels for example in label.examples), *of_conditions]

    def exercises(self) -> tuple[Exercise, ...]:
        """Every exercise of training and qualification."""
        parts = self.qualification.parts if self.qualification else ()
        return (
            *(self.training.exercises if self.training else ()),
            *(each for part in parts for each in part.exercises),
        )

    def _exercise_names(self) -> list[str]:
        parts = self.qualification.parts if self.qualification else ()
        choices = [choice.name for part in parts for choice in part.choices]
        return [*(exercise.name for exercise in self.exercises()), *choices]

    @functools.cached_property
    def _by_spelling(self) -> dict[str, Label]:
        spellings = {fold(alias): label for label in self.labels for alias in label.aliases}
        return spellings | {fold(label.name): label for label in self.labels}

    @functools.cached_property
    def _by_name(self) -> dict[str, Label]:
        return {label.name: label for label in self.labels}

    def has(self, name: str) -> bool:
        """Whether `name` is the exact name of a label."""
        return name in self._by_name

    def named(self, name: str | None) -> Label | None:
        """The label with exactly that name, if there is one."""
        return self._by_name.get(name or "")

    def label(self, spelling: str) -> Label:
        """The label with that name or alias, however it is spelled; an error that names the nearest otherwise."""
        found = self._by_spelling.get(fold(spelling))
        if found is None:
            names = [label.name for label in self.labels]
            raise ProtocolError(f"label {spelling!r} is not in protocol {self.id}{did_you_mean(spelling, names)}")
        return found

    def questions_of(self, label: str | None) -> tuple[Question, ...]:
        """What is asked of a mark with that label."""
        own = self.named(label)
        return self.questions + own.questions if own and own.questions else self.questions

    @functools.cached_property
    def practice(self) -> dict[str, Document]:
        """The texts of training and qualification as documents, by ids such as `scarecrow@1/exercise-3`."""
        texts = {f"{self.id}/{each.name}": each.document(f"{self.id}/{each.name}") for each in self.exercises()}
        parts = self.qualification.parts if self.qualification else ()
        choices = [
            Document(id=f"{self.id}/{each.name}", text=each.text, context=each.context)
            for part in parts
            for each in part.choices
        ]
        return texts | {each.id: each for each in choices}

    def weight(self, mark: Mark) -> float | None:
        """What `mark` counts in a weighted score; None when no weight fits."""
        severity = mark.answers.get("severity")
        for weight in self.weights:
            if weight.severity and not _among(severity, weight.severity):
                continue
            if not weight.labels or any(_matches(name, mark.label) for name in weight.labels):
                return weight.weight
        return None


def fold(spelling: str) -> str:
    """One form for the many spellings of a label: lower case, with hyphens.

    >>> fold("Grammar_Usage"), fold("NOT CHECKABLE")
    ('grammar-usage', 'not-checkable')
    """
    return re.sub(r"[\s_-]+", "-", spelling.strip().lower())


def _matches(pattern: str, label: str | None) -> bool:
    if label is None:
        return False
    return label.startswith(pattern[:-1]) if pattern.endswith("/*") else label == pattern


def _check_conditions(what: str, questions: tuple[Question, ...]) -> None:
    by_name = {question.name: question for question in questions}
    for question in questions:
        if question.when is None:
            continue
        other = by_name.get(question.when.question)
        if other is None:
            raise ValueError(
                f"{what}: question '{question.name}' waits for {question.when.question!r}, which is not asked"
                f"{did_you_mean(question.when.question, by_name)}"
            )
        values = (True, False) if other.scale == "yes-no" else other.values
        if values and (strange := [each for each in question.when.among if not _among(each, values)]):
            waits = f"question '{question.name}' waits for answer {strange[0]!r}"
            raise ValueError(f"{what}: {waits}, which '{other.name}' does not offer")


def _check_answers(answers: Answers, questions: tuple[Question, ...]) -> None:
    by_name = {question.name: question for question in questions}
    for name, answer in answers.items():
        if name not in by_name:
            raise ValueError(f"answer to {name!r}, which is not asked there{did_you_mean(name, by_name)}")
        if problem := by_name[name].problem(answer):
            raise ValueError(problem)
