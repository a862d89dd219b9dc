"""Annotators merged into one gold standard by majority: Thomson and Reiter (2020), section 3.5, for every protocol."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from finecomb.agreement import align as alignment
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Signature
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Answer, Answers, Document, Exclusion, Mark
from finecomb.core.span import Span, covered, touched, union
from finecomb.core.study import Item, Study
from finecomb.core.tokens import words
from finecomb.gold.normalise import Normalisation, Normalised, normalise
from finecomb.measure.view import NO_TYPE, View, as_view

Size = Literal["widest", "narrowest", "majority", "union"]
GOLD = "gold"
SPLIT = "split"
"""What tables print for an error on whose label there is no majority."""


@dataclass(frozen=True)
class Gold:
    """A gold standard, and all that went into it."""

    study: Study
    """The texts with one annotator, `gold`."""
    view: View
    """What the annotators marked, after the protocol's rules were applied."""
    clusters: pl.DataFrame
    """One row per mark, as `align` gives them, with weight: how many readers it stands for."""
    errors: pl.DataFrame
    """One row per cluster: cluster, document, label (or `split`, `no type`), top (votes for that label), votes,
    readers, kept."""
    changes: tuple[Normalisation, ...]
    """What was normalised and why."""
    align: str
    """How marks were aligned."""
    signature: Signature
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> pl.DataFrame:
        """The errors that have enough votes."""
        return self.errors.filter("kept")

    @property
    def rest(self) -> pl.DataFrame:
        """What is left for adjudication: splits, and errors with too few votes."""
        return self.errors.filter((pl.col("label") == SPLIT) | ~pl.col("kept"))


def gold(study: Study | View, min_votes: int = 2, align: str = "auto", size: Size = "majority") -> Gold:
    """Merge the annotators of a study: errors that at least `min_votes` of them marked, with the majority's label.

    `align` says which marks are one error, see `finecomb.agreement.align`; `auto` goes by the marks' `item` where the
    source gives one, else by overlap. Differences of size are removed by the protocol's `trim` and then by `size`: the
    widest or narrowest reading, the tokens that more than half of those who marked the error have, or all of them. The
    guidelines that can be checked are applied first, but not to given items, which say already what one error is.
    A label needs more than half of those who marked the error; without one the label is null and `label_votes` says
    what was given. A text with fewer readers than votes needed gets an annotation set aside, since nothing could pass.
    """
    seen = as_view(study)
    _check(seen, min_votes, size)
    by = _alignment(seen, align)
    ready = normalise(seen, guidelines=by != "item")
    clusters = _weighed(alignment.align(ready.view, by), ready.view)
    errors = _errors(clusters, ready.view, min_votes)
    said = {"min_votes": min_votes, "align": by, "size": size, **seen.fields}
    merger = _Merger(ready, clusters, errors, min_votes, size)
    annotations = list(merger.annotations(Signature.of(statistic=GOLD, **said)))
    made = _study(seen.study, annotations)
    changes = (*ready.changes, *merger.resized)
    signature = Signature.of(statistic=GOLD, **said, annotators=seen.study.annotations["annotator"].n_unique())
    notes = _notes(seen, annotations, by, min_votes)
    return Gold(made, ready.view, clusters, errors, changes, by, signature, notes)


def _check(seen: View, min_votes: int, size: str) -> None:
    if size not in SIZES:
        raise FinecombError(f"a size cannot be {size!r}{did_you_mean(size, SIZES)}")
    if min_votes < 1:
        raise FinecombError(f"an error needs at least one vote, not {min_votes}")
    if seen.study.annotations.is_empty():
        raise FinecombError("the study has no annotations to merge")
    if seen.protocol is None:
        raise FinecombError("the study has no protocol, so nothing says which labels there are")


def _alignment(seen: View, align: str) -> str:
    if align != "auto":
        return align
    return "item" if seen.study.marks["item"].null_count() < len(seen.study.marks) else "overlap"


def _study(source: Study, annotations: Sequence[Annotation]) -> Study:
    head: list[Item] = [source.settings, *source.protocols.values(), *source.iter_documents()]
    return Study.from_items([*head, Annotator(id=GOLD, kind="gold"), *annotations])


