"""Output folder of `criticize`: all tables as CSV and all figures as SVG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from finecomb.corpora.critics.criticism import Criticism
from finecomb.reporting.figures.critic_figures import draw_critic_figures
from finecomb.reporting.tables import Row


def write_critic_folder(
    criticisms: Sequence[Criticism], tables: Mapping[str, Sequence[Row]], folder: Path
) -> list[Path]:
    """Write the tables and figures of a criticism and return the paths of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        name: svg
        for result in criticisms
        for name, svg in draw_critic_figures(result.critic, result.real, result.systems).items()
    }
    files = []
    for name, rows in tables.items():
        files.append(folder / f"{name}.csv")
        pl.DataFrame(list(rows), infer_schema_length=None).write_csv(files[-1])
    for name, svg in figures.items():
        files.append(folder / (re.sub(r"[^\w.-]+", "-", name) + ".svg"))
        files[-1].write_text(svg, encoding="utf-8")
    return files
