from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from finecomb.collection.database.store import Store
from finecomb.core.study import StudyItem
from tests.databases import Client, FakeClock, demo_items, new_study_location, open_test_store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def items() -> list[StudyItem]:
    """Records of the served study, which a test module may override."""
    return demo_items()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path, items: list[StudyItem], clock: FakeClock) -> Iterator[Store]:
    with open_test_store(new_study_location(request.param, tmp_path), items, clock) as store:
        yield store


@pytest.fixture
def client(store: Store) -> Client:
    """Browser that is not signed in."""
    return Client(store)
