"""Annotator quality: agreement with others, speed, drift, label usage, and recall and precision without gold."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.agreement.alpha import binary_alpha_from_sums
from finecomb.statistics.agreement.dawid_skene import (
    count_token_patterns,
    estimate_annotator_skills,
    mark_matrix,
    participation_matrix,
)
from finecomb.statistics.inference.permutation_tests import unpaired_permutation_test
from finecomb.statistics.inference.resampling import (
    NO_RESAMPLES_REASON,
    Sums,
    bootstrap_interval_from_sums,
    few_documents_reason,
    percentile_interval,
    ratio_or_nan,
    resampled_positions,
)
from finecomb.statistics.measures.unit_grid import UnitGrid, build_unit_grid, words_per_document
from finecomb.statistics.selection.view import ANY_LABEL, View, as_view

Bools = NDArray[np.bool_]
_NO_SHARED_TEXTS_REASON = "no other annotator annotated the same texts"
TOO_FEW_TEXTS_REASON = "too few of the annotator's texts have a value, so there is no interval"


@dataclass(frozen=True)
class AnnotatorQualityInputs:
    """Annotations of a view, arranged by annotator and text, with the settings of the computation."""

    seen: View
    grid: UnitGrid
    annotators: list[str]
    read: Bools
    """(documents, annotators): True where the annotator annotated the document."""
    rows: pl.DataFrame
    """One row per annotation: annotation, document, annotator, marks, words, seconds, when."""
    draws: int
    seed: int

    def rng(self, *names: str) -> np.random.Generator:
        """Return a random generator derived only from the seed and the given names."""
        # With its own generator, a finding does not depend on which other findings are computed.
        return np.random.default_rng([self.seed, zlib.crc32("\x1f".join(names).encode())])

    def estimate(
        self,
        statistic: str,
        value: float,
        ends: Sequence[float],
        why: str,
        label: str = ANY_LABEL,
        unit: str | None = None,
    ) -> Estimate:
        """Build an estimate with the signature of this computation; a NaN value gets the reason `why`."""
        signature = Signature.from_fields(
            statistic=statistic, unit=unit, label=label, tokens=self.grid.tokens, **self.seen.fields,
            annotators=len(self.annotators), documents=len(self.grid.documents), draws=self.draws, seed=self.seed,
        )  # fmt: skip
        if math.isnan(value):
            return Estimate(math.nan, math.nan, math.nan, signature, why)
        return Estimate(float(value), float(ends[0]), float(ends[1]), signature, self.no_interval_reason(ends))

    def no_interval_reason(self, ends: Sequence[float]) -> str:
        """Return the reason why an interval is missing, or an empty string if it is not missing."""
        if not math.isnan(ends[0]):
            return ""
        return few_documents_reason(len(self.grid.documents)) or (
            TOO_FEW_TEXTS_REASON if self.draws else NO_RESAMPLES_REASON
        )


def annotator_quality_findings(
    study: Study | View,
    labels: Sequence[str] | None = None,
    tokens: str = "words",
    model: bool = True,
    draws: int = 200,
    seed: int = 0,
) -> list[Finding]:
    """Compute the quality of each annotator: agreement, speed, label usage, drift, marks per text, recall, precision.

    `labels` selects the labels for agreement, recall and precision (default: `any` and all categories). Columns:
    annotator, measure, label, texts, p (of drift and label usage). Raise an error for pooled votes, which have no
    annotators.
    """
    view = as_view(study)
    if labels is None:
        wanted = [*dict.fromkeys([ANY_LABEL, *view.categories])]
    else:
        for name in labels:
            if name != ANY_LABEL and name not in view.categories:
                raise FinecombError(f"unknown label {name!r}{did_you_mean(name, view.categories)}")
        wanted = list(labels)
    work = _build_quality_inputs(view, tokens, draws, seed)
    rows = [*_work_pattern_findings(work), *_label_usage_findings(work)]
    for label in wanted:
        marks = mark_matrix(view, work.grid, work.annotators, label)
        rows += _agreement_with_others_findings(work, marks, label)
        rows += _dawid_skene_findings(work, marks, label) if model else []
    texts = dict(zip(work.annotators, work.read.sum(axis=0).tolist(), strict=True))
    findings = []
    # `annotators` are sorted by name, and a stable sort keeps the order of the measures.
    for row in sorted(rows, key=lambda row: str(row.columns["annotator"])):
        columns: dict[str, object] = {name: row.columns[name] for name in ("annotator", "measure")}
        columns |= {"label": row.columns.get("label", ANY_LABEL), "texts": texts[str(row.columns["annotator"])]}
        findings.append(Finding({**columns, "p": row.columns.get("p")}, row.estimate))
    return findings


def _build_quality_inputs(view: View, tokens: str, draws: int, seed: int) -> AnnotatorQualityInputs:
    study = view.study
    if study.annotations.is_empty():
        raise FinecombError("annotator quality requires submitted annotations, found none")
    kinds = study.annotators.filter(pl.col("id").is_in(study.annotations["annotator"].unique().implode()))
    if (kinds["kind"] == "pooled").any():
        raise FinecombError("annotator quality is not available for pooled votes, which do not identify annotators")
    grid = build_unit_grid(study, "token", tokens)
    annotators = sorted(study.annotations["annotator"].unique())
    words = study.documents.select(document="id", words=pl.Series(words_per_document(study, tokens)))
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
    return AnnotatorQualityInputs(
        view, grid, annotators, participation_matrix(view, grid, annotators), rows, draws, seed
    )


def _resampled_interval(
    values: Sums, statistic: Callable[[Sums], Sums], draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the interval of a statistic over the last axis of (draws, values); NaN with fewer than two values."""
    if len(values) < 2 or draws < 1:
        return math.nan, math.nan
    return percentile_interval(statistic(values[resampled_positions(len(values), draws, rng)]))


