"""Options of measures of agreement: those of all, those of each type of source, and those of some measures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.options import option
from finecomb.engine.partitions import Executor
from finecomb.statistics.agreement import pairwise
from finecomb.statistics.agreement.gamma import pooled_gamma as gammas
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.minimal_repairs import Repairs

AgreementLevel = Literal["token", "char", "sentence", "segment", "document", "item"]
Boundaries = Literal["marked", "union"]


@dataclass(frozen=True)
class CommonAgreementOptions:
    """Options that every measure of agreement has."""

    level: AgreementLevel = option("token", "What is rated: units of the text, or `item`: marks that belong together.")
    by: tuple[str, ...] = option((), "Document meta or annotator fields, with commas.", commas=True)
    question: str = option("", "Agreement on the answers to this question.")
    boundaries: Boundaries = option("marked", "Spans as marked, or widened to the union of those that overlap.")
    draws: int = option(1000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


@dataclass(frozen=True)
class UnitMarkOptions:
    """Options of marks on the units of texts."""

    tokens: str = option("words", "words, whitespace, or spacy:NAME.")


@dataclass(frozen=True)
class AlignmentOptions:
    """Options of answers about marks that belong together."""

    align: str = option("item", "For items: by source `item`, by `overlap`, or by `gamma`.")


@dataclass(frozen=True)
class ItemOptions(AlignmentOptions):
    """Options of marks that belong together."""

    convention: str = option("marked", "For items: which ratings count; see the docs on kappa.")
    repairs: Repairs = option(
        "declared", "For items: one error in two readings as marks declare, or also smallest: one name or two numbers."
    )


@dataclass(frozen=True)
class OverlapF1Options:
    """Options of F1."""

    overlap: pairwise.Overlap = option("add", "For f1: overlapping marks add up, or count once.")


@dataclass(frozen=True)
class OneVsRestOptions:
    """Options of one annotator against the rest."""

    rest: pairwise.RestMode = option(
        "union", "For one-vs-rest: one of the others is enough, or more than half are needed."
    )


@dataclass(frozen=True)
class GammaOptions:
    """Options of gamma."""

    settings: tuple[str, ...] = option(
        (), "For gamma: NAME=VALUE, e.g. sampler=statistical or precision=0.02; may be repeated.", "--gamma"
    )


@dataclass(frozen=True)
class AgreeOptions(OneVsRestOptions, OverlapF1Options, ItemOptions, UnitMarkOptions, CommonAgreementOptions):
    """All options of agreement as values; each that matters goes into the signature."""

    by_label: bool = True
    """One row for each label beside `any`."""
    gamma: GammaSettings = field(default_factory=GammaSettings)
    """For gamma: dissimilarities, samples of chance, and limits."""
    spread: Executor | None = None
    """For gamma: who works on texts, this process where there is none, and where those done are; changes no number."""
    watch: gammas.ProgressWatcher | None = None
    """For gamma: sees texts as they are done, e.g. to show progress; changes no number."""

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise FinecombError(f"{name} cannot be {value!r}{did_you_mean(value, allowed)}")


CHOICES: dict[str, tuple[str, ...]] = {
    "level": get_args(AgreementLevel),
    "overlap": get_args(pairwise.Overlap),
    "boundaries": get_args(Boundaries),
    "rest": get_args(pairwise.RestMode),
    "repairs": get_args(Repairs),
}
