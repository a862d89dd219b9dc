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
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from tests.docs_tables import commands_by_name, options_table
from tests.statistics.comparisons.test_system_comparison import PROTOCOL, TEXT, small

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "demo"
    formats.save_records(demo().items(), path)
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
    assert rf"coverage & redundant & {cell} & few clusters (4) \\" in latex
    assert r"\begin{tabular}{llrl}" in latex


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
    with pytest.raises(FinecombError, match="unknown file type"):
        run("stats", study, "--table-out", tmp_path / "stats.docx")


def test_contradictions_are_refused(study: Path) -> None:
    with pytest.raises(FinecombError, match="cannot be used together"):
        run("stats", study, "--json", "--format", "csv")


def test_every_command_with_tables_has_the_flags() -> None:
    by_name = commands_by_name()
    for name in ("measure", "agree", "test", "power", "gold", "score", "stats", "detectors", "formats", "criticize"):
        flags = {flag for parameter in by_name[name].params for flag in parameter.opts}
        assert {"--format", "--table-out", "--verbose"} <= flags, name
        assert "`--table-out`" in options_table(by_name[name]), name  # so do the tables of the documentation
    assert "--table-out" in run("formats", "--help")


def test_a_column_across_and_labels_down(study: Path) -> None:
    rows = run("measure", study, "-m", "coverage", "--by", "model", "--grid", "--draws", "0", "--format", "csv")
    table = list(csv.DictReader(io.StringIO(rows)))
    long = json.loads(run("measure", study, "-m", "coverage", "--by", "model", "--draws", "0", "--json"))["table"]
    cells = {(row["label"], row["model"]): row["value"] for row in long}
    assert {(row["label"], model): float(row[model]) for row in table for model in row if model != "label"} == cells


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems on twelve prompts, one with a mark or none a text and one with two or three."""
    path = tmp_path_factory.mktemp("studies") / "apart"
    formats.save_records(small([0, 0, 0, 1] * 3, [2, 3, 2, 3] * 3, (range(12), range(12))).study.items(), path)
    return path


@pytest.mark.parametrize("layout", [(), ("--grid",)])
def test_the_best_is_bold_only_where_it_is_beyond_chance(apart: Path, study: Path, layout: tuple[str, ...]) -> None:
    words = ("-m", "count", "--by", "model", "--draws", "20", *layout)
    latex = run("measure", apart, *words, "--format", "latex")
    assert latex.count(r"\textbf{0.250 [") == 2  # `red` and `any`
    few = run("measure", study, *words, "--label", "redundant", "--format", "markdown")
    assert "[" in few
    assert "**0" not in few  # four texts of each are few


def test_systems_in_the_order_of_their_values(study: Path) -> None:
    rows = run("measure", study, "-m", "count", "--by", "model", "--sort", "value", "--draws", "0", "--format", "csv")
    table = [row for row in csv.DictReader(io.StringIO(rows)) if row["label"] == "any"]
    values = [float(row["value"]) for row in table]
    assert values == sorted(values)
    assert [row["model"] for row in table] != sorted(row["model"] for row in table)
    grid = run("measure", study, "-m", "count", "--by", "model", "--sort", "value", "--grid", "--draws", "0")
    assert grid.splitlines()[1].split()[1:] == [row["model"] for row in table]


def test_scores_have_every_digit_in_a_csv_table_and_the_best_judge_in_bold(tmp_path: Path) -> None:
    """A CSV of scores had `0.288 [0.253–0.322]` in one cell."""
    truth = [(0, 1), (2, 3), (4, 5)]
    given = {("poor", at): truth[:1] for at in range(9)} | {("good", at): truth for at in range(9)}
    given |= {("gold", at): truth for at in range(9)}
    formats.save_records(judged(given).items(), tmp_path / "study")
    words = ("score", tmp_path / "study", "--by", "", "--draws", "20")
    rows = list(csv.DictReader(io.StringIO(run(*words, "--format", "csv"))))
    assert [float(row["recall"]) for row in rows if row["label"] == "any"] == [1, pytest.approx(1 / 3)]
    table = run(*words, "--format", "markdown").splitlines()
    assert [line.count("**") for line in table if "| any |" in line] == [4, 0]  # recall and f1; precision is 1 for both


def judged(given: dict[tuple[str, int], list[tuple[int, int]]]) -> Study:
    """Nine texts, and the spans that gold and judges marked in each."""
    texts = [Document(id=f"d{at}", text=TEXT) for at in range(9)]
    people = [
        Annotator(id=name, kind="gold" if name == "gold" else "human") for name in dict.fromkeys(n for n, _ in given)
    ]
    work = [
        Annotation(
            id=f"d{at}/{name}", document=f"d{at}", annotator=name, protocol="t@1",
            marks=tuple(
                Mark(id=f"d{at}/{name}/{place}", spans=(Span(*span),), quotes=(TEXT[slice(*span)],), label="red")
                for place, span in enumerate(spans)
            ),
        )
        for (name, at), spans in given.items()
    ]  # fmt: skip
    return Study.from_items([PROTOCOL, *texts, *people, *work])


def test_plot_draws_what_is_printed(study: Path, tmp_path: Path) -> None:
    run("measure", study, "-m", "coverage", "--by", "model", "--draws", "20", "--plot", tmp_path / "plot.svg")
    drawing = (tmp_path / "plot.svg").read_text()
    assert drawing.count("<circle") == 44  # four systems, ten labels and all together
    assert "Grammar and usage" in drawing
    run("score", study, "--judge", "reader-1", "--draws", "20", "--plot", tmp_path / "score.svg", "--json")
    assert "recall" in (tmp_path / "score.svg").read_text()


def test_plot_is_refused_where_nothing_can_be_drawn(study: Path, tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="unknown file type"):
        run(*MEASURE[:1], study, *MEASURE[1:], "--plot", tmp_path / "plot.gif")
    with pytest.raises(FinecombError, match="--plot does not apply to the table of F1"):
        run("score", study, "--match", "all", "--plot", tmp_path / "plot.svg")
    assert not list(tmp_path.glob("plot.*"))


def test_names_of_rows_tell_them_apart(tmp_path: Path) -> None:
    run("power", "--runs", "20", "--plot", tmp_path / "power.svg")
    words = re.findall(r'font-weight="600">([^<]+)</text>', (tmp_path / "power.svg").read_text())
    assert len(set(words)) == len(words) > 5
