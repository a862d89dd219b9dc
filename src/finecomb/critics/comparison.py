"""Do generated documents have the structure of real ones? Any number of systems against held-out real documents."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from finecomb.core.estimate import Estimate, Signature
from finecomb.critics.base import (
    CorpusStatistic,
    Critic,
    CriticScores,
    Dropped,
    Ints,
    mean_nll,
    no_ppl,
    perplexity,
)
from finecomb.critics.posteriors import Floats
from finecomb.critics.progress import track
from finecomb.measure.inference import Sums, estimated, p_value, ratio, resampled_sums
from finecomb.measure.permutation import Correction, adjusted


@dataclass(frozen=True, slots=True)
class Comparison:
    """One system against real documents, by one statistic of one critic."""

    critic: str
    statistic: str
    """`ppl`, or `nll`, `plugin` or `kl` as a mean over documents."""
    system: str
    real: float
    generated: float
    difference: Estimate
    """Generated minus real; the interval resamples documents of both."""
    p: float
    """Two-sided permutation test: under the null each document could have been of the other side."""
    p_adjusted: float
    matched: float
    """The difference when real documents are weighted to the lengths of the generated ones."""
    unmatched: int
    """Generated documents whose length no real one has; they take no part in `matched`."""
    documents: tuple[int, int]
    """Real and generated documents with a score."""
    dropped: tuple[int, int]
    """Real and generated documents without one."""

    @property
    def note(self) -> str:
        """A value below the data's is no praise: it comes from staying near the mode (the paper's footnote 9)."""
        if not self.difference.value < 0:
            return ""
        return "mode-seeking" if self.difference.high < 0 else "below real, within noise"

    def row(self) -> dict[str, object]:
        """As a row of a table."""
        return {
            "critic": self.critic, "statistic": self.statistic, "system": self.system,
            "real": self.real, "generated": self.generated, "difference": self.difference.value,
            "low": self.difference.low, "high": self.difference.high, "p": self.p, "p_adjusted": self.p_adjusted,
            "matched": self.matched, "unmatched": self.unmatched or "", "documents": "+".join(map(str, self.documents)),
            "dropped": "+".join(map(str, self.dropped)) if any(self.dropped) else "",
            "note": self.note, "why": self.difference.why, "signature": str(self.difference.signature),
        }  # fmt: skip


def compare(
    real: CriticScores,
    systems: Mapping[str, CriticScores],
    correction: Correction = "holm",
    draws: int = 1000,
    seed: int = 0,
) -> list[Comparison]:
    """Each system's Latent PPL (where z is a sequence of states) and mean T(x), against the real documents'.

    `real` must not be documents that the critic was fitted on: those always look likelier than they should. p-values
    are corrected within each statistic; give the rows of several critics to `corrected` to correct across them.
    """
    statistics: dict[str, CorpusStatistic] = {} if no_ppl(real) else {"ppl": perplexity}
    statistics[real.statistic] = mean_nll
    rows: list[Comparison] = []
    for system, generated in track(systems.items(), "comparing systems", len(systems)):
        rows += _compared(real, system, generated, statistics, draws, seed)
    return corrected(rows, correction)


def corrected(rows: Iterable[Comparison], correction: Correction = "holm") -> list[Comparison]:
    """The same rows with p corrected for how many of its kind there are: Latent PPLs and means are two families."""
    rows = list(rows)
    result = np.full(len(rows), math.nan)
    for family in (True, False):
        places = np.array([at for at, row in enumerate(rows) if (row.statistic == "ppl") == family], dtype=np.int64)
        result[places] = adjusted(np.array([rows[at].p for at in places]), correction)
    return [replace(row, p_adjusted=float(p)) for row, p in zip(rows, result, strict=True)]


def _compared(
    real: CriticScores,
    system: str,
    generated: CriticScores,
    statistics: Mapping[str, CorpusStatistic],
    draws: int,
    seed: int,
) -> list[Comparison]:
    """All statistics of one system, from the same draws."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{real.critic}\x1f{system}".encode())])
    first, second = generated.sums, real.sums
    defined = min(len(first), len(second)) >= 2
    draws = draws if defined else 0
    null = _permuted(first, second, draws, rng)
    spread = resampled_sums(first, draws, rng), resampled_sums(second, draws, rng)
    rows = []
    for name, of in statistics.items():
        signature = Signature.of(statistic=f"criticize:{name}", critic=real.critic, draws=draws, seed=seed)
        difference = float(_apart(of(_total(first)), of(_total(second)))[0]) if defined else math.nan
        matched, unmatched = (
            _matched(of, (first, second), (generated.lengths, real.lengths)) if defined else (math.nan, 0)
        )
        row = Comparison(
            critic=real.critic,
            statistic=name,
            system=system,
            real=_value(of, second),
            generated=_value(of, first),
            difference=estimated(
                difference,
                _apart(of(spread[0]), of(spread[1])),
                signature,
                "" if defined else _too_few(real, generated),
            ),
            p=p_value(_apart(of(null[0]), of(null[1])), difference),
            p_adjusted=math.nan,
            matched=matched,
            unmatched=unmatched,
            documents=(len(real.ids), len(generated.ids)),
            dropped=(len(real.dropped), len(generated.dropped)),
        )
        rows.append(row)
    return rows


