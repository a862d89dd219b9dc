"""Gold and judges from Python: the numbers are those that the commands print."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import finecomb as fc
from finecomb.annotators import judge_functions
from finecomb.api.judges import calibrate, estimate, gold, rounds, score, validate
from finecomb.core.errors import FinecombError, ParameterError, format_as_flag
from finecomb.core.records import ModelSettings
from finecomb.core.results import Result
from finecomb.core.study import Study
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.statistics.gold.gold_studies import make_gold_study
from tests.statistics.judges.judge_studies import make_crowd_study
from tests.statistics.judges.test_counterfactual_validation import gold as make_corrected_study
from tests.test_cli import refused, run


@pytest.fixture(scope="module")
def demo() -> Study:
    return fc.demo(readers=3)


@pytest.fixture(scope="module")
def folder(demo: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judges") / "demo"
    fc.write(demo, path)
    return path


def printed(*words: str | Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    return answer


def numbers(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """The cells of some columns, with None in place of NaN as JSON has it."""
    return [tuple(None if row[name] != row[name] else row[name] for name in columns) for row in rows]


def assert_fits_a_notebook(result: Result) -> None:
    text = repr(result)
    assert len(text.splitlines()) <= 15
    assert len(text) <= 2000
    assert "<table>" in result._repr_html_()


# --- gold --------------------------------------------------------------------------------------------------------


def test_gold_gives_the_numbers_of_the_command(demo: Study, folder: Path) -> None:
    merged = gold(folder, draws=20, subsets=2)
    rows = printed("gold", folder, "--table", "all", "--subsets", "2", "--draws", "20")["table"]
    assert merged.study.marks.equals(gold(demo, draws=20).study.marks)
    assert merged.subsets is not None
    for name in ("errors", "confusion", "changes", "rest"):
        table = merged.table(name)
        assert table.to_dicts() == [
            {column: cell for column, cell in row.items() if column != "table"} for row in rows if row["table"] == name
        ]
    for name, column in (("rates", "value"), ("agreement", "value"), ("annotators", "recall"), ("subsets", "f1")):
        of_table = [row for row in rows if row["table"] == name]
        assert numbers(merged.table(name).to_dicts(), column) == numbers(of_table, column)


def test_tables_of_gold_are_attributes(demo: Study) -> None:
    merged = gold(demo, draws=0)
    assert merged.errors.find(label="any").errors == len(merged.study.marks) == len(merged.merge.kept_errors)
    assert [row.annotator for row in merged.annotators] == ["reader-1", "reader-2", "reader-3"]
    assert merged.rate_grid[0]["model"] == merged.rates[0].columns["model"]
    assert merged.subsets is None
    assert "statistic:gold" in merged.signature
    assert len(merged.cost) == 3
    assert merged.agreement.title == "Agreement on labels, by convention"
    assert {"label", "total"} <= set(merged.confusion[0])
    assert len(merged.rest) == len(merged.merge.undecided_errors)
    for result in (merged, merged.annotators, merged.rates, merged.confusion):
        assert_fits_a_notebook(result)
    with pytest.raises(ParameterError, match="unknown table 'confusions'; did you mean 'confusion'"):
        merged.table("confusions")


def test_gold_from_a_table() -> None:
    rows = [
        {"document": "d", "text": "one two three", "annotator": name, "start": 0, "end": 3, "label": "red"}
        for name in ("p", "q")
    ]
    for table in (rows, pl.DataFrame(rows)):
        assert gold(table).errors.find(label="any").errors == 1


@pytest.mark.parametrize(("votes", "errors"), [(3, 22), ("3", 22), ("majority", 49), (None, 49)])
def test_votes_are_a_number_or_the_majority(demo: Study, votes: int | str | None, errors: int) -> None:
    assert gold(demo, min_votes=votes).errors.find(label="any").errors == errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_votes": 0}, "min_votes=0: expected a whole number of at least 1, or majority"),
        ({"min_votes": "most"}, "min_votes=most: expected a whole number of at least 1, or majority"),
        ({"subsets": 9}, "the subset size must be at least 2 (the required votes)"),
        ({"size": "big"}, "size must be one of widest, narrowest, majority, union, found 'big'"),
        ({"draws": -1}, "draws must be at least 0, found -1"),
        ({"align": "overlaps"}, "align must be one of auto, item, overlap, overlap-label, gamma, found 'overlaps'"),
        ({"minvotes": 2}, "gold() has no parameter 'minvotes'; did you mean 'min_votes'?"),
    ],
)
def test_gold_refuses(demo: Study, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError) as error:
        gold(demo, **options)
    assert message in str(error.value)


# --- score -------------------------------------------------------------------------------------------------------


def test_score_gives_the_numbers_of_the_command(demo: Study, folder: Path) -> None:
    scores = score(demo, draws=20, by="label,model")
    rows = printed("score", folder, "--draws", "20", "--by", "label,model")["table"]
    columns = ("judge", "model", "label", "gold", "matched", "recall", "recall_low", "f1", "f1_high")
    assert numbers(scores.to_dicts(), *columns) == numbers(rows, *columns)
    assert numbers(score(folder, draws=20, by=["label", "model"]).to_dicts(), *columns) == numbers(rows, *columns)


def test_tables_of_score_are_computed_when_asked_for(demo: Study, folder: Path) -> None:
    scores = score(demo, draws=20)
    rows = printed("score", folder, "--table", "all", "--draws", "20")["table"]
    assert scores.names == tuple(dict.fromkeys(row["table"] for row in rows))
    for name, table in (
        ("kinds", scores.kinds),
        ("confusion", scores.confusion),
        ("disagreements", scores.disagreements),
    ):
        shared = [column for column in table[0] if column != "share of gold"]
        assert numbers(table.to_dicts(), *shared) == numbers([row for row in rows if row["table"] == name], *shared)
    compared = [row for row in rows if row["table"] == "compare"]
    assert numbers(scores.comparison.to_dicts(), "a", "b", "measure", "value", "p_adjusted") == numbers(
        compared, "a", "b", "measure", "value", "p_adjusted"
    )
    for result in (scores, scores.scores, scores.comparison, scores.confusion, scores.disagreements):
        assert_fits_a_notebook(result)
    assert "f1" in repr(scores)
    assert "compare" not in score(demo, judge="reader-1", draws=0).names


def test_gold_of_one_study_and_judges_of_another(demo: Study) -> None:
    merged = gold(demo, draws=0).study
    scores = score(merged, demo, judge=["reader-1"], where="model=human", draws=0)
    assert {row.judge for row in scores.rows()} == {"reader-1"}
    assert scores.find(label="any").gold < score(merged, demo, judge="reader-1", draws=0).find(label="any").gold


def test_all_rules_have_scores_and_ranks(demo: Study, folder: Path) -> None:
    by_rule = score(demo, match="all")
    rows = printed("score", folder, "--match", "all")["table"]
    ranks = [row for row in rows if row["table"] == "ranks"]
    assert numbers(by_rule.ranks.to_dicts(), "judge", "optimal") == numbers(ranks, "judge", "optimal")
    assert_fits_a_notebook(by_rule)
    with pytest.raises(ParameterError, match="unknown table 'confusion'; available: rules, ranks"):
        _ = by_rule.confusion
    with pytest.raises(ParameterError, match="report requires scores of marks with a single match rule"):
        by_rule.write_report("anywhere")


def test_the_best_judge_is_bold_on_paper() -> None:
    texts = {f"d{number}": "one two three four" for number in range(12)}
    marks = {(id, name): [(0, 3, "red")] if name != "idle" else [] for id in texts for name in ("gold", "able", "idle")}
    scores = score(make_gold_study(texts, marks), draws=0)
    assert scores.best <= {("able", ratio) for ratio in ("recall", "precision", "f1")}
    assert ("**" in scores.to_markdown().split("\n", 2)[2]) == bool(scores.best)
    assert "toprule" in scores.to_latex()


@pytest.mark.parametrize(
    ("options", "in_python", "as_flags"),
    [
        ({"match": "task"}, "use match=optimal", "use --match optimal"),
        ({"match": "all", "draws": 5}, "draws does not apply to match=all", "--draws does not apply to --match all"),
        (
            {"question": "rating", "unread": "leave-out"},
            "unread does not apply to scalar metrics; leave it out",
            "--unread does not apply to scalar metrics; leave it out",
        ),
        ({"by": "modle"}, "by=modle: no document has this meta field", "--by modle: no document has this meta field"),
        ({"average": "mikro"}, "average must be one of micro, macro", "--average must be one of micro, macro"),
    ],
)
def test_score_refuses(demo: Study, options: dict[str, Any], in_python: str, as_flags: str) -> None:
    with pytest.raises(FinecombError) as error:
        score(demo, **options)
    assert in_python in str(error.value)
    assert as_flags in error.value.format_message(format_as_flag)


def test_scores_of_sentences_need_the_match(demo: Study) -> None:
    with pytest.raises(ParameterError, match="table=recall requires match=sentence"):
        _ = score(demo, draws=0).recall


def test_scores_inside_an_event_loop(demo: Study) -> None:
    async def cell() -> float:
        return float(score(demo, judge="reader-1", draws=0).find(label="any").f1)

    assert 0 < asyncio.run(cell()) < 1


# --- annotations under another protocol --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_protocols(demo: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with the protocol snac, under which nobody has annotated."""
    path = tmp_path_factory.mktemp("protocols") / "study"
    fc.write(Study.from_items([*demo.items(), fc.protocol("snac")]), path)
    return path


