"""What is wrong with a study: every problem, in one pass over its records."""

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
from finecomb.core.records import Annotation, Annotator, Answers, Document, Mark, Settings, Unit, iter_quoted_spans
from finecomb.core.span import TEXT, Span
from finecomb.core.study import Study, StudyItem

Level = Literal["error", "warning"]
_MAX_HINTS = 20
_MAX_CACHED = 10_000
PLANNABLE_COMMANDS = ("measure", "agree", "gold", "test", "stats")
"""The commands whose tables can be planned in `study.yaml`."""


def planned_problem(line: str) -> str:
    """What is wrong with a planned table as a line of words, or nothing."""
    try:
        words = shlex.split(line)
    except ValueError:
        return f"planned {line!r} has a quotation mark that is not closed"
    if words[:1] and words[0] in PLANNABLE_COMMANDS:
        return ""
    return f"planned {line!r} is no table; begin with {', '.join(PLANNABLE_COMMANDS[:-1])} or {PLANNABLE_COMMANDS[-1]}"


RecordCheck = Callable[[Any], str]
"""Return the problem of a document's `data` as a sentence, or an empty string where it has none."""


def check(study: Study, record_checks: Sequence[RecordCheck] = ()) -> list[Problem]:
    """Every problem of a study, errors and warnings; each of `record_checks` reads the data of every document."""
    checker = Checker(record_checks=record_checks)
    problems = [problem for item in study.items() for problem in checker.check_item(item)]
    return problems + list(checker.finish())


def check_items(items: Iterable[StudyItem]) -> Iterator[StudyItem]:
    """Pass records on while checking them; all errors are raised together at the end."""
    checker = Checker(warns=False)
    errors: list[Problem] = []
    for item in items:
        errors += [problem for problem in checker.check_item(item) if problem.level == "error"]
        yield item
    errors += [problem for problem in checker.finish() if problem.level == "error"]
    if errors:
        raise StudyError(errors)


