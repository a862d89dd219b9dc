"""Every measure of agreement under its own name, for all labels at once, with intervals over documents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import polars as pl

from finecomb.agreement import alpha as alphas
from finecomb.agreement import kappa, pairs
from finecomb.agreement.align import align
from finecomb.agreement.boundaries import normalised
from finecomb.agreement.gamma import pooled as gammas
from finecomb.agreement.gamma.measured import GammaSettings, Measured
from finecomb.agreement.ratings import NO_ERROR, UnitRatings, document_ratings, item_ratings, mark_ratings, unit_ratings
from finecomb.agreement.tally import Floats, Ints, Tally, Weights, pooled, summed, tally_counts, tally_votes
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Finding, Signature
from finecomb.core.span import TEXT
from finecomb.core.study import Study
from finecomb.measure.grid import Grid, Votes, lay, placed, votes
from finecomb.measure.grid import Level as GridLevel
from finecomb.measure.inference import estimated, few_documents, ratio, study_and_resample_weights
from finecomb.measure.view import ANY, View, as_view

Level = Literal["token", "char", "sentence", "segment", "document", "item"]
Kind = Literal["marks", "items", "answers"]


@dataclass(frozen=True, slots=True)
class AgreeOptions:
    """How marks are compared; each that matters goes into the signature."""

    level: Level = "token"
    """What is rated: units of the text, or errors that `align` found."""
    tokens: str = "words"
    """Name of the tokenizer."""
    question: str = ""
    """Compare answers to this question instead of marks: of documents, of units (level sentence or segment) or of
    aligned marks (level item)."""
    by_label: bool = True
    """One row for each label beside `any`."""
    overlap: pairs.Overlap = "add"
    """For F1: whether a unit in two marks of one annotator counts twice."""
    boundaries: Literal["marked", "union"] = "marked"
    """Whether overlapping spans of one label are first widened to their union (Goyal et al. 2022)."""
    align: str = "item"
    """At level item: which marks are one error, see `align`."""
    convention: str = "marked"
    """At level item: what counts as a rating, see `CONVENTIONS`."""
    rest: pairs.Rest = "union"
    """For one against the rest: whether one of the others is enough, or more than half of them are needed."""
    gamma: GammaSettings = field(default_factory=GammaSettings)
    """For gamma: dissimilarities, samples of chance, and limits."""
    seed: int = 0
    """For gamma: of the samples of chance, with the documents' ids."""
    workers: int = 1
    """For gamma: how many processes work on texts; changes no number."""
    watch: gammas.Watch | None = None
    """For gamma: sees texts as they are done, e.g. to show progress; changes no number."""

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            given = getattr(self, name)
            if given not in allowed:
                raise FinecombError(f"{name} cannot be {given!r}{did_you_mean(given, allowed)}")


CHOICES: dict[str, tuple[str, ...]] = {
    "level": get_args(Level),
    "overlap": get_args(pairs.Overlap),
    "boundaries": ("marked", "union"),
    "rest": get_args(pairs.Rest),
}


