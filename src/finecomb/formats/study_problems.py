"""Problems of a study, including those of a study that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from finecomb import formats
from finecomb.annotators.detectors.boxscore.game_record import box_score_warning
from finecomb.annotators.llm.run_folder import RUNS_FOLDER
from finecomb.annotators.llm.run_list import mixed_run_problems
from finecomb.core.errors import Problem, StudyError
from finecomb.core.records import Document, Note
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats.stored_differences import storage_problems


@dataclass(frozen=True, slots=True)
class CheckedStudy:
    """Problems of a study, and the notes of its importer."""

    problems: list[Problem]
    notes: tuple[str, ...] = ()
    study: Study | None = None
    """The study; None if it cannot be read."""


def check_study_path(path: Path, format: str = "", watch: formats.ProgressWrapper = iter) -> CheckedStudy:
    """Return the problems of a study in any format; if its records cannot be read, return the importer's problems."""
    try:
        items = list(watch(formats.stream_records(path, format)))
    except StudyError as error:
        return CheckedStudy(list(error.problems))
    checked = check_records(items, path)
    checked.problems.extend(storage_problems(path))
    if checked.study is not None:
        checked.problems.extend(mixed_run_problems(checked.study, path / RUNS_FOLDER))
    return checked


def check_records(items: Iterable[StudyItem], path: Path | None = None) -> CheckedStudy:
    """Return the problems of records, with file and line if `path` is the study's folder."""
    items = list(items)
    notes = [item for item in items if isinstance(item, Note)]
    first = [Problem(note.text) for note in notes if note.is_error]
    if empty := [item.id for item in items if isinstance(item, Document) and is_empty_document(item)]:
        first.append(Problem(describe_empty_texts(empty), level="warning"))
    study = Study.from_items(items, str(path or ""))
    problems = check_study(study, [box_score_warning])
    if path is not None:
        problems = formats.locate_problems(problems, path)
    return CheckedStudy([*first, *problems], tuple(note.text for note in notes if not note.is_error), study)


def is_empty_document(document: Document) -> bool:
    """Return True if a document has nothing to judge; a pair has no text of its own, but its two contexts count."""
    return not document.text.strip() and not {"a", "b"} <= document.context.keys()


def describe_empty_texts(ids: list[str]) -> str:
    """Describe how many texts have no words, with the IDs of the first.

    >>> describe_empty_texts(["a", "b"])
    '2 texts without words (a, b)'
    """
    listed = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
    return f"{len(ids):,} text{'' if len(ids) == 1 else 's'} without words ({listed})"
