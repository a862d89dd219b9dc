"""The options by which every statistic chooses what it reads, written once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from finecomb.core.errors import FinecombError
from finecomb.measure.view import Filters
from finecomb.measure.view import Rounds as WhichRounds

Protocol = Annotated[str, typer.Option("--protocol", "-p", help="Which of the study's protocols.", show_default=False)]
Labels = Annotated[
    list[str] | None, typer.Option("--label", help="Only this label or group; may be repeated.", show_default=False)
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop", help="Leave out a label or group, or one severity of it: grammar-usage:1.", show_default=False
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="NAME=VALUE of document meta or an annotator's field; several values of a name may be given.",
        show_default=False,
    ),
]
Annotators = Annotated[
    list[str] | None,
    typer.Option("--annotator", "-a", help="Only this annotator; may be repeated.", show_default=False),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        help="Only annotators of this kind; without it everybody but gold, unless there is only gold.",
        show_default=False,
    ),
]
Rounds = Annotated[
    WhichRounds, typer.Option(help="Which passes of one annotator over a text count; all: each as one more annotation.")
]
BackOff = Annotated[
    Literal["label", "group", "any"], typer.Option("--back-off", help="Labels as they are, as groups, or all as one.")
]
Merge = Annotated[
    list[str] | None,
    typer.Option("--merge", help="NEW=A+B: labels taken together under a new name.", show_default=False),
]
By = Annotated[str, typer.Option("--by", help="Document meta or annotator fields, with commas.", show_default=False)]
Tokens = Annotated[str, typer.Option(help="words, whitespace, or spacy:NAME.")]
Draws = Annotated[int, typer.Option(min=0, help="Resamples behind each interval.")]
Seed = Annotated[int, typer.Option(help="Same seed, same intervals.")]


def filters(
    protocol: str = "",
    labels: list[str] | None = None,
    drop: list[str] | None = None,
    where: list[str] | None = None,
    annotators: list[str] | None = None,
    kinds: list[str] | None = None,
    rounds: WhichRounds = "first",
    back_off: Literal["label", "group", "any"] = "label",
    merge: list[str] | None = None,
) -> Filters:
    """What the options say, as a value."""
    return Filters(
        protocol=protocol,
        labels=tuple(labels or ()),
        drop=tuple(drop or ()),
        where=tuple(pair("--where", each) for each in where or ()),
        annotators=tuple(annotators or ()),
        kinds=tuple(kinds or ()),
        rounds=rounds,
        back_off=back_off,
        merge=tuple((new, tuple(old.split("+"))) for new, old in (pair("--merge", each) for each in merge or ())),
    )


def pair(option: str, text: str) -> tuple[str, str]:
    """NAME=VALUE taken apart."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise FinecombError(f"{option} {text}: expected NAME=VALUE, e.g. {option} model=gpt2")
    return name, value


def names(text: str) -> list[str]:
    """Names with commas between them."""
    return [each.strip() for each in text.split(",") if each.strip()]