def _notes(seen: View, annotations: Sequence[Annotation], by: str, min_votes: int) -> tuple[str, ...]:
    notes = []
    if short := [each.document for each in annotations if each.excluded]:
        listed = ", ".join(short[:5]) + (", ..." if len(short) > 5 else "")
        notes.append(f"{len(short)} texts have fewer than {min_votes} readers and get no gold ({listed})")
    if by == "item" and (broken := len([c for c in normalise(seen).changes if c.rule != "trim"])):
        notes.append(
            f"{broken} marks do not follow the guidelines; they are kept, since the source says what one error is"
        )
    return tuple(notes)


# --- votes -------------------------------------------------------------------------------------------------------


def _weighed(clusters: pl.DataFrame, view: View) -> pl.DataFrame:
    """How many readers each mark stands for: one, or the votes of pooled readers."""
    votes = view.study.marks.select("votes", mark="id")
    kinds = view.study.annotators.select("kind", annotator="id")
    rows = clusters.join(votes, on="mark", how="left", maintain_order="left")
    rows = rows.join(kinds, on="annotator", how="left", maintain_order="left")
    weight = pl.when(pl.col("kind") == "pooled").then(pl.col("votes").fill_null(1)).otherwise(1)
    return rows.with_columns(weight=weight.cast(pl.Int64)).drop("votes", "kind")


def _errors(clusters: pl.DataFrame, view: View, min_votes: int) -> pl.DataFrame:
    """One row per cluster with its votes, and the label that more than half of those who marked it gave."""
    readers = view.study.annotations.group_by("document").agg(readers=pl.col("readers").fill_null(1).sum())
    given = clusters.group_by("cluster", "document", "label", maintain_order=True).agg(top=pl.col("weight").sum())
    given = given.with_columns(votes=pl.col("top").sum().over("cluster"))
    best = given.sort("top", descending=True, maintain_order=True).unique("cluster", keep="first", maintain_order=True)
    majority = pl.when(pl.col("top") * 2 > pl.col("votes")).then("label").otherwise(pl.lit(SPLIT))
    rows = best.with_columns(label=majority).join(readers, on="document", how="left", maintain_order="left")
    rows = rows.with_columns(kept=(pl.col("votes") >= min_votes) & (pl.col("readers") >= min_votes))
    return rows.select("cluster", "document", "label", "top", "votes", "readers", "kept").sort("cluster")


# --- one mark of many --------------------------------------------------------------------------------------------


class _Merger:
    """Makes the annotations of gold; kept apart so that what was resized can be told."""

    def __init__(
        self, ready: Normalised, clusters: pl.DataFrame, errors: pl.DataFrame, min_votes: int, size: Size
    ) -> None:
        assert ready.view.protocol is not None
        self.view, self.protocol, self.marks, self.origins = ready.view, ready.view.protocol, ready.marks, ready.origins
        self.min_votes, self.size = min_votes, size
        own = clusters.group_by("cluster", maintain_order=True).agg("mark", "annotator", "weight")
        rows = errors.filter("kept").join(own, on="cluster", maintain_order="left").iter_rows(named=True)
        self.errors: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            self.errors.setdefault(row["document"], []).append(row)
        self.resized: list[Normalisation] = []

    def annotations(self, signature: Signature) -> Iterator[Annotation]:
        """One for each text that was read."""
        read = self.view.study.annotations.group_by("document").agg("id", readers=pl.col("readers").fill_null(1).sum())
        made_from = {document: (tuple(ids), readers) for document, ids, readers in read.iter_rows()}
        for document in self.view.study.iter_documents():
            ids, readers = made_from[document.id]
            few = f"{readers} of the {self.min_votes} readers that gold needs" if readers < self.min_votes else ""
            yield Annotation(
                id=f"{document.id}/{GOLD}",
                document=document.id,
                annotator=GOLD,
                protocol=self.protocol.id,
                status="excluded" if few else "submitted",
                excluded=Exclusion(by="finecomb", reason=few) if few else None,
                marks=tuple(self._marks(document)),
                made_from=ids,
                meta={"gold": str(signature), "readers": readers},
            )

    def _marks(self, document: Document) -> Iterator[Mark]:
        for number, error in enumerate(self.errors.get(document.id, ()), 1):
            yield self._mark(f"{document.id}/{GOLD}/{number}", document, error)

    def _mark(self, id: str, document: Document, error: Mapping[str, Any]) -> Mark:
        marks = [self.marks[each] for each in error["mark"]]
        label = None if error["label"] in (SPLIT, NO_TYPE) else error["label"]
        backing = [mark for mark in marks if mark.label == label] or marks
        items = {mark.item for mark in marks}
        return Mark(
            id=id,
            label=label,
            answers=merged_answers([mark.answers for mark in marks], self.protocol, label),
            antecedents=next((mark.antecedents for mark in backing if mark.antecedents), None),
            votes=error["votes"],
            label_votes=_label_votes(marks, error["weight"]) if error["label"] == SPLIT else None,
            item=items.pop() if len(items) == 1 else None,
            made_from=tuple(dict.fromkeys(self.origins.get(mark.id, mark.id) for mark in marks)),
            alternatives=tuple(dict.fromkeys(itertools.chain.from_iterable(mark.alternatives for mark in marks))),
            **self._place(document, marks, error["weight"], error["annotator"]),
        )

    def _place(
        self, document: Document, marks: Sequence[Mark], weights: Sequence[int], who: Sequence[str]
    ) -> dict[str, Any]:
        """Spans and quotes of the size asked for; every reading of another size is a change."""
        located = [(mark, weight) for mark, weight in zip(marks, weights, strict=True) if mark.spans]
        if not located:
            return {"spans": (), "quotes": marks[0].quotes, "unlocated": marks[0].unlocated}
        readings = [mark.spans for mark, _ in located]
        same = len(set(readings)) == 1
        spans = readings[0] if same else SIZES[self.size](readings, [weight for _, weight in located], document)
        quotes = tuple(span.of(document.part(span.part) or "") for span in spans)
        for mark, annotator in zip(marks, who, strict=True):
            if mark.spans and union(mark.spans) != union(spans):
                before, after = " … ".join(mark.quotes), " … ".join(quotes)
                self.resized.append(Normalisation(document.id, annotator, mark.id, "size", before, after))
        return {"spans": spans, "quotes": quotes}


