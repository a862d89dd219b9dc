"""Statistics of human-or-machine studies, in which people judge whether a person or a machine wrote a text.

Clark et al. (2021).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy  # submodules are imported on first use, which keeps start-up fast
from numpy.typing import NDArray

from finecomb.core.design import design_cells
from finecomb.core.errors import FinecombError, param
from finecomb.core.frames import group_sort_key, meta_entry, parse_json_object
from finecomb.core.results import Estimate, Finding, Findings, Signature
from finecomb.core.study import annotation_rows_with_groups
from finecomb.statistics.agreement.alpha import alpha_from_coincidences, nominal_distance, ordinal_distance
from finecomb.statistics.comparisons.system_comparison import add_adjusted_p
from finecomb.statistics.comparisons.system_ranking import SIGNIFICANCE_LEVEL
from finecomb.statistics.inference.classical_tests import cohen_d, one_sample_t_test, one_way_anova, tukey_hsd
from finecomb.statistics.inference.permutation_tests import Correction
from finecomb.statistics.inference.resampling import Sums, estimate_from_sums, ratio_or_nan
from finecomb.statistics.selection.view import View, answer_text_expression

HUMAN_AUTHOR = "human"
Bins = Literal[2, 4]
Group = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class AuthorshipScale:
    """Question and answer scale of an authorship rating."""

    question: str = "rating"
    human: tuple[float, ...] = (1.0, 2.0)
    machine: tuple[float, ...] = (3.0, 4.0)

    @property
    def all_answers(self) -> tuple[float, ...]:
        """All answers in order, from definitely human to definitely machine."""
        return tuple(sorted({*self.human, *self.machine}))

    @property
    def confident_answers(self) -> tuple[float, float]:
        """Lowest and highest answer: definitely human and definitely machine."""
        return self.all_answers[0], self.all_answers[-1]


def authorship_scale(view: View) -> AuthorshipScale:
    """Return the answer scale in the protocol's `meta.truth` (default: 1 and 2 mean human, 3 and 4 mean machine)."""
    fields: Any = (view.protocol.meta if view.protocol else {}).get("truth")
    if not isinstance(fields, Mapping):
        return AuthorshipScale()
    human, machine = (tuple(map(float, fields[name])) for name in ("human_answers", "machine_answers"))
    return AuthorshipScale(fields["question"], human, machine)


def authorship_ratings(
    view: View, by: Sequence[str] = (), scale: AuthorshipScale | None = None, unfinished: bool = False
) -> pl.DataFrame:
    """Return one row per rating: annotator, document, model, rating, truth, guess, and `by`. True means machine.

    Unrated texts and texts without a known author (`meta.model`) are left out. So are annotators who left before
    finishing all texts of their cell, unless `unfinished` is set.
    """
    scale = scale or authorship_scale(view)
    author = view.study.documents.select(pl.col("id").alias("document"), meta_entry("model").alias("author"))
    answers = view.study.annotations.select(
        annotation="id", rating=answer_text_expression(scale.question).cast(pl.Float64, strict=False)
    )
    rows = annotation_rows_with_groups(view.study, list(by)).join(answers, on="annotation").join(author, on="document")
    rows = rows.filter(pl.col("rating").is_not_null())
    if rows.is_empty():
        raise FinecombError(f"no submitted annotation answers question {scale.question!r} with a number")
    odd = rows.filter(~pl.col("rating").is_in(scale.all_answers))
    if len(odd):
        allowed = ", ".join(f"{value:g}" for value in scale.all_answers)
        raise FinecombError(
            f"annotation {odd['annotation'][0]!r} has the rating {odd['rating'][0]:g}; use one of {allowed}"
        )
    rows = rows.filter(pl.col("author").is_not_null())
    if rows.is_empty():
        raise FinecombError(
            "no rated text names its author; set `meta.model` of documents to the name of a system or to 'human'"
        )
    if not unfinished:
        rows = rows.filter(~pl.col("annotator").is_in(unfinished_annotators(view)))
        if rows.is_empty():
            way = f"use {param('unfinished')} to include annotators who rated some of them"
            raise FinecombError(f"no annotator has finished all texts of their cell; {way}")
    truth, guess = pl.col("author") != HUMAN_AUTHOR, pl.col("rating").is_in(scale.machine)
    return add_assigned_models(view, rows).with_columns(truth=truth, guess=guess, right=truth == guess)


