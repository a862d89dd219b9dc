"""Commands about gold: merge annotators into it, and score anybody against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer

from finecomb import formats
from finecomb.cli.filters import (
    Annotators,
    Draws,
    Drop,
    Kinds,
    Protocol,
    Seed,
    Tokens,
    Where,
    build_filters,
    filter_study,
    split_names,
)
from finecomb.cli.output import refuse_plot
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    StudyPath,
    app,
    format_count,
    plot_findings,
    print_note,
    print_outcome,
    print_signature,
    print_table,
    prints_bold,
    read,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding
from finecomb.core.study import Study
from finecomb.reporting.score_tables import format_score_rows, score_findings, score_rows
from finecomb.reporting.tables import Row, as_json, finding_rows, frame_rows
from finecomb.statistics.agreement.minimal_repairs import Repairs
from finecomb.statistics.comparisons.system_ranking import BEST_RULE
from finecomb.statistics.gold import merge_tables
from finecomb.statistics.gold.disagreements import (
    best_judges,
    compare_judges,
    confusion,
    disagreements,
    pairing_type_table,
)
from finecomb.statistics.gold.gold_and_judges import UnreadPolicy
from finecomb.statistics.gold.gold_merge import MAJORITY, Gold, MinVotes
from finecomb.statistics.gold.gold_merge import gold as merged_gold
from finecomb.statistics.gold.scalar_metrics import has_only_scalar_scores, scalar_metric_correlations
from finecomb.statistics.gold.scores import Average, Category, RuleTable, Score, Scores, ScoreSettings, score_by_rules
from finecomb.statistics.gold.scores import score as scored
from finecomb.statistics.gold.unit_scores import calibration_table, recall_at_precision_table
from finecomb.statistics.measures.cross_tables import pivot
from finecomb.statistics.selection.view import view

MatchOrAll = Literal[
    "task", "optimal", "overlap", "exact", "partial", "iou", "mpp", "token", "char", "wmt25", "sentence", "all"
]
RepairsOption = Annotated[
    Repairs,
    typer.Option(
        "--repairs",
        help="One error in two readings as marks declare it, or also smallest: one name or two numbers.",
    ),
]
Table = Sequence[Row] | Sequence[Finding] | Sequence[Score]


class _TablePrinter:
    """Prints tables as they come, or collects them for one JSON object."""

    def __init__(self, as_json_: bool, several: bool) -> None:
        self.as_json, self.several = as_json_, several
        self.rows: list[Row] = []
        self.signatures: list[str] = []
        self.best: Collection[tuple[str, str]] = ()
        """Judge and ratio of the scores that are best beyond chance."""

    def add_table(self, name: str, title: str, table: Table) -> None:
        """One more table."""
        flat, signature = _flat_rows(table)
        if self.as_json:
            self.rows += [{"table": name, **row} if self.several else row for row in flat]
            self.signatures += [signature] if signature else []
            return
        printed = format_score_rows([row for row in table if isinstance(row, Score)], self.best) or flat
        printed, title = _move_judge_to_title(printed, title)
        print_table(printed, title, f"{title}: nothing to show.", flat=flat)
        print_signature(signature, " (95% intervals)" if any(map(_has_interval, flat)) else "")

    def finish(self, notes: Sequence[str]) -> None:
        """The JSON object, or the notes."""
        if self.as_json:
            typer.echo(as_json(self.rows, self.signatures[0] if len(self.signatures) == 1 else "", notes))
            return
        for note in notes:
            print_note(note)


def _flat_rows(table: Table) -> tuple[list[Row], str]:
    scores = [row for row in table if isinstance(row, Score)]
    findings = _findings(table)
    if scores:
        return score_rows(scores)
    if findings:
        return finding_rows(findings)
    return [row for row in table if isinstance(row, dict)], ""


def _findings(table: Table) -> list[Finding]:
    return [row for row in table if isinstance(row, Finding)]


def _move_judge_to_title(rows: list[Row], title: str) -> tuple[list[Row], str]:
    """A single judge is named above the table instead of in every row."""
    judges = {row.get("judge") for row in rows}
    if len(judges) != 1 or judges == {None}:
        return rows, title
    others: list[Row] = [{name: value for name, value in row.items() if name != "judge"} for row in rows]
    return others, f"{title}: {judges.pop()}"


def _has_interval(row: Row) -> bool:
    edges = [value for name, value in row.items() if name == "low" or name.endswith("_low")]
    return any(isinstance(edge, float) and math.isfinite(edge) for edge in edges)


def _parse_table_names(text: str, all_names: Sequence[str]) -> list[str]:
    chosen = list(all_names) if text == "all" else split_names(text)
    for name in chosen:
        if name not in all_names:
            raise FinecombError(f"no table is called {name!r}{did_you_mean(name, [*all_names, 'all'])}")
    return chosen


GOLD_TABLE_TITLES = {
    "errors": "Errors in gold",
    "annotators": "Each annotator against the gold they helped to make",
    "confusion": "What the minority said where most said something else",
    "rates": "Errors per text",
    "agreement": "Agreement on labels, by convention",
    "cost": "What it cost",
    "changes": "What was normalised",
    "rest": "Left for adjudication",
}


@app.command()
def gold(
    study: StudyPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The gold study to write.", show_default=False)
    ] = None,
    min_votes: Annotated[
        str | None,
        typer.Option(
            help="How many annotators must have marked an error, or majority: more than half of a text's readers.",
            show_default="2; with --subsets the majority of each",
        ),
    ] = None,
    align: Annotated[
        str,
        typer.Option(help="Which marks are one error: item, overlap, overlap-label, gamma; auto: item where given."),
    ] = "auto",
    size: Annotated[
        Literal["widest", "narrowest", "majority", "union"],
        typer.Option(help="How long the gold mark is; majority: the tokens that more than half have."),
    ] = "majority",
    tables_: Annotated[
        str, typer.Option("--table", "-t", help=f"With commas, or all: {', '.join(GOLD_TABLE_TITLES)}.")
    ] = "errors,annotators",
    subsets: Annotated[
        int | None,
        typer.Option(
            help="Also score gold from every so many annotators against gold from all, each with its own majority.",
            show_default=False,
        ),
    ] = None,
    decisions: Annotated[
        bool, typer.Option("--decisions/--votes-only", help="Let what an adjudicator decided count instead of votes.")
    ] = True,
    grid: Annotated[bool, typer.Option("--grid", help="For rates: systems down and labels across.")] = False,
    repairs: RepairsOption = "declared",
    by: Annotated[str, typer.Option("--by", help="For rates: the document meta that tells systems apart.")] = "model",
    protocol: Protocol = "",
    annotators: Annotators = None,
    kinds: Kinds = None,
    where: Where = None,
    drop: Drop = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Merge annotators into a gold standard: errors with enough votes, the majority's label, and all that led to it.

    Examples: `finecomb gold demo-study -o demo-gold` · `finecomb gold demo-study --table confusion,rates --subsets 3`
    """
    table_names = _parse_table_names(tables_, list(GOLD_TABLE_TITLES))
    if grid and "rates" not in table_names:
        raise FinecombError("--grid is for the table of rates: --table rates --grid")
    whole = read(study, from_)
    study_view = view(whole, build_filters(protocol, drop=drop, where=where, annotators=annotators, kinds=kinds))
    least = _parse_min_votes(min_votes)
    by_decisions = whole if decisions and not annotators and not kinds else None
    merged = merged_gold(study_view, 2 if least is None else least, align, size, by_decisions, repairs)
    printer = _TablePrinter(as_json_, several=len(table_names) + (subsets is not None) > 1)
    printable = _gold_tables(merged, by, draws, seed)
    if grid and not as_json_:
        printable["rates"] = lambda: frame_rows(
            pivot(merge_tables.rates_table(merged, by, draws, seed), by, "label", as_given=True)
        )
    for name in table_names:
        printer.add_table(name, GOLD_TABLE_TITLES[name], printable[name]())
    if subsets is not None:
        subset_scores = merge_tables.subsets_table(
            study_view, subsets, least or MAJORITY, align, size, draws, seed, repairs
        )
        printer.add_table("subsets", f"Gold from {subsets} annotators against gold from all", subset_scores)
    printer.finish([*study_view.notes, *merged.notes, *merge_tables.recovered_error_notes(merged, study_view)])
    if output:
        for note in formats.save(merged.study.items(), output, force=force):
            print_note(note)
        if not as_json_:
            left = f"{format_count(len(merged.undecided_errors), 'error')} left for adjudication (--table rest)"
            print_outcome(
                output,
                f"{format_count(len(merged.kept_errors), 'error')} in "
                f"{format_count(_text_count(merged), 'text')}; {left}",
            )