def _work_pattern_findings(work: AnnotatorQualityInputs) -> Iterator[Finding]:
    """Estimate marks per text, speed and drift of each annotator.

    Speed is the median of seconds per 100 words, based on active time if known, otherwise on the time from start to
    end. Drift is the mean number of marks per text in the second half of the annotator's texts minus that in the first
    half. Its p comes from a permutation test over texts.
    """
    for name in work.annotators:
        rows = work.rows.filter(pl.col("annotator") == name)
        marks = rows["marks"].to_numpy()
        ends = _resampled_interval(marks, lambda drawn: drawn.mean(axis=-1), work.draws, work.rng(name, "marks"))
        columns = {"annotator": name, "measure": "marks per text"}
        yield Finding(columns, work.estimate("marks-per-text", float(marks.mean()), ends, ""))
        timed = rows.filter(pl.col("seconds").is_not_null() & (pl.col("words") > 0))
        pace = (100 * timed["seconds"] / timed["words"]).to_numpy()
        value = float(np.median(pace)) if len(pace) else math.nan
        ends = _resampled_interval(pace, lambda drawn: np.median(drawn, axis=-1), work.draws, work.rng(name, "speed"))
        columns = {"annotator": name, "measure": "seconds per 100 words"}
        yield Finding(columns, work.estimate("seconds-per-100-words", value, ends, "times are missing"))
        ordered = rows.filter(pl.col("when").is_not_null()).sort("when", "annotation")["marks"].to_numpy()
        # With an odd number of texts, the middle one belongs to the second half.
        half = len(ordered) // 2
        drift: dict[str, object] = {"annotator": name, "measure": "drift in marks per text", "p": None}
        if half < 2:
            why = "fewer than four texts have a time" if len(ordered) else "times are missing"
            yield Finding(drift, work.estimate("drift", math.nan, (), why))
            continue
        draws = max(1000, work.draws)
        tested = unpaired_permutation_test(ordered[half:], ordered[:half], draws, work.rng(name, "drift"))
        estimate = work.estimate("drift", tested.difference, (tested.low, tested.high), "")
        yield Finding({**drift, "p": tested.p}, estimate)


