from __future__ import annotations

from collections.abc import Mapping

import pytest

from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.results import Estimate
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.reporting.figures.figure_model import Axis, BaseFigure, Chart, DotFigure
from finecomb.reporting.site.front_page import render_front_page
from finecomb.reporting.site.report_content import FIGURES, ReportSource, build_report, build_report_source

SCARECROW = load("scarecrow")


def uneven_study(readers: int = 1) -> Study:
    """Build two systems: texts of 3 and 30 words with one mark each, and two texts of 10 words with one mark each."""
    words = {"a1": 3, "a2": 30, "b1": 10, "b2": 10}
    documents = [Document(id=id, text="word " * count, meta={"model": id[0]}) for id, count in words.items()]
    people = [Annotator(id=f"r{number}", kind="human") for number in range(readers)]
    work = [
        Annotation(
            id=f"{id}/{person.id}", document=id, annotator=person.id, protocol=SCARECROW.id,
            marks=(Mark(id=f"{id}/{person.id}/m", spans=(Span(0, 4),), quotes=("word",), label="redundant"),),
        )
        for id in words
        for person in people
    ]  # fmt: skip
    return Study.from_items([SCARECROW, *documents, *people, *work])


def test_the_difference_is_that_of_the_rates_beside_it() -> None:
    """Rates once averaged over words and the difference over texts, so 5.1 and 5.3 differed by 0.6."""
    content = build_report(build_report_source(uneven_study(), "uneven", draws=50), "today", lambda id: "")
    systems = next(figure for figure in content.figures if figure.id == "systems")
    assert isinstance(systems, DotFigure)
    values = {row.name: row.estimate.value for row in systems.rows}
    assert values == pytest.approx({"a": (100 / 3 + 100 / 30) / 2, "b": 10})
    assert content.headline.difference
    assert content.headline.difference.rows[0].estimate.value == pytest.approx(values["a"] - values["b"])
    assert systems.axis.ticks[-1] >= 30  # the highest text value lies on the axis


def test_agreement_of_one_reader_is_a_sentence_and_no_empty_plot() -> None:
    content = build_report(build_report_source(uneven_study(), "uneven", draws=20), "today", lambda id: "")
    trust = next(figure for figure in content.figures if figure.id == "trust")
    assert trust.empty == "Nothing to draw: no text has two or more annotators."
    assert trust.empty in render_front_page(content)
    with_two = build_report(build_report_source(uneven_study(2), "uneven", draws=20), "today", lambda id: "")
    assert next(figure for figure in with_two.figures if figure.id == "trust").empty == ""


def test_nothing_is_less_than_nothing() -> None:
    assert Axis(0, 1, (), 2).format_value(-0.001) == "0.00"
    assert Axis(0, 1, (), 2).format_value(-0.01) == "−0.01"


def test_a_figure_of_a_plugin_is_part_of_the_report_and_its_errors_are_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: ReportSource, systems: Mapping[str, Estimate]) -> BaseFigure:
        raise KeyError("lengths")

    monkeypatch.setitem(FIGURES, "lengths", lambda source, systems: Chart("lengths", "Lengths of texts", "Words."))
    monkeypatch.setitem(FIGURES, "text-ages", fail)
    report = build_report(build_report_source(uneven_study(), "s"), "today", str)
    assert "Lengths of texts" in [figure.title.partition(" ")[2] for figure in report.figures]
    assert "Text ages figure not available: KeyError: 'lengths'" in report.notes
