"""Conformance checks of statistics and agreement coefficients: undefined cases, seeds and coverage of intervals."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from finecomb.api.statistics import agree, measure
from finecomb.api.studies import demo, simulate
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator
from finecomb.core.results import Estimate, Findings
from finecomb.core.study import Study, StudyItem

_Compute = Callable[..., Findings]
_NO_ID_COLUMNS = ("annotator", "pair")


def check_statistic(name: str, study: Study | None = None, *, is_sampled: bool = False, **options: Any) -> None:
    """Check a statistic of `fc.measure`: undefined cases, seeds, and independence of the order of records.

    Parameters
    ----------
    name : str
        Name of the statistic, as for the parameter `measure`.
    study : Study, optional
        Study on which the statistic is defined (default: the demo study).
    is_sampled : bool, default False
        True if the value is itself estimated by random sampling, so that the seed may change it.
    **options
        Further parameters of `fc.measure`.

    Raises
    ------
    AssertionError
        If an undefined value has no reason, a study without marks or with one text causes an error, the same seed gives
        another result, the seed changes a value, or the order of texts and annotations does.

    Examples
    --------
    >>> check_statistic("coverage")
    """
    compute: _Compute = functools.partial(measure, measure=name, **{"draws": 100, **options})
    _check_findings(name, compute, study or demo(), is_sampled)


def check_coefficient(name: str, study: Study | None = None, *, is_sampled: bool = False, **options: Any) -> None:
    """Check a coefficient of `fc.agree`, as :func:`check_statistic` does, and that it measures agreement.

    Parameters
    ----------
    name : str
        Name of the coefficient, as for the parameter `measure`.
    study : Study, optional
        Study on which the coefficient is defined (default: the demo study with three annotators).
    is_sampled : bool, default False
        True if the value is itself estimated by random sampling, so that the seed may change it.
    **options
        Further parameters of `fc.agree`.

    Raises
    ------
    AssertionError
        If a rule of :func:`check_statistic` is broken, names of annotators change a value, or identical annotations
        have lower agreement than those of the study.

    Examples
    --------
    >>> check_coefficient("alpha")
    """
    study = study or demo(readers=3)
    compute: _Compute = functools.partial(agree, measure=name, **{"draws": 50, **options})
    _check_findings(name, compute, study, is_sampled)
    if not is_sampled:  # otherwise the order of annotators changes the random numbers
        renamed = Study.from_items(_rename_annotators(study.items()))
        _assert_same_values(f"{name}: names of annotators", compute(study, draws=0), compute(renamed, draws=0))
    values, copied = (_overall_value(compute(part, draws=0)) for part in (study, _copy_first_annotator(study)))
    is_lower = copied < values - 1e-9  # False if one of them is NaN
    assert not is_lower, f"{name}: identical annotations have agreement {copied}, the study has {values}"


def _check_findings(name: str, compute: _Compute, study: Study, is_sampled: bool) -> None:
    results = compute(study)
    assert len(results), f"{name}: no rows for the study"
    assert any(not math.isnan(row.estimate.value) for row in results), f"{name}: undefined for the whole study"
    for row in results:
        _check_estimate(f"{name}, row {dict(row.columns)}", row.estimate)
        fields = dict(row.estimate.signature.fields)
        assert {"statistic", "version"} <= set(fields), f"{name}: the signature lacks `statistic` or `version`"
    _assert_same(f"{name}: different results for the same seed", results, compute(study))
    if not is_sampled:
        _assert_same_values(f"{name}: the seed", results, compute(study, seed=1))
    shuffled = replace(study, documents=study.documents.reverse(), annotations=study.annotations.reverse())
    _assert_same_values(f"{name}: the order of texts and annotations", results, compute(shuffled))
    one_text = _select_texts(study, study.documents["id"][:1].to_list())
    no_marks = replace(study, marks=study.marks.clear())
    no_work = _select_texts(study, [])
    for case, part in {"one text": one_text, "no marks": no_marks, "no annotations": no_work}.items():
        try:
            rows = compute(part)
        except FinecombError:
            continue  # rejected with a message for the user
        except Exception as error:
            raise AssertionError(f"{name}: a study with {case} raises {type(error).__name__}: {error}") from error
        for row in rows:
            _check_estimate(f"{name} with {case}", row.estimate)


def _check_estimate(where: str, estimate: Estimate) -> None:
    value, low, high = estimate.value, estimate.low, estimate.high
    assert not math.isinf(value), f"{where}: the value is infinite; return NaN with a reason"
    assert not math.isnan(value) or estimate.why, f"{where}: an undefined value needs a reason in `why`"
    assert math.isnan(low) == math.isnan(high), f"{where}: only one end of the interval is defined"
    assert math.isnan(low) or low <= high, f"{where}: the interval [{low}, {high}] is reversed"
    assert math.isnan(low) or not math.isnan(value), (
        f"{where}: the value is undefined but has an interval; set both ends to NaN"
    )


def _rows(results: Findings) -> dict[tuple[str, ...], Estimate]:
    """Return estimates by the columns of their row, without rows that contain an annotator's ID."""
    return {
        tuple(f"{column}={value}" for column, value in sorted(row.columns.items())): row.estimate
        for row in results
        if not any(column in row.columns for column in _NO_ID_COLUMNS)
    }


