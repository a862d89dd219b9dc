"""Results of `gold` and `score`: merged gold standards and scores of judges against gold."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from finecomb.core.errors import ParameterError, param
from finecomb.core.results import Finding, Findings, Result, Table, shared_signature
from finecomb.core.study import Study
from finecomb.reporting.table_groups import ScoreTable, TableGroup
from finecomb.reporting.tables import frame_rows
from finecomb.statistics.gold import merge_tables
from finecomb.statistics.gold.disagreements import (
    compare_judges,
    disagreement_rows,
    label_confusion_rows,
    pairing_type_table,
    significantly_best_judges,
)
from finecomb.statistics.gold.gold_merge import Gold
from finecomb.statistics.gold.scores import MatchRuleTable, Score, Scores
from finecomb.statistics.gold.unit_scores import calibration_table, recall_at_precision_table
from finecomb.statistics.measures.cross_tables import pivot_findings

GOLD_TABLE_TITLES = {
    "errors": "Errors in gold",
    "annotators": "Annotators compared with their merged gold",
    "confusion": "Label confusion: majority in rows, minority in columns",
    "rates": "Errors per text",
    "agreement": "Agreement on labels, by convention",
    "cost": "Cost of gold",
    "changes": "Normalised marks",
    "rest": "Errors that need adjudication",
}


class GoldResult(TableGroup):
    """Gold standard: the merged study and tables on its annotators."""

    def __init__(
        self,
        merge: Gold,
        by: str,
        draws: int,
        seed: int,
        notes: Sequence[str] = (),
        subsets: tuple[int, Sequence[Score]] | None = None,
    ) -> None:
        self.merge = merge
        """Details of the merge: clusters of marks, their votes, and changes."""
        self.by = by
        titles = GOLD_TABLE_TITLES
        tables: dict[str, Callable[[], Result]] = {
            "errors": lambda: Table(merge_tables.errors_by_label_table(merge), title=titles["errors"]),
            "annotators": lambda: ScoreTable(
                merge_tables.annotator_scores_table(merge, draws, seed), title=titles["annotators"]
            ),
            "confusion": lambda: Table(merge_tables.label_confusion_table(merge), title=titles["confusion"]),
            "rates": lambda: Findings(merge_tables.error_rates_table(merge, by, draws, seed), title=titles["rates"]),
            "agreement": lambda: Findings(
                merge_tables.error_agreement_table(merge, draws, seed), title=titles["agreement"]
            ),
            "cost": lambda: Findings(merge_tables.gold_cost_table(merge), title=titles["cost"]),
            "changes": lambda: Table(merge_tables.normalisation_changes_table(merge), title=titles["changes"]),
            "rest": lambda: Table(merge_tables.undecided_errors_table(merge), title=titles["rest"]),
        }
        if subsets is not None:
            title = f"Gold from {subsets[0]} annotators compared with gold from all annotators"
            tables["subsets"] = lambda: ScoreTable(subsets[1], title=title)
        super().__init__(tables, title=titles["errors"], notes=notes, signature=str(merge.signature))

    @property
    def study(self) -> Study:
        """Study with all texts and a single annotator, `gold`."""
        return self.merge.study

    @property
    def errors(self) -> Table:
        """Errors in gold by label."""
        return self._table_as("errors", Table)

    @property
    def annotators(self) -> ScoreTable:
        """Scores of each annotator against the gold that includes their marks."""
        return self._table_as("annotators", ScoreTable)

    @property
    def confusion(self) -> Table:
        """Label confusion with majority labels in rows and minority labels in columns."""
        return self._table_as("confusion", Table)

    @property
    def rates(self) -> Findings:
        """Errors per text by system and label."""
        return self._table_as("rates", Findings)

    @functools.cached_property
    def rate_grid(self) -> Table:
        """Errors per text with systems in rows and labels in columns."""
        return Table(frame_rows(pivot_findings(self.rates, self.by, "label", as_given=True)), title=self.rates.title)

    @property
    def agreement(self) -> Findings:
        """Kappa and alpha on labels, under each convention."""
        return self._table_as("agreement", Findings)

    @property
    def cost(self) -> Findings:
        """Money and hours spent per text and per error."""
        return self._table_as("cost", Findings)

    @property
    def changes(self) -> Table:
        """Normalised marks with the rule that changed them."""
        return self._table_as("changes", Table)

    @property
    def rest(self) -> Table:
        """Errors that need adjudication."""
        return self._table_as("rest", Table)

    @property
    def subsets(self) -> ScoreTable | None:
        """Scores of gold from fewer annotators against gold from all annotators; None unless requested."""
        return self._table_as("subsets", ScoreTable) if "subsets" in self.names else None


SCORE_TABLE_TITLES = {
    "scores": "Scores against gold",
    "kinds": "Types of disagreement with gold",
    "confusion": "Label confusion: gold in rows, judge in columns",
    "compare": "Comparison of judges, paired by text",
    "disagreements": "Disagreements with gold",
    "recall": "Recall at fixed precision, by sentence score",
    "calibration": "Share of sentences with an error, by sentence score",
}
SENTENCE_SCORE_TABLES = ("recall", "calibration")
"""Tables on the sentence scores of detectors."""


class ScoreResult(TableGroup):
    """Scores against gold, and tables on the differences between judges and gold.

    `names` lists the available tables: those on marks (`from_scores`), F1 and ranks by rule (`from_match_rules`), or
    correlations of scalar metrics (`from_metric_correlations`).
    """

    evaluation: Scores | None = None
    """Scores and the pairs of marks that they are computed from; None for match rules and scalar metrics."""
    seed: int = 0
    has_best: bool = False
    """True if a best judge can be determined: several judges, with scores pooled over all texts (micro-averaged)."""

    @classmethod
    def from_scores(cls, scores: Scores, predicted: Study, by: Sequence[str], seed: int) -> ScoreResult:
        """Build the result of comparing marks; `predicted` is the study with the judges."""
        titles = SCORE_TABLE_TITLES
        tables: dict[str, Callable[[], Result]] = {
            "scores": lambda: ScoreTable(scores.rows, title=titles["scores"], protocol=scores.pair.protocol),
            "kinds": lambda: Table(pairing_type_table(scores), title=titles["kinds"]),
            "confusion": lambda: Table(label_confusion_rows(scores), title=titles["confusion"]),
            "compare": lambda: Findings(compare_judges(scores, seed=seed), title=titles["compare"]),
            "disagreements": lambda: Table(disagreement_rows(scores), title=titles["disagreements"]),
            "recall": lambda: _sentence_score_table(scores, predicted, "recall"),
            "calibration": lambda: _sentence_score_table(scores, predicted, "calibration"),
        }
        hidden = {*SENTENCE_SCORE_TABLES, *(["compare"] if len(scores.judged) < 2 else [])}
        names = [name for name in tables if name not in hidden]
        signature = str(shared_signature(score.recall.signature for score in scores.rows))
        result = cls(tables, title=titles["scores"], notes=scores.pair.notes, signature=signature, names=names)
        result.evaluation, result.seed = scores, seed
        is_micro = scores.fields["average"] is None
        result.has_best = len(scores.judged) > 1 and set(by) <= {"label"} and is_micro
        return result

    @classmethod
    def from_match_rules(cls, by_rule: MatchRuleTable, average: str) -> ScoreResult:
        """Build the result with F1 and rank of each judge under each match rule."""
        title = f"F1 by match rule ({average}), labels ignored"
        ranks = "Rank by match rule (1 is best)"
        tables = {
            "rules": lambda: Table(by_rule.scores, title=title),
            "ranks": lambda: Table(by_rule.ranks, title=ranks),
        }
        return cls(tables, title=title, notes=by_rule.notes)

    @classmethod
    def from_metric_correlations(cls, correlations: Sequence[Finding], notes: Sequence[str] = ()) -> ScoreResult:
        """Build the result with correlations of scalar metrics with people or gold."""
        table = Findings(correlations, title="Correlation of metrics with quality")
        return cls({"metrics": lambda: table}, title=table.title, notes=notes, signature=table.signature)

    @property
    def scores(self) -> ScoreTable:
        """Recall, precision and F1, one row per judge and label."""
        return self._table_as("scores", ScoreTable)

    @property
    def kinds(self) -> Table:
        """Counts of correct, wrong (boundary or label), missed and extra marks."""
        return self._table_as("kinds", Table)

    @property
    def confusion(self) -> Table:
        """Label confusion with gold labels in rows and judge labels in columns."""
        return self._table_as("confusion", Table)

    @property
    def comparison(self) -> Findings:
        """Pairwise differences between judges, with paired permutation tests over texts."""
        return self._table_as("compare", Findings)

    @property
    def disagreements(self) -> Table:
        """Marks on which gold and a judge disagree."""
        return self._table_as("disagreements", Table)

    @property
    def recall(self) -> Table:
        """Recall at fixed precision, by sentence score; requires the match `sentence`."""
        return self._table_as("recall", Table)

    @property
    def calibration(self) -> Table:
        """Share of sentences with an error, by sentence score; requires the match `sentence`."""
        return self._table_as("calibration", Table)

    @property
    def ranks(self) -> Table:
        """Rank of each judge under each match rule; requires the match `all`."""
        return self._table_as("ranks", Table)

    @functools.cached_property
    def best(self) -> frozenset[tuple[str, str]]:
        """Pairs of a judge and a ratio in which the judge scores significantly higher than every other judge."""
        if self.evaluation is None or not self.has_best:
            return frozenset()
        return frozenset(significantly_best_judges(self.evaluation, seed=self.seed))

    def to_markdown(self, digits: int = 3) -> str:
        """Return the first table in Markdown, with the best scores in bold."""
        return self._first_table_with_best_bold(digits).to_markdown(digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the first table in LaTeX (booktabs), with the best scores in bold."""
        return self._first_table_with_best_bold(digits).to_latex(digits)

    def _first_table_with_best_bold(self, digits: int) -> Table:
        return self.scores.display_table(self.best, digits) if self.evaluation else self.display_table(digits)

    def write_report(self, folder: str | Path) -> list[Path]:
        """Write an HTML report with figures into a folder, and return the paths of its files."""
        if self.evaluation is None:
            raise ParameterError(
                f"{param('report')} requires scores of marks with a single match rule",
                parameter="report",
                hint="omit it",
            )
        from finecomb.reporting.validation_pages import (
            write_validation_report,  # importing the chart libraries takes a second
        )

        return write_validation_report(self.evaluation, Path(folder))


def _sentence_score_table(scores: Scores, predicted: Study, name: str) -> Result:
    if scores.fields["match"] != "sentence":
        raise ParameterError(f"{param('table', name)} requires {param('match', 'sentence')}", parameter="match")
    compute = recall_at_precision_table if name == "recall" else calibration_table
    return Table(compute(scores, predicted), title=SCORE_TABLE_TITLES[name])
