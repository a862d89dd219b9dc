"""Gold and judges on small texts, with slow reference implementations of the matching rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from finecomb.core.records import AlternativeMark, Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.gold.mark_matching import MarkAlternatives, MarkArrays, MatchingProblem, find_candidate_pairs
from finecomb.statistics.gold.scores import Score, Scores
from tests.statistics.agreement.agreement_studies import PROTOCOL, MarkTuple

TEXT = "one two three four"  # words at 0-3, 4-7, 8-13, 14-18
LABELS = ["red", "blue", "green"]
MarksByAnnotation = Mapping[tuple[str, str], Sequence[MarkTuple]]


def make_gold_mark(id: str, text: str, start: int, end: int, label: str | None, **more: Any) -> Mark:
    return Mark(id=id, spans=(Span(start, end),), quotes=(text[start:end],), label=label, **more)


def make_alternative(text: str, start: int, end: int, label: str) -> AlternativeMark:
    return AlternativeMark(spans=(Span(start, end),), quotes=(text[start:end],), label=label)


def make_gold_study(
    texts: Mapping[str, str],
    given: Mapping[tuple[str, str], Sequence[Mark | MarkTuple]],
    meta: Mapping[str, dict[str, Any]] | None = None,
) -> Study:
    """Build a study from texts by ID and the marks of (document, annotator); `gold` is an annotator of kind gold."""
    people = dict.fromkeys(name for _, name in given)
    annotations = [
        Annotation(
            id=f"{document}/{name}",
            document=document,
            annotator=name,
            protocol=PROTOCOL.id,
            marks=tuple(
                each if isinstance(each, Mark) else make_gold_mark(f"{document}/{name}/{at}", texts[document], *each)
                for at, each in enumerate(own)
            ),
        )
        for (document, name), own in given.items()
    ]
    documents = [Document(id=id, text=text, meta=(meta or {}).get(id, {})) for id, text in texts.items()]
    who = [Annotator(id=name, kind="gold" if name == "gold" else "human") for name in people]
    return Study.from_items([PROTOCOL, *documents, *who, *annotations])


def score_row(scores: Scores, label: str, judge: str = "") -> Score:
    found = [each for each in scores.rows if each.columns["label"] == label and judge in ("", each.columns["judge"])]
    assert len(found) == 1
    return found[0]


@st.composite
def mark_lists(draw: st.DrawFn, apart: bool = False, omissions: bool = True) -> list[MarkTuple]:
    """Draw up to four marks of one text in any order; `apart` keeps them from overlapping."""
    found: list[MarkTuple] = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(TEXT) - 1))
        end = draw(st.integers(start if omissions else start + 1, len(TEXT)))
        span = Span(start, end)
        if not apart or not any(span.overlap_length(Span(*each[:2])) for each in found):
            found.append((start, end, draw(st.sampled_from([*LABELS, None]))))
    return found


@st.composite
def gold_and_judge_marks(
    draw: st.DrawFn, apart: bool = False, omissions: bool = True
) -> dict[tuple[str, str], list[MarkTuple]]:
    """Draw the marks of gold and of one judge on two texts."""
    both: dict[tuple[str, str], list[MarkTuple]] = {}
    for document in ("d0", "d1"):
        both[document, "gold"] = draw(mark_lists(omissions=omissions))
        both[document, "judge"] = draw(mark_lists(apart, omissions))
    return both


TEXTS = {"d0": TEXT, "d1": TEXT}


def mark_arrays(documents: Sequence[Sequence[MarkTuple]]) -> MarkArrays:
    """Return the marks of each document in text order, as the input of the rules."""
    rows = [(at, *each) for at, own in enumerate(documents) for each in sorted(own, key=lambda m: m[:2])]
    document, start, end = (np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1, 2))
    label = np.array([LABELS.index(row[3]) if row[3] else -1 for row in rows], dtype=np.int64)
    return MarkArrays(document, label, end - start, np.arange(len(rows)), document, start, end)


def compare_gold_and_judge(both: MarksByAnnotation) -> MatchingProblem:
    """Build the matching problem of gold and the judge on both texts, without alternatives."""
    gold, judge = (mark_arrays([both[document, name] for document in TEXTS]) for name in ("gold", "judge"))
    none = mark_arrays([])
    no_alternatives, no_pairs = MarkAlternatives(none, {}, []), find_candidate_pairs(none, none)
    pairs = find_candidate_pairs(gold, judge)
    return MatchingProblem(gold, judge, pairs, no_alternatives, no_pairs, no_alternatives, no_pairs)


def slow_greedy_match_count(gold: Sequence[MarkTuple], judge: Sequence[MarkTuple], same: bool = False) -> int:
    """Count matches from left to right, each gold mark with the first free overlapping mark, of its label if `same`."""
    left = sorted(judge, key=lambda each: each[:2])
    used: set[int] = set()
    for start, end, label in sorted(gold, key=lambda each: each[:2]):
        for at, (first, last, said) in enumerate(left):
            agrees = not same or (label is not None and label == said)
            if at not in used and agrees and Span(start, end).intersects(Span(first, last)):
                used.add(at)
                break
    return len(used)


def slow_optimal_match_count(gold: Sequence[MarkTuple], judge: Sequence[MarkTuple], same: bool = False) -> int:
    """Return the maximum number of pairs of any one-to-one matching, by trying all."""
    if not gold:
        return 0
    start, end, label = gold[0]
    best = slow_optimal_match_count(gold[1:], judge, same)
    for at, (first, last, said) in enumerate(judge):
        agrees = not same or (label is not None and label == said)
        if agrees and Span(start, end).intersects(Span(first, last)):
            best = max(best, 1 + slow_optimal_match_count(gold[1:], [*judge[:at], *judge[at + 1 :]], same))
    return best


def marked_positions(own: Sequence[MarkTuple], label: str | None = None) -> set[int]:
    """Return the characters covered by the marks, or by those of one label."""
    return {at for start, end, said in own if label in (None, said) for at in range(start, end)}
