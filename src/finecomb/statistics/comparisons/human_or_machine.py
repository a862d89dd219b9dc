"""Human or machine? Statistics of studies in which readers rate who wrote a text (Clark et al. 2021)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy  # its parts load when first used: start-up stays quick
from numpy.typing import NDArray

from finecomb.core.design import design_cells
from finecomb.core.errors import FinecombError, param
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import meta_entry, parse_json_object
from finecomb.core.results import Findings
from finecomb.statistics.agreement.alpha import alpha_from_coincidences, nominal_distance, ordinal_distance
from finecomb.statistics.comparisons.system_comparison import add_adjusted_p
from finecomb.statistics.comparisons.system_ranking import SIGNIFICANCE_LEVEL
from finecomb.statistics.inference.classical_tests import anova, cohen_d, t_test, tukey
from finecomb.statistics.inference.permutation_tests import Correction
from finecomb.statistics.inference.resampling import Sums, estimate_from_sums, ratio_or_nan
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups, group_sort_key
from finecomb.statistics.selection.view import View, answer_text_expression

HUMAN = "human"
Bins = Literal[2, 4]
Group = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class AuthorshipScale:
    """What the numbers of the rating mean."""

    question: str = "rating"
    human: tuple[float, ...] = (1.0, 2.0)
    machine: tuple[float, ...] = (3.0, 4.0)

    @property
    def values(self) -> tuple[float, ...]:
        """All answers in order, from surely human to surely machine."""
        return tuple(sorted({*self.human, *self.machine}))

    @property
    def confident_answers(self) -> tuple[float, float]:
        """The two ends: "definitely"."""
        return self.values[0], self.values[-1]


def authorship_scale(view: View) -> AuthorshipScale:
    """As the protocol's `meta.truth` says, else 1 and 2 for human, 3 and 4 for machine."""
    fields: Any = (view.protocol.meta if view.protocol else {}).get("truth")
    if not isinstance(fields, Mapping):
        return AuthorshipScale()
    human, machine = (tuple(map(float, fields[name])) for name in ("human_answers", "machine_answers"))
    return AuthorshipScale(fields["question"], human, machine)


def authorship_ratings(
    view: View, by: Sequence[str] = (), scale: AuthorshipScale | None = None, unfinished: bool = False
) -> pl.DataFrame:
    """One row per judgement: annotator, document, model, rating, truth and guess (True is machine), `by`.

    Unrated texts and texts whose author is not known (no `meta.model`) are left out; so are people who left before they
    had read all texts of their cell, unless `unfinished` asks for them.
    """
    scale = scale or authorship_scale(view)
    author = view.study.documents.select(pl.col("id").alias("document"), meta_entry("model").alias("author"))
    answers = view.study.annotations.select(
        annotation="id", rating=answer_text_expression(scale.question).cast(pl.Float64, strict=False)
    )
    rows = annotation_rows_with_groups(view.study, list(by)).join(answers, on="annotation").join(author, on="document")
    rows = rows.filter(pl.col("rating").is_not_null())
    if rows.is_empty():
        raise FinecombError(f"there are no ratings: no submitted annotation answers {scale.question!r} with a number")
    odd = rows.filter(~pl.col("rating").is_in(scale.values))
    if len(odd):
        allowed = ", ".join(f"{value:g}" for value in scale.values)
        raise FinecombError(
            f"annotation {odd['annotation'][0]!r} is rated {odd['rating'][0]:g}; the scale is {allowed}"
        )
    rows = rows.filter(pl.col("author").is_not_null())
    if rows.is_empty():
        raise FinecombError("no rated text says who wrote it: document meta `model` is a system's name, or `human`")
    if not unfinished:
        rows = rows.filter(~pl.col("annotator").is_in(unfinished_annotators(view)))
        if rows.is_empty():
            way = f"{param('unfinished')} counts who has read some"
            raise FinecombError(f"nobody has read all texts of their cell yet; {way}")
    truth, guess = pl.col("author") != HUMAN, pl.col("rating").is_in(scale.machine)
    return add_assigned_models(view, rows).with_columns(truth=truth, guess=guess, right=truth == guess)


