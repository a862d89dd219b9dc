"""Tables of the coreference critic: n-grams of mentions (Deng et al. 2022, Tables 6 and 15 to 17)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from finecomb.corpora.critics.coreference_model import (
    EncodedStates,
    MentionNgramModel,
    NgramCounts,
    count_ngrams,
    format_windows,
    relabel_entities,
)
from finecomb.corpora.critics.ngrams import Floats, Ints
from finecomb.corpora.critics.posteriors import Z


def ngram_contributions(
    model: MentionNgramModel, real: Sequence[Z], generated: Sequence[Z], count: int = 10
) -> pl.DataFrame:
    """Return Table 6: n-grams sorted by their contribution to the difference in Latent NLL per state.

    The contribution is (share in generated - share in real) x -log P(last state | previous states), shares in percent.
    """
    ours, theirs = (
        count_ngrams(real, model.order, model.has_end_state),
        count_ngrams(generated, model.order, model.has_end_state),
    )
    everything = count_ngrams([*real, *generated], model.order, model.has_end_state)
    shares = [100 * _lookup_counts(everything.keys, counts) / counts.counts.sum() for counts in (ours, theirs)]
    nll = -np.log(model.probabilities(everything.windows))
    added = (shares[1] - shares[0]) / 100 * nll
    top = np.argsort(-added, kind="stable")[:count]
    numbers = {"real": shares[0], "generated": shares[1], "nll": nll, "contribution": added}
    return _ngram_table(everything.windows, top, numbers)


def unlikely_ngrams(
    model: MentionNgramModel, generated: Sequence[Z], below: float = -7.0, count: int = 20
) -> pl.DataFrame:
    """Return Table 15: n-grams of generated text whose last state has log P < `below`, with the expected state."""
    ngrams = count_ngrams(generated, model.order, model.has_end_state)
    log_p: Floats = np.log(model.probabilities(ngrams.windows))
    worst = np.argsort(log_p, kind="stable")
    worst = worst[log_p[worst] < below][:count]
    best = [
        model.most_probable_successor(
            EncodedStates(ngrams.windows.symbols[row], relabel_entities(ngrams.windows.entities[row : row + 1])[0])
        )
        for row in worst
    ]
    table = _ngram_table(ngrams.windows, worst, {"log_p": log_p})
    expected = pl.Series("expected", [name for name, _ in best], pl.String)
    return table.with_columns(expected, pl.Series("expected_log_p", [value for _, value in best], pl.Float64))


def ngrams_by_probability_shift(
    model: MentionNgramModel,
    real: Sequence[Z],
    generated: Sequence[Z],
    is_rising: bool,
    min_count: int = 5,
    count: int = 5,
) -> pl.DataFrame:
    """Return Tables 16 and 17: n-grams whose P(last state | previous states) differs most in generated text.

    Both probabilities come from models fitted like `model` on each side. N-grams occur at least `min_count` times in
    both.
    """
    sides = [MentionNgramModel.fit(side, model.kind, model.order) for side in (real, generated)]
    ours, theirs = (
        count_ngrams(real, model.order, model.has_end_state),
        count_ngrams(generated, model.order, model.has_end_state),
    )
    common = (ours.counts >= min_count) & (_lookup_counts(ours.keys, theirs) >= min_count)
    p_real, p_generated = (side.probabilities(ours.windows) for side in sides)
    rise = np.log(p_generated) - np.log(p_real)
    order = np.argsort(-rise if is_rising else rise, kind="stable")
    order = order[common[order]][:count]
    return _ngram_table(ours.windows, order, {"p_real": p_real, "p_generated": p_generated, "rise": rise})


def _lookup_counts(keys: Ints, ngrams: NgramCounts) -> Ints:
    """Return the count of each n-gram of `keys` in `ngrams`."""
    positions = np.minimum(np.searchsorted(ngrams.keys, keys), len(ngrams.keys) - 1)
    return np.where(ngrams.keys[positions] == keys, ngrams.counts[positions], 0)


def _ngram_table(windows: EncodedStates, rows: Ints, numbers: dict[str, Floats]) -> pl.DataFrame:
    chosen = format_windows(EncodedStates(windows.symbols[rows], windows.entities[rows]))
    order = windows.symbols.shape[1]
    states = {f"z{n + 1}": pl.Series([row[n] for row in chosen], dtype=pl.String) for n in range(order)}
    return pl.DataFrame({**states, **{name: values[rows] for name, values in numbers.items()}})
