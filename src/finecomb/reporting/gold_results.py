"""Results of merging annotators into gold and of scoring judges against gold."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from finecomb.core.errors import ParameterError, param
from finecomb.core.estimate import Finding
from finecomb.core.results import Findings, Result, Table
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
from finecomb.statistics.measures.cross_tables import pivot

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


class GoldResult(TableGroup):
    """A gold standard: the study, and tables about the annotators that it was made from."""

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
        """Everything that went into gold: clusters of marks, votes, and changes to marks."""
        self.by = by
        titles = GOLD_TABLE_TITLES
        tables: dict[str, Callable[[], Result]] = {
            "errors": lambda: Table(merge_tables.errors_by_label_table(merge), title=titles["errors"]),
            "annotators": lambda: ScoreTable(
                merge_tables.annotator_scores_table(merge, draws, seed), title=titles["annotators"]
            ),
            "confusion": lambda: Table(merge_tables.label_confusion_table(merge), title=titles["confusion"]),
            "rates": lambda: Findings(merge_tables.error_rates_table(merge, by, draws, seed), title=titles["rates"]),
            "agreement": lambda: Findings(merge_tables.agreement_table(merge, draws, seed), title=titles["agreement"]),
            "cost": lambda: Findings(merge_tables.cost_table(merge), title=titles["cost"]),
            "changes": lambda: Table(merge_tables.normalisation_changes_table(merge), title=titles["changes"]),
            "rest": lambda: Table(merge_tables.undecided_errors_table(merge), title=titles["rest"]),
        }
        if subsets is not None:
            title = f"Gold from {subsets[0]} annotators against gold from all"
            tables["subsets"] = lambda: ScoreTable(subsets[1], title=title)
        super().__init__(tables, title=titles["errors"], notes=notes, signature=str(merge.signature))

    @property
    def study(self) -> Study:
        """The texts with one annotator, `gold`."""
        return self.merge.study

    @property
    def errors(self) -> Table:
        """Errors in gold by label."""
        return self._table_as("errors", Table)

    @property
    def annotators(self) -> ScoreTable:
        """Each annotator against the gold they helped to make."""
        return self._table_as("annotators", ScoreTable)

    @property
    def confusion(self) -> Table:
        """Labels of the majority in rows, labels of the minority in columns."""
        return self._table_as("confusion", Table)

    @property
    def rates(self) -> Findings:
        """Errors per text by system and label."""
        return self._table_as("rates", Findings)

    @functools.cached_property
    def rate_grid(self) -> Table:
        """Errors per text with systems in rows and labels in columns."""
        return Table(frame_rows(pivot(self.rates, self.by, "label", as_given=True)), title=self.rates.title)

    @property
    def agreement(self) -> Findings:
        """Kappa and alpha on labels, under every convention."""
        return self._table_as("agreement", Findings)

    @property
    def cost(self) -> Findings:
        """Money and hours per text and per error."""
        return self._table_as("cost", Findings)

    @property
    def changes(self) -> Table:
        """Marks that were normalised, and by which rule."""
        return self._table_as("changes", Table)

    @property
    def rest(self) -> Table:
        """Errors left for adjudication."""
        return self._table_as("rest", Table)

    @property
    def subsets(self) -> ScoreTable | None:
        """Gold from fewer annotators against gold from all; None unless it was asked for."""
        return self._table_as("subsets", ScoreTable) if "subsets" in self.names else None


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
"""Tables about the scores that detectors give to sentences."""


class ScoreResult(TableGroup):
    """Scores against gold, and tables about where judges and gold differ.

    Which tables there are is in `names`: those of marks (`from_scores`), F1 and ranks by rule (`from_rules`), or
    correlations of scalar metrics (`from_metrics`).
    """

    evaluation: Scores | None = None
    """Which mark was paired with which; None for rules and scalar metrics."""
    seed: int = 0
    has_best: bool = False
    """Whether the best judge can be told: several judges, pooled over texts, and not split by document meta."""

    @classmethod
    def from_scores(cls, scores: Scores, predicted: Study, by: Sequence[str], seed: int) -> ScoreResult:
        """Return the result of comparing marks; `predicted` is the study of the judges."""
        titles = SCORE_TABLE_TITLES
        tables: dict[str, Callable[[], Result]] = {
            "scores": lambda: ScoreTable(scores.rows, title=titles["scores"], protocol=scores.pair.protocol),
            "kinds": lambda: Table(pairing_type_table(scores), title=titles["kinds"]),
            "confusion": lambda: Table(label_confusion_rows(scores), title=titles["confusion"]),
            "compare": lambda: Findings(compare_judges(scores, seed=seed), title=titles["compare"]),
            "disagreements": lambda: Table(disagreement_rows(scores), title=titles["disagreements"]),
            "recall": lambda: _unit_table(scores, predicted, "recall"),
            "calibration": lambda: _unit_table(scores, predicted, "calibration"),
        }
        hidden = {*UNIT_TABLES, *(["compare"] if len(scores.judged) < 2 else [])}
        names = [name for name in tables if name not in hidden]
        signature = ScoreTable(scores.rows).signature
        result = cls(tables, title=titles["scores"], notes=scores.notes, signature=signature, names=names)
        result.evaluation, result.seed = scores, seed
        is_micro = scores.fields["average"] is None
        result.has_best = len(scores.judged) > 1 and set(by) <= {"label"} and is_micro
        return result

    @classmethod
    def from_rules(cls, by_rule: MatchRuleTable, average: str) -> ScoreResult:
        """Return F1 and ranks of every judge under every rule."""
        title = f"F1 by each rule ({average}), labels ignored"
        ranks = "Rank by each rule: 1 is the best"
        tables = {
            "rules": lambda: Table(by_rule.scores, title=title),
            "ranks": lambda: Table(by_rule.ranks, title=ranks),
        }
        return cls(tables, title=title, notes=by_rule.notes)

    @classmethod
    def from_metrics(cls, correlations: Sequence[Finding]) -> ScoreResult:
        """Return correlations of scalar metrics with people or gold."""
        table = Findings(correlations, title="Metrics against people")
        return cls({"metrics": lambda: table}, title=table.title, signature=table.signature)

    @property
    def scores(self) -> ScoreTable:
        """Recall, precision and F1, one row per judge and label."""
        return self._table_as("scores", ScoreTable)

    @property
    def kinds(self) -> Table:
        """Marks that are right, wrong in boundary or label, missed and extra."""
        return self._table_as("kinds", Table)

    @property
    def confusion(self) -> Table:
        """Labels of gold in rows, labels of the judge in columns."""
        return self._table_as("confusion", Table)

    @property
    def comparison(self) -> Findings:
        """Differences between every two judges, with paired permutation tests over texts."""
        return self._table_as("compare", Findings)

    @property
    def disagreements(self) -> Table:
        """Every mark that gold and a judge do not share."""
        return self._table_as("disagreements", Table)

    @property
    def recall(self) -> Table:
        """Recall at fixed precision, by the scores of sentences; needs the match `sentence`."""
        return self._table_as("recall", Table)

    @property
    def calibration(self) -> Table:
        """Share of sentences with an error by score; needs the match `sentence`."""
        return self._table_as("calibration", Table)

    @property
    def ranks(self) -> Table:
        """Rank of every judge under each rule; needs the match `all`."""
        return self._table_as("ranks", Table)

    @functools.cached_property
    def best(self) -> frozenset[tuple[str, str]]:
        """Judge and ratio of the scores that are significantly higher than those of every other judge."""
        has_best = self.evaluation is not None and self.has_best
        return (
            frozenset(significantly_best_judges(self.evaluation, seed=self.seed))
            if has_best and self.evaluation
            else frozenset()
        )

    def to_markdown(self, digits: int = 3) -> str:
        """Return the first table in Markdown, the best scores in bold."""
        return self._paper_table(digits).to_markdown(digits)

    def to_latex(self, digits: int = 3) -> str:
        """Return the first table in LaTeX (booktabs), the best scores in bold."""
        return self._paper_table(digits).to_latex(digits)

    def _paper_table(self, digits: int) -> Table:
        return self.scores.display_table(self.best, digits) if self.evaluation else self.display_table(digits)

    def write_report(self, folder: str | Path) -> list[Path]:
        """Write pages and figures into a folder, and return the files."""
        if self.evaluation is None:
            raise ParameterError(
                f"{param('report')} applies only to scores of marks by one rule",
                parameter="report",
                hint="leave it out",
            )
        from finecomb.reporting.validation_pages import write_validation_report  # figures take a second to load

        return write_validation_report(self.evaluation, Path(folder))


def _unit_table(scores: Scores, predicted: Study, name: str) -> Result:
    if scores.fields["match"] != "sentence":
        raise ParameterError(
            f"{param('table', name)}: is about scores of sentences; add {param('match', 'sentence')}", parameter="match"
        )
    compute = recall_at_precision_table if name == "recall" else calibration_table
    return Table(compute(scores, predicted), title=SCORE_TABLE_TITLES[name])