def unfinished_annotators(view: View) -> list[str]:
    """People in a cell of the study's design who handed in fewer texts than everybody there is to read."""
    study = view.source or view.study
    if study.settings.design is None:
        return []
    needed = {cell.name: cell.texts or 0 for cell in design_cells(study.settings.design, view.protocol)}
    counts = dict(study.submitted_work().annotations["annotator"].value_counts().iter_rows())
    cells = study.annotators.select("id", "cell").iter_rows()
    return [id for id, cell in cells if 0 < counts.get(id, 0) < needed.get(cell or "", 0)]


def unfinished_notes(view: View, unfinished: bool) -> Iterator[str]:
    """That people who left before the end are not counted, where there are any."""
    readers = set(unfinished_annotators(view)) & set(view.study.annotations["annotator"])
    if readers and not unfinished:
        people = "1 person" if len(readers) == 1 else f"{len(readers):,} people"
        yield f"{people} left before reading all texts of their cell and are not counted (--unfinished counts them)"


def iter_row_groups(rows: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[Group, pl.DataFrame]]:
    """Rows of each combination of `by`, in order.

    A group by model is that of the readers who were assigned to it: their ratings of its texts and of human texts. See
    `add_assigned_models` for what is known about that.
    """
    others = [name for name in by if name != "model"]
    parts = rows.partition_by(others, as_dict=True, maintain_order=True) if others else {(): rows}
    for key in sorted(parts, key=group_sort_key):
        group = dict(zip(others, key, strict=True))
        if "model" not in by:
            yield group, parts[key]
            continue
        for model, part in _iter_model_groups(parts[key]):
            yield {name: ({**group, "model": model})[name] for name in by}, part


