from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from finecomb import demo, formats
from finecomb.cli import app
from finecomb.cli.commands import COMMANDS, load_commands
from finecomb.core.errors import FinecombError

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "demo"
    formats.save(demo().items(), path)
    return path


def run(*arguments: object) -> str:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


MEASURE = ("measure", "-m", "coverage", "--by", "none", "--label", "redundant", "--draws", "20")


def test_csv_has_every_digit_and_the_signature(study: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(MEASURE[0], study, *MEASURE[1:], "--format", "csv"))))
    exact = json.loads(run(MEASURE[0], study, *MEASURE[1:], "--json"))["table"]
    assert [float(row["value"]) for row in rows] == [row["value"] for row in exact]
    assert all("label:" in row["signature"] for row in rows)


def test_markdown_and_latex_have_the_interval_beside_the_number(study: Path) -> None:
    exact = json.loads(run(MEASURE[0], study, *MEASURE[1:], "--format", "json"))["table"][0]
    cell = f"{exact['value']:.3f} [{exact['low']:.3f}, {exact['high']:.3f}]"
    markdown, latex = (run(MEASURE[0], study, *MEASURE[1:], "--format", name) for name in ("markdown", "latex"))
    assert f"| coverage | redundant | {cell} |" in markdown
    assert rf"coverage & redundant & {cell} \\" in latex
    assert r"\begin{tabular}{llr}" in latex


def test_signatures_are_folded_away_unless_asked_for(study: Path) -> None:
    quiet = RUNNER.invoke(app, [MEASURE[0], str(study), *MEASURE[1:]])
    loud = RUNNER.invoke(app, [MEASURE[0], str(study), *MEASURE[1:], "-v"])
    assert "statistic:coverage" not in quiet.output
    assert "statistic:coverage" in loud.output


def test_a_table_goes_into_a_file_and_the_next_into_the_next(study: Path, tmp_path: Path) -> None:
    run("stats", study, "--table-out", tmp_path / "stats.md")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(["stats.md", *(f"stats-{number}.md" for number in range(2, 7))])
    assert "| documents | 16 |" in (tmp_path / "stats.md").read_text()


def test_a_file_says_its_format_by_its_ending(study: Path, tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="the ending says the format"):
        run("stats", study, "--table-out", tmp_path / "stats.docx")


def test_contradictions_are_refused(study: Path) -> None:
    with pytest.raises(FinecombError, match="contradict"):
        run("stats", study, "--json", "--format", "csv")


def test_every_command_with_tables_has_the_flags() -> None:
    load_commands()
    for name in ("measure", "agree", "test", "power", "gold", "score", "stats", "detectors", "formats", "criticize"):
        assert name in {row.name for row in COMMANDS}
        assert "--table-out" in run(name, "--help"), name


def test_a_column_across_and_labels_down(study: Path) -> None:
    rows = run("measure", study, "-m", "coverage", "--by", "model", "--grid", "--draws", "0", "--format", "csv")
    table = list(csv.DictReader(io.StringIO(rows)))
    long = json.loads(run("measure", study, "-m", "coverage", "--by", "model", "--draws", "0", "--json"))["table"]
    cells = {(row["label"], row["model"]): row["value"] for row in long}
    assert {(row["label"], model): float(row[model]) for row in table for model in row if model != "label"} == cells


def test_plot_draws_what_is_printed(study: Path, tmp_path: Path) -> None:
    run("measure", study, "-m", "coverage", "--by", "model", "--draws", "20", "--plot", tmp_path / "plot.svg")
    drawing = (tmp_path / "plot.svg").read_text()
    assert drawing.count("<circle") == 44  # four systems, ten labels and all together
    assert "Grammar and usage" in drawing
    run("score", study, "--judge", "reader-1", "--draws", "20", "--plot", tmp_path / "score.svg", "--json")
    assert "recall" in (tmp_path / "score.svg").read_text()


def test_plot_is_refused_where_nothing_can_be_drawn(study: Path, tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="the ending says the form"):
        run(*MEASURE[:1], study, *MEASURE[1:], "--plot", tmp_path / "plot.gif")
    with pytest.raises(FinecombError, match="a sample to be judged cannot be drawn"):
        run("measure", study, "--audit-sample", 1, "-o", tmp_path / "audit", "--plot", tmp_path / "plot.svg")
    with pytest.raises(FinecombError, match="F1 by every rule cannot be drawn"):
        run("score", study, "--match", "all", "--plot", tmp_path / "plot.svg")
    assert not (tmp_path / "audit").exists()


def test_names_of_rows_tell_them_apart(tmp_path: Path) -> None:
    run("power", "--runs", "20", "--plot", tmp_path / "power.svg")
    words = re.findall(r'font-weight="600">([^<]+)</text>', (tmp_path / "power.svg").read_text())
    assert len(set(words)) == len(words) > 5
