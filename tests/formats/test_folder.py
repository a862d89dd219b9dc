from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given

from finecomb.core.study import Study, StudyItem
from finecomb.formats import folder, read, write
from tests.strategies import canonical_form, round_trip, studies


@given(studies())
def test_a_study_folder_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(folder.FORMAT, items, Path(place) / "study")
    assert canonical_form(again) == canonical_form(items)


@given(studies())
def test_frames_give_back_every_record(items: list[StudyItem]) -> None:
    assert canonical_form(Study.from_items(items).items()) == canonical_form(items)


@given(studies())
def test_a_study_written_and_read_is_equal(items: list[StudyItem]) -> None:
    study = Study.from_items(items)
    with tempfile.TemporaryDirectory() as place:
        assert write(study, Path(place) / "study") == []
        assert read(Path(place) / "study") == study
