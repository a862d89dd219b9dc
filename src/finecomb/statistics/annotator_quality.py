"""Who to trust: what each annotator's work looks like beside that of the others."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.agreement.alpha import binary_alpha
from finecomb.statistics.agreement.dawid_skene import (
    count_token_patterns,
    estimate_annotator_skill,
    mark_matrix,
    participation_matrix,
)
from finecomb.statistics.inference.permutation_tests import unpaired_permutation_test
from finecomb.statistics.inference.resampling import (
    NO_RESAMPLES,
    Sums,
    bootstrap_interval_from_sums,
    few_documents_reason,
    percentile_interval,
    ratio_or_nan,
    resampled_positions,
)
from finecomb.statistics.measures.unit_grid import UnitGrid, build_grid
from finecomb.statistics.selection.view import ANY, View, as_view

Bools = NDArray[np.bool_]
FEW_TEXTS = "too few of the annotator's texts have a value, so no interval"


@dataclass(frozen=True)
class ComparedAnnotations:
    """All annotations of a view, laid out for comparison."""

    seen: View
    grid: UnitGrid
    annotators: list[str]
    read: Bools
    """(documents, annotators)."""
    rows: pl.DataFrame
    """One row per annotation: annotation, document, annotator, marks, words, seconds, when."""
    draws: int
    seed: int

    def rng(self, *names: str) -> np.random.Generator:
        """A generator of its own for each finding, whatever the others are."""
        return np.random.default_rng([self.seed, zlib.crc32("\x1f".join(names).encode())])

    def estimate(
        self, statistic: str, value: float, ends: Sequence[float], why: str, label: str = ANY, unit: str | None = None
    ) -> Estimate:
        """An estimate with the signature of this work; NaN with `why`."""
        signature = Signature.from_fields(
            statistic=statistic, unit=unit, label=label, tokens=self.grid.tokens, **self.seen.fields,
            annotators=len(self.annotators), documents=len(self.grid.documents), draws=self.draws, seed=self.seed,
        )  # fmt: skip
        if math.isnan(value):
            return Estimate(math.nan, math.nan, math.nan, signature, why)
        return Estimate(float(value), float(ends[0]), float(ends[1]), signature, self.no_interval_reason(ends))

    def no_interval_reason(self, ends: Sequence[float]) -> str:
        """Why there is no interval, or nothing where there is one."""
        if not math.isnan(ends[0]):
            return ""
        return few_documents_reason(len(self.grid.documents)) or (FEW_TEXTS if self.draws else NO_RESAMPLES)


def trust(
    study: Study | View,
    labels: Sequence[str] | None = None,
    tokens: str = "words",
    model: bool = True,
    draws: int = 200,
    seed: int = 0,
) -> list[Finding]:
    """For each annotator: agreement with the rest, speed, label usage, drift, marks per text, recall and precision.

    `labels` are those for which agreement and the model are given; without any, `any` and every category. Columns:
    annotator, measure, label, texts, p (of drift and label usage). Pooled votes have no annotators and are refused.
    """
    view = as_view(study)
    wanted = _requested_labels(view, labels)
    work = _build_compared_annotations(view, tokens, draws, seed)
    rows = [
        *_marks_per_text_findings(work),
        *_speed_findings(work),
        *_drift_findings(work),
        *_label_usage_findings(work),
    ]
    for label in wanted:
        marks = mark_matrix(view, work.grid, work.annotators, label)
        rows += _agreement_with_rest_findings(work, marks, label)
        rows += _dawid_skene_findings(work, marks, label) if model else []
    texts = dict(zip(work.annotators, work.read.sum(axis=0).tolist(), strict=True))
    order = {name: at for at, name in enumerate(work.annotators)}
    full = [_unify_finding_columns(row, texts) for row in rows]
    return sorted(full, key=lambda row: order.get(str(row.columns["annotator"]), len(order)))


def _unify_finding_columns(row: Finding, texts: Mapping[str, int]) -> Finding:
    """The same columns in every row."""
    columns = dict(row.columns)
    first = {"annotator": columns["annotator"], "measure": columns["measure"], "label": columns.get("label", ANY)}
    return Finding({**first, "texts": texts.get(str(columns["annotator"])), "p": columns.get("p")}, row.estimate)


def _requested_labels(view: View, labels: Sequence[str] | None) -> list[str]:
    if labels is None:
        return [*dict.fromkeys([ANY, *view.categories])]
    for name in labels:
        if name != ANY and name not in view.categories:
            raise FinecombError(f"no label is called {name!r}{did_you_mean(name, view.categories)}")
    return list(labels)


def _build_compared_annotations(view: View, tokens: str, draws: int, seed: int) -> ComparedAnnotations:
    study = view.study
    if study.annotations.is_empty():
        raise FinecombError("there are no annotations to judge anybody by")
    kinds = study.annotators.filter(pl.col("id").is_in(study.annotations["annotator"].unique().implode()))
    if (kinds["kind"] == "pooled").any():
        raise FinecombError("pooled votes do not say who marked what, so nobody can be told from the others")
    grid = build_grid(study, "token", tokens)
    annotators = sorted(study.annotations["annotator"].unique())
    words = pl.DataFrame({"document": pl.Series(grid.documents, dtype=pl.String), "words": grid.sizes})
    counts = study.marks.group_by("annotation").agg(marks=pl.len())
    rows = study.annotations.select(
        "document",
        "annotator",
        annotation="id",
        seconds=pl.coalesce("active_seconds", "seconds"),
        when=pl.coalesce("submitted", "started"),
    )
    rows = rows.join(counts, on="annotation", how="left").join(words, on="document", how="left")
    rows = rows.with_columns(pl.col("marks").fill_null(0).cast(pl.Float64))
    return ComparedAnnotations(view, grid, annotators, participation_matrix(view, grid, annotators), rows, draws, seed)


def _iter_annotator_rows(work: ComparedAnnotations) -> Iterator[tuple[str, pl.DataFrame]]:
    for name in work.annotators:
        yield name, work.rows.filter(pl.col("annotator") == name)


def _resampled_interval(
    values: Sums, statistic: Callable[[Sums], Sums], draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Interval of a statistic of (draws, values) along the last axis; none with fewer than two values."""
    if len(values) < 2 or draws < 1:
        return math.nan, math.nan
    return percentile_interval(statistic(values[resampled_positions(len(values), draws, rng)]))


