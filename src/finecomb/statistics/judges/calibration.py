"""May a judge stand in for people? Everything that answers it, in one value: agreement, test, bias, probes, verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, flag_style
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import parse_json_object
from finecomb.core.span import TEXT
from finecomb.core.study import Study
from finecomb.statistics.gold.disagreements import label_confusion_rows, pairing_type_table
from finecomb.statistics.gold.scores import GOLD_COLUMN, MATCHED_COLUMN, PREDICTED_COLUMN, Scores, score
from finecomb.statistics.inference.resampling import estimate_from_sums, ratio_or_nan
from finecomb.statistics.judges.alt_test import MIN_CLUSTERS, AltTest, alt_test
from finecomb.statistics.judges.estimates import estimate_means
from finecomb.statistics.judges.judge_agreement import LESS_AGREEMENT, NO_LESS_AGREEMENT, judge_agreement
from finecomb.statistics.judges.judge_gamma import judge_gamma
from finecomb.statistics.judges.mark_comparison import (
    build_mark_table,
    cost_per_confirmed_error_rows,
    found_mark_shares,
    label_bias,
    severity_bias,
)
from finecomb.statistics.judges.reliability_probes import find_own_system, probe_findings, self_preference_finding
from finecomb.statistics.judges.score_rules import marked_characters, set_f1, typed_characters
from finecomb.statistics.judges.text_values import PeopleAndJudges, select_people_and_judges, training_documents
from finecomb.statistics.judges.validity import JudgeBinding, JudgeContract, Verdict, build_judge_binding
from finecomb.statistics.measures.unit_grid import Level
from finecomb.statistics.selection.view import ANY, Filters


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """How a judge is compared with people; set before looking."""

    epsilon: float = 0.15
    """How much worse than a person the judge may be in the alternative annotator test."""
    margin: float = 0.1
    """How much lower its agreement may be and still count as no less than people's."""
    score: str = ""
    """Score rule of the test; without one `typed-f1` for marks, `accuracy` for answers."""
    question: str = ""
    """Compare answers to this question instead of marks."""
    levels: tuple[Level, ...] = ("token", "sentence", "document")
    people: tuple[str, ...] = ()
    gold: str = ""
    """Annotator to score against; without one, the only annotator of kind gold, where there is one."""
    by: str = "model"
    tokens: str = "words"
    draws: int = 1000
    seed: int = 0
    gamma: bool = True
    """Whether gamma is computed too, of at most 40 texts."""
    own: str = ""
    """The system that is the judge's own model; without one, what the judge's annotator says of itself."""


@dataclass(frozen=True)
class Calibration:
    """What was found out about one judge."""

    judge: str
    verdict: Verdict
    labels: tuple[str, ...]
    """Labels for which its agreement is no less than people's."""
    paragraph: str
    """The answer in plain words."""
    test: AltTest
    agreement: tuple[Finding, ...]
    bias: tuple[Finding, ...]
    found: tuple[Finding, ...]
    """Share of people's marks that it finds, and overlap with gold where there is gold."""
    probes: tuple[Finding, ...]
    costs: tuple[dict[str, object], ...]
    scores: Scores | None
    """Recall and precision against gold, where there is gold."""
    texts: int
    people: tuple[str, ...]
    systems: tuple[str, ...]
    binding: JudgeBinding
    notes: tuple[str, ...]
    signature: Signature
    worth: tuple[Finding, ...] = ()
    """Marks per text by people alone and with the judge, and what the judge is worth in texts that people read."""
    by: str = "model"
    """Document meta that names systems."""

    def build_contract(self, made: datetime, days: int = 30) -> JudgeContract:
        """What the judge may be used for from now on."""
        return JudgeContract(
            binding=self.binding, verdict=self.verdict, labels=self.labels, systems=self.systems, texts=self.texts,
            people=len(self.people), epsilon=self.test.epsilon, winning_rate=self.test.winning_rate,
            agreement=_value_or_zero(find_alpha_estimate(self.agreement, "judge")), made=made, days=days,
            paragraph=self.paragraph,
            signature=str(self.signature), by=self.by,
        )  # fmt: skip

    def confusion(self) -> list[dict[str, object]]:
        """Gold labels in rows, the judge's in columns; nothing without gold."""
        return label_confusion_rows(self.scores) if self.scores else []

    def pairing_type_table(self) -> list[dict[str, object]]:
        """How many marks are right, wrong in boundary or label, missed and extra; nothing without gold."""
        return pairing_type_table(self.scores) if self.scores else []


def _value_or_zero(estimate: Estimate | None) -> float:
    return estimate.value if estimate is not None and math.isfinite(estimate.value) else 0.0


