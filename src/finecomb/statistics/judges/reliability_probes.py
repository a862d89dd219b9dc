"""Reliability probes of a judge: small experiments that annotate the same texts again with one change.

| probe | change | tests for |
|---|---|---|
| `repeat` | none | randomness of the judge |
| `paraphrase` | reworded instructions | sensitivity to wording |
| `labels` | order of labels | preference for the first label |
| `position` | position of the text in the prompt | sensitivity to position |
| `self` | none; texts of the judge's own model compared with others | self-preference |

The second annotation is stored under an annotator of its own, whose meta has `probe` (a name from the table) and
`probe_of` (the judge).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.frames import meta_entry, parse_json_object
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study
from finecomb.statistics.comparisons.system_comparison import pairing_keys
from finecomb.statistics.inference.mean_interval import hall_interval, mean_error_moments
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, study_and_resample_weights
from finecomb.statistics.judges.score_rules import typed_characters
from finecomb.statistics.judges.text_values import PeopleAndJudges, measure_texts, select_people_and_judges
from finecomb.statistics.measures.unit_grid import build_unit_grid, count_unit_votes

Floats = NDArray[np.float64]
PROBE_DESCRIPTIONS: Mapping[str, str] = {
    "repeat": "same text, annotated again",
    "paraphrase": "paraphrased prompt",
    "labels": "labels in a different order",
    "position": "text at a different position in the prompt",
    "self": "texts of its own model compared with others",
}
MIN_TEXTS = 8


def mean_paired_difference(base: Floats, variant: Floats, signature: Signature) -> Estimate:
    """Estimate the mean of variant minus base over the same texts, with an interval suited to few, skewed values."""
    difference = variant - base
    if len(difference) < MIN_TEXTS:
        why = f"at least {MIN_TEXTS} texts annotated both times are required, found {len(difference)}"
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    if np.ptp(difference) == 0:
        same = "all differences are 0" if difference[0] == 0 else "all differences are equal"
        return Estimate(float(difference[0]), math.nan, math.nan, signature, f"{same}, so there is no interval")
    value = float(difference.mean())
    return Estimate(value, *hall_interval(value, mean_error_moments(difference), signed=True), signature)


def probe_findings(
    study: Study, judge: str, tokens: str = "words", draws: int = 1000, seed: int = 0, only: str = ""
) -> list[Finding]:
    """Estimate the judge's agreement with itself and the change in its marks, for each probe or for the probe `only`.

    Rows: alpha on tokens, the share of characters with the same label among those marked both times, and the change in
    marks per text.
    """
    findings: list[Finding] = []
    for annotator, cell in study.annotators.select("id", "meta").iter_rows():
        facts = parse_json_object(cell)
        if facts.get("probe_of") != judge:
            continue
        probe = str(facts.get("probe", ""))
        if probe not in PROBE_DESCRIPTIONS:
            known = did_you_mean(probe, PROBE_DESCRIPTIONS)
            raise FinecombError(f"annotator {annotator!r}: unknown probe {probe!r}{known}")
        if only and probe != only:
            continue
        # The probe takes the role of the people that the judge is compared with.
        sides = select_people_and_judges(study, [judge], [annotator])
        fields = {"judge": judge, "probe": probe, "tokens": tokens, **sides.seen.fields, "who": None}
        amounts = measure_texts(sides, "count", tokens)
        base, variant = amounts.top[judge][-1], amounts.top[annotator][-1]
        both = np.isfinite(base) & np.isfinite(variant)
        signature = Signature.from_fields(statistic="marks per text, change", **fields, texts=int(both.sum()))
        estimates = {
            "alpha with itself": _self_agreement_alpha(sides, judge, tokens, draws, seed, fields),
            "same label": _same_label_share(sides, judge, annotator, draws, seed, fields),
            "marks per text, change": mean_paired_difference(base[both], variant[both], signature),
        }
        columns = {"probe": probe, "what": PROBE_DESCRIPTIONS[probe], "annotator": annotator}
        findings += [Finding({**columns, "measure": name}, estimate) for name, estimate in estimates.items()]
    return findings


def _same_label_share(
    sides: PeopleAndJudges, judge: str, probe: str, draws: int, seed: int, fields: Mapping[str, object]
) -> Estimate:
    """Estimate the share of characters with the same label among those marked in both annotations."""
    common = sides.documents_read_by(judge) & sides.documents_read_by(probe)
    texts = [text for text in sides.documents if text in common]
    marks: dict[tuple[str, str], list[tuple[int, int, str | None]]] = {}
    spans = sides.seen.study.spans.filter(pl.col("part") == TEXT_PART)
    for name, text, start, end, label in spans.select("annotator", "document", "start", "end", "label").iter_rows():
        marks.setdefault((name, text), []).append((start, end, label))
    sums = np.zeros((len(texts), 2))
    for place, text in enumerate(texts):
        first, second = (typed_characters(marks.get((name, text), ())) for name in (judge, probe))
        both = {character for character, _ in first} & {character for character, _ in second}
        sums[place] = len({character for character, _ in first & second}), len(both)
    weights = study_and_resample_weights(len(texts), draws, seed)
    values = ratio_or_nan(weights @ sums[:, 0], weights @ sums[:, 1])
    signature = Signature.from_fields(statistic="same label", **fields, texts=len(texts), draws=draws, seed=seed)
    return estimate_with_interval(float(values[0]), values[1:], signature, "nothing was marked both times")


def _self_agreement_alpha(
    sides: PeopleAndJudges, judge: str, tokens: str, draws: int, seed: int, fields: Mapping[str, object]
) -> Estimate:
    """Estimate alpha on tokens between two annotations of a judge, over the texts annotated both times."""
    study = sides.seen.study
    grid = build_unit_grid(study, "token", tokens)
    sides_marked = []
    for name in (judge, *sides.people):
        reading = count_unit_votes(study.filter_annotations(pl.col("annotator") == name), grid, None)
        sides_marked.append((np.minimum(reading.marked[0], 1).astype(np.float64), reading.readers > 0))
    (first, read), (second, read_again) = sides_marked[:2]
    both = read & read_again
    apart, marked, units = (
        grid.sum_per_document(column)[both]
        for column in (np.abs(first - second), (first + second) / 2, np.ones(len(grid)))
    )
    weights = study_and_resample_weights(int(both.sum()), draws, seed)
    share = ratio_or_nan(weights @ marked, weights @ units)
    values = 1 - ratio_or_nan(ratio_or_nan(weights @ apart, weights @ units), 2 * share * (1 - share))
    signature = Signature.from_fields(
        statistic="alpha with itself", **fields, texts=int(both.sum()), draws=draws, seed=seed
    )
    return estimate_with_interval(float(values[0]), values[1:], signature, "neither annotation has marks")


OWN_SYSTEM_KEY = "own_system"
"""Key in an annotator's meta that holds the `model` value of texts written by the judge's own model."""


def find_own_system(study: Study, judge: str, by: str = "model") -> str:
    """Return the system whose texts the judge's own model wrote, or "" if unknown.

    The meta of the judge names the system. Otherwise, it is the judge's own model, if that model wrote texts.
    """
    facts = parse_json_object(dict(study.annotators.select("id", "meta").iter_rows()).get(judge))
    if facts.get(OWN_SYSTEM_KEY):
        return str(facts[OWN_SYSTEM_KEY])
    systems = set(study.documents.select(meta_entry(by).fill_null("").alias(by))[by])
    model = str(facts.get("model") or "")
    return model if model and model in systems else ""


def self_preference_finding(sides: PeopleAndJudges, judge: str, system: str, by: str = "model") -> Finding:
    """Estimate the judge's excess marks per text on its own model's texts, minus its excess marks on other texts.

    Excess marks are the judge's marks minus people's; a difference below 0 means that the judge favours its own model.
    People's marks measure the quality of the texts, so that a good model is not mistaken for a favoured one. Texts that
    share a prompt are compared with each other.
    """
    systems = sides.seen.study.documents.select(meta_entry(by).fill_null("").alias(by))[by].to_list()
    if system not in systems:
        raise FinecombError(f"no text has {by} {system!r}{did_you_mean(system, sorted(set(systems)))}")
    amounts = measure_texts(sides, "count")
    people = amounts.people_means(sides.people, amounts.labels[-1])[0]
    # `any` is the last label.
    excess = amounts.top[judge][-1] - people
    is_read, is_own = np.isfinite(excess), np.array([name == system for name in systems])
    columns = {
        "probe": "self",
        "what": PROBE_DESCRIPTIONS["self"],
        "annotator": judge,
        "measure": "marks per text beyond people's",
    }
    fields = {"statistic": "self-preference", "judge": judge, "system": system, **sides.seen.fields}
    keys = dict(pairing_keys(sides.seen, by).iter_rows())
    prompts: dict[str, tuple[list[float], list[float]]] = {}
    for place in np.flatnonzero(is_read):
        key = keys.get(sides.documents[place])
        if key is not None:
            prompts.setdefault(key, ([], []))[0 if is_own[place] else 1].append(float(excess[place]))
    pairs = np.array(
        [
            np.mean(own_excess) - np.mean(other_excess)
            for own_excess, other_excess in prompts.values()
            if own_excess and other_excess
        ]
    )
    if len(pairs) >= MIN_TEXTS:
        signature = Signature.from_fields(**fields, pairing="prompts", prompts=len(pairs))
        return Finding(columns, mean_paired_difference(np.zeros(len(pairs)), pairs, signature))
    signature = Signature.from_fields(**fields, pairing="none")
    groups = [excess[is_read & is_own], excess[is_read & ~is_own]]
    if min(len(group) for group in groups) < MIN_TEXTS:
        why = f"people and judge must annotate at least {MIN_TEXTS} texts of {system} and {MIN_TEXTS} of others"
        return Finding(columns, Estimate(math.nan, math.nan, math.nan, signature, why))
    value = float(groups[0].mean() - groups[1].mean())
    spread = mean_error_moments(groups[0]) + -mean_error_moments(groups[1])
    return Finding(columns, Estimate(value, *hall_interval(value, spread, signed=True), signature))
