from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.replacement import REPLACE, verdict_shares

from finecomb.annotators.simulated.simulated_readers import SKILL_BY_F1, SimulatedJudge, simulate_readings
from finecomb.core.errors import ParameterError
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.inference.clusters import Clusters, text_clusters
from finecomb.statistics.judges.calibration import CalibrationOptions, calibrate_against_people
from finecomb.statistics.judges.replacement import (
    MARKS_EVERYTHING,
    MARKS_NOTHING,
    RANDOM_MARKS,
    DisagreementSums,
    run_replacement_test,
    sum_answer_disagreement,
)

FAST = CalibrationOptions(draws=0, levels=("token",), gamma=False)


def total(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.sum(axis=0))


def slow_alpha(pairs: Sequence[tuple[Any, Any]], numeric: bool = False) -> float:
    """Alpha of pairs of answers by its definition, with replacement in the expected disagreement."""

    def apart(one: Any, other: Any) -> float:
        return float((one - other) ** 2 if numeric else one != other)

    shares = {value: count / (2 * len(pairs)) for value, count in Counter(v for pair in pairs for v in pair).items()}
    expected = sum(p * q * apart(one, other) for one, p in shares.items() for other, q in shares.items())
    return float(1 - np.mean([apart(*pair) for pair in pairs]) / expected)


def test_the_simulated_people_have_the_stated_f1_and_half_of_the_texts_are_clean() -> None:
    for f1 in SKILL_BY_F1:
        assert simulate_readings(texts=4000, f1=f1, seed=5).sum_disagreement().human_f1 == pytest.approx(f1, abs=0.02)
    with pytest.raises(ParameterError, match="people's F1 must be"):
        simulate_readings(f1=0.5)


def test_alpha_of_marks_equals_its_definition() -> None:
    readings = simulate_readings("half recall", texts=8, people=3, seed=2)
    people = [reader.to_units(8) for reader in readings.people]
    judge = readings.judge.to_units(8)
    expected_people = slow_alpha(
        [pair for one, other in combinations(people, 2) for pair in zip(one, other, strict=True)]
    )
    expected_judge = slow_alpha([pair for one in people for pair in zip(one, judge, strict=True)])
    values = readings.sum_disagreement().evaluate(total)
    assert values[:2] == pytest.approx([expected_people, expected_judge])
    nothing = slow_alpha([(unit, False) for one in people for unit in one])
    everything = slow_alpha([(unit, True) for one in people for unit in one])
    assert values[2:4] == pytest.approx([nothing, everything])
    assert values[4] == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("is_numeric", [False, True])
def test_alpha_of_answers_equals_its_definition(is_numeric: bool) -> None:
    rng = np.random.default_rng(3)
    people = rng.integers(1, 5, (30, 3)).tolist()
    judge = rng.integers(1, 5, 30).tolist()
    values = sum_answer_disagreement(people, judge, is_numeric).evaluate(total)
    expected = [
        slow_alpha([pair for answers in people for pair in combinations(answers, 2)], is_numeric),
        slow_alpha([(one, own) for answers, own in zip(people, judge, strict=True) for one in answers], is_numeric),
    ]
    assert values[:2] == pytest.approx(expected)


def test_the_limit_of_the_ratio_is_that_of_the_t_test() -> None:
    """Fieller's lower limit r is the ratio for which judge - r people has a one-sided p of 5%."""
    readings = simulate_readings(texts=80, seed=1)
    sums = readings.sum_disagreement()
    ratio = run_replacement_test(sums, text_clusters(80)).ratio
    left_out = sums.evaluate(lambda values: values.sum(axis=0) - values)
    people, judge = sums.evaluate(total)[:2]
    contrast = left_out[:, 1] - ratio.low * left_out[:, 0]
    error = np.sqrt(79 / 80 * np.square(contrast - contrast.mean()).sum())
    assert (judge - ratio.low * people) / error == pytest.approx(1.6644, abs=1e-3)


def test_a_study_gives_the_sums_of_its_arrays() -> None:
    readings = simulate_readings(texts=70, seed=4)
    result = calibrate_against_people(readings.to_study(), "judge", FAST)
    expected = run_replacement_test(readings.sum_disagreement(), text_clusters(70))
    assert result.replacement.ratio.value == pytest.approx(expected.ratio.value)
    assert result.replacement.ratio.low == pytest.approx(expected.ratio.low)
    assert result.verdict == expected.verdict
    assert [row.name for row in result.replacement.baselines] == [MARKS_NOTHING, MARKS_EVERYTHING, RANDOM_MARKS]


