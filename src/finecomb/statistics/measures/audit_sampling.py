"""Audit studies, in which auditors judge a sample of marks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from finecomb import protocols
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import AuditPlan, Settings
from finecomb.core.study import Study, StudyItem, document_meta_names
from finecomb.core.study_checks import check_items
from finecomb.statistics.measures.mark_audit import draw_audit_sample
from finecomb.statistics.selection.view import Filters, view


@dataclass(frozen=True)
class DrawnAudit:
    """Sample of marks, and the study in which auditors judge them."""

    study: Study
    sample: pl.DataFrame
    """Table of marks: mark, document, annotator, label, the sampling columns, quotes and explanation."""
    notes: Sequence[str]


def draw_audit_study(
    study: Study, per_label: int = 10, by: Sequence[str] = (), auditors: int = 2, protocol: str = "", seed: int = 0
) -> DrawnAudit:
    """Draw up to `per_label` marks per label and group, and build the study in which `auditors` people judge them.

    By default, marks are grouped by the model of their text if texts have one. Marks without a span are not drawn.
    """
    located = study.marks.filter(pl.col("spans").list.len() > 0)
    part = view(dataclasses.replace(study, marks=located), Filters(protocol=protocol))
    columns = tuple(by) or (("model",) if "model" in document_meta_names(study) else ())
    sample = draw_audit_sample(part, per_label, columns, seed)
    if sample.is_empty():
        raise FinecombError("an audit requires submitted annotations that have marks with a span, found none")
    plan = AuditPlan(marks=tuple(sorted(sample["mark"])), by=columns, per_label=per_label, seed=seed)
    items = _audit_items(study, plan, protocols.load_shipped("audit"), auditors)
    return DrawnAudit(Study.from_items(check_items(items)), sample, part.notes)


def _audit_items(whole: Study, plan: AuditPlan, auditing: Protocol, auditors: int) -> Iterator[StudyItem]:
    """Yield the items of the audit study: new settings, the audit protocol, and the items of the audited study."""
    title = f"Audit of {whole.settings.title}" if whole.settings.title else "Audit"
    ids = [id for id in whole.settings.protocols or whole.protocols if id != auditing.id]
    yield Settings(
        title=title, protocols=(auditing.id, *ids), annotators=auditors, audit=plan, seed=whole.settings.seed
    )
    yield auditing
    for item in whole.items():
        if not isinstance(item, Settings) and not (isinstance(item, Protocol) and item.id == auditing.id):
            yield item
