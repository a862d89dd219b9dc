"""The gallery of the documentation: every figure of the papers, drawn from simulated studies.

`python -m tests.gallery` draws them again into `docs/pictures/gallery` and writes the page that shows them.
"""

from __future__ import annotations

from pathlib import Path

from finecomb.reporting.figures.validation_charts import apply_theme, save_chart
from finecomb.reporting.reproduce.exhibits import Exhibit, PaperStudy, Rendering
from finecomb.reporting.reproduce.registry import PAPERS
from tests.paper_studies import paper_study, simulate_audit

DOCS = Path(__file__).parent.parent / "docs"
PICTURES = DOCS / "pictures" / "gallery"
PAGE = DOCS / "gallery.md"
_INTRODUCTION = """# The gallery

Every figure of the papers that [`finecomb reproduce`](reproduce.md) draws, here from small simulated studies. Texts and
readers are invented, so look at the form and not at the numbers. A number is a dot, its 95% interval is a line. Systems
stand in the order of their estimates, human text last. Labels have a flag beside their colour, so that nothing depends
on colour alone. Figures that are texts with marks are not shown.

What a study must have for each of them is in [the table of all exhibits](reproduce.md#every-table-and-figure).
"""


def render_figures(name: str) -> list[tuple[Exhibit, Rendering]]:
    """Every figure of a paper that has a drawing."""
    whole = paper_study(name)
    study = PaperStudy(whole, audit=simulate_audit(whole) if name == "scarecrow" else None)
    languages = PaperStudy(paper_study("deng-languages")) if name == "deng" else study
    figures = [exhibit for exhibit in PAPERS[name].exhibits if exhibit.number.startswith("Figure")]
    made = [(one, one.make(languages if one.number == "Figure 7" else study)) for one in figures]
    return [(exhibit, rendering) for exhibit, rendering in made if rendering.chart is not None or rendering.graphs]


def main() -> None:
    """Draw all pictures and write the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    parts = [_INTRODUCTION]
    for name, paper in PAPERS.items():
        figures = render_figures(name)
        parts += [f"## {paper.title}\n"] if figures else []
        parts += [_figure_section(exhibit, rendering) for exhibit, rendering in figures]
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def _figure_section(exhibit: Exhibit, rendering: Rendering) -> str:
    stem = f"{exhibit.paper}-{exhibit.file_stem}"
    if rendering.chart is not None:
        save_chart(apply_theme(rendering.chart, dark=False), PICTURES / f"{stem}.svg")
    else:
        (PICTURES / f"{stem}.svg").write_text(next(iter(rendering.graphs.values())), encoding="utf-8")
    head = f"### {exhibit.paper.capitalize()}, {exhibit.number}: {exhibit.title.lower()}"
    made = f"Made by `{exhibit.function_name}`; needs {exhibit.needs}."
    return f"{head}\n\n{rendering.caption} {made}\n\n![{exhibit.title}](pictures/gallery/{stem}.svg)\n"


if __name__ == "__main__":
    main()
