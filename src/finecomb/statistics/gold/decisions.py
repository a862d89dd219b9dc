"""Decisions of adjudicators, and the gold marks they bring in place of the annotators' votes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl
from pydantic import Field, ValidationError

from finecomb.core import frames
from finecomb.core.records import Id, Record, Text, Time
from finecomb.core.study import Study
from finecomb.statistics.selection.view import NO_TYPE, View

DecisionType = Literal["taken", "merged", "changed", "split", "not-an-error", "discuss", "added"]
"""A mark as it is, all merged, a mark changed by hand, several, no mark, no decision yet, one that nobody made."""
SETTLING_DECISIONS: frozenset[DecisionType] = frozenset(
    {"taken", "merged", "changed", "split", "not-an-error", "added"}
)
"""The decisions that close a dispute."""
ERROR_COLUMNS = ["cluster", "document", "label", "top", "votes", "readers", "needed", "kept", "decided"]
GOLD = "gold"


class Decision(Record):
    """The decision about a dispute, stored in the gold annotation's `meta.adjudication` under the dispute's key."""

    what: DecisionType
    """The decision."""
    by: Text
    """Who decided."""
    when: Time
    """When, in UTC."""
    version: int = Field(default=1, ge=1)
    """Counts the decisions about the text up to this one."""
    taken: Id | None = None
    """Id of the mark that was taken, or that a changed mark began with."""
    readings: tuple[Id, ...] = ()
    """Ids of all marks of the dispute, after the protocol's rules."""
    gold: tuple[Id, ...] = ()
    """Ids of the gold marks that came of it."""


@dataclass(frozen=True)
class Adjudication:
    """What adjudicators decided about the texts of a merge."""

    clusters: frozenset[int]
    """The clusters that a decision is about."""
    gold_marks: pl.DataFrame
    """The marks that came of the decisions, as in a study, with cluster: where one belongs to, or a new number."""
    decisions: int = 0
    texts: tuple[str, ...] = ()
    """Ids of the texts about which something was decided."""
    notes: tuple[str, ...] = field(default=())

    def apply_to_errors(self, errors: pl.DataFrame) -> pl.DataFrame:
        """The errors of a merge, those decided with the label and the number of marks that were decided."""
        if not self.decisions:
            return errors
        settled = pl.col("cluster").is_in(sorted(self.clusters))
        readers = errors.group_by("document").agg(pl.col("readers").first(), pl.col("needed").first())
        rest = errors.with_columns(kept=pl.col("kept") & ~settled, decided=settled)
        votes = errors.select("cluster", "top", given="votes")
        gold = self.gold_marks.select("cluster", "document", "label", "votes").join(readers, on="document", how="left")
        gold = gold.join(votes, on="cluster", how="left", maintain_order="left").with_columns(
            pl.col("label").fill_null(NO_TYPE),
            pl.coalesce("given", "votes", 0).cast(errors.schema["votes"]).alias("votes"),
            pl.col("top").fill_null(0),
            pl.col("readers", "needed").fill_null(0),
            kept=pl.lit(True),
            decided=pl.lit(True),
        )
        rest = rest.join(gold.select("cluster"), on="cluster", how="anti", maintain_order="left")
        kinds = [pl.col(name).cast(errors.schema[name]) for name in ERROR_COLUMNS]
        return pl.concat([rest.select(kinds), gold.select(kinds)]).sort("cluster")

    def add_gold_marks(self, voted: pl.DataFrame, suffix: str) -> pl.DataFrame:
        """The marks of gold: those by votes and those by decisions, which become gold's own."""
        if self.gold_marks.is_empty():
            return voted
        rows = self.gold_marks.drop("cluster").with_columns(
            annotation=pl.col("document") + suffix, annotator=pl.lit(GOLD)
        )
        return pl.concat([voted, rows.select(voted.columns)])


NO_ADJUDICATION = Adjudication(frozenset(), pl.DataFrame())


def collect_adjudication(source: Study, view: View, clusters: pl.DataFrame) -> Adjudication:
    """The decisions of a study about the texts of a view, held against the clusters of its marks.

    A cluster is decided when one of its marks is listed in a decision. Decisions left for discussion decide nothing.
    """
    rows = _gold_annotation_rows(source, view)
    decisions = [(id, document, decision) for id, document, cell in rows for decision in _settling_decisions(cell)]
    if not decisions:
        return NO_ADJUDICATION
    places = dict(clusters.select("mark", "cluster").iter_rows())
    numbers: dict[str, int] = {}
    members: set[int] = set()
    new = len(places)
    for _, _, decision in decisions:
        of_readings = sorted({places[mark] for mark in decision.readings if mark in places})
        members |= set(of_readings)
        for at, mark in enumerate(decision.gold):
            numbers[mark] = of_readings[0] if not at and of_readings else (new := new + 1)
    cells = pl.DataFrame(list(numbers.items()), schema={"id": pl.String, "cluster": pl.Int64}, orient="row")
    marks = source.marks.join(cells, on="id", maintain_order="left")
    texts = tuple(dict.fromkeys(document for _, document, _ in decisions))
    note = f"{len(decisions):,} errors in {len(texts):,} texts were decided by an adjudicator; they count as decided"
    return Adjudication(frozenset(members), marks, len(decisions), texts, (note,))


def _gold_annotation_rows(source: Study, view: View) -> Sequence[tuple[str, str, str]]:
    """Annotation, document and meta of every gold annotation, drafts too, that may have decisions."""
    golden = source.annotators.filter(pl.col("kind") == "gold")["id"].implode()
    documents = view.study.documents["id"].implode()
    is_gold = pl.col("annotator").is_in(golden) & pl.col("document").is_in(documents) & pl.col("meta").is_not_null()
    if view.protocol is not None:
        is_gold &= pl.col("protocol") == view.protocol.id
    return source.annotations.filter(is_gold & (pl.col("status") != "excluded")).select("id", "document", "meta").rows()


@functools.lru_cache(maxsize=4096)
def _settling_decisions(meta: str) -> tuple[Decision, ...]:
    """The decisions in the meta of a gold annotation that settle a dispute."""
    return tuple(decision for decision in _stored_decisions(meta) if decision.what in SETTLING_DECISIONS)


def _stored_decisions(meta: str) -> Iterator[Decision]:
    stored = frames.parse_json_object(meta).get("adjudication")
    for decision in stored.values() if isinstance(stored, dict) else ():
        try:
            yield Decision.model_validate(decision)
        except ValidationError:  # anybody may write files; what is not a decision decides nothing
            continue


def decision_counts(study: Study, annotator: str) -> tuple[int, int]:
    """How many decisions, and about how many texts, the handed-in annotations of a gold annotator hold."""
    work = study.submitted_work().annotations.filter((pl.col("annotator") == annotator) & pl.col("meta").is_not_null())
    counts = [len(_settling_decisions(meta)) for meta in work["meta"]]
    return sum(counts), sum(count > 0 for count in counts)


def decision_notes(study: Study) -> Iterator[str]:
    """How many decisions of an adjudicator are behind the gold that a statistic reads."""
    golden = study.annotators.filter(pl.col("kind") == "gold")["id"]
    for name in golden.filter(golden.is_in(study.annotations["annotator"].implode())):
        decisions, texts = decision_counts(study, name)
        if decisions:
            yield f"{name} was decided by an adjudicator: {decisions:,} decisions in {texts:,} texts"
