"""Snapshot of a study for the researcher pages, with cached values derived from it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from finecomb.collection.annotator_meta import AnnotatorMeta
from finecomb.collection.screening import attention_check_results
from finecomb.core.frames import parse_json_object
from finecomb.core.palette import label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.study import Study
from finecomb.server.schema import LabelLook, State
from finecomb.statistics.selection.view import Filters, View, view

MACHINE_KINDS = ("llm", "detector", "checker", "pooled")


@dataclass(frozen=True)
class Snapshot:
    """Study at one point in time, under its current protocol."""

    study: Study
    protocol: Protocol
    state: State
    now: datetime

    @property
    def annotators_per_document(self) -> int:
        """Number of annotators that each document needs."""
        return self.study.settings.annotators or self.protocol.work.annotators

    @functools.cached_property
    def human_work(self) -> View:
        """Submitted human work under the current protocol, without attention checks."""
        people = view(self.study, Filters(protocol=self.protocol.id, kinds=("human",)))
        checks = list(self.study.settings.attention_checks)
        if not checks:
            return people
        documents = people.study.documents.filter(~pl.col("id").is_in(checks))["id"]
        return replace(people.restrict_to_documents(documents), fields={**people.fields, "without": "attention-checks"})

    @functools.cached_property
    def no_marks_reason(self) -> str:
        """Reason why mark statistics are omitted; empty when the protocol asks for marks."""
        asks = self.protocol.labels or self.protocol.unlabelled or not self.human_work.study.marks.is_empty()
        return "" if asks else "this protocol has no marks"

    @functools.cached_property
    def texts_without_attention_checks(self) -> pl.DataFrame:
        """Documents of the study that are not attention checks."""
        return self.study.documents.filter(~pl.col("id").is_in(list(self.study.settings.attention_checks)))

    @functools.cached_property
    def name_by_annotator(self) -> dict[str, str]:
        """Display name of each annotator, by ID."""
        rows = self.study.annotators.select("id", "meta").iter_rows()
        return {id: AnnotatorMeta.from_meta(parse_json_object(meta)).name or id for id, meta in rows}

    @functools.cached_property
    def kind_by_annotator(self) -> dict[str, str]:
        """Kind of each annotator, by ID."""
        return dict(self.study.annotators.select("id", "kind").iter_rows())

    @functools.cached_property
    def attention_check_results(self) -> dict[str, bool]:
        """Whether each annotation of an attention check passed, by annotation ID. Checks without gold are omitted."""
        return attention_check_results(self.study)


def label_looks(*protocols: Protocol) -> tuple[LabelLook, ...]:
    """Return the label styles of the given protocols in order. The last style is for marks without a label."""
    looks_of: dict[str, LabelLook] = {}
    for protocol in protocols:
        for look in label_styles(protocol).values():
            label_look = LabelLook(
                label=look.label, title=look.title, slot=look.slot.name, flag=look.flag, key=look.key
            )
            looks_of.setdefault(look.label, label_look)
    unlabelled = looks_of.pop("")
    return (*looks_of.values(), unlabelled)
