"""Gamma over many texts: pooled, mean, and per text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finecomb.engine.partitions import Executor, ProgressWatcher, rows_per_partition
from finecomb.statistics.agreement.gamma.continuum import Floats, build_document_continua
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity, label_group_distances
from finecomb.statistics.agreement.gamma.partitioned_gamma import GammaWork, gamma_input_rows, text_gammas_from_table
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings, TextGamma
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.selection.view import View

_TEXTS_PER_PARTITION = 1  # texts per partition: one text with its chance samples takes from a second to minutes


def measure_gamma_of_texts(
    view: View, settings: GammaSettings, seed: int, spread: Executor | None = None, watch: ProgressWatcher | None = None
) -> list[TextGamma]:
    """Compute gamma for each text of a view with the given executor."""
    table = label_group_distances(view.protocol, view.categories) if settings.categories == "groups" else None
    work = GammaWork(
        settings, Dissimilarity(settings.delta, settings.alpha, settings.beta, table), len(view.categories), seed
    )
    rows = gamma_input_rows(build_document_continua(view.study, view.categories))
    run = (spread or Executor()).start_run(work, work.handle_lost_row, work.key())
    done = run.run_partitions(rows.iter_slices(rows_per_partition(len(rows), _TEXTS_PER_PARTITION)))
    for _ in watch(done, len(rows)) if watch else done:
        pass
    return list(text_gammas_from_table(run.result_table("texts").collect())) if run.names else []


def _stack_text_field(texts: Sequence[TextGamma], name: str) -> Floats:
    """Stack a field of all texts, (texts, rows)."""
    return np.array([getattr(text, name) for text in texts]) if texts else np.zeros((0, 1))


def _chance_disorder_noise(weights: Floats, seed: int) -> Floats:
    """Draw the sampling error of each text's expected disorder, in standard errors; 0 in the first draw."""
    noise = np.random.default_rng([seed, len(weights)]).standard_normal(weights.shape)
    noise[0] = 0.0
    return noise


def pooled_gamma(texts: Sequence[TextGamma], weights: Floats, seed: int) -> Floats:
    r"""Compute pooled gamma $1 - \sum_t w_t O_t / \sum_t w_t E_t$ over the texts of each draw, (draws, rows).

    $w_t$ is the mean number of marks per annotator. The result is gamma of the concatenated texts, without alignments
    across texts. Texts without an observed or expected disorder are excluded. The first draw is the study itself. In
    the other draws, expected disorders also vary by their sampling error.
    """
    observed, expected = _stack_text_field(texts, "observed"), _stack_text_field(texts, "expected")
    defined = np.isfinite(observed) & np.isfinite(expected)
    share = np.where(defined, _stack_text_field(texts, "weight"), 0.0)
    error = np.nan_to_num(_stack_text_field(texts, "error"))
    top = weights @ (share * np.where(defined, observed, 0.0))
    bottom = weights @ (share * np.where(defined, expected, 0.0))
    bottom += (weights * _chance_disorder_noise(weights, seed)) @ (share * error)
    return 1 - ratio_or_nan(top, bottom)


def resampled_text_gammas(texts: Sequence[TextGamma], weights: Floats, seed: int) -> Floats:
    """Return gamma of each text, (draws, texts), varied only by the sampling error of its expected disorder."""
    expected, error = _stack_text_field(texts, "expected")[:, 0], np.nan_to_num(_stack_text_field(texts, "error"))[:, 0]
    return 1 - ratio_or_nan(
        _stack_text_field(texts, "observed")[:, 0] + 0 * weights,
        expected + error * _chance_disorder_noise(weights, seed),
    )


def mean_text_gamma(texts: Sequence[TextGamma], weights: Floats, seed: int) -> Floats:
    """Compute the mean gamma over the texts for which it is defined, (draws, 1)."""
    gammas = resampled_text_gammas(texts, weights, seed)
    defined = np.isfinite(gammas)
    means = ratio_or_nan((weights * np.where(defined, gammas, 0.0)).sum(axis=1), (weights * defined).sum(axis=1))
    return means[:, None]


def unproven_gamma_gap(texts: Sequence[TextGamma]) -> float:
    """Return the maximum error of pooled gamma due to alignments not proven optimal; 0 if all are proven."""
    defined = [text for text in texts if not text.why]
    weight = np.array([text.weight[0] for text in defined])
    high = weight @ np.array([[text.observed[0], text.expected[0]] for text in defined]).reshape(-1, 2)
    low = weight @ np.array([text.lowest for text in defined]).reshape(-1, 2)
    if not defined or np.allclose(low, high, rtol=1e-9, atol=0):
        return 0.0
    farthest = (1 - high[0] / low[1] if low[1] > 0 else -np.inf, 1 - low[0] / high[1])
    return float(max(abs(1 - high[0] / high[1] - bound) for bound in farthest))


def undefined_gamma_reason(texts: Sequence[TextGamma], row: int) -> str:
    """Return the reason why a row of gamma is undefined in every text."""
    if not texts:
        return "no texts"
    if all(text.why for text in texts):
        return "gamma is undefined for every text: " + "; ".join(dict.fromkeys(text.why for text in texts))
    if any(np.isfinite(text.observed[row]) and np.isfinite(text.expected[row]) for text in texts):
        return "the disorder expected by chance is 0"  # e.g. gamma-cat of a single label
    return f"no text has aligned marks{' with this label' if row > 1 else ''} both observed and by chance"