def _marks_per_text_findings(work: ComparedAnnotations) -> Iterator[Finding]:
    for name, rows in _iter_annotator_rows(work):
        marks = rows["marks"].to_numpy()
        ends = _resampled_interval(marks, lambda drawn: drawn.mean(axis=-1), work.draws, work.rng(name, "marks"))
        columns = {"annotator": name, "measure": "marks per text"}
        yield Finding(columns, work.estimate("marks-per-text", float(marks.mean()), ends, ""))


def _speed_findings(work: ComparedAnnotations) -> Iterator[Finding]:
    """Median seconds per 100 words: time at the keyboard where it is known, else from start to end."""
    for name, rows in _iter_annotator_rows(work):
        timed = rows.filter(pl.col("seconds").is_not_null() & (pl.col("words") > 0))
        pace = (100 * timed["seconds"] / timed["words"]).to_numpy()
        value = float(np.median(pace)) if len(pace) else math.nan
        ends = _resampled_interval(pace, lambda drawn: np.median(drawn, axis=-1), work.draws, work.rng(name, "speed"))
        columns = {"annotator": name, "measure": "seconds per 100 words"}
        yield Finding(columns, work.estimate("seconds-per-100-words", value, ends, "no times are known"))


def _drift_findings(work: ComparedAnnotations) -> Iterator[Finding]:
    """Marks per text in the second half of the annotator's time less those in the first; p by permutation of texts."""
    for name, rows in _iter_annotator_rows(work):
        timed = rows.filter(pl.col("when").is_not_null()).sort("when", "annotation")["marks"].to_numpy()
        half = len(timed) // 2
        why = "no times are known" if not len(timed) else "fewer than four texts have a time"
        columns = {"annotator": name, "measure": "drift in marks per text", "p": None}
        if half < 2:
            yield Finding(columns, work.estimate("drift", math.nan, (), why))
            continue
        # The middle one of an odd number belongs to the second half.
        tested = unpaired_permutation_test(timed[half:], timed[:half], max(1000, work.draws), work.rng(name, "drift"))
        ends = (tested.low, tested.high)
        yield Finding({**columns, "p": tested.p}, work.estimate("drift", tested.difference, ends, ""))


