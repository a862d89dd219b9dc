from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.statistics.judges.estimates import FIXED_SHARES, PEOPLE_ALONE, WITH_JUDGES, estimate_means
from finecomb.statistics.judges.ppi import TextValues, ppi_mean
from tests.statistics.judges.judge_studies import MarkTuples, make_judge_study, simulate_annotator


def some(marks: dict[str, MarkTuples], count: int, seed: int = 0) -> dict[str, MarkTuples]:
    chosen = np.random.default_rng(seed).permutation(sorted(marks))[:count]
    return {name: marks[name] for name in sorted(chosen)}


def world(read: int = 30, texts: int = 120, **more: object) -> Study:
    person, judge = (
        simulate_annotator(texts, 0, finds=0.95, alarms=0.02),
        simulate_annotator(texts, 1, finds=0.9, alarms=0.05),
    )
    metas = {name: {"model": "big" if at % 3 else "small"} for at, name in enumerate(sorted(person))}
    return make_judge_study({"p0": some(person, read), "judge": judge}, {"judge": "llm"}, metas=metas, **more)  # type: ignore[arg-type]


def counts(whole: Study, name: str) -> dict[str, int]:
    return {each.document: len(each.marks) for each in whole.iter_annotations() if each.annotator == name}


def test_rows_are_people_shares_and_judges() -> None:
    whole = world()
    result = estimate_means(whole, ["judge"])
    assert [each.columns["method"] for each in result.findings] == [PEOPLE_ALONE, FIXED_SHARES, WITH_JUDGES]
    people, judge = counts(whole, "p0"), counts(whole, "judge")
    assert result.find(method=PEOPLE_ALONE).value == pytest.approx(np.mean(list(people.values())))
    names = sorted(judge)
    values = TextValues(
        np.array([float(people[name]) for name in names if name in people]),
        np.array([at for at, name in enumerate(names) if name in people]),
        np.array([[float(judge[name]) for name in names]]),
        np.array([0 if at % 3 else 1 for at in range(len(names))]),
    )
    assert result.find(method=WITH_JUDGES).value == pytest.approx(ppi_mean(values).value)
    assert (result.find(method=WITH_JUDGES).low, result.find(method=WITH_JUDGES).high) == pytest.approx(
        ppi_mean(values).interval()
    )


def test_a_good_judge_is_worth_texts_and_noise_is_worth_none() -> None:
    good = estimate_means(world(60, 400), ["judge"], strata=()).findings[-1]
    assert float(str(good.columns["worth"])) > 90
    assert good.columns["advice"] == "the judges help"
    person, noise = simulate_annotator(120, 0), simulate_annotator(120, 1)
    shuffled = dict(
        zip(sorted(noise), [noise[name] for name in np.random.default_rng(3).permutation(sorted(noise))], strict=True)
    )
    useless = estimate_means(
        make_judge_study({"p0": some(person, 30), "judge": shuffled}, {"judge": "llm"}), ["judge"]
    ).findings[-1]
    assert useless.columns["advice"] in (
        "the judges do not improve the estimate; use people alone",
        "the benefit of the judges is uncertain",
    )
    assert float(str(useless.columns["added_low"])) <= 0


def test_systems_have_their_rows_and_differences() -> None:
    result = estimate_means(world(40), ["judge"], by="model")
    assert {each.columns["model"] for each in result.findings} == {"big", "small", "big - small"}
    difference = result.find(model="big - small", method=PEOPLE_ALONE)
    parts = [result.find(model=name, method=PEOPLE_ALONE).value for name in ("big", "small")]
    assert difference.value == pytest.approx(parts[0] - parts[1])


