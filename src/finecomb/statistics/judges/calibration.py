"""Calibration of a judge against people: agreement, alternative annotator test, bias, probes and the verdict."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import polars as pl

from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.frames import parse_json_object
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study
from finecomb.engine.partitions import ProgressWatcher, count_steps
from finecomb.statistics.gold.disagreements import label_confusion_rows, pairing_type_table
from finecomb.statistics.gold.scores import (
    GOLD_COLUMN,
    MATCHED_COLUMN,
    PREDICTED_COLUMN,
    Scores,
    score_judges_against_gold,
)
from finecomb.statistics.inference.clusters import Clusters
from finecomb.statistics.inference.resampling import estimate_from_sums, ratio_or_nan
from finecomb.statistics.judges.alt_test import MIN_CLUSTERS, AltTest, alt_test
from finecomb.statistics.judges.estimates import estimate_means
from finecomb.statistics.judges.judge_agreement import (
    NO_LESS_AGREEMENT,
    compare_judge_and_human_agreement,
    find_text_clusters,
)
from finecomb.statistics.judges.judge_gamma import judge_gamma
from finecomb.statistics.judges.mark_comparison import (
    build_mark_table,
    cost_per_confirmed_error_rows,
    found_mark_shares,
    mark_bias,
)
from finecomb.statistics.judges.reliability_probes import find_own_system, probe_findings, self_preference_finding
from finecomb.statistics.judges.replacement import (
    ReplacementTest,
    read_mark_disagreement,
    run_replacement_test,
    sum_answer_disagreement,
)
from finecomb.statistics.judges.score_rules import marked_characters, mean_set_f1, typed_characters
from finecomb.statistics.judges.text_values import PeopleAndJudges, select_people_and_judges, training_documents
from finecomb.statistics.judges.validity import (
    UNDECIDED_VERDICT,
    JudgeBinding,
    JudgeContract,
    Verdict,
    build_judge_binding,
)
from finecomb.statistics.measures.unit_grid import UnitLevel
from finecomb.statistics.selection.view import ANY_LABEL, Filters


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Options of a calibration, which should be fixed before looking at the data."""

    epsilon: float = 0.15
    """Margin by which the judge may be worse than a person in the alternative annotator test (epsilon)."""
    margin: float = 0.2
    """Non-inferiority margin: share of people's agreement by which the judge's agreement may be lower."""
    score: str = ""
    """Score rule of the test; by default `typed-f1` for marks and `accuracy` for answers."""
    question: str = ""
    """Question whose answers are compared instead of marks."""
    levels: tuple[UnitLevel, ...] = ("token", "sentence", "document")
    people: tuple[str, ...] = ()
    gold: str = ""
    """Gold annotator to score against (default: the only annotator of kind gold, if any)."""
    by: str = "model"
    tokens: str = "words"
    draws: int = 1000
    seed: int = 0
    gamma: bool = True
    """True to compute gamma as well, on at most 40 texts."""
    cluster: str = ""
    """Document field that identifies texts that are not independent (default: prompt or source, if any)."""
    own: str = ""
    """System whose texts the judge's own model generated (default: taken from the meta of the judge's annotator)."""