def _label_usage_findings(work: AnnotatorQualityInputs) -> Iterator[Finding]:
    """Estimate each annotator's label shares, and their distance from the label shares of all other annotators.

    The distance is the total variation, half the sum of absolute differences: 0 for equal shares, 1 for no label in
    common. Its p is the share of random permutations, of labels within texts, that give at least the same distance.
    """
    place = {name: index for index, name in enumerate(work.seen.categories)}
    numbers = {name: index for index, name in enumerate(work.annotators)}
    marks = work.seen.study.marks.filter(pl.col("label").is_in(list(place)))
    label, who = (
        marks[column].replace_strict(numbers_of, return_dtype=pl.Int64).to_numpy()
        for column, numbers_of in (("label", place), ("annotator", numbers))
    )
    document = np.array([work.grid.documents[id] for id in marks["document"]], dtype=np.int64)
    size = len(numbers), len(place)
    table, rng = _label_counts_by_annotator(label, who, size), work.rng("usage")
    distances = _label_usage_distances(table)
    by_document, shuffled = np.argsort(document, kind="stable"), np.empty_like(label)
    hits = np.zeros(len(numbers))
    for _ in range(work.draws):
        # Labels in random order within each text
        shuffled[by_document] = label[np.lexsort((rng.random(len(label)), document))]
        exchanged = _label_usage_distances(_label_counts_by_annotator(shuffled, who, size))
        # The tolerance covers rounding of equal distances.
        hits += exchanged >= distances - 1e-12
    for index, name in enumerate(work.annotators):
        own_marks, counts = marks.filter(pl.col("annotator") == name), table[index]
        for category, used in zip(work.seen.categories, counts, strict=True):
            by_text = own_marks.group_by("document", maintain_order=True)
            sums = by_text.agg(k=(pl.col("label") == category).sum(), n=pl.len()).select("k", "n").to_numpy()
            ends = bootstrap_interval_from_sums(
                sums.astype(np.float64), _ratio_of_sums, work.draws, work.rng(name, "share", category)
            )
            value = float(used / counts.sum()) if counts.sum() else math.nan
            estimate = work.estimate("share-of-marks", value, ends, "the annotator marked nothing", category)
            yield Finding({"annotator": name, "measure": "share of marks", "label": category}, estimate)
        # Counting the observed labels as one permutation keeps p above 0.
        p = None if math.isnan(distances[index]) else float(1 + hits[index]) / (1 + work.draws)
        why = "no other annotator marked anything" if counts.any() else "the annotator marked nothing"
        estimate = work.estimate("label-usage-distance", float(distances[index]), (math.nan, math.nan), why)
        yield Finding({"annotator": name, "measure": "distance of label usage", "p": p}, estimate)


def _label_counts_by_annotator(label: NDArray[np.int64], who: NDArray[np.int64], size: tuple[int, int]) -> Sums:
    """Count marks by annotator and label."""
    counts = np.bincount(who * size[1] + label, minlength=size[0] * size[1])
    return counts.reshape(size).astype(np.float64)


def _label_usage_distances(counts: Sums) -> Sums:
    """Return the total variation between each annotator's label shares and those of all others; NaN without marks."""
    others = counts.sum(axis=0) - counts
    shares = [
        ratio_or_nan(sums, np.broadcast_to(sums.sum(axis=1, keepdims=True), sums.shape)) for sums in (counts, others)
    ]
    distance: Sums = np.abs(shares[0] - shares[1]).sum(axis=1) / 2
    return distance


