"""Estimates of a study from cheap judges on all texts and people on some, each with what the judges were worth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import parse_json_object
from finecomb.core.study import Study
from finecomb.statistics.comparisons.system_comparison import pairing_keys
from finecomb.statistics.inference.mean_interval import ErrorMoments, hall_interval
from finecomb.statistics.judges.ppi import PpiEstimate, TextValues, VarianceGain, estimate_variance_gain, ppi_mean
from finecomb.statistics.judges.text_allocation import TextStrata
from finecomb.statistics.judges.text_values import (
    MeasuredTexts,
    PeopleAndJudges,
    linearise_ratio,
    measure_texts,
    select_people_and_judges,
    training_documents,
)
from finecomb.statistics.selection.view import ANY, Filters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PEOPLE_ALONE, FIXED_SHARES, WITH_JUDGES = "people alone", "in fixed shares", "with judges"
DEFAULT_STRATA = ("model", "domain", "topic")
MIN_TEXTS = 3
NON_NEGATIVE_MEASURES = ("coverage", "severity-coverage", "count", "rate-1000", "marked-documents", "span-length")
INCLUSION_KEY = "inclusion"
"""Name in an annotation's meta of the chance with which its text was drawn to be read."""
STRATUM_KEY = "stratum"
"""Name in an annotation's meta of the stratum that its text was drawn from by the server."""
ALLOCATION_STRATA = "allocation"
"""What strata are called that the study's own design has."""


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """What is estimated, and from whom."""

    judges: tuple[str, ...] = ()
    measures: tuple[str, ...] = ("count",)
    by: str = ""
    """Document meta that tells systems apart; differences between every two of them are estimated too."""
    strata: tuple[str, ...] | None = None
    """Document meta whose shares among all texts are held fixed; None chooses, () takes none."""
    people: tuple[str, ...] = ()
    by_label: bool = False
    """One row for each label beside `any`."""
    tokens: str = "words"
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Estimates:
    """Rows of all estimates, and what the reader should know."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    def find(self, **columns: object) -> Estimate:
        """The estimate of the one row with these columns."""
        fitting = [finding for finding in self.findings if columns.items() <= dict(finding.columns).items()]
        if len(fitting) != 1:
            raise FinecombError(f"{len(fitting)} rows have {columns}; there are {len(self.findings)} rows")
        return fitting[0].estimate


@dataclass(frozen=True, slots=True)
class _SystemTexts:
    """Texts of one system, or all of them."""

    name: str
    places: Ints
    """Positions among the texts that every judge has read."""
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
    """Means over all texts from judges' marks on all of them and people's on some.

    Every measure has one row from people alone; one in fixed shares, where document meta cuts the texts into strata of
    two or more human texts each; and one with the judges on top. Columns: measure, label, the system, method, value,
    low, high, `read` (texts that people read), `texts`, and `worth`: how many texts people alone would have to read for
    the same variance. With `by`, differences between every two systems follow, paired where they share prompts.
    """
    options = EstimateOptions(
        tuple(judges), tuple(measures), by, None if strata is None else tuple(strata), tuple(people), by_label, tokens
    )
    sides = select_people_and_judges(study, judges, people, filters)
    sides, moved = _drop_changed_strata(sides)
    chosen, notes = _texts_read_by_judges(sides)
    notes += moved
    inclusion = _inclusion_probabilities(sides, chosen)
    groups = _system_text_groups(sides, chosen, options, notes)
    findings: list[Finding] = []
    for measure in options.measures:
        amounts = measure_texts(sides, measure, tokens)
        findings += _measure_findings(sides, amounts, measure, groups, chosen, inclusion, options, notes)
    return Estimates(tuple(findings), tuple(dict.fromkeys(notes)))


def pilot_text_values(
    study: Study,
    judges: Sequence[str],
    measure: str = "count",
    people: Sequence[str] = (),
    filters: Filters | None = None,
) -> TextValues:
    """The values of a measure on all texts, in the usual strata where they hold: what a plan starts from."""
    options = EstimateOptions(tuple(judges), (measure,), people=tuple(people))
    sides = select_people_and_judges(study, judges, people, filters)
    chosen, notes = _texts_read_by_judges(sides)
    group = _system_text_groups(sides, chosen, options, notes)[0]
    table = _LabelAmounts.from_amounts(
        sides, measure_texts(sides, measure), ANY, chosen, _inclusion_probabilities(sides, chosen)
    )
    return table.text_values(group.places, group.strata)


# --- which texts -------------------------------------------------------------------------------------------------


def _texts_read_by_judges(sides: PeopleAndJudges) -> tuple[Ints, list[str]]:
    """Positions of the texts that every judge has read; without judges, of all texts that people read or could get."""
    humans = set().union(*(sides.documents_read_by(name) for name in sides.people))
    notes: list[str] = []
    common = set(sides.documents) if sides.judges or sides.allocation else humans
    for judge in sides.judges:
        read = sides.documents_read_by(judge)
        if missing := sorted(humans - read):
            what = f"{judge} has not read {len(missing)} of the {len(humans)} texts that people read ({missing[0]!r})"
            raise FinecombError(f"{what}; have it read them, or leave the judge out")
        if fitted := training_documents(sides.seen.study, judge) & humans:
            what = f"{judge} was fitted on {len(fitted)} of the {len(humans)} texts that people read ({min(fitted)!r})"
            raise FinecombError(
                f"{what}, where it is too good; train it in folds (`cross_fitted_predictions`), or leave it out"
            )
        common &= read
    if len(common) < len(sides.documents) and sides.judges:
        left = len(sides.documents) - len(common)
        notes.append(
            f"judges have not read {left} texts, which are left out: the estimate is of the other {len(common)}"
        )
    places = [place for place, document in enumerate(sides.documents) if document in common]
    return np.array(places, dtype=np.int64), notes


def _drop_changed_strata(sides: PeopleAndJudges) -> tuple[PeopleAndJudges, list[str]]:
    """The sides without the design's strata where texts were drawn from others than they lie in now, and that said."""
    if sides.allocation is None:
        return sides, []
    rows = sides.seen.study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    stored = {row[0]: parse_json_object(row[1]).get(STRATUM_KEY) for row in rows.select("document", "meta").iter_rows()}
    moved = [
        document
        for document, name in stored.items()
        if name is not None and name != sides.allocation.stratum_name(document)
    ]
    if not moved:
        return sides, []
    note = f"{len(moved)} texts were drawn from another stratum than they lie in now ({moved[0]!r})"
    return replace(sides, allocation=None), [f"{note}: texts are weighed by their inclusion, without strata"]