def test_differences_are_paired_by_prompt() -> None:
    marks = simulate_annotator(60, 0)
    metas = {name: {"model": "ab"[at % 2], "prompt_id": str(at // 2)} for at, name in enumerate(sorted(marks))}
    whole = make_judge_study({"p0": marks}, metas=metas)
    difference = estimate_means(whole, by="model").find(model="a - b", method=PEOPLE_ALONE)
    own = counts(whole, "p0")
    names = sorted(own)
    pairs = np.array([own[names[at]] - own[names[at + 1]] for at in range(0, 60, 2)], dtype=float)
    values = TextValues(pairs, np.arange(30), np.zeros((0, 30)))
    assert difference.value == pytest.approx(pairs.mean())
    assert (difference.low, difference.high) == pytest.approx(ppi_mean(values).interval(signed=True))


@pytest.mark.parametrize("measure", ["count", "coverage", "rate-1000", "marked-documents"])
def test_every_measure_has_an_interval_around_the_plain_value(measure: str) -> None:
    from finecomb.statistics.measures.annotation_measures import measure as measured
    from finecomb.statistics.selection.view import Filters, view

    whole = world()
    ours = estimate_means(whole, (), [measure], people=["p0"], strata=()).find(method=PEOPLE_ALONE)
    plain = measured(view(whole, Filters(annotators=("p0",))), [measure], draws=0)
    assert ours.value == pytest.approx(next(each for each in plain if each.columns["label"] == "any").estimate.value)
    assert ours.low <= ours.value <= ours.high
    assert ours.low < ours.high


def test_chances_of_being_drawn_are_used() -> None:
    person = simulate_annotator(60, 0)
    names = sorted(person)[:20]
    chances = {("p0", name): {"inclusion": 0.5 if person[name] else 0.1} for name in names}
    whole = make_judge_study({"p0": {name: person[name] for name in names}}, annotation_meta=chances)
    weights = np.array([1 / chances["p0", name]["inclusion"] for name in names])
    values = np.array([len(person[name]) for name in names])
    assert estimate_means(whole, strata=()).find(method=PEOPLE_ALONE).value == pytest.approx(
        weights @ values / weights.sum()
    )
    partly = make_judge_study({"p0": person}, annotation_meta=chances)
    with pytest.raises(FinecombError, match="40 of 60 human-annotated texts"):
        estimate_means(partly)


def test_texts_chosen_by_hand_are_told() -> None:
    person, judge = simulate_annotator(120, 0), simulate_annotator(120, 1, finds=1, alarms=0)
    worst = sorted(person, key=lambda name: -len(judge[name]))[:30]
    whole = make_judge_study({"p0": {name: person[name] for name in worst}, "judge": judge}, {"judge": "llm"})
    assert "not a random sample" in " ".join(estimate_means(whole, ["judge"]).notes)
    assert not estimate_means(world(), ["judge"]).notes


def test_a_judge_that_saw_a_part_is_told_or_refused() -> None:
    person, judge = simulate_annotator(60, 0), simulate_annotator(60, 1)
    part = {name: judge[name] for name in sorted(judge)[:50]}
    with pytest.raises(FinecombError, match="judge has not annotated 10 of the 60 human-annotated texts"):
        estimate_means(make_judge_study({"p0": person, "judge": part}, {"judge": "llm"}), ["judge"])
    first = {name: person[name] for name in sorted(person)[:20]}
    other = make_judge_study({"p0": first, "judge": part, "more": judge}, {"judge": "llm", "more": "llm"})
    assert "10 texts that not all judges annotated are left out" in " ".join(
        estimate_means(other, ["judge", "more"]).notes
    )


def test_strata_with_one_text_are_refused_when_asked_for() -> None:
    person = simulate_annotator(12, 0)
    metas = {name: {"topic": "rare" if at == 0 else "usual"} for at, name in enumerate(sorted(person))}
    whole = make_judge_study({"p0": person}, metas=metas)
    with pytest.raises(FinecombError, match="stratum rare has fewer than two"):
        estimate_means(whole, strata=["topic"])
    assert [each.columns["method"] for each in estimate_means(whole).findings] == [PEOPLE_ALONE]


def test_all_zeros_have_no_interval_of_width_0() -> None:
    whole = make_judge_study({"p0": {f"d{at}": [] for at in range(20)}})
    count, share = estimate_means(whole, (), ["count", "marked-documents"]).findings
    assert count.estimate.value == 0
    assert np.isnan(count.estimate.low)
    assert "at most 16.8% of texts have an error" in count.estimate.why
    assert (share.estimate.low, share.estimate.high) == pytest.approx((0, 0.168), abs=1e-3)


def test_equal_answers_of_0_say_nothing_about_errors() -> None:
    whole = make_judge_study({"p0": {f"d{at}": [] for at in range(20)}})
    answers = [annotation.model_copy(update={"answers": {"rating": 0}}) for annotation in whole.iter_annotations()]
    rated = Study.from_items([*whole.protocols.values(), *whole.iter_documents(), *whole.iter_annotators(), *answers])
    estimate = estimate_means(rated, (), ["answer:rating"]).findings[0].estimate
    assert estimate.value == 0
    assert estimate.why == "all 20 human-annotated texts have the same value, so there is no interval"


def test_two_texts_are_too_few() -> None:
    whole = make_judge_study({"p0": simulate_annotator(2, 0)})
    assert "at least 3 human-annotated texts, found 2" in estimate_means(whole).findings[0].estimate.why


def test_a_judge_is_nobody_among_people() -> None:
    with pytest.raises(FinecombError, match="named as a judge and as a person"):
        estimate_means(world(), ["judge"], people=["judge"])
    with pytest.raises(FinecombError, match="did you mean 'judge'"):
        estimate_means(world(), ["juge"])


def test_a_judge_that_was_fitted_on_peoples_texts_is_refused() -> None:
    whole = make_judge_study(
        {"p0": simulate_annotator(20, 0), "judge": simulate_annotator(40, 1)}, {"judge": "llm"},
        annotator_meta={"judge": {"trained_on": ["d003", "d030"]}},
    )  # fmt: skip
    with pytest.raises(FinecombError, match="judge was trained on 1 of the 20 human-annotated texts"):
        estimate_means(whole, ["judge"])