def _parse_min_votes(text: str | None) -> MinVotes | None:
    if text is None or text == MAJORITY:
        return None if text is None else MAJORITY
    if not text.isdecimal() or not int(text):
        raise FinecombError(f"--min-votes {text}: expected a whole number from 1, or majority")
    return int(text)


def _text_count(merged: Gold) -> int:
    return merged.study.submitted_work().annotations["document"].n_unique()


def _gold_tables(merged: Gold, by: str, draws: int, seed: int) -> dict[str, Callable[[], Table]]:
    return {
        "errors": lambda: merge_tables.errors_table(merged),
        "annotators": lambda: merge_tables.annotators_table(merged, draws, seed),
        "confusion": lambda: merge_tables.confusion_table(merged),
        "rates": lambda: merge_tables.rates_table(merged, by, draws, seed),
        "agreement": lambda: merge_tables.agreement_table(merged, draws, seed),
        "cost": lambda: merge_tables.cost_table(merged),
        "changes": lambda: merge_tables.changes_table(merged),
        "rest": lambda: merge_tables.undecided_table(merged),
    }


SCORE_TABLE_TITLES = {
    "scores": "Against gold",
    "kinds": "What is wrong with the marks",
    "confusion": "Which label was taken for which: gold down, judge across",
    "compare": "Judges compared, paired over texts",
    "disagreements": "Every disagreement",
    "recall": "Recall where so much is right, by the scores of sentences",
    "calibration": "How often sentences with such a score have an error",
}
UNIT_TABLES = ("recall", "calibration")


