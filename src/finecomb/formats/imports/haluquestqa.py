"""Rows of HaluQuestQA: each has a question, two answers, and lists of quotes for five aspects, in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finecomb.formats.imports.paths import parse_nested
from finecomb.formats.imports.sources import BadRow, NumberedRow, RowSource

ASPECTS = ("factuality", "irrelevance", "incomplete_ans", "ques_misconception", "reference_example")


def split_answer_pairs(source: RowSource) -> RowSource:
    """Return a source with one row per answer and its marks; marks on the question are in the row of answer 1."""

    def read(split: RowSource) -> Iterator[NumberedRow]:
        for info, row in source.rows():
            if isinstance(row, BadRow):
                yield info, row
                continue
            marks: dict[str, list[dict[str, Any]]] = {"1": [], "2": []}
            for aspect in ASPECTS:
                quotes, reasons, places = (
                    _as_list(row.get(f"{aspect}_{part}")) for part in ("span", "reason", "label")
                )
                for number, quote in enumerate(quotes):
                    place = str(places[number]) if number < len(places) else "answer1"
                    mark = {"quote": quote, "label": aspect, "part": "question" if "question" in place else "text"}
                    mark["reason"] = reasons[number] if number < len(reasons) else None
                    marks["2" if place == "answer2" else "1"].append(mark)
            rest = {name: row.get(name) for name in ("annotator", "question_text", "ans_preference", "category")}
            for answer in ("1", "2"):
                key = f"{row.get('column 1', info.number)}-{answer}"
                text, writer = row.get(f"ans{answer}_text"), row.get(f"ans{answer}_label")
                yield info, {**rest, "answer_id": key, "answer_text": text, "writer": writer, "marks": marks[answer]}

    return RowSource(source.name, read, source.unit, source.notes)


def _as_list(value: Any) -> list[Any]:
    parsed = parse_nested(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, list) else []