@pytest.mark.parametrize(
    ("judge", "f1", "least", "most"),
    [
        ("person", 0.4, 0.8, 1), ("person", 0.6, 0.9, 1), ("half recall", 0.4, 0, 0.05), ("half recall", 0.6, 0, 0.05),
        ("80% agreement", 0.4, 0, 0.12), ("5% recall", 0.4, 0, 0.01), ("marks nothing", 0.4, 0, 0),
        ("marks everything", 0.4, 0, 0), ("random marks", 0.4, 0, 0.01),
    ],
)  # fmt: skip
def test_the_verdict_keeps_its_error_rates(judge: SimulatedJudge, f1: float, least: float, most: float) -> None:
    """A quick version of `benchmarks/replacement.py` with 60 studies per judge."""
    assert least <= verdict_shares(judge, 200, 4, f1, 60).get(REPLACE, 0.0) <= most


@pytest.mark.parametrize("judge", ["marks nothing", "marks everything", "random marks"])
def test_baselines_cannot_be_used(judge: SimulatedJudge) -> None:
    assert verdict_shares(judge, 200, 4, 0.4, 20).get("cannot be used for this", 0.0) >= 0.9


def test_few_texts_few_clusters_and_low_agreement_leave_the_question_open() -> None:
    def run(sums: DisagreementSums, clusters: Clusters) -> tuple[str, str]:
        test = run_replacement_test(sums, clusters)
        return test.verdict, test.undecided_reason

    few = run(simulate_readings(texts=59).sum_disagreement(), text_clusters(59))
    assert few == (
        "too few texts to decide",
        "59 texts were annotated by the judge and two people, but 60 are required",
    )
    prompts = Clusters("prompt", np.arange(70) % 7)
    verdict, why = run(simulate_readings(texts=70).sum_disagreement(), prompts)
    assert (verdict, why) == ("too few texts to decide", "the texts form 7 clusters, but 8 are required")
    random = [simulate_readings("random marks", 100, 1, seed=seed).judge for seed in range(3)]
    noise = type(simulate_readings(texts=1))(100, tuple(random), simulate_readings(texts=100).judge)
    verdict, why = run(noise.sum_disagreement(), text_clusters(100))
    assert verdict == "too few texts to decide"
    assert why.startswith("F1 between people is 0.")


def test_texts_of_one_prompt_are_one_cluster() -> None:
    """Eight copies of each text say no more than one."""
    sums = simulate_readings(texts=30, seed=6).sum_disagreement()
    alone = run_replacement_test(sums, text_clusters(30)).ratio
    copies = np.tile(np.arange(30), 8)

    def repeat(one: Any) -> Any:
        return type(one)(one.moments[copies], one.apart[copies])

    eight = DisagreementSums(
        sums.units[copies], repeat(sums.people), {name: repeat(one) for name, one in sums.candidates.items()},
        sums.expected, sums.human_f1,
    )  # fmt: skip
    together = run_replacement_test(eight, Clusters("prompt", copies)).ratio
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


@pytest.fixture(scope="module")
def mushroom(data: Path) -> list[dict[str, Any]]:
    """The released English test texts of Mu-SHROOM with the marks of each person."""
    files = sorted((data / "outside" / "no_licence_stated" / "mushroom").glob("mushroom.en-tst*.jsonl"))
    records = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    if not records:
        pytest.skip("the data has no texts of Mu-SHROOM")
    return records


def mushroom_study(records: list[dict[str, Any]], kind: str) -> Study:
    protocol = Protocol(
        name="hallucination", title="Hallucinations", summary="Unsupported text.", version="1",
        labels=(Label(name="error", gloss="An error."),),
    )  # fmt: skip
    people = sorted({name for record in records for name in record["annotations"]})
    items: list[Any] = [protocol, *(Annotator(id=name, kind="human") for name in people)]
    items.append(Annotator(id="judge", kind="llm"))
    for record in records:
        text, id = record["model_output_text"], record["id"]
        items.append(Document(id=id, text=text))
        everything = [[0, len(text)]] if kind == "everything" else []
        for name, spans in {**record["annotations"], "judge": everything}.items():
            marks = tuple(
                Mark(id=f"{id}/{name}/{at}", spans=(Span(*span),), quotes=(text[slice(*span)],), label="error")
                for at, span in enumerate(spans)
            )
            items.append(
                Annotation(
                    id=f"{id}/{name}", document=id, annotator=name, protocol=protocol.id, status="submitted",
                    marks=marks,
                )
            )  # fmt: skip
    return Study.from_items(items)


@pytest.mark.parametrize("kind", ["nothing", "everything"])
def test_a_judge_that_marks_nothing_or_everything_cannot_be_used_on_real_texts(
    mushroom: list[dict[str, Any]], kind: str
) -> None:
    result = calibrate_against_people(mushroom_study(mushroom, kind), "judge", FAST)
    assert result.texts >= 60
    assert result.verdict == "cannot be used for this"
    beaten = {baseline.name: baseline.is_beaten for baseline in result.replacement.baselines}
    assert not beaten[f"marks {kind}"]
    assert "as they are" not in result.paragraph
