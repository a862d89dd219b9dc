"""Validation pages escape texts, load nothing from the network, and list every disagreement."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.palette import label_styles
from finecomb.core.span import Span
from finecomb.reporting.figures import validation_charts
from finecomb.reporting.figures.figure_model import Dot
from finecomb.reporting.page_shell import DARK_COLOURS, LIGHT_COLOURS, marked_text_html, table_html
from finecomb.reporting.validation_pages import write_validation_report
from finecomb.statistics.gold.disagreements import mark_pairings
from finecomb.statistics.gold.scores import Scores, score_judges_against_gold
from tests.reporting.svg_text_boxes import collisions
from tests.statistics.agreement.agreement_studies import PROTOCOL, MarkTuple
from tests.statistics.gold.gold_studies import make_gold_study

NASTY = 'x<y and z>w </script><b>bold</b> & "quoted" {{braces}} 😀'
TEXTS = {"<i>one</i>": NASTY, "../two": "plain words here"}


@pytest.fixture(scope="module")
def scores() -> Scores:
    given: dict[tuple[str, str], list[MarkTuple]] = {
        ("<i>one</i>", "gold"): [(0, 3, "red"), (8, 11, "blue"), (12, 12, "red")],
        ("<i>one</i>", "</td><u>judge"): [(0, 2, "blue"), (13, 20, "red")],
        ("../two", "gold"): [],
        ("../two", "</td><u>judge"): [(0, 5, "red")],
    }
    return score_judges_against_gold(make_gold_study(TEXTS, given), match="optimal", draws=50)


@pytest.fixture(scope="module")
def folder(scores: Scores, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    written = write_validation_report(scores, place)
    assert all(path.is_file() for path in written)
    return place


class _Text(HTMLParser):
    """Parser that collects the text of the sheets and all tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_texts_names_and_ids_are_never_markup(folder: Path) -> None:
    for path in [folder / "index.html", *sorted((folder / "texts").iterdir())]:
        page = re.sub(r"<script.*?</script>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        seen = _Text()
        seen.feed(page)
        assert not seen.tags & {"b", "i", "u"}
        assert "<u>judge" in "".join(seen.words)


def test_a_page_fetches_nothing(folder: Path) -> None:
    for path in folder.rglob("*.html"):
        page = re.sub(r"(<script[^>]*>).*?</script>", r"\1", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)\s*=""", page)
        assert "@import" not in page
        assert not re.search(r"""url\(\s*['"]?https?:""", page)
    assert "</script><b>" not in (folder / "index.html").read_text(encoding="utf-8")


def test_a_text_is_shown_whole_on_both_sides(folder: Path) -> None:
    page = (folder / "texts" / "00001.html").read_text(encoding="utf-8")
    sheets = re.findall(r'<div class="text" dir="auto">(.*?)</div>', page, flags=re.DOTALL)
    plain = [re.sub(r'<span class="at".*?</span></span>', "", sheet) for sheet in sheets]
    assert [unescape(re.sub(r"<[^>]+>", "", sheet)) for sheet in plain] == [NASTY, NASTY]


def test_every_disagreement_is_listed(folder: Path, scores: Scores) -> None:
    wrong = [case for case in mark_pairings(scores.judged[0]) if case.kind != "right"]
    pages = [path.read_text(encoding="utf-8") for path in sorted((folder / "texts").iterdir())]
    assert sum(page.count("<tr><td>") for page in pages) == len(wrong) == 5


def test_figures_are_drawn_light_and_dark_with_every_label_that_has_a_point(scores: Scores) -> None:
    precision_recall = validation_charts.precision_recall_chart(scores)
    for chart in (precision_recall, validation_charts.confusion_chart(scores)):
        assert f'fill="{LIGHT_COLOURS["paper"]}"/>' in chart.to_svg()
        assert f'fill="{DARK_COLOURS["paper"]}"/>' in chart.to_svg(theme="dark")
    (panel,) = precision_recall.panels
    styles = label_styles(PROTOCOL)
    shown = {str(row.columns["label"]) for row in scores.rows if not validation_charts.has_undefined_ratio(row)}
    names = {mark.name for mark in panel.marks if isinstance(mark, Dot)}
    assert names == {styles[label].flag if label in styles else label for label in shown}


def test_a_page_draws_its_figures_in_the_theme_of_the_screen_without_a_script(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    for name in ("precision-recall", "confusion"):
        assert f'id="{name}"><svg' in page
    drawing, style = page.partition('id="confusion">')[2], re.findall(r"<style>(.*?)</style>", page)[-1]
    assert 'fill="var(--shade)"' in drawing
    assert style.startswith(".drawn{")
    assert f"--ink:{DARK_COLOURS['ink']}" in style.partition("prefers-color-scheme:dark")[2]


@pytest.mark.long
def test_no_name_hides_another_and_pictures_come_before_tables(tmp_path: Path) -> None:
    """Names of neighbouring points once overlapped."""
    scores = score_judges_against_gold(fc.demo(readers=4), draws=50)
    write_validation_report(scores, tmp_path)
    assert collisions((tmp_path / "precision-recall.svg").read_text(encoding="utf-8")) == []
    page = (tmp_path / "index.html").read_text(encoding="utf-8").partition("<main>")[2]
    assert page.index('id="precision-recall-0"') < page.index("<table")
    assert page.index('class="legend"') < page.index("<table")


def test_figures_are_pictures(folder: Path) -> None:
    assert (folder / "confusion.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (folder / "confusion.png").read_bytes()[:4] == b"\x89PNG"


def test_marks_are_told_by_colour_line_flag_and_state() -> None:
    style = label_styles(PROTOCOL)["red"]
    shown = marked_text_html("one two", [([Span(0, 3)], style, "missed"), ([Span(0, 7)], style, "right")])
    assert "missed" in shown
    assert f"s-{style.slot.name}" in shown
    assert f"✓{style.flag}" in shown


def test_a_table_escapes_what_is_not_html_and_shows_nan_as_a_dash() -> None:
    shown = table_html([{"a": "<b>", "n": float("nan"), "h": "<i>x</i>"}], {"h": "html"})
    assert "&lt;b&gt;" in shown
    assert "<td class=n>–</td>" in shown
    assert "<i>x</i>" in shown