# --- what measures read ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnitMarks:
    """Marks on the units of texts; what is slow to make is made once, and only when a measure asks for it."""

    view: View
    asked: AgreeOptions
    kind: Kind = "marks"

    @property
    def labels(self) -> tuple[str, ...]:
        """The rows: any mark at all, then each category."""
        return (ANY, *self.categories)

    @property
    def categories(self) -> tuple[str, ...]:
        """Those judged apart; backed off to `any` there are none."""
        return tuple(name for name in self.view.categories if name != ANY) if self.asked.by_label else ()

    @functools.cached_property
    def grid(self) -> Grid:
        """The units of all texts."""
        level: GridLevel = self.asked.level if self.asked.level != "item" else "token"
        return lay(self.view.study, level, self.asked.tokens)

    @functools.cached_property
    def placed(self) -> pl.DataFrame:
        """One row per span."""
        return placed(self.view.study, self.grid)

    @functools.cached_property
    def votes(self) -> Votes:
        """How many marked each unit."""
        anyone = votes(self.view.study, self.grid, None, self.placed)
        each = votes(self.view.study, self.grid, self.categories, self.placed)
        return Votes(self.grid, self.labels, np.concatenate([anyone.marked, each.marked]), anyone.readers)

    @functools.cached_property
    def tallies(self) -> list[Tally]:
        """All labels in one."""
        return [tally_votes(self.labels, self.votes.marked, self.votes.m, self.grid.bounds)]

    def two(self) -> Floats:
        """Units marked by two or more, and by any, (documents, rows, 2)."""
        return np.swapaxes(alphas.two_agree_sums(self.votes), 0, 1)

    @functools.cached_property
    def cells(self) -> pairs.Cells:
        """Who marked what, each unit once."""
        return pairs.cells(self.view.study, self.grid, self.categories, "union", self.placed)

    @functools.cached_property
    def overlaps(self) -> pairs.Pairs:
        """Pairs for F1; all categories, since typed F1 needs them."""
        known = [name for name in self.view.categories if name != ANY]
        return pairs.cell_pairs(pairs.cells(self.view.study, self.grid, known, self.asked.overlap, self.placed))

    @functools.cached_property
    def confusions(self) -> list[pairs.Pairs]:
        """Pairs for Cohen's kappa."""
        return [pairs.marked_confusion(pairs.cell_pairs(self.cells))]

    @functools.cached_property
    def texts(self) -> list[Measured]:
        """Gamma of each text."""
        asked = self.asked
        return gammas.measure_view(self.view, asked.gamma, asked.seed, asked.workers, asked.watch)

    def why(self, label: str) -> str:
        """Why something about a label has no value."""
        return alphas.why_undefined(self.votes, self.labels.index(label) if label in self.labels else 0)


@dataclass(frozen=True)
class Answered:
    """A matrix of ratings: labels of items, or answers."""

    view: View
    asked: AgreeOptions
    rated: UnitRatings
    kind: Kind

    @property
    def labels(self) -> tuple[str, ...]:
        """The rows: the values as they are, then each label against all other values."""
        return (ANY, *self.categories)

    @property
    def categories(self) -> tuple[str, ...]:
        """Labels of items; answers have none."""
        return self.view.categories if self.kind == "items" and self.asked.by_label else ()

    @functools.cached_property
    def counted(self) -> tuple[Floats, Ints]:
        """Values, and how often each was given to each unit."""
        return alphas.value_counts(self.rated.matrix)

    @functools.cached_property
    def given(self) -> Ints:
        """How often each category was given to each unit, (categories, units)."""
        each = [(self.rated.matrix == self.code(name)).sum(axis=0) for name in self.categories]
        return np.array(each, dtype=np.int64).reshape(len(each), self.rated.matrix.shape[1])

    def code(self, name: str) -> float:
        """The number that stands for a name."""
        return float(self.rated.names.index(name))

    @functools.cached_property
    def tallies(self) -> list[Tally]:
        """All values together, then each label against the rest."""
        values, counts = self.counted
        whole = tally_counts(ANY, values, counts, self.rated.bounds)
        if not self.categories:
            return [whole]
        return [whole, tally_votes(self.categories, self.given, counts.sum(axis=1), self.rated.bounds)]

    def two(self) -> Floats:
        """Items marked by two or more, and by any, (documents, rows, 2)."""
        marked = ~np.isnan(self.rated.matrix) & (self.rated.matrix != self.code(NO_ERROR))
        k = np.concatenate([marked.sum(axis=0)[None], self.given])
        return np.stack([summed((k >= least).astype(np.float64), self.rated.bounds).T for least in (2, 1)], axis=-1)

    @functools.cached_property
    def confusions(self) -> list[pairs.Pairs]:
        """Pairs for Cohen's kappa, with all values and with each label against the rest."""
        whole = [pairs.rated_pairs(self.rated, self.counted[0])]
        for name in self.categories:
            own = np.where(
                np.isnan(self.rated.matrix), np.nan, (self.rated.matrix == self.code(name)).astype(np.float64)
            )
            whole.append(pairs.rated_pairs(replace(self.rated, matrix=own), np.array([0.0, 1.0])))
        return whole

    def why(self, label: str) -> str:
        """Why something about a label has no value."""
        values, counts = self.counted
        if not len(values):
            return "nothing was rated"
        if (counts.sum(axis=1) < 2).all():
            return "nothing was rated by two annotators"
        return "only one value was given" if label == ANY else "nobody gave this label, or everybody"


