"""Is a save sound? Every entry is checked against the text and the protocol before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from finecomb.server.annotators.schema import AnswersBody, MarkBody, SuggestionBody, UnitBody
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
    """A mark as it is kept, or a `ProblemError` that says what does not fit.

    `copies` are those of a second pass, which stay made from the marks of the first, however they are changed.
    """
    strange = [name for name in body.made_from if name not in names.marks]
    if strange:
        raise ProblemError(
            "refused", "This mark was not accepted: it says it was made from a mark that was not offered."
        )
    _refuse_unasked_answers("This mark", body.answers, protocol.questions_of(body.label))
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
    _refuse_unmarkable_part(new, text, protocol)
    if not any(names.marks[name].spans == new.spans for name in body.made_from):  # else a machine chose the words
        _refuse_unsnapped_mark(new, text, protocol)
    return rows.mark_body(text.pair.stored_mark(new) if text.pair else new)


def _refuse_unmarkable_part(mark: Mark, text: TaskText, protocol: Protocol) -> None:
    """Refuse a mark where the protocol looks for no errors: on another part, or anywhere at all."""
    if not protocol.labels and not protocol.unlabelled:
        raise ProblemError("refused", "This mark was not accepted: nothing is marked in this study.")
    own = text.pair.stored_names if text.pair else {}
    for span in mark.spans:
        if not protocol.may_mark(own.get(span.part, span.part)):
            raise ProblemError("refused", f"This mark was not accepted: nothing is marked in the {span.part}.")


def _refuse_unsnapped_mark(mark: Mark, text: TaskText, protocol: Protocol) -> None:
    """Refuse a mark that is not as wide as its label asks for; our page widens it by itself."""
    label = protocol.find_label(mark.label)
    for span, quote in zip(mark.spans, mark.quotes, strict=True) if label else ():
        words, bounds = text.document.part(span.part) or "", text.sentences.get(span.part, _EMPTY_OFFSETS)
        if label and (problem := snapping_problem(span, words, label.snap, bounds)):
            say = f"{label.display_title} {problem}, and {shorten(quote, 40)!r} is not"
            raise ProblemError("refused", f"This mark was not accepted: {say}.")


_EMPTY_OFFSETS = np.empty((0, 2), dtype=np.int64)


def validated_unit_json(id: str, body: UnitBody, text: TaskText, protocol: Protocol, wall: float) -> str:
    """A judged part as it is kept; `wall` is how long it can have taken at most."""
    if id not in text.units and any(id == unit_id(part) for part in text.parts):
        raise ProblemError("refused", "This part was not accepted: judge the parts before it first.")
    if id not in text.units:
        raise ProblemError("refused", "This part was not accepted: the text has no such part.")
    _refuse_unasked_answers("This part", body.answers, protocol.unit_questions)
    start, end = map(int, id.split("-"))
    judged = Unit(start=start, end=end, answers=body.answers, seconds=min(body.seconds, wall) or None)
    _refuse_invalid_entry("This part", _single_entry_annotation(protocol, units=(judged,)), text, protocol)
    return judged.to_json()


def validated_answers_json(body: AnswersBody, text: TaskText, protocol: Protocol) -> str:
    """Answers about the whole text as they are kept."""
    _refuse_unasked_answers("This answer", body.answers, protocol.document_questions)
    stored = text.pair.stored_answers(body.answers) if text.pair else body.answers
    _refuse_invalid_entry("This answer", _single_entry_annotation(protocol, answers=stored), text, protocol)
    return rows.dump_json({"answers": dict(stored)} | ({"no_errors": True} if body.no_errors else {}))


def validated_decision(name: str, body: SuggestionBody, names: OfferedMarkNames) -> tuple[str, str]:
    """The id of an offered mark, and what was decided about it, as it is kept."""
    if name not in names.marks:
        raise ProblemError("refused", "This decision was not accepted: no such mark was offered.")
    return names.marks[name].id, body.to_json()


def _single_entry_annotation(protocol: Protocol, **content: Any) -> Annotation:
    """An annotation that holds one entry only, for the checks that all annotations go through."""
    return Annotation(id="task", document="text", annotator="you", protocol=protocol.id, status="draft", **content)


def _refuse_unasked_answers(what: str, answers: Answers, questions: Iterable[Question]) -> None:
    """In imported data an answer nobody asked for is worth a warning; a page of ours never sends one."""
    if strange := set(answers) - {question.name for question in questions} - {"cannot_judge"}:
        raise ProblemError("refused", f"{what} was not accepted: {shorten(min(strange), 40)!r} is not asked there.")


def _refuse_invalid_entry(what: str, annotation: Annotation, text: TaskText, protocol: Protocol) -> None:
    """Errors refuse; warnings, such as an answer still missing, do not."""
    for problems in (placement_problems(annotation, text.document), protocol_problems(annotation, protocol)):
        for level, message in problems:
            if level == "error":
                raise ProblemError(
                    "refused", f"{what} was not accepted. {_format_problem_sentence(message, annotation)}"
                )


def _format_problem_sentence(message: str, annotation: Annotation) -> str:
    for mark_ in annotation.marks:
        message = message.removeprefix(f"mark {mark_.id!r}: ")
    return f"{message[:1].upper()}{message[1:]}."


# --- handing in --------------------------------------------------------------------------------------------------


def missing_submission_parts(annotation: Annotation, text: TaskText, protocol: Protocol) -> tuple[str, ...]:
    """What keeps a task from being handed in, as `kind/id: what`."""
    return (*_missing_in_marks(annotation.marks, protocol), *_missing_in_text(annotation, text, protocol))


def _missing_in_marks(marks: Iterable[Mark], protocol: Protocol) -> Iterator[str]:
    for mark_ in marks:
        label = protocol.find_label(mark_.label)
        if mark_.label is None and not protocol.unlabelled:
            yield f"marks/{mark_.id}: label"
        if label is not None and label.antecedent == "required" and mark_.antecedents is None:
            yield f"marks/{mark_.id}: antecedent"
        yield from (
            f"marks/{mark_.id}: {name}"
            for name in unanswered_questions(mark_.answers, protocol.questions_of(mark_.label))
        )


def _missing_in_text(annotation: Annotation, text: TaskText, protocol: Protocol) -> Iterator[str]:
    if "cannot_judge" in annotation.answers:
        return
    judged = {f"{unit.start}-{unit.end}": unit for unit in annotation.units}
    for part in text.parts:
        id = f"{part.start}-{part.end}"
        if id not in judged:
            yield f"units/{id}: judged"
        else:
            yield from (
                f"units/{id}: {name}" for name in unanswered_questions(judged[id].answers, protocol.unit_questions)
            )
    yield from (
        f"answers/text: {name}" for name in unanswered_questions(annotation.answers, protocol.document_questions)
    )
    no_errors = TaskMeta.from_meta(annotation.meta).no_errors
    if protocol.labels and not text.parts and not annotation.marks and not no_errors:
        yield "answers/text: no_errors"
