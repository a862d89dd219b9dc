"""Gamma, gamma-cat and gamma-k of one text: what was observed, and what chance would give."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.engine.seeds import seeded_generator
from finecomb.statistics.agreement.gamma.best_alignment import DEFAULT_WORK, MAX_MARKS, BestAlignment, best_alignment
from finecomb.statistics.agreement.gamma.chance_samplers import SAMPLERS
from finecomb.statistics.agreement.gamma.continuum import Continuum, Floats
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity
from finecomb.statistics.agreement.gamma.gamma_cat import category_disagreement_sums
from finecomb.statistics.inference.resampling import ratio_or_nan


@dataclass(frozen=True, slots=True)
class GammaSettings:
    """How gamma is computed; all of it goes into the signature."""

    delta: float = 1.0
    """What it costs to leave a mark alone; scales disorders, not gamma."""
    alpha: float = 1.0
    """Weight of places."""
    beta: float = 1.0
    """Weight of categories."""
    categories: str = "equal"
    """`equal`: any two labels are as unlike; `groups`: labels of one group of the protocol are half as unlike."""
    soft: bool = False
    """Whether a mark may be aligned more than once (soft-gamma)."""
    sampler: str = "shuffle"
    """How chance is drawn: `shuffle` or `statistical`."""
    samples: int = 30
    """Samples of chance for each text."""
    precision: float = 0.0
    """Draw more samples until the chance disorder of a text is known to this share of itself (e.g. 0.02) with 95%
    confidence; 0 draws no more."""
    work: float = DEFAULT_WORK
    """Limit for the alignment of a text, and for all of its samples together, in units of about a second that are
    counted and not timed; where it is reached, the gap is told."""

    def __post_init__(self) -> None:
        Dissimilarity(self.delta, self.alpha, self.beta)
        for name, allowed in {"sampler": list(SAMPLERS), "categories": ["equal", "groups"]}.items():
            if getattr(self, name) not in allowed:
                raise FinecombError(
                    f"gamma's {name} cannot be {getattr(self, name)!r}{did_you_mean(getattr(self, name), allowed)}"
                )
        if self.samples < 2:
            raise FinecombError(f"gamma needs 2 samples of chance or more, not {self.samples}")
        if not 0 <= self.precision < 1:
            raise FinecombError(f"gamma's precision lies between 0 and 1, e.g. 0.02, not {self.precision:g}")
        if not self.work > 0:
            raise FinecombError(f"gamma's limit is more than 0 units of work, not {self.work:g}")

    @classmethod
    def parse(cls, pairs: Iterable[str]) -> GammaSettings:
        """From `NAME=VALUE` as on the command line, e.g. `sampler=statistical`."""
        kinds = {field.name: type(field.default) for field in fields(cls)}
        settings: dict[str, object] = {}
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if name not in kinds:
                way_out = _NO_CLOCK if name == "seconds" else did_you_mean(name, kinds)
                raise FinecombError(f"gamma has no setting {name!r}{way_out}")
            settings[name] = _parse_setting_value(name, value if equals else "", kinds[name])
        return cls(**settings)  # type: ignore[arg-type]


_NO_CLOCK = "; what a clock stops depends on how busy the machine is, so work is limited instead: work=60"


def _parse_setting_value(name: str, value: str, kind: type) -> object:
    try:
        return {"yes": True, "no": False}[value] if kind is bool else kind(value)
    except (KeyError, ValueError):
        wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[kind]
        raise FinecombError(f"gamma's {name} is {wanted}, not {value!r}") from None


class TextGammaJob(NamedTuple):
    """One text to be measured; needs nothing else, so that it can be sent to another process."""

    document: str
    marks: Continuum
    settings: GammaSettings
    dissimilarity: Dissimilarity
    categories: int
    seed: int


@dataclass(frozen=True, slots=True)
class TextGamma:
    """Of one text; the rows are gamma, gamma-cat, and gamma-k of each category."""

    document: str
    weight: Floats
    """(rows,): what the text counts among others: marks per annotator, and for categories the weight of pairs."""
    observed: Floats
    """(rows,): disorder; NaN where there is none."""
    expected: Floats
    """(rows,): mean disorder of the samples that have one."""
    error: Floats
    """(rows,): standard error of that mean."""
    lowest: tuple[float, float]
    """Bounds below the observed and the expected disorder of gamma; the same as those when all is proven."""
    samples: int = 0
    why: str = ""
    """Why there is no gamma."""

    @property
    def gamma(self) -> Floats:
        """(rows,): 1 - observed / expected."""
        return 1 - ratio_or_nan(self.observed, self.expected)


def measure_text_gamma(job: TextGammaJob) -> TextGamma:
    """The best alignment of a text's marks, and of samples of chance drawn from a seed of its own."""
    if why := _undefined_reason(job.marks):
        nothing = np.full(2 + job.categories, np.nan)
        return TextGamma(job.document, 0 * nothing, nothing, nothing, nothing, (math.nan, math.nan), why=why)
    best = _align_marks(job, job.marks, job.settings.work)
    sums = category_disagreement_sums(job.marks, best.clusters, job.dissimilarity, job.categories)
    chance, lower = _chance_disorders(job)
    count = np.isfinite(chance).sum(axis=0).astype(np.float64)
    expected = ratio_or_nan(np.nansum(chance, axis=0), count)
    spread = np.sqrt(ratio_or_nan(np.nansum((chance - expected) ** 2, axis=0), count - 1))
    return TextGamma(
        job.document,
        weight=np.concatenate([[job.marks.marks_per_annotator], sums[:, 1]]),
        observed=_gamma_disorders(best, sums),
        expected=expected,
        error=spread / np.sqrt(np.maximum(count, 1)),
        lowest=(best.lower, float(lower.mean())),
        samples=len(chance),
    )