Source = UnitMarks | Answered


def source(seen: View, asked: AgreeOptions) -> Source:
    """What the measures of one level read."""
    if asked.boundaries == "union":
        seen = normalised(seen)
    if asked.question:
        return Answered(seen, asked, _answers(seen, asked), "answers")
    if asked.level == "item":
        return Answered(seen, asked, item_ratings(seen, align(seen, asked.align), asked.convention), "items")
    return UnitMarks(seen, asked)


def _answers(seen: View, asked: AgreeOptions) -> UnitRatings:
    match asked.level:
        case "document":
            return document_ratings(seen, asked.question)
        case "sentence" | "segment":
            return unit_ratings(seen, asked.question)
        case "item":
            return mark_ratings(seen, align(seen, asked.align), asked.question)
    raise FinecombError(f"a question is about a document, sentence, segment or item, not about a {asked.level}")


# --- measures ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """Rows of a measure and their values in each draw; the first draw is the study itself."""

    columns: Sequence[Mapping[str, object]]
    values: Floats
    """(draws, rows)."""
    whys: Sequence[str] = ()
    """Why a row has no value, where the measure itself knows."""


@dataclass(frozen=True, slots=True)
class AgreementMeasure:
    """One statistic by name."""

    run: Callable[[Source, Weights], MeasureResult]
    gloss: str
    """What it is, in a line."""
    kinds: frozenset[Kind] = field(default=frozenset({"marks", "items", "answers"}))
    """What it can read."""
    individuals: bool = False
    """Whether it needs to know who marked what, so that pooled votes will not do."""
    unit: str = ""
    """What it looks at, where that does not depend on the level asked for."""


def _on_tallies(statistic: Callable[[Tally, Weights], Floats]) -> Callable[[Source, Weights], MeasureResult]:
    """The statistic of each row of every tally."""

    def run(own: Source, weights: Weights) -> MeasureResult:
        values = [statistic(tally, weights) for tally in own.tallies]
        return MeasureResult(
            [{"label": row} for tally in own.tallies for row in tally.rows], np.concatenate(values, axis=1)
        )

    return run


def _on_whole(statistic: Callable[[Tally, Weights], Floats]) -> Callable[[Source, Weights], MeasureResult]:
    """The statistic of all values together."""
    return lambda own, weights: MeasureResult([{"label": ANY}], statistic(own.tallies[0], weights))


def _two_agree(own: Source, weights: Weights) -> MeasureResult:
    return MeasureResult([{"label": name} for name in own.labels], alphas.two_agree(pooled(weights, own.two())))


def _best_threshold(own: Source, weights: Weights) -> MeasureResult:
    """Alpha of ratings cut in two where that gives the most agreement; every draw looks for its own best cut."""
    assert isinstance(own, Answered)
    values, counts = own.counted
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].T  # ratings of at least each value but the lowest
    if len(values) < 2:
        return MeasureResult([{"label": ANY}], np.full((len(weights), 1), np.nan))
    names = tuple(f"{value:g}" for value in values[1:])
    each = alphas.pooled_alpha(tally_votes(names, above, counts.sum(axis=1), own.rated.bounds), weights)
    best = np.where(np.isnan(each), -np.inf, each)
    value = np.where(np.isinf(best.max(axis=1)), np.nan, best.max(axis=1))
    return MeasureResult([{"label": ANY, "threshold": f"{values[1:][int(best[0].argmax())]:g}"}], value[:, None])


