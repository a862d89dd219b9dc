"""What comes in: tables, lines, empty texts, the marks of others; and texts that go out corrected."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import finecomb as fc
from finecomb.cli import app
from finecomb.core.errors import FinecombError, ParameterError, Problem, StudyError
from finecomb.formats import Options
from finecomb.reporting.problem_tables import grouped_problem_lines


def run(*words: object) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_model_may_have_any_name_in_a_table(tmp_path: Path) -> None:
    """`--map model=System` was refused: only `meta.model` was known. Blanks around a column's name do not count."""
    table = written(tmp_path / "texts.csv", "id, Body ,System\na,One two.,gpt\n")
    (document,) = fc.read(table, options=Options(columns={"text": "Body", "model": "System"})).iter_documents()
    assert (document.text, document.meta) == ("One two.", {"model": "gpt"})
    lines = written(tmp_path / "texts.jsonl", '{"Body":"One.","System":"gpt"}\n')
    (line,) = fc.read(lines, options=Options(columns={"text": "Body", "model": "System"})).iter_documents()
    assert (line.text, line.meta) == ("One.", {"model": "gpt"})
    with pytest.raises(ParameterError, match="unknown role 'modle'; did you mean 'model'"):
        fc.read(table, options=Options(columns={"modle": "System"}))


def test_lines_are_believed_by_their_ending(tmp_path: Path) -> None:
    """A file with a field that another format has, too, had no format."""
    path = written(tmp_path / "texts.jsonl", '{"generation":"One two.","output":"x"}\n')
    (document,) = fc.read(path, options=Options(columns={"text": "generation"})).iter_documents()
    assert document.text == "One two."
    (guessed,) = fc.read(path).iter_documents()
    assert (guessed.text, guessed.meta) == ("x", {"generation": "One two."})


def test_the_text_of_rotowire_is_its_summary(tmp_path: Path) -> None:
    path = written(tmp_path / "games.jsonl", '{"box_score":{},"summary":["The","Hawks","won","."]}\n')
    (document,) = fc.read(path, "jsonl").iter_documents()
    assert document.text == "The Hawks won ."


def test_empty_texts_are_said_kept_dropped_or_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "texts.jsonl", '{"id":"a","text":"One."}\n{"id":"b","text":" "}\n')
    words = ["new", tmp_path / "study", "-p", "scarecrow", "-d", path, "--force"]
    assert "1 text without words (b): kept" in run(*words).output
    assert "1 text without words (b)" in run("check", tmp_path / "study").output
    assert "(b): dropped" in run(*words, "--empty", "drop").output
    assert [document.id for document in fc.read(tmp_path / "study").iter_documents()] == ["a"]
    with pytest.raises(FinecombError, match=r"1 text without words \(b\)"):
        run(*words, "--empty", "refuse")


def test_equal_problems_are_one_line_with_a_count() -> None:
    """Hundreds of equal errors were hundreds of lines."""
    problems = [Problem(f"label 'x{at}' is not in protocol p@1") for at in range(300)]
    assert str(StudyError(problems)).splitlines() == [
        "label 'x0' is not in protocol p@1 (and 299 more like this; `finecomb check --all` lists them)"
    ]
    lines = list(grouped_problem_lines(problems, 3))
    assert (len(lines), lines[-1][1]) == (3, 297)


STUDY = """\
document,text,annotator,label,start,end,quote,correction
d,Boston won 30-20.,ann,number,11,13,30,28
e,Nobody lost.,ann,,,,,
"""
COLLEAGUE = """\
document,text,label,start,end,quote
first,Boston won 30-20.,number,14,16,20
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return written(tmp_path / "study.csv", STUDY)


def test_a_colleagues_marks_join_a_study(tmp_path: Path, study: Path) -> None:
    """By the same words where the ids differ; who made them is said on the command line."""
    colleague = written(tmp_path / "colleague.csv", COLLEAGUE)
    run("merge", study, colleague, "-o", tmp_path / "all", "-p", "accuracy", "--annotator", "ben")
    whole = fc.read(tmp_path / "all")
    marks = [(a.annotator, a.document, mark.quotes) for a in whole.iter_annotations() for mark in a.marks]
    assert marks == [("ann", "d", ("30",)), ("ben", "d", ("20",))]
    assert len(whole.documents) == 2
    with pytest.raises(FinecombError, match="'ann' already has an annotation of 'd' in the study"):
        run("merge", study, study, "-o", tmp_path / "twice")
    strange = written(tmp_path / "strange.csv", COLLEAGUE.replace("first", "x").replace("Boston", "Denver"))
    with pytest.raises(FinecombError, match=r"strange.csv: document 'x' is not in the study"):
        run("merge", study, strange, "-o", tmp_path / "more", "--annotator", "ben")


def test_texts_go_out_corrected(tmp_path: Path, study: Path) -> None:
    output = run("convert", study, tmp_path / "right.jsonl", "--corrected").output
    texts = [document.text for document in fc.read(tmp_path / "right.jsonl").iter_documents()]
    assert texts == ["Boston won 28-20.", "Nobody lost."]
    assert "1 correction of ann applied, 0 left out" in output
    with pytest.raises(FinecombError, match="unknown annotator 'anne'; did you mean 'ann'"):
        run("convert", study, tmp_path / "x.jsonl", "--corrected", "--corrector", "anne")
