from __future__ import annotations

import csv
import io
import itertools
import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb import formats, protocols
from finecomb.cli import app
from finecomb.cli.planned_tests import PRINTER_BY_COMMAND, planned_problems, print_planned_tables
from finecomb.core.records import Design, Document, Settings
from finecomb.core.study import StudyItem
from finecomb.core.study_checks import PLANNABLE_COMMANDS

TURING = protocols.load("turing")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    design = Design.model_validate(
        {
            "people": 1,
            "texts": 1,
            "pay": 2,
            "currency": "EUR",
            "cross": {"condition": ["none", "examples"], "model": "m", "domain": "news"},
        }
    )
    texts = [
        Document(
            id=id, text=f"The ferry {id} left at nine with a goat and a letter.", meta={"domain": "news", "model": m}
        )
        for id, m in (("a", "human"), ("b", "m"))
    ]
    items: list[StudyItem] = [Settings(protocols=(TURING.id,), design=design), TURING, *texts]
    formats.save_records(items, tmp_path / "study", "folder")
    return tmp_path / "study"


def test_a_rehearsal_fills_the_cells_says_the_cost_and_keeps_the_study(study: Path, tmp_path: Path) -> None:
    kept = tmp_path / "rehearsed"
    result = CliRunner().invoke(app, ["rehearse", str(study), "-o", str(kept)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "EUR 4.00" in result.output
    people = {one.cell: dict(one.factors) for one in fc.read(kept).iter_annotators()}
    assert people["examples/m/news"] == {"condition": "examples", "model": "m", "domain": "news"}
    assert set(people) == {"none/m/news", "examples/m/news"}
    table = CliRunner().invoke(app, ["stats", str(kept), "--by", "cell.condition", "--json"], catch_exceptions=False)
    groups = [row for row in json.loads(table.stdout)["table"] if row["table"] == "groups"]
    assert [(row["cell.condition"], row["annotations"]) for row in groups] == [("examples", 1), ("none", 1)]


def test_cells_that_are_not_full_at_the_end_are_an_exit_code(study: Path) -> None:
    result = CliRunner().invoke(app, ["rehearse", str(study), "--arrivals", "1", "--json"])
    assert result.exit_code == 1
    assert sorted(row["accepted"] for row in json.loads(result.stdout)["table"]) == [0, 1]


def test_a_skill_that_is_no_number_is_refused(study: Path) -> None:
    result = CliRunner().invoke(app, ["rehearse", str(study), "--skill", "examples=good"])
    assert "expected a share" in str(result.exception)


def test_a_design_that_no_text_can_fill_is_one_line_of_check(study: Path) -> None:
    file = study / "study.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("texts: 1", "texts: 7"), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(study)])
    assert result.exit_code == 1
    assert "cell none/m/news needs 7 texts per person, but 2 texts match" in result.output


def test_new_leaves_phases_out(tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "The ferry left."}\n', encoding="utf-8")
    made = tmp_path / "made"
    begin = ["new", str(made), "-p", "scarecrow", "-d", str(tmp_path / "texts.jsonl")]
    result = CliRunner().invoke(app, [*begin, "--skip", "qualification,training"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert fc.read(made).settings.skip == ("training", "qualification")
    assert "did you mean 'training'" in str(CliRunner().invoke(app, [*begin, "--skip", "trainng"]).exception)


def test_new_takes_a_design_and_the_table_of_cells_has_overall_accuracy(tmp_path: Path) -> None:
    """Clark et al. (2021), Table 1: a model's accuracy beside that of each domain."""
    texts = [
        {"id": f"{m}-{d}", "text": f"{m} on {d}.", "meta": {"model": m, "domain": d}}
        for m in ("human", "m", "n")
        for d in "xy"
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
    cells = "people: 1\ntexts: 2\ncross: {condition: [none], model: [m, n], domain: [x, y]}\n"
    (tmp_path / "design.yaml").write_text(cells, encoding="utf-8")
    begin = ["new", str(tmp_path / "made"), "-p", "turing", "-d", str(tmp_path / "texts.jsonl")]
    begin += ["--design", str(tmp_path / "design.yaml"), "--skip", "training,qualification"]
    assert CliRunner().invoke(app, begin, catch_exceptions=False).exit_code == 0
    design = fc.read(tmp_path / "made").settings.design
    assert design is not None
    assert design.cross["model"] == ("m", "n")
    assert "no such file" in str(CliRunner().invoke(app, [*begin[:-4], "--design", "absent.yaml"]).exception)
    answers = {"m": (4, 1), "n": (1, 1)}  # of the machine's text and of the human one
    study = fc.read(tmp_path / "made")
    people, work = [], []
    for model, domain in itertools.product("mn", "xy"):
        name = f"{model}{domain}"
        factors = {"condition": "none", "model": model, "domain": domain}
        people.append(fc.Annotator(id=name, kind="human", cell=f"none/{model}/{domain}", factors=factors))
        for author, rating in zip((model, "human"), answers[model], strict=True):
            id, document = f"{name}/{author}", f"{author}-{domain}"
            work.append(
                fc.Annotation(
                    id=id, document=document, annotator=name, protocol=study.protocol().id, answers={"rating": rating}
                )
            )
    fc.write(fc.Study.from_items([*study.items(), *people, *work]), tmp_path / "rated")
    by = ["--what", "human-or-machine", "--by", "cell.model,cell.domain", "--grid", "--format", "csv"]
    table = CliRunner().invoke(app, ["test", str(tmp_path / "rated"), *by], catch_exceptions=False).stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert list(rows[0])[:5] == ["cell.model", "overall", "cell.domain", "accuracy", "f1"]
    assert [(row["cell.model"], row["overall"].rstrip("*"), row["cell.domain"], row["accuracy"]) for row in rows] == [
        ("m", "1.000", "x", "1.000"),
        ("m", "", "y", "1.000"),
        ("n", "0.500", "x", "0.500"),
        ("n", "", "y", "0.500"),
    ]


def test_planned_tables_are_computed_and_planned_tests_have_their_power(study: Path) -> None:
    file = study / "study.yaml"
    planned = "planned: [test --what scores --by condition]\n"
    more = file.read_text(encoding="utf-8").replace("people: 1", "people: 12")
    file.write_text(more + planned, encoding="utf-8")
    words = ["rehearse", str(study), "--skill", "none=0.15", "--skill", "examples=0.9", "--runs", "3"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "Planned: test --what scores --by condition" in result.output
    _, power = result.output.split("Power of the planned tests")
    rows = [line.split() for line in power.splitlines() if line.startswith("test --what")]
    assert {row[-1] for row in rows} == {"3"}
    assert {row[-4] for row in rows} == {"1.000"}


def test_a_planned_table_that_is_none_is_one_line_of_check(study: Path) -> None:
    file = study / "study.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "planned: [tset --what scores]\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(study)])
    assert result.exit_code == 1
    assert (
        "planned 'tset --what scores' is not a supported command; it must begin with measure, agree, gold, test"
        in result.output
    )


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (
            "{people: 1, texts: 9, cross: {condition: none, model: m, domain: news}}",
            "needs 9 texts per person, but 1 text matches",
        ),
        (
            (
                "{people: 1, texts: 1, cells: [{factors: {condition: none, model: m, domain: news}},"
                " {factors: {condition: none, model: m, domain: news}}]}"
            ),
            "2 cells have the same factors (condition none",
        ),
        ("{people: 1, pay: 2, cross: {condition: none, model: m, domain: news}}", "the pay currency is missing"),
    ],
)
def test_a_bad_design_is_one_line_of_new_and_nothing_is_made(tmp_path: Path, design: str, message: str) -> None:
    text = {"id": "a", "text": "The ferry left.", "meta": {"model": "m", "domain": "news"}}
    (tmp_path / "texts.jsonl").write_text(json.dumps(text) + "\n", encoding="utf-8")
    (tmp_path / "settings.yaml").write_text(f"design: {design}\n", encoding="utf-8")
    words = ["new", str(tmp_path / "made"), "-p", "turing", "-d", str(tmp_path / "texts.jsonl")]
    result = CliRunner().invoke(app, [*words, "--settings", str(tmp_path / "settings.yaml")])
    assert message in str(result.exception)
    assert len(str(result.exception).splitlines()) == 1
    assert not (tmp_path / "made").exists()


def test_new_tells_what_annotators_go_through(tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "The ferry left."}\n', encoding="utf-8")
    (tmp_path / "settings.yaml").write_text("price: 8\ncurrency: USD\n", encoding="utf-8")
    words = ["new", str(tmp_path / "made"), "-p", "accuracy", "-d", str(tmp_path / "texts.jsonl"), "--skip", "survey"]
    more = ["--mode", "in-the-data", "--settings", str(tmp_path / "settings.yaml")]
    result = CliRunner().invoke(app, [*words, *more], catch_exceptions=False)
    assert "annotators: instructions 10 min, practice 10 min, test 25 min, then as many texts" in result.output
    assert "USD 8.00 per text" in result.output
    assert fc.read(tmp_path / "made").protocol().mode == "in-the-data"
    assert "did you mean 'in-the-data'" in str(CliRunner().invoke(app, [*words, "--mode", "in-the-date"]).exception)


def _with_plan(study: Path, *planned: str) -> None:
    file = study / "study.yaml"
    file.write_text(file.read_text(encoding="utf-8") + f"planned: {json.dumps(planned)}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("test --whaat scores", "No such option: --whaat"),
        ("test --what nonsense", "'nonsense' is not one of"),
        ("test --what 'scores", "an unclosed quotation mark"),
        ("measure --help", "prints a help text"),
    ],
)
def test_a_planned_table_that_cannot_be_asked_for_is_said_before_anybody_walks(
    study: Path, tmp_path: Path, line: str, message: str
) -> None:
    """It was found out after the last of 2,400 people, and with `-o` the rehearsed study was lost."""
    _with_plan(study, line)
    checked = CliRunner().invoke(app, ["check", str(study)])
    assert checked.exit_code == 1
    assert message in checked.output
    assert f"planned {line!r}" in checked.output
    assert message in str(CliRunner().invoke(app, ["rehearse", str(study), "-o", str(tmp_path / "kept")]).exception)
    text = {"id": "a", "text": "The ferry left.", "meta": {"model": "m", "domain": "news"}}
    (tmp_path / "texts.jsonl").write_text(json.dumps(text) + "\n", encoding="utf-8")
    (tmp_path / "settings.yaml").write_text(f"planned: {json.dumps([line])}\n", encoding="utf-8")
    words = ["new", str(tmp_path / "made"), "-p", "turing", "-d", str(tmp_path / "texts.jsonl")]
    refused = CliRunner().invoke(app, [*words, "--settings", str(tmp_path / "settings.yaml")])
    assert message in str(refused.exception)
    assert not (tmp_path / "made").exists()


def test_a_planned_table_without_data_loses_neither_the_other_tables_nor_the_study(study: Path, tmp_path: Path) -> None:
    _with_plan(study, "test --what scores --by nothing", "test --what scores --by condition")
    kept = tmp_path / "kept"
    result = CliRunner().invoke(app, ["rehearse", str(study), "-o", str(kept), "--runs", "2"])
    assert result.exit_code == 1
    assert "planned 'test --what scores --by nothing': --by nothing: " in result.output
    assert "ANOVA" in result.output
    assert len(fc.read(kept).submitted_work().annotations) == 2


PLANNED = [
    "measure --measure count,coverage --by model --draws 20 --grid",
    "measure --measure variation --sizes 4,8 --no-replacement --draws 20 --json",
    "agree -m alpha --by model --draws 20 -v",
    "agree --who --format csv",
    "gold --votes-only --min-votes 1 -t errors,rates --grid --where model=human --draws 20",
    "test --measure count --draws 20 -a reader-1 -a reader-2",
    "stats --by model",
]


def test_a_planned_table_is_what_its_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = fc.demo()
    fc.write(demo, tmp_path / "demo")
    assert planned_problems(PLANNED) == []
    for line in PLANNED:
        command, *words = shlex.split(line)
        assert print_planned_tables(demo, [line]) == [line]
        printed = capsys.readouterr()
        app([command, str(tmp_path / "demo"), *words], standalone_mode=False)
        expected = capsys.readouterr()
        assert printed.out == f"\nPlanned: {line}\n{expected.out}"
        assert printed.err == expected.err


def test_every_command_that_can_be_planned_has_a_printer() -> None:
    assert set(PRINTER_BY_COMMAND) == set(PLANNABLE_COMMANDS)


def test_output_flags_of_a_planned_table_apply_to_that_table_alone(study: Path, tmp_path: Path) -> None:
    """The tables of the trial run and of power had the format of the last planned table, and went to its file."""
    file = tmp_path / "counts.csv"
    _with_plan(study, f"stats --format csv --table-out {file}")
    result = CliRunner().invoke(app, ["rehearse", str(study), "--runs", "0"], catch_exceptions=False)
    trial, counts = result.output.split("Planned: ")
    assert "none/m/news" not in file.read_text(encoding="utf-8")
    assert "cell," not in trial
    assert "documents,2" in counts


def test_a_new_study_with_a_design_says_how_many_people_it_needs(tmp_path: Path) -> None:
    """It said how many annotators a text gets, which a design does not go by."""
    text = {"id": "a", "text": "The ferry left.", "meta": {"model": "m", "domain": "news"}}
    (tmp_path / "texts.jsonl").write_text(json.dumps(text) + "\n", encoding="utf-8")
    design = "{people: 20, texts: 1, cross: {condition: [none, examples], model: m, domain: news}}"
    (tmp_path / "settings.yaml").write_text(f"design: {design}\n", encoding="utf-8")
    words = ["new", str(tmp_path / "made"), "-p", "turing", "-d", str(tmp_path / "texts.jsonl")]
    result = CliRunner().invoke(app, [*words, "--settings", str(tmp_path / "settings.yaml")], catch_exceptions=False)
    assert "1 text, protocol turing@2, 40 accepted people in 2 cells\n" in result.output


@pytest.mark.parametrize(("currency", "is_said"), [("", True), ("currency: USD\n", False)])
def test_pay_without_a_currency_is_said_by_new(tmp_path: Path, currency: str, is_said: bool) -> None:
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "The ferry left."}\n', encoding="utf-8")
    (tmp_path / "settings.yaml").write_text(f"price: 3.5\n{currency}", encoding="utf-8")
    words = ["new", str(tmp_path / "made"), "-p", "scarecrow", "-d", str(tmp_path / "texts.jsonl")]
    result = CliRunner().invoke(app, [*words, "--settings", str(tmp_path / "settings.yaml")], catch_exceptions=False)
    assert ("the pay currency is missing; USD is used" in result.output) is is_said
    assert "USD 3.50 per text" in result.output
