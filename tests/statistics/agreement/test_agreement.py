from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from finecomb import demo as demo_study
from finecomb.core.errors import FinecombError
from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.agreement_options import AgreeOptions
from finecomb.statistics.agreement.alpha import ALL_UNITS_MARKED_REASON, alpha, build_masi_distance
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.agreement.rating_matrix import RATING_CONVENTIONS
from finecomb.statistics.agreement.rating_sources import AnswerRatings, ItemLabels, UnitMarks, build_rating_source
from finecomb.statistics.agreement.registry import AGREEMENT_MEASURES, MEASURE_FAMILIES
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.agreement.agreement_studies import TEXT, make_marked_study, make_rated_study, studies
from tests.statistics.agreement.agreement_studies import MarkTuple as Given
from tests.statistics.agreement.closed_form import closed_form_agreement

fewer = settings(max_examples=settings().max_examples // 2)
ON_MARKS = [name for name, measure in AGREEMENT_MEASURES.items() if UnitMarks in measure.reads]
ON_ITEMS = [name for name, measure in AGREEMENT_MEASURES.items() if ItemLabels in measure.reads]
ON_ANSWERS = [name for name, measure in AGREEMENT_MEASURES.items() if AnswerRatings in measure.reads]


def values(found: list[Finding], measure: str) -> dict[str, float]:
    return {str(each.columns["label"]): each.estimate.value for each in found if each.columns["measure"] == measure}


# --- one study, many names ---------------------------------------------------------------------------------------


def many(documents: int = 30, readers: int = 4) -> Study:
    """Build a study in which some texts have more marked words than others."""
    rng = np.random.default_rng(0)
    read: dict[tuple[str, str], list[Given]] = {}
    for at in range(documents):
        for person in range(readers):
            chance = 0.8 if at % 2 else 0.3
            own = [(0, 3, "red"), (4, 7, "blue"), (4, 7, "red")]
            read[f"d{at}", f"p{person}"] = [each for each in own if rng.random() < chance]
    return make_marked_study({f"d{at}": TEXT for at in range(documents)}, read)


def test_agree_and_agreement_are_one_number_with_one_interval() -> None:
    large_study = many()
    for statistic in ("alpha", "two-agree"):
        for label in ("any", "red", "blue"):
            findings = agree(large_study, [statistic], draws=200, seed=3)
            mine = next(each.estimate for each in findings if each.columns["label"] == label)
            theirs = closed_form_agreement(large_study, statistic, None if label == "any" else label, draws=200, seed=3)
            assert mine.value == pytest.approx(theirs.value)
            percentile = agree(large_study, [statistic], draws=200, seed=3, interval="percentile")
            same = next(each.estimate for each in percentile if each.columns["label"] == label)
            assert (same.value, same.low, same.high) == pytest.approx((theirs.value, theirs.low, theirs.high))
            assert mine.signature["interval"] == ("bootstrap-t" if statistic == "alpha" else "jackknife-t-logit")


def test_every_label_and_any_has_a_row_also_those_nobody_used() -> None:
    findings = agree(many(), ["alpha"], draws=0)
    assert [each.columns["label"] for each in findings] == ["any", "red", "blue", "green"]
    assert findings[-1].estimate.why == "no unit is marked with this label in the texts with two or more annotators"
    assert [each.columns["label"] for each in agree(many(), ["alpha"], by_label=False, draws=0)] == ["any"]


def test_agreement_by_model() -> None:
    findings = agree(many(), ["alpha"], by_label=False, by=["model"], draws=100)
    assert [each.columns["model"] for each in findings] == ["m0", "m1"]
    assert all(each.estimate.low < each.estimate.value < each.estimate.high for each in findings)
    assert [each.estimate.signature["documents"] for each in findings] == ["15", "15"]


@fewer
@given(studies())
def test_the_mean_over_texts_leaves_out_or_counts_as_one_what_is_undefined(one: Study) -> None:
    ids = view(one).study.documents["id"]
    each = [
        closed_form_agreement(view(one).restrict_to_documents(ids.filter(ids == id)), "alpha", draws=0) for id in ids
    ]
    wordless = dict(one.documents.select("id", one.documents["text"] == "").iter_rows())
    defined = [own.value for own in each if not math.isnan(own.value)]
    silent = ("no unit is marked in the texts with two or more annotators", ALL_UNITS_MARKED_REASON)
    ones = [1.0 for id, own in zip(ids, each, strict=True) if own.why in silent and not wordless[id]]
    findings = agree(one, ("alpha-mean", "alpha-mean-one"), draws=0, by_label=False)
    for mean, values in zip(findings, (defined, defined + ones), strict=True):
        assert mean.estimate.value == pytest.approx(np.mean(values) if values else math.nan, nan_ok=True)


def test_on_one_corpus_the_names_give_very_different_numbers() -> None:
    """For a rare label, the number reported as agreement depends on the measure."""
    read: dict[tuple[str, str], list[Given]] = {(f"d{at}", person): [] for at in range(20) for person in "pqr"}
    read["d0", "p"], read["d1", "p"], read["d1", "q"] = [(0, 3, "red")], [(0, 3, "red")], [(0, 3, "red")]
    marked_study = make_marked_study({f"d{at}": TEXT for at in range(20)}, read)
    names = ["alpha", "alpha-mean", "alpha-mean-one", "observed", "ac1"]
    found = {name: values(agree(marked_study, [name], draws=0), name)["red"] for name in names}
    assert found["alpha"] < 0.5
    assert found["alpha-mean"] < found["alpha"]
    assert found["alpha-mean-one"] > 0.9
    assert found["observed"] > 0.95


@fewer
@given(studies())
def test_sets_of_labels_equal_alpha_of_their_codes(one: Study) -> None:
    source = build_rating_source(view(one), AgreeOptions())
    assert isinstance(source, UnitMarks)
    cells, texts = source.mark_depths, len(source.grid.documents)
    bits = ((cells.depth[1:] > 0).T @ (1 << np.arange(len(source.categories)))).tolist()
    matrix = np.full((4, len(source.grid)), np.nan)
    for at, (document, person) in enumerate(zip(cells.documents, cells.annotators, strict=True)):
        first = source.grid.bounds[document]
        matrix[person, first : source.grid.bounds[document + 1]] = bits[cells.bounds[at] : cells.bounds[at + 1]]
    patterns = sorted(set(bits))
    sets = [frozenset(name for at, name in enumerate(source.categories) if pattern >> at & 1) for pattern in patterns]
    alone = np.array([(~np.isnan(matrix[:, column])).sum() < 2 for column in range(matrix.shape[1])], dtype=bool)
    kept = matrix[:, ~alone]
    kept = np.where(np.isnan(kept), np.nan, np.searchsorted(patterns, np.nan_to_num(kept)))
    used = sorted(set(kept[~np.isnan(kept)].astype(int)))
    findings = agree(one, ("alpha-sets", "alpha-masi"), draws=0)
    assert texts == len(one.documents)
    assert findings[0].estimate.value == pytest.approx(alpha(kept), nan_ok=True)
    assert findings[1].estimate.value == pytest.approx(
        alpha(kept, build_masi_distance([sets[at] for at in used])), nan_ok=True
    )


# --- answers -----------------------------------------------------------------------------------------------------


def ratings(documents: int = 12) -> Study:
    rng = np.random.default_rng(1)
    answers = {}
    for at in range(documents):
        middle = rng.integers(1, 6)
        for person in "pqr":
            answers[f"d{at}", person] = {"rating": int(np.clip(middle + rng.integers(-1, 2), 1, 5))}
    return make_rated_study(answers)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_of_ratings_is_that_of_their_matrix(scale: str) -> None:
    rated_study = ratings()
    source = build_rating_source(view(rated_study), AgreeOptions(level="document", question="rating"))
    assert not isinstance(source, UnitMarks)
    name = "alpha" if scale == "nominal" else f"alpha-{scale}"
    findings = agree(rated_study, [name], "document", question="rating", draws=200)
    assert len(findings) == 1
    assert findings[0].estimate.value == pytest.approx(alpha(source.rated.matrix, scale))
    assert findings[0].estimate.low < findings[0].estimate.value < findings[0].estimate.high
    assert findings[0].estimate.signature["question"] == "rating"


def test_ratings_are_cut_where_that_gives_the_best_agreement() -> None:
    rated_study = ratings()
    source = build_rating_source(view(rated_study), AgreeOptions(level="document", question="rating"))
    assert not isinstance(source, UnitMarks)
    matrix = source.rated.matrix
    each = {cut: alpha(np.where(np.isnan(matrix), np.nan, 1.0 * (matrix >= cut))) for cut in (2, 3, 4, 5)}
    found = agree(rated_study, ["alpha-binarised"], "document", question="rating", draws=50)[0]
    assert found.estimate.value == pytest.approx(max(each.values()))
    assert float(str(found.columns["threshold"])) == max(each, key=lambda cut: each[cut])


# --- bad input ---------------------------------------------------------------------------------------------------

TEXTS = {"d": TEXT, "e": TEXT}
ODD: dict[str, Study] = {
    "no annotations": make_marked_study(TEXTS, {}),
    "one annotator": make_marked_study(TEXTS, {("d", "p"): [(0, 3, "red")], ("e", "p"): []}),
    "no marks": make_marked_study(TEXTS, {("d", "p"): [], ("d", "q"): [], ("e", "p"): []}),
    "different documents": make_marked_study(TEXTS, {("d", "p"): [(0, 3, "red")], ("e", "q"): [(0, 3, "red")]}),
    "empty texts": make_marked_study({"d": "", "e": ""}, {(id, person): [] for id in "de" for person in "pq"}),
    "omissions only": make_marked_study(TEXTS, {("d", "p"): [(4, 4, "red")], ("d", "q"): [(4, 4, "red")]}),
    "one document": make_marked_study({"d": TEXT}, {("d", "p"): [(0, 3, "red")], ("d", "q"): [(4, 7, None)]}),
    "pooled": make_marked_study(TEXTS, {("d", "p"): [], ("e", "p"): [(0, 3, "red")]}, "pooled"),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("level", ["token", "char", "sentence", "segment", "document"])
def test_odd_studies_give_a_number_or_a_reason(name: str, level: str) -> None:
    for each in agree(ODD[name], ON_MARKS, level, draws=20):  # type: ignore[arg-type]
        assert math.isnan(each.estimate.low) == bool(each.estimate.why)


@pytest.mark.parametrize("convention", RATING_CONVENTIONS)
@pytest.mark.parametrize("name", ODD)
def test_odd_studies_give_a_number_or_a_reason_by_item(name: str, convention: str) -> None:
    for each in agree(ODD[name], ON_ITEMS, "item", align="overlap", convention=convention, draws=20):
        assert math.isnan(each.estimate.low) == bool(each.estimate.why)


@pytest.mark.parametrize("name", ["no annotations", "one annotator", "no marks", "different documents", "empty texts"])
def test_no_agreement_is_made_up_where_there_can_be_none(name: str) -> None:
    """Without marks, only observed agreement and AC1 of marks are defined."""
    if name == "no marks":
        chosen = [each for each in ON_MARKS if not each.startswith(("observed", "ac1", "alpha-mean-one", "f1"))]
    else:
        chosen = [each for each in ON_MARKS if name != "empty texts" or "macro" not in each]
    assert all(math.isnan(each.estimate.value) for each in agree(ODD[name], chosen, draws=0))


@pytest.mark.parametrize(
    ("measure", "row", "reason"),
    [
        ("pearson", {}, "the numbers of marks do not vary for any pair of annotators"),
        ("kappa-cohen-pairs", {"pair": "p, q"}, "the ratings compared do not vary"),
        ("one-vs-rest-precision-each", {"annotator": "p"}, "the annotator marked no units"),
        ("one-vs-rest-recall-each", {"annotator": "r"}, "no unit is marked by enough of the other annotators"),
    ],
)
def test_a_measure_gives_its_own_reason_for_an_undefined_value(measure: str, row: dict[str, str], reason: str) -> None:
    marked_study = make_marked_study(TEXTS, {(id, who): [(0, 3, "red")] * (who == "r") for id in "de" for who in "pqr"})
    [finding] = [
        each for each in agree(marked_study, [measure], draws=0, by_label=False) if row.items() <= each.columns.items()
    ]
    assert math.isnan(finding.estimate.value)
    assert finding.estimate.why == reason


def test_one_document_has_a_value_but_no_interval() -> None:
    estimate = agree(ODD["one document"], ["alpha"], by_label=False)[0].estimate
    assert not math.isnan(estimate.value)
    assert math.isnan(estimate.low)
    assert estimate.why == "an interval requires at least 4 texts, found 1"


def test_a_label_of_the_wrong_kind_of_level_is_refused() -> None:
    with pytest.raises(FinecombError, match="f1 requires marks on units of text, found labels of items"):
        agree(many(2), ["f1"], "item", align="overlap")
    with pytest.raises(FinecombError, match="alpha-ordinal requires answers to a question"):
        agree(many(2), ["alpha-ordinal"])
    with pytest.raises(FinecombError, match="found token"):
        agree(ratings(), ["alpha"], question="rating")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"measures": ["alfa"]}, "did you mean 'alpha'"),
        ({"level": "tokens"}, "did you mean 'token'"),
        ({"overlap": "ad"}, "did you mean 'add'"),
        ({"rest": "majorty"}, "did you mean 'majority'"),
        ({"boundaries": "unions"}, "did you mean 'union'"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(asked: dict[str, str], told: str) -> None:
    with pytest.raises(FinecombError, match=told):
        agree(many(2), **asked)  # type: ignore[arg-type]


def test_families_are_made_of_measures() -> None:
    assert {name for names in MEASURE_FAMILIES.values() for name in names} <= set(AGREEMENT_MEASURES)
    findings = agree(many(3), ["one-vs-rest", "kappa"], by_label=False, draws=0)
    assert [each.columns["measure"] for each in findings] == [
        *MEASURE_FAMILIES["one-vs-rest"],
        *MEASURE_FAMILIES["kappa"],
    ]


@pytest.mark.parametrize(("align", "work"), [("gamma", True), ("overlap", False)])
def test_the_limit_of_an_alignment_is_in_the_signature(align: str, work: bool) -> None:
    findings = agree(many(2), ["alpha"], "item", align=align, draws=0)
    assert ("|work:60.0|" in str(findings[0].estimate.signature)) == work


def test_filters_reach_the_signature() -> None:
    selection = view(many(3), Filters(labels=("red",)))
    found = agree(selection, ["f1"], boundaries="union", draws=5, seed=9)[0].estimate.signature
    assert (found["labels"], found["boundaries"], found["overlap"]) == ("red", "union", "add")
    drawn = agree(view(many(9)), ["f1"], interval="percentile", draws=5, seed=9)[0].estimate.signature
    assert (drawn["interval"], drawn["draws"], drawn["seed"]) == ("percentile", "5", "9")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rest": "majority"}, "^rest does not apply to alpha"),
        ({"align": "overlap"}, "^align does not apply to alpha"),
        ({"gamma": GammaSettings(samples=3)}, "gamma settings do not apply to alpha"),
    ],
)
def test_options_of_other_measures_and_sources_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        agree(demo_study(), ["alpha"], **options)
