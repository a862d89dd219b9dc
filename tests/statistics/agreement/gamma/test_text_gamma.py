from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.results import Estimate
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.engine.engines import LocalEngine
from finecomb.engine.partitions import Executor
from finecomb.protocols import load_shipped
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.gamma.best_alignment import best_alignment
from finecomb.statistics.agreement.gamma.chance_samplers import CHANCE_SAMPLERS
from finecomb.statistics.agreement.gamma.continuum import Bools, Continuum, build_document_continua
from finecomb.statistics.agreement.gamma.dissimilarity import Dissimilarity, label_group_distances
from finecomb.statistics.agreement.gamma.gamma_cat import category_disagreement_sums
from finecomb.statistics.agreement.gamma.pooled_gamma import measure_gamma_of_texts, pooled_gamma, unproven_gamma_gap
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings, TextGamma, TextGammaJob, measure_text_gamma
from finecomb.statistics.agreement.mark_alignment import align_marks
from finecomb.statistics.selection.view import view
from tests.statistics.agreement.agreement_studies import PROTOCOL, TEXT, MarkTuple, make_marked_study
from tests.statistics.agreement.gamma_continua import make_continuum, random_continuum, slow_distance, small_continua

QUICK = GammaSettings(samples=5)


def job(marks: Continuum, asked: GammaSettings = QUICK, seed: int = 0, document: str = "d") -> TextGammaJob:
    return TextGammaJob(document, marks, asked, Dissimilarity(asked.delta, asked.alpha, asked.beta), 3, seed)


def values(one: Study, *measures: str, **asked: object) -> dict[str, Estimate]:
    findings = agree(one, measures, gamma=QUICK, draws=20, **asked)  # type: ignore[arg-type]
    return {
        "/".join(
            str(each.columns[name]) for name in ("measure", "label", "document") if name in each.columns
        ): each.estimate
        for each in findings
    }


READ = {
    ("d", "p"): [(0, 7, "red"), (14, 18, "blue")],
    ("d", "q"): [(0, 7, "red"), (14, 18, "red")],
    ("d", "r"): [],
    ("e", "p"): [(0, 3, "red")],
    ("e", "q"): [(8, 13, "blue")],
}


# --- one text ----------------------------------------------------------------------------------------------------


def test_gamma_is_one_less_the_ratio_of_disorders() -> None:
    marks = random_continuum(np.random.default_rng(1), 4, 3)
    text_gamma = measure_text_gamma(job(marks))
    assert text_gamma.observed[0] == pytest.approx(best_alignment(marks).upper)
    assert text_gamma.gamma[0] == pytest.approx(1 - text_gamma.observed[0] / text_gamma.expected[0])
    assert text_gamma.weight[0] == len(marks) / 4
    assert text_gamma.samples == 5


def test_identical_annotators_give_one() -> None:
    marks = make_continuum(3, [(who, start, start + 4, start % 3) for who in range(3) for start in (0, 20, 41)])
    assert measure_text_gamma(job(marks)).gamma[:2] == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        (make_continuum(1, [(0, 0, 5, 0)]), "fewer than two annotators"),
        (make_continuum(3, []), "no marks with a span"),
        (make_continuum(2, [(at % 2, at, at + 1, 0) for at in range(4001)]), "more than 4,000 marks"),
    ],
)
def test_undefined_is_nan_with_a_reason(marks: Continuum, told: str) -> None:
    text_gamma = measure_text_gamma(job(marks))
    assert math.isnan(text_gamma.gamma[0])
    assert told in text_gamma.why


def test_samples_depend_on_the_seed_and_the_document_alone() -> None:
    marks = random_continuum(np.random.default_rng(1), 4, 3)
    assert measure_text_gamma(job(marks)).expected[0] == measure_text_gamma(job(marks)).expected[0]
    assert measure_text_gamma(job(marks)).expected[0] != measure_text_gamma(job(marks, seed=1)).expected[0]
    assert measure_text_gamma(job(marks)).expected[0] != measure_text_gamma(job(marks, document="e")).expected[0]


