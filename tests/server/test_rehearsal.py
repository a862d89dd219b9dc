"""Tests of trial runs with simulated participants: small studies of every kind, and a larger one after Clark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from finecomb import protocols
from finecomb.annotators.simulated.simulated_people import CrowdTraits
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.protocol import Work
from finecomb.core.records import Allocation, Annotation, Annotator, Design, Document, Mark, OnboardingPhase, Settings
from finecomb.core.results import Finding
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.server.rehearsal import RehearsalClock, RehearsalResult, items_without_human_work, rehearse
from finecomb.statistics.comparisons.human_or_machine import human_or_machine_findings
from finecomb.statistics.judges.estimates import estimate_means
from finecomb.statistics.selection.view import view
from tests.core.test_design import CLARK, DOMAINS
from tests.databases import new_study_location, open_test_store
from tests.statistics.judges.judge_studies import PROTOCOL as SLIPS

TURING = protocols.load("turing")
TEXT = "The ferry number {} left the pier at nine with two passengers, a goat and a letter for the mayor. It came back."


def texts(count: int) -> list[Document]:
    keys = [(domain, model, n) for domain in DOMAINS for model in ("human", "gpt2", "gpt3") for n in range(count)]
    return [
        Document(id=f"{domain}-{model}-{n}", text=TEXT.format(place), meta={"domain": domain, "model": model})
        for place, (domain, model, n) in enumerate(keys)
    ]


def run_rehearsal(
    folder: Path, items: Sequence[StudyItem], traits: CrowdTraits, arrivals: int, seed: int = 2
) -> RehearsalResult:
    clock = RehearsalClock()
    with open_test_store(new_study_location("sqlite", folder), items, clock) as store:
        return rehearse(store, clock, traits, arrivals, seed)


def make_clark_study(people: int) -> list[StudyItem]:
    design = Design.model_validate({**CLARK, "people": people})
    return [Settings(protocols=(TURING.id,), design=design), TURING, *texts(10)]


def test_a_small_clark_study_fills_in_spite_of_rejections_and_leavers(tmp_path: Path) -> None:
    design = Design.model_validate({**CLARK, "people": 2, "cells": CLARK["cells"][2:3], "texts": 2})
    items: list[StudyItem] = [Settings(protocols=(TURING.id,), design=design), TURING, *texts(3)]
    rehearsal = run_rehearsal(tmp_path, items, CrowdTraits(copies=0.3, leaves=0.2), 60)
    assert rehearsal.is_filled
    assert [state.accepted for state in rehearsal.states] == [2, 2, 2]
    rejected = {visit.annotator for visit in rehearsal.visits if visit.rejected}
    people = {one.id: one for one in rehearsal.study.iter_annotators()}
    assert rejected == {id for id, one in people.items() if one.excluded}


@pytest.mark.parametrize("name", ["likert", "sections", "preference", "scarecrow"])
def test_people_go_through_any_protocol(tmp_path: Path, name: str) -> None:
    protocol = protocols.load(name)
    skip: tuple[OnboardingPhase, ...] = ("training", "qualification")
    pair = {"a": TEXT.format(1), "b": TEXT.format(2)} if protocol.work.unit == "pair" else {}
    documents = [
        Document(id=f"d{n}", text="" if pair else TEXT.format(n), context=pair, meta={"model": "m"}) for n in range(2)
    ]
    items: list[StudyItem] = [Settings(protocols=(protocol.id,), annotators=2, skip=skip), protocol, *documents]
    rehearsal = run_rehearsal(tmp_path, items, CrowdTraits(), 2)
    assert Counter(visit.outcome for visit in rehearsal.visits) == {"done": 2}
    assert len(rehearsal.study.submitted_work().annotations) == 4


def test_a_study_begins_without_those_who_were_there(tmp_path: Path) -> None:
    rehearsal = run_rehearsal(tmp_path, [*make_clark_study(1)[:2], *texts(2)], CrowdTraits(), 2)
    again = list(items_without_human_work(rehearsal.study))
    assert len(again) == 2 + len(texts(2))


def make_stratified_study(per_system: int, seed: int) -> list[StudyItem]:
    """Make texts of five systems with increasingly variable errors, drawn by system."""
    rng, text = np.random.default_rng(seed), " ".join(f"word{number:02}" for number in range(40))
    protocol = SLIPS.model_copy(update={"work": Work(texts=15)})
    settings = Settings(protocols=(protocol.id,), annotators=1, allocation=Allocation(strata=("model",)))
    items: list[StudyItem] = [settings, protocol, Annotator(id="gold", kind="gold")]
    for system, (mean, sd) in enumerate([(2, 0.7), (2, 0.7), (2, 0.7), (4, 1.5), (10, 4)]):
        for number in range(per_system):
            id, errors = f"{system}-{number}", int(np.clip(round(rng.normal(mean, sd)), 0, 30))
            items.append(Document(id=id, text=text, meta={"model": f"m{system}"}))
            marks = tuple(
                Mark(
                    id=f"{id}/{at}",
                    spans=(Span(7 * at, 7 * at + 6),),
                    quotes=(text[7 * at : 7 * at + 6],),
                    label="name",
                )
                for at in range(errors)
            )
            items.append(
                Annotation(id=id, document=id, annotator="gold", protocol=protocol.id, status="submitted", marks=marks)
            )
    return items


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_texts_drawn_by_the_server_give_an_estimate_that_holds_the_simulated_truth(tmp_path: Path, seed: int) -> None:
    items = make_stratified_study(60, seed)
    truth = np.mean([len(item.marks) for item in items if isinstance(item, Annotation)])
    rehearsal = run_rehearsal(tmp_path, items, CrowdTraits(skill={"": 1.0}), 5, seed)
    assert Counter(visit.outcome for visit in rehearsal.visits) == {"done": 5}
    work = [one for one in rehearsal.study.submitted_work().iter_annotations() if one.annotator != "gold"]
    drawn = Counter(one.meta["stratum"] for one in work)
    assert drawn["m4"] > 2 * drawn["m0"]
    assert all(TaskMeta.from_meta(one.meta).chance for one in work)
    plain, held = (
        estimate_means(rehearsal.study).find(method=method) for method in ("people alone", "in fixed shares")
    )
    assert held.low < truth < held.high
    assert plain.low < truth < plain.high
    assert held.high - held.low < plain.high - plain.low


@pytest.mark.long
def test_clarks_15_cells_fill_with_accepted_people_although_18_6_percent_are_rejected(tmp_path: Path) -> None:
    """A tenth of the paper's 130 people per cell; the full size takes about half an hour."""
    traits = CrowdTraits(skill={"": 0.5, "examples": 0.55}, copies=0.186, leaves=0.03)
    rehearsal = run_rehearsal(tmp_path, make_clark_study(13), traits, 600)
    assert [state.accepted for state in rehearsal.states] == [13] * 15
    people = [one for one in rehearsal.study.iter_annotators() if one.kind == "human"]
    accepted = Counter(one.cell for one in people if one.excluded is None)
    assert set(accepted) >= {state.cell.name for state in rehearsal.states}
    rejected = sum(one.excluded is not None for one in people)
    assert 0.12 < rejected / (195 + rejected) < 0.26
    by_id = {one.id: one for one in people}
    metas = {document.id: document.meta for document in rehearsal.study.iter_documents()}
    for annotation in rehearsal.study.iter_annotations():
        factors = by_id[annotation.annotator].factors
        assert metas[annotation.document]["domain"] == factors["domain"]
        assert metas[annotation.document]["model"] in ("human", factors["model"])
    require_covering_intervals(human_or_machine_findings(view(rehearsal.study), ("cell",), draws=0), traits)


def require_covering_intervals(findings: Sequence[Finding], traits: CrowdTraits) -> None:
    """Of fifteen 95% intervals, more than two would miss the known skill in four studies of a hundred."""
    rows = [row for row in findings if row.columns["measure"] == "accuracy"]
    assert [row.columns["evaluators"] for row in rows] == [13] * 15
    truths = [traits.condition_skill(str(row.columns["cell"]).partition("/")[0]) for row in rows]
    held = [row.estimate.low <= truth <= row.estimate.high for row, truth in zip(rows, truths, strict=True)]
    assert held.count(False) <= 2
