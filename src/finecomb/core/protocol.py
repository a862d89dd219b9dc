"""Protocols: the annotation task as data, with labels in groups, questions, training, qualification and weights."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Annotated, Literal

import regex
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from finecomb.core.errors import ProtocolError, did_you_mean
from finecomb.core.practice import Choice, Example, Exercise, Qualification, Training
from finecomb.core.question import LabelName, Question, check_label_name, reject_duplicates
from finecomb.core.records import Answers, Document, Mark, Meta, Record, Text
from finecomb.core.safe_patterns import SlowPatternError, full_match_with_timeout
from finecomb.core.scales import is_among
from finecomb.core.spelling import fold_spelling

Scope = Literal["document", "unit"]
Snap = Literal["word", "sentence", "character"]


def _check_regex(value: str) -> str:
    try:
        re.compile(value)
        regex.compile(value)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{value!r} is not a valid regular expression: {error}") from None
    return value


def _check_file_name(value: str) -> str:
    if "/" in value:
        raise ValueError(f"a protocol's name is also its file name and cannot contain '/', found {value!r}")
    return value


def _check_label_pattern(value: str) -> str:
    check_label_name(value.removesuffix("*") if value.endswith("/*") else value)
    return value


_RESERVED_KEYS = {"?": "opens the guide", "+": "adds words to a mark", "^": "marks an omission"} | dict.fromkeys(
    "[]{}", "resizes a mark"
)
LabelPattern = Annotated[str, AfterValidator(_check_label_pattern)]
"""Name of a label, or a prefix such as `accuracy/*` for all labels that begin with it."""
RegexPattern = Annotated[str, AfterValidator(_check_regex)]


class Group(Record):
    """A family of labels, selected before the label if selection has two levels."""

    name: LabelName
    """Name in lower case with hyphens."""
    title: Text = ""
    """Title shown to annotators."""
    gloss: Text = ""
    """Explanation in one line."""


class Label(Record):
    """One error type."""

    name: LabelName
    """Name in lower case with hyphens, as stored in marks."""
    title: Text = ""
    """Title shown to annotators; derived from the name if empty."""
    group: LabelName | None = None
    """Group of the label."""
    aliases: tuple[Text, ...] = ()
    """Other spellings that importers and `--label` accept."""
    gloss: Text = ""
    """Definition in one or two lines."""
    rules: tuple[Text, ...] = ()
    """When to use the label and when not."""
    examples: tuple[Example, ...] = ()
    """Examples written for the protocol."""
    antecedent: Literal["none", "optional", "required"] = "none"
    """Ask annotators to select earlier words that the mark refers to."""
    verb: Text = ""
    """Relation to the earlier words, e.g. `contradicts`; `refers to` if empty."""
    snap: Snap = "word"
    """Unit to which a selection is extended."""
    questions: tuple[Question, ...] = ()
    """Questions about each mark with this label, after the questions about every mark."""
    flag: Annotated[str, Field(pattern=r"^[^\s]{1,3}$")] | None = None
    """Two letters shown above a mark; derived from the title if absent."""
    key: Annotated[str, Field(pattern=r"^[^\s]$")] | None = None
    """Key that selects the label; the first free letter of the name if absent."""

    @property
    def display_title(self) -> str:
        """Title, or the name in title form if it is empty."""
        return self.title or self.name.replace("-", " ").replace("_", " ").capitalize()


class Guideline(Record):
    """A rule that can be checked on a mark: shown as a hint and applied when gold is created."""

    name: LabelName
    """Name of the guideline."""
    say: Text
    """Hint shown to annotators."""
    quote: RegexPattern
    """Regular expression that must match the entire quote."""
    labels: tuple[LabelName, ...] = ()
    """Labels that the guideline applies to; all if empty."""
    action: Literal["relabel", "split"]
    """`relabel` assigns the label `to`; `split` creates one mark per group that the expression captures."""
    to: LabelName | None = None
    """Label that the guideline assigns."""

    @model_validator(mode="after")
    def _check_action(self) -> Guideline:
        if self.action == "relabel" and self.to is None:
            raise ValueError("action 'relabel' requires a label in 'to'")
        if self.action == "split" and re.compile(self.quote).groups < 2:
            raise ValueError("action 'split' requires at least two groups in 'quote', one for each new mark")
        return self


class Trim(Record):
    """Differences in span boundaries that are removed before annotators are merged."""

    leading: tuple[Text, ...] = ()
    """Words removed from the start, e.g. determiners."""
    trailing: Text = ""
    """Characters removed from the end, e.g. punctuation."""


class Weight(Record):
    """Weight of a mark in a weighted score; the first matching weight is used."""

    weight: float
    """Points per mark."""
    labels: tuple[LabelPattern, ...] = ()
    """Labels that the weight applies to; `accuracy/*` means all that begin with `accuracy/`; all if empty."""
    severity: tuple[bool | int | float | Text, ...] = ()
    """Severities that the weight applies to; all if empty."""


class Mode(Record):
    """A variant of the task, e.g. errors about the real world or errors about the data."""

    name: LabelName
    """Name of the mode."""
    title: Text = ""
    """Title shown to annotators."""
    rule: Text
    """Instructions for annotators."""


TimedPhase = Literal["survey", "instructions", "training", "qualification", "text"]
"""Phases with an expected duration: those before the work, and one text."""


class Condition(Record):
    """One experimental condition, e.g. a type of training."""

    name: LabelName
    """Name, stored with the annotator."""
    title: Text = ""
    """Title shown to researchers."""
    instructions: Text = ""
    """Instructions shown before the work."""
    examples: tuple[Example, ...] = ()
    """Examples shown before the work, with their answers."""
    pairs: tuple[tuple[Example, Example], ...] = ()
    """Pairs shown side by side, with their answers."""


class DataView(Record):
    """Display of the data next to a text: titles and order of its fields."""

    titles: Mapping[Text, Text] = {}
    """Titles of fields, by field name."""
    order: tuple[Text, ...] = ()
    """Fields shown first, in this order."""
    hidden: tuple[Text, ...] = ()
    """Fields that are hidden."""

    @model_validator(mode="after")
    def _check_hidden_fields(self) -> DataView:
        if both := set(self.order) & set(self.hidden):
            raise ValueError(f"view: {sorted(both)[0]!r} cannot be both in order and hidden; remove one of them")
        return self


class Work(Record):
    """Task assignment: the unit of work, and how many annotations each document needs."""

    unit: Literal["document", "segment", "annotation", "mark", "pair"] = "document"
    """Unit of work: `segment` shows one segment at a time, `annotation` and `mark` judge existing work, `pair` compares
    two texts.
    """
    sentences: int = Field(default=3, ge=1)
    """Sentences per segment, for texts without segments."""
    annotators: int = Field(default=3, ge=1)
    """Annotations required per document."""
    texts: int | None = Field(default=None, ge=1)
    """Texts per person, if fixed."""
    within: tuple[Text, ...] = ()
    """Meta fields that all texts of one person share, e.g. `domain` and `model`; human texts go with every model."""
    once: bool = False
    """Allow each person to take part only once, across all conditions."""
    data: bool = False
    """Show `document.data` next to the text."""
    view: DataView = DataView()
    """Display of the data; box scores have a page of their own."""
    context: Literal["above", "beside", "hidden"] = "above"
    """Position of the named contexts on the page."""
    verify: bool = False
    """In training, compare answers with the solution immediately."""


class Protocol(Record):
    """The annotation task. Data, never code; versioned, and frozen once work has started."""

    name: Annotated[LabelName, AfterValidator(_check_file_name)]
    """Name in lower case with hyphens."""
    version: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"), BeforeValidator(lambda v: str(v) if type(v) is int else v)
    ]
    """Version, incremented with every change."""
    title: Text
    """Title shown to annotators."""
    source: Text = ""
    """Paper that the protocol follows."""
    summary: Text
    """Purpose in one or two lines."""
    language: Text = "en"
    """Language of the texts shown to annotators."""
    groups: tuple[Group, ...] = ()
    """Families of labels, in display order."""
    labels: tuple[Label, ...] = ()
    """Error types, in display order."""
    unlabelled: bool = False
    """Allow marks without a label."""
    marks_on: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """Parts that can be marked: `text`, or the name of a context, e.g. `source`; every part if absent."""
    questions: tuple[Question, ...] = ()
    """Questions about every mark."""
    unit_questions: tuple[Question, ...] = ()
    """Questions about every unit."""
    document_questions: tuple[Question, ...] = ()
    """Questions about the entire document."""
    rules: tuple[Text, ...] = ()
    """Guidelines in prose."""
    guidelines: tuple[Guideline, ...] = ()
    """Guidelines that can be checked automatically."""
    trim: Trim = Trim()
    """Differences in span boundaries that are ignored when annotators are merged."""
    weights: tuple[Weight, ...] = ()
    """Weights of marks in a weighted score."""
    mode: LabelName | None = None
    """Active mode, one of `modes`."""
    modes: tuple[Mode, ...] = ()
    """Variants of the task."""
    work: Work = Work()
    """Task assignment."""
    conditions: tuple[Condition, ...] = ()
    """Experimental conditions, assigned at random."""
    consent: Text = ""
    """Consent text."""
    survey: tuple[Question, ...] = ()
    """Questions about the annotators themselves."""
    instructions: Text = ""
    """Instructions in Markdown, shown before the work."""
    examples: tuple[Example, ...] = ()
    """Complete texts with their marks and answers."""
    training: Training | None = None
    """Practice before the qualification."""
    qualification: Qualification | None = None
    """Test that annotators must pass before they can work."""
    thanks: Text = ""
    """Message shown at the end."""
    minutes: Mapping[TimedPhase, Annotated[float, Field(gt=0)]] = {}
    """Approximate minutes per phase and per text, shown before annotators start."""
    meta: Meta = {}
    """Additional data."""

    @property
    def id(self) -> str:
        """Name and version, e.g. `snac@2`."""
        return f"{self.name}@{self.version}"

    @model_validator(mode="after")
    def _check_protocol(self) -> Protocol:
        reject_duplicates("group", [group.name for group in self.groups])
        reject_duplicates("label", [label.name for label in self.labels])
        marks = [(f"label '{label.name}'", self.questions + label.questions) for label in self.labels]
        for what, questions in [
            ("questions", self.questions),
            *marks,
            ("unit_questions", self.unit_questions),
            ("document_questions", self.document_questions),
            ("survey", self.survey),
        ]:
            reject_duplicates("question", [question.name for question in questions])
            _check_question_conditions(what, questions)
        reject_duplicates("flag", [label.flag for label in self.labels if label.flag])
        reject_duplicates("key", [label.key.lower() for label in self.labels if label.key])
        self._check_keys()
        spellings = [{fold_spelling(label.name), *map(fold_spelling, label.aliases)} for label in self.labels]
        reject_duplicates("label or alias", [spelling for names in spellings for spelling in sorted(names)])
        parts = self.qualification.parts if self.qualification else ()
        choices = [choice.name for part in parts for choice in part.choices]
        reject_duplicates("exercise", [*(exercise.name for exercise in self.exercises()), *choices])
        groups = {group.name for group in self.groups}
        for label in self.labels:
            if label.group is not None and label.group not in groups:
                nearest = did_you_mean(label.group, groups)
                raise ValueError(f"label '{label.name}' is in group {label.group!r}, which is not defined{nearest}")
        reject_duplicates("part in marks_on", list(self.marks_on or ()))
        self._check_references()
        modes = [mode.name for mode in self.modes]
        if self.mode is not None and self.mode not in modes:
            raise ValueError(f"mode {self.mode!r} is not defined{did_you_mean(self.mode, modes)}")
        return self

    def _check_keys(self) -> None:
        """Reject labels whose keyboard shortcut is reserved for another action during annotation."""
        antecedents = any(label.antecedent != "none" for label in self.labels)
        taken = _RESERVED_KEYS | ({"a": "selects an antecedent"} if antecedents else {})
        for label in self.labels:
            if label.key and label.key.lower() in taken:
                does = taken[label.key.lower()]
                raise ValueError(f"label '{label.name}' has the key {label.key!r}, which {does}; use another key")

    def _check_references(self) -> None:
        """Check that labels named in the protocol are defined and that known answers are valid."""
        of_conditions = [
            example
            for condition in self.conditions
            for example in (*condition.examples, *(member for pair in condition.pairs for member in pair))
        ]
        exercises, examples = (
            self.exercises(),
            [*self.examples, *(example for label in self.labels for example in label.examples), *of_conditions],
        )
        marks = [mark for example in examples for mark in example.marks]
        marks += [solution for exercise in exercises for solution in exercise.solutions]
        names = [mark.label for mark in marks if mark.label is not None]
        names += [exercise.label for exercise in exercises if exercise.label is not None]
        names += [name for rule in self.guidelines for name in (*rule.labels, *([rule.to] if rule.to else []))]
        names += [name for weight in self.weights for name in weight.labels]
        listed = {label.name for label in self.labels}
        for name in names:
            if not any(_label_matches(name, listed_name) for listed_name in listed):
                raise ValueError(f"label {name!r} is used but not defined{did_you_mean(name, listed)}")
        for mark in marks:
            _check_answers(mark.answers, self.questions_for_label(mark.label))
        texts = [mark.quote for mark in marks] + [example.text for example in examples]
        for rule in self.guidelines:
            try:
                for text in texts:
                    full_match_with_timeout(rule.quote, text)
            except SlowPatternError as error:
                raise ValueError(f"guideline '{rule.name}': {error}") from None
        for answers in [*(example.answers for example in examples), *(exercise.answers for exercise in exercises)]:
            _check_answers(answers, self.document_questions)
        for unit in (unit for exercise in exercises for unit in exercise.units):
            _check_answers(unit, self.unit_questions)

    def exercises(self) -> tuple[Exercise, ...]:
        """Return every exercise of training and qualification."""
        parts = self.qualification.parts if self.qualification else ()
        return (
            *(self.training.exercises if self.training else ()),
            *(exercise for part in parts for exercise in part.exercises),
        )

    def has_mode(self, name: str) -> bool:
        """Return True if the protocol has this mode."""
        return any(mode.name == name for mode in self.modes)

    def with_mode(self, name: str) -> Protocol:
        """Return the protocol with another active mode, or itself if no mode is named."""
        if not name or name == self.mode:
            return self
        modes = [mode.name for mode in self.modes]
        if name not in modes:
            way_out = did_you_mean(name, modes) if modes else "; it has no modes"
            raise ProtocolError(f"protocol {self.id} has no mode {name!r}{way_out}")
        return self.model_copy(update={"mode": name})

    @functools.cached_property
    def _labels_by_spelling(self) -> dict[str, Label]:
        spellings = {fold_spelling(alias): label for label in self.labels for alias in label.aliases}
        return spellings | {fold_spelling(label.name): label for label in self.labels}

    @functools.cached_property
    def _labels_by_name(self) -> dict[str, Label]:
        return {label.name: label for label in self.labels}

    def has_label(self, name: str) -> bool:
        """Return True if `name` is the exact name of a label."""
        return name in self._labels_by_name

    def find_label(self, name: str | None) -> Label | None:
        """Return the label with exactly this name, or None."""
        return self._labels_by_name.get(name or "")

    def resolve_label(self, spelling: str) -> Label:
        """Return the label with this name or alias in any spelling; the error message names the closest label."""
        match = self._labels_by_spelling.get(fold_spelling(spelling))
        if match is None:
            names = [label.name for label in self.labels]
            raise ProtocolError(f"label {spelling!r} is not in protocol {self.id}{did_you_mean(spelling, names)}")
        return match

    def can_mark_part(self, part: str) -> bool:
        """Return True if a part can be marked; antecedents may be in any part."""
        return self.marks_on is None or part in self.marks_on

    def questions_for_label(self, label: str | None) -> tuple[Question, ...]:
        """Return the questions about a mark with this label."""
        chosen = self.find_label(label)
        return self.questions + chosen.questions if chosen and chosen.questions else self.questions

    @functools.cached_property
    def practice_documents(self) -> dict[str, Document]:
        """Texts of training and qualification as documents, by IDs such as `scarecrow@2/exercise-3`."""
        texts = {f"{self.id}/{item.name}": item.to_document(f"{self.id}/{item.name}") for item in self.exercises()}
        return texts | {
            id: Document(id=id, text=item.text, context=item.context) for id, item in self._choices_by_document.items()
        }

    @functools.cached_property
    def _choices_by_document(self) -> dict[str, Choice]:
        parts = self.qualification.parts if self.qualification else ()
        return {f"{self.id}/{choice.name}": choice for part in parts for choice in part.choices}

    def protocol_for_document(self, document: str) -> Protocol:
        """Return the protocol for a document; for a multiple-choice question it has one question, `answer`."""
        choice = self._choices_by_document.get(document)
        if choice is None:
            return self
        head = {name: getattr(self, name) for name in ("name", "version", "title", "summary", "language")}
        return Protocol(**head, document_questions=(choice.question,))

    def mark_weight(self, mark: Mark) -> float | None:
        """Return the weight of `mark` in a weighted score; None if no weight matches."""
        severity = mark.answers.get("severity")
        for weight in self.weights:
            if weight.severity and not is_among(severity, weight.severity):
                continue
            if not weight.labels or any(_label_matches(name, mark.label) for name in weight.labels):
                return weight.weight
        return None


def _label_matches(pattern: str, label: str | None) -> bool:
    if label is None:
        return False
    return label.startswith(pattern[:-1]) if pattern.endswith("/*") else label == pattern


def _check_question_conditions(what: str, questions: tuple[Question, ...]) -> None:
    by_name = {question.name: question for question in questions}
    for question in questions:
        if question.when is None:
            continue
        other = by_name.get(question.when.question)
        if other is None:
            raise ValueError(
                f"{what}: question '{question.name}' depends on {question.when.question!r}, which is not asked"
                f"{did_you_mean(question.when.question, by_name)}"
            )
        values = other.scale_type.values or other.values
        if values and (strange := [answer for answer in question.when.among if not is_among(answer, values)]):
            waits = f"question '{question.name}' depends on answer {strange[0]!r}"
            raise ValueError(f"{what}: {waits}, which '{other.name}' does not offer")


def _check_answers(answers: Answers, questions: tuple[Question, ...]) -> None:
    by_name = {question.name: question for question in questions}
    for name, answer in answers.items():
        if name not in by_name:
            raise ValueError(f"unknown question {name!r} in answers{did_you_mean(name, by_name)}")
        if problem := by_name[name].answer_problem(answer):
            raise ValueError(problem)
