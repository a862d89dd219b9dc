"""Annotators as the researcher sees them: how far, how fast, how much they agree, and whom to look at first."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import iter_annotators, parse_json_object
from finecomb.core.records import Annotator, Exclusion
from finecomb.server.researchers.schema import (
    AnnotatorPage,
    AnnotatorRow,
    AnnotatorWork,
    Figure,
    LabelCount,
    LabelRow,
    Quartiles,
    ReviewReason,
    StudyProgress,
    WrittenComment,
)
from finecomb.server.researchers.snapshot import Snapshot, label_looks
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.selection.view import ANY, Filters, view

DRAWS = 200
MIN_TEXTS_AND_PEOPLE = 3
"""Texts that somebody must have handed in, and people there must be, before anybody is told from the others."""
_AGREEMENT_MEASURE = "one-vs-rest-f1-each"


def compute_quartiles(values: pl.Series, why: str, statistic: str, **fields: object) -> Quartiles:
    """Median and quartiles of the values that are known; `why` there is none."""
    numbers = values.drop_nulls()
    signature = str(Signature.from_fields(statistic=f"median-{statistic}", **fields, values=len(numbers)))
    if numbers.is_empty():
        return Quartiles(median=None, why=why, signature=signature)
    lower, median, upper = (numbers.quantile(share, "linear") for share in (0.25, 0.5, 0.75))
    return Quartiles(median=median, lower=lower, upper=upper, count=len(numbers), signature=signature)


@dataclass(frozen=True)
class AnnotatorTable:
    """All annotators of a snapshot side by side."""

    now: Snapshot

    @functools.cached_property
    def rows(self) -> list[AnnotatorRow]:
        """Everybody, those to look at first first."""
        people = [self._annotator_row(person) for person in iter_annotators(self.now.study.annotators)]
        reasons = review_reasons_by_annotator(people, self._seconds_per_character)
        marked = [person.model_copy(update={"look": reasons.get(person.id, ())}) for person in people]
        return sorted(marked, key=lambda person: (-len(person.look), person.excluded is not None))

    def annotator_page(self, id: str) -> AnnotatorPage:
        """One annotator's page."""
        annotator = next(iter_annotators(self.now.study.annotators.filter(pl.col("id") == id)))
        return AnnotatorPage(
            person=next(person for person in self.rows if person.id == id),
            **annotator.model_dump(include={"condition", "platform", "qualification", "survey", "meta"}),
            looks=label_looks(*self.now.study.protocols.values()),
            labels=self._label_counts(id),
            agreement=tuple(self._agreement_by_label(id)),
            pieces=tuple(self._annotation_rows(id)),
            notes=tuple(self._written_comments(id)),
        )

    # --- one row ---

    def _annotator_row(self, annotator: Annotator) -> AnnotatorRow:
        handed_in = self._submitted_counts.get(annotator.id, 0)
        return AnnotatorRow(
            id=annotator.id,
            name=self.now.name_by_annotator[annotator.id],
            kind=annotator.kind,
            progress=StudyProgress(done=handed_in, of=max(handed_in, self._expected_text_count)),
            drafts=self._draft_counts.get(annotator.id, 0),
            marks=self._figure_or_reason(self._marks_per_text, annotator),
            active=self._active_seconds.get(annotator.id)
            or compute_quartiles(pl.Series([], dtype=pl.Float64), "no times yet", "active-seconds"),
            pay=self._hourly_pay.get(annotator.id),
            agreement=self._figure_or_reason(self._agreement, annotator),
            checks=self._attention_checks(annotator.id),
            look=(),
            excluded=annotator.excluded,
        )

    def _figure_or_reason(self, estimates: Mapping[str, Estimate], annotator: Annotator) -> Figure:
        if annotator.id in estimates:
            return Figure.from_estimate(estimates[annotator.id])
        why = (
            "excluded"
            if annotator.excluded
            else "nothing handed in yet"
            if annotator.kind == "human"
            else "not a person"
        )
        return Figure(value=None, why=self.now.no_marks_reason or why)

    @functools.cached_property
    def _submitted_annotations(self) -> pl.DataFrame:
        return self.now.human_work.study.annotations

    @functools.cached_property
    def _submitted_counts(self) -> dict[str, int]:
        work = self.now.study.submitted_work().annotations.filter(pl.col("protocol") == self.now.protocol.id)
        return dict(work.group_by("annotator").len().iter_rows())

    @functools.cached_property
    def _draft_counts(self) -> dict[str, int]:
        drafts = self.now.study.annotations.filter((pl.col("status") == "draft") & (pl.col("phase") == "work"))
        return dict(drafts.group_by("annotator").len().iter_rows())

    @property
    def _expected_text_count(self) -> int:
        return self.now.protocol.work.texts or len(self.now.study.documents)

    @functools.cached_property
    def _active_seconds(self) -> dict[str, Quartiles]:
        parts = self._submitted_annotations.partition_by("annotator", as_dict=True)
        return {
            str(id): compute_quartiles(part["active_seconds"], "no times yet", "active-seconds", annotator=id)
            for (id,), part in parts.items()
        }

    @functools.cached_property
    def _hourly_pay(self) -> dict[str, float]:
        """Pay per hour of active time: what everybody was paid for the texts whose time is known, over that time."""
        price = self.now.study.settings.price
        timed = self._submitted_annotations.filter(pl.col("active_seconds") > 0).group_by("annotator")
        rows = timed.agg(pl.len(), pl.col("active_seconds").sum()).iter_rows()
        return {} if price is None else {id: 3600 * price * texts / seconds for id, texts, seconds in rows}

    @functools.cached_property
    def _seconds_per_character(self) -> dict[str, float]:
        """Median active seconds per character."""
        sizes = self.now.study.documents.select(document="id", size=pl.col("text").str.len_chars())
        timed = self._submitted_annotations.filter(pl.col("active_seconds").is_not_null()).join(sizes, on="document")
        speed = timed.filter(pl.col("size") > 0).group_by("annotator")
        return dict(speed.agg((pl.col("active_seconds") / pl.col("size")).median()).iter_rows())

    @functools.cached_property
    def _marks_per_text(self) -> dict[str, Estimate]:
        if self.now.no_marks_reason:
            return {}
        return _any_label_estimate_by_annotator(
            measure(self.now.human_work, ["count"], ["annotator"], detail="any", draws=DRAWS)
        )

    @functools.cached_property
    def _agreement(self) -> dict[str, Estimate]:
        """Each annotator's F1 with what most of the others marked."""
        if self.now.no_marks_reason:
            return {}
        return _any_label_estimate_by_annotator(
            agree(self.now.human_work, [_AGREEMENT_MEASURE], by_label=False, rest="majority", draws=DRAWS)
        )

    @functools.cached_property
    def _agreement_findings(self) -> list[Finding]:
        """The same for any mark and for each label: for pages of single annotators."""
        return (
            []
            if self.now.no_marks_reason
            else agree(self.now.human_work, [_AGREEMENT_MEASURE], rest="majority", draws=DRAWS)
        )

    def _attention_checks(self, id: str) -> StudyProgress:
        ids = self.now.study.annotations.filter(pl.col("annotator") == id)["id"] if self.now.attention_verdicts else ()
        verdicts = [
            self.now.attention_verdicts[annotation] for annotation in ids if annotation in self.now.attention_verdicts
        ]
        return StudyProgress(done=sum(verdicts), of=len(verdicts))

    # --- one page ---

    def _label_counts(self, id: str) -> tuple[LabelCount, ...]:
        work = view(self.now.study, Filters(protocol=self.now.protocol.id, annotators=(id,)))
        if self.now.no_marks_reason or work.study.annotations.is_empty():
            return ()
        marks = dict(work.study.marks.group_by("label").len().iter_rows())
        shares = measure(work, ["fraction"], draws=DRAWS)
        return tuple(
            LabelCount(
                label=str(row.columns["label"]),
                marks=marks.get(row.columns["label"], 0),
                share=Figure.from_estimate(row.estimate),
            )
            for row in shares
            if row.columns["label"] != ANY
        )

    def _agreement_by_label(self, id: str) -> Iterable[LabelRow]:
        marks = dict(
            self.now.human_work.study.marks.filter(pl.col("annotator") == id).group_by("label").len().iter_rows()
        )
        for row in self._agreement_findings:
            if row.columns["annotator"] == id:
                label = str(row.columns["label"])
                count = sum(marks.values()) if label == ANY else marks.get(label, 0)
                yield LabelRow(label=label, marks=count, agreement=Figure.from_estimate(row.estimate))

    def _annotation_rows(self, id: str) -> Iterable[AnnotatorWork]:
        study = self.now.study
        annotations = study.annotations.filter(pl.col("annotator") == id)
        marks = dict(study.marks.filter(pl.col("annotator") == id).group_by("annotation").len().iter_rows())
        for row in annotations.sort("submitted", "started", nulls_last=True, maintain_order=True).iter_rows(named=True):
            verdict = self.now.attention_verdicts.get(row["id"])
            yield AnnotatorWork(
                annotation=row["id"],
                document=row["document"],
                status=row["status"],
                phase=row["phase"],
                submitted=row["submitted"],
                seconds=row["active_seconds"] if row["active_seconds"] is not None else row["seconds"],
                marks=marks.get(row["id"], 0),
                check="" if verdict is None else "passed" if verdict else "failed",
                excluded=Exclusion.model_validate_json(row["excluded"]) if row["excluded"] else None,
            )

    def _written_comments(self, id: str) -> Iterable[WrittenComment]:
        """What they wrote about whole texts."""
        annotations = self.now.study.annotations.filter(pl.col("annotator") == id)
        for row in annotations.filter(pl.col("answers").is_not_null()).iter_rows(named=True):
            for question, text in _written_answers(row["answers"], self._free_text_questions):
                yield WrittenComment(document=row["document"], question=question, text=text)

    @functools.cached_property
    def _free_text_questions(self) -> frozenset[str]:
        questions = [
            question for protocol in self.now.study.protocols.values() for question in protocol.document_questions
        ]
        return frozenset(
            {"comment", "cannot_judge", *(question.name for question in questions if question.scale_type.prose)}
        )