def unfinished_annotators(view: View) -> list[str]:
    """Return the annotators who submitted fewer texts than their cell of the study's design requires."""
    study = view.source or view.study
    if study.settings.design is None:
        return []
    needed = {cell.name: cell.texts or 0 for cell in design_cells(study.settings.design, view.protocol)}
    counts = dict(study.submitted_work().annotations["annotator"].value_counts().iter_rows())
    cells = study.annotators.select("id", "cell").iter_rows()
    return [id for id, cell in cells if 0 < counts.get(id, 0) < needed.get(cell or "", 0)]


def unfinished_notes(view: View, unfinished: bool) -> Iterator[str]:
    """Yield a note if annotators who left early were excluded."""
    readers = set(unfinished_annotators(view)) & set(view.study.annotations["annotator"])
    if readers and not unfinished:
        people = "1 person" if len(readers) == 1 else f"{len(readers):,} people"
        yield f"not counted: {people} who left before finishing all texts of their cell (--unfinished counts them)"


def iter_row_groups(rows: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[Group, pl.DataFrame]]:
    """Yield the ratings of each combination of the columns `by`, in order.

    A group by model has the ratings of the annotators assigned to that model, on its texts and on human texts. See
    `add_assigned_models`.
    """
    others = [name for name in by if name != "model"]
    parts = rows.partition_by(others, as_dict=True, maintain_order=True) if others else {(): rows}
    for key in sorted(parts, key=group_sort_key):
        group = dict(zip(others, key, strict=True))
        if "model" not in by:
            yield group, parts[key]
            continue
        for model in sorted(set(parts[key]["author"].to_list()) - {HUMAN_AUTHOR}):
            assigned = pl.col("assigned").list.contains(model) & pl.col("author").is_in([model, HUMAN_AUTHOR])
            values: Group = {**group, "model": model}
            yield {name: values[name] for name in by}, parts[key].filter(assigned)


