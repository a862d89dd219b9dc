"""Filtered view of a study for statistics: submitted work only, with labels backed off, and with signature fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import polars as pl

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.frames import group_sort_key, iter_annotators, parse_json_object
from finecomb.core.model_notes import COPY_OF_KEY, RUN_KEY
from finecomb.core.protocol import Protocol
from finecomb.core.records import AnnotatorKind
from finecomb.core.stored_marks import StoredMarks
from finecomb.core.study import Study, annotation_rows_with_groups
from finecomb.statistics.selection.subset import (
    Where,
    filter_study_by_condition,
    has_annotator_condition,
    join_conditions,
)

BackOff = Literal["label", "group", "any"]
RoundSelection = Literal["first", "last", "all"]
ANY_LABEL = "any"
NO_TYPE_LABEL = "no type"


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a view. The defaults keep human annotators, first rounds and all labels."""

    protocol: str = ""
    """Name of one of the study's protocols; required if annotations use several protocols."""
    labels: tuple[str, ...] = ()
    """Labels or groups to keep, by name or alias; empty keeps all."""
    drop: tuple[str, ...] = ()
    """Labels or groups to exclude; `grammar-usage:1` excludes only marks of that label with severity 1."""
    where: Where = ()
    """Conditions on documents, annotators, annotations and marks; see `finecomb.statistics.selection.conditions`.

    Either one condition, e.g. `model == "human" or top_p >= 0.9`, or several that must all hold. `model=gpt2` and the
    pair `("model", "gpt2")` are short for `model == "gpt2"`. Pairs that share a name match any of their values.
    """
    annotators: tuple[str, ...] = ()
    """IDs of the annotators to keep; empty keeps all."""
    kinds: tuple[str, ...] = ()
    """Kinds of annotators to keep (default: human and pooled, or all other kinds if there are no such annotators)."""
    rounds: RoundSelection = "first"
    """Rounds to keep if an annotator annotated a text several times: the first available, the last, or all."""
    back_off: BackOff = "label"
    """Level of the categories: labels, groups of labels, or `any` for all labels."""
    merge: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels to merge, with their new name, e.g. ("factual", ("bad-math", "encyclopedic"))."""


@dataclass(frozen=True, slots=True)
class View:
    """Filtered study, and the possible categories of its marks."""

    study: Study
    protocol: Protocol | None
    categories: tuple[str, ...]
    """Categories in protocol order, including those without marks."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """Signature fields: the protocol and every filter that differs from its default."""
    labels: pl.DataFrame | None = None
    """Columns mark and label, with the original labels before any back-off, to which protocol weights refer.

    None if the marks of the view still have their original labels.
    """
    notes: tuple[str, ...] = ()
    """Notes for the user, e.g. which kinds of annotators were excluded."""
    source: Study | None = None
    """Unfiltered study, for statistics that need a second view of it."""

    def restrict_to_documents(self, documents: pl.Series) -> View:
        """Keep only some documents, given by ID, and their annotations."""
        inside = pl.col("document").is_in(documents.implode())
        part = self.study.filter_annotations(inside)
        texts = self.study.documents.filter(pl.col("id").is_in(documents.implode()))
        return replace(self, study=part.with_documents(texts))

    def marked_labels(self) -> pl.DataFrame:
        """Return the columns mark and label of the marks in the view."""
        return self.study.scan_marks().select("label", mark="id").collect(engine="streaming")

    def iter_document_parts(self) -> Iterator[View]:
        """Yield views of a few documents each, in order, which limits the number of marks in memory."""
        return (replace(self, study=part) for part in self.study.iter_parts())

    def split_by_columns(self, by: Sequence[str]) -> list[tuple[dict[str, str | None], View]]:
        """Return one view per combination of the `by` columns, in sorted order; without `by`, the view itself."""
        if not by:
            return [({}, self)]
        rows = annotation_rows_with_groups(self.study, by)
        parts = rows.partition_by(list(by), as_dict=True, maintain_order=True)
        keys = sorted(parts, key=group_sort_key)
        return [
            (dict(zip(by, key, strict=True)), self._restrict_to_annotations(parts[key]["annotation"])) for key in keys
        ]

    def _restrict_to_annotations(self, annotations: pl.Series) -> View:
        part = self.study.filter_annotations(pl.col("id").is_in(annotations.implode()))
        texts = part.documents.filter(pl.col("id").is_in(part.annotations["document"].unique().implode()))
        return replace(self, study=part.with_documents(texts))


def view(study: Study, filters: Filters | None = None) -> View:
    """Build a view of a study by applying `filters`."""
    filters = filters or Filters()
    work = study.submitted_work()
    # Named protocol, or the only one that annotations use
    used = work.annotations["protocol"].unique().to_list()
    if filters.protocol or len(used) > 1:
        protocol: Protocol | None = work.protocol(filters.protocol)
        assert protocol is not None
        protocol_id: str | None = protocol.id
        work = work.filter_annotations(pl.col("protocol") == protocol_id)
    else:
        protocol = work.protocols.get(used[0]) if used else next(iter(work.protocols.values()), None)
        protocol_id = (used[0] if used else protocol.id) if protocol else None
    where = join_conditions(filters.where) if filters.where else ""
    work, notes = _select_annotators(work, filters, where)
    before_conditions = work
    if where:
        work = filter_study_by_condition(work, where)
    if filters.rounds != "all":
        wanted = pl.col("round").min() if filters.rounds == "first" else pl.col("round").max()
        work = work.filter_annotations(pl.col("round") == wanted.over("document", "annotator", "protocol", "about"))
    if filters.labels or filters.drop:
        work = replace(work, marks=_select_marks(work.marks, protocol, filters))
    work = work.with_documents(
        work.documents.filter(pl.col("id").is_in(work.annotations["document"].unique().implode()))
    )
    removed_labels: set[str | None] = set()
    if where or filters.labels or filters.drop:
        removed_labels |= _labels_without_remaining_marks(before_conditions, work)
        names = [name for name in filters.drop if ":" not in name]
        removed_labels |= resolve_label_names(protocol, names) if protocol and names else set()
    renamed, categories = _replace_labels_by_categories(work, protocol, filters, removed_labels)
    labels = None if renamed is work else View(work, protocol, categories).marked_labels()
    # Signature fields of a view
    fields: dict[str, object] = {"protocol": protocol_id}
    for field_name, given in (
        ("labels", filters.labels), ("drop", filters.drop), ("who", filters.annotators), ("kinds", filters.kinds)
    ):  # fmt: skip
        fields[field_name] = "+".join(given) or None
    conditions = [filters.where] if isinstance(filters.where, str) else filters.where
    fields["where"] = "+".join(text if isinstance(text, str) else "=".join(text) for text in conditions) or None
    fields["rounds"] = filters.rounds if filters.rounds != "first" else None
    fields["back_off"] = filters.back_off if filters.back_off != "label" else None
    fields["merge"] = "+".join(f"{new}={','.join(old)}" for new, old in filters.merge) or None
    if "llm" in renamed.annotators["kind"]:
        metas = _model_annotator_metas(renamed).values()
        fields["runs"] = "+".join(sorted({str(meta[RUN_KEY]) for meta in metas if RUN_KEY in meta})) or None
    return View(renamed, protocol, categories, fields, labels, notes, study)


def _model_annotator_metas(study: Study) -> dict[str, Mapping[str, Any]]:
    """Return the meta of the model annotators whose work a study contains."""
    used = pl.col("id").is_in(study.annotations["annotator"].unique().implode())
    models = study.annotators.filter(used & (pl.col("kind") == "llm"))
    return {annotator.id: annotator.meta for annotator in iter_annotators(models)}


def without_copies(part: View) -> View:
    """Remove model annotators whose replies are copies of those of another annotator in the view."""
    metas = _model_annotator_metas(part.study)
    copies = {id: meta[COPY_OF_KEY] for id, meta in metas.items() if meta.get(COPY_OF_KEY) in metas}
    if not copies:
        return part
    kept = part.study.filter_annotations(~pl.col("annotator").is_in(list(copies)))
    notes = (f"{id} is not counted: its replies are copies of those of {other}" for id, other in copies.items())
    return replace(part, study=kept, notes=(*part.notes, *notes))


def _labels_without_remaining_marks(before: Study, after: Study) -> set[str | None]:
    """Return the labels whose marks were all removed by a filter that kept the annotations."""
    if isinstance(after.raw_marks, StoredMarks):
        return set()  # a filter on marks loads them, so marks that are still stored are unfiltered
    kept = before.filter_annotations(pl.col("id").is_in(after.annotations["id"].implode()))
    marks = kept.scan_marks().select(pl.col("label").unique()).collect(engine="streaming")
    return set(marks["label"]) - set(after.marks["label"].unique())


def as_view(study: Study | View) -> View:
    """Return a view unchanged; convert a study to a view with the default filters."""
    return study if isinstance(study, View) else view(study)


HUMAN_KINDS = frozenset({"human", "pooled"})
"""Kinds of annotators included in statistics by default."""


def _select_annotators(study: Study, filters: Filters, where: str = "") -> tuple[Study, tuple[str, ...]]:
    """Keep the work of the selected annotators (default: people), and return notes on excluded annotators."""
    ids = study.annotators["id"].to_list()
    for name in filters.annotators:
        if name not in ids:
            raise FinecombError(f"unknown annotator {name!r}{did_you_mean(name, ids)}")
    if filters.annotators:
        return study.filter_annotations(pl.col("annotator").is_in(list(filters.annotators))), ()
    for kind in filters.kinds:
        if kind not in get_args(AnnotatorKind):
            raise FinecombError(f"unknown annotator kind {kind!r}{did_you_mean(kind, get_args(AnnotatorKind))}")
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    present = {kinds[id] for id in study.annotations["annotator"].unique() if id in kinds}
    machines = present - HUMAN_KINDS - {"gold"}
    is_asked_for = bool(filters.kinds) or (bool(where) and has_annotator_condition(where))
    by_default = present & HUMAN_KINDS or machines or present
    wanted = set(filters.kinds) or (present if is_asked_for else by_default)
    part = study.filter_annotations(pl.col("annotator").is_in([id for id, kind in kinds.items() if kind in wanted]))
    if is_asked_for:
        return part, ()
    if others := ", ".join(sorted(machines - wanted)):
        option = f"--kind {others.partition(',')[0]}"
        note = f"only people are counted; annotators of kind {others} are excluded (select them with {option})"
    elif wanted and not wanted & HUMAN_KINDS:
        note = f"no person annotated these texts; the annotators counted are of kind {', '.join(sorted(wanted))}"
    else:
        return part, ()
    return part, (note,)


def resolve_label_names(protocol: Protocol, names: Sequence[str]) -> set[str]:
    """Resolve names, aliases and groups to the names of labels."""
    groups = {group.name for group in protocol.groups}
    labels: set[str] = set()
    for name in names:
        if name in groups and not protocol.has_label(name):
            labels |= {label.name for label in protocol.labels if label.group == name}
        else:
            labels.add(protocol.resolve_label(name).name)
    return labels


def _select_marks(marks: pl.DataFrame, protocol: Protocol | None, filters: Filters) -> pl.DataFrame:
    if protocol is None or not (filters.labels or filters.drop):
        return marks
    if filters.labels:
        marks = marks.filter(pl.col("label").is_in(sorted(resolve_label_names(protocol, filters.labels))))
    for entry in filters.drop:
        name, _, severity = entry.partition(":")
        hit = pl.col("label").is_in(sorted(resolve_label_names(protocol, [name])))
        if severity:
            _reject_unknown_severity(protocol, name, severity, marks)
            hit &= answer_text_expression("severity") == severity
        marks = marks.filter(~hit.fill_null(value=False))
    return marks


def drop_marks(study: Study, drop: Sequence[str]) -> Study:
    """Remove the marks named in `drop` from a study, under any protocol (see `Filters.drop`)."""
    marks = study.marks
    for entry in drop:
        owners = [row for row in study.protocols.values() if _has_label_or_group(row, entry.partition(":")[0])]
        for protocol in (
            owners or list(study.protocols.values())[:1]
        ):  # an unknown name is passed to the first protocol, which raises the error
            others = marks.filter(pl.col("protocol") != protocol.id)
            theirs = _select_marks(marks.filter(pl.col("protocol") == protocol.id), protocol, Filters(drop=(entry,)))
            marks = pl.concat([theirs, others])
    order = study.marks.select("id").join(marks, on="id", maintain_order="left")
    return replace(study, marks=order.select(study.marks.columns))


def _has_label_or_group(protocol: Protocol, name: str) -> bool:
    return protocol.has_label(name) or name in {group.name for group in protocol.groups}


def _reject_unknown_severity(protocol: Protocol, label: str, severity: str, marks: pl.DataFrame) -> None:
    """Raise an error if `drop` names a severity that no mark of the protocol can have."""
    questions = [
        question for name in resolve_label_names(protocol, [label]) for question in protocol.questions_for_label(name)
    ]
    offered = [str(value) for question in questions if question.name == "severity" for value in question.values]
    severities = marks.select(answer_text_expression("severity"))["severity"].drop_nulls().unique().to_list()
    if severity not in offered and severity not in severities:
        nearest = did_you_mean(severity, dict.fromkeys([*offered, *sorted(severities)]))
        raise ParameterError(f"{param('drop', f'{label}:{severity}')}: unknown severity{nearest}", parameter="drop")


def answer_text_expression(name: str) -> pl.Expr:
    """Build an expression for one entry of the `answers` column as text; null where there is no answer."""

    def text(answers: str) -> str | None:
        value = parse_json_object(answers).get(name)
        return None if value is None else str(value)

    return pl.col("answers").map_elements(text, pl.String).alias(name)


def _replace_labels_by_categories(
    study: Study, protocol: Protocol | None, filters: Filters, gone: Collection[str | None] = ()
) -> tuple[Study, tuple[str, ...]]:
    """Replace labels by their categories, and return the study and the ordered categories without labels in `gone`.

    Returns the study itself if every label already equals its category.
    """
    if protocol is not None:
        for new, old in filters.merge:
            used_names = {label.name for label in protocol.labels} - resolve_label_names(protocol, old) | {
                ANY_LABEL,
                NO_TYPE_LABEL,
            }
            if new in used_names:
                pair = f"{new}={'+'.join(old)}"
                raise ParameterError(
                    f"{param('merge', pair)}: {new!r} is already in use; use another name", parameter="merge"
                )
    names = [label.name for label in protocol.labels] if protocol else []
    used = set(study.scan_marks().select(pl.col("label").unique()).collect(engine="streaming")["label"])
    names += sorted(name for name in used if name is not None and name not in names)
    read_labels = (
        set(names) if not filters.labels or protocol is None else resolve_label_names(protocol, filters.labels)
    )
    is_plain = filters.back_off == "label" and not filters.merge
    mapping = {
        name: name if is_plain else _label_category(name, protocol, filters)
        for name in names
        if name in read_labels and name not in gone
    }
    typeless = ANY_LABEL if filters.back_off == "any" else NO_TYPE_LABEL
    has_typeless = None in used
    label = (
        pl.col("label").replace_strict(mapping, default=None, return_dtype=pl.String) if mapping else pl.col("label")
    )
    categories = dict.fromkeys([*mapping.values(), *([typeless] if has_typeless else [])])
    is_same = not has_typeless and all(mapping.get(name) == name for name in used if name is not None)
    return study if is_same else study.with_labels(label.fill_null(typeless)), tuple(categories)


def _label_category(name: str, protocol: Protocol | None, filters: Filters) -> str:
    label = protocol.find_label(name) if protocol else None
    for new, old in filters.merge:
        if label is not None and protocol is not None and name in resolve_label_names(protocol, old):
            return new
    if filters.back_off == "any":
        return ANY_LABEL
    if filters.back_off == "group":
        return label.group if label and label.group else name
    return name


def back_off_labels_to_groups(view: View) -> View:
    """Replace the labels of a view by their groups; labels without a group are unchanged."""
    protocol = view.protocol
    label_by_name = {name: protocol.find_label(name) for name in view.categories} if protocol else {}
    groups = {name: label.group for name, label in label_by_name.items() if label and label.group}
    categories = tuple(dict.fromkeys(groups.get(name, name) for name in view.categories))
    fields = {**view.fields, "back_off": "group"}
    labels = view.marked_labels() if view.labels is None else view.labels
    study = view.study.with_labels(pl.col("label").replace(groups))
    return replace(view, study=study, categories=categories, fields=fields, labels=labels)
