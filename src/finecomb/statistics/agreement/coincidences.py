"""How often which values met on the same unit, summed up for each document: all that agreement beyond pairs needs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Weights = NDArray[np.float64]  # (draws, documents): how often each document was drawn


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the units of each of D documents, for each of R things rated apart (e.g. labels) on V values."""

    rows: tuple[str, ...]
    """What was rated, R names."""
    values: Floats
    """(V,), in order; for marks 0 (not marked) and 1."""
    coincidences: Floats
    """o_ck, (D, R, V, V): pairs of values within units, each unit adding as many as it has ratings."""
    agreeing: Floats
    """Sum of P_u, the share of a unit's pairs that agree, (D, R)."""
    pairable: Floats
    """Units with two or more ratings, (D, R)."""
    shares: Floats
    """Sum of n_uc / m_u over all rated units, (D, R, V)."""
    rated: Floats
    """Units with any rating, (D, R)."""
    full: Floats
    """The sum of P_u, the units, and n_c over units that have the most ratings, (D, R, 2 + V)."""


def sum_by_document(values: Floats, bounds: Ints) -> Floats:
    """Sums of `values`, (..., units), over the units of each document, (..., documents)."""
    result = np.zeros((*values.shape[:-1], len(bounds) - 1))
    filled = np.diff(bounds) > 0  # reduceat gives no 0 for an empty stretch
    if filled.any():
        result[..., filled] = np.add.reduceat(values, bounds[:-1][filled], axis=-1)
    return result


def tally_binary_votes(
    rows: tuple[str, ...], marked: Ints, readers: Ints, bounds: Ints, raters: int | None = None
) -> Tally:
    """From k of m readers who marked each unit: `marked` is (R, units), `readers` (units,).

    `raters` are the most that any unit has; given where these are some of the units only.
    """
    k, m = marked.astype(np.float64), readers.astype(np.float64)
    raters = int(readers.max(initial=0)) if raters is None else raters
    pairable, rated, most = m >= 2, m >= 1, (readers == raters) & (readers >= 2)
    mixed = np.where(pairable, k * (m - k) / np.maximum(m - 1, 1), 0.0)  # o_01 = o_10 of each unit
    crossed, unlike = sum_by_document(mixed, bounds), sum_by_document(2 * mixed / np.maximum(m, 1), bounds)
    ones, total = sum_by_document(k * pairable, bounds), sum_by_document(m * pairable, bounds)
    units, rated_units = (
        sum_by_document(pairable.astype(np.float64), bounds),
        sum_by_document(rated.astype(np.float64), bounds),
    )
    share = sum_by_document(k / np.maximum(m, 1), bounds)
    return Tally(
        rows,
        np.array([0.0, 1.0]),
        _stack_on_last_axis([total - ones - crossed, crossed, crossed, ones - crossed]).reshape(-1, len(rows), 2, 2),
        (units - unlike).T,
        np.repeat(units[:, None], len(rows), axis=1),
        _stack_on_last_axis([rated_units - share, share]),
        np.repeat(rated_units[:, None], len(rows), axis=1),
        _fully_rated_sums(k, mixed, most, raters, bounds),
    )


def concatenate_tallies(parts: Sequence[Tally]) -> Tally:
    """The tally of all documents from those of parts of them, which rate the same on the same values."""
    if len(parts) == 1:
        return parts[0]
    names = ("coincidences", "agreeing", "pairable", "shares", "rated", "full")
    sums = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    return Tally(parts[0].rows, parts[0].values, *sums)


def _fully_rated_units(readers: Ints) -> NDArray[np.bool_]:
    """Units with as many ratings as any has, where that is at least two."""
    result: NDArray[np.bool_] = (readers == readers.max(initial=0)) & (readers >= 2)
    return result


def _stack_on_last_axis(arrays: list[Floats]) -> Floats:
    """Several (R, D) arrays as one, (D, R, several)."""
    return np.stack([one.T for one in arrays], axis=-1)


def _fully_rated_sums(k: Floats, mixed: Floats, most: NDArray[np.bool_], raters: int, bounds: Ints) -> Floats:
    units = np.broadcast_to(sum_by_document(most.astype(np.float64), bounds), (len(k), len(bounds) - 1))
    unlike = sum_by_document(2 * mixed * most, bounds) / max(raters, 1)
    ones = sum_by_document(k * most, bounds)
    return _stack_on_last_axis([units - unlike, units, raters * units - ones, ones])


def tally_value_counts(row: str, values: Floats, counts: Ints, bounds: Ints) -> Tally:
    """From how often each value was given to each unit, (units, V): one thing rated."""
    n = counts.astype(np.float64)  # n_uc
    m = n.sum(axis=1)  # m_u
    pairable, most = m >= 2, _fully_rated_units(counts.sum(axis=1))
    agree = np.where(pairable, (n * (n - 1)).sum(axis=1) / np.maximum(m * (m - 1), 1), 0.0)  # P_u
    columns = [agree * most, most.astype(np.float64), *(n * most[:, None]).T]
    return Tally(
        (row,),
        values,
        _coincidences_per_document(np.where(pairable[:, None], n, 0.0), 1 / np.maximum(m - 1, 1), bounds)[:, None],
        sum_by_document(agree, bounds)[:, None],
        sum_by_document(pairable.astype(np.float64), bounds)[:, None],
        sum_by_document((n / np.maximum(m, 1)[:, None]).T, bounds).T[:, None],
        sum_by_document((m >= 1).astype(np.float64), bounds)[:, None],
        np.stack([sum_by_document(one, bounds) for one in columns], axis=-1)[:, None],
    )


def _coincidences_per_document(n: Floats, weight: Floats, bounds: Ints) -> Floats:
    """o_ck = sum over units of n_uc (n_uk - [c = k]) / (m_u - 1), for each document, (D, V, V)."""
    result = np.zeros((len(bounds) - 1, n.shape[1], n.shape[1]))
    for document, (first, last) in enumerate(itertools.pairwise(bounds)):
        counts = n[first:last]
        weighted = counts * weight[first:last, None]
        result[document] = counts.T @ weighted - np.diag(weighted.sum(axis=0))
    return result


def pool_sums_per_draw(weights: Weights, sums: Floats) -> Floats:
    """Sums of each draw, (draws, ...), from sums of each document, (documents, ...)."""
    if not len(sums):
        return np.zeros((len(weights), *sums.shape[1:]))
    return np.tensordot(weights, sums, axes=1)