def test_the_precision_rule_draws_as_many_samples_as_it_needs() -> None:
    marks = random_continuum(np.random.default_rng(2), 3, 3)
    first = measure_text_gamma(job(marks, GammaSettings(samples=10)))
    variation = first.error[0] * math.sqrt(10) * math.sqrt(9 / 10) / first.expected[0]
    text_gamma = measure_text_gamma(job(marks, GammaSettings(samples=10, precision=0.05)))
    assert text_gamma.samples == max(10, math.ceil((1.96 * variation / 0.05) ** 2))
    assert text_gamma.samples > 10


def test_an_unproven_gamma_is_told_with_its_gap() -> None:
    def text(lowest: tuple[float, float]) -> TextGamma:
        return TextGamma("d", np.array([2.0]), np.array([0.5]), np.array([1.0]), np.array([0.0]), lowest)

    assert unproven_gamma_gap([text((0.5, 1.0))]) == 0
    assert unproven_gamma_gap([text((0.4, 1.0))]) == pytest.approx(0.1)
    assert unproven_gamma_gap([text((0.5, 0.8))]) == pytest.approx(0.5 / 0.8 - 0.5)
    assert unproven_gamma_gap([text((0.5, 0.0))]) == math.inf


def test_a_gap_is_printed() -> None:
    marked_study = make_marked_study(
        {"d": TEXT},
        {("d", person): [(at, at + width, "red") for at in range(0, 12, 2)] for width, person in enumerate("pqrs", 1)},
    )
    findings = agree(marked_study, ["gamma", "gamma-texts"], gamma=GammaSettings(samples=2, work=1e-6), draws=0)
    assert all("gap" in each.columns and "gap:" in str(each.estimate.signature) for each in findings)


# --- chance ------------------------------------------------------------------------------------------------------


@given(small_continua(), st.sampled_from(list(CHANCE_SAMPLERS)), st.integers(0, 2**32 - 1))
def test_samples_are_continua_like_the_one_at_hand(marks: Continuum, sampler: str, seed: int) -> None:
    drawn = CHANCE_SAMPLERS[sampler](marks, np.random.default_rng(seed))
    assert drawn.annotators == marks.annotators
    assert len(drawn) > 0
    assert (drawn.end > drawn.start).all()
    assert (np.diff(drawn.owner) >= 0).all()
    assert set(drawn.category) <= set(marks.category)


@given(small_continua(), st.integers(0, 2**32 - 1))
def test_shuffling_moves_the_marks_of_an_annotator_together_around_the_text(marks: Continuum, seed: int) -> None:
    drawn = CHANCE_SAMPLERS["shuffle"](marks, np.random.default_rng(seed))
    patterns = [_pattern(marks, who) for who in range(marks.annotators)]
    for who in range(drawn.annotators):
        assert _pattern(drawn, who) in patterns
    assert (drawn.start <= marks.length).all()


def _pattern(marks: Continuum, who: int) -> list[tuple[float, int]]:
    own = marks.owner == who
    return sorted(zip((marks.end - marks.start)[own].round(6), marks.category[own], strict=True))


def test_shuffled_annotators_are_moved_apart() -> None:
    marks = make_continuum(4, [(who, 0, 20, 0) for who in range(4)], length=200)
    for seed in range(30):
        moved = np.sort(CHANCE_SAMPLERS["shuffle"](marks, np.random.default_rng(seed)).start % 200)
        assert np.diff(moved).min() >= 10


# --- categories --------------------------------------------------------------------------------------------------


@given(small_continua(annotators=4, marks=8))
def test_category_sums_equal_their_definition(marks: Continuum) -> None:
    clusters = best_alignment(marks).clusters
    for delta in (1.0, 2.0):
        sums = category_disagreement_sums(marks, clusters, Dissimilarity(delta=delta), 3)
        assert sums == pytest.approx(np.array(slow_sums(marks, clusters)))