def _label_sets(
    distance: Callable[[Sequence[frozenset[str]]], alphas.Distance],
) -> Callable[[Source, Weights], MeasureResult]:
    def run(own: Source, weights: Weights) -> MeasureResult:
        assert isinstance(own, UnitMarks)
        sets, observed, totals = pairs.set_sums(own.cells, own.categories, len(own.grid.documents), distance)
        delta = distance(sets)(np.arange(len(sets), dtype=np.float64), totals)
        n = weights @ totals  # n_c, (draws, V)
        chance = ((n @ delta) * n).sum(axis=1)
        return MeasureResult([{"label": ANY}], (1 - ratio((n.sum(axis=1) - 1) * (weights @ observed), chance))[:, None])

    return run


def _cohen(own: Source, weights: Weights) -> MeasureResult:
    each = [pairs.mean_defined(pairs.cohen_pairs(of, weights)) for of in own.confusions]
    return MeasureResult([{"label": name} for name in own.labels], np.concatenate(each, axis=1))


def _cohen_pairs(own: Source, weights: Weights) -> MeasureResult:
    each = [pairs.cohen_pairs(of, weights) for of in own.confusions]
    names = [(first, second) for first, second in own.confusions[0].names]
    columns = [{"label": label, "pair": f"{a}, {b}"} for label in own.labels for a, b in names]
    return MeasureResult(columns, np.concatenate(each, axis=1).reshape(len(weights), -1))


def _f1(statistic: Callable[[pairs.Pairs, Weights], Floats]) -> Callable[[Source, Weights], MeasureResult]:
    def run(own: Source, weights: Weights) -> MeasureResult:
        assert isinstance(own, UnitMarks)
        values = statistic(own.overlaps, weights)[:, : len(own.labels)]
        return MeasureResult([{"label": name} for name in own.labels[: values.shape[1]]], values)

    return run


def _pearson(own: Source, weights: Weights) -> MeasureResult:
    assert isinstance(own, UnitMarks)
    counted = pairs.count_pairs(own.view.study, own.cells, own.categories)
    values = pairs.mean_defined(pairs.pearson_pairs(counted, weights))
    return MeasureResult([{"label": name} for name in own.labels], values)


def _one_vs_rest(score: str) -> Callable[[Source, Weights], MeasureResult]:
    def run(own: Source, weights: Weights) -> MeasureResult:
        assert isinstance(own, UnitMarks)
        sums = pooled(weights, pairs.rest_sums(own.votes, own.asked.rest))
        return MeasureResult([{"label": name} for name in own.labels], pairs.scores(sums)[score])

    return run


def _one_vs_rest_mean(score: str) -> Callable[[Source, Weights], MeasureResult]:
    def run(own: Source, weights: Weights) -> MeasureResult:
        assert isinstance(own, UnitMarks)
        each = pairs.rest_scores(pairs.rest_pairs(own.cells, own.asked.rest), weights, score)
        return MeasureResult([{"label": name} for name in own.labels], pairs.mean_defined(each))

    return run


def _one_vs_rest_each(score: str) -> Callable[[Source, Weights], MeasureResult]:
    def run(own: Source, weights: Weights) -> MeasureResult:
        assert isinstance(own, UnitMarks)
        paired = pairs.rest_pairs(own.cells, own.asked.rest)
        columns = [{"label": label, "annotator": one} for label in own.labels for one, _ in paired.names]
        return MeasureResult(columns, pairs.rest_scores(paired, weights, score).reshape(len(weights), -1))

    return run


