"""Means estimated from judges on all texts and people on some, with the effective number of human texts."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.frames import parse_json_object
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.comparisons.system_comparison import pairing_keys
from finecomb.statistics.inference.mean_interval import hall_interval
from finecomb.statistics.judges.ppi import PpiEstimate, TextValues, estimate_variance_gain, ppi_mean
from finecomb.statistics.judges.text_values import (
    MeasuredTexts,
    PeopleAndJudges,
    linearise_ratio,
    measure_texts,
    select_people_and_judges,
    training_documents,
)
from finecomb.statistics.selection.view import ANY_LABEL, Filters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PEOPLE_ALONE, FIXED_SHARES, WITH_JUDGES = "people alone", "in fixed shares", "with judges"
DEFAULT_STRATA = ("model", "domain", "topic")
MIN_TEXTS = 3
NON_NEGATIVE_MEASURES = ("coverage", "severity-coverage", "count", "rate-1000", "marked-documents", "span-length")
INCLUSION_KEY = "inclusion"
"""Key in an annotation's meta for the probability with which its text was drawn."""
STRATUM_KEY = "stratum"
"""Key in an annotation's meta for the stratum from which the server drew its text."""
ALLOCATION_STRATA = "allocation"
"""Name of the strata defined by the study's own design."""


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """Options of `estimate_means`."""

    judges: tuple[str, ...] = ()
    measures: tuple[str, ...] = ("count",)
    by: str = ""
    """Document meta field that identifies systems; pairwise differences between systems are estimated as well."""
    strata: tuple[str, ...] | None = None
    """Document meta fields whose shares among all texts are held fixed; None selects automatically, () uses none."""
    people: tuple[str, ...] = ()
    by_label: bool = False
    """True to add one row per label after the row `any`."""
    tokens: str = "words"
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates with notes on how they were made."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    def find(self, **columns: object) -> Estimate:
        """Return the estimate of the only row whose columns have the given values."""
        fitting = [finding for finding in self.findings if columns.items() <= dict(finding.columns).items()]
        if len(fitting) != 1:
            raise FinecombError(f"{len(fitting)} of {len(self.findings)} rows match {columns}; exactly one must match")
        return fitting[0].estimate


@dataclass(frozen=True, slots=True)
class _SystemTexts:
    """Texts of one system, or of all systems."""

    name: str
    places: Ints
    """Positions of the system's texts among the texts that all judges annotated."""
    strata: Ints | None
    strata_name: str


def estimate_means(
    study: Study,
    judges: Sequence[str] = (),
    measures: Sequence[str] = ("count",),
    by: str = "",
    *,
    strata: Sequence[str] | None = None,
    people: Sequence[str] = (),
    by_label: bool = False,
    filters: Filters | None = None,
    tokens: str = "words",
) -> Estimates:
    """Estimate means over all texts from the marks of judges on all texts and of people on some texts.

    The first row of each measure is estimated from people alone. If document meta divides the texts into strata with at
    least two human texts each, a row in fixed shares of the strata follows. The last row adds the judges. Columns:
    measure, label, the system, method, value, low, high, `read` (texts that people annotated), `texts`, and `worth`,
    the number of texts that people alone would need for the same variance. With `by`, pairwise differences between
    systems follow, paired if the systems share prompts.
    """
    options = EstimateOptions(
        tuple(judges), tuple(measures), by, None if strata is None else tuple(strata), tuple(people), by_label, tokens
    )
    sides = select_people_and_judges(study, judges, people, filters)
    moved = []
    if strata_of_design := sides.allocation:
        numbers = zip(strata_of_design.documents, strata_of_design.numbers, strict=True)
        current = {document: strata_of_design.names[number] for document, number in numbers}
        rows = sides.seen.study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
        stored = {
            id: parse_json_object(meta).get(STRATUM_KEY) for id, meta in rows.select("document", "meta").iter_rows()
        }
        moved = [id for id, name in stored.items() if name is not None and name != current[id]]
    if moved:
        # Texts that changed stratum after the draw make the strata of the design invalid.
        sides = replace(sides, allocation=None)
    chosen, notes = _texts_read_by_judges(sides)
    if moved:
        notes.append(
            f"{len(moved)} texts were drawn from a stratum other than their current one (e.g. {moved[0]!r}); "
            "texts are weighted by their inclusion probability, without strata"
        )
    inclusion = _inclusion_probabilities(sides, chosen)
    groups = _system_text_groups(sides, chosen, options, notes)
    findings: list[Finding] = []
    for measure in options.measures:
        amounts = measure_texts(sides, measure, tokens)
        findings += _estimate_findings_of_measure(sides, amounts, measure, groups, chosen, inclusion, options, notes)
    return Estimates(tuple(findings), tuple(dict.fromkeys(notes)))


