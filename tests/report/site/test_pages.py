"""Figures of a report's first page where there is much to show: many texts, many labels, long names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from finecomb.core.estimate import Estimate, Signature
from finecomb.core.palette import SLOTS, Look
from finecomb.report.site import svg
from finecomb.report.site.model import CombFigure, DotFigure, DotRow, LabelPanel, PanelFigure, Tooth
from finecomb.report.site.pages import breakable, print_margin, single_figure

SLOT = next(slot for family in SLOTS.values() for slot in family)


def estimate(value: float) -> Estimate:
    return Estimate(value, value / 2, 2 * value, Signature.of(statistic="test"))


def panel(title: str, *found: float, name: str = "comb") -> LabelPanel:
    rows = tuple(DotRow(name, estimate(value), nothing="" if value else "none in 9 texts") for value in found)
    return LabelPanel(Look(title, title, SLOT, title[:2].upper(), "a"), rows)


def panels(*shown: LabelPanel) -> PanelFigure:
    return PanelFigure("kinds", "2 Kinds", "", (), "s", panels=shown)


def combs(count: int) -> CombFigure:
    teeth = tuple(Tooth(f"d{number}", float(count - number), f"texts/{number}.html") for number in range(count))
    return CombFigure("texts", "6 Texts", "", (), "s", combs=(("comb", teeth),))


@pytest.mark.parametrize(("count", "teeth", "words"), [(60, 60, "60 texts<"), (529, 59, "529 texts, 9 to a tooth<")])
def test_a_comb_of_many_texts_keeps_to_one_row(count: int, teeth: int, words: str) -> None:
    page = single_figure(combs(count))
    assert len(re.findall(r'<a href="texts/\d+.html" style', page)) == teeth
    assert words in page
    assert int(ElementTree.fromstring(svg.standalone(combs(count))).attrib["width"]) < 1000


def test_a_joined_tooth_is_as_long_as_the_mean_and_opens_the_first_text() -> None:
    first = svg.joined_teeth(combs(529).combs[0][1])[0]
    assert 'style="height:76px" title="9 texts from d0: 525.0"' in single_figure(
        combs(529)
    )  # the longest fills its place
    assert (first.value, first.page, first.document) == (525.0, "texts/0.html", "9 texts from d0")


def test_labels_that_nobody_used_are_one_sentence() -> None:
    figure = panels(panel("date", 0, 0), panel("name", 0.2, 0), panel("word", 0, 0))
    for drawn in (single_figure(figure), svg.standalone(figure)):
        assert drawn.count("none in 9 texts") == 1
        assert "Never used, in any system: date, word." in drawn


def test_labels_are_drawn_where_nobody_used_any() -> None:
    page = single_figure(panels(panel("date", 0)))
    assert "none in 9 texts" in page
    assert "Never used" not in page


def test_long_names_of_systems_take_the_width_of_a_phone() -> None:
    assert 'class="label-panels long"' in single_figure(panels(panel("name", 0.2, name="metricsystem2")))
    assert 'class="label-panels"' in single_figure(panels(panel("name", 0.2)))


def test_rows_of_many_readers_stand_closer_together() -> None:
    rows = tuple(DotRow(f"r{number}", estimate(1)) for number in range(17))
    few, many = (single_figure(DotFigure("f", "4 Readers", "", (), "s", rows=part)) for part in (rows[:16], rows))
    assert 'height="36"' in few
    assert 'height="36"' not in many


def test_names_break_between_their_parts() -> None:
    assert breakable("accuracy/un_translated<b>") == "accuracy/<wbr>un_<wbr>translated&lt;b&gt;"


def test_words_in_the_margin_cannot_end_their_string() -> None:
    assert 'content:"a \\"b\\" \\\\ c"' in print_margin('a "b" \\ c')
