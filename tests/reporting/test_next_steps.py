"""Suggested next steps for studies with different content."""

from __future__ import annotations

from pathlib import Path

import finecomb as fc
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study
from finecomb.reporting.next_steps import next_steps
from tests.test_cli import run


def commands(study: Study) -> list[str]:
    steps = next_steps(study, "s")
    assert all(step.reason.endswith((".", "?")) for step in steps)
    return [step.command for step in steps]


def study(*annotators: Annotator, protocol: str = "scarecrow", **meta: str) -> Study:
    """Return two texts that every annotator has annotated without a mark."""
    shipped = fc.protocol(protocol)
    documents = [Document(id=id, text="One two.", meta=meta) for id in ("a", "b")]
    annotations = [
        Annotation(id=f"{d.id}/{a.id}", document=d.id, annotator=a.id, protocol=shipped.id)
        for d in documents
        for a in annotators
    ]
    return Study.from_items([shipped, *documents, *annotators, *annotations])


def people(count: int) -> list[Annotator]:
    return [Annotator(id=f"p{number}", kind="human") for number in range(count)]


def test_a_study_without_annotations_collects_them() -> None:
    assert commands(study()) == ["finecomb serve s", "finecomb annotate s --model MODEL", "finecomb rehearse s"]
    assert commands(Study.from_items([])) == ["finecomb merge s texts.csv"]


def test_people_who_read_the_same_texts_can_be_compared() -> None:
    assert commands(study(*people(1))) == ["finecomb measure s", "finecomb report s -o report"]
    assert commands(study(*people(3))) == ["finecomb agree s", "finecomb measure s", "finecomb gold s -o s-gold"]


def test_a_model_is_scored_against_gold_or_compared_with_people() -> None:
    model, gold = Annotator(id="gpt 5", kind="llm"), Annotator(id="gold", kind="gold")
    assert commands(study(*people(2), model))[0] == "finecomb calibrate s --judge 'gpt 5'"
    assert commands(study(*people(2), model, gold))[0] == "finecomb score s"


def test_ratings_are_averaged_by_their_question() -> None:
    assert "finecomb measure s --measure answer:coherence" in commands(study(*people(2), protocol="likert"))
    assert commands(study(*people(2), protocol="turing"))[1] == "finecomb test s --what human-or-machine"


def test_the_command_names_the_study_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "my study"
    fc.write(fc.demo(), folder)
    lines = run("next", folder).stdout.splitlines()
    assert lines[:2] == [f"finecomb serve '{folder}'", "    80 of 128 annotations by people are complete."]
    assert [step.command for step in fc.next_steps(folder)] == lines[::2]
