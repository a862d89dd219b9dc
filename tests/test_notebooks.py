"""Notebooks of the documentation: their code runs, and they are stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc

NOTEBOOKS = Path(__file__).parent.parent / "docs" / "notebooks"
MAX_CODE_LINES = 14


def code_cells(path: Path) -> list[dict[str, Any]]:
    """The code cells of a notebook in order."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_notebook(path: Path) -> dict[str, Any]:
    """Run the code cells of a notebook in one namespace and return it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(path), 1):
        exec(compile("".join(cell["source"]), f"{path.name} cell {number}", "exec"), names)
    return names


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_has_no_outputs_and_is_linked(path: Path) -> None:
    assert [cell for cell in code_cells(path) if cell["outputs"] or cell["execution_count"] is not None] == []
    assert f"notebooks/{path.name}" in (NOTEBOOKS.parent / "notebook.md").read_text(encoding="utf-8")


def test_outputs_become_a_table_a_figure_and_latex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = NOTEBOOKS / "outputs-to-table.ipynb"
    lines = [line for cell in code_cells(path) for line in cell["source"] if line.strip()]
    assert len(lines) <= MAX_CODE_LINES
    errors = run_notebook(path)["errors"]
    assert isinstance(errors, fc.Findings)
    assert errors.find(model="small").value > errors.find(model="large").value > 0
    assert "<table>" in errors._repr_html_()
    assert "<svg" in (tmp_path / "errors.svg").read_text(encoding="utf-8")
    latex = (tmp_path / "errors.tex").read_text(encoding="utf-8")
    for part in (r"\begin{tabular}", r"\toprule", "small", "large"):
        assert part in latex
