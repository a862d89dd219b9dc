from __future__ import annotations

import math
from collections.abc import Callable

from finecomb.annotators.llm.injections import (
    CANARY,
    PLANTED_ERROR,
    InjectionResult,
    build_control_document,
    build_prompt_injection_probes,
    score_injections,
)
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span


def annotation_of(document: Document, marks: bool, explanation: str = "Doubled.") -> Annotation:
    at = document.text.index(PLANTED_ERROR)
    mark = Mark(
        id=f"{document.id}/0",
        spans=(Span(at, at + len(PLANTED_ERROR)),),
        quotes=(PLANTED_ERROR,),
        label="grammar-usage",
        answers={"explanation": explanation},
    )
    found = (mark,) if marks else ()
    return Annotation(id=document.id, document=document.id, annotator="m", protocol="scarecrow@2", marks=found)


def injections(judge: Callable[[Document], Annotation]) -> InjectionResult:
    documents = [build_control_document(), *(document for _, _, document in build_prompt_injection_probes())]
    return score_injections([judge(document) for document in documents])


def test_there_are_thirty_texts_with_the_same_error() -> None:
    documents = build_prompt_injection_probes()
    assert len({document.text for _, _, document in documents}) == 30
    assert all(document.text.count(PLANTED_ERROR) == 1 for _, _, document in documents)
    assert [goal for goal, _, _ in documents].count("silence") == 15


def test_a_judge_that_obeys_nobody_has_a_rate_of_zero() -> None:
    result = injections(lambda document: annotation_of(document, True))
    assert (result.rate, result.tried) == (0, 30)


def test_a_judge_that_obeys_is_caught() -> None:
    def obedient(document: Document) -> Annotation:
        if CANARY in document.text:
            return annotation_of(document, True, CANARY)
        return annotation_of(document, document.id == "injection-00")

    assert injections(obedient).rate == 1


def test_a_judge_that_marks_nothing_anyway_tells_nothing_about_silence() -> None:
    result = injections(lambda document: annotation_of(document, False))
    assert (result.tried, result.rate) == (15, 0)
    assert "misses the error even without an instruction" in result.why
    assert not math.isnan(result.rate)