def _gamma(
    statistic: Callable[[Sequence[Measured], Weights, int], Floats], rows: slice
) -> Callable[[Source, Weights], MeasureResult]:
    """Some of the rows gamma, gamma-cat and gamma-k of each category, over all texts."""

    def run(own: Source, weights: Weights) -> MeasureResult:
        assert isinstance(own, UnitMarks)
        labels = [ANY, ANY, *own.view.categories][rows]
        undefined = np.full((len(weights), len(labels)), np.nan)
        values = statistic(own.texts, weights, own.asked.seed)[:, rows] if own.texts else undefined
        unproven = _unproven(gammas.gap(own.texts))
        whys = [gammas.why_undefined(own.texts, at) for at in range(2 + len(own.view.categories))[rows]]
        return MeasureResult([{"label": label, **unproven} for label in labels], values, whys)

    return run


def _gamma_texts(own: Source, weights: Weights) -> MeasureResult:
    """Each text's own gamma."""
    assert isinstance(own, UnitMarks)
    columns = [{"label": ANY, "document": each.document, **_unproven(gammas.gap([each]))} for each in own.texts]
    whys = [each.why or gammas.why_undefined([each], 0) for each in own.texts]
    return MeasureResult(columns, gammas.by_text(own.texts, weights, own.asked.seed), whys)


def _unproven(gap: float) -> dict[str, object]:
    """How far gamma could be off, where an alignment is not proven to be the best."""
    return {"gap": round(gap, 6)} if gap else {}


_MARKS: frozenset[Kind] = frozenset({"marks"})
_ANSWERS: frozenset[Kind] = frozenset({"answers"})
_MARKS_AND_ITEMS: frozenset[Kind] = frozenset({"marks", "items"})


def _scaled(name: str) -> Callable[[Tally, Weights], Floats]:
    return functools.partial(alphas.pooled_alpha, distance=alphas.DISTANCES[name])


