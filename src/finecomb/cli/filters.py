"""The options by which every statistic chooses what it reads, written once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from finecomb.core.errors import FinecombError
from finecomb.statistics.selection.view import Filters
from finecomb.statistics.selection.view import Rounds as WhichRounds

WHERE_HELP = (
    "Only what fits: model=gpt2, or a condition such as 'model == \"human\" or top_p >= 0.9' on texts, annotators, "
    "annotations or marks; may be repeated."
)
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
        help=WHERE_HELP,
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
Draws = Annotated[int, typer.Option(min=0, help="Resamples behind each interval.")]
Seed = Annotated[int, typer.Option(help="Same seed, same intervals.")]


def build_filters(
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
    """Filters from the options of a command."""
    return Filters(
        protocol=protocol,
        labels=tuple(labels or ()),
        drop=tuple(drop or ()),
        where=tuple(where or ()),
        annotators=tuple(annotators or ()),
        kinds=tuple(kinds or ()),
        rounds=rounds,
        back_off=back_off,
        merge=tuple((new, tuple(old.split("+"))) for new, old in (parse_pair("--merge", text) for text in merge or ())),
    )


def parse_pair(option: str, text: str) -> tuple[str, str]:
    """NAME=VALUE taken apart."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise FinecombError(f"{option} {text}: expected NAME=VALUE, e.g. {option} model=gpt2")
    return name, value


def split_names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]
