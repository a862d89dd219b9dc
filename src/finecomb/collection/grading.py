"""Grading of qualification attempts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from finecomb.collection import onboarding
from finecomb.core.practice import Choice
from finecomb.core.protocol import Protocol
from finecomb.core.qualification import QualificationAnswers, QualificationGrade, grade_qualification
from finecomb.core.records import Annotation, Annotator, Attempt, QualificationRecord


def grade_attempt(protocol: Protocol, annotations: Mapping[str, Annotation]) -> QualificationGrade:
    """Grade a qualification attempt from its annotations by document. Excluded annotations count as unanswered."""
    answers: QualificationAnswers = {
        item.given.name: annotation.answers.get("answer", "") if isinstance(item.given, Choice) else annotation.marks
        for id, item in onboarding.practice_items_by_document(protocol).items()
        if (annotation := annotations.get(id)) is not None and annotation.excluded is None
    }
    return grade_qualification(protocol, answers)


def is_attempt_complete(protocol: Protocol, annotations: Mapping[str, Annotation]) -> bool:
    """Return whether every item of a qualification attempt was submitted or excluded."""
    tested = [
        id for id, item in onboarding.practice_items_by_document(protocol).items() if item.phase == "qualification"
    ]
    return all(
        id in annotations and (annotations[id].status != "draft" or annotations[id].excluded is not None)
        for id in tested
    )


def with_graded_attempt(
    protocol: Protocol, annotator: Annotator, result: QualificationGrade, round: int, when: datetime
) -> Annotator:
    """Return a copy of the annotator with a newly graded attempt. Results for other protocols are kept."""
    before = onboarding.find_qualification_record(protocol, annotator)
    earlier = [attempt for attempt in before.attempts if attempt.round != round] if before else []
    attempts = (*earlier, Attempt(round=round, score=result.score, parts=result.parts, when=when))
    qualification = QualificationRecord(
        protocol=protocol.id,
        score=max(attempt.score for attempt in attempts),
        passed=result.passed or (before is not None and before.passed),
        attempts=attempts,
    )
    return onboarding.with_qualification_record(annotator, qualification)
