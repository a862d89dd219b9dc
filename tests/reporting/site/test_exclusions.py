from __future__ import annotations

from dataclasses import replace

import polars as pl

import finecomb as fc
from finecomb.core.records import Annotation, Annotator, Exclusion
from finecomb.core.study import Study
from finecomb.reporting.site.exclusions import count_exclusion_reasons, describe_exclusions, restore_excluded
from finecomb.reporting.site.front_page import render_front_page
from finecomb.reporting.site.report_content import ReportSource, build_report, build_report_source

FAST, ASKED = Exclusion(by="us", reason="much too fast"), Exclusion(by="us", reason="by request")


def with_exclusions() -> Study:
    """Return the demo study with one annotator and one annotation of another excluded."""

    def changed(item: object) -> object:
        match item:
            case Annotator(id="reader-1"):
                return item.model_copy(update={"excluded": ASKED})
            case Annotation(annotator="reader-2", document="harbour-c"):
                return item.model_copy(update={"excluded": FAST, "status": "excluded"})
        return item

    return Study.from_items(changed(item) for item in fc.demo().items())  # type: ignore[misc]


def content_of(study: Study) -> ReportSource:
    return build_report_source(study, "demo", draws=100)


def test_reasons_are_counted_and_named() -> None:
    study = with_exclusions()
    assert count_exclusion_reasons(study) == {"by request": 16, "much too fast": 1}
    assert describe_exclusions(study) == "17 of 96 annotations: 16 by request, 1 much too fast"


def test_with_everything_put_back_the_answer_is_that_of_the_whole_study() -> None:
    """The page once gave the number of excluded annotations but not the result that includes them."""
    made_from = content_of(with_exclusions())
    answer = build_report(made_from, "today", lambda id: "").headline
    whole = build_report(content_of(fc.demo()), "today", lambda id: "").headline
    assert answer.difference
    assert whole.difference
    first, second = answer.difference.rows
    assert second.open
    assert second.estimate == whole.difference.rows[0].estimate
    assert first.estimate != second.estimate
    assert (
        "17 of 96 annotations: 16 by request, 1 much too fast. Including them, the difference is"
        in answer.statements[-1].text
    )
    assert "open dot: including excluded annotations" in render_front_page(
        build_report(made_from, "today", lambda id: "")
    )
    assert len(whole.difference.rows) == 1


def test_what_machines_failed_at_is_named_and_not_put_back() -> None:
    study = fc.demo()
    failed = Annotation(
        id="f", document="harbour-c", annotator="judge", protocol=study.protocol().id, status="excluded",
        excluded=Exclusion(by="finecomb", reason="reply refused: declines in words"),
    )  # fmt: skip
    both = Study.from_items([*study.items(), Annotator(id="judge", kind="llm"), failed])
    answer = build_report(content_of(both), "today", lambda id: "").headline
    assert answer.statements[-1].text == "1 of 97 annotations: 1 reply refused: declines in words."
    assert answer.difference
    assert len(answer.difference.rows) == 1


def test_drafts_stay_drafts() -> None:
    study = fc.demo()
    draft = replace(study, annotations=study.annotations.head(1).with_columns(status=pl.lit("draft")))
    assert restore_excluded(draft, ("human", "gold")).annotations["status"].to_list() == ["draft"]