def slow_sums(marks: Continuum, clusters: Bools) -> list[list[float]]:
    """Compute the sums pair by pair."""
    sums = [[0.0, 0.0] for _ in range(4)]
    for cluster in clusters:
        members = np.flatnonzero(cluster).tolist()
        for at, one in enumerate(members):
            for other in members[at + 1 :]:
                weight = max(0.0, 1 - slow_distance(marks, one, other, beta=0.0)) / (len(members) - 1)
                for row in {-1, int(marks.category[one]), int(marks.category[other])}:
                    sums[row + 1][0] += weight * (marks.category[one] != marks.category[other])
                    sums[row + 1][1] += weight
    return sums


def test_labels_of_one_group_are_half_as_unlike() -> None:
    table = label_group_distances(load_shipped("scarecrow"), ["grammar-usage", "redundant", "bad-math", "no type"])
    assert table[0, 1] == 0.5
    assert table[0, 2] == table[0, 3] == table[3, 4] == 1
    assert (np.diag(table) == 0).all()


# --- many texts --------------------------------------------------------------------------------------------------


def test_pooled_gamma_weighs_texts_by_their_marks() -> None:
    marked_study = make_marked_study({"d": TEXT, "e": TEXT}, READ)
    texts = measure_gamma_of_texts(view(marked_study), QUICK, 0)
    top = sum(each.weight[0] * each.observed[0] for each in texts)
    bottom = sum(each.weight[0] * each.expected[0] for each in texts)
    estimates = values(marked_study, "gamma", "gamma-mean", "gamma-texts")
    assert estimates["gamma/any"].value == pytest.approx(1 - top / bottom)
    assert estimates["gamma-mean/any"].value == pytest.approx(np.mean([each.gamma[0] for each in texts]))
    assert estimates["gamma-texts/any/e"].value == pytest.approx(texts[1].gamma[0])
    assert (
        estimates["gamma-texts/any/d"].low < estimates["gamma-texts/any/d"].value < estimates["gamma-texts/any/d"].high
    )


def test_texts_without_a_gamma_are_left_out() -> None:
    marked_study = make_marked_study({"d": TEXT, "e": TEXT}, READ)
    more = make_marked_study(
        {"d": TEXT, "e": TEXT, "f": TEXT, "g": TEXT},
        {**READ, ("f", "p"): [(0, 3, "red")], ("g", "p"): [], ("g", "q"): []},
    )
    assert values(more, "gamma")["gamma/any"].value == values(marked_study, "gamma")["gamma/any"].value
    texts = values(more, "gamma-texts")
    assert texts["gamma-texts/any/f"].why == "the text has fewer than two annotators"
    assert texts["gamma-texts/any/g"].why == "the text has no marks with a span"


def test_nothing_to_measure_is_nan_with_a_reason() -> None:
    estimates = values(make_marked_study({"d": TEXT}, {("d", "p"): [(0, 3, "red")]}), "gamma", "gamma-cat", "gamma-k")
    assert all(math.isnan(each.value) and "two annotators" in each.why for each in estimates.values())
    none = values(make_marked_study({"d": TEXT}, {("d", "p"): [(0, 3, "red")], ("d", "q"): []}), "gamma-cat")
    assert none["gamma-cat/any"].why == "no text has aligned marks both observed and by chance"
    red: list[MarkTuple] = [(0, 3, "red"), (4, 7, "red"), (8, 13, "red"), (14, 18, "red")]
    one_label = make_marked_study({"d": TEXT}, {("d", "p"): red, ("d", "q"): red})
    assert values(one_label, "gamma-cat")["gamma-cat/any"].why == "the disorder expected by chance is 0"


