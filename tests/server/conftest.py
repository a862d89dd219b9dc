from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from finecomb.collection.database.store import Store
from finecomb.core.study import StudyItem
from tests.databases import Client, Clocked, demo_items, new_place, opened


@pytest.fixture
def clock() -> Clocked:
    return Clocked()


@pytest.fixture
def items() -> list[StudyItem]:
    """What the served study holds; a test module may say otherwise."""
    return demo_items()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path, items: list[StudyItem], clock: Clocked) -> Iterator[Store]:
    with opened(new_place(request.param, tmp_path), items, clock) as store:
        yield store


@pytest.fixture
def client(store: Store) -> Client:
    """A browser that is not signed in."""
    return Client(store)