def _too_few(real: CriticScores, generated: CriticScores) -> str:
    side, corpus = ("real", real) if len(real.ids) < 2 else ("generated", generated)
    reason = f"; {corpus.dropped[0].id!r}: {corpus.dropped[0].why}" if corpus.dropped else ""
    return f"{len(corpus.ids)} {side} documents have a score, and a comparison needs two{reason}"


def _value(of: CorpusStatistic, sums: Sums) -> float:
    return float(of(_total(sums))[0])


def _total(sums: Sums) -> Sums:
    """(1, 3)."""
    total: Sums = sums.sum(axis=0, keepdims=True)
    return total


def _apart(first: Floats, second: Floats) -> Floats:
    """The difference, 0 where it is rounding: equal documents must not look mode-seeking."""
    return np.where(np.isclose(first, second, rtol=1e-12, atol=1e-12), 0.0, first - second)


def _permuted(first: Sums, second: Sums, draws: int, rng: np.random.Generator) -> tuple[Sums, Sums]:
    """Sums of both sides when documents change sides at random, each (draws, 3)."""
    both, n = np.concatenate([first, second]), len(first)
    total = both.sum(axis=0)
    sums = np.empty((draws, both.shape[1]))
    for draw in range(draws):
        sums[draw] = both[rng.permutation(len(both))[:n]].sum(axis=0)
    return sums, total - sums


_STRATA = 10  # tenths of all lengths


def _matched(of: CorpusStatistic, sides: tuple[Sums, Sums], lengths: tuple[Ints, Ints]) -> tuple[float, int]:
    """The difference within lengths, and how many documents of the first side have no counterpart."""
    edges = np.unique(np.quantile(np.concatenate(lengths), np.linspace(0, 1, _STRATA + 1)[1:-1]))
    strata = [np.searchsorted(edges, side, side="left") for side in lengths]
    counts = [np.bincount(stratum, minlength=len(edges) + 1) for stratum in strata]
    matchable = (counts[1] > 0)[strata[0]]
    if not matchable.any():
        return math.nan, len(matchable)
    weights = ratio(counts[0].astype(float), counts[1].astype(float))[strata[1]]
    apart = _apart(of(_total(sides[0][matchable])), of(_total(sides[1] * weights[:, None])))
    return float(apart[0]), int((~matchable).sum())


def dropped_words(side: str, corpus: CriticScores) -> str:
    """A line about what a side lost: how many, why, and the first few by name; empty where nothing was lost."""
    of = len(corpus.ids) + len(corpus.dropped)
    lost = f"{side}: {len(corpus.dropped)} of {of} documents could not be judged by the {corpus.critic} critic"
    return f"{lost}: {_reasons(corpus.dropped)}" if corpus.dropped else ""


def unused_words(critic: Critic) -> str:
    """The same of documents that a critic could not be fitted on."""
    lost = f"fitting: {len(critic.unused)} documents could not be used by the {critic.name} critic"
    return f"{lost}: {_reasons(critic.unused)}" if critic.unused else ""


def _reasons(dropped: Sequence[Dropped], most: int = 3) -> str:
    """Reasons with how often each occurs, the commonest first; those that differ in a name only are one."""
    reasons: dict[str, list[Dropped]] = {}
    for loss in dropped:
        reasons.setdefault(_QUOTED.sub("", loss.why), []).append(loss)
    ranked = sorted(reasons.values(), key=len, reverse=True)
    more = f"; and {len(ranked) - most} other reasons" if len(ranked) > most else ""
    return "; ".join(_reason(losses, most) for losses in ranked[:most]) + more


_QUOTED = re.compile(r"'[^']*'")


def _reason(losses: Sequence[Dropped], most: int) -> str:
    first = losses[0].why if len({loss.why for loss in losses}) == 1 else f"like {losses[0].why}"
    ids = ", ".join(loss.id for loss in losses[:most]) + (", ..." if len(losses) > most else "")
    return f"{len(losses)} x {first} ({ids})"
