from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.engine.partitions import Executor
from finecomb.statistics.agreement.agreement import agree as compute_agreement
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.comparisons.system_comparison import compare_systems_pairwise
from tests.engine.faulty_work import InterruptedEngine
from tests.test_cli import refused, run


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers") / "study"
    fc.write(fc.demo(readers=3), folder)
    return folder


def table(*words: str | Path) -> list[dict[str, object]]:
    result = json.loads(run(*words, "--json").stdout)
    assert set(result) == {"table", "signature", "notes"}
    assert "version:" in result["signature"] + result["table"][0]["signature"]
    rows: list[dict[str, object]] = result["table"]
    for row in rows:
        assert row["value"] is not None or row["why"], row
    return rows


def test_measure_prints_what_the_notebook_computes(demo: Path) -> None:
    rows = table("measure", demo, "-m", "coverage", "--by", "model", "--draws", "50")
    study = fc.read(demo)
    for row in rows:
        if row["label"] == "any":
            only = fc.measure(study, measure="coverage", where=f"model={row['model']}", by="none", draws=0)
            assert row["value"] == pytest.approx(only.find(label="any").value)


def test_coverage_by_label_adds_up_to_any(demo: Path) -> None:
    rows = table("measure", demo, "-m", "coverage", "--by", "", "--where", "model=comb-small", "--draws", "0")
    parts = [float(str(row["value"])) for row in rows if row["label"] != "any"]
    whole = [float(str(row["value"])) for row in rows if row["label"] == "any"]
    assert math.isclose(sum(parts), whole[0])


@pytest.mark.parametrize(
    "words",
    [
        ["measure", "-m", "count,rate-1000,severity,fraction", "--back-off", "group"],
        ["measure", "-m", "variation", "--sizes", "4,8"],
        ["measure", "-m", "depth,noticed", "--label", "redundant"],
        [
            "measure",
            "-m",
            "count",
            "--target",
            "1",
            "--drop",
            "grammar-usage:1",
            "--merge",
            "facts=bad-math+encyclopedic",
        ],
        ["measure", "-m", "coverage", "--cluster", "text,annotator", "--overlap", "union"],
        ["measure", "-m", "crossed", "--by", "topic", "--normalise", "label"],
        ["agree"],
        ["agree", "-m", "kappa,one-vs-rest"],
        ["agree", "-m", "alpha,f1,kappa-cohen,ac1,observed", "--level", "char"],
        ["agree", "-m", "alpha", "--level", "sentence", "--by", "model", "--boundaries", "union"],
        ["agree", "-m", "kappa-fleiss", "--level", "item", "--align", "overlap"],
        ["agree", "--who"],
        ["test", "-m", "count"],
        ["test", "--each-label", "--paired", "no", "--correction", "bonferroni"],
        ["power", "--half-width", "0.1", "--runs", "200"],
        ["power", "--annotations", "60", "--runs", "200", "--annotators", "2,3"],
    ],
)
def test_every_row_has_a_number_or_says_why_not(words: list[str], demo: Path) -> None:
    more = [] if words[0] == "power" or "--who" in words else ["--draws", "50"]
    assert table(words[0], demo, *words[1:], *more)


def test_json_leaves_the_file_of_a_grid_to_be_written(demo: Path, tmp_path: Path) -> None:
    """`--table-out` wrote nothing with `--grid --json`."""
    file = tmp_path / "grid.csv"
    words: list[str | Path] = ["measure", demo, "-m", "count", "--draws", "0", "--table-out", file]
    flat = json.loads(run(*words, "--grid", "--json").stdout)["table"]
    assert {row["model"] for row in flat} <= set(file.read_text(encoding="utf-8").partition("\n")[0].split(","))
    file.unlink()
    run(*words, "--json")
    assert file.read_text(encoding="utf-8").startswith("measure,")


def test_a_grid_has_one_column_across_and_one_down(demo: Path) -> None:
    output = run("measure", demo, "-m", "count", "--by", "topic,model", "--grid", "--draws", "0").stdout
    assert "count, model across" in output
    assert "comb-large" in output.splitlines()[1]
    assert "--grid requires --by with at least one column" in refused("measure", demo, "--by", "none", "--grid")


def test_power_without_a_pilot_plans_a_human_or_machine_study() -> None:
    rows = table("power", "--runs", "500")
    assert {row["evaluators"] for row in rows} == {130}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["measure", "-m", "coverge"], "unknown measure 'coverge'; did you mean 'coverage'?"),
        (["measure", "--label", "redundent"], "did you mean 'redundant'?"),
        (["measure", "--where", "model=gpt"], "no row has model 'gpt'"),
        (["measure", "--where", "model"], "is missing\n  model"),
        (["measure", "--by", "modle"], "did you mean 'model'?"),
        (["measure", "--where", "modle=x"], "--where: unknown field 'modle'; did you mean 'model'?"),
        (["measure", "--drop", "grammar-usage:9"], "unknown severity; available: 1, 2, 3"),
        (["measure", "--kind", "robot"], "unknown annotator kind 'robot'"),
        (["measure", "--merge", "redundant=off-prompt+bad-math"], "'redundant' is already in use; use another name"),
        (["measure", "--cluster", "topik"], "no document has the field 'topik'; did you mean 'topic'"),
        (["test", "--by", "model,topic"], "systems must be one column"),
        (["test", "-m", "answer:ratng"], "unknown question about the document"),
        (["measure", "-m", "variation", "--sizes", "a"], "is not a comma-separated list of whole numbers"),
        (["agree", "-m", "alfa"], "did you mean 'alpha'?"),
        (["agree", "-a", "nobody"], "unknown annotator 'nobody'"),
        (["test", "--by", "topik"], "did you mean 'topic'?"),
        (["power", "--half-width", "-1"], "half-width must be more than 0"),
    ],
)
def test_slips_are_named(words: list[str], message: str, demo: Path) -> None:
    assert message in refused(words[0], demo, *words[1:])