@dataclass(frozen=True)
class Calibration:
    """Calibration result of one judge."""

    judge: str
    verdict: Verdict
    labels: tuple[str, ...]
    """Labels for which the judge's agreement is no less than that of people."""
    paragraph: str
    """Verdict and its reasons in plain words."""
    replacement: ReplacementTest
    """Comparison with people and with simple baselines that decides the verdict."""
    test: AltTest
    agreement: tuple[Finding, ...]
    bias: tuple[Finding, ...]
    found: tuple[Finding, ...]
    """Share of people's marks that the judge finds, and the overlap with gold if available."""
    probes: tuple[Finding, ...]
    costs: tuple[dict[str, object], ...]
    scores: Scores | None
    """Recall and precision against gold, if available."""
    texts: int
    people: tuple[str, ...]
    systems: tuple[str, ...]
    binding: JudgeBinding
    notes: tuple[str, ...]
    signature: Signature
    worth: tuple[Finding, ...] = ()
    """Marks per text, estimated from people alone and with the judge, with the effective number of human texts."""
    by: str = "model"
    """Name of the document meta that identifies systems."""

    def build_contract(self, made: datetime, days: int = 30) -> JudgeContract:
        """Return the record of what the judge is valid for, from the time `made` and for `days` days."""
        alpha = self.replacement.judge.value
        return JudgeContract(
            binding=self.binding, verdict=self.verdict, labels=self.labels, systems=self.systems, texts=self.texts,
            people=len(self.people), epsilon=self.test.epsilon, winning_rate=self.test.winning_rate,
            agreement=alpha if math.isfinite(alpha) else 0.0,
            made=made, days=days, paragraph=self.paragraph, signature=str(self.signature), by=self.by,
        )  # fmt: skip

    def gold_confusion_rows(self) -> list[dict[str, object]]:
        """Return the confusion table of gold labels (rows) and judge labels (columns); empty without gold."""
        return label_confusion_rows(self.scores) if self.scores else []

    def pairing_type_table(self) -> list[dict[str, object]]:
        """Return the counts of right, wrong, missed and extra marks; empty without gold."""
        return pairing_type_table(self.scores) if self.scores else []


def find_alpha_estimate(agreement: Sequence[Finding], who: str, label: str = ANY_LABEL) -> Estimate | None:
    """Return alpha of people, of the judge, or their difference, at the first level; None if it was not computed."""
    wanted = {"measure": "alpha", "who": who, "label": label}
    return next((finding.estimate for finding in agreement if wanted.items() <= dict(finding.columns).items()), None)


def calibrate_against_people(
    study: Study,
    judge: str,
    options: CalibrationOptions | None = None,
    filters: Filters | None = None,
    watch: ProgressWatcher | None = None,
) -> Calibration:
    """Compare a judge, any annotator of a study, with the people who annotated the same texts.

    Raise an error with fewer than two people, with fewer than 8 texts annotated by the judge and two people, or if the
    judge was trained on any of these texts.
    """
    options = options or CalibrationOptions()
    everything = select_people_and_judges(study, [judge], options.people, filters)
    sides = _select_shared_texts(everything, judge)
    with count_steps(2 if options.question else 6 + options.gamma, watch) as step:
        answers = _read_answers(sides, options)
        test = _run_alt_test(sides, judge, answers, options)
        replacement, clusters = _run_replacement_test(sides, judge, answers, options)
        step()
        agreement: tuple[Finding, ...] = ()
        if not options.question:
            agreement += tuple(compare_judge_and_human_agreement(
                sides, judge, options.levels, options.margin, options.tokens, options.cluster
            ))  # fmt: skip
            step()
        if options.gamma and not options.question:
            agreement += tuple(judge_gamma(sides, judge, options.margin, options.draws, options.seed))
            step()
        probes = probe_findings(study, judge, options.tokens, options.draws, options.seed)
        if system := options.own or find_own_system(study, judge, options.by):
            probes.append(self_preference_finding(everything, judge, system, options.by))
        calibration = Calibration(
            judge, replacement.verdict, find_held_labels(agreement), "", replacement, test, agreement, (), (),
            tuple(probes), (), None,
            len(sides.documents), sides.people,
            tuple(sorted({row[0] for row in sides.meta_rows([options.by])})) if sides.has_meta(options.by) else (),
            read_judge_binding(study, judge, sides.seen.protocol.id if sides.seen.protocol else ""),
            (
                *clusters.notes, *(() if options.question else (ALT_TEST_WEAKNESS,)), *test.notes,
                *(f"{person} is left out of the test: {reason}" for person, reason in test.left_out),
            ),
            test.rate.signature, by=options.by,
        )  # fmt: skip
        step()
        if not options.question:
            calibration = _add_mark_results(calibration, study, sides, options, filters, step)
    return replace(calibration, paragraph=verdict_paragraph(calibration))