def test_pooled_votes_do_not_say_who_marked_what() -> None:
    estimates = values(make_marked_study({"d": TEXT}, {("d", "crowd"): [(0, 3, "red")]}, kind="pooled"), "gamma")
    assert math.isnan(estimates["gamma/any"].value)


def test_gamma_cat_and_gamma_k_look_at_labels() -> None:
    same = [(0, 7, "red"), (14, 18, "blue")]
    estimates = values(
        make_marked_study({"d": TEXT}, {("d", person): same for person in "pqr"}), "gamma-cat", "gamma-k"
    )
    assert estimates["gamma-cat/any"].value == 1
    assert {key: each.value for key, each in estimates.items() if not math.isnan(each.value)} == {
        "gamma-cat/any": 1,
        "gamma-k/red": 1,
        "gamma-k/blue": 1,
    }
    assert math.isnan(estimates["gamma-k/green"].value)


def test_intervals_hold_documents_and_chance() -> None:
    texts = [_text(0.3, 1.0, 0.1), _text(0.5, 1.0, 0.1)]
    fixed = np.ones((400, 2))
    spread = pooled_gamma(texts, fixed, 0)[1:, 0]
    assert pooled_gamma(texts, fixed, 0)[0, 0] == pytest.approx(0.6)
    assert spread.std() == pytest.approx(0.4 * math.hypot(0.1, 0.1) / 2, rel=0.15)


def _text(observed: float, expected: float, error: float) -> TextGamma:
    row = [np.array([each]) for each in (2.0, observed, expected, error)]
    return TextGamma("d", row[0], row[1], row[2], row[3], (observed, expected))


def test_every_setting_is_in_the_signature() -> None:
    asked = GammaSettings(alpha=3, sampler="statistical", samples=4, precision=0.4, soft=True, categories="groups")
    [found] = agree(make_marked_study({"d": TEXT}, READ_D), ["gamma"], gamma=asked, draws=0, seed=7)
    said = str(found.estimate.signature)
    for part in (
        "statistic:gamma|unit:mark",
        "alpha:3",
        "sampler:statistical",
        "samples:4",
        "precision:0.4",
        "soft:True",
    ):
        assert part in said
    for part in ("categories:groups", "delta:1.0", "beta:1.0", "work:60.0", "seed:7"):
        assert part in said
    assert "tokens" not in said


READ_D = {key: marks for key, marks in READ.items() if key[0] == "d"}


@pytest.mark.long
def test_the_result_does_not_depend_on_the_number_of_workers() -> None:
    marked_study = make_marked_study({"d": TEXT, "e": TEXT}, READ)
    engines = [LocalEngine(workers, alone=0.0) for workers in (1, 2)]
    alone, several = (measure_gamma_of_texts(view(marked_study), QUICK, 0, Executor(engine)) for engine in engines)
    for one_, other in zip(alone, several, strict=True):
        np.testing.assert_array_equal(one_.expected, other.expected)


# --- from a study ------------------------------------------------------------------------------------------------


def unusual() -> Study:
    """Build a discontinuous mark, an omission, and marks on the prompt, without a span and without a label."""
    document = Document(id="d", text=TEXT, context={"prompt": "say"})

    def mark(id: str, *spans: Span, label: str | None = "red", unlocated: str = "") -> Mark:
        quotes = tuple(span.extract(document.part_text(span.part) or "") for span in spans)
        return Mark(id=id, spans=spans, quotes=quotes, label=label, unlocated=unlocated)

    marks = (
        mark("two", Span(0, 3), Span(8, 13)),
        mark("gap", Span(4, 4)),
        mark("prompt", Span(0, 3, "prompt")),
        mark("lost", unlocated="not found"),
        mark("bare", Span(14, 18), label=None),
    )
    people = [Annotator(id=id, kind="human") for id in ("p", "q")]
    read = [Annotation(id=each.id, document="d", annotator=each.id, protocol="test@1") for each in people]
    return Study.from_items([PROTOCOL, document, *people, read[0].model_copy(update={"marks": marks}), read[1]])


