"""Validation of a study: all problems, found in one pass over its records."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from finecomb.core.allocation_settings import allocation_problems
from finecomb.core.design import design_problems
from finecomb.core.errors import Problem, StudyError, did_you_mean, diff_excerpt
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Answers, Document, Mark, Settings, iter_quoted_spans
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import Study, StudyItem

ProblemLevel = Literal["error", "warning"]
_MAX_HINTS = 20
_MAX_CACHED_MARKS = 10_000
PLANNABLE_COMMANDS = ("measure", "agree", "gold", "test", "stats")
"""Commands whose results can be planned in `study.yaml`."""


def planned_table_problem(line: str) -> str:
    """Return what is wrong with a planned command line, or an empty string."""
    try:
        words = shlex.split(line)
    except ValueError:
        return f"planned {line!r} has an unclosed quotation mark"
    if words[:1] and words[0] in PLANNABLE_COMMANDS:
        return ""
    return (
        f"planned {line!r} is not a supported command; it must begin with {', '.join(PLANNABLE_COMMANDS[:-1])} or "
        f"{PLANNABLE_COMMANDS[-1]}"
    )


RecordCheck = Callable[[Any], str]
"""Function that returns the problem of a document's `data`, or an empty string."""


def check_study(study: Study, record_checks: Sequence[RecordCheck] = ()) -> list[Problem]:
    """Return all errors and warnings of a study; each of `record_checks` is applied to the data of every document."""
    checker = StudyChecker(record_checks=record_checks)
    problems = [problem for item in study.items() for problem in checker.find_item_problems(item)]
    return problems + list(checker.find_final_problems())


def check_items(items: Iterable[StudyItem]) -> Iterator[StudyItem]:
    """Yield records while checking them; one exception at the end reports all errors."""
    checker = StudyChecker(warns=False)
    errors: list[Problem] = []
    for item in items:
        errors += [problem for problem in checker.find_item_problems(item) if problem.level == "error"]
        yield item
    errors += [problem for problem in checker.find_final_problems() if problem.level == "error"]
    if errors:
        raise StudyError(errors)


