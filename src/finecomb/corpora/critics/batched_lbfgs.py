"""Batched L-BFGS: many small minimisation problems, one per row, solved in parallel array operations.

Nocedal and Wright (2006), algorithm 7.4, with a diagonal initial inverse Hessian and backtracking. Rows that have
converged drop out, so later iterations compute only the remaining rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Objective = Callable[[Ints, Floats], tuple[Floats, Floats]]
"""Function from row numbers and points (rows, D) to values (rows,) and gradients (rows, D)."""

_HISTORY_SIZE, _MAX_HALVINGS, _ARMIJO_CONSTANT = 10, 30, 1e-4


def minimise_rows(
    objective: Objective,
    start: Floats,
    scale: Floats,
    tolerance: float,
    max_iterations: int,
    max_step_size: float = np.inf,
) -> Floats:
    """Return a local minimum of each row's objective, starting from `start`, shape (rows, D).

    `scale`, shape (rows, D), approximates the inverse curvature per coordinate. A row has converged when half the
    product of its gradient and its next step, roughly the remaining decrease, is below `tolerance`, for the L-BFGS
    direction and for the scaled gradient. No step exceeds `max_step_size` along any coordinate.
    """
    points, active = start.copy(), np.arange(len(start))
    values, gradients = objective(active, points)
    moves, changes = list[Floats](), list[Floats]()  # (rows, D) each, most recent last
    for _ in range(max_iterations):
        directions = _descent_directions(
            gradients[active], [m[active] for m in moves], [c[active] for c in changes], scale[active]
        )
        slopes = (directions * gradients[active]).sum(axis=1)
        plain = (scale[active] * gradients[active] ** 2).sum(
            axis=1
        )  # the expected decrease with the initial curvature alone
        unconverged = np.maximum(-slopes, plain) / 2 > tolerance
        active, directions, slopes = active[unconverged], directions[unconverged], slopes[unconverged]
        if not len(active):
            break
        shorter = np.minimum(1.0, max_step_size / np.maximum(np.abs(directions).max(axis=1), 1e-300))
        directions = shorter[:, None] * directions
        move, change = np.zeros_like(points), np.zeros_like(points)
        accepted = _backtracking_line_search(
            objective, active, points[active], directions, values[active], gradients[active]
        )
        move[active], change[active] = accepted[0] - points[active], accepted[2] - gradients[active]
        points[active], values[active], gradients[active] = accepted
        stuck = active[np.abs(move[active]).max(axis=1) == 0]
        hopeless = stuck[np.sum([np.abs(old[stuck]).sum(axis=1) for old in moves], axis=0) == 0] if moves else stuck
        moves, changes = [*moves, move][-_HISTORY_SIZE:], [*changes, change][-_HISTORY_SIZE:]
        for old in (*moves, *changes):
            old[stuck] = 0  # the curvature estimate misleads; restart from here without history
        active = np.setdiff1d(active, hopeless)
    return points


def _descent_directions(gradients: Floats, moves: list[Floats], changes: list[Floats], scale: Floats) -> Floats:
    """Return minus the inverse Hessian times the gradient by the two-loop recursion, always a descent direction."""
    direction, weights = gradients.copy(), list[Floats]()
    products = [(move * change).sum(axis=1) for move, change in zip(moves, changes, strict=True)]
    inverses = [np.where(product > 1e-12, 1 / np.maximum(product, 1e-12), 0.0) for product in products]
    for move, change, inverse in zip(reversed(moves), reversed(changes), reversed(inverses), strict=True):
        weights.append(inverse * (move * direction).sum(axis=1))
        direction -= weights[-1][:, None] * change
    direction *= scale
    for move, change, inverse, weight in zip(moves, changes, inverses, reversed(weights), strict=True):
        direction += (weight - inverse * (change * direction).sum(axis=1))[:, None] * move
    uphill = (direction * gradients).sum(axis=1) <= 0
    return -np.where(uphill[:, None], scale * gradients, direction)


def _backtracking_line_search(
    objective: Objective, rows: Ints, points: Floats, directions: Floats, values: Floats, before: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return points along the directions with their values and gradients; a row stays if no lower value is found."""
    size, pending = np.ones(len(rows)), np.arange(len(rows))
    accepted_points, lower, gradients = points.copy(), values.copy(), before.copy()
    slopes = (directions * before).sum(axis=1)
    for _ in range(_MAX_HALVINGS):
        tried = points[pending] + size[pending, None] * directions[pending]
        value, gradient = objective(rows[pending], tried)
        good = value <= values[pending] + _ARMIJO_CONSTANT * size[pending] * slopes[pending]
        accepted = pending[good]
        accepted_points[accepted], lower[accepted], gradients[accepted] = tried[good], value[good], gradient[good]
        pending = pending[~good]
        if not len(pending):
            return accepted_points, lower, gradients
        size[pending] /= 2
    return accepted_points, lower, gradients
