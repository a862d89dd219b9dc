from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import finecomb as fc
from finecomb.annotators.simulated.simulated_annotators import _random_answers
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Answer
from finecomb.core.scales import SCALES, QuestionScale, format_answer
from finecomb.statistics.gold.gold_merge import merge_answers

ASKED = {"nominal": ["a", "b"], "ordinal": [1, 2, 3], "several": ["a", "b"]}


def question(scale: str) -> Question:
    return Question.model_validate({"name": "q", "ask": "?", "scale": scale, "options": ASKED.get(scale, [])})


@pytest.mark.parametrize("name", SCALES)
def test_an_example_of_every_scale_is_an_answer_that_a_file_can_hold(name: str) -> None:
    asked = question(name)
    for seed in range(10):
        answer = asked.scale_type.example(asked, np.random.default_rng(seed))
        assert asked.answer_problem(answer) == ""
        parsed = asked.scale_type.parse(asked, format_answer(answer))
        assert parsed == answer or isinstance(answer, float)
        assert asked.scale_type.words(asked, answer)
        assert asked.scale_type.merge([answer, answer]) == answer


@pytest.mark.parametrize(
    ("scale", "text", "answer"),
    [
        ("text", "1", "1"),
        ("rewrite", "yes", "yes"),
        ("yes-no", "Yes", True),
        ("yes-no", "0", False),
        ("yes-no", "perhaps", None),
        ("number", "-2.50", -2.5),
        ("number", "two", None),
        ("nominal", "B", "b"),
        ("nominal", "c", None),
        ("ordinal", "3", 3),
        ("several", "a", ("a",)),
    ],
)
def test_a_text_in_a_file_stands_for_an_answer(scale: str, text: str, answer: Answer | None) -> None:
    asked = question(scale)
    parsed = asked.scale_type.parse(asked, text)
    assert (type(parsed), parsed) == (type(answer), answer)


def test_words_are_put_side_by_side_and_choices_counted() -> None:
    assert SCALES["text"].merge(["b", "a", "b"]) == "b / a"
    assert SCALES["rewrite"].merge(["b", "a", "a"]) == "a"
    assert SCALES["ordinal"].merge([2, 1]) == 2


# --- a scale of our own: a grade from A to F ---------------------------------------------------------------------


def _check(question: Question, answer: Answer) -> str:
    return "" if isinstance(answer, str) and answer in "ABCDEF" and len(answer) == 1 else "expected a grade, A to F"


def _parse(question: Question, text: str) -> Answer | None:
    return text.strip().upper()[:1] or None


def _example(question: Question, rng: np.random.Generator) -> Answer:
    return "ABCDEF"[int(rng.integers(6))]


def _worst(answers: Sequence[Answer]) -> Answer:
    return max(map(str, answers))


GRADE = QuestionScale("grade", _check, _parse, _example, merge=_worst, ordered=True)
PROTOCOL = {
    "name": "p",
    "version": "1",
    "title": "P",
    "summary": "",
    "labels": [{"name": "red"}],
    "questions": [{"name": "mark", "ask": "Grade?", "scale": "grade"}],
}


def test_a_new_scale_is_one_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 'nominal', 'ordinal'"):
        Protocol.model_validate(PROTOCOL)
    monkeypatch.setitem(SCALES, "grade", GRADE)
    protocol = Protocol.model_validate(PROTOCOL)
    asked = protocol.questions[0]
    assert asked.answer_problem("G") == "answer 'G' to 'mark': expected a grade, A to F"
    answers = [_random_answers(protocol.questions, np.random.default_rng(seed)) for seed in range(9)]
    assert all(asked.answer_problem(each["mark"]) == "" for each in answers)
    assert merge_answers(answers, protocol, "red") == {"mark": max(str(each["mark"]) for each in answers)}
    table = tmp_path / "marks.csv"
    table.write_text("document,text,annotator,start,end,label,answer.mark\nd,One two.,ann,0,3,red,b-\n")
    study = fc.read(table, options=fc.Options(protocol=protocol))
    assert [mark.answers for each in study.iter_annotations() for mark in each.marks] == [{"mark": "B"}]
    assert fc.check(study) == []


def test_a_scale_that_is_not_in_the_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: p\nversion: 1\ntitle: P\nsummary: x\nquestions: [{name: a, ask: x, scale: grade}]\n")
    with pytest.raises(FinecombError, match=r"questions\[0\].scale: expected 'nominal'"):
        fc.protocol(str(path))
