from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import finecomb as fc
from finecomb import cli
from finecomb.cli import app
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.version import signature_version


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def refused(*words: str | Path) -> str:
    with pytest.raises(FinecombError) as error:
        run(*words)
    return error.value.format_message(format_as_flag)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "study"
    assert run("demo", folder).exit_code == 0
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.csv"
    file.write_text("Key,Body,model\na,One lake.,gpt2\nb,Two lakes.,human\n", encoding="utf-8")
    return file


def test_the_demo_shows_a_text_counts_coverage_and_agreement(tmp_path: Path) -> None:
    result = run("demo", tmp_path / "study")
    for words in ("Commonsense", "comb-large", "Span coverage", "two-agree", "finecomb stats"):
        assert words in result.output


def test_the_demo_leaves_what_is_there_alone(demo: Path) -> None:
    before = (demo / "annotations.jsonl").read_bytes()
    assert "used unchanged" in run("demo", demo, "--seed", "5").stderr
    assert (demo / "annotations.jsonl").read_bytes() == before


def test_every_command_has_help_with_an_example() -> None:
    for command in ("demo", "new", "convert", "check", "show", "stats", "simulate", "protocols"):
        output = run(command, "--help").output
        assert "finecomb" in output
        assert "Example" in output, command


def test_version_is_printed() -> None:
    assert run("--version").output == f"finecomb {signature_version()}\n"


def test_protocols_lists_all_and_shows_one() -> None:
    table = json.loads(run("protocols", "--json").output)["table"]
    assert {
        "scarecrow",
        "accuracy",
        "snac",
        "turing",
        "comments",
        "sections",
        "likert",
        "mqm",
        "audit",
        "preference",
    } == {row["name"] for row in table}
    assert "Needs" in run("protocols", "show", "scarecrow").output
    assert json.loads(run("protocols", "show", "snac", "--json").output)["name"] == "snac"
    assert json.loads(run("protocols", "schema").output)["title"] == "Protocol"


def test_a_protocol_of_ones_own_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nversion: '1'\ntitle: Mine\nsummary: s\nlabel: []\n", encoding="utf-8")
    assert refused("protocols", "show", file) == f"{file}:5: label: unknown key; did you mean 'labels'?"
    assert "did you mean 'scarecrow'" in refused("protocols", "show", "scarcrow")


def test_new_makes_a_study_from_a_table(texts: Path, tmp_path: Path) -> None:
    study = tmp_path / "lakes"
    output = run("new", study, "-p", "snac", "-d", texts, "--map", "text=Body", "--map", "id=Key").output
    assert "2 texts, protocol snac@2, 3 annotators per text" in output
    made = fc.read(study)
    assert made.documents["id"].to_list() == ["a", "b"]
    assert made.document("b").meta == {"model": "human"}
    assert "already exists" in refused("new", study, "-p", "snac", "-d", texts, "--map", "text=Body", "--map", "id=Key")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--map", "text"], "--map text: expected OURS=THEIRS"),
        (["--map", "text=Bodi", "--map", "id=Key"], "Body"),
        (["--from", "csvv"], "did you mean 'csv'"),
    ],
)
def test_new_says_what_is_wrong(texts: Path, tmp_path: Path, words: list[str], message: str) -> None:
    assert message in refused("new", tmp_path / "s", "-p", "snac", "-d", texts, *words)
    assert not (tmp_path / "s").exists()


