"""Validation of entries against the text and the protocol, before they are saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from finecomb.collection.database import rows
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.errors import shorten
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Answers, Antecedents, Mark, Unit
from finecomb.core.snapping import snapping_problem
from finecomb.core.study_checks import placement_problems, protocol_problems, unanswered_questions
from finecomb.server.annotators.schema import AnswersBody, MarkBody, UnitBody
from finecomb.server.annotators.task_view import OfferedMarkNames, TaskText, unit_id
from finecomb.server.error_responses import ProblemError, validation_problem


def validated_mark_json(
    id: str,
    body: MarkBody,
    text: TaskText,
    protocol: Protocol,
    names: OfferedMarkNames,
    copies: Mapping[str, str] | None = None,
) -> str:
    """Validate a mark and return its JSON, or raise a `ProblemError`.

    `copies` are the marks copied for a second pass, which keep the references to their first-pass marks.
    """
    strange = [name for name in body.made_from if name not in names.marks]
    if strange:
        raise ProblemError(
            "refused", "This mark was not accepted: it refers to a suggestion that was not offered. Reload the page."
        )
    _refuse_unasked_answers("This mark", body.answers, protocol.questions_for_label(body.label))
    earlier, copied = body.antecedent, (copies or {}).get(id)
    try:
        new = Mark(
            id=id,
            spans=body.spans,
            quotes=body.quotes,
            label=body.label,
            answers=body.answers,
            antecedents=Antecedents(spans=earlier.spans, quotes=earlier.quotes) if earlier else None,
            made_from=(*([copied] if copied else ()), *(names.marks[name].id for name in body.made_from)),
            alternatives=tuple(members for members in body.alternatives if members),
        )
    except ValidationError as error:
        raise validation_problem("This mark", error) from None
    _refuse_invalid_entry("This mark", _single_entry_annotation(protocol, marks=(new,)), text, protocol)
    if not protocol.labels and not protocol.unlabelled:
        raise ProblemError("refused", "This mark was not accepted: this study has no marks.")
    stored_names = text.pair.stored_names if text.pair else {}
    for span in new.spans:
        if not protocol.can_mark_part(stored_names.get(span.part, span.part)):
            raise ProblemError("refused", f"This mark was not accepted: the {span.part} cannot be marked.")
    if not any(names.marks[name].spans == new.spans for name in body.made_from):  # else a machine chose the words
        _refuse_unsnapped_mark(new, text, protocol)
    return rows.mark_to_body(text.pair.stored_mark(new) if text.pair else new)


def _refuse_unsnapped_mark(mark: Mark, text: TaskText, protocol: Protocol) -> None:
    """Reject a mark that does not cover whole words or sentences as its label requires. The page extends such marks."""
    label = protocol.find_label(mark.label)
    for span, quote in zip(mark.spans, mark.quotes, strict=True) if label else ():
        words, bounds = text.document.part_text(span.part) or "", text.sentences.get(span.part, _EMPTY_OFFSETS)
        if label and snapping_problem(span, words, label.snap, bounds):
            rule = f"“{label.display_title}” must cover whole {label.snap}s, found {shorten(quote, 40)!r}"
            raise ProblemError("refused", f"This mark was not accepted: {rule}.")


_EMPTY_OFFSETS = np.empty((0, 2), dtype=np.int64)


def validated_unit_json(id: str, body: UnitBody, text: TaskText, protocol: Protocol, wall: float) -> str:
    """Validate a judged text part and return its JSON. `wall` is its maximum duration in seconds."""
    if id not in text.units and any(id == unit_id(part) for part in text.parts):
        raise ProblemError("refused", "This part was not accepted: judge the earlier parts first.")
    if id not in text.units:
        raise ProblemError("refused", "This part was not accepted: the text has no such part.")
    _refuse_unasked_answers("This part", body.answers, protocol.unit_questions)
    start, end = map(int, id.split("-"))
    judged = Unit(start=start, end=end, answers=body.answers, seconds=min(body.seconds, wall) or None)
    _refuse_invalid_entry("This part", _single_entry_annotation(protocol, units=(judged,)), text, protocol)
    return judged.to_json()


def validated_answers_json(body: AnswersBody, text: TaskText, protocol: Protocol) -> str:
    """Validate the answers about the whole text and return their JSON."""
    _refuse_unasked_answers("This answer", body.answers, protocol.document_questions)
    stored = text.pair.stored_answers(body.answers) if text.pair else body.answers
    _refuse_invalid_entry("This answer", _single_entry_annotation(protocol, answers=stored), text, protocol)
    return rows.dump_json({"answers": dict(stored)} | ({"no_errors": True} if body.no_errors else {}))


def _single_entry_annotation(protocol: Protocol, **content: Any) -> Annotation:
    """Build an annotation with a single entry, so that the checks for annotations can be applied to it."""
    return Annotation(id="task", document="text", annotator="you", protocol=protocol.id, status="draft", **content)


def _refuse_unasked_answers(what: str, answers: Answers, questions: Iterable[Question]) -> None:
    """Reject answers to questions that were not asked. In imported data, such answers cause only a warning."""
    if strange := set(answers) - {question.name for question in questions} - {"cannot_judge"}:
        raise ProblemError(
            "refused", f"{what} was not accepted: {shorten(min(strange), 40)!r} is not among the questions."
        )


def _refuse_invalid_entry(what: str, annotation: Annotation, text: TaskText, protocol: Protocol) -> None:
    """Reject an entry with errors. Warnings, such as a missing answer, are ignored."""
    for problems in (placement_problems(annotation, text.document), protocol_problems(annotation, protocol)):
        for level, message in problems:
            if level == "error":
                for mark in annotation.marks:
                    message = message.removeprefix(f"mark {mark.id!r}: ")
                sentence = f"{message[:1].upper()}{message[1:]}."
                raise ProblemError("refused", f"{what} was not accepted. {sentence}")


# --- submission --------------------------------------------------------------------------------------------------


def missing_submission_parts(annotation: Annotation, text: TaskText, protocol: Protocol) -> tuple[str, ...]:
    """Return the items that are missing for submission, as `kind/id: item`."""
    missing = []
    for mark in annotation.marks:
        label = protocol.find_label(mark.label)
        if mark.label is None and not protocol.unlabelled:
            missing.append(f"marks/{mark.id}: label")
        if label is not None and label.antecedent == "required" and mark.antecedents is None:
            missing.append(f"marks/{mark.id}: antecedent")
        unanswered = unanswered_questions(mark.answers, protocol.questions_for_label(mark.label))
        missing += [f"marks/{mark.id}: {name}" for name in unanswered]
    if "cannot_judge" in annotation.answers:
        return tuple(missing)
    judged = {f"{unit.start}-{unit.end}": unit for unit in annotation.units}
    for id in map(unit_id, text.parts):
        names = unanswered_questions(judged[id].answers, protocol.unit_questions) if id in judged else ["judged"]
        missing += [f"units/{id}: {name}" for name in names]
    unanswered = unanswered_questions(annotation.answers, protocol.document_questions)
    missing += [f"answers/text: {name}" for name in unanswered]
    no_errors = TaskMeta.from_meta(annotation.meta).no_errors
    if protocol.labels and not text.parts and not annotation.marks and not no_errors:
        missing.append("answers/text: no_errors")
    return tuple(missing)
