"""A new statistic is one module and one row: its flags, help and refusals follow from its options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import finecomb as fc
from finecomb.cli import statistics
from finecomb.cli.filters import FilterOptions
from finecomb.cli.options import with_options
from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Finding, Signature
from finecomb.core.options import option, option_specs
from finecomb.statistics.agreement.registry import MEASURES as AGREEMENTS
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.inference.resampling import estimate_from_sums, ratio
from finecomb.statistics.measures.annotation_measures import MEASURES
from finecomb.statistics.registry import PLANS, STATISTICS, Statistic
from finecomb.statistics.selection.view import View

DOCS = Path(__file__).parents[2] / "docs" / "statistics"


# --- the toy module: share of annotations with many marks ---------------------------------------------------------


@dataclass(frozen=True)
class CrowdedOptions:
    """Options of the toy."""

    least: int = option(3, "Marks that make an annotation crowded.", "--least", minimum=1)
    draws: int = option(1000, "Resamples behind each interval.", minimum=0)
    seed: int = option(0, "Same seed, same intervals.")


def crowded(view: View, options: CrowdedOptions) -> list[Finding]:
    """Share of the annotations with at least so many marks, with an interval over documents."""
    counts = view.study.marks.group_by("annotation").len("marks")
    rows = view.study.annotations.select("document", annotation="id").join(counts, on="annotation", how="left")
    many = pl.col("marks").fill_null(0) >= options.least
    sums = rows.group_by("document", maintain_order=True).agg(many.sum().alias("many"), pl.len().alias("all"))
    signature = Signature.from_fields(statistic="crowded", least=options.least, draws=options.draws, seed=options.seed)
    matrix = sums.select("many", "all").to_numpy().astype(float)
    estimate = estimate_from_sums(matrix, lambda s: ratio(s[:, 0], s[:, 1]), options.draws, options.seed, signature)
    return [Finding({"measure": "crowded", "label": "any"}, estimate)]


ROW = Statistic(crowded, CrowdedOptions, "share of annotations with many marks", "counts-and-rates")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setitem(STATISTICS, "crowded", ROW)
    app = typer.Typer()
    flags = [*statistics.measure_options_by_name().values(), FilterOptions]
    command = statistics.measure.__wrapped__  # type: ignore[attr-defined]
    app.command()(with_options(flags)(command))
    return app


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy") / "study"
    fc.write(fc.demo(readers=3), folder)
    return folder


def test_a_row_and_a_module_make_a_statistic(app: typer.Typer, study: Path) -> None:
    words = [str(study), "-m", "crowded", "--least", "4", "--draws", "50", "--json"]
    [row] = json.loads(CliRunner().invoke(app, words).output)["table"]
    marks = [
        len(annotation.marks) for annotation in fc.view(fc.read(study)).study.items() if hasattr(annotation, "marks")
    ]
    assert row["value"] == pytest.approx(sum(count >= 4 for count in marks) / len(marks))
    assert row["low"] <= row["value"] <= row["high"]


def test_its_help_and_its_refusals_come_with_it(app: typer.Typer, study: Path) -> None:
    assert "--least" in CliRunner().invoke(app, ["--help"]).output
    error = CliRunner().invoke(app, [str(study), "-m", "coverage", "--least", "2"]).exception
    assert isinstance(error, FinecombError)
    assert str(error) == "--least does not apply to coverage; it applies to crowded"
    error = CliRunner().invoke(app, [str(study), "-m", "crowded", "--overlap", "union"]).exception
    assert str(error) == "--overlap does not apply to crowded; it applies to coverage"


# --- every row ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("registry", [MEASURES, STATISTICS, PLANS, AGREEMENTS, TESTS])
def test_every_row_has_a_page_and_options_with_help(registry: dict[str, Statistic]) -> None:
    for name, row in registry.items():
        assert (DOCS / f"{row.page}.md").exists(), name
        for spec in option_specs(row.options).values():
            assert spec.help.endswith((".", "?")), (name, spec.name)
