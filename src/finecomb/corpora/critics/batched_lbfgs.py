"""L-BFGS for many small problems at once: every row is a problem of its own, and all take their steps together.

Nocedal and Wright (2006), algorithm 7.4, with a diagonal first guess of the inverse curvature and backtracking. A row
that is done takes no further part, so that nobody waits for the slowest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Objective = Callable[[Ints, Floats], tuple[Floats, Floats]]
"""From the numbers of rows and their points, (rows, D), to their values, (rows,), and gradients, (rows, D)."""

_HISTORY_SIZE, _MAX_HALVINGS, _ARMIJO_CONSTANT = 10, 30, 1e-4


def minimise_rows(
    objective: Objective,
    start: Floats,
    scale: Floats,
    tolerance: float,
    max_iterations: int,
    max_step_size: float = np.inf,
) -> Floats:
    """(rows, D): a local minimum of each row's objective from its `start`.

    `scale`, (rows, D), is about the inverse of the curvature along each coordinate. A row is done when half of its
    gradient times its next step, about what is still to be won, is below `tolerance`, also by the first guess of the
    curvature. No step goes further than `reach` along any coordinate.
    """
    points, active = start.copy(), np.arange(len(start))
    values, gradients = objective(active, points)
    moves, changes = list[Floats](), list[Floats]()  # each (rows, D), the latest last
    for _ in range(max_iterations):
        directions = _directions(
            gradients[active], [m[active] for m in moves], [c[active] for c in changes], scale[active]
        )
        slopes = (directions * gradients[active]).sum(axis=1)
        plain = (scale[active] * gradients[active] ** 2).sum(axis=1)  # the same with the first guess of the curvature
        going = np.maximum(-slopes, plain) / 2 > tolerance
        active, directions, slopes = active[going], directions[going], slopes[going]
        if not len(active):
            break
        shorter = np.minimum(1.0, max_step_size / np.maximum(np.abs(directions).max(axis=1), 1e-300))
        directions = shorter[:, None] * directions
        move, change = np.zeros_like(points), np.zeros_like(points)
        reached = _backtracking_line_search(
            objective, active, points[active], directions, values[active], gradients[active]
        )
        move[active], change[active] = reached[0] - points[active], reached[2] - gradients[active]
        points[active], values[active], gradients[active] = reached
        stuck = active[np.abs(move[active]).max(axis=1) == 0]
        hopeless = stuck[np.sum([np.abs(old[stuck]).sum(axis=1) for old in moves], axis=0) == 0] if moves else stuck
        moves, changes = [*moves, move][-_HISTORY_SIZE:], [*changes, change][-_HISTORY_SIZE:]
        for old in (*moves, *changes):
            old[stuck] = 0  # what was learnt of the curvature misleads: start anew from here
        active = np.setdiff1d(active, hopeless)
    return points


def _directions(gradients: Floats, moves: list[Floats], changes: list[Floats], scale: Floats) -> Floats:
    """Minus the inverse curvature times the gradient, by the two-loop recursion; always downhill."""
    rest, weights = gradients.copy(), list[Floats]()
    inverses = [_safe_inverse((move * change).sum(axis=1)) for move, change in zip(moves, changes, strict=True)]
    for move, change, inverse in zip(reversed(moves), reversed(changes), reversed(inverses), strict=True):
        weights.append(inverse * (move * rest).sum(axis=1))
        rest -= weights[-1][:, None] * change
    rest *= scale
    for move, change, inverse, weight in zip(moves, changes, inverses, reversed(weights), strict=True):
        rest += (weight - inverse * (change * rest).sum(axis=1))[:, None] * move
    uphill = (rest * gradients).sum(axis=1) <= 0
    return -np.where(uphill[:, None], scale * gradients, rest)


def _safe_inverse(products: Floats) -> Floats:
    """1 / product, and 0 where the pair says nothing of the curvature."""
    return np.where(products > 1e-12, 1 / np.where(products > 1e-12, products, 1.0), 0.0)


def _backtracking_line_search(
    objective: Objective, rows: Ints, points: Floats, directions: Floats, values: Floats, before: Floats
) -> tuple[Floats, Floats, Floats]:
    """Points along the directions with a lower value, or the same point; their values and gradients."""
    size, pending = np.ones(len(rows)), np.arange(len(rows))
    reached, lower, gradients = points.copy(), values.copy(), before.copy()
    slopes = (directions * before).sum(axis=1)
    for _ in range(_MAX_HALVINGS):
        tried = points[pending] + size[pending, None] * directions[pending]
        value, gradient = objective(rows[pending], tried)
        good = value <= values[pending] + _ARMIJO_CONSTANT * size[pending] * slopes[pending]
        taken = pending[good]
        reached[taken], lower[taken], gradients[taken] = tried[good], value[good], gradient[good]
        pending = pending[~good]
        if not len(pending):
            return reached, lower, gradients
        size[pending] /= 2
    return reached, lower, gradients