def _undefined_reason(marks: Continuum) -> str:
    if marks.annotators < 2:
        return "fewer than two annotators read it"
    if not len(marks):
        return "nobody marked anything"
    return f"it has more than {MAX_MARKS:,} marks" if len(marks) > MAX_MARKS else ""


def _align_marks(job: TextGammaJob, marks: Continuum, work: float) -> BestAlignment:
    return best_alignment(marks, job.dissimilarity, job.settings.soft, work)


def _gamma_disorders(best: BestAlignment, sums: Floats) -> Floats:
    """Of gamma, gamma-cat and each gamma-k, (rows,)."""
    return np.concatenate([[best.upper], ratio_or_nan(sums[:, 0], sums[:, 1])])


def _chance_disorders(job: TextGammaJob) -> tuple[Floats, Floats]:
    """Disorders of samples, (samples, rows), and bounds below those of gamma, (samples,)."""
    rng = seeded_generator(job.seed, "gamma", job.document)
    samples = [_sample_chance_disorders(job, rng) for _ in range(job.settings.samples)]
    samples += [
        _sample_chance_disorders(job, rng)
        for _ in range(_missing_sample_count([sample[0][0] for sample in samples], job.settings.precision))
    ]
    return np.stack([sample[0] for sample in samples]), np.array([sample[1] for sample in samples])


def _sample_chance_disorders(job: TextGammaJob, rng: np.random.Generator) -> tuple[Floats, float]:
    marks = SAMPLERS[job.settings.sampler](job.marks, rng)
    best = _align_marks(job, marks, job.settings.work / job.settings.samples)
    return _gamma_disorders(
        best, category_disagreement_sums(marks, best.clusters, job.dissimilarity, job.categories)
    ), best.lower


def _missing_sample_count(disorders: list[float], precision: float) -> int:
    """Samples still missing of (1.96 x coefficient of variation / precision)^2 (Mathet et al. 2015, section 5.3)."""
    if not precision:
        return 0
    variation = float(np.std(disorders) / np.mean(disorders))
    return max(0, math.ceil((1.96 * variation / precision) ** 2) - len(disorders))
