"""Gamma over many texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from finecomb.engine.partitions import Executor, rows_per_partition
from finecomb.statistics.agreement.gamma.continuum import Floats, continua
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity, label_group_distances
from finecomb.statistics.agreement.gamma.partitioned_gamma import GammaWork, gamma_input_rows, read_text_gammas
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings, TextGamma
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.selection.view import View

ProgressWatcher = Callable[[Iterator[int], int], Iterable[int]]
"""Sees how many texts are done with each partition, and is told how many there are."""
_TEXTS_PER_PARTITION = 1  # texts of a partition: one with its samples of chance takes a second, or minutes


def build_dissimilarity(view: View, settings: GammaSettings) -> Dissimilarity:
    """As the settings say, with the view's categories."""
    table = label_group_distances(view.protocol, view.categories) if settings.categories == "groups" else None
    return Dissimilarity(settings.delta, settings.alpha, settings.beta, table)


def measure_gamma_of_texts(
    view: View, settings: GammaSettings, seed: int, spread: Executor | None = None, watch: ProgressWatcher | None = None
) -> list[TextGamma]:
    """Each text of a view, worked on as `spread` says."""
    work = GammaWork(settings, build_dissimilarity(view, settings), len(view.categories), seed)
    rows = gamma_input_rows(continua(view.study, view.categories))
    run = (spread or Executor()).start_run(work, work.handle_lost_row, work.key())
    done = run.run_partitions(rows.iter_slices(rows_per_partition(len(rows), _TEXTS_PER_PARTITION)))
    for _ in watch(done, len(rows)) if watch else done:
        pass
    return list(read_text_gammas(run.table("texts").collect())) if run.names else []


def _stack_text_field(texts: Sequence[TextGamma], name: str) -> Floats:
    """(texts, rows)."""
    return np.array([getattr(text, name) for text in texts]) if texts else np.zeros((0, 1))


def _chance_disorder_noise(weights: Floats, seed: int) -> Floats:
    """By how many standard errors the chance disorder of each text is off in each draw; not at all in the first."""
    noise = np.random.default_rng([seed, len(weights)]).standard_normal(weights.shape)
    noise[0] = 0.0
    return noise


def pooled_gamma(texts: Sequence[TextGamma], weights: Floats, seed: int) -> Floats:
    r"""$1 - \sum_t w_t O_t / \sum_t w_t E_t$ over the texts of each draw, (draws, rows).

    With $w_t$ the mean number of marks per annotator this is gamma of all texts laid end to end, where no alignment
    crosses from one text to another. Texts without an observed or expected disorder are left out. The first draw is the
    study itself; in the others the expected disorders vary by their sampling error too.
    """
    observed, expected = _stack_text_field(texts, "observed"), _stack_text_field(texts, "expected")
    defined = np.isfinite(observed) & np.isfinite(expected)
    share, error = (
        np.where(defined, _stack_text_field(texts, "weight"), 0.0),
        np.nan_to_num(_stack_text_field(texts, "error")),
    )
    top = weights @ (share * np.where(defined, observed, 0.0))
    bottom = weights @ (share * np.where(defined, expected, 0.0))
    bottom += (weights * _chance_disorder_noise(weights, seed)) @ (share * error)
    return 1 - ratio_or_nan(top, bottom)


def resampled_text_gammas(texts: Sequence[TextGamma], weights: Floats, seed: int) -> Floats:
    """Gamma of each text, (draws, texts), which varies by the sampling error of its expected disorder alone."""
    expected, error = _stack_text_field(texts, "expected")[:, 0], np.nan_to_num(_stack_text_field(texts, "error"))[:, 0]
    return 1 - ratio_or_nan(
        _stack_text_field(texts, "observed")[:, 0] + 0 * weights,
        expected + error * _chance_disorder_noise(weights, seed),
    )


def mean_text_gamma(texts: Sequence[TextGamma], weights: Floats, seed: int) -> Floats:
    """Mean of the texts' own gammas, those without one left out, (draws, 1)."""
    gammas = resampled_text_gammas(texts, weights, seed)
    defined = np.isfinite(gammas)
    return ratio_or_nan((weights * np.where(defined, gammas, 0.0)).sum(axis=1), (weights * defined).sum(axis=1))[
        :, None
    ]


def unproven_gamma_gap(texts: Sequence[TextGamma]) -> float:
    """How far pooled gamma could lie from the one printed because alignments are not proven; 0 when all are."""
    defined = [text for text in texts if not text.why]
    weight = np.array([text.weight[0] for text in defined])
    high = weight @ np.array([[text.observed[0], text.expected[0]] for text in defined]).reshape(-1, 2)
    low = weight @ np.array([text.lowest for text in defined]).reshape(-1, 2)
    if not defined or np.allclose(low, high, rtol=1e-9, atol=0):
        return 0.0
    farthest = (1 - high[0] / low[1] if low[1] > 0 else -np.inf, 1 - low[0] / high[1])
    return float(max(abs(1 - high[0] / high[1] - bound) for bound in farthest))


def undefined_gamma_reason(texts: Sequence[TextGamma], row: int) -> str:
    """Why no text has a value for a row."""
    if not texts:
        return "there is no text"
    if all(text.why for text in texts):
        return "of no text is there a gamma: " + "; ".join(dict.fromkeys(text.why for text in texts))
    return "no two marks that were aligned have it, observed or by chance" if row else "chance has no disorder"
