"""Decisions of adjudicators, and the gold marks that follow from them in place of the annotators' votes."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import polars as pl
from pydantic import Field, ValidationError

from finecomb.core import frames
from finecomb.core.records import Id, Record, Text, Time
from finecomb.core.study import Study
from finecomb.statistics.selection.view import NO_TYPE_LABEL, View

DecisionType = Literal["taken", "merged", "changed", "split", "not-an-error", "discuss", "added"]
"""Type of decision.

`taken` keeps a mark as it is, `merged` merges all marks, `changed` edits a mark, `split` makes several, `not-an-error`
keeps none, `discuss` leaves the decision open, and `added` adds a mark that no annotator made."""
SETTLING_DECISIONS: frozenset[DecisionType] = frozenset(
    {"taken", "merged", "changed", "split", "not-an-error", "added"}
)
"""Decisions that close a dispute."""
MERGED_ERROR_COLUMNS = ["cluster", "document", "label", "top", "votes", "readers", "needed", "kept", "decided"]
GOLD_ANNOTATOR_ID = "gold"


class Decision(Record):
    """Decision about a dispute, stored in the gold annotation's `meta.adjudication` under the dispute's key."""

    what: DecisionType
    """Type of the decision."""
    by: Text
    """Adjudicator who made the decision."""
    when: Time
    """Time of the decision in UTC."""
    version: int = Field(default=1, ge=1)
    """Sequence number of the decision within its text."""
    taken: Id | None = None
    """ID of the mark that was kept, or from which a changed mark was made."""
    readings: tuple[Id, ...] = ()
    """IDs of all marks of the dispute, after the protocol's rules."""
    gold: tuple[Id, ...] = ()
    """IDs of the resulting gold marks."""


@dataclass(frozen=True)
class Adjudication:
    """Decisions of adjudicators about the texts of a merge."""

    clusters: frozenset[int]
    """Clusters that have a decision."""
    gold_marks: pl.DataFrame
    """Gold marks that follow from the decisions: a table of marks with the additional column cluster."""
    decisions: int = 0
    texts: tuple[str, ...] = ()
    """IDs of the texts with decisions."""
    notes: tuple[str, ...] = field(default=())

    def apply_to_errors(self, errors: pl.DataFrame) -> pl.DataFrame:
        """Return the errors of a merge, with the labels and marks of the decisions applied to them."""
        if not self.decisions:
            return errors
        settled = pl.col("cluster").is_in(sorted(self.clusters))
        readers = errors.group_by("document").agg(pl.col("readers").first(), pl.col("needed").first())
        without_gold_marks = errors.with_columns(kept=pl.col("kept") & ~settled, decided=settled)
        votes = errors.select("cluster", "top", given="votes")
        gold = self.gold_marks.select("cluster", "document", "label", "votes").join(readers, on="document", how="left")
        gold = gold.join(votes, on="cluster", how="left", maintain_order="left").with_columns(
            pl.col("label").fill_null(NO_TYPE_LABEL),
            pl.coalesce("given", "votes", 0).cast(errors.schema["votes"]).alias("votes"),
            pl.col("top").fill_null(0),
            pl.col("readers", "needed").fill_null(0),
            kept=pl.lit(True),
            decided=pl.lit(True),
        )
        without_gold_marks = without_gold_marks.join(
            gold.select("cluster"), on="cluster", how="anti", maintain_order="left"
        )
        kinds = [pl.col(name).cast(errors.schema[name]) for name in MERGED_ERROR_COLUMNS]
        return pl.concat([without_gold_marks.select(kinds), gold.select(kinds)]).sort("cluster")

    def add_gold_marks(self, voted: pl.DataFrame, suffix: str) -> pl.DataFrame:
        """Return the gold marks from votes together with those from decisions, reassigned to the gold annotator."""
        if self.gold_marks.is_empty():
            return voted
        rows = self.gold_marks.drop("cluster").with_columns(
            annotation=pl.col("document") + suffix, annotator=pl.lit(GOLD_ANNOTATOR_ID)
        )
        return pl.concat([voted, rows.select(voted.columns)])


NO_ADJUDICATION = Adjudication(frozenset(), pl.DataFrame())


def collect_adjudication(source: Study, view: View, clusters: pl.DataFrame) -> Adjudication:
    """Collect the decisions of a study about the texts of a view, and match them to the clusters of its marks.

    A cluster is decided if one of its marks is listed in a decision. Decisions of the type `discuss` do not count.
    """
    # Annotation, document and meta of all gold annotations with meta, drafts included
    golden = source.annotators.filter(pl.col("kind") == "gold")["id"].implode()
    documents = view.study.documents["id"].implode()
    is_gold = pl.col("annotator").is_in(golden) & pl.col("document").is_in(documents) & pl.col("meta").is_not_null()
    if view.protocol is not None:
        is_gold &= pl.col("protocol") == view.protocol.id
    rows = source.annotations.filter(is_gold & (pl.col("status") != "excluded")).select("id", "document", "meta").rows()
    decisions = [(id, document, decision) for id, document, cell in rows for decision in _settling_decisions(cell)]
    if not decisions:
        return NO_ADJUDICATION
    cluster_by_mark = dict(clusters.select("mark", "cluster").iter_rows())
    numbers: dict[str, int] = {}
    members: set[int] = set()
    new = len(cluster_by_mark)
    for _, _, decision in decisions:
        of_readings = sorted({cluster_by_mark[mark] for mark in decision.readings if mark in cluster_by_mark})
        members |= set(of_readings)
        for index, mark in enumerate(decision.gold):
            numbers[mark] = of_readings[0] if not index and of_readings else (new := new + 1)
    cells = pl.DataFrame(list(numbers.items()), schema={"id": pl.String, "cluster": pl.Int64}, orient="row")
    marks = source.marks.join(cells, on="id", maintain_order="left")
    texts = tuple(dict.fromkeys(document for _, document, _ in decisions))
    note = (
        f"{len(decisions):,} errors in {len(texts):,} texts were decided by an adjudicator, which overrides the votes"
    )
    return Adjudication(frozenset(members), marks, len(decisions), texts, (note,))


@functools.lru_cache(maxsize=4096)
def _settling_decisions(meta: str) -> tuple[Decision, ...]:
    """Return the decisions in the meta of a gold annotation that close a dispute."""
    return tuple(decision for decision in _parse_stored_decisions(meta) if decision.what in SETTLING_DECISIONS)


def _parse_stored_decisions(meta: str) -> Iterator[Decision]:
    stored = frames.parse_json_object(meta).get("adjudication")
    for decision in stored.values() if isinstance(stored, dict) else ():
        try:
            yield Decision.model_validate(decision)
        except ValidationError:  # files may come from other programs; an invalid decision is ignored
            continue


def decision_and_text_counts(study: Study, annotator: str) -> tuple[int, int]:
    """Return the number of decisions and the number of texts with decisions in a gold annotator's submitted work."""
    work = study.submitted_work().annotations.filter((pl.col("annotator") == annotator) & pl.col("meta").is_not_null())
    counts = [len(_settling_decisions(meta)) for meta in work["meta"]]
    return sum(counts), sum(count > 0 for count in counts)


def decision_notes(study: Study) -> Iterator[str]:
    """Yield a note for each gold annotator whose marks include decisions of an adjudicator."""
    golden = study.annotators.filter(pl.col("kind") == "gold")["id"]
    for name in golden.filter(golden.is_in(study.annotations["annotator"].implode())):
        decisions, texts = decision_and_text_counts(study, name)
        if decisions:
            yield f"{name} was adjudicated: {decisions:,} decisions in {texts:,} texts"
