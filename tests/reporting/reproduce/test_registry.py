"""Every exhibit of every paper, rendered from a simulated study of its design."""

from __future__ import annotations

import functools
import math
import re
import xml.etree.ElementTree as ET

import pytest

from finecomb.core.errors import FinecombError
from finecomb.reporting.reproduce.exhibits import Exhibit, PaperStudy, RenderedExhibit
from finecomb.reporting.reproduce.registry import PAPERS, find_paper
from tests.gallery import PAGE, PICTURES
from tests.paper_studies import paper_study, simulate_audit
from tests.reporting.svg_text_boxes import SVG, collisions, cut_words

EXHIBITS = [exhibit for paper in PAPERS.values() for exhibit in paper.exhibits]
OTHER_STUDY = {("deng", "Table 10"): "deng-languages", ("deng", "Figure 7"): "deng-languages"}
WITHOUT_DRAWING = {("scarecrow", "Figure 7"), ("scarecrow", "Figure 20"), ("thomson-reiter", "Figure 1"),
                   ("snac", "Figure 3"), ("snac", "Figure 5"), ("deng", "Figure 5")}  # fmt: skip
"""Figures that are texts in the paper."""


@functools.cache
def study(name: str) -> PaperStudy:
    whole = paper_study(name)
    return PaperStudy(whole, draws=20, audit=simulate_audit(whole) if name == "scarecrow" else None)


@functools.cache
def rendering(exhibit: Exhibit) -> RenderedExhibit:
    return exhibit.make(study(OTHER_STUDY.get((exhibit.paper, exhibit.number), exhibit.paper)))


@functools.cache
def drawn(exhibit: Exhibit) -> str:
    chart = rendering(exhibit).chart
    assert chart is not None
    return chart.to_svg()


def described_values(svg: str) -> list[float]:
    """Return the numbers at the end of the descriptions of all marks."""
    words = [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}title")]
    return [float(match[1]) for match in (re.search(r": (-?[\d.e+-]+)$", text) for text in words) if match]


CHARTS = [
    exhibit for exhibit in EXHIBITS
    if exhibit.number.startswith("Figure") and (exhibit.paper, exhibit.number) not in WITHOUT_DRAWING
    and (exhibit.paper, exhibit.number) not in {("deng", "Figure 6"), ("deng", "Figure 7")}
]  # fmt: skip


def name_of(exhibit: Exhibit) -> str:
    return f"{exhibit.paper} {exhibit.number}"


@pytest.mark.long
@pytest.mark.parametrize("exhibit", EXHIBITS, ids=name_of)
def test_every_exhibit_is_made(exhibit: Exhibit) -> None:
    made = rendering(exhibit)
    assert made.table
    assert made.caption
    numbers = [value for row in made.table for value in row.values() if isinstance(value, float)]
    assert not any(math.isnan(number) for number in numbers)
    if exhibit.number.startswith("Figure"):
        assert made.chart is not None or made.graphs or (exhibit.paper, exhibit.number) in WITHOUT_DRAWING


@pytest.mark.long
@pytest.mark.parametrize("exhibit", CHARTS, ids=name_of)
def test_a_chart_has_a_mark_for_each_row_of_its_table_and_says_its_number(exhibit: Exhibit) -> None:
    values = [float(str(row["value" if "value" in row else "start"])) for row in rendering(exhibit).table]
    assert values
    assert sorted(described_values(drawn(exhibit))) == pytest.approx(sorted(values), rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("exhibit", CHARTS, ids=name_of)
def test_no_words_of_a_chart_hide_others(exhibit: Exhibit) -> None:
    assert collisions(drawn(exhibit)) == []
    assert cut_words(drawn(exhibit)) == []  # names of systems and labels overlapped in wide fonts


@pytest.mark.long
def test_systems_of_an_audit_stand_in_one_order() -> None:
    """Each column was once sorted by its own numbers, so that neighbouring rows showed different systems."""
    chart = rendering(find_paper("scarecrow").find_exhibit("Figure 16")).chart
    assert chart is not None
    assert chart.columns == 3
    assert len({panel.y for panel in chart.panels}) == 1
    measures = [{panel.x.title for panel in chart.panels[column :: chart.columns]} for column in range(3)]
    assert measures == [{"marks per text"}, {"share confirmed"}, {"confirmed marks per text"}]


@pytest.mark.long
def test_a_dot_stands_where_its_number_is() -> None:
    exhibit = find_paper("scarecrow").find_exhibit("Figure 17")
    dots = list(ET.fromstring(drawn(exhibit)).iter(f"{SVG}circle"))
    places = {str(dot.findtext(f"{SVG}title")): float(dot.get("cx", "nan")) for dot in dots}
    assert len(places) == len(rendering(exhibit).table)
    pairs = sorted((float(words.rsplit(": ", 1)[1]), x) for words, x in places.items())
    (low, left), *_, (high, right) = pairs
    for value, x in pairs:
        assert x == pytest.approx(left + (value - low) / (high - low) * (right - left), abs=0.1)


@pytest.mark.long
@pytest.mark.parametrize("exhibit", CHARTS, ids=name_of)
def test_a_chart_in_the_width_of_a_column_keeps_its_values_and_hides_no_words(exhibit: Exhibit) -> None:
    chart = rendering(exhibit).chart
    assert chart is not None
    narrow = chart.to_svg(width=420)
    assert described_values(narrow) == described_values(drawn(exhibit))
    assert collisions(narrow) == []


def test_numbers_are_unique_and_functions_are_named() -> None:
    for paper in PAPERS.values():
        numbers = [exhibit.number for exhibit in paper.exhibits]
        assert len(set(numbers)) == len(numbers)
        assert all(exhibit.needs and exhibit.title for exhibit in paper.exhibits)


def test_an_unknown_paper_or_exhibit_is_named_with_the_nearest() -> None:
    with pytest.raises(FinecombError, match="did you mean 'scarecrow'"):
        find_paper("scarecow")
    with pytest.raises(FinecombError, match="did you mean 'Figure 2'"):
        find_paper("scarecrow").find_exhibit("Figur 2")


def test_the_gallery_shows_every_figure_that_is_drawn() -> None:
    page = PAGE.read_text(encoding="utf-8")
    drawings = [*CHARTS, *(find_paper("deng").find_exhibit(number) for number in ("Figure 6", "Figure 7"))]
    for exhibit in drawings:
        stem = f"{exhibit.paper}-{exhibit.file_stem}"
        assert f"pictures/gallery/{stem}.svg" in page, name_of(exhibit)
        assert (PICTURES / f"{stem}.svg").is_file()
