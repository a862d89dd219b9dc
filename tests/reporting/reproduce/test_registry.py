"""Every exhibit of every paper, rendered from a simulated study of its design."""

from __future__ import annotations

import functools
import math
import re
import xml.etree.ElementTree as ET

import altair as alt
import pytest
import vl_convert

from finecomb.core.errors import FinecombError
from finecomb.reporting.figures.validation_charts import apply_theme, recolour_for_dark
from finecomb.reporting.reproduce.exhibits import Exhibit, PaperStudy, Rendering
from finecomb.reporting.reproduce.registry import PAPERS, find_paper
from tests.gallery import PAGE, PICTURES
from tests.paper_studies import paper_study, simulate_audit
from tests.reporting.svg_text_boxes import SVG, collisions, cut_words

EXHIBITS = [exhibit for paper in PAPERS.values() for exhibit in paper.exhibits]
OTHER_STUDY = {("deng", "Table 10"): "deng-languages", ("deng", "Figure 7"): "deng-languages"}
WITHOUT_DRAWING = {("scarecrow", "Figure 7"), ("scarecrow", "Figure 20"), ("thomson-reiter", "Figure 1"),
                   ("snac", "Figure 3"), ("snac", "Figure 5"), ("deng", "Figure 5")}  # fmt: skip
"""Figures that are texts: the paper prints words there."""


@functools.cache
def study(name: str) -> PaperStudy:
    whole = paper_study(name)
    return PaperStudy(whole, draws=20, audit=simulate_audit(whole) if name == "scarecrow" else None)


@functools.cache
def rendering(exhibit: Exhibit) -> Rendering:
    return exhibit.make(study(OTHER_STUDY.get((exhibit.paper, exhibit.number), exhibit.paper)))


@functools.cache
def drawn(exhibit: Exhibit) -> str:
    spec = apply_theme(rendering(exhibit).chart, dark=False)
    return str(vl_convert.vegalite_to_svg(spec, vl_version=alt.SCHEMA_VERSION.removeprefix("v").rsplit(".", 1)[0]))


def said(svg: str) -> list[float]:
    """The numbers at the end of what marks say about themselves."""
    words = [element.get("aria-label", "") for element in ET.fromstring(svg).iter(f"{SVG}path")]
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
    assert sorted(said(drawn(exhibit))) == pytest.approx(sorted(values), rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("exhibit", CHARTS, ids=name_of)
def test_no_words_of_a_chart_hide_others(exhibit: Exhibit) -> None:
    assert collisions(drawn(exhibit)) == []
    assert cut_words(drawn(exhibit)) == []  # names of systems and labels were, where fonts are wider than ours


@pytest.mark.long
def test_systems_of_an_audit_stand_in_one_order() -> None:
    """Each column was ordered by its own numbers, so that rows side by side were different systems."""
    chart = rendering(find_paper("scarecrow").find_exhibit("Figure 16")).chart
    assert chart is not None
    columns = chart.to_dict()["hconcat"]
    assert len({tuple(column["spec"]["layer"][0]["encoding"]["y"]["sort"]) for column in columns}) == 1


@pytest.mark.long
def test_a_dot_stands_where_its_number_is() -> None:
    exhibit = find_paper("scarecrow").find_exhibit("Figure 17")
    shapes = [one for one in ET.fromstring(drawn(exhibit)).iter(f"{SVG}path") if ": " in one.get("aria-label", "")]
    places = {
        shape.get("aria-label", ""): float(re.findall(r"-?[\d.]+", shape.get("transform", ""))[0]) for shape in shapes
    }
    pairs = sorted((float(words.rsplit(": ", 1)[1]), x) for words, x in places.items())
    (low, left), *_, (high, right) = pairs
    for value, x in pairs:
        assert x == pytest.approx(left + (value - low) / (high - low) * (right - left), abs=0.1)


def test_at_night_ink_is_light() -> None:
    spec = {"mark": {"color": "#1a1d21"}, "scale": ["#204b7f"], "text": "#1a1d21 is a colour"}
    turned = recolour_for_dark(spec)
    assert turned == {"mark": {"color": "#e4e6e9"}, "scale": ["#5d92d6"], "text": "#1a1d21 is a colour"}


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