def _add_mark_results(
    calibration: Calibration,
    study: Study,
    sides: PeopleAndJudges,
    options: CalibrationOptions,
    filters: Filters | None,
    step: Callable[[], object],
) -> Calibration:
    """Return the calibration with all results about marks added."""
    judge = calibration.judge
    marks = build_mark_table(sides, judge, options.by, options.cluster)
    labels = tuple(name for name in sides.seen.categories if name != ANY_LABEL)
    bias = tuple(mark_bias(marks, labels))
    found = found_mark_shares(marks)
    step()
    scores, overlap = _compare_with_gold(study, judge, options)
    step()
    worth: tuple[Finding, ...] = ()
    notes = calibration.notes
    try:
        worth = estimate_means(study, [judge], people=options.people, filters=filters, tokens=options.tokens).findings
    except FinecombError as error:
        notes = (*notes, f"the effective number of texts is not available: {error.format_message(format_as_flag)}")
    step()
    costs = tuple(cost_per_confirmed_error_rows(sides, marks))
    return replace(
        calibration, bias=bias, found=(*found, *overlap), costs=costs, scores=scores, worth=worth, notes=notes
    )


# --- comparison with people --------------------------------------------------------------------------------------


def _select_shared_texts(sides: PeopleAndJudges, judge: str) -> PeopleAndJudges:
    """Return only the texts annotated by the judge and at least two people; raise an error if it was trained on any."""
    if len(sides.people) < 2:
        raise FinecombError(f"calibration requires at least two people, found {len(sides.people)}")
    people = sides.seen.study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    readers = people.group_by("document").agg(pl.col("annotator").n_unique().alias("n")).filter(pl.col("n") >= 2)
    common = sorted(set(readers["document"]) & sides.documents_read_by(judge))
    if not common:
        raise FinecombError(
            f"no text was annotated by {judge} and at least two people; collect annotations of the same texts"
        )
    if len(common) < MIN_CLUSTERS:
        what = f"too few texts to decide: {judge} and at least two people annotated {len(common)} of the same texts"
        raise FinecombError(f"{what}, but {MIN_CLUSTERS} are required; annotate more of the same texts")
    if fitted := training_documents(sides.seen.study, judge).intersection(common):
        what = f"{judge} was trained on {len(fitted)} of the {len(common)} calibration texts"
        raise FinecombError(f"{what} (e.g. {min(fitted)!r}); use texts that it was not trained on")
    work = sides.seen.restrict_to_documents(pl.Series(common))
    present = set(work.study.annotations["annotator"])
    return PeopleAndJudges(work, tuple(name for name in sides.people if name in present), sides.judges)


def _read_answers(sides: PeopleAndJudges, options: CalibrationOptions) -> dict[str, dict[str, Any]]:
    """Return the answers to a question, or the marked characters, by annotator and text."""
    study = sides.seen.study
    answers: dict[str, dict[str, Any]] = {}
    if options.question:
        for name, document, cell in study.annotations.select("annotator", "document", "answers").iter_rows():
            answer = parse_json_object(cell).get(options.question)
            if answer is not None:
                answers.setdefault(name, {})[document] = answer
        if not answers:
            raise FinecombError(f"no annotator answered {options.question!r} about a whole text")
        return answers
    characters = typed_characters if (options.score or "typed-f1") == "typed-f1" else marked_characters
    # A text without marks has an empty set.
    spans: dict[tuple[str, str], list[tuple[int, int, str | None]]] = {
        row: [] for row in study.annotations.select("annotator", "document").iter_rows()
    }
    located = study.spans.filter(pl.col("part") == TEXT_PART)
    for name, document, *mark in located.select("annotator", "document", "start", "end", "label").iter_rows():
        spans[name, document].append((mark[0], mark[1], mark[2]))
    for (name, document), marks in spans.items():
        answers.setdefault(name, {})[document] = characters(marks)
    return answers