def test_annotations_under_another_protocol_are_named(two_protocols: Path) -> None:
    """`score --protocol snac` said that a judge had no annotations on any text of gold, though all were scarecrow's."""
    words = refused("score", two_protocols, "--gold", "truth", "--protocol", "snac")
    assert words == (
        "the annotations of truth use protocol scarecrow@2, not snac@2; pass --protocol with one of scarecrow@2"
    )
    with pytest.raises(ParameterError) as error:
        score(two_protocols, gold="truth", protocol="snac")
    assert error.value.parameter == "protocol"
    assert error.value.choices == ("scarecrow@2",)
    assert "no annotation" not in str(error.value)
    merged = refused("gold", two_protocols, "--protocol", "snac")
    assert merged.startswith("the study's annotations use protocol scarecrow@2, not snac@2")
    assert score(two_protocols, gold="truth", protocol="scarecrow", draws=0).rows()


# --- estimate, calibrate, validate, rounds -----------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "steps"), [(True, 7), (False, 6)])
def test_calibrations_show_progress(demo: Study, gamma: bool, steps: int) -> None:
    calls: list[tuple[int, int | None]] = []
    calibrate(demo, "reader-1", gamma=gamma, draws=20, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(done, steps) for done in range(1, steps + 1)]


@pytest.fixture(scope="module")
def crowd() -> Study:
    return make_crowd_study(40)


