from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.reporting.figures.estimate_plots import build_figures, plot_findings
from finecomb.reporting.figures.figure_model import DotFigure, PanelFigure
from finecomb.statistics.measures.annotation_measures import measure as compute_measures

SVG = "{http://www.w3.org/2000/svg}"


def finding(value: float, **columns: object) -> Finding:
    why = "" if value == value else "nothing there"
    return Finding({"measure": "coverage", **columns}, Estimate(value, value - 0.1, value + 0.1, Signature(()), why))


def test_every_estimate_has_its_dot_at_its_place() -> None:
    findings = [finding(0.2, model="a"), finding(0.4, model="b"), finding(math.nan, model="c")]
    (figure,) = build_figures(findings)
    assert isinstance(figure, DotFigure)
    assert [row.name for row in figure.rows] == ["a", "b"]
    circles = [
        float(circle.attrib["cx"]) for circle in ET.fromstring(plot_findings(findings).to_svg()).iter(f"{SVG}circle")
    ]
    assert circles == pytest.approx([figure.axis.position(value, 520) for value in (0.2, 0.4)], abs=0.1)


def test_labels_and_systems_become_panels() -> None:
    findings = [finding(0.1 * n, label=label, model=model) for n, label in enumerate("xyz", 1) for model in "ab"]
    (figure,) = build_figures(findings)
    assert isinstance(figure, PanelFigure)
    assert [panel.style.label for panel in figure.panels] == ["x", "y", "z"]
    assert len(list(ET.fromstring(plot_findings(findings).to_svg()).iter(f"{SVG}circle"))) == 6


def test_labels_of_one_system_are_rows_with_their_own_names() -> None:
    """Each label had a panel of one row, and the first label of a line named the rows of all labels in it."""
    findings = [finding(0.1 * number, label=label) for number, label in enumerate("xyz", 1)]
    (figure,) = build_figures(findings)
    assert isinstance(figure, DotFigure)
    names = [text.text for text in ET.fromstring(plot_findings(findings).to_svg()).iter(f"{SVG}text")]
    assert [name for name in names if name in set("xyz")] == ["x", "y", "z"]


def test_the_ending_says_the_form(tmp_path: Path) -> None:
    findings = list(compute_measures(fc.demo(), ["coverage", "count"], ["model"], draws=20))
    for ending, magic in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        plot_findings(findings).save(tmp_path / f"plot{ending}")
        assert (tmp_path / f"plot{ending}").read_bytes().startswith(magic)
    with pytest.raises(FinecombError, match="unknown image format"):
        plot_findings(findings).save(tmp_path / "plot.gif")


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(FinecombError, match="nothing to draw"):
        plot_findings([finding(math.nan)])


def test_names_are_never_markup() -> None:
    assert "<b>" not in plot_findings([finding(0.2, model="<b>"), finding(0.3, model="c")]).to_svg()
