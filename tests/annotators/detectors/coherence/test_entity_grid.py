"""Tests of entity grids against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from finecomb.annotators.detectors.coherence.entity_grid import GRID_ROLES, EntityGrid, entity_roles, fit_entity_grid
from tests.annotators.detectors.coherence.example_parses import EMIL, GARDEN, NORA, make_parsed_story


def test_roles_of_entities() -> None:
    assert entity_roles(make_parsed_story(EMIL)[1][0]) == {"emil": "S", "letter": "O"}


def test_transitions_are_counted_with_one_added() -> None:
    grid = fit_entity_grid([make_parsed_story(NORA, EMIL, GARDEN)[1]])
    counts = np.ones((4, 4))
    # nora - S, S -, - S; emil - S, S -; letter - O, O -; garden - O
    for before, after, times in (("-", "S", 3), ("S", "-", 2), ("-", "O", 2), ("O", "-", 1)):
        counts[GRID_ROLES.index(before), GRID_ROLES.index(after)] += times
    assert np.allclose(grid.transitions, counts / counts.sum(axis=1, keepdims=True))


def test_a_sentence_scores_the_sum_of_its_transitions() -> None:
    grid = EntityGrid(np.array([[0.4, 0.3, 0.2, 0.1]] * 4))
    first, second = grid(make_parsed_story(NORA, EMIL)[1])
    assert first == 0
    assert second == pytest.approx(math.log(0.1) + math.log(0.4) + math.log(0.3))  # nora S-, emil -S, letter -O


def test_a_text_without_sentences_has_no_scores() -> None:
    assert EntityGrid(np.full((4, 4), 0.25))([]).shape == (0,)