def _run_replacement_test(
    sides: PeopleAndJudges, judge: str, answers: Mapping[str, Mapping[str, Any]], options: CalibrationOptions
) -> tuple[ReplacementTest, Clusters]:
    """Compare the judge's agreement with people's and with that of simple baselines, over clusters of texts."""
    fields: dict[str, object] = {"judge": judge, "people": len(sides.people), "seed": options.seed}
    if options.question:
        own = answers.get(judge, {})
        given = {text: [answers[name][text] for name in sides.people if text in answers.get(name, {})] for text in own}
        texts = [text for text, others in given.items() if len(others) >= 2]
        if not texts:
            raise FinecombError(f"no text has an answer to {options.question!r} by {judge} and at least two people")
        is_numeric = options.score == "rmse"
        fields |= {"question": options.question, "metric": "interval" if is_numeric else "nominal"}
        people = [given[text] for text in texts]
        sums = sum_answer_disagreement(people, [own[text] for text in texts], is_numeric, options.seed)
    else:
        sums, texts = read_mark_disagreement(sides, judge, options.tokens, options.seed)
        fields |= {"level": "token", "tokens": options.tokens}
    clusters = find_text_clusters(sides, texts, options.cluster)
    return run_replacement_test(sums, clusters, options.margin, fields), clusters


def _run_alt_test(
    sides: PeopleAndJudges, judge: str, answers: Mapping[str, Mapping[str, Any]], options: CalibrationOptions
) -> AltTest:
    """Run the alternative annotator test on answers or marked characters, with one item per text."""
    rule: Any = options.score or "accuracy"
    if not options.question:
        rule = functools.partial(mean_set_f1)
        # The signature contains the name of the rule, which is that of its function.
        rule.__name__ = options.score or "typed-f1"
    people = {name: answers.get(name, {}) for name in sides.people}
    return alt_test(
        people, answers.get(judge, {}), rule, options.epsilon, draws=options.draws, seed=options.seed,
        min_items=MIN_CLUSTERS,
    )  # fmt: skip


def _compare_with_gold(
    study: Study, judge: str, options: CalibrationOptions
) -> tuple[Scores | None, tuple[Finding, ...]]:
    """Return the judge's scores and the overlap (IoU) of marked characters with gold, or (None, ()) without gold."""
    gold = options.gold
    if not gold:
        golden = study.annotators.filter(pl.col("kind") == "gold")["id"].to_list()
        present = [name for name in golden if name in set(study.annotations["annotator"])]
        # With several gold annotators the choice would be arbitrary, so the option must name one.
        gold = present[0] if len(present) == 1 else ""
    if not gold:
        return None, ()
    score = functools.partial(score_judges_against_gold, study, gold_annotator=gold, judges=[judge], unread="leave-out")
    scores = score(match="optimal", draws=options.draws, seed=options.seed)
    # Only the sums are needed; the interval is drawn from them below.
    characters = score(match="char", draws=0)
    fields = {"statistic": "iou", **characters.fields, "draws": options.draws, "seed": options.seed}
    overlap = estimate_from_sums(
        characters.judged[0].sums[0],
        lambda sums: ratio_or_nan(
            sums[:, MATCHED_COLUMN], sums[:, GOLD_COLUMN] + sums[:, PREDICTED_COLUMN] - sums[:, MATCHED_COLUMN]
        ),
        options.draws,
        options.seed,
        Signature.from_fields(**fields),
        "neither gold nor the judge has marks",
    )
    columns = {"measure": "overlap with gold (IoU)", "part": "characters", "value of": ANY_LABEL}
    return scores, (Finding(columns, overlap),)


def read_judge_binding(study: Study, judge: str, protocol: str) -> JudgeBinding:
    """Return the model, prompt and settings of a judge, as far as the meta of its annotator contains them."""
    facts = parse_json_object(dict(study.annotators.select("id", "meta").iter_rows()).get(judge))
    return build_judge_binding(judge, facts, protocol)


# --- verdict -----------------------------------------------------------------------------------------------------


