"""Reliability of a judge: small designed experiments, each a second reading of the same texts with one thing changed.

| probe | what is changed | what it shows |
|---|---|---|
| `repeat` | nothing | chance in the judge itself |
| `paraphrase` | the instructions in other words | whether the wording decides |
| `labels` | the order of labels | whether the first label is favoured |
| `position` | where the text stands in the prompt | whether the place decides |
| `self` | nothing; texts by the judge's own model against others | whether it spares its own |

A probe's reading is an annotator of its own whose meta says `probe` (the name above) and `probe_of` (the judge).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import meta_entry, parse_json_object
from finecomb.core.span import TEXT
from finecomb.core.study import Study
from finecomb.statistics.comparisons.system_comparison import pairing_keys
from finecomb.statistics.inference.mean_interval import hall_interval, mean_error_moments
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, study_and_resample_weights
from finecomb.statistics.judges.score_rules import typed_characters
from finecomb.statistics.judges.text_values import PeopleAndJudges, measure_texts, select_people_and_judges
from finecomb.statistics.measures.unit_grid import build_grid, count_unit_votes

Floats = NDArray[np.float64]
PROBES: Mapping[str, str] = {
    "repeat": "same text, read again",
    "paraphrase": "prompt in other words",
    "labels": "labels in another order",
    "position": "text in another place of the prompt",
    "self": "texts of its own model against others",
}
MIN_TEXTS = 8


@dataclass(frozen=True, slots=True)
class ProbeAnnotator:
    """One annotator that is a probe of a judge."""

    annotator: str
    probe: str


def find_probe_annotators(study: Study, judge: str) -> list[ProbeAnnotator]:
    """Every probe of a judge in a study."""
    readings = []
    for name, cell in study.annotators.select("id", "meta").iter_rows():
        facts = parse_json_object(cell)
        if facts.get("probe_of") == judge:
            probe = str(facts.get("probe", ""))
            if probe not in PROBES:
                raise FinecombError(f"annotator {name!r}: no probe is called {probe!r}{did_you_mean(probe, PROBES)}")
            readings.append(ProbeAnnotator(name, probe))
    return readings


def paired_effect(base: Floats, variant: Floats, signature: Signature) -> Estimate:
    """Mean of variant less base over the same texts, with the interval for few and skewed values."""
    difference = variant - base
    if len(difference) < MIN_TEXTS:
        why = f"{len(difference)} texts were read both ways; {MIN_TEXTS} are needed"
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    if np.ptp(difference) == 0:
        same = "no text changed" if difference[0] == 0 else "every text changed alike"
        return Estimate(float(difference[0]), math.nan, math.nan, signature, f"{same}, so no interval")
    value = float(difference.mean())
    return Estimate(value, *hall_interval(value, mean_error_moments(difference), signed=True), signature)


def probe_findings(
    study: Study, judge: str, tokens: str = "words", draws: int = 1000, seed: int = 0, only: str = ""
) -> list[Finding]:
    """Of every probe, or of one by name: how far the judge agrees with itself, and what changes.

    Rows: alpha of tokens, the share of characters marked both times that have the same label, and the change in marks
    per text.
    """
    findings: list[Finding] = []
    for reading in find_probe_annotators(study, judge):
        if only and reading.probe != only:
            continue
        sides = select_people_and_judges(study, [judge], [reading.annotator])
        fields = {"judge": judge, "probe": reading.probe, "tokens": tokens, **sides.seen.fields, "who": None}
        alpha = _self_alpha(sides, judge, tokens, draws, seed, fields)
        columns = {"probe": reading.probe, "what": PROBES[reading.probe], "annotator": reading.annotator}
        findings.append(Finding({**columns, "measure": "alpha with itself"}, alpha))
        same = _same_label_share(sides, judge, reading.annotator, draws, seed, fields)
        findings.append(Finding({**columns, "measure": "same label"}, same))
        amounts = measure_texts(sides, "count", tokens)
        base, variant = amounts.top[judge][-1], amounts.top[reading.annotator][-1]
        both = np.isfinite(base) & np.isfinite(variant)
        signature = Signature.from_fields(statistic="marks per text, change", **fields, texts=int(both.sum()))
        change = paired_effect(base[both], variant[both], signature)
        findings.append(Finding({**columns, "measure": "marks per text, change"}, change))
    return findings


def _same_label_share(
    sides: PeopleAndJudges, judge: str, probe: str, draws: int, seed: int, fields: Mapping[str, object]
) -> Estimate:
    """Of the characters that both readings marked, the share to which both gave the same label."""
    marked = {name: _typed_characters_by_text(sides, name) for name in (judge, probe)}
    texts = [text for text in sides.documents if all(text in marked[name] for name in (judge, probe))]
    sums = np.zeros((len(texts), 2))
    for place, text in enumerate(texts):
        one, other = marked[judge][text], marked[probe][text]
        both = {character for character, _ in one} & {character for character, _ in other}
        sums[place] = len({character for character, _ in one & other}), len(both)
    weights = study_and_resample_weights(len(texts), draws, seed)
    values = ratio_or_nan(weights @ sums[:, 0], weights @ sums[:, 1])
    signature = Signature.from_fields(statistic="same label", **fields, texts=len(texts), draws=draws, seed=seed)
    return estimate_with_interval(float(values[0]), values[1:], signature, "nothing was marked both times")


def _typed_characters_by_text(sides: PeopleAndJudges, name: str) -> dict[str, frozenset[tuple[int, Any]]]:
    study = sides.seen.study
    spans: dict[str, list[tuple[int, int, str | None]]] = {text: [] for text in sides.documents_read_by(name)}
    rows = study.spans.filter((pl.col("part") == TEXT) & (pl.col("annotator") == name))
    for document, start, end, label in rows.select("document", "start", "end", "label").iter_rows():
        spans[document].append((start, end, label))
    return {text: typed_characters(marks) for text, marks in spans.items()}


def _self_alpha(
    sides: PeopleAndJudges, judge: str, tokens: str, draws: int, seed: int, fields: Mapping[str, object]
) -> Estimate:
    """Alpha of two readings on tokens marked or not, over the texts read both ways."""
    study = sides.seen.study
    grid = build_grid(study, "token", tokens)
    sides_marked = []
    for name in (judge, *sides.people):
        reading = count_unit_votes(study.filter_annotations(pl.col("annotator") == name), grid, None)
        sides_marked.append((np.minimum(reading.marked[0], 1).astype(np.float64), reading.readers > 0))
    (one, read), (other, read_again) = sides_marked[:2]
    both = read & read_again
    apart, marked, units = (
        grid.sum_per_document(column)[both] for column in (np.abs(one - other), (one + other) / 2, np.ones(len(grid)))
    )
    weights = study_and_resample_weights(int(both.sum()), draws, seed)
    share = ratio_or_nan(weights @ marked, weights @ units)
    values = 1 - ratio_or_nan(ratio_or_nan(weights @ apart, weights @ units), 2 * share * (1 - share))
    signature = Signature.from_fields(
        statistic="alpha with itself", **fields, texts=int(both.sum()), draws=draws, seed=seed
    )
    return estimate_with_interval(float(values[0]), values[1:], signature, "neither reading marked anything")


OWN_SYSTEM_KEY = "own_system"
"""Name in an annotator's meta: the value of `model` of the texts that the judge's own model wrote."""


def find_own_system(study: Study, judge: str, by: str = "model") -> str:
    """The system that is the judge's own model: what its meta says, or the model it runs on where that wrote texts."""
    facts = parse_json_object(dict(study.annotators.select("id", "meta").iter_rows()).get(judge))
    if facts.get(OWN_SYSTEM_KEY):
        return str(facts[OWN_SYSTEM_KEY])
    systems = set(study.documents.select(meta_entry(by).fill_null("").alias(by))[by])
    model = str(facts.get("model") or "")
    return model if model and model in systems else ""


