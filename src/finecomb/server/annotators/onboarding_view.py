"""Onboarding pages as annotators see them: instructions, exercises, feedback and the qualification result."""

from __future__ import annotations

import math
from collections.abc import Mapping

from finecomb.collection import onboarding
from finecomb.collection.onboarding import PracticeItem, Step
from finecomb.collection.practice_rounds import annotator_practice_rounds, example_without_answer, practised_condition
from finecomb.core.practice import Choice, Example, Exercise, QualificationPart, locate_nth_quote
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import GradedItem, QualificationGrade, grade_choice, grade_exercise
from finecomb.core.records import Annotation, Annotator, Answer, Answers, Settings
from finecomb.core.scales import is_among
from finecomb.core.span import TEXT_PART
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
    """Build the page of an onboarding step for the browser."""
    more: dict[str, object]
    match step.kind:
        case "survey":
            before = annotator.survey
            more = {
                "title": "About you",
                "questions": protocol.survey,
                "answers": {
                    question.name: before[question.name]
                    for question in protocol.survey
                    if question.name in before and not question.answer_problem(before[question.name])
                },
            }
        case "instructions":
            more = {"title": protocol.title, "say": protocol.instructions}
        case "examples":
            more = _condition_page_fields(step, protocol, settings, annotator)
        case "intro":
            if step.part is not None:
                more = {"title": _part_title(step.part), "say": step.part.intro}
            else:
                more = {"title": "Practice", "say": protocol.training.intro if protocol.training else ""}
        case "label":
            # Page of a label with its meaning, rules and examples, as Markdown
            label = protocol.find_label(step.label)
            assert label is not None
            rules = "\n".join(f"- {rule}" for rule in label.rules)
            examples = "\n\n".join(_example_markdown(example) for example in label.examples)
            parts = (label.gloss, rules, "### Examples" if examples else "", examples)
            more = {"title": label.display_title, "say": "\n\n".join(part for part in parts if part)}
        case "result":
            more = {"result": result}
    return Page.model_validate({"step": step.id, "kind": step.kind, "phase": step.phase, **more})


def _condition_page_fields(
    step: Step, protocol: Protocol, settings: Settings, annotator: Annotator
) -> dict[str, object]:
    """Return the fields of a page for a condition. The solution of a practice round is sent only after the guess."""
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


def _example_markdown(example: Example) -> str:
    """Return an example as Markdown, with marked words in bold and the reasons below."""
    text, spans = example.text, {mark.locate(example.text, example.context) for mark in example.marks}
    for span in sorted((span for span in spans if span.part == TEXT_PART and span.start < span.end), reverse=True):
        text = f"{text[: span.start]}**{text[span.start : span.end]}**{text[span.end :]}"
    context = [f"> *{name}*: {words}\n>" for name, words in example.context.items()]
    reasons = [reason for reason in (*(mark.why for mark in example.marks), example.why) if reason]
    return "\n".join([*context, f"> {text}"]) + "\n\n" + " ".join(reasons)


def build_practice(item: PracticeItem, protocol: Protocol) -> Practice:
    """Build the practice fields of a task: the exercise or multiple-choice question."""
    exercise = item.given
    return Practice(
        part=_part_title(item.part),
        ask=exercise.ask,
        label=None if isinstance(exercise, Choice) else exercise.label,
        number=item.number,
        of=item.of,
        points=item.part.points if item.part else 0,
        question=exercise.question if isinstance(exercise, Choice) else None,
        spans=(locate_nth_quote(exercise.quote, exercise.text),)
        if isinstance(exercise, Choice) and exercise.quote
        else (),
        verify=protocol.work.verify and item.phase == "training",
    )


# --- feedback ----------------------------------------------------------------------------------------------------


def build_feedback(item: PracticeItem, annotation: Annotation, protocol: Protocol) -> Feedback:
    """Build the feedback on an exercise or question, with its solution."""
    if isinstance(item.given, Choice):
        answer = annotation.answers.get("answer")
        graded = grade_choice(item.given, answer, item.part.points if item.part else 0)
        return Feedback(
            points=graded.points,
            of=graded.of,
            answers={"answer": item.given.answer},
            right=is_among(answer, (item.given.answer,)),
            say=item.given.feedback,
        )
    return _exercise_feedback(item.given, item.part, annotation, protocol)


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
    marks_of = {solution: (mark, points) for (solution, mark), points in zip(graded.found, graded.each, strict=True)}
    solutions = []
    for index, (solution, span) in enumerate(zip(exercise.solutions, exercise.solution_spans(), strict=True)):
        mark, points = marks_of.get(index, (None, 0.0))
        fields = {name: getattr(solution, name) for name in ("label", "answers", "antecedent", "why")}
        result = SolutionResult(spans=(span,), quotes=(solution.quote,), mark=mark, points=points, **fields)
        solutions.append((span, result))
    comparison = ""
    if part is not None and protocol.qualification is not None and protocol.qualification.feedback == "written":
        hits, extra = len(graded.found), len(graded.extra)
        comparison = f"You found {hits} of the {hits + len(graded.missed)} errors that experts marked."
        if extra:
            comparison += f" {extra} of your marks {'does' if extra == 1 else 'do'} not match any of them."
    return Feedback(
        points=graded.points,
        of=graded.of,
        solutions=tuple(solved for _, solved in sorted(solutions, key=lambda pair: pair[0])),
        extra=graded.extra,
        answers=exercise.answers,
        units=units,
        right=agrees and not graded.missed,
        say="\n\n".join(text for text in (comparison, exercise.feedback) if text),
    )


def _has_matching_answers(answers: Answers, right: Answers) -> bool:
    return all(
        is_among(_unordered_answer(answers.get(name)), (_unordered_answer(answer),)) for name, answer in right.items()
    )


def _unordered_answer(answer: Answer | None) -> Answer | frozenset[str] | None:
    """Return an answer in a form that ignores the order of multiple choices."""
    return frozenset(answer) if isinstance(answer, tuple | list) else answer


# --- qualification result ----------------------------------------------------------------------------------------


def build_qualification_result(
    protocol: Protocol, grade: QualificationGrade, done: Mapping[str, Annotation], round: int
) -> QualificationResult:
    """Build the result of a qualification attempt."""
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
                lose=None
                if part.choices
                else _round_points(
                    part.lose
                    or part.points / (part.needed or min(len(exercise.solutions) for exercise in part.exercises))
                ),
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
    missed: list[Answer | None] = []
    if graded.points < graded.of:
        given = item.given
        missed = (
            [given.answer] if isinstance(given, Choice) else [given.solutions[index].label for index in graded.missed]
        )
    return ItemResult(
        task=task,
        title=label.display_title if label else alone,
        points=_round_points(graded.points),
        of=graded.of,
        chosen=isinstance(item.given, Choice),
        kinds=tuple(label.name for label in protocol.labels if label.name in missed),
    )


def _part_title(part: QualificationPart | None) -> str:
    return (part.title or part.name) if part else ""


def _round_points(points: float) -> float:
    """Round points to remove floating-point errors, so that sevenths of 50 add up to 50."""
    return round(points, 9)