def find_held_labels(agreement: Sequence[Finding]) -> tuple[str, ...]:
    """Return the labels for which the judge's alpha is no less than that of people, at the first level."""
    wanted = {"who": "difference", "measure": "alpha", "verdict": NO_LESS_AGREEMENT}
    return tuple(
        str(finding.columns["label"])
        for finding in agreement
        if finding.columns["level"] == agreement[0].columns["level"] and finding.columns["label"] != ANY_LABEL
        and wanted.items() <= dict(finding.columns).items()
    )  # fmt: skip


ALT_TEST_WEAKNESS = (
    "the verdict does not use the alternative annotator test: for marks, it cannot distinguish a judge that marks "
    "nothing from a person if many texts are clean and people disagree"
)


def verdict_paragraph(calibration: Calibration) -> str:
    """Return the verdict in plain words: the reasons, the bias of the judge, and the permitted use."""
    comparison, test = calibration.replacement, calibration.test
    verdict = calibration.verdict
    parts = [verdict_sentence(calibration.judge, verdict)]
    if verdict == UNDECIDED_VERDICT:
        parts.append(f"{comparison.undecided_reason[:1].upper()}{comparison.undecided_reason[1:]}.")
    judge, people, ratio = comparison.judge, comparison.people, comparison.ratio
    if math.isfinite(people.value) and math.isfinite(judge.value):
        parts.append(
            f"Alpha is {judge.short(2)} between the judge and a person and {people.short(2)} between two people."
        )
    if math.isfinite(ratio.low):
        outcome = "is" if comparison.is_noninferior else "is not"
        parts.append(
            f"The judge reaches {ratio.value:.0%} of people's agreement (90% interval {ratio.low:.0%} to "
            f"{ratio.high:.0%}); the lower limit {outcome} above {1 - comparison.margin:.0%}."
        )
    beaten = [baseline.name for baseline in comparison.baselines if not baseline.is_beaten]
    parts.append(
        f"It is not shown to agree with people better than these simple baselines: {', '.join(beaten)}." if beaten
        else "It agrees with people better than all simple baselines."
    )  # fmt: skip
    if calibration.labels and verdict != "cannot be used for this":
        parts.append(f"Its agreement is no less than that of people for {', '.join(calibration.labels)}.")
    share = next((finding.estimate for finding in calibration.found if finding.columns["part"] == "all"), None)
    bias = next((finding.estimate for finding in calibration.bias if finding.columns["label"] == ANY_LABEL), None)
    if share is not None and bias is not None and math.isfinite(share.value) and math.isfinite(bias.value):
        interval = f"{bias.short(2)} marks per human mark"
        parts.append(f"It finds {share.value:.0%} of people's marks and makes {interval}.")
        parts.append(recommended_use(verdict, bias, comparison.margin))
    passed = "passes" if test.passes else "fails"
    parts.append(
        f"It {passed} the alternative annotator test: it wins against {test.win_count} of {len(test.people)} people "
        f"({test.required_win_count} required, epsilon = {test.epsilon:g})."
    )
    parts.append(f"Based on {calibration.texts} texts and {len(calibration.people)} people.")
    return " ".join(parts)


def verdict_sentence(judge: str, verdict: Verdict) -> str:
    """Return the verdict as a sentence."""
    return f"{judge}: {verdict}." if verdict == UNDECIDED_VERDICT else f"{judge} {verdict}."


def recommended_use(verdict: Verdict, bias: Estimate, margin: float) -> str:
    """Return the permitted use of a judge's marks. `bias` is the number of judge marks per human mark."""
    if verdict == "can replace people":
        if 1 - margin < bias.low and bias.high < 1 + margin:
            return "Its counts can be used as they are."
        inside = f"{1 - margin:g} to {1 + margin:g}"
        return f"Correct its counts (`finecomb estimate`): the interval of its marks per human mark exceeds {inside}."
    if verdict == "cannot be used for this":
        return "Its counts say little about what people would mark."
    if verdict == UNDECIDED_VERDICT:
        return "Annotate more of the same texts before using its marks."
    return "Combine it with people's marks on some texts (`finecomb estimate`)."
