"""A study as a statistic reads it: submitted work only, filtered, labels backed off, ready for its signature."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import polars as pl

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.frames import parse_json_object
from finecomb.core.protocol import Protocol
from finecomb.core.records import AnnotatorKind
from finecomb.core.stored_marks import StoredMarks
from finecomb.core.study import Study
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups, group_sort_key
from finecomb.statistics.selection.subset import (
    Where,
    apply_condition,
    format_conditions_for_signature,
    has_annotator_condition,
    join_conditions,
)

BackOff = Literal["label", "group", "any"]
Rounds = Literal["first", "last", "all"]
ANY = "any"
NO_TYPE = "no type"


@dataclass(frozen=True, slots=True)
class Filters:
    """What to read: by default people, first rounds, every label."""

    protocol: str = ""
    """Name of one of the study's protocols; needed when there are several."""
    labels: tuple[str, ...] = ()
    """Only these labels or groups, by name or alias."""
    drop: tuple[str, ...] = ()
    """Labels or groups to leave out; `grammar-usage:1` leaves out that label with severity 1 only."""
    where: Where = ()
    """Conditions on documents, annotators, annotations and marks, as `finecomb.statistics.selection.conditions` has
    them.

    One, e.g. `model == "human" or top_p >= 0.9`, or several, all of which must hold. `model=gpt2` and the pair
    `("model", "gpt2")` are short for `model == "gpt2"`; of several pairs with one name any value will do.
    """
    annotators: tuple[str, ...] = ()
    """Only these annotators."""
    kinds: tuple[str, ...] = ()
    """Only these kinds of annotators; without any, people and pooled people, and others where there are no people."""
    rounds: Rounds = "first"
    """Which passes of one annotator over one text count: the first that is there, the last, or all of them."""
    back_off: BackOff = "label"
    """Whether labels stay, become their groups, or all become `any`."""
    merge: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """New names for labels taken together, e.g. ("factual", ("bad-math", "encyclopedic"))."""


