"""Figures of a report's first page where there is much to show: many texts, many labels, long names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from finecomb.core.estimate import Estimate, Signature
from finecomb.core.palette import SLOTS, LabelStyle
from finecomb.reporting.figures import svg
from finecomb.reporting.figures.figure_model import DotFigure, DotRow, LabelPanel, PanelFigure, TextBar, TextBarFigure
from finecomb.reporting.site.front_page import add_line_breaks, print_footer_css, render_single_figure

SLOT = next(slot for family in SLOTS.values() for slot in family)


def estimate(value: float) -> Estimate:
    return Estimate(value, value / 2, 2 * value, Signature.from_fields(statistic="test"))


def panel(title: str, *found: float, name: str = "comb") -> LabelPanel:
    rows = tuple(DotRow(name, estimate(value), nothing="" if value else "none in 9 texts") for value in found)
    return LabelPanel(LabelStyle(title, title, SLOT, title[:2].upper(), "a"), rows)


def panels(*shown: LabelPanel) -> PanelFigure:
    return PanelFigure("kinds", "2 Kinds", "", (), "s", panels=shown)


def combs(count: int) -> TextBarFigure:
    teeth = tuple(TextBar(f"d{number}", float(count - number), f"texts/{number}.html") for number in range(count))
    return TextBarFigure("texts", "6 Texts", "", (), "s", combs=(("comb", teeth),))


@pytest.mark.parametrize(("count", "teeth", "words"), [(60, 60, "60 texts<"), (529, 59, "529 texts, 9 to a tooth<")])
def test_a_comb_of_many_texts_keeps_to_one_row(count: int, teeth: int, words: str) -> None:
    page = render_single_figure(combs(count))
    assert len(re.findall(r'<a href="texts/\d+.html" style', page)) == teeth
    assert words in page
    assert int(ElementTree.fromstring(svg.standalone_svg(combs(count))).attrib["width"]) < 1000


def test_a_joined_tooth_is_as_long_as_the_mean_and_opens_the_first_text() -> None:
    first = svg.merge_text_bars(combs(529).combs[0][1])[0]
    assert 'style="height:76px" title="9 texts from d0: 525.0"' in render_single_figure(
        combs(529)
    )  # the longest fills its place
    assert (first.value, first.page, first.document) == (525.0, "texts/0.html", "9 texts from d0")


def test_labels_that_nobody_used_are_one_sentence() -> None:
    figure = panels(panel("date", 0, 0), panel("name", 0.2, 0), panel("word", 0, 0))
    for drawn in (render_single_figure(figure), svg.standalone_svg(figure)):
        assert drawn.count("none in 9 texts") == 1
        assert "Never used, in any system: date, word." in drawn


def test_labels_are_drawn_where_nobody_used_any() -> None:
    page = render_single_figure(panels(panel("date", 0)))
    assert "none in 9 texts" in page
    assert "Never used" not in page


def test_long_names_of_systems_take_the_width_of_a_phone() -> None:
    assert 'class="label-panels long"' in render_single_figure(panels(panel("name", 0.2, name="metricsystem2")))
    assert 'class="label-panels"' in render_single_figure(panels(panel("name", 0.2)))


def test_rows_of_many_readers_stand_closer_together() -> None:
    rows = tuple(DotRow(f"r{number}", estimate(1)) for number in range(17))
    few, many = (
        render_single_figure(DotFigure("f", "4 Readers", "", (), "s", rows=part)) for part in (rows[:16], rows)
    )
    assert 'height="36"' in few
    assert 'height="36"' not in many


def test_names_break_between_their_parts() -> None:
    assert add_line_breaks("accuracy/un_translated<b>") == "accuracy/<wbr>un_<wbr>translated&lt;b&gt;"


def test_words_in_the_margin_cannot_end_their_string() -> None:
    assert 'content:"a \\"b\\" \\\\ c"' in print_footer_css('a "b" \\ c')
