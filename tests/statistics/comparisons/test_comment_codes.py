from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import krippendorff
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.statistics.comparisons.comment_codes import coder_agreement, comment_code_shares
from tests.golden.clark_2021 import CODES

TURING, COMMENTS = load("turing"), load("comments")


def coded(given: Sequence[Mapping[str, Sequence[str]]], conditions: Sequence[str] = ()) -> Study:
    """Build one explanation per entry, with the codes of each coder."""
    conditions = conditions or ["none"] * len(given)
    document = Document(id="d", text="Once.", meta={"model": "human"})
    readers = [Annotator(id=f"r{at}", kind="human", condition=each) for at, each in enumerate(conditions)]
    coders = [Annotator(id=name, kind="human") for name in sorted({name for each in given for name in each})]
    ratings = [
        Annotation(
            id=f"e{at}", document="d", annotator=f"r{at}", protocol=TURING.id, answers={"rating": 1, "why": "So."}
        )
        for at in range(len(given))
    ]
    codings = [
        Annotation(
            id=f"e{at}/{coder}",
            document="d",
            annotator=coder,
            protocol=COMMENTS.id,
            about=f"e{at}",
            answers={"codes": tuple(codes)},
        )
        for at, each in enumerate(given)
        for coder, codes in each.items()
    ]
    return Study.from_items([TURING, COMMENTS, document, *readers, *coders, *ratings, *codings])


def test_shares_are_of_codes_and_leave_null_out() -> None:
    given = [
        {"x": ["grammar", "repetition"], "y": ["grammar"]},
        {"x": ["null-vague"], "y": ["miscellaneous"]},
        {"x": ["genre"], "y": ["writer-intent-and-expression"]},
    ]
    found = {(row.columns["level"], row.columns["name"]): row for row in comment_code_shares(coded(given), draws=100)}
    shares = {name: row.estimate.value for (level, name), row in found.items() if level == "group"}
    assert shares == pytest.approx({"Form": 60, "Content": 20, "Machine capabilities": 20})
    assert found["code", "grammar"].estimate.value == pytest.approx(40)
    assert ("code", "null-vague") not in found
    assert found["group", "Form"].estimate.signature["comments"] == "2"


def test_shares_by_condition_give_clarks_table_3() -> None:
    # 65 + 34 + 39 = 138 codes give 47.1, 24.6 and 28.3; 39 + 60 + 21 = 120 give 32.5, 50.0 and 17.5.
    counts = {"none": (65, 34, 39), "examples": (39, 60, 21)}
    codes = ("grammar", "coherence", "writer-intent-and-expression")
    rows = [
        (condition, code) for condition, n in counts.items() for code, k in zip(codes, n, strict=True) for _ in range(k)
    ]
    study = coded([{"x": [code]} for _, code in rows], [condition for condition, _ in rows])
    found = [row for row in comment_code_shares(study, ["condition"], draws=50) if row.columns["level"] == "group"]
    for condition, printed in CODES.items():
        shares = [round(row.estimate.value, 1) for row in found if row.columns["condition"] == condition]
        assert tuple(shares) == printed


def test_agreement_of_the_coders_is_that_of_the_krippendorff_package() -> None:
    given = [
        {"x": ["grammar", "repetition"], "y": ["grammar"]},
        {"x": ["genre"], "y": ["genre"]},
        {"x": ["repetition"], "y": ["repetition", "genre"]},
        {"x": ["grammar"]},
    ]
    found = {row.columns["name"]: row.estimate for row in coder_agreement(coded(given), draws=50)}
    for code in ("grammar", "genre", "repetition"):
        table = [[float(code in each[coder]) if coder in each else math.nan for each in given] for coder in "xy"]
        assert found[code].value == pytest.approx(krippendorff.alpha(table, level_of_measurement="nominal"))
    assert found["factuality"].why == "the code was assigned to none or all of the explanations"
    assert 0 < found["all codes"].value < 1


def test_one_coder_agrees_with_nobody() -> None:
    found = coder_agreement(coded([{"x": ["grammar"]}, {"x": ["genre"]}]))
    assert {row.estimate.why for row in found} == {"no explanation was coded by two coders"}


def test_without_codes_that_count_there_is_no_share() -> None:
    (found,) = comment_code_shares(coded([{"x": ["null-vague"]}]))
    assert found.estimate.why == "no code was given apart from those left out"


def test_a_study_without_codings_is_refused() -> None:
    study = Study.from_items([COMMENTS, Document(id="d", text="Once.")])
    with pytest.raises(FinecombError, match="is about a comment"):
        comment_code_shares(study)
