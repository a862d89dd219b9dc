"""Figures of released data, recomputed by independent code: sections 1, 2, 5 and 7."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.errors import FormatError
from finecomb.core.study import Study
from finecomb.formats import Options
from finecomb.statistics.gold import merge_tables
from finecomb.statistics.gold.gold_and_judges import has_only_scalar_scores
from finecomb.statistics.gold.gold_merge import Gold, merge_into_gold
from finecomb.statistics.gold.scalar_metrics import scalar_metric_correlations
from finecomb.statistics.gold.scores import MatchName, Scores, score_judges_against_gold
from finecomb.statistics.measures.annotation_measures import measure as compute_measures
from tests.golden import gold as golden
from tests.golden.agreement import THOMSON_REITER_2020
from tests.golden.measures import FRANK_CORRELATIONS
from tests.statistics.gold.gold_studies import score_row


@pytest.fixture(scope="module")
def basketball(data: Path) -> Study:
    return fc.read(data / "no_licence_stated" / "thomson_reiter_2020" / "participants_and_annotations.xlsx")


@pytest.fixture(scope="module")
def merged(basketball: Study) -> Gold:
    return merge_into_gold(basketball)


def test_table_1_of_thomson_and_reiter(merged: Gold) -> None:
    rows = merge_tables.label_confusion_table(merged)
    assert {row["label"]: tuple(row.values())[1:] for row in rows} == golden.TABLE_1
    whole = merge_tables.errors_by_label_table(merged)[-1]
    assert (whole["errors"], whole["marked by all"]) == (418, 301)
    assert len(merged.errors) == 536
    assert len(merged.undecided_errors) == 118 + 21


def test_table_2_as_counts(merged: Gold) -> None:
    found = merge_tables.error_rates_table(merged, draws=0)
    for system, counts in golden.TABLE_2.items():
        own = [each for each in found if each.columns["model"] == system]
        assert tuple(each.columns["errors"] for each in own) == counts
        assert [each.estimate.value for each in own] == pytest.approx([count / 7 for count in counts])


def test_agreement_under_every_convention(merged: Gold) -> None:
    found = {
        (e.columns["convention"], e.columns["measure"]): e for e in merge_tables.error_agreement_table(merged, draws=0)
    }
    for convention, figures in THOMSON_REITER_2020.items():
        for measure, value in figures.items():
            estimate = found[convention, measure].estimate
            assert estimate.value == pytest.approx(value, abs=5e-4)
            assert estimate.signature["convention"] == convention


def test_each_annotator_against_gold(merged: Gold) -> None:
    for found in merge_tables.annotator_scores_table(merged, draws=0):
        precision, recall = golden.ANNOTATORS[str(found.columns["annotator"])]
        assert (found.precision.value, found.recall.value) == pytest.approx((precision, recall), abs=5e-5)


def test_the_cost_is_that_of_the_paper(basketball: Study, merged: Gold) -> None:
    """Section 4.2: US$8 per story and 20% fees for each of three; section 1 says "on the order of US$30"."""
    assert {each.estimate.why for each in merge_tables.gold_cost_table(merged)} == {
        "study.yaml has no price",
        "some annotations have no time",
    }
    paid = basketball.settings.model_copy(update={"price": 8.0, "fees": 0.2})
    per_text = merge_tables.gold_cost_table(merge_into_gold(replace(basketball, settings=paid)))[0]
    assert per_text.estimate.value == pytest.approx(28.8)


def test_our_own_alignment_recovers_nearly_all_errors(basketball: Study, merged: Gold) -> None:
    """418 by the source's items; differences come from rows about one position and from rules broken in the source."""
    ours = merge_into_gold(basketball, align="overlap")
    both, total = merge_tables.count_recovered_errors(merged, ours)
    assert (both, total) == (415, 418)
    assert len(ours.kept_errors) == 420
    assert "415 of the 418 errors" in merge_tables.recovered_error_notes(ours, basketball)[0]
    assert merge_tables.recovered_error_notes(merged, basketball) == []


def test_the_gold_study_is_usable_everywhere(merged: Gold, tmp_path: Path) -> None:
    assert fc.check(merged.study) == []
    fc.write(merged.study, tmp_path / "gold")
    again = fc.read(tmp_path / "gold")
    assert len(again.marks) == 418
    assert again.marks["label"].null_count() == 21
    assert compute_measures(again, ["count"], draws=0)[-1].estimate.value == pytest.approx(418 / 21)


def test_gold_from_two_of_three_loses_a_fifth(basketball: Study) -> None:
    rows = merge_tables.annotator_subset_scores_table(basketball, 2, draws=0)
    assert [each.predicted for each in rows[:3]] == [337, 339, 344]  # the n of the pairwise kappas
    assert rows[-1].recall.value == pytest.approx((337 + 339 + 344) / (3 * 418))


# --- the shared task ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task(data: Path) -> Path:
    return data / "accuracy_shared_task"


@pytest.fixture(scope="module")
def gsml(task: Path) -> Study:
    return fc.read(task / "gsml.csv")


MATCHES: tuple[MatchName, MatchName] = ("task", "token")