def _label_usage_findings(work: ComparedAnnotations) -> Iterator[Finding]:
    """Shares of the annotator's marks that have each label, and the distance from the shares of all others.

    The distance is half the sum of absolute differences (total variation): 0 the same, 1 nothing in common. Its p is
    the share of random exchanges of labels among the marks of each text that bring the annotator as far from the rest.
    """
    place = {name: at for at, name in enumerate(work.seen.categories)}
    numbers = {name: at for at, name in enumerate(work.annotators)}
    marks = work.seen.study.marks.filter(pl.col("label").is_in(list(place)))
    label, who = (
        marks[column].replace_strict(numbers_of, return_dtype=pl.Int64).to_numpy()
        for column, numbers_of in (("label", place), ("annotator", numbers))
    )
    document, size = work.grid.document_positions(marks["document"]), (len(numbers), len(place))
    table, rng = _label_counts_by_annotator(label, who, size), work.rng("usage")
    distances = _label_usage_distances(table)
    exchanged = [
        _label_usage_distances(_label_counts_by_annotator(_shuffle_within_groups(label, document, rng), who, size))
        for _ in range(work.draws)
    ]
    hits = (np.array(exchanged).reshape(-1, len(numbers)) >= distances - 1e-12).sum(axis=0)
    for at, name in enumerate(work.annotators):
        yield from _label_share_findings(work, name, table[at], marks)
        p = None if math.isnan(distances[at]) else float(1 + hits[at]) / (1 + work.draws)
        why = "nobody else marked anything" if table[at].any() else "the annotator marked nothing"
        estimate = work.estimate("label-usage-distance", float(distances[at]), (math.nan, math.nan), why)
        yield Finding({"annotator": name, "measure": "distance of label usage", "p": p}, estimate)