def find_alpha_estimate(agreement: Sequence[Finding], who: str, label: str = ANY) -> Estimate | None:
    """Alpha of people, judge or their difference at the first level."""
    wanted = {"measure": "alpha", "who": who, "label": label}
    return next((finding.estimate for finding in agreement if wanted.items() <= dict(finding.columns).items()), None)


def calibrate(
    study: Study, judge: str, options: CalibrationOptions | None = None, filters: Filters | None = None
) -> Calibration:
    """Compare a judge, any annotator of a study, with the people who read the same texts.

    Refused with one person only, without texts that two people and the judge have read, with fewer than 8 of them, and
    on texts that the judge was fitted on.
    """
    options = options or CalibrationOptions()
    everything = select_people_and_judges(study, [judge], options.people, filters)
    sides = _select_shared_texts(everything, judge)
    _reject_training_texts(study, sides, judge)
    test = _run_alt_test(sides, judge, options)
    agreement = () if options.question else tuple(_agreement_findings(sides, judge, options))
    answer, held = decide_verdict(test, agreement)
    calibration = Calibration(
        judge, answer, held, "", test, agreement, (), (),
        tuple(_probe_and_preference_findings(study, everything, judge, options)), (), None,
        len(sides.documents), sides.people,
        tuple(sorted({row[0] for row in sides.meta_rows([options.by])})) if sides.has_meta(options.by) else (),
        read_judge_binding(study, judge, sides.seen.protocol.id if sides.seen.protocol else ""), _alt_test_notes(test),
        test.rate.signature, by=options.by,
    )  # fmt: skip
    if not options.question:
        calibration = _add_mark_results(calibration, study, sides, options, filters)
    return replace(calibration, paragraph=write_verdict_paragraph(calibration))


def _add_mark_results(
    calibration: Calibration,
    study: Study,
    sides: PeopleAndJudges,
    options: CalibrationOptions,
    filters: Filters | None,
) -> Calibration:
    """The calibration with all that is about marks."""
    judge, draws, seed = calibration.judge, options.draws, options.seed
    marks = build_mark_table(sides, judge, options.by)
    labels = tuple(name for name in sides.seen.categories if name != ANY)
    scores = _scores_against_gold(study, judge, options)
    worth, why = _judge_worth_findings(study, judge, options, filters)
    return replace(
        calibration,
        bias=(*label_bias(marks, labels, draws, seed), *severity_bias(marks, draws, seed)),
        found=(*found_mark_shares(marks, draws, seed), *_gold_iou_findings(study, scores, options)),
        costs=tuple(cost_per_confirmed_error_rows(sides, marks)),
        scores=scores,
        worth=worth,
        notes=(*calibration.notes, *why),
    )