class StudyChecker:
    """Validator of a study's records, one by one; each is checked against the records before it.

    Without `warns`, it may omit warnings to save time.
    """

    def __init__(self, warns: bool = True, record_checks: Sequence[RecordCheck] = ()) -> None:
        self._record_checks = record_checks
        self._mark_problems = _CachedMarkProblems(warns)
        self._protocols: dict[str, Protocol] = {}
        self._documents: dict[str, Document] = {}
        self._annotators: dict[str, Annotator] = {}
        self._annotations: dict[str, int] = {}
        self._marks: set[str] = set()
        self._keys: dict[tuple[object, ...], str] = {}
        self._about: list[tuple[int, Annotation]] = []
        self._settings: Settings | None = None
        self._hints = 0
        self._rows = {"document": 0, "annotator": 0, "annotation": 0}

    def find_item_problems(self, item: StudyItem) -> Iterator[Problem]:
        """Yield the problems of `item`."""
        match item:
            case Annotation():
                yield from self._build_problems("annotation", item.id, self._check_annotation(item))
            case Document():
                yield from self._build_problems("document", item.id, self._check_document(item))
            case Annotator():
                duplicate: tuple[ProblemLevel, str] = "error", f"duplicate annotator ID {item.id!r}; IDs must be unique"
                is_duplicate = item.id in self._annotators
                self._annotators[item.id] = item
                yield from self._build_problems("annotator", item.id, [duplicate] if is_duplicate else [])
            case Protocol():
                if self._protocols.setdefault(item.id, item) != item:
                    yield Problem(
                        f"protocol {item.id} occurs twice with different contents; increment the version of one "
                        "of them",
                        kind="protocol",
                    )
            case Settings():
                self._settings = item

    def find_final_problems(self) -> Iterator[Problem]:
        """Yield the problems that can be found only after all records have been read."""
        for row, annotation in self._about:
            if annotation.about not in self._annotations and annotation.about not in self._marks:
                message = f"`about` names {annotation.about!r}, which is neither an annotation nor a mark of the study"
                yield Problem(message, kind="annotation", id=annotation.id, row=row)
        if self._settings:
            for message in self._settings_problems(self._settings):
                yield Problem(message, kind="settings")

    def _settings_problems(self, settings: Settings) -> Iterator[str]:
        for name in settings.protocols:
            if name not in self._protocols:
                yield f"names protocol {name!r}, which is not in the study{did_you_mean(name, self._protocols)}"
        for id in settings.attention_checks:
            if id not in self._documents:
                yield f"attention check {id!r} is not a document in the study{did_you_mean(id, self._documents)}"
        protocol = next((self._protocols[id] for id in settings.protocols if id in self._protocols), None)
        metas = {id: document.meta for id, document in self._documents.items()}
        if settings.design is not None and protocol is not None:
            checks = set(settings.attention_checks)
            drawn_metas = {id: meta for id, meta in metas.items() if id not in checks}
            yield from design_problems(settings.design, protocol, drawn_metas)
        if settings.mode and protocol is not None and not protocol.has_mode(settings.mode):
            modes = [mode.name for mode in protocol.modes]
            why = did_you_mean(settings.mode, modes) if modes else "; it has no modes"
            yield f"protocol {protocol.id} has no mode {settings.mode!r}{why}"
        yield from filter(None, map(planned_table_problem, settings.planned))
        lost = [mark for mark in (settings.audit.marks if settings.audit else ()) if mark not in self._marks]
        if lost:
            more = f" and {len(lost) - 1} more are" if len(lost) > 1 else " is"
            yield f"audit: mark {lost[0]!r}{more} not in the study; draw the sample again"
        if protocol is not None:
            yield from allocation_problems(settings, protocol, metas, list(self._annotators))

    def _build_problems(self, kind: str, id: str, messages: Iterable[tuple[ProblemLevel, str]]) -> Iterator[Problem]:
        row = self._rows[kind]
        self._rows[kind] += 1
        for level, message in messages:
            yield Problem(message, level, kind, id, row)

    def _check_document(self, document: Document) -> Iterator[tuple[ProblemLevel, str]]:
        if document.id in self._documents:
            yield "error", f"duplicate document ID {document.id!r}; IDs must be unique"
        self._documents[document.id] = document
        for check_record in self._record_checks:
            if problem := check_record(document.data):
                yield "warning", f"its data is {problem}; annotators see plain tables"

    def _check_annotation(self, annotation: Annotation) -> Iterator[tuple[ProblemLevel, str]]:
        if annotation.id in self._annotations:
            yield "error", f"duplicate annotation ID {annotation.id!r}; IDs must be unique"
        self._annotations[annotation.id] = self._rows["annotation"] - 1
        other = self._keys.setdefault(annotation.unique_key, annotation.id)
        if other != annotation.id:
            same = "document, annotator, protocol, round and about"
            yield "error", f"has the same {same} as {other!r}; give a second pass another round"
        if annotation.about is not None:
            self._about.append((self._rows["annotation"] - 1, annotation))
        for mark in annotation.marks:
            if mark.id in self._marks:
                yield "error", f"duplicate mark ID {mark.id!r}; IDs must be unique"
            self._marks.add(mark.id)
        document = self._find_document(annotation)
        named: list[tuple[str, str, Mapping[str, object]]] = [
            ("annotator", annotation.annotator, self._annotators),
            ("protocol", annotation.protocol, self._protocols),
        ]
        if document is None:
            named.append(("document", annotation.document, self._documents))
        for what, id, names in named:
            if id not in names:
                self._hints += 1  # searching for a similar name is slow, so only the first problems get a suggestion
                hint = did_you_mean(id, list(names)[:5000]) if self._hints <= _MAX_HINTS else ""
                yield "error", f"names {what} {id!r}, which is not in the study{hint}"
        if document is not None:
            yield from placement_problems(annotation, document)
        protocol = self._protocols.get(annotation.protocol)
        if protocol is not None:
            document_protocol = protocol.protocol_for_document(annotation.document)
            known = self._mark_problems if document_protocol is protocol else _mark_protocol_problems
            yield from protocol_problems(annotation, document_protocol, known)

    def _find_document(self, annotation: Annotation) -> Document | None:
        """Return the annotated document, from the study or, in training and qualification, from the protocol."""
        document = self._documents.get(annotation.document)
        protocol = self._protocols.get(annotation.protocol)
        if document is None and protocol is not None and annotation.phase != "work":
            return protocol.practice_documents.get(annotation.document)
        return document