def _shuffle_within_groups(
    values: NDArray[np.int64], group: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Values exchanged at random within their groups."""
    result = np.empty_like(values)
    result[np.argsort(group, kind="stable")] = values[np.lexsort((rng.random(len(values)), group))]
    return result


def _label_counts_by_annotator(label: NDArray[np.int64], who: NDArray[np.int64], size: tuple[int, int]) -> Sums:
    """Marks of each annotator and label."""
    counts = np.bincount(who * size[1] + label, minlength=size[0] * size[1])
    return counts.reshape(size).astype(np.float64)


def _label_usage_distances(counts: Sums) -> Sums:
    """Total variation between each annotator's shares of labels and those of all others; NaN without marks."""
    rest = counts.sum(axis=0) - counts
    shares = [
        ratio_or_nan(sums, np.broadcast_to(sums.sum(axis=1, keepdims=True), sums.shape)) for sums in (counts, rest)
    ]
    distance: Sums = np.abs(shares[0] - shares[1]).sum(axis=1) / 2
    return distance


def _label_share_findings(work: ComparedAnnotations, name: str, counts: Sums, marks: pl.DataFrame) -> Iterator[Finding]:
    """Share of each label among the annotator's marks, with an interval over texts."""
    mine = marks.filter(pl.col("annotator") == name)
    for at, label in enumerate(work.seen.categories):
        per = mine.group_by("document", maintain_order=True).agg(k=(pl.col("label") == label).sum(), n=pl.len())
        sums = per.select("k", "n").to_numpy().astype(np.float64)
        ends = bootstrap_interval_from_sums(sums, _ratio_of_sums, work.draws, work.rng(name, "share", label))
        value = float(counts[at] / counts.sum()) if counts.sum() else math.nan
        columns = {"annotator": name, "measure": "share of marks", "label": label}
        yield Finding(columns, work.estimate("share-of-marks", value, ends, "the annotator marked nothing", label))


def _agreement_with_rest_findings(work: ComparedAnnotations, marks: Bools, label: str) -> Iterator[Finding]:
    r"""Token F1 with the others, and what alpha gains when the annotator is left out.

    With x the annotator's marks and k those of all m readers of a token,
    $F_1 = 2 \sum x (k - x) / \sum ((m - 1) x + k - x)$ over tokens that the annotator and somebody else read: the
    overlap with every other reader, in one pot.
    """
    read = np.repeat(work.read, work.grid.sizes, axis=0)
    k, m = marks.sum(axis=1).astype(np.float64), read.sum(axis=1).astype(np.float64)
    everybody = _document_alpha_sums(work.grid, k, m)
    for at, name in enumerate(work.annotators):
        x, shared = marks[:, at].astype(np.float64), read[:, at] & (m >= 2)
        others = k - x
        sums = _sum_per_document(work.grid, [2 * x * others * shared, ((m - 1) * x + others) * shared])
        f1 = float(_ratio_of_sums(sums.sum(axis=0)[None])[0])
        ends = bootstrap_interval_from_sums(sums, _ratio_of_sums, work.draws, work.rng(name, "f1", label))
        why = (
            "nobody else read the same texts" if not shared.any() else "nobody marked anything in the texts they share"
        )
        columns = {"annotator": name, "label": label}
        estimate = work.estimate("f1-with-the-rest", f1, ends, why, label, unit="token")
        yield Finding({**columns, "measure": "F1 with the rest"}, estimate)
        without = _document_alpha_sums(work.grid, others, m - read[:, at])
        both = np.concatenate([without, everybody], axis=1)
        gain = float(_alpha_gain_without_annotator(both.sum(axis=0)[None])[0])
        ends = bootstrap_interval_from_sums(
            both, _alpha_gain_without_annotator, work.draws, work.rng(name, "alpha", label)
        )
        why = "alpha is undefined with or without the annotator"
        estimate = work.estimate("alpha-gain-without", gain, ends, why, label, unit="token")
        yield Finding({**columns, "measure": "alpha gained without"}, estimate)


def _ratio_of_sums(sums: Sums) -> Sums:
    return ratio_or_nan(sums[:, 0], sums[:, 1])


def _sum_per_document(grid: UnitGrid, columns: Sequence[Sums]) -> Sums:
    return np.stack([grid.sum_per_document(values) for values in columns], axis=-1)


def _document_alpha_sums(grid: UnitGrid, k: Sums, m: Sums) -> Sums:
    """D_o, n_1 and n of each document."""
    pairable = m >= 2
    disagreement = np.where(pairable, 2 * k * (m - k) / np.maximum(m - 1, 1), 0.0)
    return _sum_per_document(grid, [disagreement, k * pairable, m * pairable])


def _alpha_gain_without_annotator(sums: Sums) -> Sums:
    return binary_alpha(sums[:, :3]) - binary_alpha(sums[:, 3:])


def _dawid_skene_findings(work: ComparedAnnotations, marks: Bools, label: str) -> Iterator[Finding]:
    """Recall and precision of each annotator on tokens, from the model of
    `finecomb.statistics.agreement.dawid_skene`.
    """
    why = _no_dawid_skene_reason(work, marks)
    fitted = (
        None
        if why
        else estimate_annotator_skill(
            count_token_patterns(marks, work.read, work.grid), work.draws, work.rng("model", label)
        )
    )
    used = work.read[work.read.sum(axis=1) >= 2].any(axis=0)
    for at, name in enumerate(work.annotators):
        for measure in ("recall", "precision"):
            reason = why or ("" if used[at] else "nobody else read the same texts")
            if measure == "precision" and not reason and not marks[:, at].any():
                reason = "the annotator marked nothing"
            values = [math.nan] * 3 if reason or fitted is None else getattr(fitted, measure)[at].tolist()
            estimate = work.estimate(f"dawid-skene-{measure}", values[0], values[1:], reason, label, unit="token")
            yield Finding({"annotator": name, "measure": f"{measure} (model)", "label": label}, estimate)


def _no_dawid_skene_reason(work: ComparedAnnotations, marks: Bools) -> str:
    """Why the model says nothing: two readers can never tell who of them is right."""
    if (work.read.sum(axis=1) < 3).all():
        return "no text was read by three annotators"
    return "" if marks.any() else "nobody marked anything"