def _iter_model_groups(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    for model in sorted(set(rows["author"].to_list()) - {HUMAN}):
        assigned = pl.col("assigned").list.contains(model)
        yield model, rows.filter(assigned & pl.col("author").is_in([model, HUMAN]))


def add_assigned_models(view: View, rows: pl.DataFrame) -> pl.DataFrame:
    """Judgements with `assigned`: the models that their reader was assigned to.

    The cell of the study's design that they were assigned to says so, by its factor `model` or, in a study without
    factors, as one of the parts of its name (`gpt3/stories`); also where a reader drew human texts only. Where nothing
    is known, the models whose texts the reader met are taken, and the only model there is for who met none.
    """
    models = sorted(set(rows["author"].to_list()) - {HUMAN})
    people = view.study.annotators.select("id", "cell", "factors").iter_rows()
    cells = {id: _cell_models(cell or "", parse_json_object(factors), models) for id, cell, factors in people}
    met = rows.filter(pl.col("author") != HUMAN).group_by("annotator").agg(pl.col("author").unique().sort())
    read = {reader: list(authors) for reader, authors in met.iter_rows()}
    only = models if len(models) == 1 else []
    assigned = [cells.get(reader) or read.get(reader) or only for reader in rows["annotator"]]
    return rows.with_columns(assigned=pl.Series(assigned, dtype=pl.List(pl.String)))


def _cell_models(cell: str, factors: Mapping[str, Any], models: Sequence[str]) -> list[str]:
    """The models that a cell stands for."""
    names = {str(factors["model"])} if "model" in factors else set(re.split(r"[\s/|,;+:]+", cell))
    return [model for model in models if model in names]


def evaluator_scores(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per evaluator: annotator, right (texts judged rightly), texts, and score, their ratio."""
    per = rows.group_by("annotator", maintain_order=True).agg(pl.col("right").sum(), texts=pl.len())
    return per.with_columns(score=pl.col("right") / pl.col("texts"))


def human_or_machine(
    view: View,
    by: Sequence[str] = ("model",),
    bins: Bins = 2,
    chance: float = 0.5,
    correction: Correction = "bonferroni",
    draws: int = 1000,
    seed: int = 0,
    unfinished: bool = False,
) -> Findings:
    """Accuracy, precision, recall and F1 (machine is positive), alpha, % human and % confident of each group.

    Clark et al. (2021), Tables 1 and 2. Accuracy is the mean of the evaluators' scores with a t interval and a t-test
    against chance, p corrected over groups. The others have intervals over evaluators, alpha over texts. `bins=4` asks
    for the (ordinal) alpha of the four answers in place of the nominal one of human or machine.
    """
    if bins not in (2, 4):
        raise FinecombError(f"bins are 2 (human or machine) or 4 (the answers as given), not {bins}")
    scale = authorship_scale(view)
    findings: list[Finding] = []
    tests: list[Finding] = []
    judgements = authorship_ratings(view, by, scale, unfinished)
    _require_human_texts(judgements)
    for group, rows in iter_row_groups(judgements, by):
        fields = {**view.fields, "by": "+".join(by) or None, "annotators": rows["annotator"].n_unique()}
        fields |= {"documents": rows["document"].n_unique(), "judgements": len(rows)}
        columns = {**group, "evaluators": rows["annotator"].n_unique(), "judgements": len(rows)}
        tests.append(_accuracy_finding({"measure": "accuracy", **columns}, rows, chance, fields))
        findings += _share_findings(columns, rows, scale, fields | {"draws": draws, "seed": seed})
        findings.append(_alpha_finding(columns, rows, scale, bins, fields | {"draws": draws, "seed": seed}))
    if not tests:
        raise FinecombError("every rated text was written by a person; there is no machine to tell them from")
    notes = [*_unassigned_annotator_notes(judgements, by), *unfinished_notes(view, unfinished)]
    return Findings(_interleave_accuracy_tests(add_adjusted_p(tests, correction), findings), notes)


def _unassigned_annotator_notes(rows: pl.DataFrame, by: Sequence[str]) -> Iterator[str]:
    """Who is in no group by model, since nothing says which model they were assigned to."""
    lost = rows.filter(pl.col("assigned").list.len() == 0)["annotator"].n_unique()
    if "model" in by and lost:
        readers = "reader met" if lost == 1 else "readers met"
        yield (
            f"{lost} {readers} human texts only, and no cell says which model they were assigned to; they are in no row"
        )


def _require_human_texts(rows: pl.DataFrame) -> None:
    """An error where no text by a person is left: nobody could be told from the machine, and precision would be 1."""
    if rows["truth"].all():
        example = param("where", """'model in ("human", "gpt3")'""")
        raise FinecombError(
            "no rated text was written by a person, so nothing could be told apart; to choose a model keep the human "
            f"texts, e.g. {example}, or choose readers by their cell, {param('where', 'cell=...')}"
        )


def _interleave_accuracy_tests(tests: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """Each group's accuracy before the rest of it; columns of the test are empty in the rest."""
    size = len(others) // len(tests)
    empty = {"statistic": None, "df": None, "p": None, "p_adjusted": None}
    rest = [Finding({**other.columns, **empty}, other.estimate) for other in others]
    return [row for at, test in enumerate(tests) for row in (test, *rest[at * size : (at + 1) * size])]


def _accuracy_finding(
    columns: Mapping[str, object], rows: pl.DataFrame, chance: float, fields: Mapping[str, object]
) -> Finding:
    test = t_test(evaluator_scores(rows)["score"].to_numpy(), chance, fields={"unit": "evaluator", **fields})
    columns_of_test = {name: test.columns[name] for name in ("statistic", "df", "p")}
    return Finding({**columns, **columns_of_test}, test.estimate)


SHARES: Mapping[str, tuple[Sequence[float], Sequence[float]]] = {
    # Weights of TP, FP, FN, TN, confident in the numerator and in the denominator.
    "precision": ((1, 0, 0, 0, 0), (1, 1, 0, 0, 0)),
    "recall": ((1, 0, 0, 0, 0), (1, 0, 1, 0, 0)),
    "f1": ((2, 0, 0, 0, 0), (2, 1, 1, 0, 0)),
    "% human": ((0, 0, 100, 100, 0), (1, 1, 1, 1, 0)),
    "% confident": ((0, 0, 0, 0, 100), (1, 1, 1, 1, 0)),
}
UNDEFINED_SHARE_REASONS = {
    "precision": "nobody answered machine",
    "recall": "no text was written by a machine",
    "f1": "no text was written by a machine, and nobody answered machine",
}


def confusion_counts_per_evaluator(rows: pl.DataFrame, scale: AuthorshipScale | None = None) -> Sums:
    """TP, FP, FN, TN and confident answers of each evaluator, (evaluators, 5)."""
    truth, guess = pl.col("truth"), pl.col("guess")
    per = rows.group_by("annotator", maintain_order=True).agg(
        tp=(truth & guess).sum(),
        fp=(~truth & guess).sum(),
        fn=(truth & ~guess).sum(),
        tn=(~truth & ~guess).sum(),
        confident=pl.col("rating").is_in((scale or AuthorshipScale()).confident_answers).sum(),
    )
    return per.drop("annotator").to_numpy().astype(np.float64)


def _share_findings(
    columns: Mapping[str, object], rows: pl.DataFrame, scale: AuthorshipScale, fields: Mapping[str, object]
) -> Iterator[Finding]:
    sums = confusion_counts_per_evaluator(rows, scale)
    for name, weights in SHARES.items():
        above, below = (np.array(weight, dtype=np.float64) for weight in weights)
        signature = Signature.from_fields(statistic=name, unit="evaluator", **fields)

        def share(sums_of_draws: Sums, above: Sums = above, below: Sums = below) -> Sums:
            return ratio_or_nan(sums_of_draws @ above, sums_of_draws @ below)

        yield Finding(
            {"measure": name, **columns},
            _bootstrap_estimate(sums, share, signature, UNDEFINED_SHARE_REASONS.get(name, "")),
        )


def _bootstrap_estimate(sums: Sums, statistic: Callable[[Sums], Sums], signature: Signature, why: str) -> Estimate:
    """Value and interval with the draws and the seed that the signature names."""
    return estimate_from_sums(sums, statistic, int(signature["draws"]), int(signature["seed"]), signature, why)


def unit_coincidences(counts: NDArray[np.float64]) -> Sums:
    """o_ck of each unit from how often it got each value, (units, values) -> (units, values, values).

    Krippendorff (2011): n_uc (n_uk - [c = k]) / (m_u - 1); units with fewer than two values add nothing.
    """
    m = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    return np.where(m[:, None, None] >= 2, pairs / np.maximum(m - 1, 1)[:, None, None], 0.0)


def _alpha_finding(
    columns: Mapping[str, object], rows: pl.DataFrame, scale: AuthorshipScale, bins: Bins, fields: Mapping[str, object]
) -> Finding:
    value = pl.col("guess").cast(pl.Int64) if bins == 2 else pl.col("rating")
    levels = (0, 1) if bins == 2 else scale.values
    per = rows.group_by("document", maintain_order=True).agg(
        (value == level).sum().alias(str(level)) for level in levels
    )
    sums = unit_coincidences(per.drop("document").to_numpy().astype(np.float64))
    signature = Signature.from_fields(
        statistic="alpha", distance="nominal" if bins == 2 else "ordinal", bins=bins, unit="text", **fields
    )
    why = "no text was rated by two evaluators" if not sums.any() else "all ratings are equal"
    return Finding({"measure": "alpha", **columns}, alpha_estimate(sums, signature, why, ranked=bins == 4))


def alpha_estimate(sums: Sums, signature: Signature, why: str, ranked: bool = False) -> Estimate:
    """Alpha of the coincidences of each unit, (units, values, values), with an interval over units."""
    values = sums.shape[-1]
    flat = sums.reshape(-1, values * values)
    places, distance = np.arange(values, dtype=np.float64), ordinal_distance if ranked else nominal_distance

    def alpha(sums_of_draws: Sums) -> Sums:
        return alpha_from_coincidences(sums_of_draws.reshape(-1, values, values), places, distance)

    return _bootstrap_estimate(flat, alpha, signature, why)


def score_histogram(view: View, by: Sequence[str] = ("model",), unfinished: bool = False) -> Findings:
    """How many evaluators got 0, 1, ... texts right, as a share with a Wilson interval (Clark et al., appendix A.2)."""
    findings: list[Finding] = []
    for group, rows in iter_row_groups(authorship_ratings(view, by, unfinished=unfinished), by):
        per = evaluator_scores(rows)
        for texts in sorted(per["texts"].unique()):
            right = per.filter(pl.col("texts") == texts)["right"].to_numpy().astype(np.int64)
            counts = np.bincount(right, minlength=texts + 1)
            signature = Signature.from_fields(
                statistic="score-histogram",
                interval="wilson",
                **view.fields,
                by="+".join(by) or None,
                annotators=len(right),
            )
            for score, count in enumerate(counts):
                low, high = scipy.stats.binomtest(int(count), len(right)).proportion_ci(0.95, "wilson")
                columns = {
                    "measure": "share of evaluators",
                    **group,
                    "score": score,
                    "of": texts,
                    "evaluators": int(count),
                }
                findings.append(Finding(columns, Estimate(count / len(right), float(low), float(high), signature)))
    return Findings(findings, unfinished_notes(view, unfinished))


def score_tests(view: View, between: str = "condition", by: Sequence[str] = (), unfinished: bool = False) -> Findings:
    """ANOVA, Tukey's HSD and Cohen's d of evaluators' scores between conditions, domains or models.

    Clark et al. (2021), 2.4 and 3.2. Within each combination of `by`. An evaluator in two groups has a score in each.
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
            raise FinecombError(f"a comparison needs two groups; by {between} there is only {', '.join(values)!r}")
        fields = {"unit": "evaluator", "between": between, **view.fields}
        tests = [anova(values, fields=fields), *tukey(values, fields=fields)]
        for a, b in itertools.combinations(values, 2):
            d = cohen_d(values[a], values[b], fields=fields)
            tests.append(Finding({**d.columns, "a": a, "b": b}, d.estimate))
        order = ("test", "a", "b", "statistic", "df", "p")
        findings += [
            Finding({"measure": "score", **group, **{name: row.columns.get(name) for name in order}}, row.estimate)
            for row in tests
        ]
    return Findings(findings, unfinished_notes(view, unfinished))


# --- one row per group ---------------------------------------------------------------------------------------------


def wide_rows(findings: Sequence[Finding], overall: Sequence[Finding] = ()) -> list[dict[str, object]]:
    """One row per group with a column for each measure; a star where accuracy differs from chance, p corrected.

    `overall` are the findings of the first column of groups alone: their accuracy stands in the first row of each.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in findings:
        about = {name: cell for name, cell in finding.columns.items() if name not in (*_TEST_COLUMNS, *_SIZE_COLUMNS)}
        row = rows.setdefault(
            tuple(about.values()), {**about, **dict.fromkeys(_MEASURE_COLUMNS), **_sample_sizes(finding)}
        )
        row[str(finding.columns["measure"])] = _star_if_significant(finding)
    return _add_overall_accuracy(list(rows.values()), overall)


def _add_overall_accuracy(rows: Sequence[dict[str, object]], overall: Sequence[Finding]) -> list[dict[str, object]]:
    """Rows with the accuracy of all that have the same first column, once for each."""
    values = {
        next(cell for name, cell in finding.columns.items() if name != "measure"): _star_if_significant(finding)
        for finding in overall
        if finding.columns["measure"] == "accuracy"
    }
    wide: list[dict[str, object]] = []
    for row in rows:
        (name, group), *rest = row.items()
        wide.append({name: group, "overall": values.pop(group, ""), **dict(rest)} if overall else row)
    return wide


def _star_if_significant(finding: Finding) -> object:
    p, value = finding.columns.get("p_adjusted"), finding.estimate.value
    return f"{value:.3f}{'*' if p < SIGNIFICANCE_LEVEL else ''}" if isinstance(p, float) else value


def _sample_sizes(finding: Finding) -> dict[str, object]:
    return {name: finding.columns[name] for name in _SIZE_COLUMNS if name in finding.columns}


_MEASURE_COLUMNS = ("accuracy", "f1", "precision", "recall", "alpha", "% human", "% confident")
"""Measures of a human-or-machine study in the order in which Clark et al. (2021) print them."""
_SIZE_COLUMNS = ("evaluators", "judgements")
_TEST_COLUMNS = ("measure", "statistic", "df", "p", "p_adjusted")
