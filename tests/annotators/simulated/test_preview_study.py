"""Tests of preview studies: they are valid, and every protocol has something to show."""

from __future__ import annotations

import pytest

from finecomb import protocols
from finecomb.annotators.simulated.preview_study import build_preview_study
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study


@pytest.mark.parametrize("name", protocols.names())
def test_every_protocol_has_something_to_show(name: str) -> None:
    asked = protocols.load(name)
    study = Study.from_items(build_preview_study(asked, ["training"]))
    assert study.settings.protocols == (asked.id,)
    assert study.settings.skip == ("training",)
    assert [each for each in check_study(study) if each.level == "error"] == []
    assert not set(study.documents["id"]) & set(asked.practice_documents)  # both are annotated, under keys of their own
    judged = asked.work.unit in ("annotation", "mark")
    assert len(study.documents) > 0
    assert (len(study.annotations) > 0) == judged
