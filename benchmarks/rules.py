"""Precision of each rule on texts that people marked, and speed of the rules.

A mark of a rule is correct if it shares a character with a human mark; `kind` counts only human marks of the error
types that the rule covers. Texts: the 50 of Scarecrow in the samples of Thresh (one annotator each) and the 150
summaries of SNaC (any vote). Requires FINECOMB_DATA. Rules whose package is missing are skipped with a message. Writes
the tables of docs/detect/rules.md.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks._docs import markdown_table, write_table
from benchmarks.boxscore import print_table
from finecomb import formats
from finecomb.annotators.detectors.rules import DEFAULT_RULES, LOADERS_BY_RULE, RULES_BY_NAME
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, Mark
from finecomb.core.study import Study
from finecomb.formats import Options

LABELS_BY_RULE = {
    "repetition": ("redundant", "rep"),
    "meaning": ("redundant", "rep"),
    "doubled-words": ("grammar-usage", "gram"),
    "unbalanced": ("grammar-usage", "gram"),
    "broken-ending": ("grammar-usage", "gram"),
    "grammar": ("grammar-usage", "gram"),
    "grammar-tagger": ("grammar-usage", "gram"),
    "arithmetic": ("bad-math",),
    "conversions": ("bad-math",),
    "currency": ("bad-math", "self-contradiction", "incon"),
    "impossible": ("bad-math", "encyclopedic"),
    "ages": ("self-contradiction", "incon"),
    "contradictions": ("self-contradiction", "incon"),
    "drift": ("off-prompt",),
    "people": ("char", "ref", "incoherent"),
    "definite": ("char", "ref", "coref", "incoherent"),
}
PAGE = "detect/rules.md"
Rows = list[dict[str, object]]
STUDY_FILES = (("snac", "snac/SNaC_data.json", "snac"), ("scarecrow", "thresh_samples/scarecrow.json", "thresh"))
TITLES = {"snac": "SNaC", "scarecrow": "Scarecrow"}


def available_rules() -> list[str]:
    """Return the rules whose packages are installed."""
    names = []
    for name in RULES_BY_NAME:
        try:
            LOADERS_BY_RULE.get(name, bool)()
            names.append(name)
        except FinecombError as error:
            print(f"skipped: {error}")
    return names


def precision_rows(study: Study, name: str, rules: Sequence[str]) -> Rows:
    """Return, per rule, its number of marks, and how many of them people marked, at all and as its error type."""
    people: dict[str, list[Mark]] = {}
    for annotation in study.iter_annotations():
        people.setdefault(annotation.document, []).extend(annotation.marks)
    documents = list(study.iter_documents())
    rows: Rows = []
    for rule in rules:
        met = [
            marks for document in documents for marks in _overlapping_marks(document, rule, people.get(document.id, []))
        ]
        of_kind = sum(any(mark.label in LABELS_BY_RULE[rule] for mark in marks) for marks in met)
        rows.append({"texts": name, "rule": rule, "marks": len(met), "right": sum(map(bool, met)), "kind": of_kind})
    return rows


def _overlapping_marks(document: Document, rule: str, marks: list[Mark]) -> Iterator[list[Mark]]:
    """Return, per hint of a rule, the human marks that share a character with it."""
    for hint in RULES_BY_NAME[rule](document):
        yield [mark for mark in marks if any(hint.start < span.end and span.start < hint.end for span in mark.spans)]


def precision_table(studies: Mapping[str, Rows]) -> str:
    """Return rules as rows and studies as columns, with a share if there are at least three marks."""
    by_rule: dict[str, list[object]] = {}
    for rows in studies.values():
        for row in rows:
            marks = int(str(row["marks"]))
            counts = [_format_share(int(str(row[part])), marks) for part in ("right", "kind")]
            by_rule.setdefault(str(row["rule"]), []).extend([marks, *counts])
    heads = [f"{name}: {head}" if not at else head for name in studies for at, head in enumerate(STUDY_HEADER)]
    return markdown_table(["rule", *heads], [[f"`{rule}`", *cells] for rule, cells in by_rule.items()])


STUDY_HEADER = ("marks", "marked by people", "as this kind")


def _format_share(right: int, marks: int) -> str:
    share = f"{right / marks:.2f}".removeprefix("0") if marks >= 3 else ""
    return f"{right} ({share})" if share else str(right) if marks else ""


def main() -> None:
    place = os.environ.get("FINECOMB_DATA")
    if not place:
        sys.exit("set FINECOMB_DATA to the folder with the released data")
    texts: list[Document] = []
    rules, studies = available_rules(), {}
    for name, file, form in STUDY_FILES:
        study = Study.from_items(formats.stream_records(Path(place) / file, form, Options()))
        texts += study.iter_documents()
        studies[TITLES[name]] = precision_rows(study, name, rules)
        print_table(f"Rules on {name}", studies[TITLES[name]])
    write_table(PAGE, "precision", precision_table(studies))
    words = sum(len(document.text.split()) for document in texts)
    start = time.process_time()
    for document in texts:
        for rule in DEFAULT_RULES:
            list(RULES_BY_NAME[rule](document))
    minutes = (time.process_time() - start) / 60
    row = [[len(DEFAULT_RULES), f"{words / minutes / 1e6:.1f} million", "1 million"]]
    write_table(
        PAGE,
        "speed",
        markdown_table(["rules that run without being named", "words a minute, all together", "wanted"], row),
    )