def placement_problems(annotation: Annotation, document: Document) -> Iterator[tuple[ProblemLevel, str]]:
    """Yield the problems of spans, quotes and units with respect to the text."""
    for mark in annotation.marks:
        for span, quote in iter_quoted_spans(mark):
            if problem := span_problem(span, quote, document):
                yield "error", f"mark {mark.id!r}: {problem}"
    for unit in annotation.units:
        if not unit.start <= unit.end <= len(document.text):
            place = f"unit [{unit.start}, {unit.end})"
            yield "error", f"{place} is not within the text, which has {len(document.text)} characters"


def span_problem(span: Span, quote: str, document: Document) -> str:
    """Return what is wrong with a span and its quote, and where the nearest match is; empty if nothing is wrong."""
    text = document.part_text(span.part)
    if text is None:
        nearest = did_you_mean(span.part, ["text", *document.context])
        return f"span on {span.part!r}, which document {document.id!r} does not have{nearest}"
    words = text[span.start : span.end]
    if words == quote and span.end <= len(text):
        return ""
    place = f"[{span.start}, {span.end})"
    if span.end > len(text):
        nearest = _nearest_match_hint(quote, text, span.start)
        return f"span {place} ends after the {span.part}, which has {len(text)} characters{nearest}"
    claimed, actual = diff_excerpt(quote, words)
    return (
        f"quote {claimed} differs from the {span.part} at {place}, which is "
        f"{actual}{_nearest_match_hint(quote, text, span.start)}"
    )


def _nearest_match_hint(quote: str, text: str, start: int) -> str:
    """Return a message suffix with the occurrence of `quote` nearest to `start`."""
    if not quote:
        return ""
    before = text.rfind(quote, 0, min(start + len(quote), len(text)))
    after = text.find(quote, start)
    places = [match_start for match_start in (before, after) if match_start >= 0]
    if not places:
        return "; the quote does not occur in it"
    match_start = min(places, key=lambda place: abs(place - start))
    return f"; the nearest match is at [{match_start}, {match_start + len(quote)})"


def _mark_protocol_problems(
    mark: Mark, annotation: Annotation, protocol: Protocol
) -> Iterator[tuple[ProblemLevel, str]]:
    label = protocol.find_label(mark.label)
    for alternative in itertools.chain.from_iterable(mark.alternatives):
        if alternative.label is not None and protocol.find_label(alternative.label) is None:
            yield (
                "error",
                f"label {alternative.label!r} of an alternative {_unknown_label_message(protocol, alternative.label)}",
            )
    if mark.label is None and not (protocol.unlabelled or mark.label_votes):
        yield "warning", f"has no label, which protocol {protocol.id} requires"
    if mark.label is not None and label is None:
        yield "error", f"label {mark.label!r} {_unknown_label_message(protocol, mark.label)}"
        return
    for part in sorted({span.part for span in mark.spans} if protocol.marks_on is not None else ()):
        if protocol.can_mark_part(part):
            continue
        yield "warning", f"marks words of {part!r}, which protocol {protocol.id} does not mark"
    if label is not None and mark.antecedents is not None and label.antecedent == "none":
        yield "warning", f"has an antecedent, which protocol {protocol.id} does not ask for with '{label.name}'"
    if (
        label is not None
        and mark.antecedents is None
        and label.antecedent == "required"
        and annotation.status == "submitted"
    ):
        yield "warning", f"has no antecedent, which protocol {protocol.id} requires for '{label.name}'"
    if mark.votes is not None and annotation.readers is not None and mark.votes > annotation.readers:
        yield "warning", f"has {mark.votes} votes, but only {annotation.readers} annotators were pooled"
    yield from _answer_problems(
        mark.answers, protocol.questions_for_label(mark.label), annotation.status == "submitted"
    )


