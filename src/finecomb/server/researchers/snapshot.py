"""A study at one moment, as the researcher's pages read it; what is slow to make is made once, when asked for."""

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
    """Everything there is, and what counts: the work that people have handed in under the protocol in force."""

    study: Study
    protocol: Protocol
    state: State
    now: datetime

    @property
    def annotators_per_document(self) -> int:
        """How many people each document should get."""
        return self.study.settings.annotators or self.protocol.work.annotators

    @functools.cached_property
    def human_work(self) -> View:
        """What people handed in, attention checks apart."""
        people = view(self.study, Filters(protocol=self.protocol.id, kinds=("human",)))
        checks = list(self.study.settings.attention_checks)
        if not checks:
            return people
        documents = people.study.documents.filter(~pl.col("id").is_in(checks))["id"]
        return replace(people.restrict_to_documents(documents), fields={**people.fields, "without": "attention-checks"})

    @functools.cached_property
    def no_marks_reason(self) -> str:
        """Why nothing is counted that is about marks, where the protocol asks for none; else empty."""
        asks = self.protocol.labels or self.protocol.unlabelled or not self.human_work.study.marks.is_empty()
        return "" if asks else "nothing is marked in this protocol"

    @functools.cached_property
    def assigned_texts(self) -> pl.DataFrame:
        """The documents that are handed out, attention checks apart."""
        return self.study.documents.filter(~pl.col("id").is_in(list(self.study.settings.attention_checks)))

    @functools.cached_property
    def name_by_annotator(self) -> dict[str, str]:
        """What the researcher calls each annotator."""
        rows = self.study.annotators.select("id", "meta").iter_rows()
        return {id: AnnotatorMeta.from_meta(parse_json_object(meta)).name or id for id, meta in rows}

    @functools.cached_property
    def kind_by_annotator(self) -> dict[str, str]:
        """The kind of each annotator."""
        return dict(self.study.annotators.select("id", "kind").iter_rows())

    @functools.cached_property
    def attention_verdicts(self) -> dict[str, bool]:
        """Whether each annotation of an attention check passed; those without a known answer are not there."""
        return attention_check_results(self.study)


def label_looks(*protocols: Protocol) -> tuple[LabelLook, ...]:
    """How the labels of some protocols look, the first protocol's first; the last is for marks without a label."""
    looks_of: dict[str, LabelLook] = {}
    for protocol in protocols:
        for look in label_styles(protocol).values():
            label_look = LabelLook(
                label=look.label, title=look.title, slot=look.slot.name, flag=look.flag, key=look.key
            )
            looks_of.setdefault(look.label, label_look)
    unlabelled = looks_of.pop("")
    return (*looks_of.values(), unlabelled)
