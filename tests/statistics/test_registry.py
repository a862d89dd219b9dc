"""Adding a statistic: one module and one registry entry, whose options are parameters of the API."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb.api import statistics as api
from finecomb.api.parameters import parameter_help
from finecomb.cli import app
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.options import option_field, option_specs
from finecomb.core.results import Finding, Signature
from finecomb.engine.options import PartitionOptions
from finecomb.statistics.agreement.rating_sources import RATING_SOURCES
from finecomb.statistics.agreement.registry import AGREEMENT_MEASURES as AGREEMENTS
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.inference.resampling import estimate_from_sums, ratio_or_nan
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES
from finecomb.statistics.registry import PLANS, STATISTICS, RegisteredStatistic
from finecomb.statistics.selection.view import View

DOCS = Path(__file__).parents[2] / "docs" / "statistics"


# --- the toy module: share of annotations with many marks ---------------------------------------------------------


@dataclass(frozen=True)
class CrowdedOptions:
    """Options of the toy statistic."""

    sizes: tuple[int, ...] = option_field((3,), help="Marks that make an annotation crowded.", commas=True)
    draws: int = option_field(1000, help="Resamples per interval.", minimum=0)
    seed: int = option_field(0, help="Seed of the resamples.")


def crowded(view: View, options: CrowdedOptions) -> list[Finding]:
    """Estimate the share of annotations with at least `sizes[0]` marks, with an interval over documents."""
    counts = view.study.marks.group_by("annotation").len("marks")
    rows = view.study.annotations.select("document", annotation="id").join(counts, on="annotation", how="left")
    many = pl.col("marks").fill_null(0) >= options.sizes[0]
    sums = rows.group_by("document", maintain_order=True).agg(many.sum().alias("many"), pl.len().alias("all"))
    signature = Signature.from_fields(
        statistic="crowded", least=options.sizes[0], draws=options.draws, seed=options.seed
    )
    matrix = sums.select("many", "all").to_numpy().astype(float)
    estimate = estimate_from_sums(
        matrix, lambda s: ratio_or_nan(s[:, 0], s[:, 1]), options.draws, options.seed, signature
    )
    return [Finding({"measure": "crowded", "label": "any"}, estimate)]


ROW = RegisteredStatistic(crowded, CrowdedOptions, "share of annotations with many marks", "counts-and-rates")


@pytest.fixture(autouse=True)
def toy_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATISTICS, "crowded", ROW)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy") / "study"
    fc.write(fc.demo(readers=3), folder)
    return folder


def test_a_row_and_a_module_make_a_statistic(study: Path) -> None:
    words = ["measure", str(study), "-m", "crowded", "--sizes", "4", "--draws", "50", "--json"]
    [row] = json.loads(CliRunner().invoke(app, words).stdout)["table"]
    marks = [
        len(annotation.marks) for annotation in fc.view(fc.read(study)).study.items() if hasattr(annotation, "marks")
    ]
    assert row["value"] == pytest.approx(sum(count >= 4 for count in marks) / len(marks))
    assert row["low"] <= row["value"] <= row["high"]
    assert api.measure(study, measure="crowded", sizes=4, draws=50).find(measure="crowded").value == row["value"]


def test_its_refusals_come_with_it(study: Path) -> None:
    error = CliRunner().invoke(app, ["measure", str(study), "-m", "coverage", "--sizes", "2"]).exception
    assert isinstance(error, FinecombError)
    assert (
        error.format_message(format_as_flag) == "--sizes does not apply to coverage; it applies to variation, crowded"
    )
    assert str(error) == "sizes does not apply to coverage; it applies to variation, crowded"
    with pytest.raises(FinecombError, match=r"^overlap does not apply to crowded; it applies to coverage$"):
        api.measure(study, measure="crowded", overlap="union")


# --- all entries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("registry", [ANNOTATION_MEASURES, STATISTICS, PLANS, AGREEMENTS, TESTS])
def test_every_row_has_a_page(registry: dict[str, RegisteredStatistic]) -> None:
    for name, row in registry.items():
        assert (DOCS / f"{row.page}.md").exists(), name


FUNCTION_BY_REGISTRY: list[tuple[Callable[..., Any], Mapping[str, type]]] = [
    (api.measure, {name: row.options for name, row in ANNOTATION_MEASURES.items()}),
    (api.measure, {name: row.options for name, row in STATISTICS.items()}),
    (api.agree, {name: row.options for name, row in AGREEMENTS.items()}),
    (api.agree, {source.noun: source.options_type for source in RATING_SOURCES} | {"engine": PartitionOptions}),
    (api.test, {name: row.options for name, row in TESTS.items()} | {"engine": PartitionOptions}),
    (api.power, {name: row.options for name, row in PLANS.items()}),
]
DEPENDS_ON_CHOICE = {(api.test, "draws"), (api.power, "measure")}
"""Parameters with default None, so that each choice can have its own default."""


@pytest.mark.parametrize(("function", "options_by_name"), FUNCTION_BY_REGISTRY)
def test_every_option_is_a_parameter_with_the_same_default(
    function: Callable[..., Any], options_by_name: Mapping[str, type]
) -> None:
    parameters, helps = inspect.signature(function).parameters, parameter_help(function)
    for name, options in options_by_name.items():
        for spec in option_specs(options).values():
            expected = None if (function, spec.parameter) in DEPENDS_ON_CHOICE else spec.default
            assert parameters[spec.parameter].default == expected, (name, spec.parameter)
            assert helps[spec.parameter], (name, spec.parameter)


def test_every_test_can_be_named() -> None:
    assert get_args(api.TestName) == tuple(TESTS)