class _CachedMarkProblems:
    """Problems of marks with respect to their protocol, cached for similar marks."""

    def __init__(self, warns: bool) -> None:
        self._warns = warns
        self._known: dict[tuple[object, ...], tuple[tuple[ProblemLevel, str], ...]] = {}

    def __call__(self, mark: Mark, annotation: Annotation, protocol: Protocol) -> Iterable[tuple[ProblemLevel, str]]:
        """Return the problems that `_mark_protocol_problems` finds, possibly without warnings."""
        if (
            mark.antecedents is not None
            or mark.alternatives
            or mark.votes is not None
            or mark.label_votes is not None
            or len(mark.spans) != 1
            or mark.spans[0].part != TEXT_PART
        ):
            likeness = None
        else:
            likeness = (
                protocol.id,
                annotation.status,
                mark.label,
                repr(mark.answers),
            )  # repr distinguishes 1, 1.0 and True
        if likeness is None:
            return _mark_protocol_problems(mark, annotation, protocol)
        problems = self._known.get(likeness)
        if problems is None:
            listed = _mark_protocol_problems(mark, annotation, protocol)
            problems = tuple(problem for problem in listed if self._warns or problem[0] == "error")
            if len(self._known) < _MAX_CACHED_MARKS:  # the cache is bounded, because free-text answers rarely repeat
                self._known[likeness] = problems
        return problems


MarkProblems = Callable[[Mark, Annotation, Protocol], Iterable[tuple[ProblemLevel, str]]]


def protocol_problems(
    annotation: Annotation, protocol: Protocol, mark_problems: MarkProblems = _mark_protocol_problems
) -> Iterator[tuple[ProblemLevel, str]]:
    """Yield the problems of labels, antecedents and answers with respect to the protocol."""
    for mark in annotation.marks:
        for level, message in mark_problems(mark, annotation, protocol):
            yield level, f"mark {mark.id!r}: {message}"
    yield from _answer_problems(
        annotation.answers, protocol.document_questions, annotation.status == "submitted" and not annotation.made_from
    )
    for unit in annotation.units:
        for level, message in _answer_problems(unit.answers, protocol.unit_questions, False):
            yield level, f"unit [{unit.start}, {unit.end}): {message}"
        for name in unit.scores:
            if protocol.find_label(name) is None and name != _ANY_LABEL:
                yield (
                    "warning",
                    f"unit [{unit.start}, {unit.end}): score for {name!r}, which is not a label of {protocol.id}",
                )
    if annotation.status == "excluded" and annotation.excluded is None:
        yield "warning", "is excluded without a reason"


def _unknown_label_message(protocol: Protocol, label: str) -> str:
    return f"is not in protocol {protocol.id}{did_you_mean(label, [candidate.name for candidate in protocol.labels])}"


_ANY_LABEL = "any"  # a score for an error of any type


def _answer_problems(
    answers: Answers, questions: tuple[Question, ...], finished: bool
) -> Iterator[tuple[ProblemLevel, str]]:
    by_name = {question.name: question for question in questions}
    for name, answer in answers.items():
        if name not in by_name:
            if name not in ("cannot_judge", "score"):
                yield "warning", f"answers {name!r}, which is not asked{did_you_mean(name, by_name)}"
        elif problem := by_name[name].answer_problem(answer):
            yield "error", problem
    if finished:
        for name in unanswered_questions(answers, questions):
            yield "warning", f"answer to '{name}' is missing"


def unanswered_questions(answers: Answers, questions: tuple[Question, ...]) -> list[str]:
    """Return the names of required questions without an answer, except questions that other answers rule out."""
    if "cannot_judge" in answers:
        return []
    missing: list[str] = []
    for question in questions:
        if question.required and question.name not in answers:
            given = answers.get(question.when.question) if question.when else None
            choices = given if isinstance(given, tuple) else (given,)
            if question.when is None or any(answer in question.when.among for answer in choices):
                missing.append(question.name)
    return missing
