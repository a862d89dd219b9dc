"""Before the work, as annotators see it: pages, exercises, what was found and missed, and how the test went."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from finecomb.collection import onboarding
from finecomb.collection.onboarding import PracticeItem, Step
from finecomb.collection.practice_rounds import annotator_practice_rounds, example_without_answer, practised_condition
from finecomb.core.practice import Choice, Example, Exercise, QualificationPart, Solution, locate_quote
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import Grade, GradedItem, grade_choice, grade_exercise
from finecomb.core.records import Annotation, Annotator, Answer, Answers, Settings
from finecomb.core.scales import is_among
from finecomb.core.span import TEXT, Span
from finecomb.server.annotators.schema import (
    Feedback,
    ItemResult,
    Page,
    PartResult,
    Practice,
    QualificationResult,
    SolutionResult,
)

# --- pages -------------------------------------------------------------------------------------------------------


def build_step_page(
    step: Step,
    protocol: Protocol,
    settings: Settings,
    annotator: Annotator,
    result: QualificationResult | None = None,
) -> Page:
    """A step of the way as it goes to the browser."""
    more: dict[str, object]
    match step.kind:
        case "survey":
            more = {
                "title": "About you",
                "questions": protocol.survey,
                "answers": _previous_survey_answers(protocol, annotator),
            }
        case "instructions":
            more = {"title": protocol.title, "say": protocol.instructions}
        case "examples":
            more = _condition_page_fields(step, protocol, settings, annotator)
        case "intro":
            more = _intro_page_fields(protocol, step.part)
        case "label":
            more = _label_page_fields(protocol, step.label)
        case "result":
            more = {"result": result}
    return Page.model_validate({"step": step.id, "kind": step.kind, "phase": step.phase, **more})


def _condition_page_fields(
    step: Step, protocol: Protocol, settings: Settings, annotator: Annotator
) -> dict[str, object]:
    """A page of somebody's condition. The answer of a practice round leaves the server after the guess only."""
    condition = practised_condition(protocol, settings, annotator)
    say = condition.instructions if condition and step.number <= 1 else ""
    if not step.number:
        return {"say": say}
    examples = annotator_practice_rounds(condition, annotator)[step.number - 1]
    record = onboarding.find_step_record(protocol, annotator, step.id)
    is_open = record is not None and record.guessed is not None
    shown = examples if is_open else tuple(example_without_answer(example) for example in examples)
    guess = record.guess if record else None
    return {"say": say, "examples": shown, "number": step.number, "of": step.of, "guess": guess, "is_open": is_open}


def _previous_survey_answers(protocol: Protocol, annotator: Annotator) -> Answers:
    """What was said before, as far as it still answers what is asked."""
    before = annotator.survey
    return {
        question.name: before[question.name]
        for question in protocol.survey
        if question.name in before and not question.problem(before[question.name])
    }


def _intro_page_fields(protocol: Protocol, part: QualificationPart | None) -> dict[str, object]:
    if part is not None:
        return {"title": _part_title(part), "say": part.intro}
    return {"title": "Practice", "say": protocol.training.intro if protocol.training else ""}


def _label_page_fields(protocol: Protocol, name: str) -> dict[str, object]:
    """What a label means, with its rules and examples, as Markdown."""
    label = protocol.find_label(name)
    assert label is not None
    rules = "\n".join(f"- {rule}" for rule in label.rules)
    examples = "\n\n".join(_example_markdown(example) for example in label.examples)
    parts = (label.gloss, rules, "### Examples" if examples else "", examples)
    return {"title": label.display_title, "say": "\n\n".join(part for part in parts if part)}


def _example_markdown(example: Example) -> str:
    """An example whose marked words are bold, and below it why they are marked."""
    text, spans = example.text, {mark.span(example.text, example.context) for mark in example.marks}
    for span in sorted((span for span in spans if span.part == TEXT and span.start < span.end), reverse=True):
        text = f"{text[: span.start]}**{text[span.start : span.end]}**{text[span.end :]}"
    context = [f"> *{name}*: {words}\n>" for name, words in example.context.items()]
    reasons = [reason for reason in (*(mark.why for mark in example.marks), example.why) if reason]
    return "\n".join([*context, f"> {text}"]) + "\n\n" + " ".join(reasons)


def build_practice(item: PracticeItem, protocol: Protocol) -> Practice:
    """What makes a task an exercise or a multiple-choice question."""
    exercise = item.given
    return Practice(
        part=_part_title(item.part),
        ask=exercise.ask,
        label=None if isinstance(exercise, Choice) else exercise.label,
        number=item.number,
        of=item.of,
        points=item.part.points if item.part else 0,
        question=exercise.question if isinstance(exercise, Choice) else None,
        spans=(locate_quote(exercise.quote, exercise.text),) if isinstance(exercise, Choice) and exercise.quote else (),
        verify=protocol.work.verify and item.phase == "training",
    )


# --- feedback ----------------------------------------------------------------------------------------------------


def build_feedback(item: PracticeItem, annotation: Annotation, protocol: Protocol) -> Feedback:
    """How an exercise or a question went, with its solution."""
    if isinstance(item.given, Choice):
        return _choice_feedback(item.given, annotation, item.part)
    return _exercise_feedback(item.given, item.part, annotation, protocol)


def _choice_feedback(choice: Choice, annotation: Annotation, part: QualificationPart | None) -> Feedback:
    answer = annotation.answers.get("answer")
    graded = grade_choice(choice, answer, part.points if part else 0)
    return Feedback(
        points=graded.points,
        of=graded.of,
        answers={"answer": choice.answer},
        right=is_among(answer, (choice.answer,)),
        say=choice.feedback,
    )