def _inclusion_probabilities(sides: PeopleAndJudges, chosen: Ints) -> Floats | None:
    """The chance with which each chosen text was drawn, NaN for those that nobody read; None where all had the same.

    Of a stratum from which the server drew text after text, it is the largest that was stored: the share of its texts
    that had been drawn in the end.
    """
    rows = sides.seen.study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    metas: dict[str, dict[str, Any]] = {}
    for document, cell in rows.select("document", "meta").iter_rows():
        facts = parse_json_object(cell)
        if document not in metas or INCLUSION_KEY in facts:
            metas[document] = facts
    chances = {document: facts.get(INCLUSION_KEY) for document, facts in metas.items()}
    given = {document: float(chance) for document, chance in chances.items() if chance is not None}
    if not given:
        return None
    in_the_end: dict[str, float] = {}
    for document, chance in given.items():
        stratum = str(metas[document].get(STRATUM_KEY, ""))
        in_the_end[stratum] = max(in_the_end.get(stratum, 0.0), chance)
    given |= {
        document: in_the_end[str(metas[document][STRATUM_KEY])]
        for document in given
        if metas[document].get(STRATUM_KEY)
    }
    if lacking := sorted(set(chances) - set(given)):
        what = f"{len(lacking)} of {len(chances)} texts that people read have no `{INCLUSION_KEY}` in their meta"
        raise FinecombError(f"{what} ({lacking[0]!r}), the others have: say with which chance each was drawn")
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
        strata, called = _choose_strata(sides, chosen[places], read[places], options, notes)
        groups.append(_SystemTexts(name, places, strata, called))
    return groups


