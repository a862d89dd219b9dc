"""Options of agreement measures: common options, options per type of source, and options of individual measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from finecomb.core.options import option_field
from finecomb.engine.partitions import Executor, ProgressWatcher
from finecomb.statistics.agreement import pairwise
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.minimal_repairs import RepairMode
from finecomb.statistics.inference.intervals import IntervalMethod

AgreementLevel = Literal["token", "char", "sentence", "segment", "document", "item"]
Boundaries = Literal["marked", "union"]
_DEFAULT_GAMMA = GammaSettings()


@dataclass(frozen=True)
class CommonAgreementOptions:
    """Options shared by all agreement measures."""

    level: AgreementLevel = option_field("token")
    by: tuple[str, ...] = option_field((), commas=True)
    question: str = option_field("")
    boundaries: Boundaries = option_field("marked")
    cluster: str = option_field("")
    interval: IntervalMethod = option_field("auto")
    draws: int = option_field(1000, minimum=0)
    seed: int = option_field(0)


@dataclass(frozen=True)
class UnitMarkOptions:
    """Options of measures that compare marks on units of text."""

    tokens: str = option_field("words")


@dataclass(frozen=True)
class AlignmentOptions:
    """Options of measures that compare answers about aligned marks."""

    align: str = option_field("item")


@dataclass(frozen=True)
class ItemOptions(AlignmentOptions):
    """Options of measures that compare the labels of aligned marks."""

    convention: str = option_field("marked")
    repairs: RepairMode = option_field("declared")


@dataclass(frozen=True)
class OverlapF1Options:
    """Options of overlap F1."""

    overlap: pairwise.OverlapMode = option_field("add")


@dataclass(frozen=True)
class OneVsRestOptions:
    """Options of the one-vs-rest measures."""

    rest: pairwise.RestMode = option_field("union")


@dataclass(frozen=True)
class GammaOptions:
    """Options of gamma."""

    settings: tuple[str, ...] = option_field((), "--gamma")


@dataclass(frozen=True)
class AgreeOptions(OneVsRestOptions, OverlapF1Options, ItemOptions, UnitMarkOptions, CommonAgreementOptions):
    """All options of agreement measures; those that affect the result are part of the signature."""

    by_label: bool = True
    """True to add one row per label to the row `any`."""
    gamma: GammaSettings = _DEFAULT_GAMMA
    """Gamma settings: dissimilarities, chance samples and limits."""
    spread: Executor | None = None
    """Executor that computes gamma per text (default: in this process). It does not affect the result."""
    watch: ProgressWatcher | None = None
    """Callback that receives the number of texts for which gamma is finished, e.g. for a progress bar."""


ALLOWED_OPTION_VALUES: dict[str, tuple[str, ...]] = {
    "level": get_args(AgreementLevel),
    "overlap": get_args(pairwise.OverlapMode),
    "boundaries": get_args(Boundaries),
    "rest": get_args(pairwise.RestMode),
    "repairs": get_args(RepairMode),
    "interval": get_args(IntervalMethod),
}