@app.command()
def score(
    gold: StudyPath,
    predicted: Annotated[
        Path | None,
        typer.Argument(help="Who is to be scored; without it everybody else in the first study.", show_default=False),
    ] = None,
    match: Annotated[
        MatchOrAll, typer.Option(help="When a mark has found a gold mark; all: F1 and rank of everybody by each rule.")
    ] = "optimal",
    average: Annotated[
        Average, typer.Option(help="Ratios of the sums over texts (micro), or means of each text's ratios (macro).")
    ] = "micro",
    category: Annotated[
        Category,
        typer.Option(help="For a label: both lists restricted to it, or gold for recall, marks for precision."),
    ] = "both",
    by: Annotated[str, typer.Option("--by", help="label and document meta, with commas.")] = "label",
    tables_: Annotated[
        str, typer.Option("--table", "-t", help=f"With commas, or all: {', '.join(SCORE_TABLE_TITLES)}.")
    ] = "scores",
    gold_annotator: Annotated[
        str, typer.Option("--gold", help="Who is gold, where no annotator is of that kind.", show_default=False)
    ] = "",
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", "-a", help="Score only this annotator; may be repeated.", show_default=False),
    ] = None,
    question: Annotated[
        str,
        typer.Option(help="For scalar metrics: what people answered; without it gold's errors.", show_default=False),
    ] = "",
    report: Annotated[
        Path | None, typer.Option(help="Write pages and figures into this folder.", show_default=False)
    ] = None,
    protocol: Protocol = "",
    tokens: Tokens = "words",
    unread: Annotated[
        UnreadPolicy,
        typer.Option(help="Texts that only one side has an annotation on: nothing found there, or left out."),
    ] = "empty",
    repairs: RepairsOption = "declared",
    where: Where = None,
    drop: Drop = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Recall and precision of any person, model, detector or metric against gold, with intervals.

    Examples: `finecomb score gsml.csv submission.csv` · `finecomb score demo-study --by label,model` ·
    `finecomb score demo-study --match all` · `finecomb score demo-study --table all --report validation`
    """
    table_names = _parse_table_names(tables_, list(SCORE_TABLE_TITLES))
    truth, other = filter_study(read(gold, from_), where, drop), read(predicted, from_) if predicted else None
    if other is not None and (where or drop):
        other = _restrict_to_texts(truth, other, drop or ())
    if question or has_only_scalar_scores(truth if other is None else other):
        _print_scalar_scores(truth, other, question, split_names(by), gold_annotator, draws, seed, as_json_)
        return
    if match == "all":
        refuse_plot("a table of F1 by every rule")
        options = ScoreSettings(
            gold_annotator=gold_annotator, judges=judges or (), protocol=protocol, tokens=tokens, unread=unread,
            average=average, repairs=repairs,
        )  # fmt: skip
        _print_scores_by_rule(score_by_rules(truth, other, category, **options), average, as_json_)
        return
    scores = scored(
        truth, other, match, category, split_names(by), gold_annotator=gold_annotator, judges=judges or (),
        protocol=protocol,
        tokens=tokens, unread=unread, average=average, repairs=repairs, draws=draws, seed=seed,
    )  # fmt: skip
    if tables_ == "all":
        hidden = {*UNIT_TABLES, *(["compare"] if len(scores.judged) < 2 else [])}
        table_names = [name for name in table_names if name not in hidden]
    elif match != "sentence" and (units := [name for name in table_names if name in UNIT_TABLES]):
        raise FinecombError(f"--table {units[0]}: is about scores of sentences; add --match sentence")
    plot_findings(score_findings(scores.rows), scores.pair.protocol)
    printer = _TablePrinter(as_json_, several=len(table_names) > 1)
    if len(scores.judged) > 1 and set(split_names(by)) <= {"label"} and average == "micro" and prints_bold():
        printer.best = best_judges(scores, seed=seed)
        if printer.best:
            print_note(f"bold: higher than every other judge (labels ignored), {BEST_RULE}")
    printable = _score_tables(scores, truth if other is None else other, seed)
    for name in table_names:
        printer.add_table(name, SCORE_TABLE_TITLES[name], printable[name]())
    printer.finish(scores.notes)
    if report:
        _write_report(scores, report, as_json_)


def _restrict_to_texts(truth: Study, other: Study, drop: Sequence[str]) -> Study:
    """The other study on the texts of gold only: conditions are about gold's documents, which know their meta."""
    texts = truth.documents["id"].implode()
    part = replace(other, documents=other.documents.filter(pl.col("id").is_in(texts)))
    part = part.filter_annotations(pl.col("document").is_in(texts))
    return filter_study(part, (), drop)