class Checker:
    """Sees the records of a study one by one and says what is wrong with each, given those before it.

    Without `warns` it may leave out warnings, which saves time where nobody reads them.
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

    def check_item(self, item: StudyItem) -> Iterator[Problem]:
        """What is wrong with `item`."""
        match item:
            case Annotation():
                yield from self._build_problems("annotation", item.id, self._check_annotation(item))
            case Document():
                yield from self._build_problems("document", item.id, self._check_document(item))
            case Annotator():
                yield from self._build_problems("annotator", item.id, self._check_annotator(item))
            case Protocol():
                if self._protocols.setdefault(item.id, item) != item:
                    yield Problem(
                        f"protocol {item.id} is there twice, and not the same; count its version up", kind="protocol"
                    )
            case Settings():
                self._settings = item

    def finish(self) -> Iterator[Problem]:
        """What only shows when everything has been seen."""
        for row, annotation in self._about:
            if annotation.about not in self._annotations and annotation.about not in self._marks:
                message = f"is about {annotation.about!r}, which is no annotation and no mark of the study"
                yield Problem(message, kind="annotation", id=annotation.id, row=row)
        if self._settings:
            yield from self._check_settings(self._settings)

    def _check_settings(self, settings: Settings) -> Iterator[Problem]:
        for name in settings.protocols:
            if name not in self._protocols:
                yield Problem(
                    f"names protocol {name!r}, which is not there{did_you_mean(name, self._protocols)}", kind="settings"
                )
        for id in settings.attention_checks:
            if id not in self._documents:
                yield Problem(
                    f"attention check {id!r} is no document{did_you_mean(id, self._documents)}", kind="settings"
                )

        for message in (
            *self._design_problems(settings),
            *self._plan_problems(settings),
            *self._allocation_problems(settings),
        ):
            yield Problem(message, kind="settings")

    def _plan_problems(self, settings: Settings) -> Iterator[str]:
        """What is wrong with the mode, the planned tables and the audit that the settings name."""
        protocol = next((self._protocols[id] for id in settings.protocols if id in self._protocols), None)
        if settings.mode and protocol is not None and not protocol.has_mode(settings.mode):
            modes = [mode.name for mode in protocol.modes]
            why = did_you_mean(settings.mode, modes) if modes else "; it has none"
            yield f"mode {settings.mode!r} is not among the modes of protocol {protocol.id}{why}"
        yield from filter(None, map(planned_problem, settings.planned))
        lost = [mark for mark in (settings.audit.marks if settings.audit else ()) if mark not in self._marks]
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            yield f"audit: mark {lost[0]!r}{more} is not in the study; draw the sample again"

    def _design_problems(self, settings: Settings) -> list[str]:
        protocol = next((self._protocols[id] for id in settings.protocols if id in self._protocols), None)
        if settings.design is None or protocol is None:
            return []
        checks = set(settings.attention_checks)
        metas = {id: document.meta for id, document in self._documents.items() if id not in checks}
        return design_problems(settings.design, protocol, metas)

    def _allocation_problems(self, settings: Settings) -> list[str]:
        protocol = next((self._protocols[id] for id in settings.protocols if id in self._protocols), None)
        if protocol is None:
            return []
        metas = {id: document.meta for id, document in self._documents.items()}
        return allocation_problems(settings, protocol, metas, list(self._annotators))

    def _build_problems(self, kind: str, id: str, messages: Iterable[tuple[Level, str]]) -> Iterator[Problem]:
        row = self._rows[kind]
        self._rows[kind] += 1
        for level, message in messages:
            yield Problem(message, level, kind, id, row)

    def _check_document(self, document: Document) -> Iterator[tuple[Level, str]]:
        if document.id in self._documents:
            yield "error", f"document id {document.id!r} is there twice; ids are unique"
        self._documents[document.id] = document
        for check_record in self._record_checks:
            if problem := check_record(document.data):
                yield "warning", f"its data is {problem}; annotators see plain tables"

    def _check_annotator(self, annotator: Annotator) -> Iterator[tuple[Level, str]]:
        if annotator.id in self._annotators:
            yield "error", f"annotator id {annotator.id!r} is there twice; ids are unique"
        self._annotators[annotator.id] = annotator

    def _check_annotation(self, annotation: Annotation) -> Iterator[tuple[Level, str]]:
        if annotation.id in self._annotations:
            yield "error", f"annotation id {annotation.id!r} is there twice; ids are unique"
        self._annotations[annotation.id] = self._rows["annotation"] - 1
        other = self._keys.setdefault(annotation.key, annotation.id)
        if other != annotation.id:
            same = "document, annotator, protocol, round and about"
            yield "error", f"has the same {same} as {other!r}; give a second pass another round"
        if annotation.about is not None:
            self._about.append((self._rows["annotation"] - 1, annotation))
        for mark in annotation.marks:
            if mark.id in self._marks:
                yield "error", f"mark id {mark.id!r} is there twice; ids are unique"
            self._marks.add(mark.id)
        document = self._find_document(annotation)
        yield from self._reference_problems(annotation, document)
        yield from self._content_problems(annotation, document)

    def _reference_problems(self, annotation: Annotation, document: Document | None) -> Iterator[tuple[Level, str]]:
        named: list[tuple[str, str, Mapping[str, object]]] = [
            ("annotator", annotation.annotator, self._annotators),
            ("protocol", annotation.protocol, self._protocols),
        ]
        if document is None:
            named.append(("document", annotation.document, self._documents))
        for what, id, names in named:
            if id not in names:
                yield "error", f"names {what} {id!r}, which is not in the study{self._suggest_name(id, names)}"

    def _suggest_name(self, id: str, names: Mapping[str, object]) -> str:
        """The nearest of many names; looking for it is slow, so only the first wrong names get one."""
        self._hints += 1
        return did_you_mean(id, list(names)[:5000]) if self._hints <= _MAX_HINTS else ""

    def _find_document(self, annotation: Annotation) -> Document | None:
        """What was read: a document of the study or, in training and qualification, a text of the protocol."""
        document = self._documents.get(annotation.document)
        protocol = self._protocols.get(annotation.protocol)
        if document is None and protocol is not None and annotation.phase != "work":
            return protocol.practice_documents.get(annotation.document)
        return document

    def _content_problems(self, annotation: Annotation, document: Document | None) -> Iterator[tuple[Level, str]]:
        if document is not None:
            yield from placement_problems(annotation, document)
        protocol = self._protocols.get(annotation.protocol)
        if protocol is not None:
            asked = protocol.protocol_for_document(annotation.document)
            known = self._mark_problems if asked is protocol else _mark_protocol_problems
            yield from protocol_problems(annotation, asked, known)


def placement_problems(annotation: Annotation, document: Document) -> Iterator[tuple[Level, str]]:
    """Problems of spans, quotes and units against the text."""
    for mark in annotation.marks:
        for span, quote in iter_quoted_spans(mark):
            if problem := span_problem(span, quote, document):
                yield "error", f"mark {mark.id!r}: {problem}"
    for unit in annotation.units:
        if not unit.start <= unit.end <= len(document.text):
            place = f"unit [{unit.start}, {unit.end})"
            yield "error", f"{place} does not lie in the text, which has {len(document.text)} characters"


def span_problem(span: Span, quote: str, document: Document) -> str:
    """Why the span with that quote cannot be, with the nearest match; empty when it can."""
    text = document.part(span.part)
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
    claimed, there = diff_excerpt(quote, words)
    return (
        f"quote {claimed} is not what the {span.part} has at {place}: "
        f"{there}{_nearest_match_hint(quote, text, span.start)}"
    )


def _nearest_match_hint(quote: str, text: str, start: int) -> str:
    """A tail that names the occurrence of `quote` nearest to `start`, if any."""
    before = text.rfind(quote, 0, min(start + len(quote), len(text))) if quote else -1
    after = text.find(quote, start) if quote else -1
    places = [at for at in (before, after) if at >= 0]
    if not places:
        return "; the quote is nowhere in it"
    at = min(places, key=lambda place: abs(place - start))
    return f"; the nearest match is at [{at}, {at + len(quote)})"


def _mark_protocol_problems(mark: Mark, annotation: Annotation, protocol: Protocol) -> Iterator[tuple[Level, str]]:
    label = protocol.find_label(mark.label)
    for alternative in itertools.chain.from_iterable(mark.alternatives):
        if alternative.label is not None and protocol.find_label(alternative.label) is None:
            yield (
                "error",
                f"label {alternative.label!r} of an alternative {_unknown_label_message(protocol, alternative.label)}",
            )
    if mark.label is None and not (protocol.unlabelled or mark.label_votes):
        yield "warning", f"has no label, though protocol {protocol.id} asks for one"
    if mark.label is not None and label is None:
        yield "error", f"label {mark.label!r} {_unknown_label_message(protocol, mark.label)}"
        return
    for part in sorted({span.part for span in mark.spans} if protocol.marks_on is not None else ()):
        if protocol.may_mark(part):
            continue
        yield "warning", f"marks words of {part!r}, where protocol {protocol.id} looks for no errors"
    if label is not None and mark.antecedents is not None and label.antecedent == "none":
        yield "warning", f"has an antecedent, which protocol {protocol.id} does not ask of '{label.name}'"
    if (
        label is not None
        and mark.antecedents is None
        and label.antecedent == "required"
        and annotation.status == "submitted"
    ):
        yield "warning", f"has no antecedent, which protocol {protocol.id} asks of '{label.name}'"
    if mark.votes is not None and annotation.readers is not None and mark.votes > annotation.readers:
        yield "warning", f"has {mark.votes} votes of {annotation.readers} readers"
    yield from _answer_problems(mark.answers, protocol.questions_of(mark.label), annotation.status == "submitted")


class _CachedMarkProblems:
    """Problems of marks against their protocol, looked up where an earlier mark was alike."""

    def __init__(self, warns: bool) -> None:
        self._warns = warns
        self._known: dict[tuple[object, ...], tuple[tuple[Level, str], ...]] = {}

    def __call__(self, mark: Mark, annotation: Annotation, protocol: Protocol) -> Iterable[tuple[Level, str]]:
        """What `_mark_protocol_problems` says, perhaps without warnings."""
        likeness = _cache_key(mark, annotation, protocol)
        if likeness is None:
            return _mark_protocol_problems(mark, annotation, protocol)
        problems = self._known.get(likeness)
        if problems is None:
            listed = _mark_protocol_problems(mark, annotation, protocol)
            problems = tuple(problem for problem in listed if self._warns or problem[0] == "error")
            if len(self._known) < _MAX_CACHED:  # answers in free text are never alike
                self._known[likeness] = problems
        return problems


def _cache_key(mark: Mark, annotation: Annotation, protocol: Protocol) -> tuple[object, ...] | None:
    """All that the conformity of a mark with one span on the text depends on; None of a mark that has more."""
    if mark.antecedents is not None or mark.alternatives or mark.votes is not None or mark.label_votes is not None:
        return None
    if len(mark.spans) != 1 or mark.spans[0].part != TEXT:
        return None
    return protocol.id, annotation.status, mark.label, repr(mark.answers)  # in which 1 is neither true nor 1.0


MarkProblems = Callable[[Mark, Annotation, Protocol], Iterable[tuple[Level, str]]]


def protocol_problems(
    annotation: Annotation, protocol: Protocol, mark_problems: MarkProblems = _mark_protocol_problems
) -> Iterator[tuple[Level, str]]:
    """Problems of labels, antecedents and answers against the protocol."""
    for mark in annotation.marks:
        for level, message in mark_problems(mark, annotation, protocol):
            yield level, f"mark {mark.id!r}: {message}"
    yield from _answer_problems(
        annotation.answers, protocol.document_questions, annotation.status == "submitted" and not annotation.made_from
    )
    for unit in annotation.units:
        yield from _unit_problems(unit, protocol)
    if annotation.status == "excluded" and annotation.excluded is None:
        yield "warning", "is excluded without a reason"


def _unknown_label_message(protocol: Protocol, label: str) -> str:
    return f"is not in protocol {protocol.id}{did_you_mean(label, [candidate.name for candidate in protocol.labels])}"


_ANY_LABEL = "any"  # a score for an error of whatever type


def _unit_problems(unit: Unit, protocol: Protocol) -> Iterator[tuple[Level, str]]:
    for level, message in _answer_problems(unit.answers, protocol.unit_questions, False):
        yield level, f"unit [{unit.start}, {unit.end}): {message}"
    for name in unit.scores:
        if protocol.find_label(name) is None and name != _ANY_LABEL:
            yield "warning", f"unit [{unit.start}, {unit.end}): score for {name!r}, which is no label of {protocol.id}"


def _answer_problems(answers: Answers, questions: tuple[Question, ...], finished: bool) -> Iterator[tuple[Level, str]]:
    by_name = {question.name: question for question in questions}
    for name, answer in answers.items():
        if name not in by_name:
            if name not in ("cannot_judge", "score"):
                yield "warning", f"answers {name!r}, which is not asked there{did_you_mean(name, by_name)}"
        elif problem := by_name[name].problem(answer):
            yield "error", problem
    if finished:
        for name in unanswered_questions(answers, questions):
            yield "warning", f"has no answer to '{name}'"


def unanswered_questions(answers: Answers, questions: tuple[Question, ...]) -> list[str]:
    """Names of the required questions that have no answer; those not asked after the given answers are left out."""
    if "cannot_judge" in answers:
        return []
    open_ = (question for question in questions if question.required and question.name not in answers)
    return [question.name for question in open_ if _is_asked(question, answers)]


def _is_asked(question: Question, answers: Answers) -> bool:
    if question.when is None:
        return True
    given = answers.get(question.when.question)
    return any(answer in question.when.among for answer in (given if isinstance(given, tuple) else (given,)))