def _choose_strata(
    sides: PeopleAndJudges, places: Ints, read: NDArray[np.bool_], options: EstimateOptions, notes: list[str]
) -> tuple[Ints | None, str]:
    """The stratum of each text and the meta it comes from; None where there are no strata that hold."""
    if options.strata is not None:
        if not options.strata:
            return None, ""
        numbers, thin = _strata_from_meta(sides, places, read, options.strata)
        if thin:
            raise ParameterError(
                f"stratum {thin} has fewer than two texts read by people; "
                f"join it with another, or {param('strata', 'none')}",
                parameter="strata",
            )
        return numbers, "+".join(options.strata)
    if sides.allocation:
        numbers, thin = _strata_from_allocation(sides.allocation, sides, places, read)
        return (None, "") if thin or not numbers.max(initial=0) else (numbers, ALLOCATION_STRATA)
    for name in DEFAULT_STRATA:
        if name == options.by or not sides.has_meta(name):
            continue
        numbers, thin = _strata_from_meta(sides, places, read, (name,))
        if not thin and numbers.max(initial=0) > 0:
            return numbers, name
    return None, ""


def _strata_from_meta(
    sides: PeopleAndJudges, places: Ints, read: NDArray[np.bool_], names: Sequence[str]
) -> tuple[Ints, str]:
    """The stratum of each text by number, and the name of one in which people read fewer than two, or nothing."""
    values = [" ".join(row) for row in sides.meta_rows(names)]
    return _number_strata([values[place] for place in places], read)


def _strata_from_allocation(
    allocation: TextStrata, sides: PeopleAndJudges, places: Ints, read: NDArray[np.bool_]
) -> tuple[Ints, str]:
    """The same by the strata from which the server drew texts."""
    names = dict(zip(allocation.documents, allocation.numbers, strict=True))
    return _number_strata([allocation.names[names[sides.documents[place]]] for place in places], read)


def _number_strata(values: Sequence[str], read: NDArray[np.bool_]) -> tuple[Ints, str]:
    keys = sorted(set(values))
    numbers = np.array([keys.index(value) for value in values], dtype=np.int64)
    counts = np.bincount(numbers[read], minlength=len(keys))
    thin = [key or "without a value" for key, count in zip(keys, counts, strict=True) if count < 2]
    return numbers, thin[0] if thin else ""


# --- values ------------------------------------------------------------------------------------------------------


def _measure_findings(
    sides: PeopleAndJudges,
    amounts: MeasuredTexts,
    measure: str,
    groups: Sequence[_SystemTexts],
    chosen: Ints,
    inclusion: Floats | None,
    options: EstimateOptions,
    notes: list[str],
) -> Iterator[Finding]:
    labels = (ANY, *(label for label in amounts.labels if label != ANY)) if options.by_label else (ANY,)
    for label in labels:
        table = _LabelAmounts.from_amounts(sides, amounts, label, chosen, inclusion)
        if label == ANY and options.judges and inclusion is None:
            notes += _nonrandom_sample_notes(table, options.judges)
        for group in groups:
            fields = _estimate_signature_fields(sides, measure, label, group, options)
            columns = {"measure": measure, "label": label, **({options.by: group.name} if options.by else {})}
            yield from _mean_findings_by_method(
                table.text_values(group.places, group.strata), columns, fields, measure, options
            )
        if options.by and label == ANY:
            yield from _system_difference_findings(sides, table, groups, chosen, measure, options)


@dataclass(frozen=True, slots=True)
class _LabelAmounts:
    """Amounts of one label on the texts that every judge has read."""

    top: Floats
    """People's, (texts,); NaN where nobody read."""
    bottom: Floats
    tops: Floats
    """(judges, texts)."""
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
        """The values of some texts."""
        read = np.flatnonzero(np.isfinite(self.top[places]) & np.isfinite(self.bottom[places]))
        human = linearise_ratio(self.top[places][read], self.bottom[places][read])
        judges = [linearise_ratio(*sides) for sides in zip(self.tops[:, places], self.bottoms[:, places], strict=True)]
        inclusion = None if self.inclusion is None else self.inclusion[places][read]
        table = np.nan_to_num(np.array(judges)).reshape(len(judges), len(places))
        return TextValues(human, read, table, strata, inclusion)