def _print_scores_by_rule(by_rule: RuleTable, average: str, as_json_: bool) -> None:
    printer = _TablePrinter(as_json_, several=True)
    printer.add_table("rules", f"F1 by each rule ({average}), labels ignored", by_rule.scores)
    printer.add_table("ranks", "Rank by each rule: 1 is the best", by_rule.ranks)
    printer.finish(by_rule.notes)


def _score_tables(scores: Scores, predicted: Study, seed: int) -> dict[str, Callable[[], Table]]:
    return {
        "scores": lambda: scores.rows,
        "kinds": lambda: pairing_type_table(scores),
        "confusion": lambda: confusion(scores),
        "compare": lambda: compare_judges(scores, seed=seed),
        "disagreements": lambda: disagreements(scores),
        "recall": lambda: recall_at_precision_table(scores, predicted),
        "calibration": lambda: calibration_table(scores, predicted),
    }


def _print_scalar_scores(
    truth: Study,
    other: Study | None,
    question: str,
    by: Sequence[str],
    gold: str,
    draws: int,
    seed: int,
    as_json_: bool,
) -> None:
    given = next((name for name in by if name != "label"), "model")
    printer = _TablePrinter(as_json_, several=False)
    metrics = scalar_metric_correlations(truth, other, question, given, gold, draws, seed)
    plot_findings(metrics)
    printer.add_table("metrics", "Metrics against people", metrics)
    printer.finish([])


def _write_report(scores: Scores, folder: Path, quiet: bool) -> None:
    from finecomb.reporting.validation_pages import (
        write_validation_report,  # figures take a second to load: only when they are wanted
    )

    written = write_validation_report(scores, folder)
    if not quiet:
        print_outcome(folder, f"{format_count(len(written), 'file')}; open {folder / 'index.html'}")
