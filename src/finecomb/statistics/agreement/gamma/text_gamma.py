"""Gamma, gamma-cat and gamma-k of one text: observed disorder and disorder expected by chance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.engine.seeds import seeded_generator
from finecomb.statistics.agreement.gamma.best_alignment import (
    DEFAULT_WORK_UNITS,
    MAX_MARKS_PER_TEXT,
    BestAlignment,
    best_alignment,
)
from finecomb.statistics.agreement.gamma.chance_samplers import CHANCE_SAMPLERS
from finecomb.statistics.agreement.gamma.continuum import Continuum, Floats
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity
from finecomb.statistics.agreement.gamma.gamma_cat import category_disagreement_sums
from finecomb.statistics.inference.resampling import ratio_or_nan


@dataclass(frozen=True, slots=True)
class GammaSettings:
    """Settings of gamma; all of them are part of the signature."""

    delta: float = 1.0
    """Cost of an unaligned mark. It scales disorders but does not change gamma."""
    alpha: float = 1.0
    """Weight of the positional dissimilarity."""
    beta: float = 1.0
    """Weight of the categorical dissimilarity."""
    categories: str = "equal"
    """`equal`: all different labels have dissimilarity 1. `groups`: labels of one protocol group have 0.5."""
    soft: bool = False
    """True if a mark can be aligned more than once (soft-gamma)."""
    sampler: str = "shuffle"
    """Sampler of chance annotations: `shuffle` or `statistical`."""
    samples: int = 30
    """Number of chance samples per text."""
    precision: float = 0.0
    """Relative precision of the expected disorder at 95% confidence, e.g. 0.02; 0 draws no additional samples."""
    work: float = DEFAULT_WORK_UNITS
    """Work limit for the alignment of a text, and again for all its chance samples together.

    A unit takes about a second, but work is counted, not timed. If the limit is reached, the result reports the gap.
    """

    def __post_init__(self) -> None:
        Dissimilarity(self.delta, self.alpha, self.beta)
        for name, allowed in {"sampler": list(CHANCE_SAMPLERS), "categories": ["equal", "groups"]}.items():
            if getattr(self, name) not in allowed:
                raise FinecombError(
                    f"unknown {name} {getattr(self, name)!r} for gamma{did_you_mean(getattr(self, name), allowed)}"
                )
        if self.samples < 2:
            raise FinecombError(f"gamma's samples must be at least 2, found {self.samples}")
        if not 0 <= self.precision < 1:
            raise FinecombError(f"gamma's precision must be at least 0 and less than 1, found {self.precision:g}")
        if not self.work > 0:
            raise FinecombError(f"gamma's work must be greater than 0, found {self.work:g}")

    @classmethod
    def parse(cls, pairs: Iterable[str]) -> GammaSettings:
        """Parse settings of the form `NAME=VALUE`, e.g. `sampler=statistical`."""
        kinds: dict[str, type] = {field.name: type(field.default) for field in fields(cls)}
        settings: dict[str, object] = {}
        for pair in pairs:
            name, _, value = pair.partition("=")
            if name not in kinds:
                hint = _USE_WORK_LIMIT_HINT if name == "seconds" else did_you_mean(name, kinds)
                raise FinecombError(f"unknown gamma setting {name!r}{hint}")
            try:
                settings[name] = {"yes": True, "no": False}[value] if kinds[name] is bool else kinds[name](value)
            except (KeyError, ValueError):
                wanted = {bool: "yes or no", int: "a whole number", float: "a number"}[kinds[name]]
                raise FinecombError(f"gamma's {name} must be {wanted}, found {value!r}") from None
        return cls(**settings)  # type: ignore[arg-type]


_USE_WORK_LIMIT_HINT = (
    "; limit the work instead, e.g. work=60, since a time limit would make results depend on the machine"
)


class TextGammaJob(NamedTuple):
    """Inputs of the gamma computation for one text, self-contained so that they can be sent to another process."""

    document: str
    marks: Continuum
    settings: GammaSettings
    dissimilarity: Dissimilarity
    categories: int
    seed: int


@dataclass(frozen=True, slots=True)
class TextGamma:
    """Gamma result for one text; the rows are gamma, gamma-cat, and gamma-k of each category."""

    document: str
    weight: Floats
    """(rows,): weight of the text: marks per annotator for gamma, sum of pair weights for gamma-cat and gamma-k."""
    observed: Floats
    """(rows,): observed disorder; NaN where it is undefined."""
    expected: Floats
    """(rows,): expected disorder: mean over the chance samples for which it is defined."""
    error: Floats
    """(rows,): standard error of the expected disorder."""
    lowest: tuple[float, float]
    """Lower bounds on observed and expected disorder of gamma; equal to the disorders if all alignments are proven."""
    samples: int = 0
    why: str = ""
    """Reason for an undefined gamma."""

    @property
    def gamma(self) -> Floats:
        """Gamma of each row, 1 - observed / expected, (rows,)."""
        return 1 - ratio_or_nan(self.observed, self.expected)


def measure_text_gamma(job: TextGammaJob) -> TextGamma:
    """Compute gamma of a text by aligning its marks and those of chance samples, which are seeded per document."""
    if why := _undefined_reason(job.marks):
        nothing = np.full(2 + job.categories, np.nan)
        return TextGamma(job.document, 0 * nothing, nothing, nothing, nothing, (math.nan, math.nan), why=why)
    best = _align_marks(job, job.marks, job.settings.work)
    sums = category_disagreement_sums(job.marks, best.clusters, job.dissimilarity, job.categories)
    rng = seeded_generator(job.seed, "gamma", job.document)
    samples = [_sample_chance_disorders(job, rng) for _ in range(job.settings.samples)]
    if job.settings.precision:
        # Mathet et al. (2015), section 5.3: (1.96 x coefficient of variation / precision)^2 samples in total
        disorders = [sample[0][0] for sample in samples]
        required = math.ceil((1.96 * float(np.std(disorders) / np.mean(disorders)) / job.settings.precision) ** 2)
        samples += [_sample_chance_disorders(job, rng) for _ in range(required - len(samples))]
    chance, lower = np.stack([sample[0] for sample in samples]), np.array([sample[1] for sample in samples])
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
        return "the text has fewer than two annotators"
    if not len(marks):
        return "the text has no marks with a span"
    return f"the text has more than {MAX_MARKS_PER_TEXT:,} marks" if len(marks) > MAX_MARKS_PER_TEXT else ""


def _align_marks(job: TextGammaJob, marks: Continuum, work: float) -> BestAlignment:
    return best_alignment(marks, job.dissimilarity, job.settings.soft, work)


def _gamma_disorders(best: BestAlignment, sums: Floats) -> Floats:
    """Return the disorders of gamma, gamma-cat and each gamma-k, (rows,)."""
    return np.concatenate([[best.upper], ratio_or_nan(sums[:, 0], sums[:, 1])])


def _sample_chance_disorders(job: TextGammaJob, rng: np.random.Generator) -> tuple[Floats, float]:
    marks = CHANCE_SAMPLERS[job.settings.sampler](job.marks, rng)
    # All samples together may take as much work as the alignment of the text itself.
    best = _align_marks(job, marks, job.settings.work / job.settings.samples)
    sums = category_disagreement_sums(marks, best.clusters, job.dissimilarity, job.categories)
    return _gamma_disorders(best, sums), best.lower