def pilot_text_values(
    study: Study,
    judges: Sequence[str],
    measure: str = "count",
    people: Sequence[str] = (),
    filters: Filters | None = None,
) -> TextValues:
    """Return the values of a measure on all texts, with default strata if available, for a sample size plan."""
    options = EstimateOptions(tuple(judges), (measure,), people=tuple(people))
    sides = select_people_and_judges(study, judges, people, filters)
    chosen, notes = _texts_read_by_judges(sides)
    group = _system_text_groups(sides, chosen, options, notes)[0]
    table = _LabelAmounts.from_amounts(
        sides, measure_texts(sides, measure), ANY_LABEL, chosen, _inclusion_probabilities(sides, chosen)
    )
    return table.text_values(group.places, group.strata)


# --- texts and strata --------------------------------------------------------------------------------------------


def _texts_read_by_judges(sides: PeopleAndJudges) -> tuple[Ints, list[str]]:
    """Return the positions of the texts that all judges annotated, and notes for the user.

    Without judges, the texts are those that people annotated or, with an allocation, those that can be assigned to
    people.
    """
    humans = set().union(*(sides.documents_read_by(name) for name in sides.people))
    notes: list[str] = []
    common = set(sides.documents) if sides.judges or sides.allocation else humans
    for judge in sides.judges:
        read = sides.documents_read_by(judge)
        if missing := sorted(humans - read):
            what = f"{judge} has not annotated {len(missing)} of the {len(humans)} human-annotated texts"
            raise FinecombError(f"{what} (e.g. {missing[0]!r}); run the judge on them or omit it")
        if fitted := training_documents(sides.seen.study, judge) & humans:
            what = f"{judge} was trained on {len(fitted)} of the {len(humans)} human-annotated texts"
            raise FinecombError(
                f"{what} (e.g. {min(fitted)!r}), on which it is too accurate; "
                "train it in folds (`cross_fitted_predictions`) or omit it"
            )
        common &= read
    if len(common) < len(sides.documents) and sides.judges:
        left = len(sides.documents) - len(common)
        notes.append(
            f"{left} texts that not all judges annotated are left out; the estimate covers the other {len(common)}"
        )
    places = [place for place, document in enumerate(sides.documents) if document in common]
    return np.array(places, dtype=np.int64), notes