def _assert_same(message: str, results: Findings, others: Findings) -> None:
    first, second = (
        [(row.columns, repr(row.estimate.value), repr(row.estimate.low), repr(row.estimate.high)) for row in part]
        for part in (results, others)
    )
    assert first == second, message


def _assert_same_values(what: str, results: Findings, others: Findings) -> None:
    first, second = _rows(results), _rows(others)
    assert set(first) == set(second), f"{what} must not change the rows"
    for key, estimate in first.items():
        same = np.isclose(estimate.value, second[key].value, rtol=1e-9, atol=1e-12, equal_nan=True)
        assert same, f"{what} must not change a value, found {estimate.value} and {second[key].value} for {key}"


def _overall_value(results: Findings) -> float:
    """Return the mean of the values computed over all labels together."""
    values = [row.estimate.value for row in results if row.columns.get("label", "any") == "any"]
    return float(np.mean(values)) if values else math.nan


def _rename_annotators(items: Iterable[StudyItem]) -> Iterator[StudyItem]:
    """Yield records with the IDs of annotators reversed, which changes their order."""
    for item in items:
        if isinstance(item, Annotation):
            yield item.model_copy(update={"annotator": item.annotator[::-1]})
        else:
            yield item.model_copy(update={"id": item.id[::-1]}) if isinstance(item, Annotator) else item


def _copy_first_annotator(study: Study) -> Study:
    """Return a study in which all annotators of a text have copies of its first annotation."""
    people = [person.id for person in study.iter_annotators() if person.kind == "human"][:3]
    items: list[StudyItem] = [item for item in study.items() if not isinstance(item, Annotation)]
    for document in study.documents["id"]:
        own = next((row for row in study.annotations_on(document) if row.annotator in people), None)
        for person in people if own else ():
            marks = tuple(mark.model_copy(update={"id": f"{mark.id}-{person}"}) for mark in own.marks) if own else ()
            update = {"id": f"{document}-{person}", "annotator": person, "marks": marks}
            items += [own.model_copy(update=update)] if own else []
    return Study.from_items(items)


def _select_texts(study: Study, ids: Sequence[str]) -> Study:
    part = study.filter_annotations(pl.col("document").is_in(list(ids)))
    return part.with_documents(study.documents.filter(pl.col("id").is_in(list(ids))))


def check_interval_coverage(
    name: str,
    command: Literal["measure", "agree"] = "measure",
    population: Study | None = None,
    *,
    texts: int = 30,
    samples: int = 100,
    min_share: float = 0.88,
    **options: Any,
) -> float:
    """Check that 95% intervals contain the value of the population that the texts were drawn from.

    Parameters
    ----------
    name : str
        Name of the statistic or coefficient.
    command : {"measure", "agree"}, default "measure"
        Function that computes it.
    population : Study, optional
        All texts; its value counts as true (default: 320 simulated texts with three annotators).
    texts : int, default 30
        Number of texts per sample.
    samples : int, default 100
        Number of samples. The share has a standard error of 2 percentage points with 100 samples.
    min_share : float, default 0.88
        Minimum share of intervals that contain the value.
    **options
        Further parameters of the function.

    Returns
    -------
    float
        Share of intervals for all labels together that contain the value.

    Raises
    ------
    AssertionError
        If the share is lower than `min_share`, or fewer than half of the samples have an interval.
    """
    population = population or _simulate_population()
    functions: dict[str, _Compute] = {"measure": measure, "agree": agree}
    compute = functools.partial(functions[command], measure=name, **options)
    true_values = {key: estimate.value for key, estimate in _rows(compute(population, draws=0)).items()}
    key = next(key for key in true_values if "label=any" in key or not any("label=" in part for part in key))
    ids, rng, hits = population.documents["id"].to_list(), np.random.default_rng(0), []
    for seed in range(samples):
        drawn = _select_texts(population, [ids[position] for position in rng.permutation(len(ids))[:texts]])
        estimate = _rows(compute(drawn, seed=seed)).get(key)
        if estimate is not None and not math.isnan(estimate.low):
            hits.append(estimate.low <= true_values[key] <= estimate.high)
    assert len(hits) >= samples / 2, f"{name}: only {len(hits)} of {samples} samples have an interval"
    share = float(np.mean(hits))
    assert share >= min_share, (
        f"{name}: {share:.0%} of 95% intervals contain the value; at least {min_share:.0%} is required"
    )
    return share


@functools.cache
def _simulate_population() -> Study:
    """Simulate annotators on copies of the demo texts, with errors planted at random in each copy."""
    texts = demo(readers=2)
    copies = [  # without meta, because statistics are computed by model if texts name one
        item.model_copy(update={"id": f"{item.id}-{number}", "meta": {}})
        for number in range(20)
        for item in texts.iter_documents()
    ]
    study = Study.from_items([texts.settings, *texts.protocols.values(), *copies])
    return simulate(study, annotators=3).study
