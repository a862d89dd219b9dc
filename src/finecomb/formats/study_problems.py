"""All problems of a study, also of one that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from finecomb import formats
from finecomb.annotators.detectors.boxscore.game_record import box_score_problem
from finecomb.core.errors import Problem, StudyError
from finecomb.core.records import Document, Note
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check


@dataclass(frozen=True, slots=True)
class CheckedStudy:
    """The problems of a study, and what its reader had to say."""

    problems: list[Problem]
    notes: tuple[str, ...] = ()
    study: Study | None = None
    """None where it cannot be read."""


def check_path(path: Path, format: str = "", watch: formats.ProgressWrapper = iter) -> CheckedStudy:
    """Return the problems of a study in any format; where its records cannot be read, those of the reader."""
    try:
        items = list(watch(formats.stream(path, format)))
    except StudyError as error:
        return CheckedStudy(list(error.problems))
    return check_records(items, path)


def check_records(items: Iterable[StudyItem], path: Path | None = None) -> CheckedStudy:
    """Return the problems of records, with file and line where `path` is the study's folder."""
    items = list(items)
    notes = [item for item in items if isinstance(item, Note)]
    first = [Problem(note.text) for note in notes if note.is_error]
    if empty := [item.id for item in items if isinstance(item, Document) and is_empty(item)]:
        first.append(Problem(describe_empty_texts(empty), level="warning"))
    study = Study.from_items(items, str(path or ""))
    problems = check(study, [box_score_problem])
    if path is not None:
        problems = formats.locate_problems(problems, path)
    return CheckedStudy([*first, *problems], tuple(note.text for note in notes if not note.is_error), study)


def is_empty(document: Document) -> bool:
    """Return whether there is nothing to judge: a pair has its two texts as contexts and none of its own."""
    return not document.text.strip() and not {"a", "b"} <= document.context.keys()


def describe_empty_texts(ids: list[str]) -> str:
    """Return how many texts have no words, and the ids of the first.

    >>> describe_empty_texts(["a", "b"])
    '2 texts without words (a, b)'
    """
    listed = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
    return f"{len(ids):,} text{'' if len(ids) == 1 else 's'} without words ({listed})"