def _exercise_feedback(
    exercise: Exercise, part: QualificationPart | None, annotation: Annotation, protocol: Protocol
) -> Feedback:
    graded = grade_exercise(exercise, annotation.marks, part)
    document = protocol.practice_documents[annotation.document]
    units = {f"{s.start}-{s.end}": right for s, right in zip(document.segments, exercise.units, strict=False)}
    unit_answers = {f"{unit.start}-{unit.end}": unit.answers for unit in annotation.units}
    agrees = _has_matching_answers(annotation.answers, exercise.answers) and all(
        _has_matching_answers(unit_answers.get(id, {}), right) for id, right in units.items()
    )
    return Feedback(
        points=graded.points,
        of=graded.of,
        solutions=_solution_results(exercise, graded),
        extra=graded.extra,
        answers=exercise.answers,
        units=units,
        right=agrees and not graded.missed,
        say="\n\n".join(text for text in (_comparison_sentence(graded, protocol, part), exercise.feedback) if text),
    )


def _has_matching_answers(answers: Answers, right: Answers) -> bool:
    return all(
        is_among(_unordered_answer(answers.get(name)), (_unordered_answer(answer),)) for name, answer in right.items()
    )


def _unordered_answer(answer: Answer | None) -> Answer | frozenset[str] | None:
    """Several choices agree in any order."""
    return frozenset(answer) if isinstance(answer, tuple | list) else answer


def _solution_results(exercise: Exercise, graded: GradedItem) -> tuple[SolutionResult, ...]:
    """The known errors in text order, each with the mark that found it."""
    marks_of = {solution: (mark, points) for (solution, mark), points in zip(graded.found, graded.each, strict=True)}
    solutions = [
        (span, _solution_result(solution, span, *marks_of.get(index, (None, 0.0))))
        for index, (solution, span) in enumerate(zip(exercise.solutions, exercise.spans(), strict=True))
    ]
    return tuple(solved for _, solved in sorted(solutions, key=lambda pair: pair[0]))


def _solution_result(solution: Solution, span: Span, mark: str | None, points: float) -> SolutionResult:
    return SolutionResult(
        spans=(span,),
        quotes=(solution.quote,),
        label=solution.label,
        answers=solution.answers,
        antecedent=solution.antecedent,
        why=solution.why,
        mark=mark,
        points=points,
    )


def _comparison_sentence(graded: GradedItem, protocol: Protocol, part: QualificationPart | None) -> str:
    """The comparison in words, where the qualification's feedback is written; the reasons stand with the solutions."""
    if part is None or protocol.qualification is None or protocol.qualification.feedback != "written":
        return ""
    hits, missed, extra = len(graded.found), len(graded.missed), len(graded.extra)
    sentence = f"You found {hits} of the {hits + missed} errors that experts marked here."
    if not extra:
        return sentence
    return (
        f"{sentence} {extra} of your marks {'is' if extra == 1 else 'are'} at none of these places or of another kind."
    )


# --- the result --------------------------------------------------------------------------------------------------


def build_qualification_result(
    protocol: Protocol, grade: Grade, done: Mapping[str, Annotation], round: int
) -> QualificationResult:
    """How an attempt at the qualification went."""
    test = protocol.qualification
    assert test is not None
    by_name = {item.name: item for item in grade.items}
    items = [
        item
        for item in onboarding.practice_items_by_document(protocol, round).values()
        if item.phase == "qualification"
    ]
    return QualificationResult(
        passed=grade.passed,
        score=grade.score,
        of=grade.of,
        needed=test.pass_at,
        precision=None if math.isnan(grade.precision) else grade.precision,
        precision_needed=test.min_precision,
        parts=tuple(
            PartResult(
                title=_part_title(part),
                count=len(part.exercises) + len(part.choices),
                points=_round_points(grade.parts[part.name]),
                of=part.max_points,
                each=part.points,
                lose=None if part.choices else _round_points(_points_per_missed_error(part)),
            )
            for part in test.parts
        ),
        items=tuple(_item_result(item, by_name[item.given.name], done[item.document].id, protocol) for item in items),
        attempt=round + 1,
        attempts=test.attempts,
    )


def _item_result(item: PracticeItem, graded: GradedItem, task: str, protocol: Protocol) -> ItemResult:
    label = protocol.find_label(item.given.label) if isinstance(item.given, Exercise) else None
    alone = _part_title(item.part) if item.of == 1 else f"{_part_title(item.part)} {item.number}"
    return ItemResult(
        task=task,
        title=label.display_title if label else alone,
        points=_round_points(graded.points),
        of=graded.of,
        chosen=isinstance(item.given, Choice),
        kinds=tuple(_missed_labels(item.given, graded, protocol)),
    )


def _missed_labels(given: Exercise | Choice, graded: GradedItem, protocol: Protocol) -> Iterator[str]:
    """The labels of what was missed: those to read about again."""
    if graded.points >= graded.of:
        return
    known = [given.answer] if isinstance(given, Choice) else [given.solutions[at].label for at in graded.missed]
    yield from (label.name for label in protocol.labels if label.name in known)


def _points_per_missed_error(part: QualificationPart) -> float:
    """What an error that was not found costs, at the most."""
    return part.lose or part.points / (part.needed or min(len(exercise.solutions) for exercise in part.exercises))


def _part_title(part: QualificationPart | None) -> str:
    return (part.title or part.name) if part else ""


def _round_points(points: float) -> float:
    """Sevenths of 50 add up to 50."""
    return round(points, 9)