def test_unusual_marks_have_their_place() -> None:
    selection = view(unusual())
    [text] = build_document_continua(selection.study, selection.categories)
    assert text.marks == ("two", "gap", "bare")
    assert text.continuum.annotators == 2
    assert text.continuum.start.tolist() == [0, 3.5, 14]
    assert text.continuum.end.tolist() == [13, 4.5, 18]
    [found] = agree(selection, ["gamma"], gamma=QUICK, draws=0)
    assert "left_out:2" in str(found.estimate.signature)
    assert not math.isnan(found.estimate.value)


def test_alignment_by_gamma_is_data() -> None:
    marked_study = make_marked_study({"d": TEXT, "e": TEXT}, READ)
    rows = align_marks(view(marked_study), "gamma")
    found = {tuple(marks) for marks in rows.group_by("cluster").agg("mark")["mark"]}
    assert found == {("d/p/0", "d/q/0"), ("d/p/1", "d/q/1"), ("e/p/0",), ("e/q/0",)}
    assert rows["cluster"].to_list() == [0, 0, 1, 1, 2, 3]
    placeless = align_marks(view(unusual()), "gamma")
    assert placeless["cluster"].n_unique() == len(placeless) == 5


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_alignment_by_gamma_has_each_annotator_once_a_cluster(seed: int) -> None:
    rng = np.random.default_rng(seed)
    read = {("d", person): [_mark(rng) for _ in range(rng.integers(0, 4))] for person in "pqrs"}
    rows = align_marks(view(make_marked_study({"d": TEXT}, read)), "gamma")
    assert rows.select("cluster", "annotator").is_unique().all()
    assert len(rows) == sum(map(len, read.values()))


def _mark(rng: np.random.Generator) -> tuple[int, int, str]:
    start = int(rng.integers(0, 17))
    return start, int(rng.integers(start, 19)), str(rng.choice(["red", "blue"]))


def test_the_order_of_documents_and_annotations_does_not_matter() -> None:
    marked_study = make_marked_study({"d": TEXT, "e": TEXT}, READ)
    turned = replace(
        marked_study,
        documents=marked_study.documents.reverse(),
        annotations=marked_study.annotations.reverse(),
        marks=marked_study.marks.reverse(),
    )
    assert values(turned, "gamma")["gamma/any"].value == pytest.approx(values(marked_study, "gamma")["gamma/any"].value)
    assert pl.DataFrame(align_marks(view(turned), "gamma").select("mark", "cluster")).height == 6


# --- settings ----------------------------------------------------------------------------------------------------


def test_settings_are_read_from_the_command_line() -> None:
    asked = GammaSettings.parse(["sampler=statistical", "samples=12", "precision=0.02", "soft=yes", "alpha=3"])
    assert asked == GammaSettings(sampler="statistical", samples=12, precision=0.02, soft=True, alpha=3.0)


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ("sampel=3", "unknown gamma setting 'sampel'; did you mean 'sample"),
        ("samples=many", "samples must be a whole number, found 'many'"),
        ("samples=1", "samples must be at least 2, found 1"),
        ("soft", "soft must be yes or no, found ''"),
        ("alpha=x", "alpha must be a number"),
        ("alpha=-1", "at least 0 and not both 0"),
        ("delta=0", "delta must be greater than 0"),
        ("sampler=shufle", "did you mean 'shuffle'"),
        ("categories=group", "did you mean 'groups'"),
        ("precision=2", "must be at least 0 and less than 1"),
        ("work=0", "work must be greater than 0, found 0"),
        ("seconds=9", "unknown gamma setting .seconds.; limit the work instead, e.g. work=60"),
    ],
)
def test_bad_settings_say_the_way_out(pair: str, told: str) -> None:
    with pytest.raises(FinecombError, match=told):
        GammaSettings.parse([pair])
