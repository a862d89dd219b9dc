from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from finecomb import demo, formats
from finecomb.cli import app
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study
from finecomb.protocols import load_shipped
from finecomb.reporting.reproduce.exhibit_folder import render_exhibits, write_reproduction
from finecomb.reporting.reproduce.exhibits import PaperStudy
from finecomb.reporting.reproduce.registry import PAPERS, find_paper


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_the_page_shows_what_was_made_and_says_what_could_not_be(tmp_path: Path) -> None:
    write_reproduction(
        find_paper("scarecrow"), PaperStudy(demo(), 20), "demo", tmp_path, True, ["Figure 17", "Figure 14", "Table 5"]
    )
    page = (tmp_path / "index.html").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {
        "index.html", "figure-17.csv", "figure-17.svg", "figure-17-dark.svg", "table-5.csv", "table-5.tex"
    }  # fmt: skip
    assert "documents need both `top_p` and `temperature`" in page
    assert "19.72%, but 55.59 / 1268.48 is 4.4%" in page
    assert "printed 19.72 ≠" in page


def test_names_and_texts_are_never_markup(tmp_path: Path) -> None:
    bad = "</script><script>alert(1)</script>"
    documents = [Document(id=f"{bad}{n}", text=f"One {bad} two.", meta={"model": bad}) for n in range(2)]
    protocol = load_shipped("scarecrow")
    work = [Annotation(id=f"a{n}", document=d.id, annotator="r", protocol=protocol.id) for n, d in enumerate(documents)]
    study = Study.from_items([protocol, *documents, Annotator(id="r", kind="human"), *work])
    write_reproduction(find_paper("scarecrow"), PaperStudy(study, 0), bad, tmp_path, False, ["Table 6", "Figure 7"])
    assert "<script>alert" not in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize("name", [name for name in PAPERS if name != "deng"])
def test_a_study_with_one_reader_and_one_text_gives_reasons_and_no_traceback(name: str) -> None:
    study = Study.from_items([
        load_shipped("scarecrow"), Document(id="d", text="One two."), Annotator(id="r", kind="human"),
        Annotation(id="a", document="d", annotator="r", protocol=load_shipped("scarecrow").id),
    ])  # fmt: skip
    made = list(render_exhibits(find_paper(name), PaperStudy(study, 10), False))
    assert all(outcome.rendering or outcome.why for outcome in made)
    assert any(outcome.why for outcome in made)
    assert not any(outcome.rendering for outcome in made if outcome.exhibit.title == "Agreement on tokens")


def test_the_command_lists_exhibits_and_refuses_what_does_not_apply(tmp_path: Path) -> None:
    formats.save_records(demo().items(), tmp_path / "study")
    output = run("reproduce", "scarecrow", tmp_path / "study", "-o", tmp_path / "out", "--only", "Table 6")
    assert "1 of 1 tables and figures" in output
    for wrong, message in (
        (("reproduce", "nothing", tmp_path / "study"), "unknown paper 'nothing'"),
        (("reproduce", "clark", tmp_path / "study", "--audit", tmp_path / "study"), "--audit does not apply to clark"),
    ):
        with pytest.raises(FinecombError) as error:
            run(*wrong)
        assert message in error.value.format_message(format_as_flag)
