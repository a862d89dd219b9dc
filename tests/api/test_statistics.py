from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import finecomb as fc
from finecomb.api.parameters import changed_parameters, parameter_help
from finecomb.api.statistics import agree, measure, power, test
from finecomb.core.errors import ParameterError
from finecomb.core.records import Annotation, Annotator, Document, Settings
from finecomb.core.results import Findings
from finecomb.core.study import Study
from finecomb.reporting.pivot_tables import HumanOrMachine
from tests.test_cli import refused, run

FUNCTIONS = [agree, measure, test, power]


@pytest.fixture(scope="module")
def study() -> Study:
    return fc.demo(readers=3)


@pytest.fixture(scope="module")
def folder(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("api") / "study"
    fc.write(study, path)
    return path


@pytest.fixture(scope="module")
def guesses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in which people guess who wrote a text."""
    protocol = fc.protocol("turing")
    models, domains = ("human", "gpt2", "gpt3"), ("news", "story")
    texts = [
        Document(id=f"d{at}", text=f"Text {at}.", meta={"model": models[at % 3], "domain": domains[at % 2]})
        for at in range(12)
    ]
    people = [Annotator(id=f"p{at}", kind="human") for at in range(4)]
    work = [
        Annotation(
            id=f"{person.id}-{text.id}", document=text.id, annotator=person.id, protocol=protocol.id,
            answers={"rating": 1 + (at * 5 + place * 3) % 4},
        )
        for at, person in enumerate(people)
        for place, text in enumerate(texts)
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("guesses") / "study"
    fc.write(Study.from_items([Settings(), protocol, *texts, *people, *work]), path)
    return path


def printed(*words: str | Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run(*words, "--json").stdout)["table"]
    return rows


def is_same(result: Findings, rows: list[dict[str, Any]]) -> bool:
    numbers = [(row.value, row.low, row.high) for row in result.rows()]
    finite = [tuple(None if math.isnan(number) else number for number in row) for row in numbers]
    return finite == [(row["value"], row["low"], row["high"]) for row in rows]


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (measure, {}, ["measure"]),
        (measure, {"measure": "count", "by": "topic,model", "sort": "value"},
         ["measure", "-m", "count", "--by", "topic,model", "--sort", "value"]),
        (measure, {"measure": ["variation"], "sizes": [4, 8], "replacement": False},
         ["measure", "-m", "variation", "--sizes", "4,8", "--no-replacement"]),
        (measure, {"by": "none", "drop": "grammar-usage:1", "where": ["model=human"], "kind": "human"},
         ["measure", "--by", "none", "--drop", "grammar-usage:1", "--where", "model=human", "--kind", "human"]),
        (test, {"measure": "count"}, ["test", "-m", "count"]),
        (test, {"each_label": True, "paired": "no", "correction": "bonferroni", "by": ["topic"]},
         ["test", "--each-label", "--paired", "no", "--correction", "bonferroni", "--by", "topic"]),
        (agree, {"measure": "f1,ac1", "level": "char"}, ["agree", "-m", "f1,ac1", "--level", "char"]),
    ],
)  # fmt: skip
def test_python_returns_what_the_command_prints(
    study: Study, folder: Path, function: Callable[..., Findings], options: dict[str, Any], words: list[str]
) -> None:
    rows = printed(words[0], folder, *words[1:], "--draws", "20")
    assert rows
    assert is_same(function(study, **options, draws=20), rows)
    assert is_same(function(str(folder), **options, draws=20), rows)


def test_a_plan_in_python_is_that_of_the_command(study: Study, folder: Path) -> None:
    plan = power(study, half_width=0.1, annotators=[2, 3], runs=100, label="redundant", where="model=comb-small")
    words = ["--half-width", "0.1", "--annotators", "2,3", "--runs", "100", "--label", "redundant"]
    assert is_same(plan, printed("power", folder, *words, "--where", "model=comb-small"))
    assert is_same(power(runs=100, evaluators=20), printed("power", "--runs", "100", "--evaluators", "20"))
    assert (plan.title, power(runs=100).title) == ("Planning", "Power")


def test_a_whole_number_for_a_float_has_the_signature_of_the_command(study: Study, folder: Path) -> None:
    words = ["--measure", "count", "--difference", "1", "--annotators", "2", "--runs", "100"]
    plan = power(study, measure="count", difference=1, annotators=2, runs=100)
    assert printed("power", folder, *words)[-1]["signature"] == "difference:1.0|power:0.8|level:0.05"
    assert "|difference:1.0|power:0.8|level:0.05|" in plan.rows()[-1].signature


def test_a_table_of_texts_has_nothing_to_measure_but_is_read() -> None:
    rows = [{"id": "a", "text": "One lake."}]
    assert all(row.why for row in measure(rows, measure="count", draws=0).rows())
    polars = pytest.importorskip("polars")
    with pytest.raises(fc.FinecombError, match=r"^the study: no annotations to test$"):
        test(polars.DataFrame(rows))
    with pytest.raises(fc.FinecombError):
        power(polars.DataFrame(rows), half_width=0.1)
    with pytest.raises(ParameterError, match="expected a Study, a path, a DataFrame or a list of dicts, found int"):
        measure(3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda study: measure(study, measure="coverge"), "unknown measure 'coverge'; did you mean 'coverage'?"),
        (lambda study: measure(study, measure="count", overlap="union"),
         "overlap does not apply to count; it applies to coverage"),
        (lambda study: measure(study, measure="variation", sizes="a"), "'a' is not a comma-separated list of whole"),
        (lambda study: measure(study, draws=-1), "draws must be at least 0, found -1"),
        (lambda study: measure(study, by="modle"), "by=modle: unknown column; did you mean"),
        (lambda study: measure(study, where="modle=x"), "where: unknown field 'modle'; did you mean 'model'?"),
        (lambda study: measure(study, drop="grammar-usage:9"), "drop=grammar-usage:9: unknown severity"),
        (lambda study: measure(study, merge="redundant=off-prompt+bad-math"), "merge=redundant=off-prompt+bad-math:"),
        (lambda study: measure(study, by="none", draws=0).pivots(), "e.g. by=temperature,top_p"),
        (lambda study: test(study, by="model,topic"), "by=model,topic: systems must be one column"),
        (lambda study: test(study, what="coders", label="x"), "label does not apply to coders; it applies to systems"),
        (lambda study: test(study, what="scores", draws=10_000), "draws does not apply to scores"),
        (lambda study: test(study, what="metrics", workers=2), "workers does not apply to metrics; it applies to"),
        (lambda study: test(study, engine="rai"), "engine=rai: expected local, ray or ray:ADDRESS; did you mean"),
        (lambda study: power(study, evaluators=3), "evaluators does not apply to a plan from a pilot"),
        (lambda study: power(judge="x", half_width=1), "judge requires a pilot and half_width"),
        (lambda study: power(study, judge="x", half_width=1, drop="redundant"), "drop cannot be used with judge"),
        (lambda study: agree(study, measure="alpha", who=True), "measure and who cannot be used together; omit one"),
        (lambda study: agree(study, who=True, level="char"), "level does not apply to who"),
        (lambda study: agree(study, gamma="precision=0.1"), "gamma does not apply to alpha, two-agree"),
        (lambda study: agree(study, partitions="x"), "partitions does not apply to alpha, two-agree; it"),
        (lambda study: agree(study, level="item"), "no mark has an `item` to align by; use align=overlap"),
    ],
)  # fmt: skip
def test_refusals_name_parameters_as_python_writes_them(
    study: Study, call: Callable[[Study], object], message: str
) -> None:
    with pytest.raises(ParameterError) as error:
        call(study)
    assert message in str(error.value)
    assert "--" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": "mean"}, "average must be one of annotation, document, pooled, found 'mean'"),
        ({"lable": "x"}, "measure() has no parameter 'lable'; did you mean 'label'?"),
    ],
)
def test_slips_in_names_and_values_are_named(study: Study, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        measure(study, **options)
    assert str(error.value) == message


def test_a_given_default_changes_nothing(study: Study) -> None:
    assert test(study, measure="count", draws=10_000) == test(study, measure="count")
    assert len(measure(study, measure="count", overlap="add", draws=0)) > 0


def test_best_values_are_marked_in_tables(study: Study) -> None:
    result = measure(study, measure="count", by="model", best=True, draws=0)
    assert result.by == ("model",)
    assert any("bold" in note for note in result.notes)
    marked = {(best.label, best.system) for best in result.best}
    for row in result.rows():
        bold = f"**{row.value:.3f}**" in [
            cell.strip()
            for line in result.to_markdown().splitlines()
            if f"| {row.label} | {row.model} |" in line
            for cell in line.split("|")
        ]
        assert bold == ((row.label, row.model) in marked)
    assert result.to_latex().count(r"\textbf") == len(marked)
    assert measure(study, by="model", best=True, average="pooled", draws=0).best == frozenset()


def test_pivots_have_groups_across(study: Study) -> None:
    result = measure(study, by="model", draws=20)
    coverage, count = result.pivots()
    assert coverage.title == "coverage, model across"
    cell = result.find(measure="count", label="redundant", model="comb-small")
    assert count.find(label="redundant")["comb-small"] == cell.value
    assert f"{cell.value:.2f} [{cell.low:.2f}, {cell.high:.2f}]" in count.to_markdown(digits=2)
    assert count.to_latex().startswith("% count, model across")
    [two] = measure(study, measure="count", by="topic,model", draws=0).pivots()
    assert next(iter(two[0])) == "topic"


def test_a_human_or_machine_study_has_measures_across(guesses: Path) -> None:
    result = test(guesses, what="human-or-machine", by="domain,model", draws=50)
    assert isinstance(result, HumanOrMachine)
    words = ["--what", "human-or-machine", "--by", "domain,model", "--draws", "50"]
    assert is_same(result, printed("test", guesses, *words))
    [table] = result.pivots()
    assert [row["overall"] != "" for row in table] == [True, False, True, False]
    output = run("test", guesses, *words, "--grid").stdout
    assert all(str(name) in output for name in table[0])
    assert "--grid does not apply to systems; it applies to human-or-machine" in refused("test", guesses, "--grid")


@pytest.mark.parametrize("function", [measure, test, agree])
def test_results_are_short_and_have_a_page(study: Study, function: Callable[..., Findings]) -> None:
    result = function(study, draws=20)
    tables = [result, *(result.pivots() if hasattr(result, "pivots") else ())]
    for table in tables:
        assert len(repr(table).splitlines()) <= 15
        assert len(repr(table)) <= 2000
        assert table._repr_html_().startswith("<table>")


def test_functions_run_inside_an_event_loop(study: Study) -> None:
    async def call() -> int:
        return len(measure(study, draws=0)) + len(test(study, measure="count", draws=20))

    assert asyncio.run(call()) > 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_parameter_has_one_short_line_of_help(function: Callable[..., Any]) -> None:
    helps = parameter_help(function)
    assert list(helps) == list(inspect.signature(function).parameters)
    for name, text in helps.items():
        assert text.endswith("."), (name, text)
        assert len(text) < 90, (name, text)


def test_a_view_is_a_selection_of_its_own() -> None:
    study = fc.demo()
    part = fc.view(study, fc.Filters(where=(("model", "human"),)))
    whole = fc.measure(study, measure="count", where="model=human", by="none", draws=0)
    assert fc.measure(part, measure="count", by="none", draws=0).to_dicts() == whole.to_dicts()
    with pytest.raises(ParameterError, match=r"^where does not apply to a View"):
        fc.agree(part, where="model=human")
    with pytest.raises(ParameterError, match=r"^the test metrics requires a whole Study"):
        fc.test(part, what="metrics")


def test_the_row_for_all_labels_can_be_had_alone() -> None:
    study = fc.demo()
    for function, name in ((fc.measure, "count"), (fc.agree, "alpha")):
        every = function(study, measure=name, draws=50)
        alone = function(study, measure=name, each_label=False, draws=50)
        assert [row for row in every.to_dicts() if row["label"] == "any"] == alone.to_dicts()
    with pytest.raises(ParameterError, match=r"^each_label does not apply to variation"):
        fc.measure(study, measure="variation", each_label=False)
    with pytest.raises(ParameterError, match=r"^each_label does not apply to who"):
        fc.agree(study, who=True, each_label=False)


def test_measures_show_progress_by_measure_and_group_then_by_other_measure() -> None:
    calls: list[tuple[int, int | None]] = []
    names = ["count", "coverage", "depth", "noticed"]
    fc.measure(fc.demo(), measure=names, draws=0, progress=lambda done, total: calls.append((done, total)))
    groups = len(fc.demo().by("model"))
    means = 2 * groups
    assert calls == [*((done, means) for done in range(1, means + 1)), (1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("options", "total"),
    [
        ({"half_width": 0.2, "difference": 0.5, "annotators": (2, 3)}, 4),
        ({"annotations": 40, "annotators": 3}, 1),
        ({"annotators": (1, 2, 3)}, 3),
    ],
)
def test_plans_show_progress(options: dict[str, Any], total: int) -> None:
    calls: list[tuple[int, int | None]] = []
    fc.power(fc.demo(), **options, runs=100, progress=lambda done, all_: calls.append((done, all_)))
    assert calls == [(done, total) for done in range(1, total + 1)]


def test_plans_without_a_pilot_show_progress_by_accuracy() -> None:
    calls: list[tuple[int, int | None]] = []
    fc.power(evaluators=10, texts=2, runs=100, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(done, 6) for done in range(1, 7)]


def test_plans_with_judges_accept_progress() -> None:
    with pytest.raises(ParameterError, match="half_width"):
        fc.power(fc.demo(), judge="reader-1", progress=True)


def test_comparisons_show_progress() -> None:
    calls: list[tuple[int, int | None]] = []
    fc.test(fc.demo(), measure="count", draws=20, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (6, 6)


def test_a_dataframe_can_be_compared_with_a_default() -> None:
    frame = pl.DataFrame({"document": ["a"], "text": ["Ten gulls."]})
    assert changed_parameters(fc.power, {"study": frame})["study"] is frame
    assert changed_parameters(fc.power, {"study": None}) == {}
