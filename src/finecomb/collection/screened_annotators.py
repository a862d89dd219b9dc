"""Annotators who need review, with their suggested exclusions and screening signals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from finecomb.collection.arrivals import Arrival
from finecomb.collection.pay import text_count_by_annotator
from finecomb.collection.screening import ReviewSuggestion
from finecomb.collection.screening_signals import signals_by_annotator
from finecomb.core.study import Study


@dataclass(frozen=True, slots=True)
class PersonToReview:
    """Annotator whose work should be reviewed before it is counted."""

    annotator: str
    texts: int
    """Number of submitted texts."""
    suggested: int
    """Number of texts with a suggested exclusion on which no researcher has decided."""
    rules: tuple[str, ...]
    noticed: tuple[str, ...]
    """Screening signals about the annotator, as sentences."""


def people_to_review(
    study: Study, suggestions: Iterable[ReviewSuggestion], arrivals: Sequence[Arrival] = ()
) -> list[PersonToReview]:
    """Return annotators with a suggested exclusion or a strong signal, those with the most suggestions first."""
    waiting: dict[str, list[ReviewSuggestion]] = {}
    for suggestion in suggestions:
        if not suggestion.kept:
            waiting.setdefault(suggestion.annotator, []).append(suggestion)
    noticed = {
        id: tuple(sign.say for sign in signs if not sign.weak)
        for id, signs in signals_by_annotator(study, arrivals).items()
    }
    excluded = {person.id for person in study.iter_annotators() if person.excluded}
    people = []
    for id, count in text_count_by_annotator(study).items():
        if id not in excluded and (id in waiting or noticed.get(id)):
            mine = waiting.get(id, [])
            texts = {suggestion.annotation for suggestion in mine}
            rules = tuple(dict.fromkeys(suggestion.rule for suggestion in mine))
            people.append(PersonToReview(id, count, len(texts), rules, noticed.get(id, ())))
    return sorted(people, key=lambda person: (-person.suggested, person.annotator))