def test_several_values_of_one_name_are_alternatives(demo: Path) -> None:
    rows = table(
        "measure", demo, "-m", "count", "--where", "model=human", "--where", "model=comb-small", "--draws", "0"
    )
    assert {row["model"] for row in rows} == {"human", "comb-small"}


def test_the_same_seed_gives_the_same_intervals(demo: Path) -> None:
    first, again, other = (
        run("agree", demo, "--json", "--interval", "percentile", "--seed", seed).output for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_a_study_without_annotations_has_no_numbers_but_reasons(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\na,One lake.\n", encoding="utf-8")
    run("new", tmp_path / "s", "-p", "scarecrow", "-d", tmp_path / "t.csv")
    for command in ("measure", "agree"):
        try:
            rows = json.loads(run(command, tmp_path / "s", "--json").output)["table"]
        except FinecombError as error:
            rows = [{"value": None, "why": str(error)}]
        assert all(row["value"] is None and row["why"] for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["measure", "-m", "count", "--overlap", "union"], "--overlap does not apply to count; it applies to coverage"),
        (["measure", "--sizes", "4"], "--sizes does not apply to coverage, count; it applies to variation"),
        (["measure", "-m", "count-rating", "--by", "model"], "--by does not apply to count-rating"),
        (["agree", "--align", "overlap"], "--align does not apply to alpha, two-agree, marks on units of text"),
        (["agree", "--gamma", "precision=0.1"], "it applies to gamma, gamma-mean, gamma-texts, gamma-cat, gamma-k"),
        (["agree", "-m", "alpha", "--rest", "majority"], "--rest does not apply to alpha"),
        (["agree", "--who", "--level", "char"], "--level does not apply to --who"),
        (["agree", "--who", "-m", "alpha"], "--measure and --who cannot be used together"),
        (
            ["test", "--what", "human-or-machine", "--correction", "bonferroni"],
            "--correction does not apply to human-or-machine; it applies to systems",
        ),
        (
            ["test", "--what", "coders", "--label", "redundant"],
            "--label does not apply to coders; it applies to systems",
        ),
        (["test", "--what", "scores", "--draws", "10"], "--draws does not apply to scores"),
        (["power", "--evaluators", "10"], "--evaluators does not apply to a plan from a pilot"),
    ],
)
def test_an_option_that_does_not_apply_is_refused_by_name(words: list[str], message: str, demo: Path) -> None:
    assert message in refused(words[0], demo, *words[1:])


def test_a_plan_without_a_pilot_refuses_what_needs_one() -> None:
    message = "--difference does not apply to a plan without a pilot; it applies to a plan from a pilot"
    assert message in refused("power", "--difference", "0.1")


def test_one_word_for_what_is_counted(demo: Path) -> None:
    measured = table("measure", demo, "-m", "coverage", "--level", "char", "--draws", "0")
    agreed = table("agree", demo, "-m", "alpha", "--level", "char", "--draws", "0")
    assert {row["level"] for row in measured} == {"char"}
    assert {row["level"] for row in agreed} == {"char"}
    drawn = table("agree", demo, "-m", "alpha", "--interval", "percentile", "--draws", "0")
    assert all(
        row["why"] == "no resamples were drawn, so there is no interval" for row in drawn if row["value"] is not None
    )


def without_notes(printed: str) -> dict[str, Any]:
    """Return a JSON result without its notes, which say how many parts were reused."""
    return {name: value for name, value in json.loads(printed).items() if name != "notes"}


def test_gamma_that_was_cut_off_goes_on_from_its_partitions(demo: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["agree", demo, "-m", "gamma", "--gamma", "samples=2", "--draws", "9", "--json"]
    folder, expected = tmp_path / "kept", run(*words).stdout
    spread = Executor.from_folder(InterruptedEngine(3), folder)
    with pytest.raises(KeyboardInterrupt):
        compute_agreement(fc.read(demo), ["gamma"], gamma=GammaSettings(samples=2), spread=spread)
    result = run(*words, "--partitions", folder)
    assert without_notes(result.stdout) == without_notes(expected)
    assert "3 texts reused from an interrupted run" in result.stderr
    assert not folder.exists()


def test_comparisons_that_were_cut_off_go_on_from_their_partitions(demo: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["test", demo, "--measure", "count", "--draws", "50", "--json"]
    folder, expected = tmp_path / "kept", run(*words).stdout
    spread = Executor.from_folder(InterruptedEngine(2), folder)
    with pytest.raises(KeyboardInterrupt):
        compare_systems_pairwise(fc.read(demo), statistic="count", draws=50, spread=spread)
    result = run(*words, "--partitions", folder)
    assert without_notes(result.stdout) == without_notes(expected)
    assert "2 comparisons reused from an interrupted run" in result.stderr
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "name"), [(["agree"], "alpha, two-agree"), (["test", "--what", "metrics"], "metrics")]
)
def test_only_what_is_spread_out_has_partitions(demo: Path, tmp_path: Path, words: list[str], name: str) -> None:
    message = refused(words[0], demo, *words[1:], "--partitions", tmp_path / "kept")
    assert message.startswith(f"--partitions does not apply to {name}")
