"""Exercises and tests from texts of one's own: what an adjudicated text teaches, and a protocol with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.practice import Exercise, Qualification, QualificationPart, Solution, Training
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import TEXT
from finecomb.core.study import Study

_TOTAL_POINTS = 100.0
_EXPLANATION_QUESTIONS = ("explanation", "reason", "why", "comment")


def exercise_from_gold(document: Document, gold: Annotation) -> Exercise:
    """A text as an exercise whose solution is its gold: marks, answers and the answers about its parts."""
    units = {(unit.start, unit.end): unit.answers for unit in gold.units}
    segments = tuple(_unique_opening(document.text, segment.start) for segment in document.segments)
    return Exercise(
        name=_exercise_name(document.id),
        text=document.text,
        context=document.context,
        segments=segments,
        data=document.data,
        solutions=tuple(_solution_from_mark(document, mark) for mark in gold.marks if mark.spans),
        answers=gold.answers,
        units=tuple(units.get((part.start, part.end), {}) for part in document.segments) if units else (),
    )


def exercises_from_study(study: Study, documents: Sequence[str], protocol: Protocol, gold: str = "") -> list[Exercise]:
    """Return adjudicated texts as exercises, whose solution is the submitted work of `gold` with `protocol`.

    Without `gold` it is the gold annotator's, or the only annotator's.
    """
    from finecomb.statistics.gold.gold_and_judges import find_gold_annotator

    document_by_id = {document.id: document for document in study.iter_documents()}
    exercises = []
    for id in documents:
        if id not in document_by_id:
            raise FinecombError(f"no text is called {id!r}{did_you_mean(id, study.documents['id'].head(5000))}")
        annotator = gold or find_gold_annotator(study)
        wanted = (id, annotator, protocol.id, "submitted")
        found = (one for one in study.iter_annotations() if _key_of(one) == wanted)
        if (solution := next(found, None)) is None:
            raise ParameterError(
                f"{id}: has no annotation of {annotator!r}; adjudicate it first, or name others with {param('gold')}",
                parameter="gold",
            )
        exercises.append(exercise_from_gold(document_by_id[id], solution))
    return exercises


def _key_of(annotation: Annotation) -> tuple[str, str, str, str]:
    return annotation.document, annotation.annotator, annotation.protocol, annotation.status


def _exercise_name(id: str) -> str:
    """A name made of a document's id."""
    words = re.sub(r"[^a-z0-9]+", "-", id.lower()).strip("-") or "text"
    return words if words[0].isalpha() else f"text-{words}"


def _solution_from_mark(document: Document, mark: Mark) -> Solution:
    span = mark.spans[0]
    text = document.part(span.part) or ""
    is_gap = span.start == span.end
    words = _unique_opening(text, span.start) if is_gap else text[span.start : span.end]
    earlier = mark.antecedents.quotes[0] if mark.antecedents and mark.antecedents.quotes else ""
    reasons = [str(mark.answers[name]) for name in _EXPLANATION_QUESTIONS if mark.answers.get(name)]
    return Solution(
        quote="" if is_gap else words,
        before=words if is_gap else "",
        label=mark.label,
        nth=_occurrence_number(text, words, span.start),
        part=span.part,
        antecedent=earlier if any(earlier in part for part in (document.text, *document.context.values())) else "",
        answers={name: answer for name, answer in mark.answers.items() if name not in _EXPLANATION_QUESTIONS},
        why=reasons[0] if reasons else "",
    )


def _occurrence_number(text: str, words: str, start: int) -> int:
    """Which occurrence of some words begins there, counted from 1."""
    return sum(text.startswith(words, at) for at in range(start + 1))


def _unique_opening(text: str, start: int) -> str:
    """The words that begin there, as many as tell the place from every other."""
    for end in range(start + 1, len(text) + 1):
        if text.find(text[start:end]) == start and (end == len(text) or not text[end].isalnum()):
            return text[start:end]
    raise FinecombError(f"no words of its own stand at character {start:,} of the text, so it cannot be an exercise")


# --- a protocol with them ----------------------------------------------------------------------------------------


def with_training_exercises(protocol: Protocol, exercises: Sequence[Exercise], version: str = "") -> Protocol:
    """The protocol with more exercises in its training, in a version of its own."""
    training = protocol.training or Training()
    more = training.model_copy(update={"exercises": (*training.exercises, *exercises)})
    return _revise_protocol(protocol, version, training=more)


def with_qualification_test(
    protocol: Protocol, exercises: Sequence[Exercise], share: float, precision: float, version: str = ""
) -> Protocol:
    """The protocol whose test is to find the errors of these texts: so large a `share` of them, which is `pass_at`.

    Marks count by their place, whatever the label; at least the share `precision` of them has to be right.
    """
    empty = [exercise.name for exercise in exercises if not exercise.solutions]
    if empty:
        raise FinecombError(f"{empty[0]}: has no marks to find, so it is no test; choose a text with errors")
    part = QualificationPart(
        name="own-texts",
        title="Texts whose errors are known",
        intro=_qualification_intro(exercises, share, precision),
        points=round(_TOTAL_POINTS / len(exercises), 6),
        exercises=tuple(exercises),
        match="place",
    )
    pass_at = min(part.max_points, round(part.max_points * share, 6))
    return _revise_protocol(
        protocol, version, qualification=Qualification(parts=(part,), pass_at=pass_at, min_precision=precision or None)
    )


def _qualification_intro(exercises: Sequence[Exercise], share: float, precision: float) -> str:
    texts = "a text" if len(exercises) == 1 else f"{len(exercises)} texts"
    lines = [f"Mark all errors of {texts}, as you would in the study. You pass with {share:.0%} of the points."]
    lines += ["A mark counts when it overlaps an error, whatever type you gave it."]
    lines += [f"At least {precision:.0%} of your marks have to be right."] if precision else []
    return " ".join([*lines, "The solution is shown afterwards."])


def _revise_protocol(protocol: Protocol, version: str, **fields: object) -> Protocol:
    changed = protocol.model_dump() | {"version": version or _next_own_version(protocol.version)} | fields
    return Protocol.model_validate(changed)


def _next_own_version(version: str) -> str:
    """A version of one's own: `2` becomes `2-own`, then `2-own-2`.

    >>> _next_own_version("2"), _next_own_version("2-own"), _next_own_version("2-own-2")
    ('2-own', '2-own-2', '2-own-3')
    """
    stem, mark, number = version.partition("-own")
    return f"{stem}-own" if not mark else f"{stem}-own-{int(number.removeprefix('-') or 1) + 1}"


def solvability_warnings(protocol: Protocol, exercises: Sequence[Exercise]) -> Iterator[str]:
    """What annotators could not see or mark in an exercise, in words."""
    for exercise in exercises:
        hidden = [solution for solution in exercise.solutions if solution.part != TEXT]
        if hidden and protocol.work.context == "hidden":
            yield f"{exercise.name}: {len(hidden)} marks stand in contexts that the protocol hides"
