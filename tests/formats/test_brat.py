from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.check import check
from finecomb.core.errors import FinecombError, FormatError
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Note
from finecomb.core.span import Span
from finecomb.core.study import Item, Study
from finecomb.formats import brat, format_of
from finecomb.formats.base import Options
from finecomb.protocols import shipped
from tests.formats.damage import damage, places, read_or_refuse
from tests.strategies import LINES, PLAIN, PROTOCOL, canonical, round_trip, studies

TEXT = "😀 Eva has a cat.\nEva has no pets."
ANN = """T1\tContradiction 18 34\tEva has no pets.
T2\tAntecedent 2 16;17 17\tEva has a cat. 
R1\tAntecedent Arg1:T1 Arg2:T2\t
A1\tSeverity T1 3
A2\tSure T1
#1\tAnnotatorNotes T1\tA cat is
#2\tAnnotatorNotes T1\ta pet.
T3\tRed 0 1;8 9\t😀 a
T4\tRed 6 17;18 25\thas a cat. Eva has
T5\tRed 6 25\thas a cat. Eva has
T6\tRed 5 8\tcat
T7\tRed 2 4\tdog
E1\tRed:T3 Antecedent:T4
M1\tSure E1
N1\tReference T1 Wiki:1\tcat
*\tEquiv T3 T4
#3\tAnnotationError T3\tbad
""".replace("2 16;17 17\tEva has a cat. ", "2 16\tEva has a cat.").replace("8 9\t😀 a", "10 11\t😀 a")


def folder(place: Path, files: dict[str, str]) -> Path:
    root = place / "corpus"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return root


def annotation_of(items: list[Item]) -> Annotation:
    return next(item for item in items if isinstance(item, Annotation))


def test_a_small_folder_becomes_these_records(tmp_path: Path) -> None:
    items = list(brat.read(folder(tmp_path, {"anna/doc.txt": TEXT, "anna/doc.ann": ANN}), Options()))
    assert items[1:3] == [Document(id="doc", text=TEXT), Annotator(id="anna", kind="human")]
    annotation = annotation_of(items)
    assert (annotation.id, annotation.annotator) == ("doc/anna", "anna")
    first, *others = annotation.marks
    assert first == Mark(
        id="doc/anna/T1",
        spans=(Span(18, 34),),
        quotes=("Eva has no pets.",),
        label="contradiction",
        answers={"severity": 3, "sure": True, "comment": "A cat is\na pet."},
        antecedents=Antecedents(spans=(Span(2, 16),), quotes=("Eva has a cat.",)),
    )
    assert [(mark.id[-2:], mark.spans) for mark in others] == [
        ("T3", (Span(0, 1), Span(10, 11))),
        ("T4", (Span(6, 25),)),
        ("T5", (Span(6, 25),)),
        ("T6", (Span(12, 15),)),
        ("T7", ()),
    ]
    assert others[0].antecedents == Antecedents(spans=(Span(6, 25),), quotes=("has a cat.\nEva has",))
    assert others[0].answers == {"sure": True}
    assert others[0].meta == {"AnnotationError": "bad"}
    assert annotation.meta == {"brat": ["N1\tReference T1 Wiki:1\tcat", "*\tEquiv T3 T4"]}
    assert items[-1] == Note(text="1 marks could not be placed; they are kept without a place")
    assert [problem.message for problem in check(Study.from_items(items))] == [
        f"mark '{mark.id}': has an antecedent, which protocol brat-corpus@1 does not ask of '{mark.label}'"
        for mark in (first, others[0])
    ]