def test_check_lists_problems_with_file_and_line_and_fails(demo: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    fc.write(fc.read(demo), broken)
    lines = (broken / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1].replace('"label":"', '"label":"x', 1)
    (broken / "annotations.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run("check", broken)
    assert result.exit_code == 1
    assert f"{broken / 'annotations.jsonl'}:2: mark" in result.output
    assert "is not in protocol scarecrow@2; did you mean" in result.output
    assert json.loads(run("check", broken, "--json").output)["table"][0]["level"] == "error"
    assert "is not in protocol" in refused("stats", broken)


def test_check_passes_a_sound_study(demo: Path) -> None:
    result = run("check", demo)
    assert (result.exit_code, result.output) == (0, f"{demo}: 0 errors, 0 warnings\n".replace("\n", "", 0))


def test_warnings_that_are_alike_are_counted_unless_all_are_wanted(demo: Path, tmp_path: Path) -> None:
    lax = tmp_path / "lax"
    fc.write(fc.read(demo), lax)
    text = (lax / "annotations.jsonl").read_text(encoding="utf-8").replace('"severity"', '"gravity"')
    (lax / "annotations.jsonl").write_text(text, encoding="utf-8")
    short, long = run("check", lax).output, run("check", lax, "--all").output
    assert "more like this" in short
    assert len(long.splitlines()) > 10 * len(short.splitlines())


def test_show_prints_the_text_its_marks_and_their_answers(demo: Path) -> None:
    output = run("show", demo, "harbour-c", "-a", "truth").output
    assert "GU1" in output
    assert "severity 3" in output
    assert "unknown document ID 'harbour-z'; did you mean 'harbour-" in refused("show", demo, "harbour-z")
    assert "did you mean 'truth'" in refused("show", demo, "-a", "trut")
    assert "first of 16 documents" in run("show", demo).stderr


def test_show_writes_a_page(demo: Path, tmp_path: Path) -> None:
    run("show", demo, "harbour-c", "--html", tmp_path / "page.html")
    assert "<!doctype html>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_stats_count_what_is_there(demo: Path) -> None:
    table = json.loads(run("stats", demo, "--json").output)["table"]
    assert table[0]["documents"] == 16
    labels = {row["label"]: row["marks"] for row in table if row["table"] == "labels"}
    assert sum(labels.values()) == table[0]["marks"] == len(fc.read(demo).marks)
    models = {row["model"]: row["documents"] for row in table if row["table"] == "groups"}
    assert models == {"human": 4, "comb-small": 4, "comb-medium": 4, "comb-large": 4}
    assert "did you mean 'model'" in refused("stats", demo, "--by", "modle")


def test_simulate_depends_on_its_seed_only(demo: Path, tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run("simulate", demo, "-o", tmp_path / name, "--truth", "truth", "--annotators", "2", "--seed", seed)
    read = [(tmp_path / name / "annotations.jsonl").read_bytes() for name in "abc"]
    assert read[0] == read[1] != read[2]
    assert "did you mean 'truth'" in refused("simulate", demo, "-o", tmp_path / "d", "--truth", "trut")


def test_convert_goes_there_and_back_and_says_what_is_lost(demo: Path, tmp_path: Path) -> None:
    lossless = run("convert", demo, tmp_path / "frames.parquet")
    assert "cannot store" not in lossless.stderr
    run("convert", tmp_path / "frames.parquet", tmp_path / "again")
    assert fc.read(tmp_path / "again") == fc.read(demo)
    lossy = run("convert", demo, tmp_path / "marks.csv")
    assert "cannot store the following, which were omitted: " in lossy.stderr
    assert "already exists" in refused("convert", demo, tmp_path / "marks.csv")
    assert run("convert", demo, tmp_path / "marks.csv", "--force").exit_code == 0


def test_convert_writes_nothing_when_the_source_is_broken(demo: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    fc.write(fc.read(demo), broken)
    with (broken / "annotations.jsonl").open("a", encoding="utf-8") as file:
        file.write("{not json\n")
    assert f"{broken / 'annotations.jsonl'}:97: invalid JSON" in refused("convert", broken, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken"]


def test_options_that_mean_nothing_are_refused(demo: Path, tmp_path: Path) -> None:
    assert refused("convert", demo, tmp_path / "x", "--map", "a=b") == "--map does not apply to a study folder; omit it"


def test_a_users_mistake_is_one_line_on_standard_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from finecomb.cli import main; main()", "stats", "nowhere"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "finecomb: nowhere: no such file or folder\n")


def test_importing_finecomb_touches_no_network_and_no_heavy_library() -> None:
    code = "import sys, finecomb.cli; print([m for m in ('torch', 'spacy', 'datasets', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_command_line_is_also_the_module() -> None:
    result = subprocess.run([sys.executable, "-m", "finecomb", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"finecomb {signature_version()}\n"


def test_the_app_is_the_one_that_the_script_runs() -> None:
    assert cli.main.__module__ == "finecomb.cli"


@pytest.mark.parametrize(
    "words", [["measure", "--table-out", "t.csv"], ["measure", "--plot", "p.svg"], ["show", "--html", "h.html"]]
)
def test_a_file_in_a_folder_that_is_not_there_is_refused_with_the_way_out(
    demo: Path, tmp_path: Path, words: list[str]
) -> None:
    """It was a traceback."""
    command, option, name = words
    message = refused(command, demo, option, tmp_path / "nowhere" / name)
    assert (
        message == f"{tmp_path / 'nowhere' / name}: the folder {tmp_path / 'nowhere'} does not exist; create it first"
    )


def test_groups_of_a_study_that_nobody_has_read_are_not_blamed_on_its_documents(texts: Path, tmp_path: Path) -> None:
    """Documents had a model, and the message said that they had none."""
    assert run("new", tmp_path / "s", "-p", "scarecrow", "-d", texts, "--map", "text=Body", "--map", "document=Key")
    assert refused("measure", tmp_path / "s", "--by", "model") == ("--by model: the study has no annotations to group")


def test_an_empty_folder_is_called_so(tmp_path: Path) -> None:
    assert "the folder is empty; `finecomb new` creates a study" in refused("stats", tmp_path)


def test_a_cut_line_is_said_by_the_line_of_the_file_alone(demo: Path, tmp_path: Path) -> None:
    """It said line 2 of the line, beside the line of the file."""
    study = tmp_path / "study"
    shutil.copytree(demo, study)
    with (study / "annotators.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id"\n')
    printed = run("check", study).stdout
    assert "annotators.jsonl:7: invalid JSON: EOF while parsing an object\n" in printed
