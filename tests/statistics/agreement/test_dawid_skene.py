from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, plant_errors, simulate_annotations
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study
from finecomb.statistics.agreement.dawid_skene import (
    count_token_patterns,
    estimate_annotator_skills,
    fit_dawid_skene,
    mark_matrix,
    participation_matrix,
)
from finecomb.statistics.measures.unit_grid import UnitGrid, build_unit_grid
from finecomb.statistics.selection.view import view

PROTOCOL = Protocol(name="one", version="1", title="One", summary="One label.", labels=(Label(name="wrong"),))
# Without jitter, recall of errors is also recall of tokens.
PEOPLE = [
    SimulatedAnnotator(f"p{at}", recall, precision, 0.0, 0.0)
    for at, (recall, precision) in enumerate([(0.4, 0.9), (0.6, 0.8), (0.5, 0.7), (0.7, 0.9), (0.3, 0.6)])
]
NAMES = [each.id for each in PEOPLE]
# Precision counts tokens, and false alarms are shorter than errors; from 3,000 texts, see the test below.
PRECISION = np.array([0.925, 0.864, 0.771, 0.929, 0.683])


def world(texts: int, seed: int) -> tuple[Study, dict[str, Annotation], list[Document]]:
    documents = [Document(id=f"d{at}", text=" ".join(["word"] * 150)) for at in range(texts)]
    truth = {each.document: each for each in plant_errors(documents, PROTOCOL, rate=3, seed=seed)}
    work = simulate_annotations(documents, truth, PEOPLE, PROTOCOL, seed)
    study = Study.from_items([PROTOCOL, *documents, *(each.to_annotator() for each in PEOPLE), *work])
    return study, truth, documents


def matrices(study: Study, names: list[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], UnitGrid]:
    selection = view(study)
    grid = build_unit_grid(selection.study)
    return mark_matrix(selection, grid, names), participation_matrix(selection, grid, names), grid


def recovered(runs: int, texts: int) -> float:
    """Return the share of the known recalls and precisions that their intervals cover."""
    recall, hits = np.array([each.recall for each in PEOPLE]), []
    for seed in range(runs):
        skills = estimate_annotator_skills(
            count_token_patterns(*matrices(world(texts, seed)[0], NAMES)), 200, np.random.default_rng(seed)
        )
        for known, estimate in ((recall, skills.recall), (PRECISION, skills.precision)):
            hits.append((estimate[:, 1] <= known) & (known <= estimate[:, 2]))
    return float(np.mean(hits))


@pytest.mark.long
def test_recall_and_precision_of_simulated_annotators_are_found() -> None:
    assert recovered(6, 60) >= 0.9


@pytest.mark.long
def test_nine_in_ten_intervals_hold_the_truth() -> None:
    assert recovered(100, 60) >= 0.9


@pytest.mark.long
def test_the_known_precision_on_tokens_is_what_the_simulator_gives() -> None:
    study, truth, documents = world(3000, 999)
    marks = matrices(study, NAMES)[0]
    gold = Study.from_items([PROTOCOL, *documents, Annotator(id="truth", kind="gold"), *truth.values()])
    z = matrices(gold, ["truth"])[0]
    assert (marks & z).sum(axis=0) / marks.sum(axis=0) == pytest.approx(PRECISION, abs=0.001)
    assert marks[z[:, 0]].mean(axis=0) == pytest.approx([each.recall for each in PEOPLE], abs=0.02)


def slow_fit(marks: NDArray[np.bool_], read: NDArray[np.bool_], steps: int) -> tuple[list[float], list[float], float]:
    """Run EM token by token, as the module describes it."""
    tokens, people = (range(size) for size in marks.shape)
    z = [float(marks[t].sum() / read[t].sum()) for t in tokens]
    r, q, pi = slow_step(marks, read, z)
    for _ in range(steps):
        for t in tokens:
            wrong, sound = pi, 1 - pi
            for j in people:
                if read[t, j]:
                    wrong *= r[j] if marks[t, j] else 1 - r[j]
                    sound *= q[j] if marks[t, j] else 1 - q[j]
            z[t] = wrong / (wrong + sound)
        r, q, pi = slow_step(marks, read, z)
    return r, q, pi


def slow_step(
    marks: NDArray[np.bool_], read: NDArray[np.bool_], z: list[float]
) -> tuple[list[float], list[float], float]:
    r, q = [], []
    for j in range(marks.shape[1]):
        own = [t for t in range(len(z)) if read[t, j]]
        r.append((1 + sum(z[t] for t in own if marks[t, j])) / (2 + sum(z[t] for t in own)))
        q.append((0.01 + sum(1 - z[t] for t in own if marks[t, j])) / (1.01 + sum(1 - z[t] for t in own)))
    return r, q, (1 + sum(z)) / (2 + len(z))


def test_the_fit_is_that_of_the_slow_definition() -> None:
    rng = np.random.default_rng(0)
    documents = [Document(id=f"d{at}", text="a b c d e f g h") for at in range(6)]
    read = np.ones((6, 4), dtype=np.bool_)
    read[0, 1] = read[3, 2] = False
    grid = build_unit_grid(Study.from_items([PROTOCOL, *documents]))
    truth = rng.random(len(grid)) < 0.3
    each = np.repeat(read, grid.sizes, axis=0)
    marks = (rng.random((len(grid), 4)) < np.where(truth[:, None], 0.7, 0.1)) & each
    patterns = count_token_patterns(marks, read, grid)
    assert patterns.counts.sum() == len(grid)
    fit = fit_dawid_skene(patterns, patterns.counts.sum(axis=0)[None])
    recall, alarm, rate = slow_fit(marks, each, 500)
    assert fit.recall[0] == pytest.approx(recall, abs=1e-4)
    assert fit.alarm[0] == pytest.approx(alarm, abs=1e-4)
    assert fit.rate[0] == pytest.approx(rate, abs=1e-4)


def test_texts_with_one_reader_say_nothing() -> None:
    grid = build_unit_grid(Study.from_items([PROTOCOL, *(Document(id=id, text="a b") for id in "xy")]))
    read = np.array([[True, True, True], [True, False, False]])
    marks = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 0, 0]], dtype=np.bool_)
    assert count_token_patterns(marks, read, grid).counts.sum(axis=1).tolist() == [2, 0]


def test_one_text_has_no_interval() -> None:
    skills = estimate_annotator_skills(
        count_token_patterns(*matrices(world(1, 0)[0], NAMES)), 50, np.random.default_rng(0)
    )
    assert np.isfinite(skills.recall[:, 0]).all()
    assert np.isnan(skills.recall[:, 1:]).all()
