"""Figures as SVG, PNG, PDF and Altair charts, in both themes and in several widths and font sizes."""

from __future__ import annotations

import math
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.palette import SLOTS_BY_FAMILY, LabelStyle
from finecomb.core.results import Estimate, Signature
from finecomb.reporting.figures.figure_model import (
    Axis,
    Bar,
    BarFigure,
    BaseFigure,
    Categories,
    Cell,
    Chart,
    Dot,
    DotFigure,
    DotRow,
    FigureStack,
    LabelPanel,
    Line,
    PanelFigure,
    PlotPanel,
    Raster,
    Text,
    TextBar,
    TextBarFigure,
    build_axis,
)
from finecomb.reporting.figures.topic_covariance import topic_covariance_chart
from finecomb.reporting.page_shell import DARK_COLOURS, LIGHT_COLOURS
from tests.reporting.svg_text_boxes import SVG, collisions, cut_words

SLOT = SLOTS_BY_FAMILY["A"][1]
STYLE = LabelStyle("off", "Off-prompt", SLOT, "OP", "o")
AXIS = Axis(0, 1, (0, 0.5, 1), title="share of words")


def estimate(value: float, half: float = 0.1) -> Estimate:
    return Estimate(value, value - half, value + half, Signature(()))


ROWS = (
    DotRow("small", estimate(0.6), text_values=(0.5, 0.7), second=estimate(0.2)),
    DotRow("large", estimate(0.3), open=True),
    DotRow("empty", Estimate(math.nan, math.nan, math.nan, Signature(()), "no texts")),
)
FIGURES: dict[str, BaseFigure] = {
    "dots": DotFigure(title="Dots", caption="With 95% intervals.", rows=ROWS, axis=AXIS, band=estimate(0.5)),
    "two columns": DotFigure(rows=ROWS, axis=AXIS, headers=("", "one", "two", ""), second_axis=AXIS),
    "panels": PanelFigure(panels=tuple(LabelPanel(STYLE, ROWS[:2]) for _ in range(7)), axis=AXIS),
    "bars": BarFigure(bars=(("people", 3.0, "$3.00"), ("people", 1.0, "$1.00")), total="$4.00"),
    "texts": TextBarFigure(groups=(("small", (TextBar("a", 2.0, "a.html"), TextBar("b", 0.0, "b.html"))),)),
    "marks": Chart(
        panels=(
            PlotPanel(AXIS, Categories(("a", "b")), (Bar(0, "a", 0.5, SLOT, words="OP"), Text(0.5, "a", "50%", dx=4))),
            PlotPanel(
                Categories(("x", "y")), Categories(("a", "b")), (Cell("x", "a", 0.5, "7"), Cell("y", "b", 1, "9"))
            ),
            PlotPanel(AXIS, AXIS, (Line(((0, 0), (1, 1))), Dot(0.5, 0.4, 0.4, 0.6, 0.3, 0.5, name="OP", colour=SLOT))),
            PlotPanel(Categories(("0", "1")), AXIS, (Bar("0", 0, 0.4), Bar("1", 0, 0.9))),
        ),
        columns=2,
        legend=(STYLE,),
        notes=("A note.",),
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_words_overlap_or_are_cut_in_any_width(name: str) -> None:
    for width in (None, 480, 900):
        drawn = FIGURES[name].to_svg(width=width)
        assert collisions(drawn) == []
        if width:
            assert float(ET.fromstring(drawn).attrib["width"]) == pytest.approx(width, abs=130)
    assert cut_words(FIGURES[name].to_svg()) == []


def test_a_figure_is_laid_out_anew_for_its_width() -> None:
    chart = FIGURES["panels"]
    first_line = [chart.to_svg(width=width).count("translate(") for width in (420, 1200)]
    tops = [
        len(set(re.findall(r"<g transform=\"translate\([\d.]+ ([\d.]+)\)", chart.to_svg(width=w)))) for w in (420, 1200)
    ]
    assert tops[0] > tops[1]  # fewer panels side by side, hence more lines
    assert first_line[0] == first_line[1]  # nothing is left out


def test_everything_grows_with_the_font_size() -> None:
    small, large = (ET.fromstring(FIGURES["dots"].to_svg(font_size=size)) for size in (12, 24))
    assert float(large.attrib["width"]) == pytest.approx(2 * float(small.attrib["width"]), abs=1)
    assert large.attrib["viewBox"] == small.attrib["viewBox"]
    same_width = ET.fromstring(FIGURES["dots"].to_svg(width=800, font_size=24))
    assert float(same_width.attrib["width"]) == pytest.approx(800, abs=1)


@pytest.mark.parametrize("name", FIGURES)
def test_a_theme_has_its_own_colours_and_leaves_no_variable(name: str) -> None:
    light, dark = FIGURES[name].to_svg(), FIGURES[name].to_svg(theme="dark")
    assert "var(" not in light + dark
    assert f'fill="{LIGHT_COLOURS["ink"]}"' in light
    assert f'fill="{DARK_COLOURS["ink"]}"' in dark
    assert LIGHT_COLOURS["ink"] not in dark
    if "panels" in name:
        assert SLOT.light in light
        assert SLOT.dark in dark
        assert SLOT.light not in dark


def test_a_drawing_has_a_title_a_description_and_the_value_of_each_dot() -> None:
    root = ET.fromstring(FIGURES["dots"].to_svg(heading=False))
    assert (root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")) == ("Dots", "With 95% intervals.")
    assert "Dots" not in [text.text for text in root.iter(f"{SVG}text")]
    values = [str(dot.findtext(f"{SVG}title")) for dot in root.iter(f"{SVG}circle")]
    assert values == ["small: 0.6, from 0.5 to 0.7", "large: 0.3, from 0.2 to 0.4"]


def test_an_undefined_value_is_a_reason_and_no_dot() -> None:
    words = [text.text for text in ET.fromstring(FIGURES["dots"].to_svg()).iter(f"{SVG}text")]
    assert "no texts" in words


def test_a_pdf_embeds_the_fonts_that_come_with_the_converter(tmp_path: Path) -> None:
    content = FIGURES["dots"].save(tmp_path / "figure.pdf").read_bytes()
    assert re.findall(rb"/BaseFont /[A-Z]+\+LiberationSans\b", content)
    assert re.findall(rb"/FontFile2", content)


def test_a_notebook_shows_the_drawing_with_its_caption() -> None:
    figure = FIGURES["dots"]
    assert figure._repr_svg_() == figure.to_svg()
    assert figure._repr_html_().startswith("<figure><svg")
    assert "<figcaption>With 95% intervals.</figcaption>" in figure._repr_html_()
    assert repr(figure) == "DotFigure('Dots')"


@pytest.mark.parametrize("name", FIGURES)
def test_an_altair_chart_has_the_values_of_the_figure(name: str) -> None:
    figure = FIGURES[name]
    spec = figure.to_altair().to_dict()
    rows = [row for data in spec["datasets"].values() for row in data]
    for mark in (mark for panel in figure.to_chart().panels for mark in panel.marks):
        if isinstance(mark, Dot) and not math.isnan(float(mark.x)):
            low = None if math.isnan(mark.low) else mark.low
            assert any((row.get("x"), row.get("y"), row.get("low")) == (mark.x, mark.y, low) for row in rows)
        if isinstance(mark, Bar):
            assert any((row.get("x"), row.get("y"), row.get("end")) == (mark.x, mark.y, mark.end) for row in rows)


def test_dots_in_rows_have_no_vertical_interval_in_altair() -> None:
    """The rules of vertical intervals went from each dot to a row named null."""
    layers = FIGURES["dots"].to_altair().to_dict()["layer"]
    assert not any("y2" in layer["encoding"] for layer in layers)
    assert any("x2" in layer["encoding"] for layer in layers)


def test_images_and_stacks_become_altair_charts() -> None:
    covariances = topic_covariance_chart({"real": np.eye(4)})
    assert any(isinstance(mark, Raster) for panel in covariances.panels for mark in panel.marks)
    stack = FigureStack(figures=(FIGURES["dots"], covariances))
    assert len(stack.to_altair().to_dict()["vconcat"]) == 2


def test_without_altair_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(FinecombError, match=r"needs the package altair; run `pip install 'finecomb\[altair\]'`"):
        FIGURES["dots"].to_altair()


def test_an_axis_covers_numbers_and_intervals() -> None:
    assert build_axis([0.2, math.nan, estimate(0.5)]).ticks == (0, 0.2, 0.4, 0.6)