def _inclusion_probabilities(sides: PeopleAndJudges, chosen: Ints) -> Floats | None:
    """Return the inclusion probability of each chosen text, or None if no probabilities are stored.

    Texts that no person annotated have NaN. In a stratum from which the server drew one text after another, all texts
    get the largest stored probability, which is the share of the stratum's texts that were drawn in the end.
    """
    rows = sides.seen.study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    metas: dict[str, dict[str, Any]] = {}
    for document, cell in rows.select("document", "meta").iter_rows():
        facts = parse_json_object(cell)
        # If a text has several annotations, the one with a probability counts.
        if document not in metas or INCLUSION_KEY in facts:
            metas[document] = facts
    chances = {document: facts.get(INCLUSION_KEY) for document, facts in metas.items()}
    given = {document: float(chance) for document, chance in chances.items() if chance is not None}
    if not given:
        return None
    final_by_stratum: dict[str, float] = {}
    for document, chance in given.items():
        stratum = str(metas[document].get(STRATUM_KEY, ""))
        final_by_stratum[stratum] = max(final_by_stratum.get(stratum, 0.0), chance)
    given |= {
        document: final_by_stratum[str(metas[document][STRATUM_KEY])]
        for document in given
        if metas[document].get(STRATUM_KEY)
    }
    if lacking := sorted(set(chances) - set(given)):
        texts = f"{len(lacking)} of {len(chances)} human-annotated texts (e.g. {lacking[0]!r})"
        what = f"`{INCLUSION_KEY}` is missing in the annotation meta of {texts}"
        raise FinecombError(f"{what}; add the probability with which each text was drawn")
    return np.array([given.get(sides.documents[place], math.nan) for place in chosen])


def _system_text_groups(
    sides: PeopleAndJudges, chosen: Ints, options: EstimateOptions, notes: list[str]
) -> list[_SystemTexts]:
    humans = set().union(*(sides.documents_read_by(name) for name in sides.people))
    read = np.array([sides.documents[place] in humans for place in chosen])
    systems = [row[0] for row in sides.meta_rows([options.by])] if options.by else [""] * len(sides.documents)
    names = sorted({systems[place] for place in chosen})
    groups = []
    for name in names:
        inside = np.array([systems[place] == name for place in chosen])
        places = np.flatnonzero(inside)
        strata, strata_name = _choose_strata(sides, chosen[places], read[places], options, notes)
        groups.append(_SystemTexts(name, places, strata, strata_name))
    return groups


def _choose_strata(
    sides: PeopleAndJudges, places: Ints, read: NDArray[np.bool_], options: EstimateOptions, notes: list[str]
) -> tuple[Ints | None, str]:
    """Return the stratum of each text and the name of the strata, or (None, "") if there are no usable strata."""
    if options.strata is not None:
        if not options.strata:
            return None, ""
        numbers, thin = _strata_from_meta(sides, places, read, options.strata)
        if thin:
            raise ParameterError(
                f"stratum {thin} has fewer than two texts annotated by people; "
                f"merge it with another stratum or use {param('strata', 'none')}",
                parameter="strata",
            )
        return numbers, "+".join(options.strata)
    if sides.allocation:
        numbers_by_text = dict(zip(sides.allocation.documents, sides.allocation.numbers, strict=True))
        names = [sides.allocation.names[numbers_by_text[sides.documents[place]]] for place in places]
        numbers, thin = _number_strata(names, read)
        return (None, "") if thin or not numbers.max(initial=0) else (numbers, ALLOCATION_STRATA)
    for name in DEFAULT_STRATA:
        # Within a system, `by` has one value and makes no strata.
        if name == options.by or not sides.has_meta(name):
            continue
        numbers, thin = _strata_from_meta(sides, places, read, (name,))
        if not thin and numbers.max(initial=0) > 0:
            return numbers, name
    return None, ""


def _strata_from_meta(
    sides: PeopleAndJudges, places: Ints, read: NDArray[np.bool_], names: Sequence[str]
) -> tuple[Ints, str]:
    """Return each text's stratum number, and the name of a stratum with fewer than two human texts, or "" if none."""
    values = [" ".join(row) for row in sides.meta_rows(names)]
    return _number_strata([values[place] for place in places], read)


def _number_strata(values: Sequence[str], read: NDArray[np.bool_]) -> tuple[Ints, str]:
    keys = sorted(set(values))
    numbers = np.array([keys.index(value) for value in values], dtype=np.int64)
    counts = np.bincount(numbers[read], minlength=len(keys))
    thin = [key or "without a value" for key, count in zip(keys, counts, strict=True) if count < 2]
    return numbers, thin[0] if thin else ""


