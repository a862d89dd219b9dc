from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.model_notes import MarkNote, ReplyNote
from finecomb.core.records import Annotation, Annotator, Exclusion, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.reporting.figures.figure_model import BarFigure, DotFigure
from finecomb.reporting.site.model_replies import describe_quote_placement, model_replies
from finecomb.reporting.site.report_content import build_report, build_report_source
from finecomb.reporting.site.report_folder import write_report

RAW = '{"marks": [{"quote": "</script><b>ferry"}]}'


def mark(id: str, note: MarkNote, located: bool = True, quote: str = "") -> Mark:
    kept = {"llm": note.model_dump(mode="json", exclude_defaults=True)}
    if not located:
        return Mark(id=id, spans=(), quotes=(quote,), label=None, unlocated="two places fit", meta=kept)
    return Mark(id=id, spans=(Span(0, 3),), quotes=(quote,), label="redundant", meta=kept)


@pytest.mark.parametrize(
    ("note", "located", "words"),
    [
        (MarkNote(placed="exact"), True, "quote located exactly"),
        (MarkNote(placed="spelling", quoted="the"), True,
         "quote located with different spelling; the model wrote “the”"),
        (MarkNote(placed="near", quoted="a", flags=("leaves out not",)), True,
         "quote located by approximate matching; the model wrote “a”; leaves out not"),
        (MarkNote(), False, "quote not located: two places fit"),
        (MarkNote(placed="exact", decision="accepted"), True,
         "quote located exactly; position accepted by a researcher"),
    ],
)  # fmt: skip
def test_how_a_quote_was_placed_is_said(note: MarkNote, located: bool, words: str) -> None:
    assert describe_quote_placement(mark("m", note, located, "The")) == words


def test_marks_of_people_say_nothing_about_quotes() -> None:
    assert describe_quote_placement(Mark(id="m", spans=(Span(0, 3),), quotes=("The",), label=None)) == ""


def judged() -> Study:
    """Return the demo study with a language model that marked one text and refused another."""
    study = fc.demo()
    first, second = study.documents["id"].to_list()[:2]
    text = study.document(first).text
    judge = Annotator(id="judge-4", kind="llm", meta={"settings": {"model": "m", "price": [1.0, 2.0]}})
    read = ReplyNote(state="marked", calls=("c1",), prompt_tokens=900, completion_tokens=100)
    failed = ReplyNote(state="refused", calls=("c2",), prompt_tokens=900, completion_tokens=4, reply="I decline.")
    marks = (
        mark("j1", MarkNote(placed="exact"), quote=text[:3]),
        mark("j2", MarkNote(placed="near", quoted="Teh"), quote=text[:3]),
        mark("j3", MarkNote(), False, "ferry-boat"),
    )
    rest = {"annotator": "judge-4", "protocol": study.protocol().id}
    work = [
        Annotation(id="a1", document=first, marks=marks, meta={"llm": read.model_dump(mode="json")}, **rest),
        Annotation(
            id="a2", document=second, status="excluded", meta={"llm": failed.model_dump(mode="json")},
            excluded=Exclusion(by="finecomb", reason="reply refused: declines in words"), **rest,
        ),
    ]  # fmt: skip
    return Study.from_items([*study.items(), judge, *work])


def test_replies_are_told_with_their_quotes_and_failures() -> None:
    annotations = [annotation for annotation in judged().iter_annotations() if annotation.annotator == "judge-4"]
    told = model_replies(annotations, {"c1": RAW})
    assert [(reply.words, reply.texts) for reply in told] == [
        ("marked, quotes: 1 located exactly, 1 located approximately, 1 not located", (RAW,)),
        ("excluded: reply refused: declines in words", ("I decline.",)),
    ]
    assert model_replies(annotations, {})[0].texts == ()


def test_pages_of_texts_show_raw_replies_folded_and_as_words(tmp_path: Path) -> None:
    made_from = replace(build_report_source(judged(), "demo", draws=20), replies={"c1": RAW})
    write_report(made_from, tmp_path / "report", "today")
    pages = [(tmp_path / f"report/texts/{number}.html").read_text() for number in (1, 2, 3)]
    assert "quote located by approximate matching; the model wrote “Teh”" in pages[0]
    assert "quote not located: two places fit" in pages[0]
    assert "<details><summary>Raw reply</summary>" in pages[0]
    assert "<b>ferry" not in pages[0]
    assert "&lt;/script&gt;&lt;b&gt;ferry" in pages[0]
    assert "excluded: reply refused: declines in words" in pages[1]
    assert "Raw reply" not in pages[2]
    assert "c1" in (tmp_path / "report/replies/replies.json").read_text()


def test_one_person_stands_beside_judges_and_tokens_beside_pay() -> None:
    content = build_report(build_report_source(judged(), "demo", draws=50), "today", lambda id: "")
    judges = next(figure for figure in content.figures if isinstance(figure, DotFigure) and figure.id == "judges")
    person, judge = judges.rows
    assert (person.name, person.note, person.open, judge.name) == ("one person", "human baseline", True, "judge-4")
    assert (judges.band, judges.second_band) == (person.estimate, person.second)
    assert "The grey band is one person compared with the other people." in judges.caption
    assert [row["judge"] for row in judges.table] == ["one person", "judge-4"]
    costs = next(figure for figure in content.figures if isinstance(figure, BarFigure))
    assert costs.table == (
        {
            "part": "judge-4",
            "amount": pytest.approx((1800 + 2 * 104) / 1e6),
            "tokens sent": 1800,
            "tokens received": 104,
        },
    )
    assert ("judge-4", "1,800 tokens sent, 104 received, in 2 texts") in costs.facts
