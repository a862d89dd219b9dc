"""Training exercises and qualification tests built from a study's adjudicated texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.practice import Exercise, Qualification, QualificationPart, Solution, Training
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study

_TOTAL_POINTS = 100.0
_EXPLANATION_QUESTIONS = ("explanation", "reason", "why", "comment")


def exercise_from_gold(document: Document, gold: Annotation) -> Exercise:
    """Build an exercise from a text, with its gold marks and answers as the solution."""
    units = {(unit.start, unit.end): unit.answers for unit in gold.units}
    segments = tuple(_unique_opening_words(document.text, segment.start) for segment in document.segments)
    words = re.sub(r"[^a-z0-9]+", "-", document.id.lower()).strip("-") or "text"
    return Exercise(
        name=words if words[0].isalpha() else f"text-{words}",
        text=document.text,
        context=document.context,
        segments=segments,
        data=document.data,
        solutions=tuple(_solution_from_mark(document, mark) for mark in gold.marks if mark.spans),
        answers=gold.answers,
        units=tuple(units.get((part.start, part.end), {}) for part in document.segments) if units else (),
    )


def exercises_from_study(study: Study, documents: Sequence[str], protocol: Protocol, gold: str = "") -> list[Exercise]:
    """Build exercises from adjudicated texts. The solutions are the submitted annotations by `gold` under `protocol`.

    Without `gold`, the solutions come from the gold annotator, or from the only annotator.
    """
    from finecomb.statistics.gold.gold_and_judges import find_gold_annotator

    document_by_id = {document.id: document for document in study.iter_documents()}
    exercises = []
    for id in documents:
        if id not in document_by_id:
            raise FinecombError(f"unknown text {id!r}{did_you_mean(id, study.documents['id'].head(5000))}")
        annotator = gold or find_gold_annotator(study)
        wanted = (id, annotator, protocol.id, "submitted")
        candidates = (
            annotation
            for annotation in study.iter_annotations()
            if (annotation.document, annotation.annotator, annotation.protocol, annotation.status) == wanted
        )
        if (solution := next(candidates, None)) is None:
            raise ParameterError(
                f"text {id!r} has no submitted annotation by {annotator!r} with protocol {protocol.id}; adjudicate the "
                f"text, or name another annotator with {param('gold')}",
                parameter="gold",
            )
        exercises.append(exercise_from_gold(document_by_id[id], solution))
    return exercises


def _solution_from_mark(document: Document, mark: Mark) -> Solution:
    span = mark.spans[0]
    text = document.part_text(span.part) or ""
    is_gap = span.start == span.end
    words = _unique_opening_words(text, span.start) if is_gap else text[span.start : span.end]
    earlier = mark.antecedents.quotes[0] if mark.antecedents and mark.antecedents.quotes else ""
    reasons = [str(mark.answers[name]) for name in _EXPLANATION_QUESTIONS if mark.answers.get(name)]
    return Solution(
        quote="" if is_gap else words,
        before=words if is_gap else "",
        label=mark.label,
        nth=sum(text.startswith(words, position) for position in range(span.start + 1)),
        part=span.part,
        antecedent=earlier if any(earlier in part for part in (document.text, *document.context.values())) else "",
        answers={name: answer for name, answer in mark.answers.items() if name not in _EXPLANATION_QUESTIONS},
        why=reasons[0] if reasons else "",
    )


def _unique_opening_words(text: str, start: int) -> str:
    """Return the shortest sequence of whole words from `start` that does not occur earlier in the text."""
    for end in range(start + 1, len(text) + 1):
        if text.find(text[start:end]) == start and (end == len(text) or not text[end].isalnum()):
            return text[start:end]
    raise FinecombError(
        f"the omission at character {start:,} cannot be quoted, because the words after it also occur earlier in the "
        "text; select another text"
    )


# --- protocols with exercises ------------------------------------------------------------------------------------


def protocol_with_training_exercises(protocol: Protocol, exercises: Sequence[Exercise], version: str = "") -> Protocol:
    """Return a new version of the protocol with additional training exercises."""
    training = protocol.training or Training()
    more = training.model_copy(update={"exercises": (*training.exercises, *exercises)})
    return _revise_protocol(protocol, version, training=more)


def protocol_with_qualification_test(
    protocol: Protocol, exercises: Sequence[Exercise], share: float, precision: float, version: str = ""
) -> Protocol:
    """Return a new version of the protocol in which the qualification test is to find the errors in the given texts.

    The pass mark is `share` of the points. A mark is right if its position is right, whatever its label, and at least
    the share `precision` of the marks must be right.
    """
    empty = [exercise.name for exercise in exercises if not exercise.solutions]
    if empty:
        raise FinecombError(f"{empty[0]}: a qualification text needs at least one mark; select a text with errors")
    texts = "a text" if len(exercises) == 1 else f"{len(exercises)} texts"
    lines = [f"Mark all errors in {texts}, as you would in the study. The pass mark is {share:.0%} of the points."]
    lines += ["A mark counts when it overlaps an error, whatever its error type."]
    lines += [f"At least {precision:.0%} of your marks must be right."] if precision else []
    part = QualificationPart(
        name="own-texts",
        title="Texts with known errors",
        intro=" ".join([*lines, "You will see the solution afterwards."]),
        points=round(_TOTAL_POINTS / len(exercises), 6),
        exercises=tuple(exercises),
        match="place",
    )
    pass_at = min(part.max_points, round(part.max_points * share, 6))
    return _revise_protocol(
        protocol, version, qualification=Qualification(parts=(part,), pass_at=pass_at, min_precision=precision or None)
    )


def _revise_protocol(protocol: Protocol, version: str, **fields: object) -> Protocol:
    changed = protocol.model_dump() | {"version": version or _next_custom_version(protocol.version)} | fields
    return Protocol.model_validate(changed)


def _next_custom_version(version: str) -> str:
    """Return the next version of an adapted protocol: `2` becomes `2-own`, then `2-own-2`.

    >>> _next_custom_version("2"), _next_custom_version("2-own"), _next_custom_version("2-own-2")
    ('2-own', '2-own-2', '2-own-3')
    """
    stem, mark, number = version.partition("-own")
    return f"{stem}-own" if not mark else f"{stem}-own-{int(number.removeprefix('-') or 1) + 1}"


def solvability_warnings(protocol: Protocol, exercises: Sequence[Exercise]) -> Iterator[str]:
    """Yield a warning for each exercise whose solutions annotators cannot see or mark."""
    for exercise in exercises:
        hidden = [solution for solution in exercise.solutions if solution.part != TEXT_PART]
        if hidden and protocol.work.context == "hidden":
            yield f"{exercise.name}: {len(hidden)} marks are in contexts that the protocol hides"
