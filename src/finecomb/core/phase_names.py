"""Parsing of onboarding phase names."""

from __future__ import annotations

from collections.abc import Iterable

from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.records import ONBOARDING_PHASES, OnboardingPhase


def parse_phases(names: Iterable[str]) -> tuple[OnboardingPhase, ...]:
    """Return the phases named in `skip` (comma-separated or several strings), in onboarding order.

    >>> parse_phases(["training,consent"])
    ('consent', 'training')
    """
    chosen = {word.strip() for name in names for word in name.split(",") if word.strip()}
    for word in sorted(chosen):
        if word not in ONBOARDING_PHASES:
            listed = f"{', '.join(ONBOARDING_PHASES)}{did_you_mean(word, ONBOARDING_PHASES)}"
            raise ParameterError(f"{param('skip', word)}: expected one of {listed}", parameter="skip")
    return tuple(phase for phase in ONBOARDING_PHASES if phase in chosen)