# --- values ------------------------------------------------------------------------------------------------------


def _estimate_findings_of_measure(
    sides: PeopleAndJudges,
    amounts: MeasuredTexts,
    measure: str,
    groups: Sequence[_SystemTexts],
    chosen: Ints,
    inclusion: Floats | None,
    options: EstimateOptions,
    notes: list[str],
) -> Iterator[Finding]:
    labels = (
        (ANY_LABEL, *(label for label in amounts.labels if label != ANY_LABEL)) if options.by_label else (ANY_LABEL,)
    )
    for label in labels:
        table = _LabelAmounts.from_amounts(sides, amounts, label, chosen, inclusion)
        if label == ANY_LABEL and options.judges and inclusion is None:
            notes += _nonrandom_sample_notes(table, options.judges)
        for group in groups:
            fields = _estimate_signature_fields(sides, measure, label, group, options)
            columns = {"measure": measure, "label": label, **({options.by: group.name} if options.by else {})}
            yield from _mean_findings_by_method(
                table.text_values(group.places, group.strata), columns, fields, measure, options
            )
        if options.by and label == ANY_LABEL:
            yield from _system_difference_findings(sides, table, groups, chosen, measure, options)


@dataclass(frozen=True, slots=True)
class _LabelAmounts:
    """Amounts (numerators and denominators) of one label on the texts that all judges annotated."""

    top: Floats
    """Mean amounts of people, (texts,); NaN where no person annotated the text."""
    bottom: Floats
    tops: Floats
    """Amounts of judges, (judges, texts)."""
    bottoms: Floats
    inclusion: Floats | None

    @classmethod
    def from_amounts(
        cls, sides: PeopleAndJudges, amounts: MeasuredTexts, label: str, chosen: Ints, inclusion: Floats | None
    ) -> _LabelAmounts:
        row = amounts.labels.index(label)
        top, bottom = (amount[chosen] for amount in amounts.people_means(sides.people, label))
        tops, bottoms = (
            np.array([side[judge][row, chosen] for judge in sides.judges]).reshape(len(sides.judges), len(chosen))
            for side in (amounts.top, amounts.bottom)
        )
        return cls(top, bottom, np.nan_to_num(tops), np.nan_to_num(bottoms), inclusion)

    def text_values(self, places: Ints, strata: Ints | None) -> TextValues:
        """Return the values of the texts at the given positions."""
        read = np.flatnonzero(np.isfinite(self.top[places]) & np.isfinite(self.bottom[places]))
        human = linearise_ratio(self.top[places][read], self.bottom[places][read])
        judges = [linearise_ratio(*sides) for sides in zip(self.tops[:, places], self.bottoms[:, places], strict=True)]
        inclusion = None if self.inclusion is None else self.inclusion[places][read]
        table = np.nan_to_num(np.array(judges)).reshape(len(judges), len(places))
        return TextValues(human, read, table, strata, inclusion)


def _nonrandom_sample_notes(table: _LabelAmounts, judges: Sequence[str]) -> list[str]:
    """Return a note for each judge whose values show that the human-annotated texts are not a random sample."""
    read = np.isfinite(table.top)
    if read.sum() < 2 or (~read).sum() < 2:
        return []
    notes = []
    for judge, top in zip(judges, table.tops, strict=True):
        inside, outside = top[read], top[~read]
        if np.ptp(inside) + np.ptp(outside) == 0:
            continue
        p = float(scipy.stats.ttest_ind(inside, outside, equal_var=False).pvalue) if np.ptp(inside) else 1.0
        # Bonferroni over judges.
        if p < 0.001 / len(judges):
            means = f"{inside.mean():.3g} on them and {outside.mean():.3g} on the others"
            notes.append(f"the human-annotated texts are not a random sample; the mean of {judge} is {means}")
    return notes