def self_preference_finding(sides: PeopleAndJudges, judge: str, system: str, by: str = "model") -> Finding:
    """Marks of the judge less people's, per text, on texts of its own model, less the same on others; spared below 0.

    People's marks stand for how bad the texts are, so that a good model is not taken for a favoured one. Where texts
    share prompts, those of one prompt are compared with each other.
    """
    systems = sides.seen.study.documents.select(meta_entry(by).fill_null("").alias(by))[by].to_list()
    if system not in systems:
        raise FinecombError(f"no text has {by} {system!r}{did_you_mean(system, sorted(set(systems)))}")
    amounts = measure_texts(sides, "count")
    people = amounts.people_means(sides.people, amounts.labels[-1])[0]
    excess = amounts.top[judge][-1] - people
    is_read, is_own = np.isfinite(excess), np.array([name == system for name in systems])
    columns = {"probe": "self", "what": PROBES["self"], "annotator": judge, "measure": "marks per text beyond people's"}
    fields = {"statistic": "self-preference", "judge": judge, "system": system, **sides.seen.fields}
    pairs = _prompt_differences(sides, by, excess, is_read, is_own)
    if len(pairs) >= MIN_TEXTS:
        signature = Signature.from_fields(**fields, pairing="prompts", prompts=len(pairs))
        return Finding(columns, paired_effect(np.zeros(len(pairs)), pairs, signature))
    signature = Signature.from_fields(**fields, pairing="none")
    groups = [excess[is_read & is_own], excess[is_read & ~is_own]]
    if min(len(group) for group in groups) < MIN_TEXTS:
        why = f"{MIN_TEXTS} texts of {system} and {MIN_TEXTS} of others must be read by people and judge"
        return Finding(columns, Estimate(math.nan, math.nan, math.nan, signature, why))
    value = float(groups[0].mean() - groups[1].mean())
    spread = mean_error_moments(groups[0]) + -mean_error_moments(groups[1])
    return Finding(columns, Estimate(value, *hall_interval(value, spread, signed=True), signature))


def _prompt_differences(
    sides: PeopleAndJudges, by: str, excess: Floats, is_read: NDArray[np.bool_], is_own: NDArray[np.bool_]
) -> Floats:
    """The excess on the judge's own texts less that on others', one number for each prompt that has both."""
    keys = dict(pairing_keys(sides.seen, by).iter_rows())
    prompts: dict[str, tuple[list[float], list[float]]] = {}
    for place in np.flatnonzero(is_read):
        key = keys.get(sides.documents[place])
        if key is not None:
            prompts.setdefault(key, ([], []))[0 if is_own[place] else 1].append(float(excess[place]))
    return np.array([np.mean(mine) - np.mean(others) for mine, others in prompts.values() if mine and others])
