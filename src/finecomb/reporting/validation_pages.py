"""Output folder of `validate`: scores, figures, and a page per text with gold and judges side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import polars as pl

from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle, label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.span import TEXT_PART, Span
from finecomb.reporting.figures import validation_charts
from finecomb.reporting.figures.figure_model import format_count_with_noun
from finecomb.reporting.page_shell import flag_html, legend_html, marked_text_html, render_standalone_page, table_html
from finecomb.reporting.score_tables import format_score_rows
from finecomb.reporting.tables import finding_rows
from finecomb.statistics.gold.disagreements import MarkPairing, compare_judges, mark_pairings, pairing_type_table
from finecomb.statistics.gold.scores import JudgeComparison, Scores

_CASE_TITLES = {
    "right": "right",
    "boundary": "different boundaries",
    "label": "different label",
    "boundary and label": "different boundaries and label",
    "other reading": "matches an alternative in gold",
    "missed": "missed",
    "extra": "extra",
}


def write_validation_report(scores: Scores, folder: Path) -> list[Path]:
    """Write the pages and figures of a validation, and return the paths of the files."""
    names = [judged.judge.name for judged in scores.judged]
    title = f"{', '.join(names) if len(names) < 4 else f'{len(names)} judges'} compared with gold"
    texts = folder / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    styles = label_styles(scores.pair.protocol)
    cases_by_judge: dict[str, dict[str, list[MarkPairing]]] = {}
    for judged in scores.judged:
        cases_by_document = cases_by_judge[judged.judge.name] = {id: [] for id in judged.judge.documents}
        for case in mark_pairings(judged):
            cases_by_document[case.document].append(case)
    counted = {id for judged in scores.judged for id in judged.judge.documents}
    pages = {
        id: f"{number:05}.html"
        for number, id in enumerate([id for id in scores.pair.documents["id"] if id in counted], 1)
    }
    written = [folder / "index.html"]
    written[0].write_text(_index_page_html(scores, title, styles, cases_by_judge, pages), encoding="utf-8")
    for chart in (validation_charts.precision_recall_chart(scores), validation_charts.confusion_chart(scores)):
        written += [chart.save(folder / f"{chart.id}{ending}", heading=False) for ending in (".svg", ".png")]
    documents = scores.pair.documents.filter(pl.col("id").is_in(list(pages)))
    for id, text in documents.select("id", "text").iter_rows():
        (texts / pages[id]).write_text(
            _document_page_html(id, text, scores, styles, cases_by_judge, pages), encoding="utf-8"
        )
        written.append(texts / pages[id])
    return written


# --- first page --------------------------------------------------------------------------------------------------


def _index_page_html(
    scores: Scores,
    title: str,
    styles: Mapping[str | None, LabelStyle],
    cases_by_judge: Mapping[str, Mapping[str, list[MarkPairing]]],
    names: Mapping[str, str],
) -> str:
    counts = (
        format_count_with_noun(len(names), "text"),
        format_count_with_noun(len(scores.pair.gold), "gold mark"),
    )
    comparison = []
    if len(scores.judged) > 1:
        heading = "Comparison of judges (paired permutation test over texts)"
        comparison.append(_section_html(heading, table_html(finding_rows(compare_judges(scores))[0])))
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="cap">{" · ".join(counts)}</p>',
        _figures_html(scores),
        _section_html(
            "Recall and precision against gold, with 95% intervals over texts",
            table_html(format_score_rows(scores.rows)),
        ),
        _section_html("Types of disagreement with gold", table_html(pairing_type_table(scores))),
        *comparison,
        _section_html("Texts", table_html(list(_text_list_rows(cases_by_judge, names)), {"text": "html"})),
        *(f'<p class="cap">{escape(note)}</p>' for note in scores.notes),
        f'<p class="cap">{escape(str(scores.rows[0].recall.signature))}</p>',
    ]
    return render_standalone_page(title, "".join(parts), _protocol_label_styles(scores.pair.protocol))


def _section_html(heading: str, body: str) -> str:
    return f'<div class="sheet"><h2 style="margin-top:0">{escape(heading)}</h2>{body}</div>'


def _protocol_label_styles(protocol: Protocol) -> list[LabelStyle]:
    return list(label_styles(protocol).values())


def _figures_html(scores: Scores) -> str:
    used = {str(row.columns["label"]) for row in scores.rows}
    used_styles = [style for style in _protocol_label_styles(scores.pair.protocol) if style.label in used]
    first = validation_charts.panels_html(
        validation_charts.precision_recall_chart(scores), "Precision against recall, one point per label", width=400
    )
    second = validation_charts.panels_html(
        validation_charts.confusion_chart(scores), "Label confusion, gold in rows and judge in columns", width=580
    )
    missing: dict[str, list[str]] = {}
    for row in scores.rows:
        if validation_charts.has_undefined_ratio(row):
            why = row.recall.why if math.isnan(row.recall.value) else row.precision.why
            judge = f"{row.columns['judge']}: " if len(scores.judged) > 1 else ""
            missing.setdefault(why, []).append(f"{judge}{row.columns['label']}")
    lines = [f"Not drawn because {why}: {', '.join(labels)}." for why, labels in missing.items()]
    left = _section_html(
        "Precision and recall by label",
        legend_html(used_styles) + first + "".join(f'<p class="cap">{escape(line)}</p>' for line in lines),
    )
    return f'<div class="figures">{left}{_section_html("Label confusion", second)}</div>'


def _text_list_rows(
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


# --- page per text -----------------------------------------------------------------------------------------------


def _document_page_html(
    id: str,
    text: str,
    scores: Scores,
    styles: Mapping[str | None, LabelStyle],
    cases_by_judge: Mapping[str, Mapping[str, list[MarkPairing]]],
    names: Mapping[str, str],
) -> str:
    order = list(names)
    index = order.index(id)
    links = [("../index.html", "All texts")]
    links += [(names[order[index - 1]], f"← {order[index - 1]}")] if index else []
    links += [(names[order[index + 1]], f"{order[index + 1]} →")] if index + 1 < len(order) else []
    bar = "".join(f'<a href="{target}">{escape(words)}</a>' for target, words in links)
    parts = [f"<nav>{bar}</nav><h1>{escape(id)}</h1>", legend_html(_protocol_label_styles(scores.pair.protocol))]
    parts.append('<p class="cap">✓ found in both · dashed frame: missed by the judge · hatched: extra, not in gold</p>')
    for judged in scores.judged:
        if id in cases_by_judge[judged.judge.name]:
            parts.append(_side_by_side_html(id, text, judged, cases_by_judge[judged.judge.name][id], styles))
    return render_standalone_page(id, "".join(parts), _protocol_label_styles(scores.pair.protocol))


def _side_by_side_html(
    id: str,
    text: str,
    judged: JudgeComparison,
    text_cases: Sequence[MarkPairing],
    styles: Mapping[str | None, LabelStyle],
) -> str:
    kinds = {case.gold_mark: "missed" if case.kind == "missed" else "right" for case in text_cases}
    kind_by_mark = {case.predicted_mark: case.kind for case in text_cases}
    right = {
        mark: "extra" if kind_by_mark.get(mark) == "extra" else "right" for mark in judged.judge.marks["id"].to_list()
    }
    sheets = []
    for title, frame, status in (("gold", judged.gold, kinds), (judged.judge.name, judged.judge.marks, right)):
        rows = frame.filter(pl.col("document") == id).iter_rows(named=True)
        marks = [
            (
                [Span(span["start"], span["end"]) for span in row["spans"] if span["part"] == TEXT_PART],
                _label_style_or_plain(styles, row["label"]),
                status[row["id"]],
            )
            for row in rows
        ]
        sheets.append(
            f'<div class="sheet"><div class="cap">{escape(title)}, {format_count_with_noun(len(marks), "mark")}</div>'
            f"{marked_text_html(text, marks)}</div>"
        )
    differing = [case for case in text_cases if case.kind != "right"]
    heading = (
        f"{format_count_with_noun(len(differing), 'disagreement')} with {judged.judge.name}"
        if differing
        else "No disagreements"
    )
    same = "Gold and judge have the same marks." if text_cases else "Neither gold nor judge has a mark in this text."
    listed = table_html(
        [_mark_pairing_row(case, styles) for case in differing], dict.fromkeys(("gold", "judge"), "html")
    )
    return f'<h2>{escape(judged.judge.name)}</h2><div class="two">{"".join(sheets)}</div>' + _section_html(
        heading, listed if differing else f'<p class="cap">{same}</p>'
    )


def _label_style_or_plain(styles: Mapping[str | None, LabelStyle], label: str) -> LabelStyle:
    return styles.get(label) or LabelStyle(label, label, UNLABELLED_SLOT, "??", "")


def _mark_pairing_row(case: MarkPairing, styles: Mapping[str | None, LabelStyle]) -> dict[str, object]:
    sides = [
        f'{flag_html(_label_style_or_plain(styles, label))} <span class="words">{escape(words) or "(omission)"}</span>'
        if label
        else "–"
        for words, label in ((case.gold, case.gold_label), (case.predicted, case.predicted_label))
    ]
    return {"what": _CASE_TITLES[case.kind], "gold": sides[0], "judge": sides[1]}
