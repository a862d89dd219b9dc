"""What annotators are asked, as data: labels in groups, questions, work, training, qualification, weights."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import regex
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from finecomb.core.errors import ProtocolError, did_you_mean
from finecomb.core.practice import Choice, Example, Exercise, Qualification, Training
from finecomb.core.question import Name, Question, check_label_name, check_unique
from finecomb.core.records import Answers, Document, Mark, Meta, Record, Text
from finecomb.core.safe_patterns import SlowPatternError, full_match
from finecomb.core.scales import is_among
from finecomb.core.spelling import fold_spelling

Scope = Literal["document", "unit"]
Snap = Literal["word", "sentence", "character"]


def _check_pattern(value: str) -> str:
    try:
        re.compile(value)
        regex.compile(value)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None
    return value


def _check_file_name(value: str) -> str:
    if "/" in value:
        raise ValueError(f"a protocol's name is also the name of its file and has no '/', unlike {value!r}")
    return value


def _check_name_or_family(value: str) -> str:
    check_label_name(value.removesuffix("*") if value.endswith("/*") else value)
    return value


_RESERVED_KEYS = {"?": "opens the guide", "+": "adds words to a mark", "^": "marks words left out"} | dict.fromkeys(
    "[]{}", "resizes a mark"
)
LabelPattern = Annotated[str, AfterValidator(_check_name_or_family)]
"""The name of a label, or `accuracy/*` for all that begin so."""
Pattern = Annotated[str, AfterValidator(_check_pattern)]


class Group(Record):
    """A family of labels, chosen first where the choice has two levels."""

    name: Name
    """Lower case with hyphens."""
    title: Text = ""
    """As people read it."""
    gloss: Text = ""
    """One line that explains it."""


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
    verb: Text = ""
    """What the marked words do to those earlier ones, e.g. `contradicts`; `refers to` when empty."""
    snap: Snap = "word"
    """What a selection widens to."""
    questions: tuple[Question, ...] = ()
    """Asked of each mark, after those asked of every mark."""
    flag: Annotated[str, Field(pattern=r"^[^\s]{1,3}$")] | None = None
    """Two letters shown above a mark; made from the title when absent."""
    key: Annotated[str, Field(pattern=r"^[^\s]$")] | None = None
    """The key that sets it; the first free letter of the name when absent."""

    @property
    def display_title(self) -> str:
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
    def _check_action(self) -> Guideline:
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
    labels: tuple[LabelPattern, ...] = ()
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


TimedPhase = Literal["survey", "instructions", "training", "qualification", "text"]
"""What takes people time: the phases before the work, and one text."""


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


class DataView(Record):
    """How the data beside a text is shown: words for its fields, and which come first."""

    titles: Mapping[Text, Text] = {}
    """What a field is called on the page, by its name in the data."""
    order: tuple[Text, ...] = ()
    """Fields that come first, in this order."""
    hidden: tuple[Text, ...] = ()
    """Fields that are not shown."""

    @model_validator(mode="after")
    def _check_hidden_fields(self) -> DataView:
        if both := set(self.order) & set(self.hidden):
            raise ValueError(f"view: {sorted(both)[0]!r} is in order and also hidden; remove one of them")
        return self


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
    within: tuple[Text, ...] = ()
    """Document meta that all texts of one person share, e.g. `domain` and `model`; human texts go with every model."""
    once: bool = False
    """One person takes part only once, across all conditions."""
    data: bool = False
    """Show `document.data` beside the text."""
    view: DataView = DataView()
    """How it is shown; a box score has a page of its own."""
    context: Literal["above", "beside", "hidden"] = "above"
    """Where the named contexts are shown."""
    verify: bool = False
    """In training, compare answers with the solution at once."""


class Protocol(Record):
    """What annotators are asked. Data, never code; versioned, frozen once work has started."""

    name: Annotated[Name, AfterValidator(_check_file_name)]
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
    marks_on: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """Parts that may be marked: `text`, or the name of a context, e.g. `source`; every part when absent."""
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
    minutes: Mapping[TimedPhase, Annotated[float, Field(gt=0)]] = {}
    """About how long each phase takes, and one text; announced before anybody starts."""
    meta: Meta = {}
    """Anything else."""

    @property
    def id(self) -> str:
        """Name and version, e.g. `snac@2`."""
        return f"{self.name}@{self.version}"

    @model_validator(mode="after")
    def _check_protocol(self) -> Protocol:
        check_unique("group", [group.name for group in self.groups])
        check_unique("label", [label.name for label in self.labels])
        for what, questions in self._question_lists():
            check_unique("question", [question.name for question in questions])
            _check_conditions(what, questions)
        check_unique("flag", [label.flag for label in self.labels if label.flag])
        check_unique("key", [label.key.lower() for label in self.labels if label.key])
        self._check_keys()
        spellings = [{fold_spelling(label.name), *map(fold_spelling, label.aliases)} for label in self.labels]
        check_unique("label or alias", [spelling for names in spellings for spelling in sorted(names)])
        check_unique("exercise", self._exercise_names())
        groups = {group.name for group in self.groups}
        for label in self.labels:
            if label.group is not None and label.group not in groups:
                nearest = did_you_mean(label.group, groups)
                raise ValueError(f"label '{label.name}' is in group {label.group!r}, which is not listed{nearest}")
        check_unique("part to mark", list(self.marks_on or ()))
        self._check_references()
        modes = [mode.name for mode in self.modes]
        if self.mode is not None and self.mode not in modes:
            raise ValueError(f"mode {self.mode!r} is not among modes{did_you_mean(self.mode, modes)}")
        return self

    def _check_keys(self) -> None:
        """Keys that do something else while marking are no label's."""
        antecedents = any(label.antecedent != "none" for label in self.labels)
        taken = _RESERVED_KEYS | ({"a": "picks an antecedent"} if antecedents else {})
        for label in self.labels:
            if label.key and label.key.lower() in taken:
                does = taken[label.key.lower()]
                raise ValueError(f"label '{label.name}' has the key {label.key!r}, which {does}; take another")

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
        listed = {label.name for label in self.labels}
        for name in names:
            if not any(_matches(name, listed_name) for listed_name in listed):
                raise ValueError(f"label {name!r} is used but not listed{did_you_mean(name, listed)}")
        for mark in marks:
            _check_answers(mark.answers, self.questions_of(mark.label))
        self._check_speed([mark.quote for mark in marks] + [example.text for example in examples])
        for answers in [*(example.answers for example in examples), *(exercise.answers for exercise in exercises)]:
            _check_answers(answers, self.document_questions)
        for unit in (unit for exercise in exercises for unit in exercise.units):
            _check_answers(unit, self.unit_questions)

    def _check_speed(self, texts: Sequence[str]) -> None:
        """Refuse a guideline whose expression is too slow for the protocol's own examples."""
        for rule in self.guidelines:
            try:
                for text in texts:
                    full_match(rule.quote, text)
            except SlowPatternError as error:
                raise ValueError(f"guideline '{rule.name}': {error}") from None

    def _all_examples(self) -> list[Example]:
        """Those of the protocol, of its labels and of its conditions."""
        of_conditions = [
            example
            for condition in self.conditions
            for example in (*condition.examples, *(member for pair in condition.pairs for member in pair))
        ]
        return [*self.examples, *(example for label in self.labels for example in label.examples), *of_conditions]

    def exercises(self) -> tuple[Exercise, ...]:
        """Every exercise of training and qualification."""
        parts = self.qualification.parts if self.qualification else ()
        return (
            *(self.training.exercises if self.training else ()),
            *(exercise for part in parts for exercise in part.exercises),
        )

    def _exercise_names(self) -> list[str]:
        parts = self.qualification.parts if self.qualification else ()
        choices = [choice.name for part in parts for choice in part.choices]
        return [*(exercise.name for exercise in self.exercises()), *choices]

    def has_mode(self, name: str) -> bool:
        """Whether it can be taken in that way."""
        return any(mode.name == name for mode in self.modes)

    def in_mode(self, name: str) -> Protocol:
        """The protocol with another of its modes in force; itself where none is named."""
        if not name or name == self.mode:
            return self
        modes = [mode.name for mode in self.modes]
        if name not in modes:
            way_out = did_you_mean(name, modes) if modes else "; it has none"
            raise ProtocolError(f"mode {name!r} is not among the modes of protocol {self.id}{way_out}")
        return self.model_copy(update={"mode": name})

    @functools.cached_property
    def _labels_by_spelling(self) -> dict[str, Label]:
        spellings = {fold_spelling(alias): label for label in self.labels for alias in label.aliases}
        return spellings | {fold_spelling(label.name): label for label in self.labels}

    @functools.cached_property
    def _labels_by_name(self) -> dict[str, Label]:
        return {label.name: label for label in self.labels}

    def has_label(self, name: str) -> bool:
        """Whether `name` is the exact name of a label."""
        return name in self._labels_by_name

    def find_label(self, name: str | None) -> Label | None:
        """The label with exactly that name, if there is one."""
        return self._labels_by_name.get(name or "")

    def resolve_label(self, spelling: str) -> Label:
        """The label with that name or alias, however it is spelled; an error that names the nearest otherwise."""
        match = self._labels_by_spelling.get(fold_spelling(spelling))
        if match is None:
            names = [label.name for label in self.labels]
            raise ProtocolError(f"label {spelling!r} is not in protocol {self.id}{did_you_mean(spelling, names)}")
        return match

    def may_mark(self, part: str) -> bool:
        """Whether words of that part may be marked; antecedents may lie in any."""
        return self.marks_on is None or part in self.marks_on

    def questions_of(self, label: str | None) -> tuple[Question, ...]:
        """What is asked of a mark with that label."""
        chosen = self.find_label(label)
        return self.questions + chosen.questions if chosen and chosen.questions else self.questions

    @functools.cached_property
    def practice_documents(self) -> dict[str, Document]:
        """The texts of training and qualification as documents, by ids such as `scarecrow@2/exercise-3`."""
        texts = {f"{self.id}/{item.name}": item.document(f"{self.id}/{item.name}") for item in self.exercises()}
        return texts | {id: Document(id=id, text=item.text, context=item.context) for id, item in self._choices.items()}

    @functools.cached_property
    def _choices(self) -> dict[str, Choice]:
        parts = self.qualification.parts if self.qualification else ()
        return {f"{self.id}/{choice.name}": choice for part in parts for choice in part.choices}

    def protocol_for_document(self, document: str) -> Protocol:
        """What is asked of a text: all of this, or of a multiple-choice question that question only, as `answer`."""
        choice = self._choices.get(document)
        if choice is None:
            return self
        head = {name: getattr(self, name) for name in ("name", "version", "title", "summary", "language")}
        return Protocol(**head, document_questions=(choice.question,))

    def weight(self, mark: Mark) -> float | None:
        """What `mark` counts in a weighted score; None when no weight fits."""
        severity = mark.answers.get("severity")
        for weight in self.weights:
            if weight.severity and not is_among(severity, weight.severity):
                continue
            if not weight.labels or any(_matches(name, mark.label) for name in weight.labels):
                return weight.weight
        return None


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
        values = other.scale_type.values or other.values
        if values and (strange := [answer for answer in question.when.among if not is_among(answer, values)]):
            waits = f"question '{question.name}' waits for answer {strange[0]!r}"
            raise ValueError(f"{what}: {waits}, which '{other.name}' does not offer")


def _check_answers(answers: Answers, questions: tuple[Question, ...]) -> None:
    by_name = {question.name: question for question in questions}
    for name, answer in answers.items():
        if name not in by_name:
            raise ValueError(f"answer to {name!r}, which is not asked there{did_you_mean(name, by_name)}")
        if problem := by_name[name].problem(answer):
            raise ValueError(problem)