def _written_answers(answers: str, prose: frozenset[str]) -> Iterable[tuple[str, str]]:
    for question, answer in parse_json_object(answers).items():
        if question in prose and isinstance(answer, str) and answer.strip():
            yield question, answer


def _any_label_estimate_by_annotator(findings: Iterable[Finding]) -> dict[str, Estimate]:
    return {
        str(finding.columns["annotator"]): finding.estimate for finding in findings if finding.columns["label"] == ANY
    }


def review_reasons_by_annotator(
    people: Sequence[AnnotatorRow], speeds: Mapping[str, float]
) -> dict[str, tuple[ReviewReason, ...]]:
    """Why to look at somebody first: less than half of the median annotator's time, marks or agreement; failed checks.

    Only people who handed in some texts are compared, and only when there are enough of them.
    """
    compared = [person for person in people if person.kind == "human" and person.progress.done >= MIN_TEXTS_AND_PEOPLE]
    kinds: dict[ReviewReason, dict[str, float | None]] = {
        "fast": {person.id: speeds.get(person.id) for person in compared},
        "few": {person.id: person.marks.value for person in compared},
        "apart": {person.id: person.agreement.value for person in compared},
    }
    reasons_of: dict[str, list[ReviewReason]] = {person.id: [] for person in people}
    for reason, values in kinds.items():
        limit = _half_median_threshold(values.values())
        for id, value in values.items():
            if value is not None and value < limit:
                reasons_of[id].append(reason)
    for person in people:
        if person.checks.done < person.checks.of:
            reasons_of[person.id].append("checks")
    return {id: tuple(reasons) for id, reasons in reasons_of.items()}


def _half_median_threshold(values: Iterable[float | None]) -> float:
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) / 2 if len(numbers) >= MIN_TEXTS_AND_PEOPLE else -math.inf
