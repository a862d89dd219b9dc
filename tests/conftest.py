from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.register_profile("long", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data named by FINECOMB_DATA; without it the test is skipped, visibly."""
    place = os.environ.get("FINECOMB_DATA", "")
    if not place:
        pytest.skip("FINECOMB_DATA is not set")
    return Path(place)