def _nonrandom_sample_notes(table: _LabelAmounts, judges: Sequence[str]) -> list[str]:
    """A note where judges see people's texts as different from the others: then they are no random sample."""
    read = np.isfinite(table.top)
    if read.sum() < 2 or (~read).sum() < 2:
        return []
    notes = []
    for judge, top in zip(judges, table.tops, strict=True):
        inside, outside = top[read], top[~read]
        if np.ptp(inside) + np.ptp(outside) == 0:
            continue
        p = float(scipy.stats.ttest_ind(inside, outside, equal_var=False).pvalue) if np.ptp(inside) else 1.0
        if p < 0.001 / len(judges):
            means = f"{inside.mean():.3g} there, {outside.mean():.3g} elsewhere"
            notes.append(
                f"the texts that people read are not a random sample: by {judge}, {means}; the estimate may be off"
            )
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
    if why := _insufficient_data_reason(values):
        signature = Signature.from_fields(
            **fields, method=PEOPLE_ALONE, read=len(values.human), texts=values.text_count
        )
        yield Finding(
            {**columns, "method": PEOPLE_ALONE, **_text_count_columns(values)},
            _estimate_without_variation(values, measure, signature, why),
        )
        return
    for method, part in _values_by_method(values):
        mean = ppi_mean(part)
        signature = Signature.from_fields(**fields, method=method, read=len(values.human), texts=values.text_count)
        row = {
            **columns,
            "method": method,
            **_text_count_columns(values),
            **_effective_size_columns(values, mean, method),
        }
        yield Finding(row, _estimate_with_clipped_interval(mean, measure, signature, options))


def _values_by_method(values: TextValues) -> list[tuple[str, TextValues]]:
    """People alone, then what fixed shares give, then the judges on top."""
    methods = [(PEOPLE_ALONE, values.without_judges_or_strata())]
    if values.strata is not None:
        methods.append((FIXED_SHARES, values.without_judges()))
    if len(values.judges):
        methods.append((WITH_JUDGES, values))
    return methods


def _text_count_columns(values: TextValues) -> dict[str, object]:
    return {"read": len(values.human), "texts": values.text_count}


def _effective_size_columns(values: TextValues, mean: PpiEstimate, method: str) -> dict[str, object]:
    """How many texts people alone would have to read for the same variance, and how many of them the judges add."""
    read = len(values.human)
    if method == PEOPLE_ALONE:
        return {"worth": float(read)}
    worth = read * estimate_variance_gain(ppi_mean(values.without_judges_or_strata()), mean).ratio
    if method == FIXED_SHARES:
        return {"worth": worth}
    before = ppi_mean(values.without_judges())
    gain = estimate_variance_gain(before, mean)
    base = worth / gain.ratio
    added = {"added": base * (gain.ratio - 1), "added_low": base * (gain.low - 1), "added_high": base * (gain.high - 1)}
    return {"worth": worth, **added, "advice": _judge_advice(mean, gain)}


def _judge_advice(mean: PpiEstimate, gain: VarianceGain) -> str:
    if not mean.uses_judges or gain.ratio <= 1:
        return "the judges add nothing; use people alone"
    return "the judges help, or not" if gain.low <= 1 else "the judges help"


def _insufficient_data_reason(values: TextValues) -> str:
    n = len(values.human)
    if n < MIN_TEXTS:
        return f"people read {n} texts; an estimate needs {MIN_TEXTS} or more"
    if np.ptp(values.human) == 0:
        return f"all {n} texts that people read have the same value, so no interval"
    if values.strata is not None:
        counts = np.bincount(values.stratum_of_read, minlength=len(values.stratum_shares))
        if (counts < 2).any():
            return "a stratum has fewer than two texts with a value"
    return ""


def _estimate_without_variation(values: TextValues, measure: str, signature: Signature, why: str) -> Estimate:
    """Without any variation: of shares of texts the exact interval, of others the value alone."""
    n = len(values.human)
    if n < MIN_TEXTS:
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    value = float(values.human[0])
    beyond = 0.025 ** (1 / n)
    if measure == "marked-documents" and value in (0.0, 1.0):
        low, high = (0.0, 1 - beyond) if value == 0 else (beyond, 1.0)
        return Estimate(value, low, high, signature)
    if value == 0:
        why = f"{why}; at most {1 - beyond:.1%} of texts have an error"
    return Estimate(value, math.nan, math.nan, signature, why)


