"""Duplicate marks: marks of one annotation with the same spans and label, which are one mark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from finecomb.core.records import Annotation, Mark

DUPLICATES_KEY = "duplicates"
"""Key in the `meta` of a mark: number of further marks that were merged into it."""
MERGED_KEY = "merged"
"""Key in the `meta` of a mark: those of them that had other answers, as JSON."""


def mark_identity(mark: Mark) -> tuple[object, ...]:
    """Return the spans and label of a mark; marks that are not located also need the same quotes.

    A source that numbers its errors (`item`) says which marks are different ones.
    """
    return mark.spans, mark.label, mark.item, () if mark.spans else (mark.quotes, mark.id if not mark.quotes else "")


def merge_duplicate_marks(annotation: Annotation) -> tuple[Annotation, int]:
    """Merge marks with the same spans and label into the first of them, and return the number of merged marks.

    Answers that the first mark lacks are taken from the others. Marks of several annotators in one pooled annotation
    are not duplicates.
    """
    if len(annotation.marks) < 2 or annotation.readers is not None:
        return annotation, 0
    marks, count = merge_marks(annotation.marks)
    return (annotation.model_copy(update={"marks": marks}), count) if count else (annotation, 0)


def merge_marks(marks: Iterable[Mark]) -> tuple[tuple[Mark, ...], int]:
    """Merge marks of one annotation with the same spans and label, and return the number of merged marks."""
    groups: dict[tuple[object, ...], list[Mark]] = {}
    count = 0
    for mark in marks:
        group = groups.setdefault(mark_identity(mark), [])
        count += bool(group)
        group.append(mark)
    return tuple(_merge(group) if len(group) > 1 else group[0] for group in groups.values()), count


def _merge(group: list[Mark]) -> Mark:
    first, others = group[0], group[1:]
    answers: dict[str, Any] = {}
    for mark in reversed(group):
        answers |= mark.answers
    bodies = [mark.model_dump(mode="json", exclude_defaults=True, exclude={"id"}) for mark in others]
    own = first.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    differing = [body for body in bodies if body != own]
    meta = {**first.meta, DUPLICATES_KEY: len(others), **({MERGED_KEY: differing} if differing else {})}
    antecedents = first.antecedents or next((mark.antecedents for mark in others if mark.antecedents), None)
    return first.model_copy(update={"answers": answers, "meta": meta, "antecedents": antecedents})