def add_assigned_models(view: View, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the column `assigned`: the models that the annotator of each rating was assigned to.

    The models come from the annotator's cell in the study's design: from its factor `model` or, without factors, from
    the parts of its name (`gpt3/stories`). This also covers annotators who rated only human texts. Without a cell, the
    assigned models are those whose texts the annotator rated, or the only model of the study if the annotator rated
    none.
    """
    models = sorted(set(rows["author"].to_list()) - {HUMAN_AUTHOR})
    cells = {}
    for id, cell, factors in view.study.annotators.select("id", "cell", "factors").iter_rows():
        facts = parse_json_object(factors)
        names = {str(facts["model"])} if "model" in facts else set(re.split(r"[\s/|,;+:]+", cell or ""))
        cells[id] = [model for model in models if model in names]
    met = rows.filter(pl.col("author") != HUMAN_AUTHOR).group_by("annotator").agg(pl.col("author").unique().sort())
    read = {reader: list(authors) for reader, authors in met.iter_rows()}
    only = models if len(models) == 1 else []
    # The cell comes first: an annotator who drew only human texts still belongs to a model.
    assigned = [cells.get(reader) or read.get(reader) or only for reader in rows["annotator"]]
    return rows.with_columns(assigned=pl.Series(assigned, dtype=pl.List(pl.String)))


def evaluator_scores(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per evaluator: annotator, right (texts judged correctly), texts, and score (right / texts)."""
    counts = rows.group_by("annotator", maintain_order=True).agg(pl.col("right").sum(), texts=pl.len())
    return counts.with_columns(score=pl.col("right") / pl.col("texts"))


def human_or_machine_findings(
    view: View,
    by: Sequence[str] = ("model",),
    bins: Bins = 2,
    chance: float = 0.5,
    correction: Correction = "bonferroni",
    draws: int = 1000,
    seed: int = 0,
    unfinished: bool = False,
) -> Findings:
    """Compute accuracy, precision, recall, F1 (machine is the positive class), alpha, % human and % confident by group.

    Clark et al. (2021), Tables 1 and 2. Accuracy is the mean score of evaluators, with a t interval and a t-test
    against chance, whose p is corrected over groups. The interval of alpha resamples texts; those of the other measures
    resample evaluators. `bins=4` computes the ordinal alpha of the four answers instead of the nominal alpha of human
    or machine.
    """
    if bins not in (2, 4):
        raise FinecombError(f"bins must be 2 (human or machine) or 4 (the answers as given), found {bins}")
    scale = authorship_scale(view)
    tests: list[Finding] = []
    other_findings: list[list[Finding]] = []
    judgements = authorship_ratings(view, by, scale, unfinished)
    # Precision would always be 1.
    if judgements["truth"].all():
        example = param("where", """'model in ("human", "gpt3")'""")
        raise FinecombError(
            "no rated text was written by a person; when you select a model, also include the human texts, e.g. with "
            f"{example}, or select annotators by their cell with {param('where', 'cell=...')}"
        )
    for group, rows in iter_row_groups(judgements, by):
        fields = {**view.fields, "by": "+".join(by) or None, "annotators": rows["annotator"].n_unique()}
        fields |= {"documents": rows["document"].n_unique(), "judgements": len(rows)}
        columns = {**group, "evaluators": rows["annotator"].n_unique(), "judgements": len(rows)}
        scores = evaluator_scores(rows)["score"].to_numpy()
        test = one_sample_t_test(scores, chance, fields={"unit": "evaluator", **fields})
        columns_of_test = {name: test.columns[name] for name in ("statistic", "df", "p")}
        tests.append(Finding({"measure": "accuracy", **columns, **columns_of_test}, test.estimate))
        columns |= dict.fromkeys(("statistic", "df", "p", "p_adjusted"))
        fields |= {"draws": draws, "seed": seed}
        alpha = _alpha_finding(columns, rows, scale, bins, fields)
        other_findings.append([*_share_findings(columns, rows, scale, fields), alpha])
    if not tests:
        raise FinecombError("every rated text was written by a person; at least one text by a machine is required")
    notes = []
    lost = judgements.filter(pl.col("assigned").list.len() == 0)["annotator"].n_unique()
    if "model" in by and lost:
        readers = "annotator" if lost == 1 else "annotators"
        notes.append(f"not in any row: {lost} {readers} with only human texts and no cell that names a model")
    # p is corrected over all groups, so accuracy joins the other measures of its group only here.
    groups = zip(add_adjusted_p(tests, correction), other_findings, strict=True)
    rows_in_order = [row for test, others in groups for row in (test, *others)]
    return Findings(rows_in_order, [*notes, *unfinished_notes(view, unfinished)])


SHARE_WEIGHTS_BY_MEASURE: Mapping[str, tuple[Sequence[float], Sequence[float]]] = {
    # Weights of TP, FP, FN, TN and confident answers in the numerator and in the denominator.
    "precision": ((1, 0, 0, 0, 0), (1, 1, 0, 0, 0)),
    "recall": ((1, 0, 0, 0, 0), (1, 0, 1, 0, 0)),
    "f1": ((2, 0, 0, 0, 0), (2, 1, 1, 0, 0)),
    "% human": ((0, 0, 100, 100, 0), (1, 1, 1, 1, 0)),
    "% confident": ((0, 0, 0, 0, 100), (1, 1, 1, 1, 0)),
}
UNDEFINED_SHARE_REASONS = {
    "precision": "no annotator answered machine",
    "recall": "no text was written by a machine",
    "f1": "no text was written by a machine, and no annotator answered machine",
}


def _share_findings(
    columns: Mapping[str, object], rows: pl.DataFrame, scale: AuthorshipScale, fields: Mapping[str, object]
) -> Iterator[Finding]:
    truth, guess = pl.col("truth"), pl.col("guess")
    counts = rows.group_by("annotator", maintain_order=True).agg(
        tp=(truth & guess).sum(),
        fp=(~truth & guess).sum(),
        fn=(truth & ~guess).sum(),
        tn=(~truth & ~guess).sum(),
        confident=pl.col("rating").is_in(scale.confident_answers).sum(),
    )
    sums = counts.drop("annotator").to_numpy().astype(np.float64)
    for name, weights in SHARE_WEIGHTS_BY_MEASURE.items():
        above, below = (np.array(weight, dtype=np.float64) for weight in weights)
        signature = Signature.from_fields(statistic=name, unit="evaluator", **fields)

        def share(sums_of_draws: Sums, above: Sums = above, below: Sums = below) -> Sums:
            return ratio_or_nan(sums_of_draws @ above, sums_of_draws @ below)

        yield Finding(
            {"measure": name, **columns},
            _bootstrap_estimate(sums, share, signature, UNDEFINED_SHARE_REASONS.get(name, "")),
        )


def _bootstrap_estimate(sums: Sums, statistic: Callable[[Sums], Sums], signature: Signature, why: str) -> Estimate:
    """Estimate a value with a bootstrap interval, using the draws and seed of the signature."""
    return estimate_from_sums(sums, statistic, int(signature["draws"]), int(signature["seed"]), signature, why)


def coincidences_per_unit(counts: NDArray[np.float64]) -> Sums:
    """Return the coincidences o_ck per unit from the counts of values, (units, values) -> (units, values, values).

    Krippendorff (2011): n_uc (n_uk - [c = k]) / (m_u - 1). Units with fewer than two values add nothing.
    """
    m = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    return np.where(m[:, None, None] >= 2, pairs / np.maximum(m - 1, 1)[:, None, None], 0.0)


def _alpha_finding(
    columns: Mapping[str, object], rows: pl.DataFrame, scale: AuthorshipScale, bins: Bins, fields: Mapping[str, object]
) -> Finding:
    value = pl.col("guess").cast(pl.Int64) if bins == 2 else pl.col("rating")
    levels = (0, 1) if bins == 2 else scale.all_answers
    counts = rows.group_by("document", maintain_order=True).agg(
        (value == level).sum().alias(str(level)) for level in levels
    )
    sums = coincidences_per_unit(counts.drop("document").to_numpy().astype(np.float64))
    signature = Signature.from_fields(
        statistic="alpha", distance="nominal" if bins == 2 else "ordinal", bins=bins, unit="text", **fields
    )
    why = "no text was rated by two evaluators" if not sums.any() else "all ratings are equal"
    return Finding(
        {"measure": "alpha", **columns}, alpha_estimate_from_coincidences(sums, signature, why, ranked=bins == 4)
    )


def alpha_estimate_from_coincidences(sums: Sums, signature: Signature, why: str, ranked: bool = False) -> Estimate:
    """Estimate alpha from the coincidences per unit, (units, values, values), with an interval over units."""
    values = sums.shape[-1]
    flat = sums.reshape(-1, values * values)
    places, distance = np.arange(values, dtype=np.float64), ordinal_distance if ranked else nominal_distance

    def alpha(sums_of_draws: Sums) -> Sums:
        return alpha_from_coincidences(sums_of_draws.reshape(-1, values, values), places, distance)

    return _bootstrap_estimate(flat, alpha, signature, why)


def evaluator_score_histogram(view: View, by: Sequence[str] = ("model",), unfinished: bool = False) -> Findings:
    """Estimate the share of evaluators with 0, 1, ... texts right, with Wilson intervals.

    Clark et al. (2021), appendix A.2.
    """
    findings: list[Finding] = []
    for group, rows in iter_row_groups(authorship_ratings(view, by, unfinished=unfinished), by):
        scores = evaluator_scores(rows)
        for texts in sorted(scores["texts"].unique()):
            right = scores.filter(pl.col("texts") == texts)["right"].to_numpy().astype(np.int64)
            counts = np.bincount(right, minlength=texts + 1)
            fields = {**view.fields, "by": "+".join(by) or None, "annotators": len(right)}
            signature = Signature.from_fields(statistic="score-histogram", interval="wilson", **fields)
            for score, count in enumerate(counts):
                low, high = scipy.stats.binomtest(int(count), len(right)).proportion_ci(0.95, "wilson")
                columns = {"measure": "share of evaluators", **group, "score": score, "of": texts}
                columns |= {"evaluators": int(count)}
                findings.append(Finding(columns, Estimate(count / len(right), float(low), float(high), signature)))
    return Findings(findings, unfinished_notes(view, unfinished))


def evaluator_score_tests(
    view: View, between: str = "condition", by: Sequence[str] = (), unfinished: bool = False
) -> Findings:
    """Test evaluators' scores between conditions, domains or models: ANOVA, Tukey's HSD and Cohen's d.

    Clark et al. (2021), 2.4 and 3.2. Tests are run within each combination of `by`. An evaluator in two groups has one
    score in each.
    """
    findings: list[Finding] = []
    for group, rows in iter_row_groups(
        authorship_ratings(view, [*dict.fromkeys([*by, between])], unfinished=unfinished), by
    ):
        values = {
            str(part[between]): evaluator_scores(judgements)["score"].to_numpy()
            for part, judgements in iter_row_groups(rows, [between])
        }
        if len(values) < 2:
            raise FinecombError(
                f"a comparison requires at least two groups by {between}, found {', '.join(values) or 'none'}"
            )
        fields = {"unit": "evaluator", "between": between, **view.fields}
        tests = [one_way_anova(values, fields=fields), *tukey_hsd(values, fields=fields)]
        for a, b in itertools.combinations(values, 2):
            d = cohen_d(values[a], values[b], fields=fields)
            tests.append(Finding({**d.columns, "a": a, "b": b}, d.estimate))
        order = ("test", "a", "b", "statistic", "df", "p")
        findings += [
            Finding({"measure": "score", **group, **{name: row.columns.get(name) for name in order}}, row.estimate)
            for row in tests
        ]
    return Findings(findings, unfinished_notes(view, unfinished))


# --- wide tables ---------------------------------------------------------------------------------------------------


def pivot_measures_to_columns(findings: Sequence[Finding], overall: Sequence[Finding] = ()) -> list[dict[str, object]]:
    """Return one row per group and one column per measure; a star marks accuracies that differ from chance.

    P-values are corrected. `overall` are findings grouped by the first column only. Their accuracy is added to the
    first row of each group.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in findings:
        about = {name: cell for name, cell in finding.columns.items() if name not in (*_TEST_COLUMNS, *_SIZE_COLUMNS)}
        sizes = {name: finding.columns[name] for name in _SIZE_COLUMNS if name in finding.columns}
        row = rows.setdefault(tuple(about.values()), {**about, **dict.fromkeys(_MEASURE_COLUMNS), **sizes})
        row[str(finding.columns["measure"])] = _star_if_significant(finding)
    if not overall:
        return list(rows.values())
    accuracies = {
        next(cell for name, cell in finding.columns.items() if name != "measure"): _star_if_significant(finding)
        for finding in overall
        if finding.columns["measure"] == "accuracy"
    }
    wide: list[dict[str, object]] = []
    for row in rows.values():
        (name, group), *other_cells = row.items()
        # `pop` adds the overall accuracy to the first row of each value only.
        wide.append({name: group, "overall": accuracies.pop(group, ""), **dict(other_cells)})
    return wide


def _star_if_significant(finding: Finding) -> object:
    p, value = finding.columns.get("p_adjusted"), finding.estimate.value
    return f"{value:.3f}{'*' if p < SIGNIFICANCE_LEVEL else ''}" if isinstance(p, float) else value


_MEASURE_COLUMNS = ("accuracy", "f1", "precision", "recall", "alpha", "% human", "% confident")
"""Measures of a human-or-machine study, in the order of the tables of Clark et al. (2021)."""
_SIZE_COLUMNS = ("evaluators", "judgements")
_TEST_COLUMNS = ("measure", "statistic", "df", "p", "p_adjusted")
