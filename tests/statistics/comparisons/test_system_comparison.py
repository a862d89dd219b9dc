from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import polars as pl
import pytest
from scipy import stats

from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.engine.partitions import Executor
from finecomb.statistics.comparisons.system_comparison import compare_systems_pairwise, statistic_per_annotation
from finecomb.statistics.selection.view import View, view
from tests.engine.faulty_work import PicklingEngine

PROTOCOL = Protocol(name="t", version="1", title="T", summary="T.", labels=(Label(name="red"), Label(name="blue")))
TEXT = "a b c d e f g h i j"


def marked(document: str, person: str, red: int, blue: int = 0, **answers: int) -> Annotation:
    id = f"{document}/{person}"
    marks = tuple(
        Mark(
            id=f"{id}/{at}",
            spans=(Span(2 * at, 2 * at + 1),),
            quotes=(TEXT[2 * at],),
            label="red" if at < red else "blue",
        )
        for at in range(red + blue)
    )
    return Annotation(id=id, document=document, annotator=person, protocol="t@1", marks=marks, answers=answers)


def texts(model: str, prompts: Iterable[object], **more: str) -> list[Document]:
    return [
        Document(id=f"{model}-{at}", text=TEXT, context={"prompt": f"Say {prompt}"}, meta={"model": model, **more})
        for at, prompt in enumerate(prompts)
    ]


def small(first: list[int], second: list[int], prompts: tuple[Iterable[object], Iterable[object]]) -> View:
    documents = [*texts("x", prompts[0]), *texts("y", prompts[1])]
    annotations = [
        marked(document.id, "anna", count) for document, count in zip(documents, [*first, *second], strict=True)
    ]
    return view(Study.from_items([PROTOCOL, *documents, Annotator(id="anna", kind="human"), *annotations]))


def test_shared_prompts_are_paired_and_the_test_is_exact_when_few() -> None:
    (found,) = compare_systems_pairwise(small([3, 4, 5], [1, 1, 1], ("abc", "cba")), statistic="count")
    assert found.columns["test"] == "paired permutation, exact"
    assert found.columns["n"] == "3"
    assert found.columns["p"] == pytest.approx(2 / 8)
    assert found.estimate.value == 3
    assert (found.columns["a_mean"], found.columns["b_mean"]) == (4, 1)


def test_other_prompts_are_not_paired() -> None:
    (found,) = compare_systems_pairwise(small([3, 4, 5], [1, 1, 1], ("abc", "def")), statistic="count")
    assert found.columns["test"] == "unpaired permutation, exact"
    assert found.columns["n"] == "3+3"
    assert found.columns["p"] == pytest.approx(2 / 20)


def test_partly_shared_prompts_are_combined_unless_asked_otherwise() -> None:
    first, second = [3, 4, 5, 4, 6, 2, 3, 5], [1, 2, 1, 0, 1, 3, 2, 1]
    some = small(first, second, ("abcdefgh", "efghijkl"))
    designs = {
        pairing: compare_systems_pairwise(some, statistic="count", pairing=pairing)[0].columns
        for pairing in ("auto", "yes", "no")
    }
    assert [(columns["test"], columns["n"]) for columns in designs.values()] == [
        ("partly paired permutation", "4 pairs, 4+4"),
        ("paired permutation, exact", "4"),
        ("unpaired permutation", "8+8"),
    ]


def test_one_unmatched_prompt_does_not_make_the_comparison_unpaired() -> None:
    some = small([3, 4, 5, 4, 7], [1, 2, 1, 0, 9], ("abcde", "abcdf"))
    (found,) = compare_systems_pairwise(some, statistic="count")
    assert found.columns["n"] == "4"
    assert found.columns["test"] == "paired permutation, exact"


def test_simultaneous_intervals_agree_with_adjusted_p_values() -> None:
    rng = np.random.default_rng(1)
    first, second = (rng.poisson(mean, 12).tolist() for mean in (4.0, 1.5))
    seen = small(first, second, (range(12), range(12)))
    found = compare_systems_pairwise(seen, statistic="count", labels=["any", "red"], draws=999)
    for row in found:
        low, high, p = (row.columns[name] for name in ("simultaneous_low", "simultaneous_high", "p_adjusted"))
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert isinstance(p, float)
        assert (low <= 0 <= high) == (p > 0.05)
        assert p >= float(str(row.columns["p"]))
        assert low <= row.estimate.low
        assert row.estimate.high <= high
    holm = compare_systems_pairwise(seen, statistic="count", correction="holm", draws=999)
    assert "simultaneous_low" not in holm[0].columns


def test_several_texts_of_a_prompt_are_averaged() -> None:
    (found,) = compare_systems_pairwise(small([2, 4, 6], [1, 1], ("aab", "ab")), statistic="count")
    assert found.columns["n"] == "2"
    assert found.columns["a_mean"] == pytest.approx((3 + 6) / 2)


def test_texts_are_paired_by_a_given_key() -> None:
    documents = [
        document.model_copy(update={"meta": {**document.meta, "game": str(at % 3)}})
        for at, document in enumerate([*texts("x", "abc"), *texts("y", "def")])
    ]
    annotations = [marked(each.id, "anna", at) for at, each in enumerate(documents)]
    seen = view(Study.from_items([PROTOCOL, *documents, Annotator(id="anna", kind="human"), *annotations]))
    assert (
        compare_systems_pairwise(seen, statistic="count", key="game")[0].columns["test"] == "paired permutation, exact"
    )
    with pytest.raises(FinecombError, match="no document has the meta field 'gaem' to pair by"):
        compare_systems_pairwise(seen, statistic="count", key="gaem")