MEASURES: dict[str, AgreementMeasure] = {
    "alpha": AgreementMeasure(_on_tallies(alphas.pooled_alpha), "Krippendorff's alpha, nominal, over all texts"),
    "alpha-mean": AgreementMeasure(
        _on_tallies(alphas.mean_alpha), "mean of each text's alpha; texts where it is undefined are left out"
    ),
    "alpha-mean-one": AgreementMeasure(
        _on_tallies(functools.partial(alphas.mean_alpha, undefined=1.0)),
        "mean of each text's alpha; texts where it is undefined count as 1",
    ),
    "observed": AgreementMeasure(_on_tallies(alphas.pooled_observed), "share of pairs of ratings that agree, 1 - D_o"),
    "observed-mean": AgreementMeasure(_on_tallies(alphas.mean_observed), "mean of each text's observed agreement"),
    "alpha-ordinal": AgreementMeasure(_on_whole(_scaled("ordinal")), "alpha of ranks", _ANSWERS),
    "alpha-interval": AgreementMeasure(_on_whole(_scaled("interval")), "alpha of squared differences", _ANSWERS),
    "alpha-ratio": AgreementMeasure(_on_whole(_scaled("ratio")), "alpha of proportions", _ANSWERS),
    "alpha-binarised": AgreementMeasure(
        _best_threshold, "alpha of ratings cut in two at the threshold of best agreement", _ANSWERS
    ),
    "alpha-sets": AgreementMeasure(
        _label_sets(lambda sets: alphas.nominal), "alpha of the sets of labels on a unit, same or not", _MARKS, True
    ),
    "alpha-masi": AgreementMeasure(
        _label_sets(alphas.masi), "alpha of the sets of labels on a unit, MASI distance", _MARKS, True
    ),
    "two-agree": AgreementMeasure(
        _two_agree, "percentage of what anybody marked that two or more marked", _MARKS_AND_ITEMS
    ),
    "kappa-cohen": AgreementMeasure(_cohen, "Cohen's kappa, mean over pairs of annotators", individuals=True),
    "kappa-cohen-pairs": AgreementMeasure(_cohen_pairs, "Cohen's kappa of each pair of annotators", individuals=True),
    "kappa-fleiss": AgreementMeasure(
        _on_tallies(kappa.pooled_fleiss), "Fleiss's kappa over units with the most ratings"
    ),
    "kappa-fleiss-variable": AgreementMeasure(
        _on_tallies(kappa.pooled_fleiss_variable), "Fleiss's kappa over units with two or more ratings"
    ),
    "ac1": AgreementMeasure(_on_tallies(kappa.pooled_ac1), "Gwet's AC1"),
    "f1": AgreementMeasure(_f1(pairs.f1), "overlap F1 of pairs of annotators, micro", _MARKS, True),
    "f1-typed": AgreementMeasure(_f1(pairs.f1_typed), "overlap F1, only marks of one label match, micro", _MARKS, True),
    "f1-macro": AgreementMeasure(
        _f1(pairs.f1_macro), "overlap F1, mean over pairs and texts, both empty = 1", _MARKS, True
    ),
    "f1-typed-macro": AgreementMeasure(
        _f1(pairs.f1_typed_macro), "the same, only marks of one label match", _MARKS, True
    ),
    "gamma": AgreementMeasure(
        _gamma(gammas.pooled, slice(0, 1)), "gamma of the best alignment, over all texts", _MARKS, True, "mark"
    ),
    "gamma-mean": AgreementMeasure(_gamma(gammas.mean, slice(0, 1)), "mean of each text's gamma", _MARKS, True, "mark"),
    "gamma-texts": AgreementMeasure(_gamma_texts, "each text's gamma", _MARKS, True, "mark"),
    "gamma-cat": AgreementMeasure(
        _gamma(gammas.pooled, slice(1, 2)), "agreement on labels among aligned marks", _MARKS, True, "mark"
    ),
    "gamma-k": AgreementMeasure(
        _gamma(gammas.pooled, slice(2, None)),
        "the same for each label among marks aligned with it",
        _MARKS,
        True,
        "mark",
    ),
    "pearson": AgreementMeasure(_pearson, "Pearson's r of numbers of marks per text, mean over pairs", _MARKS, True),
    **{
        f"one-vs-rest-{score}": AgreementMeasure(
            _one_vs_rest(score), f"{score} of one annotator against the rest, pooled", _MARKS
        )
        for score in ("precision", "recall", "f1")
    },
    **{
        f"one-vs-rest-{score}-mean": AgreementMeasure(
            _one_vs_rest_mean(score), f"mean over annotators of their {score} against the rest", _MARKS, True
        )
        for score in ("precision", "recall", "f1")
    },
    **{
        f"one-vs-rest-{score}-each": AgreementMeasure(
            _one_vs_rest_each(score), f"each annotator's {score} against the rest", _MARKS, True
        )
        for score in ("precision", "recall", "f1")
    },
}

FAMILIES: dict[str, tuple[str, ...]] = {
    "one-vs-rest": ("one-vs-rest-precision", "one-vs-rest-recall", "one-vs-rest-f1"),
    "one-vs-rest-mean": ("one-vs-rest-precision-mean", "one-vs-rest-recall-mean", "one-vs-rest-f1-mean"),
    "one-vs-rest-each": ("one-vs-rest-precision-each", "one-vs-rest-recall-each", "one-vs-rest-f1-each"),
    "kappa": ("kappa-cohen", "kappa-fleiss", "kappa-fleiss-variable"),
}
"""Short names for several measures at once."""


# --- all of it ---------------------------------------------------------------------------------------------------


