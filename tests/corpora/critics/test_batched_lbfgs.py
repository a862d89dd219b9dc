from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from finecomb.corpora.critics.batched_lbfgs import Floats, Ints, minimise_rows


def test_quadratics_of_every_shape_are_solved_together() -> None:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(20, 6, 6))
    curvatures = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(6)
    lines = rng.normal(size=(20, 6))

    def objective(rows: Ints, points: Floats) -> tuple[Floats, Floats]:
        images = np.einsum("nij,nj->ni", curvatures[rows], points)
        return (points * (images / 2 - lines[rows])).sum(axis=1), images - lines[rows]

    scale = 1 / np.einsum("nii->ni", curvatures)
    reached = minimise_rows(objective, np.zeros((20, 6)), scale, 1e-12, 500)
    assert reached == pytest.approx(np.linalg.solve(curvatures, lines[..., None])[..., 0], abs=1e-4)


def test_a_curved_valley_is_followed_to_its_end() -> None:
    def objective(rows: Ints, points: Floats) -> tuple[Floats, Floats]:
        return (
            np.array([optimize.rosen(point) for point in points]),
            np.array([optimize.rosen_der(point) for point in points]),
        )

    start = np.array([[-1.2, 1.0], [2.0, 2.0], [1.0, 1.0]])
    assert minimise_rows(objective, start, np.full((3, 2), 1e-3), 1e-12, 500) == pytest.approx(
        np.ones((3, 2)), abs=1e-4
    )
