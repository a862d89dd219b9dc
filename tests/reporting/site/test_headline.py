"""Sentences of the headline, which must be true for every way of reaching them."""

from __future__ import annotations

import math

import pytest

from finecomb.core.results import Estimate, Signature
from finecomb.reporting.site.headline import (
    describe_agreement,
    exception_statement,
    headline_sentence,
    robustness_statement,
)

REVERSED = (
    "The difference is reversed for y (−2.00 [−3.00, −1.00]), and reversed or not significant for 1 other error type."
)
UNDEFINED = (math.nan, math.nan, math.nan)


def estimate(value: float, low: float, high: float, why: str = "no pairs") -> Estimate:
    return Estimate(value, low, high, Signature(()), why if math.isnan(value) else "")


@pytest.mark.parametrize(
    ("gap", "ratio", "sentence"),
    [
        ((2.0, 1.8, 2.2), (0.5, 0.45, 0.55), "a has half the error rate of b."),
        ((2.0, 1.0, 3.0), (0.5, 0.2, 0.8), "a has a lower error rate than b."),
        ((1.0, -1.0, 3.0), (0.5, 0.2, 1.8), "a and b do not differ significantly in error rate."),
        (UNDEFINED, UNDEFINED, "There are too few texts to compare a and b."),
    ],
)
def test_the_sentence_follows_the_interval_of_the_difference(
    gap: tuple[float, float, float], ratio: tuple[float, float, float], sentence: str
) -> None:
    systems = {"b": estimate(4, 3, 5), "a": estimate(2, 1, 3)}
    assert headline_sentence(("a", "b"), systems, estimate(*gap), estimate(*ratio)) == sentence


@pytest.mark.parametrize(
    ("systems", "sentence"),
    [
        ({}, "No annotations yet."),
        ({"a": UNDEFINED}, "No error rate is available."),
        ({"all texts": (2, 1, 3)}, "The texts name no system, so there is no comparison between systems."),
        ({"human": (2, 1, 3)}, "Human text is the only group of texts, so there is no comparison between systems."),
    ],
)
def test_without_two_systems_the_sentence_gives_the_reason(
    systems: dict[str, tuple[float, float, float]], sentence: str
) -> None:
    estimates = {name: estimate(*numbers) for name, numbers in systems.items()}
    assert headline_sentence(None, estimates, None, None) == sentence


def test_agreement_gives_no_reason_that_is_not_known() -> None:
    """The reason for a missing alpha was once always given as one annotator per text."""
    assert describe_agreement(None) == "Inter-annotator agreement is not available."
    assert describe_agreement(estimate(*UNDEFINED)) == "Inter-annotator agreement is not available: no pairs."
    assert describe_agreement(estimate(0.42, 0.38, 0.45)) == (
        "Inter-annotator agreement is moderate (Krippendorff’s α = 0.42 [0.38, 0.45])."
    )


@pytest.mark.parametrize(
    ("by_label", "words"),
    [
        ({}, "The difference is not available by error type."),
        ({"x": (2, 1, 3)}, "The difference is significant for every error type."),
        ({"x": (1, -1, 3)}, "The difference is not significant for x (1.00 [−1.00, 3.00])."),
        (
            {"x": (1, -1, 3), "y": (-2, -3, -1)},
            REVERSED,
        ),
    ],
)
def test_exceptions_tell_reversed_from_not_significant(
    by_label: dict[str, tuple[float, float, float]], words: str
) -> None:
    assert exception_statement({name: estimate(*gap) for name, gap in by_label.items()}).text == words


def test_robustness_names_the_annotators_that_the_sign_depends_on() -> None:
    gap = estimate(1, 0.5, 1.5)
    start = "The difference has the same sign in 99% of resamples of the texts"
    assert robustness_statement(gap, 0.99, [("ann", 1.0)]).text == f"{start}."
    assert (
        robustness_statement(gap, 0.99, [("ann", 1.0), ("ben", 2.0)]).text == f"{start}, and without any one annotator."
    )
    assert robustness_statement(gap, 0.99, [("ann", -1.0), ("ben", -2.0)]).text == (
        f"{start}, but not if annotator ann (or 1 other) is left out."
    )