def _estimate_with_clipped_interval(
    mean: PpiEstimate, measure: str, signature: Signature, options: EstimateOptions
) -> Estimate:
    low, high = mean.interval(options.confidence, signed=measure.endswith("difference"))
    if math.isnan(low):
        return Estimate(mean.value, low, high, signature, "nothing is left to vary, so no interval")
    low = max(low, 0.0) if measure in NON_NEGATIVE_MEASURES else low
    high = min(high, 1.0) if measure == "marked-documents" else high
    return Estimate(mean.value, low, high, signature)


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
        pairs = (
            _same_prompt_pairs(first, second, key_of) if table.inclusion is None else []
        )  # pairs were not drawn as such
        name = f"{first.name} - {second.name}"
        columns = {"measure": f"{measure} difference", "label": ANY, options.by: name}
        fields = _estimate_signature_fields(sides, measure, ANY, replace(first, name=name, strata_name=""), options)
        paired = _paired_difference_values(table, pairs) if pairs else None
        if paired is not None and len(paired.human) >= MIN_TEXTS and np.ptp(paired.human) > 0:
            fields |= {"pairing": "prompts"}
            yield from _mean_findings_by_method(paired, columns, fields, f"{measure} difference", options)
        else:
            fields |= {"pairing": "none"}
            yield from _unpaired_difference_findings(table, first, second, columns, fields, options)


def _same_prompt_pairs(
    first: _SystemTexts, second: _SystemTexts, key_of: Sequence[str | None]
) -> list[tuple[int, int]]:
    """Positions of the texts of two systems for the same prompt, where each has exactly one."""
    sides = []
    for group in (first, second):
        places: dict[str, list[int]] = {}
        for place in group.places:
            key = key_of[place]
            if key is not None:
                places.setdefault(key, []).append(int(place))
        sides.append({key: positions[0] for key, positions in places.items() if len(positions) == 1})
    return [(sides[0][key], sides[1][key]) for key in sorted(set(sides[0]) & set(sides[1]))]


def _paired_difference_values(table: _LabelAmounts, pairs: Sequence[tuple[int, int]]) -> TextValues:
    """Differences of people's values and of judges' over prompts."""
    one, other = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    sides = [_human_and_judge_values(table, places) for places in (one, other)]
    human = sides[0][0] - sides[1][0]
    read = np.flatnonzero(np.isfinite(human))
    return TextValues(human[read], read, np.asarray(sides[0][1] - sides[1][1]))


def _human_and_judge_values(table: _LabelAmounts, places: Ints) -> tuple[Floats, Floats]:
    """People's values of some texts, NaN where nobody read, and judges' values."""
    values = table.text_values(places, None)
    human = np.full(len(places), math.nan)
    human[values.read] = values.human
    return human, values.judges


def _unpaired_difference_findings(
    table: _LabelAmounts,
    first: _SystemTexts,
    second: _SystemTexts,
    columns: Mapping[str, object],
    fields: Mapping[str, object],
    options: EstimateOptions,
) -> Iterator[Finding]:
    values = [table.text_values(group.places, None) for group in (first, second)]
    why = next((why for why in map(_insufficient_data_reason, values) if why), "")
    read, texts = (sum(len(side.human) for side in values), sum(side.text_count for side in values))
    row = {**columns, "read": read, "texts": texts}
    if why:
        yield Finding(
            {**row, "method": PEOPLE_ALONE},
            Estimate(math.nan, math.nan, math.nan, Signature.from_fields(**fields), why),
        )
        return
    for method in (PEOPLE_ALONE, *((WITH_JUDGES,) if options.judges else ())):
        means = [ppi_mean(side if method == WITH_JUDGES else side.without_judges_or_strata()) for side in values]
        spread: ErrorMoments = means[0].spread + -means[1].spread
        low, high = hall_interval(means[0].value - means[1].value, spread, options.confidence, signed=True)
        estimate = Estimate(means[0].value - means[1].value, low, high, Signature.from_fields(**fields, method=method))
        yield Finding({**row, "method": method}, estimate)