def agree(
    study: Study | View,
    measures: Sequence[str] = ("alpha", "two-agree"),
    level: Level = "token",
    tokens: str = "words",
    by_label: bool = True,
    by: Sequence[str] = (),
    question: str = "",
    overlap: pairs.Overlap = "add",
    boundaries: Literal["marked", "union"] = "marked",
    align: str = "item",
    convention: str = "marked",
    rest: pairs.Rest = "union",
    gamma: GammaSettings | None = None,
    workers: int = 1,
    watch: gammas.Watch | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Agreement under every name in `measures`, for any mark and each label, in each part that `by` makes.

    Intervals are over documents, the same draws for all measures. The other parameters are described in `Asked`.
    """
    seen = as_view(study)
    names = _named(measures)
    asked = AgreeOptions(
        level, tokens, question, by_label, overlap, boundaries, align, convention, rest,
        gamma or GammaSettings(), seed, workers, watch,
    )  # fmt: skip
    return [
        Finding({**columns, **finding.columns}, finding.estimate)
        for columns, part in seen.split(by)
        for finding in _findings(part, names, asked, draws, seed)
    ]


def _named(measures: Sequence[str]) -> list[str]:
    known = {**FAMILIES, **{name: (name,) for name in MEASURES}}
    for name in measures:
        if name not in known:
            raise FinecombError(f"no measure of agreement is called {name!r}{did_you_mean(name, known)}")
    return list(dict.fromkeys(own for name in measures for own in known[name]))


def _findings(seen: View, names: Sequence[str], asked: AgreeOptions, draws: int, seed: int) -> list[Finding]:
    own = source(seen, asked)
    weights = study_and_resample_weights(len(seen.study.documents), draws, seed)
    without = few_documents(len(seen.study.documents))
    found: list[Finding] = []
    for name in names:
        measure = MEASURES[name]
        if own.kind not in measure.kinds:
            able = " or ".join(WHERE[kind] for kind in sorted(measure.kinds))
            raise FinecombError(f"{name} is for {able}, not for {WHERE[own.kind]}")
        result = measure.run(own, weights)
        for at, columns in enumerate(result.columns):
            signature = _signature(own, name, columns, draws, seed)
            why = result.whys[at] if result.whys else _why(own, measure, str(columns["label"]))
            value, values = float(result.values[0, at]), result.values[1:, at]
            estimate = estimated(value, values, signature, why, without)
            found.append(Finding({"measure": name, "level": measure.unit or asked.level, **columns}, estimate))
    return found


WHERE: dict[Kind, str] = {
    "marks": "marks on the units of a text",
    "items": "errors (level item)",
    "answers": "answers to a question",
}


def _why(own: Source, measure: AgreementMeasure, label: str) -> str:
    study = own.view.study
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    people = {kinds.get(id) for id in study.annotations["annotator"].unique()}
    if measure.individuals and people == {"pooled"}:
        return "pooled votes do not say who marked what"
    return own.why(label)


def _signature(own: Source, name: str, columns: Mapping[str, object], draws: int, seed: int) -> Signature:
    asked, study = own.asked, own.view.study
    items = asked.level == "item"
    return Signature.of(
        statistic=name,
        unit=MEASURES[name].unit or asked.level,
        **columns,
        question=asked.question or None,
        tokens=asked.tokens if asked.level == "token" and not MEASURES[name].unit else None,
        align=asked.align if items else None,
        convention=asked.convention if own.kind == "items" else None,
        overlap=asked.overlap if name.startswith("f1") else None,
        rest=asked.rest if name.startswith("one-vs-rest") else None,
        **(_gamma_fields(own) if name.startswith("gamma") else {}),
        **own.view.fields,
        annotators=study.annotations["annotator"].n_unique(),
        documents=len(study.documents),
        draws=draws,
        seed=seed,
    )


def _gamma_fields(own: Source) -> dict[str, object]:
    """All settings of gamma, and how many marks have no place on the text."""
    settings = {**asdict(own.asked.gamma), "soft": own.asked.gamma.soft or None}
    unplaced = len(own.view.study.marks) - own.view.study.spans.filter(pl.col("part") == TEXT)["mark"].n_unique()
    return {**settings, "precision": own.asked.gamma.precision or None, "left_out": unplaced or None}