@pytest.fixture(scope="module")
def crowd_folder(crowd: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crowd") / "study"
    fc.write(crowd, path)
    return path


def test_estimate_gives_the_numbers_of_the_command(crowd: Study, crowd_folder: Path) -> None:
    means = estimate(crowd, judge="judge", measure=["count", "coverage"])
    rows = printed("estimate", crowd_folder, "--judge", "judge", "--measure", "count,coverage")
    columns = ("measure", "method", "worth", "value", "low", "high")
    assert numbers(means.to_dicts(), *columns) == numbers(rows["table"], *columns)
    assert list(means.notes) == rows["notes"]
    assert estimate(crowd_folder, judge="judge", strata="none").find(method="people alone").worth == 40
    assert_fits_a_notebook(means)


def test_calibrate_gives_the_verdict_of_the_command(crowd: Study, crowd_folder: Path, tmp_path: Path) -> None:
    calibration = calibrate(crowd, "judge", draws=20, gamma=False, levels="token", days=7)
    options = ("--judge", "judge", "--draws", "20", "--no-gamma", "--levels", "token")
    answer = printed("calibrate", crowd_folder, *options)
    first = answer["table"][0]
    assert calibration.verdict == first["verdict"] == calibration.find(judge="judge").verdict
    assert calibration.paragraph == answer["notes"][0]
    assert calibration.names == tuple(dict.fromkeys(row["section"] for row in answer["table"]))
    alpha = next(row for row in answer["table"] if row["section"] == "agreement")
    assert calibration.table("agreement").rows()[0].judge == alpha["judge"]
    assert calibration.agreement.find(measure="alpha", label="any", who="judge").value == alpha["judge"]
    assert calibration.contract.days == 7
    assert calibration.labels == calibration.contract.labels
    assert "<svg" in calibration.to_html()
    assert_fits_a_notebook(calibration)
    assert json.loads(calibration.save(tmp_path).read_text())["verdict"] == calibration.verdict
    with pytest.raises(ParameterError, match="is not a folder, so the result cannot be saved there"):
        calibration.save(tmp_path / "missing")


def test_a_contract_is_not_kept_beside_a_file(crowd: Study, tmp_path: Path) -> None:
    fc.write(crowd, tmp_path / "study.jsonl")
    words = refused("calibrate", tmp_path / "study.jsonl", "--judge", "judge", "--keep")
    assert "is not a folder, so the result cannot be saved there; use --json or --html" in words


def test_validate_runs_detectors_and_functions(tmp_path: Path) -> None:
    study = make_corrected_study("Nine gulls and nine terns.")
    fc.write(study, tmp_path / "study")
    columns = ("measure", "label", "places", "count", "value")
    rows = printed("validate", tmp_path / "study", "--judge", "boxscore", "--draws", "10")["table"]
    assert numbers(validate(study, "boxscore", draws=10).to_dicts(), *columns) == numbers(rows, *columns)

    def mark_nothing(document: fc.Document) -> fc.Annotation:
        return fc.Annotation(id=document.id, document=document.id, annotator="nothing", protocol="numbers")

    findings = validate(tmp_path / "study", mark_nothing, draws=10)
    assert findings.find(measure="found", label="any").value == 0
    assert "judge:mark_nothing" in findings.signature
    assert_fits_a_notebook(findings)


def test_a_language_model_is_validated_inside_an_event_loop(tmp_path: Path) -> None:
    """Replies are kept in the folder of the study, so that a second run asks nothing."""
    fc.write(make_corrected_study("Nine gulls and nine terns."), tmp_path / "study")

    async def cell(url: str) -> float:
        findings = validate(str(tmp_path / "study"), "m", base_url=url, draws=10)
        return float(findings.find(measure="found", label="any").value)

    with ScriptedServer(lambda body, number: ScriptedAnswer('{"marks": []}')) as server:
        assert asyncio.run(cell(server.url)) == 0
        asked = len(server.requests)
        assert asyncio.run(cell(server.url)) == 0
        assert len(server.requests) == asked == 3


@pytest.mark.parametrize(
    ("function", "options", "in_python", "as_flags"),
    [
        (calibrate, {"score": "rmse"}, "score=rmse requires question", "--score rmse requires --question"),
        (
            calibrate,
            {"score": "char-f1", "question": "q"},
            "score=char-f1 compares marks, and question selects answers",
            "--score char-f1 compares marks, and --question selects answers",
        ),
        (calibrate, {"levels": "tokn"}, "unknown level 'tokn' in levels", "unknown level 'tokn' in --levels"),
        (calibrate, {"epsilon": 2}, "epsilon must be at most 1, found 2", "--epsilon must be at most 1, found 2"),
        (validate, {}, "or a model with base_url", "or a model with --base-url"),
        (validate, {"base_url": "http://x/v1", "shots": 1}, "shots must be 0", "--shots must be 0"),
        (validate, {"base_url": "http://x/v1", "samples": 2}, "samples must be 1", "--samples must be 1"),
        (validate, {"base_url": "http://x/v1", "price": "1"}, "price=1: expected IN,OUT", "--price 1: expected IN,OUT"),
        (validate, {"base_url": "http://x/v1", "timeout": -1}, "timeout: ", "--timeout: "),
    ],
)
def test_judges_are_refused(
    function: Callable[..., Result], options: dict[str, Any], in_python: str, as_flags: str, crowd: Study
) -> None:
    study = make_corrected_study() if function is validate else crowd
    with pytest.raises(ParameterError) as error:
        function(study, "judge", **options)
    assert in_python in str(error.value)
    assert as_flags in error.value.format_message(format_as_flag)


def test_options_of_language_models_are_refused_for_others() -> None:
    study = make_corrected_study()
    with pytest.raises(ParameterError, match="temperature applies only to language models; boxscore is a detector"):
        validate(study, "boxscore", temperature=1)
    with pytest.raises(ParameterError, match="temperature does not apply to a function; leave it out"):
        validate(study, lambda document: next(study.iter_annotations()), temperature=1)


def test_rounds_gives_the_numbers_of_the_command(demo: Study, tmp_path: Path) -> None:
    again = [
        own.model_copy(update={"id": f"{own.id}/2", "round": 1, "marks": ()})
        for own in demo.submitted_work().iter_annotations()
        if own.annotator in ("reader-1", "reader-2")
    ]
    twice = Study.from_items([*demo.items(), *again])
    fc.write(twice, tmp_path / "twice")
    passes = rounds(twice, draws=20)
    rows = printed("rounds", tmp_path / "twice", "--draws", "20")["table"]
    marks = [row for row in rows if row["table"] == "marks"]
    assert numbers(passes.marks.to_dicts(), "annotator", "before", "withdrawn") == numbers(
        marks, "annotator", "before", "withdrawn"
    )
    alphas = [row for row in rows if row["table"] == "agreement"]
    assert numbers(passes.agreement.to_dicts(), "pass", "value", "low") == numbers(alphas, "pass", "value", "low")
    assert_fits_a_notebook(passes)
    assert rounds(tmp_path / "twice", annotator="reader-1", draws=0).marks[0].annotator == "reader-1"
    assert len(rounds(demo).marks) == 0


@pytest.mark.parametrize(("seed", "sent"), [(None, 7), (0, 0), (3, 3)])
def test_a_seed_that_is_given_replaces_that_of_the_study(
    seed: int | None, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seed of 0 was taken for one that was not given."""
    study = fc.demo()
    models = {"judge-x": ModelSettings(model="judge-x", base_url="http://127.0.0.1:9/v1", seed=7)}
    study = replace(study, settings=study.settings.model_copy(update={"models": models}))
    seeds: list[int] = []
    monkeypatch.setattr(judge_functions, "_build_model_function", lambda *values: seeds.append(values[3].seed))
    judge_functions.build_judge_function(study, "judge-x", "", {"trust_endpoint": True}, seed)
    assert seeds == [sent]