def _label_votes(marks: Sequence[Mark], weights: Sequence[int]) -> dict[str, int]:
    votes: Counter[str] = Counter()
    for mark, weight in zip(marks, weights, strict=True):
        votes[mark.label or NO_TYPE] += weight
    return dict(votes)


def merged_answers(given: Sequence[Answers], protocol: Protocol, label: str | None) -> Answers:
    """What was answered about one error: words that differ side by side, of anything else the most frequent answer.

    Of answers equally frequent the first counts. Answers to questions that the label does not ask stay behind.
    """
    asked = {question.name: question for question in protocol.questions_of(label)}
    merged: dict[str, Answer] = {}
    for name in dict.fromkeys(name for answers in given for name in answers):
        if name in asked:
            merged[name] = asked[name].kind.merge([answers[name] for answers in given if name in answers])
    return merged


# --- sizes -------------------------------------------------------------------------------------------------------

Spans = tuple[Span, ...]
_tokens = functools.lru_cache(maxsize=16)(words)  # the errors of a text come one after another


def _widest(readings: Sequence[Spans], weights: Sequence[int], document: Document) -> Spans:
    return min(readings, key=lambda spans: (-covered(spans), spans))


def _narrowest(readings: Sequence[Spans], weights: Sequence[int], document: Document) -> Spans:
    return min(readings, key=lambda spans: (covered(spans), spans))


def _all(readings: Sequence[Spans], weights: Sequence[int], document: Document) -> Spans:
    return tuple(sorted(union(itertools.chain.from_iterable(readings))))


def _majority(readings: Sequence[Spans], weights: Sequence[int], document: Document) -> Spans:
    """Runs of the tokens that more than half of the readings touch; the widest reading where there is none."""
    found: list[Span] = []
    for part in dict.fromkeys(span.part for spans in readings for span in spans):
        offsets = _tokens(document.part(part) or "")
        shares = [
            weight * touched([span for span in spans if span.part == part], offsets)
            for spans, weight in zip(readings, weights, strict=True)
        ]
        chosen = np.flatnonzero(np.sum(shares, axis=0) * 2 > sum(weights))
        for run in np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1) if len(chosen) else ():
            found.append(Span(int(offsets[run[0], 0]), int(offsets[run[-1], 1]), part))
    return tuple(sorted(found)) or _widest(readings, weights, document)


SIZES: dict[str, Callable[[Sequence[Spans], Sequence[int], Document], Spans]] = {
    "widest": _widest,
    "narrowest": _narrowest,
    "majority": _majority,
    "union": _all,
}
