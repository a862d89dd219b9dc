"""People whose work one might not want to count: how many of their texts are suggested, and what else is noticed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from finecomb.collection.arrivals import Arrival
from finecomb.collection.screening import ReviewSuggestion
from finecomb.collection.screening_signals import signals_by_annotator
from finecomb.core.study import Study


@dataclass(frozen=True, slots=True)
class PersonToReview:
    """Somebody to look at before their work is counted."""

    annotator: str
    texts: int
    """Handed in."""
    suggested: int
    """Texts for which a rule speaks that nobody has decided about yet."""
    rules: tuple[str, ...]
    noticed: tuple[str, ...]
    """What is noticed about the person, in words."""


def people_to_review(
    study: Study, suggestions: Iterable[ReviewSuggestion], arrivals: Sequence[Arrival] = ()
) -> list[PersonToReview]:
    """Everybody with a suggestion or with something noticed that is not weak, most suggested texts first."""
    waiting: dict[str, list[ReviewSuggestion]] = {}
    for suggestion in suggestions:
        if not suggestion.kept:
            waiting.setdefault(suggestion.annotator, []).append(suggestion)
    noticed = {
        id: tuple(sign.say for sign in signs if not sign.weak)
        for id, signs in signals_by_annotator(study, arrivals).items()
    }
    excluded = {person.id for person in study.iter_annotators() if person.excluded}
    texts = _text_count_by_annotator(study)
    people = [
        _build_person_to_review(id, texts.get(id, 0), waiting.get(id, []), noticed.get(id, ()))
        for id in texts
        if id not in excluded and (id in waiting or noticed.get(id))
    ]
    return sorted(people, key=lambda person: (-person.suggested, person.annotator))


def _build_person_to_review(
    id: str, texts: int, suggestions: Sequence[ReviewSuggestion], noticed: tuple[str, ...]
) -> PersonToReview:
    rules = tuple(dict.fromkeys(suggestion.rule for suggestion in suggestions))
    return PersonToReview(id, texts, len({suggestion.annotation for suggestion in suggestions}), rules, noticed)


def _text_count_by_annotator(study: Study) -> dict[str, int]:
    handed_in = study.annotations.filter((pl.col("phase") == "work") & (pl.col("status") != "draft"))
    return dict(handed_in.group_by("annotator", maintain_order=True).len().iter_rows())