def scored(gsml: Study, path: Path, match: MatchName = "task") -> Scores:
    return score_judges_against_gold(gsml, fc.read(path), match, tokens="whitespace", draws=0)


@pytest.mark.long
@pytest.mark.parametrize("name", ["submission.csv", "submission_doc_based.csv", "submission_sent_based.csv"])
def test_the_example_submission(name: str, gsml: Study, task: Path) -> None:
    marks = scored(gsml, task / "example_submissions" / name)
    words = scored(gsml, task / "example_submissions" / name, "token")
    for label, (*mistakes, matched, in_gold, predicted) in golden.SUBMISSION.items():
        found = score_row(marks, label)
        assert [found.matched, found.gold, found.predicted] == mistakes
        found = score_row(words, label)
        assert (found.matched, found.gold, found.predicted) == (matched, in_gold, predicted)
    for label in ("word", "context", "not-checkable", "other"):
        assert score_row(marks, label).recall.value == 0
        assert math.isnan(score_row(marks, label).precision.value)


def test_where_the_matches_fall_and_looser_rules(gsml: Study, task: Path) -> None:
    path = task / "example_submissions" / "submission.csv"
    found = scored(gsml, path).judged[0]
    labels = found.gold["label"].to_numpy()[found.matching.partner >= 0].tolist()
    assert {label: labels.count(label) for label in set(labels)} == golden.SUBMISSION_FOUND
    assert score_row(scored(gsml, path, "overlap"), "any").right == 395
    assert score_row(scored(gsml, path, "optimal"), "any").matched == 350


@pytest.mark.long
@pytest.mark.parametrize("name", ["gsml_doc_based.csv", "gsml_sent_based.csv"])
def test_gold_by_either_kind_of_ids_is_perfect(name: str, gsml: Study, task: Path) -> None:
    found = scored(gsml, task / "example_submissions" / name)
    assert {(each.recall.value, each.precision.value) for each in found.rows} == {(1.0, 1.0)}


def test_the_sample_of_one_text(task: Path) -> None:
    folder = task / "example_submissions"
    gold_ = fc.read(folder / "test_gsml.csv")
    marks, words = (scored(gold_, folder / "test_sample.csv", match) for match in MATCHES)
    for label, figures in golden.SAMPLE.items():
        both = [(own.matched, own.gold, own.predicted) for own in (score_row(marks, label), score_row(words, label))]
        assert both == [figures[:3], figures[3:]]


def test_a_teams_submission(gsml: Study, task: Path) -> None:
    path = task / "laval_algorithm_train" / "submission.csv"
    found = scored(gsml, path)
    for label, figures in golden.LAVAL.items():
        own = score_row(found, label)
        assert (own.matched, own.gold, own.predicted) == figures
    tokens = score_row(scored(gsml, path, "token"), "any")
    assert (tokens.matched, tokens.gold, tokens.predicted) == golden.LAVAL_TOKENS


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "submission_overlapping.csv",
            r"submission_overlapping.csv:\d+: token 190 of S008 is already used by line \d+",
        ),
        (
            "submission_malformed.csv",
            r"submission_malformed.csv:\d+: this row has only \w+ IDs, but previous rows have only",
        ),
        ("submission_blank.csv", r"submission_blank.csv:2: token IDs are missing"),
    ],
)
def test_rejected_submissions_name_the_row(name: str, message: str, task: Path) -> None:
    with pytest.raises(FormatError, match=message):
        fc.read(task / "example_submissions" / name)


# --- language models as judges, and scalar metrics ----------------------------------------------------------------


@pytest.mark.parametrize(("name", "figures"), golden.D2T_JUDGES.items())
def test_language_models_against_a_person_by_characters(name: str, figures: tuple[float, ...], data: Path) -> None:
    place = data / "span_annotation" / "annotations"
    gold_ = fc.read(place / "human" / "d2t-eval" / "dev")
    found = score_judges_against_gold(
        gold_, fc.read(place / "model" / "d2t-eval" / "dev" / f"zeroshot-{name}"), "char", by=(), draws=0
    )
    hard, soft = score_row(found, "typed"), score_row(found, "any")
    values = [each.value for own in (hard, soft) for each in (own.precision, own.recall, own.f1)]
    assert values == pytest.approx(figures, abs=5e-5)


@pytest.mark.long
def test_frank_through_score(data: Path) -> None:
    study = fc.read(data / "frank" / "human_annotations.json")
    assert has_only_scalar_scores(study)
    found = {
        (f.columns["metric"], f.columns["measure"]): f
        for f in scalar_metric_correlations(study, None, "factuality", draws=0)
    }
    for metric, (n, *printed) in FRANK_CORRELATIONS.items():
        for name, value in zip(("pearson", "spearman", "partial"), printed, strict=True):
            assert found[metric, name].columns["n"] == n
            assert found[metric, name].estimate.value == pytest.approx(value, abs=5e-5)


def test_pooled_votes_of_snac(data: Path) -> None:
    crowd = fc.read(data / "snac" / "SNaC_data.json", options=Options())
    assert len(merge_into_gold(crowd).kept_errors) == 1205 + 936 + 21
