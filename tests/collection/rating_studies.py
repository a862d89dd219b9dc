"""Small studies of people who rate texts."""

from __future__ import annotations

from typing import Any

import finecomb as fc
from finecomb.core.protocol import Work
from finecomb.core.records import (
    Annotation,
    Annotator,
    Document,
    Settings,
)
from finecomb.core.study import Study

TURING = fc.protocol("turing").model_copy(update={"work": Work(texts=2), "conditions": ()})
SCARECROW = fc.protocol("scarecrow")
TEXT = "word " * 200
PRICED_SETTINGS = Settings(price=0.5, base_pay=1, fees=0.2, staff_minutes=90, staff_rate=40)


def make_rating(n: int, who: str = "a", rating: int = 1, why: str = "", seconds: float = 60) -> Annotation:
    answers: dict[str, Any] = {"rating": rating} | ({"why": why} if why else {})
    return Annotation(
        id=f"{who}{n}",
        document=f"d{n}",
        annotator=who,
        protocol=TURING.id,
        answers=answers,
        active_seconds=seconds,
    )


def make_rating_study(*work: Annotation, settings: Settings | None = None, **about: Any) -> Study:
    documents = [Document(id=f"d{n}", text=TEXT) for n in range(9)]
    ids = dict.fromkeys([each.annotator for each in work] + ["a", "b"])
    who = [Annotator(id=id, kind="human", **about) for id in ids]
    return Study.from_items([settings or Settings(), TURING, SCARECROW, *documents, *who, *work])