def _judge_worth_findings(
    study: Study, judge: str, options: CalibrationOptions, filters: Filters | None
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """What the judge adds to people's readings, or why that cannot be had."""
    try:
        return estimate_means(
            study, [judge], people=options.people, filters=filters, tokens=options.tokens
        ).findings, ()
    except FinecombError as error:
        return (), (f"what the judge is worth cannot be told: {error.text(flag_style)}",)


def _probe_and_preference_findings(
    study: Study, sides: PeopleAndJudges, judge: str, options: CalibrationOptions
) -> Iterator[Finding]:
    """Every probe in the study, and whether the judge spares texts of its own model."""
    yield from probe_findings(study, judge, options.tokens, options.draws, options.seed)
    if system := options.own or find_own_system(study, judge, options.by):
        yield self_preference_finding(sides, judge, system, options.by)


# --- what is compared --------------------------------------------------------------------------------------------


def _select_shared_texts(sides: PeopleAndJudges, judge: str) -> PeopleAndJudges:
    """Only the texts that the judge and two people have read."""
    if len(sides.people) < 2:
        raise FinecombError("one person only: a judge is compared with how far people agree, which needs two or more")
    people = sides.seen.study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    readers = people.group_by("document").agg(pl.col("annotator").n_unique().alias("n")).filter(pl.col("n") >= 2)
    common = sorted(set(readers["document"]) & sides.documents_read_by(judge))
    if not common:
        raise FinecombError(f"{judge} and two people have no text in common, so nothing can be compared")
    if len(common) < MIN_CLUSTERS:
        what = f"{judge} and two people have {len(common)} texts in common"
        raise FinecombError(f"{what}; fewer than {MIN_CLUSTERS} say nothing: let them read more of the same texts")
    work = sides.seen.restrict_to_documents(pl.Series(common))
    present = set(work.study.annotations["annotator"])
    return PeopleAndJudges(work, tuple(name for name in sides.people if name in present), sides.judges)


def _reject_training_texts(study: Study, sides: PeopleAndJudges, judge: str) -> None:
    fitted = training_documents(study, judge) & set(sides.documents)
    if fitted:
        what = f"{judge} was fitted on {len(fitted)} of the {len(sides.documents)} texts it would be judged by"
        raise FinecombError(f"{what} ({min(fitted)!r}); take texts it has not seen")


def _agreement_findings(sides: PeopleAndJudges, judge: str, options: CalibrationOptions) -> list[Finding]:
    rows = judge_agreement(sides, judge, options.levels, options.margin, options.tokens, options.draws, options.seed)
    return rows + (judge_gamma(sides, judge, options.margin, options.draws, options.seed) if options.gamma else [])


def _run_alt_test(sides: PeopleAndJudges, judge: str, options: CalibrationOptions) -> AltTest:
    """The alternative annotator test on answers or marks; a text is one item."""
    if options.question:
        answers = _answers_by_annotator(sides, options.question)
        rule: Any = options.score or "accuracy"
    else:
        typed = (options.score or "typed-f1") == "typed-f1"
        answers, rule = _marked_characters_by_annotator(sides, typed), mean_set_f1
        rule.__name__ = options.score or "typed-f1"
    people = {name: answers.get(name, {}) for name in sides.people}
    return alt_test(
        people, answers.get(judge, {}), rule, options.epsilon, draws=options.draws, seed=options.seed,
        min_items=MIN_CLUSTERS,
    )  # fmt: skip


def mean_set_f1(answer: frozenset[Any], others: Sequence[frozenset[Any]]) -> float:
    """Mean over the others of the F1 of what is marked, both sides given as sets."""
    return sum(set_f1(answer, other) for other in others) / len(others)


def _marked_characters_by_annotator(sides: PeopleAndJudges, typed: bool) -> dict[str, dict[str, frozenset[Any]]]:
    """What everybody marked on every text that they read, as sets of characters; an empty one counts."""
    study = sides.seen.study
    spans: dict[tuple[str, str], list[tuple[int, int, str | None]]] = {
        row: [] for row in study.annotations.select("annotator", "document").iter_rows()
    }
    located = study.spans.filter(pl.col("part") == TEXT)
    for name, document, label, start, end in located.select(
        "annotator", "document", "label", "start", "end"
    ).iter_rows():
        spans[name, document].append((start, end, label))
    marks: dict[str, dict[str, frozenset[Any]]] = {}
    for (name, document), placed in spans.items():
        marks.setdefault(name, {})[document] = typed_characters(placed) if typed else marked_characters(placed)
    return marks


def _answers_by_annotator(sides: PeopleAndJudges, question: str) -> dict[str, dict[str, Any]]:
    rows = sides.seen.study.annotations.select("annotator", "document", "answers")
    given: dict[str, dict[str, Any]] = {}
    for name, document, cell in rows.iter_rows():
        answer = parse_json_object(cell).get(question)
        if answer is not None:
            given.setdefault(name, {})[document] = answer
    if not given:
        raise FinecombError(f"nobody answered {question!r} about the whole text")
    return given


def _scores_against_gold(study: Study, judge: str, options: CalibrationOptions) -> Scores | None:
    """Against gold, where the study has it."""
    gold = options.gold
    if not gold:
        golden = study.annotators.filter(pl.col("kind") == "gold")["id"].to_list()
        present = [name for name in golden if name in set(study.annotations["annotator"])]
        gold = present[0] if len(present) == 1 else ""
    if not gold:
        return None
    return score(
        study, match="optimal", gold_annotator=gold, judges=[judge], unread="leave-out", draws=options.draws,
        seed=options.seed,
    )  # fmt: skip


def _gold_iou_findings(study: Study, scores: Scores | None, options: CalibrationOptions) -> list[Finding]:
    """Characters that judge and gold both marked, of those that either did (IoU)."""
    if scores is None:
        return []
    compared = score(
        study, match="char", gold_annotator=str(scores.fields["gold_annotator"]),
        judges=[scores.judged[0].judge.name], unread="leave-out", draws=0,
    )  # fmt: skip
    sums = compared.judged[0].sums[0]
    signature = Signature.from_fields(
        **{"statistic": "iou", **compared.fields, "draws": options.draws, "seed": options.seed}
    )
    columns = {"measure": "overlap with gold (IoU)", "part": "characters", "value of": ANY}
    return [
        Finding(
            columns,
            estimate_from_sums(sums, _iou_from_sums, options.draws, options.seed, signature, "neither marked anything"),
        )
    ]


def _iou_from_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return ratio_or_nan(
        sums[:, MATCHED_COLUMN], sums[:, GOLD_COLUMN] + sums[:, PREDICTED_COLUMN] - sums[:, MATCHED_COLUMN]
    )


def read_judge_binding(study: Study, judge: str, protocol: str) -> JudgeBinding:
    """What a judge is made of, as far as its annotator says so."""
    facts = parse_json_object(dict(study.annotators.select("id", "meta").iter_rows()).get(judge))
    return build_judge_binding(judge, facts, protocol)


# --- the answer --------------------------------------------------------------------------------------------------


def decide_verdict(test: AltTest, agreement: Sequence[Finding]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict by fixed rules, and the labels for which agreement is no less than people's.

    `may stand in` where it wins against at least half of the people and its agreement is not less than people's;
    `may not be used for this` where it wins against nobody and does not agree beyond chance, or agrees less than half
    as well as people do; else `may help, may not stand in`.
    """
    verdicts = {
        str(finding.columns["label"]): str(finding.columns["verdict"])
        for finding in agreement
        if finding.columns["who"] == "difference" and finding.columns["measure"] == "alpha"
        and finding.columns["level"] == agreement[0].columns["level"]
    }  # fmt: skip
    held = tuple(label for label, verdict in verdicts.items() if verdict == NO_LESS_AGREEMENT and label != ANY)
    overall = verdicts.get(ANY, "")
    if test.passes and overall != LESS_AGREEMENT:
        return "may stand in", held
    judge, people = (find_alpha_estimate(agreement, who) for who in ("judge", "people"))
    chance = judge is not None and not judge.low > 0
    far = judge is not None and people is not None and judge.value < people.value / 2
    if test.winning_rate == 0 and (chance or far):
        return "may not be used for this", held
    return "may help, may not stand in", held


def _alt_test_notes(test: AltTest) -> tuple[str, ...]:
    return (*test.notes, *(f"{person} is left out of the test: {reason}" for person, reason in test.left_out))


def write_verdict_paragraph(calibration: Calibration) -> str:
    """The answer in plain words: what it may do, why, and what is lost."""
    test = calibration.test
    close = (
        f"It is at least as close to the others as a person is against {test.win_count} of {len(test.people)} people"
    )
    allowed = f"where {test.required_win_count} are needed and {test.epsilon:g} is allowed for its lower cost"
    parts = [f"{calibration.judge}: {calibration.verdict}.", f"{close}, {allowed}."]
    judge, people = (find_alpha_estimate(calibration.agreement, who) for who in ("judge", "people"))
    if judge is not None and people is not None and math.isfinite(people.value) and math.isfinite(judge.value):
        parts.append(f"Agreement with a person (alpha) is {judge.short(2)}; of two people {people.short(2)}.")
    if calibration.labels:
        parts.append(f"By label it agrees no less than people for {', '.join(calibration.labels)}.")
    parts.append(_loss_sentence(calibration))
    parts.append(
        f"Measured on {calibration.texts} texts and {len(calibration.people)} "
        f"people.{_small_sample_sentence(calibration)}"
    )
    return " ".join(part for part in parts if part)


def _small_sample_sentence(calibration: Calibration) -> str:
    """What so few texts cannot show."""
    difference = find_alpha_estimate(calibration.agreement, "difference")
    if calibration.texts >= 30 or difference is None or not math.isfinite(difference.low):
        return ""
    hidden = (difference.high - difference.low) / 2
    return f" That is few: a difference in alpha of less than {hidden:.2f} cannot be seen."


def _loss_sentence(calibration: Calibration) -> str:
    """What is lost by using it: what it misses, and which way its counts are off."""
    share = next((finding.estimate for finding in calibration.found if finding.columns["part"] == "all"), None)
    ratio = next((finding.estimate for finding in calibration.bias if finding.columns["label"] == ANY), None)
    if share is None or ratio is None or not math.isfinite(share.value) or not math.isfinite(ratio.value):
        return ""
    more = "as many" if ratio.low <= 1 <= ratio.high else "more" if ratio.value > 1 else "fewer"
    words = f"{ratio.value:.2f} marks for one of a person's" if more != "as many" else "about as many marks as a person"
    use = {
        "may stand in": "Its counts can be used as they are.",
        "may help, may not stand in": "Use it with people's marks on some texts, by `finecomb estimate`.",
        "may not be used for this": "Its counts say little about what people would mark.",
    }[calibration.verdict]
    return f"It finds {share.value:.0%} of what a person marks and makes {words}. {use}"