def test_conditions_that_read_the_same_texts_are_paired_by_text() -> None:
    documents = texts("x", "abcd")
    people = [Annotator(id=name, kind="human", condition=name) for name in ("trained", "none")]
    annotations = [
        marked(document.id, person.id, 3 if person.id == "trained" else at % 2)
        for at, document in enumerate(documents)
        for person in people
    ]
    (found,) = compare_systems_pairwise(
        view(Study.from_items([PROTOCOL, *documents, *people, *annotations])), "condition", "count"
    )
    assert (found.columns["a"], found.columns["b"], found.columns["n"]) == ("none", "trained", "4")
    assert found.estimate.value == pytest.approx(-2.5)


def test_labels_share_one_correction() -> None:
    seen = view(Study.from_items(build_demo_study(5, 0)))
    found = compare_systems_pairwise(seen, labels=["any", "redundant"], correction="bonferroni", draws=500)
    assert len(found) == 12
    assert all(row.columns["p_adjusted"] == min(1, 12 * float(str(row.columns["p"]))) for row in found)


def test_comparisons_are_the_same_whoever_makes_them_and_in_whatever_order() -> None:
    view = small([3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8], (range(6), range(6)))
    alone = compare_systems_pairwise(view, statistic="count", labels=["any", "red", "blue"], draws=200)
    spread = Executor(PicklingEngine())
    assert (
        compare_systems_pairwise(view, statistic="count", labels=["any", "red", "blue"], draws=200, spread=spread)
        == alone
    )


def test_the_order_of_labels_changes_no_p() -> None:
    seen = view(Study.from_items(build_demo_study(5, 0)))
    one, other = (
        compare_systems_pairwise(seen, labels=labels, pairing="no", draws=50)
        for labels in (["any", "incoherent"], ["incoherent"])
    )
    assert [row.columns["p"] for row in one[6:]] == [row.columns["p"] for row in other]


def test_an_answer_and_an_own_function_can_be_compared() -> None:
    documents = [*texts("x", "abc"), *texts("y", "abc")]
    annotations = [marked(each.id, "anna", 1, rating=at) for at, each in enumerate(documents)]
    seen = view(Study.from_items([PROTOCOL, *documents, Annotator(id="anna", kind="human"), *annotations]))

    def twice(part: View) -> pl.DataFrame:
        return statistic_per_annotation(part, "answer:rating").with_columns(pl.col("value") * 2)

    assert compare_systems_pairwise(seen, statistic="answer:rating")[0].estimate.value == pytest.approx(-3)
    found = compare_systems_pairwise(seen, statistic=twice)[0]
    assert found.columns["measure"] == "twice"
    assert found.estimate.value == pytest.approx(-6)


def test_one_document_is_no_comparison() -> None:
    (found,) = compare_systems_pairwise(small([3, 4], [1], ("ab", "c")), statistic="count")
    assert math.isnan(found.estimate.value)
    assert found.estimate.why == "a system has fewer than two clusters of documents with a value"
    (found,) = compare_systems_pairwise(small([3, 4], [1], ("ab", "a")), statistic="count", pairing="yes")
    assert found.estimate.why == "fewer than two clusters of documents can be paired"


def test_one_system_is_refused() -> None:
    seen = view(Study.from_items([PROTOCOL, *texts("x", "ab"), Annotator(id="a", kind="human"), marked("x-0", "a", 1)]))
    with pytest.raises(FinecombError, match="requires at least two systems; model has only 'x'"):
        compare_systems_pairwise(seen)


def test_wrong_names_are_refused() -> None:
    seen = small([3, 4], [1, 2], ("ab", "ab"))
    with pytest.raises(FinecombError, match="unknown document statistic 'covrage'; did you mean 'coverage'"):
        compare_systems_pairwise(seen, statistic="covrage")
    with pytest.raises(FinecombError, match="unknown label 'green'"):
        compare_systems_pairwise(seen, labels=["green"])
    with pytest.raises(FinecombError, match="pairing must be auto, yes or no"):
        compare_systems_pairwise(seen, pairing="maybe")  # type: ignore[arg-type]
    with pytest.raises(FinecombError, match="marks have no severity"):
        compare_systems_pairwise(seen, statistic="severity-coverage")


def test_two_halves_of_one_system_differ_one_time_in_twenty() -> None:
    alarms, runs = 0, 60
    source = np.random.default_rng(5)
    for seed in range(runs):
        first, second = (source.integers(0, 6, 12).tolist() for _ in range(2))
        (found,) = compare_systems_pairwise(
            small(first, second, (range(12), range(12, 24))), statistic="count", draws=199, seed=seed
        )
        alarms += float(str(found.columns["p"])) <= 0.05
    assert alarms <= stats.binom.ppf(0.999, runs, 0.05)


def test_an_option_that_changes_nothing_is_refused() -> None:
    with pytest.raises(FinecombError, match=r"^overlap does not apply to count; it applies to coverage"):
        compare_systems_pairwise(Study.from_items(build_demo_study(readers=2)), "model", "count", overlap="union")
