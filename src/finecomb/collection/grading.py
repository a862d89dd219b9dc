"""Grading: how an attempt at the qualification went, and the annotator's record with its result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from finecomb.collection import onboarding
from finecomb.core.practice import Choice
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import Grade, QualificationAnswers, grade
from finecomb.core.records import Annotation, Annotator, Attempt, QualificationRecord


def attempt_grade(protocol: Protocol, annotations: Mapping[str, Annotation]) -> Grade:
    """The grade of an attempt, whose annotations are given by document; what was set aside counts as blank."""
    answers: QualificationAnswers = {
        item.given.name: annotation.answers.get("answer", "") if isinstance(item.given, Choice) else annotation.marks
        for id, item in onboarding.practice_items_by_document(protocol).items()
        if (annotation := annotations.get(id)) is not None and annotation.excluded is None
    }
    return grade(protocol, answers)


def is_attempt_complete(protocol: Protocol, annotations: Mapping[str, Annotation]) -> bool:
    """Whether every item of an attempt was handed in or set aside."""
    tested = [
        id for id, item in onboarding.practice_items_by_document(protocol).items() if item.phase == "qualification"
    ]
    return all(id in annotations and _is_submitted_or_excluded(annotations[id]) for id in tested)


def _is_submitted_or_excluded(annotation: Annotation) -> bool:
    return annotation.status != "draft" or annotation.excluded is not None


def with_graded_attempt(
    protocol: Protocol, annotator: Annotator, result: Grade, round: int, when: datetime
) -> Annotator:
    """The annotator with one more attempt; results under other protocols are kept beside it."""
    before = onboarding.qualification_result(protocol, annotator)
    earlier = [attempt for attempt in before.attempts if attempt.round != round] if before else []
    attempts = (*earlier, Attempt(round=round, score=result.score, parts=result.parts, when=when))
    qualification = QualificationRecord(
        protocol=protocol.id,
        score=max(attempt.score for attempt in attempts),
        passed=result.passed or (before is not None and before.passed),
        attempts=attempts,
    )
    return onboarding.with_qualification(annotator, qualification)
