"""Published and recomputed agreement on released data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.formats import Options, read, snac, thomson_reiter
from finecomb.statistics.agreement.agreement import agree
from tests.golden import agreement as golden


def values(found: list[Finding], measure: str) -> dict[str, float]:
    return {str(each.columns["label"]): each.estimate.value for each in found if each.columns["measure"] == measure}


@pytest.fixture(scope="module")
def basketball(data: Path) -> Study:
    path = data / "no_licence_stated" / "thomson_reiter_2020" / "participants_and_annotations.xlsx"
    return Study.from_items(thomson_reiter.read(path, Options()))


@pytest.mark.parametrize(("convention", "figures"), golden.THOMSON_REITER_2020.items())
def test_agreement_by_item_under_every_convention(
    basketball: Study, convention: str, figures: dict[str, float]
) -> None:
    findings = agree(basketball, list(figures), "item", by_label=False, convention=convention, draws=100)
    for each in findings:
        published = figures[str(each.columns["measure"])]
        assert each.estimate.value == pytest.approx(published, abs=5e-4 if published == round(published, 3) else 5e-5)
        assert each.estimate.low < each.estimate.value < each.estimate.high
        assert each.estimate.signature["convention"] == convention


@pytest.mark.parametrize(("convention", "figures"), golden.THOMSON_REITER_2020_COHEN.items())
def test_cohens_kappa_of_each_pair_by_item(
    basketball: Study, convention: str, figures: tuple[float, float, float]
) -> None:
    asked = ["kappa-cohen-pairs", "kappa-cohen"]
    *pairs, mean = agree(basketball, asked, "item", by_label=False, convention=convention, draws=0)
    assert [each.columns["pair"] for each in pairs] == ["T1, T2", "T1, T3", "T2, T3"]
    assert [each.estimate.value for each in pairs] == pytest.approx(figures, abs=5e-5)
    assert mean.estimate.value == pytest.approx(np.mean(figures), abs=5e-5)


def test_two_agree_by_item_is_the_share_of_errors_in_the_gold_standard(basketball: Study) -> None:
    findings = agree(basketball, ["two-agree"], "item", by_label=False, draws=0)
    assert findings[0].estimate.value == pytest.approx(100 * 418 / 536)


@pytest.mark.parametrize("tokens", golden.SNAC_2022)
def test_pooled_votes_reproduce_snacs_table_5(data: Path, tokens: str) -> None:
    crowd = Study.from_items(snac.read(data / "snac" / "SNaC_data.json", Options()))
    findings = agree(crowd, ("alpha", "two-agree", "kappa-cohen"), tokens=tokens, draws=0)
    for label, (published_alpha, published_share) in golden.SNAC_2022[tokens].items():
        assert values(findings, "alpha")[label] == pytest.approx(published_alpha, abs=5e-4)
        assert values(findings, "two-agree")[label] == pytest.approx(published_share, abs=0.051)
    whys = {each.estimate.why for each in findings if each.columns["measure"] == "kappa-cohen"}
    assert whys == {"pooled votes do not identify the annotators"}


@pytest.fixture(scope="module")
def d2t(data: Path) -> Study:
    return read(data / "span_annotation/annotations/human/d2t-eval/iaa")


def test_characters_and_tokens_of_29_annotators(d2t: Study) -> None:
    findings = agree(d2t, ("alpha", "two-agree"), "char", draws=0)
    assert list(values(findings, "alpha")) == list(golden.D2T_LABELS)
    assert list(values(findings, "alpha").values()) == pytest.approx(golden.D2T_ALPHA_CHARACTERS, abs=5e-5)
    assert list(values(findings, "two-agree").values()) == pytest.approx(golden.D2T_TWO_AGREE_CHARACTERS, abs=5e-3)
    findings = agree(d2t, ("alpha",), tokens="whitespace", draws=0)
    assert list(values(findings, "alpha").values()) == pytest.approx(golden.D2T_ALPHA_WHITESPACE, abs=5e-5)


def test_pairs_of_29_annotators(d2t: Study) -> None:
    findings = agree(d2t, [*golden.D2T_PAIRS, "pearson"], "char", by_label=False, draws=0)
    assert {name: values(findings, name)["any"] for name in golden.D2T_PAIRS} == pytest.approx(
        golden.D2T_PAIRS, abs=5e-5
    )
    assert values(findings, "pearson")["any"] == pytest.approx(golden.D2T_PEARSON, abs=5e-4)
    every = agree(d2t, ["kappa-cohen-pairs"], by_label=False, draws=0)
    assert len(every) == golden.D2T_NUMBER_OF_PAIRS


def test_only_first_rounds_count(data: Path) -> None:
    tasks = read(data / "span_annotation/annotations/human/d2t-eval/qualification/qualification-task")
    findings = agree(tasks, ("alpha",), "char", by_label=False, draws=0)
    assert findings[0].estimate.value == pytest.approx(golden.D2T_QUALIFICATION_ALPHA, abs=5e-5)
