"""A validation as a folder of pages: scores, figures, and a page for each text with gold and judges side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import polars as pl

from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle, label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.span import TEXT, Span
from finecomb.reporting.figures import validation_charts
from finecomb.reporting.page_shell import flag_html, legend_html, marked_text_html, render_page, table_html
from finecomb.reporting.score_tables import format_score_rows
from finecomb.reporting.tables import finding_rows
from finecomb.statistics.gold.disagreements import MarkPairing, compare_judges, mark_pairings, pairing_type_table
from finecomb.statistics.gold.scores import JudgeComparison, Scores

_CASE_TITLES = {
    "right": "right",
    "boundary": "other boundaries",
    "label": "other label",
    "boundary and label": "other boundaries and label",
    "other reading": "found by another reading",
    "missed": "missed",
    "extra": "extra",
}


def write_validation_report(scores: Scores, folder: Path) -> list[Path]:
    """Write the pages and figures; returns what was written."""
    names = [judged.judge.name for judged in scores.judged]
    title = f"{', '.join(names) if len(names) < 4 else f'{len(names)} judges'} against gold"
    texts = folder / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    label_looks = label_styles(scores.pair.protocol)
    cases_by_judge = {judged.judge.name: _group_cases(judged) for judged in scores.judged}
    pages = {id: f"{number:05}.html" for number, id in enumerate(_judged_documents(scores), 1)}
    written = [folder / "index.html"]
    written[0].write_text(_index_page(scores, title, label_looks, cases_by_judge, pages), encoding="utf-8")
    for name, draw in (
        ("precision-recall", validation_charts.precision_recall),
        ("confusion", validation_charts.confusion_map),
    ):
        for ending in (".svg", ".png"):
            validation_charts.save_chart(draw(scores), folder / f"{name}{ending}")
            written.append(folder / f"{name}{ending}")
    documents = scores.pair.documents.filter(pl.col("id").is_in(list(pages)))
    for id, text in documents.select("id", "text").iter_rows():
        (texts / pages[id]).write_text(
            _document_page(id, text, scores, label_looks, cases_by_judge, pages), encoding="utf-8"
        )
        written.append(texts / pages[id])
    return written


def _judged_documents(scores: Scores) -> list[str]:
    counted = {id for judged in scores.judged for id in judged.judge.documents}
    return [id for id in scores.pair.documents["id"] if id in counted]


def _group_cases(judged: JudgeComparison) -> dict[str, list[MarkPairing]]:
    cases_by_document: dict[str, list[MarkPairing]] = {id: [] for id in judged.judge.documents}
    for case in mark_pairings(judged):
        cases_by_document[case.document].append(case)
    return cases_by_document


# --- the first page ----------------------------------------------------------------------------------------------


def _index_page(
    scores: Scores,
    title: str,
    label_looks: Mapping[str | None, LabelStyle],
    cases_by_judge: Mapping[str, Mapping[str, list[MarkPairing]]],
    names: Mapping[str, str],
) -> str:
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="cap">{len(names):,} texts · {len(scores.pair.gold):,} gold marks</p>',
        _figures(scores),
        _section(
            "Recall and precision against gold, with 95% intervals over texts",
            table_html(format_score_rows(scores.rows)),
        ),
        _section("What is wrong with the marks", table_html(pairing_type_table(scores))),
        *_comparison_sections(scores),
        _section("Texts", table_html(list(_text_rows(cases_by_judge, names)), {"text": "html"})),
        *(f'<p class="cap">{escape(note)}</p>' for note in scores.notes),
        f'<p class="cap">{escape(str(scores.rows[0].recall.signature))}</p>',
    ]
    return render_page(title, "".join(parts), _protocol_looks(scores.pair.protocol), validation_charts.vega_script())


def _section(heading: str, body: str) -> str:
    return f'<div class="sheet"><h2 style="margin-top:0">{escape(heading)}</h2>{body}</div>'


def _protocol_looks(protocol: Protocol) -> list[LabelStyle]:
    return list(label_styles(protocol).values())


def _figures(scores: Scores) -> str:
    used = {str(row.columns["label"]) for row in scores.rows}
    used_looks = [look for look in _protocol_looks(scores.pair.protocol) if look.label in used]
    first = validation_charts.panels_html(
        "precision-recall",
        validation_charts.precision_recall_panels(scores),
        validation_charts.precision_recall_panels(scores, dark=True),
        "Precision against recall, one point for each label",
        width=400,
    )
    second = validation_charts.panels_html(
        "confusion",
        validation_charts.confusion_panels(scores),
        validation_charts.confusion_panels(scores, dark=True),
        "Gold labels down, the judge's labels across",
        width=580,
    )
    left = _section("Precision and recall by label", legend_html(used_looks) + first + _undefined_labels_html(scores))
    return f'<div class="figures">{left}{_section("Which label was taken for which", second)}</div>'


def _undefined_labels_html(scores: Scores) -> str:
    """Labels without a point, and why."""
    missing: dict[str, list[str]] = {}
    for row in scores.rows:
        if validation_charts.is_undefined(row):
            why = row.recall.why if math.isnan(row.recall.value) else row.precision.why
            who = f"{row.columns['judge']}: " if len(scores.judged) > 1 else ""
            missing.setdefault(why, []).append(f"{who}{row.columns['label']}")
    lines = [f"Not drawn, since {why}: {', '.join(labels)}." for why, labels in missing.items()]
    return "".join(f'<p class="cap">{escape(line)}</p>' for line in lines)


def _comparison_sections(scores: Scores) -> Iterator[str]:
    if len(scores.judged) > 1:
        rows, _ = finding_rows(compare_judges(scores))
        yield _section("Judges compared, by a paired permutation test over texts", table_html(rows))


def _text_rows(
    cases_by_judge: Mapping[str, Mapping[str, list[MarkPairing]]], names: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    for id, name in names.items():
        row: dict[str, object] = {"text": f'<a href="texts/{name}">{escape(id)}</a>'}
        for judge, cases_by_document in cases_by_judge.items():
            counts = Counter(case.kind for case in cases_by_document.get(id, ()))
            gold = sum(counts.values()) - counts["extra"]
            prefix = f"{judge}: " if len(cases_by_judge) > 1 else ""
            row |= {"gold": gold, f"{prefix}found": gold - counts["missed"], f"{prefix}missed": counts["missed"]}
            row |= {f"{prefix}extra": counts["extra"]}
        yield row


# --- a page for each text ----------------------------------------------------------------------------------------


def _document_page(
    id: str,
    text: str,
    scores: Scores,
    label_looks: Mapping[str | None, LabelStyle],
    cases_by_judge: Mapping[str, Mapping[str, list[MarkPairing]]],
    names: Mapping[str, str],
) -> str:
    order = list(names)
    at = order.index(id)
    links = [("../index.html", "All texts")]
    links += [(names[order[at - 1]], f"← {order[at - 1]}")] if at else []
    links += [(names[order[at + 1]], f"{order[at + 1]} →")] if at + 1 < len(order) else []
    bar = "".join(f'<a href="{target}">{escape(words)}</a>' for target, words in links)
    parts = [f"<nav>{bar}</nav><h1>{escape(id)}</h1>", legend_html(_protocol_looks(scores.pair.protocol))]
    parts.append('<p class="cap">✓ found · dashed frame: missed · hatched: extra, not in gold</p>')
    for judged in scores.judged:
        if id in cases_by_judge[judged.judge.name]:
            parts.append(_side_by_side_html(id, text, judged, cases_by_judge[judged.judge.name][id], label_looks))
    return render_page(id, "".join(parts), _protocol_looks(scores.pair.protocol))


def _side_by_side_html(
    id: str,
    text: str,
    judged: JudgeComparison,
    text_cases: Sequence[MarkPairing],
    label_looks: Mapping[str | None, LabelStyle],
) -> str:
    kinds = {case.gold_mark: "missed" if case.kind == "missed" else "right" for case in text_cases}
    kind_by_mark = {case.predicted_mark: case.kind for case in text_cases}
    right = {
        mark: "extra" if kind_by_mark.get(mark) == "extra" else "right" for mark in judged.judge.marks["id"].to_list()
    }
    sheets = []
    for title, frame, status in (("gold", judged.gold, kinds), (judged.judge.name, judged.judge.marks, right)):
        rows = frame.filter(pl.col("document") == id).iter_rows(named=True)
        marks = [(_text_spans(row), _label_look(label_looks, row["label"]), status[row["id"]]) for row in rows]
        html = marked_text_html(text, marks)
        sheets.append(f'<div class="sheet"><div class="cap">{escape(title)}, {len(marks)} marks</div>{html}</div>')
    differing = [case for case in text_cases if case.kind != "right"]
    heading = f"{len(differing)} disagreements with {judged.judge.name}" if differing else "No disagreements"
    same = "Every mark is the same in both." if text_cases else "Neither has a mark here."
    listed = table_html([_case_row(case, label_looks) for case in differing], dict.fromkeys(("gold", "judge"), "html"))
    return f'<h2>{escape(judged.judge.name)}</h2><div class="two">{"".join(sheets)}</div>' + _section(
        heading, listed if differing else f'<p class="cap">{same}</p>'
    )


def _text_spans(row: Mapping[str, object]) -> list[Span]:
    spans = row["spans"]
    assert isinstance(spans, list)
    return [Span(span["start"], span["end"]) for span in spans if span["part"] == TEXT]


def _label_look(label_looks: Mapping[str | None, LabelStyle], label: str) -> LabelStyle:
    return label_looks.get(label) or LabelStyle(label, label, UNLABELLED_SLOT, "??", "")


def _case_row(case: MarkPairing, label_looks: Mapping[str | None, LabelStyle]) -> dict[str, object]:
    sides = [
        f'{flag_html(_label_look(label_looks, label))} <span class="words">'
        f"{escape(words) or '(something missing)'}</span>"
        if label
        else "–"
        for words, label in ((case.gold, case.gold_label), (case.predicted, case.predicted_label))
    ]
    return {"what": _CASE_TITLES[case.kind], "gold": sides[0], "judge": sides[1]}
