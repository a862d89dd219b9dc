"""Annotators as researchers see them: progress, speed, agreement and need for review."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from finecomb.api.statistics import agree, measure
from finecomb.core.frames import iter_annotators, parse_json_object
from finecomb.core.records import Annotator, Exclusion
from finecomb.core.results import Estimate, Finding, Signature
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
from finecomb.statistics.selection.view import ANY_LABEL, Filters, view

BOOTSTRAP_DRAWS = 200
MIN_TEXTS_AND_PEOPLE = 3
"""Minimum number of people, and of submitted texts by each, for comparing people."""
_AGREEMENT_MEASURE = "one-vs-rest-f1-each"


def compute_quartiles(values: pl.Series, why: str, statistic: str, **fields: object) -> Quartiles:
    """Compute the median and quartiles of the known values. If no value is known, `why` is given as the reason."""
    numbers = values.drop_nulls()
    signature = str(Signature.from_fields(statistic=f"median-{statistic}", **fields, values=len(numbers)))
    if numbers.is_empty():
        return Quartiles(median=None, why=why, signature=signature)
    lower, median, upper = (numbers.quantile(share, "linear") for share in (0.25, 0.5, 0.75))
    return Quartiles(median=median, lower=lower, upper=upper, count=len(numbers), signature=signature)


@dataclass(frozen=True)
class AnnotatorTable:
    """Table of all annotators in a snapshot."""

    now: Snapshot

    @functools.cached_property
    def rows(self) -> list[AnnotatorRow]:
        """Rows of all annotators; those who need review come first."""
        people = [self._annotator_row(person) for person in iter_annotators(self.now.study.annotators)]
        reasons = review_reasons_by_annotator(people, self._seconds_per_character_by_annotator)
        marked = [person.model_copy(update={"look": reasons.get(person.id, ())}) for person in people]
        return sorted(marked, key=lambda person: (-len(person.look), person.excluded is not None))

    def annotator_page(self, id: str) -> AnnotatorPage:
        """Build the page of one annotator."""
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

    # --- rows ------

    def _annotator_row(self, annotator: Annotator) -> AnnotatorRow:
        handed_in = self._submitted_count_by_annotator.get(annotator.id, 0)
        ids = (
            self.now.study.annotations.filter(pl.col("annotator") == annotator.id)["id"]
            if self.now.attention_check_results
            else ()
        )
        verdicts = [
            self.now.attention_check_results[annotation]
            for annotation in ids
            if annotation in self.now.attention_check_results
        ]
        return AnnotatorRow(
            id=annotator.id,
            name=self.now.name_by_annotator[annotator.id],
            kind=annotator.kind,
            progress=StudyProgress(done=handed_in, of=max(handed_in, self._expected_text_count)),
            drafts=self._draft_count_by_annotator.get(annotator.id, 0),
            marks=self._figure_or_reason(self._marks_per_text_by_annotator, annotator),
            active=self._active_seconds_by_annotator.get(annotator.id)
            or compute_quartiles(pl.Series([], dtype=pl.Float64), "no times recorded yet", "active-seconds"),
            pay=self._hourly_pay_by_annotator.get(annotator.id),
            agreement=self._figure_or_reason(self._agreement_by_annotator, annotator),
            checks=StudyProgress(done=sum(verdicts), of=len(verdicts)),
            look=(),
            excluded=annotator.excluded,
        )

    def _figure_or_reason(self, estimates: Mapping[str, Estimate], annotator: Annotator) -> Figure:
        if annotator.id in estimates:
            return Figure.from_estimate(estimates[annotator.id])
        why = (
            "excluded"
            if annotator.excluded
            else "nothing submitted yet"
            if annotator.kind == "human"
            else "not a person"
        )
        return Figure(value=None, why=self.now.no_marks_reason or why)

    @functools.cached_property
    def _submitted_annotations(self) -> pl.DataFrame:
        return self.now.human_work.study.annotations

    @functools.cached_property
    def _submitted_count_by_annotator(self) -> dict[str, int]:
        work = self.now.study.submitted_work().annotations.filter(pl.col("protocol") == self.now.protocol.id)
        return dict(work.group_by("annotator").len().iter_rows())

    @functools.cached_property
    def _draft_count_by_annotator(self) -> dict[str, int]:
        drafts = self.now.study.annotations.filter((pl.col("status") == "draft") & (pl.col("phase") == "work"))
        return dict(drafts.group_by("annotator").len().iter_rows())

    @property
    def _expected_text_count(self) -> int:
        return self.now.protocol.work.texts or len(self.now.study.documents)

    @functools.cached_property
    def _active_seconds_by_annotator(self) -> dict[str, Quartiles]:
        parts = self._submitted_annotations.partition_by("annotator", as_dict=True)
        return {
            str(id): compute_quartiles(part["active_seconds"], "no times recorded yet", "active-seconds", annotator=id)
            for (id,), part in parts.items()
        }

    @functools.cached_property
    def _hourly_pay_by_annotator(self) -> dict[str, float]:
        """Pay per active hour by annotator, for texts with a known time."""
        price = self.now.study.settings.price
        timed = self._submitted_annotations.filter(pl.col("active_seconds") > 0).group_by("annotator")
        rows = timed.agg(pl.len(), pl.col("active_seconds").sum()).iter_rows()
        return {} if price is None else {id: 3600 * price * texts / seconds for id, texts, seconds in rows}

    @functools.cached_property
    def _seconds_per_character_by_annotator(self) -> dict[str, float]:
        """Median active seconds per character, by annotator."""
        sizes = self.now.study.documents.select(document="id", size=pl.col("text").str.len_chars())
        timed = self._submitted_annotations.filter(pl.col("active_seconds").is_not_null()).join(sizes, on="document")
        speed = timed.filter(pl.col("size") > 0).group_by("annotator")
        return dict(speed.agg((pl.col("active_seconds") / pl.col("size")).median()).iter_rows())

    @functools.cached_property
    def _marks_per_text_by_annotator(self) -> dict[str, Estimate]:
        if self.now.no_marks_reason:
            return {}
        return _any_label_estimate_by_annotator(
            measure(self.now.human_work, measure="count", by="annotator", each_label=False, draws=BOOTSTRAP_DRAWS)
        )

    @functools.cached_property
    def _agreement_by_annotator(self) -> dict[str, Estimate]:
        """Agreement of each annotator with the majority of the others, as F1, by annotator."""
        if self.now.no_marks_reason:
            return {}
        return _any_label_estimate_by_annotator(
            agree(
                self.now.human_work,
                measure=_AGREEMENT_MEASURE,
                each_label=False,
                rest="majority",
                draws=BOOTSTRAP_DRAWS,
            )
        )

    @functools.cached_property
    def _agreement_findings(self) -> list[Finding]:
        """Agreement of each annotator with the majority of the others, as F1, for any mark and per label."""
        return (
            []
            if self.now.no_marks_reason
            else agree(self.now.human_work, measure=_AGREEMENT_MEASURE, rest="majority", draws=BOOTSTRAP_DRAWS)
        )

    # --- page of one annotator

    def _label_counts(self, id: str) -> tuple[LabelCount, ...]:
        work = view(self.now.study, Filters(protocol=self.now.protocol.id, annotators=(id,)))
        if self.now.no_marks_reason or work.study.annotations.is_empty():
            return ()
        marks = dict(work.study.marks.group_by("label").len().iter_rows())
        shares = measure(work, measure="fraction", by="none", draws=BOOTSTRAP_DRAWS)
        return tuple(
            LabelCount(
                label=str(row.columns["label"]),
                marks=marks.get(row.columns["label"], 0),
                share=Figure.from_estimate(row.estimate),
            )
            for row in shares
            if row.columns["label"] != ANY_LABEL
        )

    def _agreement_by_label(self, id: str) -> Iterable[LabelRow]:
        marks = dict(
            self.now.human_work.study.marks.filter(pl.col("annotator") == id).group_by("label").len().iter_rows()
        )
        for row in self._agreement_findings:
            if row.columns["annotator"] == id:
                label = str(row.columns["label"])
                count = sum(marks.values()) if label == ANY_LABEL else marks.get(label, 0)
                yield LabelRow(label=label, marks=count, agreement=Figure.from_estimate(row.estimate))

    def _annotation_rows(self, id: str) -> Iterable[AnnotatorWork]:
        study = self.now.study
        annotations = study.annotations.filter(pl.col("annotator") == id)
        marks = dict(study.marks.filter(pl.col("annotator") == id).group_by("annotation").len().iter_rows())
        for row in annotations.sort("submitted", "started", nulls_last=True, maintain_order=True).iter_rows(named=True):
            verdict = self.now.attention_check_results.get(row["id"])
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
        """Yield the comments that an annotator wrote about whole texts."""
        annotations = self.now.study.annotations.filter(pl.col("annotator") == id)
        for row in annotations.filter(pl.col("answers").is_not_null()).iter_rows(named=True):
            for question, answer in parse_json_object(row["answers"]).items():
                if question in self._free_text_questions and isinstance(answer, str) and answer.strip():
                    yield WrittenComment(document=row["document"], question=question, text=answer)

    @functools.cached_property
    def _free_text_questions(self) -> frozenset[str]:
        questions = [
            question for protocol in self.now.study.protocols.values() for question in protocol.document_questions
        ]
        return frozenset(
            {"comment", "cannot_judge", *(question.name for question in questions if question.scale_type.prose)}
        )


def _any_label_estimate_by_annotator(findings: Iterable[Finding]) -> dict[str, Estimate]:
    return {
        str(finding.columns["annotator"]): finding.estimate
        for finding in findings
        if finding.columns["label"] == ANY_LABEL
    }


def review_reasons_by_annotator(
    people: Sequence[AnnotatorRow], speeds: Mapping[str, float]
) -> dict[str, tuple[ReviewReason, ...]]:
    """Return the reasons for reviewing annotators, by ID.

    Reasons are a time, number of marks or agreement below half of the median, and failed attention checks. Only people
    with enough submitted texts are compared, and only when there are enough such people.
    """
    compared = [person for person in people if person.kind == "human" and person.progress.done >= MIN_TEXTS_AND_PEOPLE]
    kinds: dict[ReviewReason, dict[str, float | None]] = {
        "fast": {person.id: speeds.get(person.id) for person in compared},
        "few": {person.id: person.marks.value for person in compared},
        "apart": {person.id: person.agreement.value for person in compared},
    }
    reasons_of: dict[str, list[ReviewReason]] = {person.id: [] for person in people}
    for reason, values in kinds.items():
        numbers = [value for value in values.values() if value is not None]
        limit = statistics.median(numbers) / 2 if len(numbers) >= MIN_TEXTS_AND_PEOPLE else -math.inf
        for id, value in values.items():
            if value is not None and value < limit:
                reasons_of[id].append(reason)
    for person in people:
        if person.checks.done < person.checks.of:
            reasons_of[person.id].append("checks")
    return {id: tuple(reasons) for id, reasons in reasons_of.items()}
