from __future__ import annotations

import json
from pathlib import Path

import pytest

from finecomb import formats
from tests.test_cli import refused, run


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    lines = [
        {"id": f"t{number}", "text": f"Text {number} is here . It is short .", "model": "ab"[number % 2]}
        for number in range(5)
    ]
    lines.append({"id": "copy", "text": "Text 0 is here . It is short .", "model": "b"})
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_every_dropped_text_is_in_the_table(texts: Path) -> None:
    output = texts.with_name("out.jsonl")
    result = run("prepare", texts, "-o", output, "--detokenise", "--balance", "model", "--json")
    table = json.loads(result.stdout)
    assert [(row["what"], row["texts"]) for row in table["table"]] == [
        ("texts read", 6),
        ("dropped: duplicate of another text", 1),
        ("dropped: not drawn: its cell has enough texts", 1),
        ("texts kept", 4),
    ]
    assert table["notes"] == ["model a: 2", "model b: 2"]
    first = next(formats.read(output).iter_documents())
    assert first.text.endswith("is here. It is short.")


def test_texts_of_several_files_become_one_study(texts: Path) -> None:
    more = texts.with_name("more.jsonl")
    more.write_text(json.dumps({"id": "m1", "text": "Another one."}))
    run("prepare", texts, more, "-o", texts.with_name("out.jsonl"))
    assert len(list(formats.read(texts.with_name("out.jsonl")).iter_documents())) == 6


def test_what_is_there_is_not_replaced(texts: Path) -> None:
    run("prepare", texts, "-o", texts.with_name("out.jsonl"))
    assert "exists" in refused("prepare", texts, "-o", texts.with_name("out.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--words", "100-"), "every text was dropped; most common reason: fewer than 100 words"),
        (("--overlap", ".5"), "requires --priming"),
        (("--balance", "modle"), "did you mean 'model'"),
        (("--sections", "with-titles"), "has no sections"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(texts: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused("prepare", texts, "-o", texts.with_name("out.jsonl"), *arguments)
