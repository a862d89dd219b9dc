"""Figures on the first page of a report with many texts, many labels and long names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from finecomb.core.palette import SLOTS_BY_FAMILY, LabelStyle
from finecomb.core.results import Estimate, Signature
from finecomb.reporting.figures.figure_model import (
    DotFigure,
    DotRow,
    LabelPanel,
    PanelFigure,
    TextBar,
    TextBarFigure,
    merge_text_bars,
)
from finecomb.reporting.site.front_page import add_line_breaks, printed_page_footer_css, render_figure_page_body

SLOT = next(slot for family in SLOTS_BY_FAMILY.values() for slot in family)


def estimate(value: float) -> Estimate:
    return Estimate(value, value / 2, 2 * value, Signature.from_fields(statistic="test"))


def panel(title: str, *found: float, name: str = "comb") -> LabelPanel:
    rows = tuple(DotRow(name, estimate(value), nothing="" if value else "none in 9 texts") for value in found)
    return LabelPanel(LabelStyle(title, title, SLOT, title[:2].upper(), "a"), rows)


def panels(*shown: LabelPanel) -> PanelFigure:
    return PanelFigure("kinds", "2 Kinds", "", (), "s", panels=shown)


def bar_figure(count: int) -> TextBarFigure:
    bars = tuple(TextBar(f"d{number}", float(count - number), f"texts/{number}.html") for number in range(count))
    return TextBarFigure("texts", "6 Texts", "", (), "s", groups=(("comb", bars),))


@pytest.mark.parametrize(("count", "bars", "words"), [(60, 60, "60 texts<"), (529, 59, "529 texts, 9 per bar<")])
def test_many_texts_of_a_system_share_bars(count: int, bars: int, words: str) -> None:
    page = render_figure_page_body(bar_figure(count))
    assert len(re.findall(r'<a href="texts/\d+.html" style', page)) == bars
    assert words in page
    assert int(ElementTree.fromstring(bar_figure(count).to_svg()).attrib["width"]) < 1000


def test_a_merged_bar_has_the_mean_height_and_links_to_the_first_text() -> None:
    first = merge_text_bars(bar_figure(529).groups[0][1])[0]
    assert 'style="height:76px" title="9 texts, starting with d0: 525.0"' in render_figure_page_body(
        bar_figure(529)
    )  # the longest bar has the full height
    assert (first.value, first.page, first.document) == (525.0, "texts/0.html", "9 texts, starting with d0")


def test_unused_labels_are_listed_in_one_sentence() -> None:
    figure = panels(panel("date", 0, 0), panel("name", 0.2, 0), panel("word", 0, 0))
    for drawn in (render_figure_page_body(figure), figure.to_svg()):
        assert drawn.count("none in 9 texts") == 1
        assert "Labels without a mark in any system: date, word." in drawn


def test_labels_are_drawn_where_nobody_used_any() -> None:
    page = render_figure_page_body(panels(panel("date", 0)))
    assert "none in 9 texts" in page
    assert "Labels without a mark" not in page


def test_long_names_of_systems_take_the_width_of_a_phone() -> None:
    assert 'class="label-panels long"' in render_figure_page_body(panels(panel("name", 0.2, name="metricsystem2")))
    assert 'class="label-panels"' in render_figure_page_body(panels(panel("name", 0.2)))


def test_rows_of_many_readers_stand_closer_together() -> None:
    rows = tuple(DotRow(f"r{number}", estimate(1)) for number in range(17))
    few, many = (
        render_figure_page_body(DotFigure("f", "4 Readers", "", (), "s", rows=part)) for part in (rows[:16], rows)
    )
    assert 'height="36"' in few
    assert 'height="36"' not in many


def test_names_break_between_their_parts() -> None:
    assert add_line_breaks("accuracy/un_translated<b>") == "accuracy/<wbr>un_<wbr>translated&lt;b&gt;"


def test_words_in_the_margin_cannot_end_their_string() -> None:
    assert 'content:"a \\"b\\" \\\\ c"' in printed_page_footer_css('a "b" \\ c')