def _estimate_signature_fields(
    sides: PeopleAndJudges, measure: str, label: str, group: _SystemTexts, options: EstimateOptions
) -> dict[str, object]:
    return {
        "statistic": "estimate",
        "measure": measure,
        "label": label,
        "of": f"{options.by}={group.name}" if options.by else None,
        "tokens": options.tokens,
        "people": len(sides.people),
        "judges": "+".join(sides.judges) or None,
        "strata": group.strata_name or None,
        **sides.seen.fields,
        "who": None,
    }


# --- rows --------------------------------------------------------------------------------------------------------


def _mean_findings_by_method(
    values: TextValues,
    columns: Mapping[str, object],
    fields: Mapping[str, object],
    measure: str,
    options: EstimateOptions,
) -> Iterator[Finding]:
    counts = {"read": len(values.human), "texts": values.text_count}
    if why := _insufficient_data_reason(values):
        signature = Signature.from_fields(**fields, method=PEOPLE_ALONE, **counts)
        estimate = _estimate_without_variation(values, measure, signature, why)
        yield Finding({**columns, "method": PEOPLE_ALONE, **counts, "worth": float(counts["read"])}, estimate)
        return
    methods = [(PEOPLE_ALONE, values.without_judges_or_strata())]
    if values.strata is not None:
        methods.append((FIXED_SHARES, values.without_judges()))
    if len(values.judges):
        methods.append((WITH_JUDGES, values))
    for method, part in methods:
        mean = ppi_mean(part)
        low, high = mean.interval(options.confidence, signed=measure.endswith("difference"))
        why = "the estimate has no variance, so there is no interval" if math.isnan(low) else ""
        if not why:
            low = max(low, 0.0) if measure in NON_NEGATIVE_MEASURES else low
            high = min(high, 1.0) if measure == "marked-documents" else high
        signature = Signature.from_fields(**fields, method=method, **counts)
        row = {**columns, "method": method, **counts, **_effective_size_columns(values, mean, method)}
        yield Finding(row, Estimate(mean.value, low, high, signature, why))


def _effective_size_columns(values: TextValues, mean: PpiEstimate, method: str) -> dict[str, object]:
    """Return how many texts people alone would need for the same variance, and how many of them the judges add."""
    read = len(values.human)
    if method == PEOPLE_ALONE:
        return {"worth": float(read)}
    worth = read * estimate_variance_gain(ppi_mean(values.without_judges_or_strata()), mean).ratio
    if method == FIXED_SHARES:
        return {"worth": worth}
    before = ppi_mean(values.without_judges())
    gain = estimate_variance_gain(before, mean)
    # Number of texts that people alone would need for the variance under fixed shares: the baseline for `added`.
    base = worth / gain.ratio
    added = {"added": base * (gain.ratio - 1), "added_low": base * (gain.low - 1), "added_high": base * (gain.high - 1)}
    advice = "the benefit of the judges is uncertain" if gain.low <= 1 else "the judges help"
    if not mean.uses_judges or gain.ratio <= 1:
        advice = "the judges do not improve the estimate; use people alone"
    return {"worth": worth, **added, "advice": advice}


def _insufficient_data_reason(values: TextValues) -> str:
    n = len(values.human)
    if n < MIN_TEXTS:
        return f"an estimate requires at least {MIN_TEXTS} human-annotated texts, found {n}"
    if np.ptp(values.human) == 0:
        return f"all {n} human-annotated texts have the same value, so there is no interval"
    if values.strata is not None:
        counts = np.bincount(values.strata_of_read_texts, minlength=len(values.stratum_shares))
        if (counts < 2).any():
            return "a stratum has fewer than two texts with a value"
    return ""


