"""Conformance checks of detectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finecomb.annotators.detectors.base import detect
from finecomb.annotators.detectors.study_detection import prepare_detector
from finecomb.core.records import Document
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from finecomb.testing.formats import SAMPLE_TEXTS


def check_detector(name: str, documents: Sequence[Document] = (), **options: Any) -> None:
    """Check a detector: valid marks, offsets in code points, repeatability, and texts without the data it needs.

    Parameters
    ----------
    name : str
        Name of the detector.
    documents : sequence of Document
        Texts to annotate in addition to an empty text and texts with characters outside the Basic Multilingual Plane.
    **options
        Options of the detector, such as `weights`.

    Raises
    ------
    AssertionError
        If the detector raises an error for a text, makes a mark that does not fit the text or the protocol, or
        annotates the same text differently a second time.

    Examples
    --------
    >>> check_detector("rules")
    """
    texts = [
        Document(id="empty", text=""),
        *(Document(id=f"sample-{number}", text=text) for number, text in enumerate(SAMPLE_TEXTS)),
        *documents,
    ]
    prepared = prepare_detector(name, options, {})
    assert prepared.program.signature, f"detector {name}: the signature is empty"
    try:
        annotations = list(detect(texts, prepared.program))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise AssertionError(
            f"detector {name}: a problem with a text must not raise an error, found {reason}"
        ) from error
    found = [annotation.document for annotation in annotations]
    expected = [text.id for text in texts]
    assert found == expected, f"detector {name}: expected annotations of {expected}, found {found}"
    study = Study.from_items([prepared.protocol, *texts, prepared.annotator, *annotations])
    problems = [str(problem) for problem in check_study(study) if problem.level == "error"]
    assert not problems, f"detector {name}: {problems[0]}"
    again = [prepared.program(text) for text in texts]
    for first, second in zip(annotations, again, strict=True):
        assert first.marks == second.marks, (
            f"detector {name}: text {first.document!r} has different marks when it is annotated again"
        )
