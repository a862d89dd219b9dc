"""The gallery of the documentation: every figure of the papers, drawn from simulated studies.

`python -m tests.gallery` draws them again into `docs/pictures/gallery` and writes the page that shows them.
"""

from __future__ import annotations

from pathlib import Path

from finecomb.reporting.reproduce.exhibits import Exhibit, PaperStudy, RenderedExhibit
from finecomb.reporting.reproduce.registry import PAPERS
from tests.paper_studies import paper_study, simulate_audit

DOCS = Path(__file__).parent.parent / "docs"
PICTURES = DOCS / "pictures" / "gallery"
PAGE = DOCS / "gallery.md"
_INTRODUCTION = """# Gallery of figures

See every figure that [`finecomb reproduce`](reproduce.md) draws.

The studies are simulated; only the layout is meaningful. Dots are estimates and lines are 95% intervals. Systems are
sorted by estimate, with human text last. Two-letter flags identify labels without colour.

[The table of all exhibits](reproduce.md#every-table-and-figure) lists the function and required data of each figure.
"""


def render_figures(name: str) -> list[tuple[Exhibit, RenderedExhibit]]:
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


def _figure_section(exhibit: Exhibit, rendering: RenderedExhibit) -> str:
    stem = f"{exhibit.paper}-{exhibit.file_stem}"
    if rendering.chart is not None:
        rendering.chart.save(PICTURES / f"{stem}.svg")
    else:
        (PICTURES / f"{stem}.svg").write_text(next(iter(rendering.graphs.values())), encoding="utf-8")
    heading = f"### {exhibit.number}: {exhibit.title[0].lower()}{exhibit.title[1:]}"
    return f"{heading}\n\n{rendering.caption}\n\n![{exhibit.number}](pictures/gallery/{stem}.svg)\n"


if __name__ == "__main__":
    main()