def _estimate_without_variation(values: TextValues, measure: str, signature: Signature, why: str) -> Estimate:
    """Return the estimate for constant values, with an exact interval for shares of texts, otherwise with none."""
    n = len(values.human)
    if n < MIN_TEXTS:
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    value = float(values.human[0])
    # Exact (Clopper-Pearson) 95% limit for 0 of n texts.
    beyond = 0.025 ** (1 / n)
    if measure == "marked-documents" and value in (0.0, 1.0):
        low, high = (0.0, 1 - beyond) if value == 0 else (beyond, 1.0)
        return Estimate(value, low, high, signature)
    if value == 0 and measure in NON_NEGATIVE_MEASURES:
        why = f"{why}; at most {1 - beyond:.1%} of texts have an error"
    return Estimate(value, math.nan, math.nan, signature, why)


# --- differences -------------------------------------------------------------------------------------------------


def _system_difference_findings(
    sides: PeopleAndJudges,
    table: _LabelAmounts,
    groups: Sequence[_SystemTexts],
    chosen: Ints,
    measure: str,
    options: EstimateOptions,
) -> Iterator[Finding]:
    keys = dict(pairing_keys(sides.seen, options.by).iter_rows())
    key_of = [keys.get(sides.documents[place]) for place in chosen]
    for first, second in itertools.combinations(groups, 2):
        # Under unequal inclusion, texts were drawn one by one, not as pairs.
        paired = _paired_difference_values(table, (first, second), key_of) if table.inclusion is None else None
        name = f"{first.name} - {second.name}"
        columns: dict[str, object] = {"measure": f"{measure} difference", "label": ANY_LABEL, options.by: name}
        fields = _estimate_signature_fields(
            sides, measure, ANY_LABEL, replace(first, name=name, strata_name=""), options
        )

        if paired is not None and len(paired.human) >= MIN_TEXTS and np.ptp(paired.human) > 0:
            fields |= {"pairing": "prompts"}
            yield from _mean_findings_by_method(paired, columns, fields, f"{measure} difference", options)
            continue
        fields |= {"pairing": "none"}
        values = [table.text_values(group.places, None) for group in (first, second)]
        columns |= {"read": sum(len(side.human) for side in values), "texts": sum(side.text_count for side in values)}
        if why := next(filter(None, map(_insufficient_data_reason, values)), ""):
            estimate = Estimate(math.nan, math.nan, math.nan, Signature.from_fields(**fields), why)
            yield Finding({**columns, "method": PEOPLE_ALONE}, estimate)
            continue
        for method in (PEOPLE_ALONE, *((WITH_JUDGES,) if options.judges else ())):
            means = [ppi_mean(side if method == WITH_JUDGES else side.without_judges_or_strata()) for side in values]
            difference, spread = means[0].value - means[1].value, means[0].spread + -means[1].spread
            ends = hall_interval(difference, spread, options.confidence, signed=True)
            signature = Signature.from_fields(**fields, method=method)
            yield Finding({**columns, "method": method}, Estimate(difference, *ends, signature))


def _paired_difference_values(
    table: _LabelAmounts, systems: Sequence[_SystemTexts], key_of: Sequence[str | None]
) -> TextValues | None:
    """Return the differences between two systems' texts for the same prompt, or None if no prompt has both.

    A prompt counts if each system has exactly one text for it.
    """
    place_by_key: list[dict[str, int]] = []
    for system in systems:
        keys = [key_of[place] for place in system.places]
        counts = Counter(keys)
        pairs = zip(keys, system.places, strict=True)
        place_by_key.append({key: int(place) for key, place in pairs if key is not None and counts[key] == 1})
    shared = sorted(set(place_by_key[0]) & set(place_by_key[1]))
    if not shared:
        return None
    human, judges = [], []
    for places in place_by_key:
        values = table.text_values(np.array([places[key] for key in shared], dtype=np.int64), None)
        # NaN where no person annotated the text
        human.append(np.full(len(shared), math.nan))
        human[-1][values.read] = values.human
        judges.append(values.judges)
    difference = human[0] - human[1]
    read = np.flatnonzero(np.isfinite(difference))
    return TextValues(difference[read], read, judges[0] - judges[1])