@dataclass(frozen=True, slots=True)
class View:
    """A filtered study and the categories that its marks can have."""

    study: Study
    protocol: Protocol | None
    categories: tuple[str, ...]
    """In the order of the protocol; also those that nobody used."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """For the signature: protocol, and every filter that is not the default."""
    labels: pl.DataFrame | None = None
    """Columns mark and label, as marked and before any back-off: what weights of a protocol go by.

    None where the marks of the view have those labels still.
    """
    notes: tuple[str, ...] = ()
    """What its reader should hear, e.g. which kinds of annotators were left out."""
    source: Study | None = None
    """The study that it was read from, for statistics that need a second view of it."""

    def restrict_to_documents(self, documents: pl.Series) -> View:
        """Only some documents, by id; annotations of others go too."""
        inside = pl.col("document").is_in(documents.implode())
        part = self.study.filter_annotations(inside)
        texts = self.study.documents.filter(pl.col("id").is_in(documents.implode()))
        return replace(self, study=part.with_documents(texts))

    def marked_labels(self) -> pl.DataFrame:
        """Columns mark and label of the marks of the view."""
        return self.study.scan_marks().select("label", mark="id").collect(engine="streaming")

    def parts(self) -> Iterator[View]:
        """The view in parts of some documents each, in their order, so that not all marks are in memory at once."""
        return (replace(self, study=part) for part in self.study.parts())

    def split(self, by: Sequence[str]) -> list[tuple[dict[str, str | None], View]]:
        """One view for each combination of the `by` columns that annotations have, in order; all of it without `by`."""
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
    """The part of a study that `filters` name, ready for a statistic."""
    filters = filters or Filters()
    work = study.submitted_work()
    protocol = _select_protocol(work, filters.protocol)
    if protocol is not None:
        work = work.filter_annotations(pl.col("protocol") == protocol.id)
    where = join_conditions(filters.where)
    work, notes = _select_annotators(work, filters, where)
    everything = work
    work = _select_rounds(apply_condition(work, where) if where else work, filters.rounds)
    if filters.labels or filters.drop:
        work = replace(work, marks=_select_marks(work.marks, protocol, filters))
    work = work.with_documents(_annotated_documents(work))
    gone = _lost_labels(everything, work) | _dropped_labels(protocol, filters)
    renamed, categories = _replace_labels_by_categories(work, protocol, filters, gone)
    labels = None if renamed is work else View(work, protocol, categories).marked_labels()
    return View(renamed, protocol, categories, _signature_fields(protocol, filters), labels, notes, study)


def _used_labels(study: Study) -> set[str | None]:
    """The labels that marks have; None where one has none."""
    return set(study.scan_marks().select(pl.col("label").unique()).collect(engine="streaming")["label"])


def _lost_labels(before: Study, after: Study) -> set[str | None]:
    """The labels that only those marks had that are gone from annotations still there."""
    if isinstance(after.raw_marks, StoredMarks):
        return set()  # whatever leaves out marks has read them
    return _used_labels(
        before.filter_annotations(pl.col("id").is_in(after.annotations["id"].implode()))
    ) - _used_labels(after)


def as_view(study: Study | View) -> View:
    """A view as it is, a study with the default filters: so that every statistic takes either."""
    return study if isinstance(study, View) else view(study)


def _annotated_documents(study: Study) -> pl.DataFrame:
    return study.documents.filter(pl.col("id").is_in(study.annotations["document"].unique().implode()))


def _select_protocol(study: Study, name: str) -> Protocol | None:
    """The protocol to read: the one named, or the only one that annotations use."""
    used = study.annotations["protocol"].unique().to_list()
    if name or len(used) != 1:
        return study.protocol(name) if name or len(used) > 1 else next(iter(study.protocols.values()), None)
    return study.protocols.get(used[0])


PEOPLE = frozenset({"human", "pooled"})
"""The kinds of annotators that statistics read unless others are asked for."""


def _select_annotators(study: Study, filters: Filters, where: str = "") -> tuple[Study, tuple[str, ...]]:
    """The work of the annotators asked for, else of people, and what there is to say about those left out."""
    ids = study.annotators["id"].to_list()
    for name in filters.annotators:
        if name not in ids:
            raise FinecombError(f"no annotator is called {name!r}{did_you_mean(name, ids)}")
    if filters.annotators:
        return study.filter_annotations(pl.col("annotator").is_in(list(filters.annotators))), ()
    for kind in filters.kinds:
        if kind not in get_args(AnnotatorKind):
            raise FinecombError(f"no kind of annotator is called {kind!r}{did_you_mean(kind, get_args(AnnotatorKind))}")
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    present = {kinds[id] for id in study.annotations["annotator"].unique() if id in kinds}
    machines = present - PEOPLE - {"gold"}
    wanted = set(filters.kinds) or (
        present if has_annotator_condition(where) else present & PEOPLE or machines or present
    )
    part = study.filter_annotations(pl.col("annotator").is_in([id for id, kind in kinds.items() if kind in wanted]))
    return part, () if filters.kinds or has_annotator_condition(where) else tuple(
        _annotator_kind_notes(wanted, machines - wanted)
    )


def _annotator_kind_notes(wanted: set[str], others: set[str]) -> Iterator[str]:
    """What a reader of the numbers must know about the kinds of annotators behind them."""
    if others:
        kinds = ", ".join(sorted(others))
        yield f"only people are counted here; annotators of kind {kinds} are left out (--kind {sorted(others)[0]})"
    elif wanted and not wanted & PEOPLE:
        kinds = ", ".join(sorted(wanted))
        yield f"no person has annotated this; the annotators counted are of kind {kinds}"


def _select_rounds(study: Study, rounds: Rounds) -> Study:
    """Of several passes of one annotator over one text the first, the last or all."""
    if rounds == "all":
        return study
    wanted_round = pl.col("round").min() if rounds == "first" else pl.col("round").max()
    return study.filter_annotations(pl.col("round") == wanted_round.over("document", "annotator", "protocol", "about"))


def resolve_label_names(protocol: Protocol, names: Sequence[str]) -> set[str]:
    """Labels by name, alias or group."""
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


def _dropped_labels(protocol: Protocol | None, filters: Filters) -> set[str]:
    """The labels that `drop` leaves out altogether."""
    names = [name for name in filters.drop if ":" not in name]
    return resolve_label_names(protocol, names) if protocol and names else set()


def drop_marks(study: Study, drop: Sequence[str]) -> Study:
    """A study without the marks that `drop` names, whatever their protocol; see `Filters.drop`."""
    marks = study.marks
    for entry in drop:
        owners = [row for row in study.protocols.values() if _has_label_or_group(row, entry.partition(":")[0])]
        for protocol in owners or list(study.protocols.values())[:1]:  # the first refuses a name that nobody has
            others = marks.filter(pl.col("protocol") != protocol.id)
            theirs = _select_marks(marks.filter(pl.col("protocol") == protocol.id), protocol, Filters(drop=(entry,)))
            marks = pl.concat([theirs, others])
    order = study.marks.select("id").join(marks, on="id", maintain_order="left")
    return replace(study, marks=order.select(study.marks.columns))


def _has_label_or_group(protocol: Protocol, name: str) -> bool:
    return protocol.has_label(name) or name in {group.name for group in protocol.groups}


def _reject_unknown_severity(protocol: Protocol, label: str, severity: str, marks: pl.DataFrame) -> None:
    """Refuse to drop a severity that no mark of the protocol can have."""
    questions = [
        question for name in resolve_label_names(protocol, [label]) for question in protocol.questions_of(name)
    ]
    offered = [str(value) for question in questions if question.name == "severity" for value in question.values]
    severities = marks.select(answer_text_expression("severity"))["severity"].drop_nulls().unique().to_list()
    if severity not in offered and severity not in severities:
        nearest = did_you_mean(severity, dict.fromkeys([*offered, *sorted(severities)]))
        raise ParameterError(f"{param('drop', f'{label}:{severity}')}: no such severity{nearest}", parameter="drop")


def answer_text_expression(name: str) -> pl.Expr:
    """The text of one entry of an `answers` column; null where it was not answered."""
    return pl.col("answers").map_elements(_build_answer_getter(name), pl.String).alias(name)


def _build_answer_getter(name: str) -> Callable[[str], str | None]:
    def text(answers: str) -> str | None:
        value = parse_json_object(answers).get(name)
        return None if value is None else str(value)

    return text


def _replace_labels_by_categories(
    study: Study, protocol: Protocol | None, filters: Filters, gone: Collection[str | None] = ()
) -> tuple[Study, tuple[str, ...]]:
    """Marks with their category in place of the label, and the categories in order, without labels that are `gone`.

    The study itself where every mark has its category for a label already.
    """
    if protocol is not None:
        _reject_merge_name_clashes(protocol, filters)
    names = [label.name for label in protocol.labels] if protocol else []
    used = _used_labels(study)
    names += sorted(name for name in used if name is not None and name not in names)
    read_labels = (
        set(names) if not filters.labels or protocol is None else resolve_label_names(protocol, filters.labels)
    )
    mapping = {
        name: _label_category(name, protocol, filters) for name in names if name in read_labels and name not in gone
    }
    typeless = ANY if filters.back_off == "any" else NO_TYPE
    has_typeless = None in used
    label = (
        pl.col("label").replace_strict(mapping, default=None, return_dtype=pl.String) if mapping else pl.col("label")
    )
    categories = dict.fromkeys([*mapping.values(), *([typeless] if has_typeless else [])])
    is_same = not has_typeless and all(mapping.get(name) == name for name in used if name is not None)
    return study if is_same else study.with_labels(label.fill_null(typeless)), tuple(categories)


def _reject_merge_name_clashes(protocol: Protocol, filters: Filters) -> None:
    """A new name must not be one that other marks go by."""
    for new, old in filters.merge:
        used_names = {label.name for label in protocol.labels} - resolve_label_names(protocol, old) | {ANY, NO_TYPE}
        if new in used_names:
            pair = f"{new}={'+'.join(old)}"
            raise ParameterError(f"{param('merge', pair)}: {new!r} is in use; choose another name", parameter="merge")


def _label_category(name: str, protocol: Protocol | None, filters: Filters) -> str:
    label = protocol.find_label(name) if protocol else None
    for new, old in filters.merge:
        if label is not None and protocol is not None and name in resolve_label_names(protocol, old):
            return new
    if filters.back_off == "any":
        return ANY
    if filters.back_off == "group":
        return label.group if label and label.group else name
    return name


def _signature_fields(protocol: Protocol | None, filters: Filters) -> dict[str, object]:
    """What a signature says of the view."""
    fields: dict[str, object] = {"protocol": protocol.id if protocol else None}
    for name, of in (("labels", "labels"), ("drop", "drop"), ("who", "annotators"), ("kinds", "kinds")):
        fields[name] = "+".join(getattr(filters, of)) or None
    fields["where"] = format_conditions_for_signature(filters.where) or None
    fields["rounds"] = filters.rounds if filters.rounds != "first" else None
    fields["back_off"] = filters.back_off if filters.back_off != "label" else None
    fields["merge"] = "+".join(f"{new}={','.join(old)}" for new, old in filters.merge) or None
    return fields
