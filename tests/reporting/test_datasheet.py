from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import finecomb as fc
from finecomb.core.records import Annotation, Annotator, Document, Recruitment, Settings
from finecomb.core.results import Estimate, Signature
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.reporting.datasheet import (
    Datasheet,
    DatasheetSource,
    build_datasheet,
    methods_paragraph,
    render_datasheet_json,
    render_datasheet_latex,
    render_datasheet_markdown,
)

ALPHA = Estimate(0.5, 0.4, 0.6, Signature.from_fields(statistic="alpha"))


def served() -> Study:
    protocol = load("scarecrow")
    settings = Settings(
        title="A_b & 50%",
        price=0.5,
        annotators=2,
        recruitment=Recruitment(platform="prolific"),
        protocols=(protocol.id,),
    )
    when = datetime(2026, 5, 1, 12, tzinfo=UTC)
    documents = [Document(id=f"d{n}", text="Some words here.", meta={"model": "m", "top_p": 0.9}) for n in range(3)]
    people = [Annotator(id=name, kind="human", survey={"age": 30}) for name in ("ann", "ben")]
    annotations = [
        Annotation(
            id=f"{d.id}-{p.id}", document=d.id, annotator=p.id, protocol=protocol.id, started=when, submitted=when,
            seconds=60, active_seconds=40,
        )
        for d in documents
        for p in people
    ]  # fmt: skip
    return Study.from_items([settings, protocol, *documents, *people, *annotations])


@pytest.fixture
def sheet() -> Datasheet:
    study = served()
    return build_datasheet(DatasheetSource(study, load("scarecrow"), ALPHA, ["statistic:rate"]))


def test_most_of_a_served_study_fills_itself(sheet: Datasheet) -> None:
    assert sheet.filled_share >= 0.6
    answers = {field.question: field.answer for field in sheet.fields}
    assert answers["How were evaluators paid?"] == "USD 0.50 per annotation"
    assert answers["How many evaluators judged each text?"] == "2 annotators per text; 2 planned"
    assert answers["Which decoding parameters did the systems use?"] == "top_p: 0.9"
    assert answers["When were the annotations collected?"] == "2026-05-01 to 2026-05-01"
    assert answers["Was there an ethics review?"] == ""
    assert {field.question for field in sheet.open_fields} == {q for q, a in answers.items() if not a}


def test_gold_is_no_evaluator() -> None:
    study = fc.demo()
    answers = {
        f.question: f.answer
        for f in build_datasheet(DatasheetSource(study, next(iter(study.protocols.values())))).fields
    }
    assert answers["How many evaluators of each type took part?"] == "5 human"


def test_every_form_has_every_question(sheet: Datasheet) -> None:
    assert all(field.question in render_datasheet_markdown(sheet) for field in sheet.fields)
    assert len(json.loads(render_datasheet_json(sheet))["fields"]) == len(sheet.fields)
    drawn = render_datasheet_latex(sheet)
    assert drawn.count(r"\item[") == len(sheet.fields)
    assert r"A\_b \& 50\%" in drawn


def test_the_paragraph_says_only_what_is_known(sheet: Datasheet) -> None:
    words = methods_paragraph(DatasheetSource(served(), load("scarecrow"), ALPHA))
    assert "3 texts by 1 system" in words
    assert "6 annotations" in words
    assert "0.50 [0.40, 0.60]" in words
    assert "open" not in words


def test_human_text_is_not_counted_as_a_system() -> None:
    study = fc.demo()
    assert "We evaluated 16 texts by 3 systems and people with the" in methods_paragraph(
        DatasheetSource(study, next(iter(study.protocols.values())))
    )


def test_an_empty_study_has_a_datasheet_of_questions() -> None:
    empty = build_datasheet(DatasheetSource(Study.from_items([]), None))
    assert empty.filled_share < 0.5
    assert "*open*" in render_datasheet_markdown(empty)