def _agreement_with_others_findings(work: AnnotatorQualityInputs, marks: Bools, label: str) -> Iterator[Finding]:
    r"""Estimate token F1 with the other annotators, and the gain in alpha without the annotator.

    A token is marked by the annotator (x = 1) or not (x = 0), and by k of its m annotators. Then $F_1 = 2 \sum x (k -
    x) / \sum ((m - 1) x + k - x)$ over the tokens that the annotator shares with others. This is the overlap with the
    other annotators, one by one, pooled (micro-averaged).
    """
    read = np.repeat(work.read, work.grid.sizes, axis=0)
    k, m = marks.sum(axis=1).astype(np.float64), read.sum(axis=1).astype(np.float64)
    all_annotators = _alpha_sums_per_document(work.grid, k, m)
    for index, name in enumerate(work.annotators):
        x, shared = marks[:, index].astype(np.float64), read[:, index] & (m >= 2)
        others = k - x
        sums = _sum_per_document(work.grid, [2 * x * others * shared, ((m - 1) * x + others) * shared])
        f1 = float(_ratio_of_sums(sums.sum(axis=0)[None])[0])
        ends = bootstrap_interval_from_sums(sums, _ratio_of_sums, work.draws, work.rng(name, "f1", label))
        no_marks = f"there are {_no_marks(label)} in the shared texts"
        why = no_marks if shared.any() else _NO_SHARED_TEXTS_REASON
        columns = {"annotator": name, "label": label}
        estimate = work.estimate("f1-with-the-rest", f1, ends, why, label, unit="token")
        yield Finding({**columns, "measure": "F1 with the rest"}, estimate)
        without = _alpha_sums_per_document(work.grid, others, m - read[:, index])
        both = np.concatenate([without, all_annotators], axis=1)
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


def _alpha_sums_per_document(grid: UnitGrid, k: Sums, m: Sums) -> Sums:
    """Return the sums of each document from which alpha is computed: D_o, n_1 and n."""
    # Krippendorff's alpha is defined on units with two or more values.
    pairable = m >= 2
    disagreement = np.where(pairable, 2 * k * (m - k) / np.maximum(m - 1, 1), 0.0)
    return _sum_per_document(grid, [disagreement, k * pairable, m * pairable])


def _alpha_gain_without_annotator(sums: Sums) -> Sums:
    return binary_alpha_from_sums(sums[:, :3]) - binary_alpha_from_sums(sums[:, 3:])


def _dawid_skene_findings(work: AnnotatorQualityInputs, marks: Bools, label: str) -> Iterator[Finding]:
    """Estimate token recall and precision of each annotator by the model of Dawid and Skene.

    See `finecomb.statistics.agreement.dawid_skene`.
    """
    # With two annotators per text, the model cannot identify which of them is right.
    if (work.read.sum(axis=1) < 3).all():
        why = "no text was annotated by three annotators"
    else:
        why = "" if marks.any() else f"there are {_no_marks(label)}"
    fitted = None
    if not why:
        patterns = count_token_patterns(marks, work.read, work.grid)
        fitted = estimate_annotator_skills(patterns, work.draws, work.rng("model", label))
    used = work.read[work.read.sum(axis=1) >= 2].any(axis=0)
    for index, name in enumerate(work.annotators):
        for measure in ("recall", "precision"):
            reason = why or ("" if used[index] else _NO_SHARED_TEXTS_REASON)
            if measure == "precision" and not reason and not marks[:, index].any():
                reason = f"the annotator has {_no_marks(label)}"
            values = [math.nan] * 3 if reason or fitted is None else getattr(fitted, measure)[index].tolist()
            estimate = work.estimate(f"dawid-skene-{measure}", values[0], values[1:], reason, label, unit="token")
            yield Finding({"annotator": name, "measure": f"{measure} (model)", "label": label}, estimate)


def _no_marks(label: str) -> str:
    return "no marks" if label == ANY_LABEL else f"no marks with label {label!r}"
