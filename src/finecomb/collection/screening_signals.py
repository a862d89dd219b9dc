"""Screening signals: evidence that a person did not read the texts, or takes part more than once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from finecomb.collection.arrivals import PLATFORM_TITLES, Arrival
from finecomb.collection.screening import split_normalised_words
from finecomb.core.frames import parse_json_object
from finecomb.core.scales import QuestionScale
from finecomb.core.study import Study

MAX_WORDS_PER_MINUTE = 1000
"""Maximum plausible reading speed. People read 200 to 300 words per minute and skim at most 700."""
MIN_TEXT_SECONDS = 3.0
"""Minimum plausible seconds per text."""
MIN_IDENTICAL_RATINGS = 5
"""Minimum number of ratings by an annotator before identical ratings are reported."""
MAX_SIGN_INS = 10
MAX_BROWSERS = 3
MIN_ANSWER_WORDS = 5
"""Minimum number of words for an answer that two people are unlikely to write by chance."""
MIN_BROAD_MARK_SHARE = 2 / 3
"""Minimum share of a test text that a broad mark covers. Such a mark overlaps known errors without identifying them."""

SignalKind = Literal["quick", "copied", "shared", "alike", "broad", "browser", "address", "often", "again"]


@dataclass(frozen=True, slots=True)
class ScreeningSignal:
    """Observation that suggests reviewing an annotator's work."""

    sign: SignalKind
    say: str
    """Description of the signal for researchers."""
    weak: bool = False
    """True when the signal means little on its own."""


AnnotatorSignals = Iterator[tuple[str, ScreeningSignal]]
"""Pairs of an annotator and a signal."""


def signals_by_annotator(study: Study, arrivals: Sequence[Arrival]) -> dict[str, tuple[ScreeningSignal, ...]]:
    """Return the screening signals about each annotator, weak ones last."""
    people = study.annotators.filter(pl.col("kind") == "human")["id"]
    handed_in = (pl.col("phase") == "work") & (pl.col("status") != "draft")
    work = study.annotations.filter(handed_in & pl.col("annotator").is_in(people.implode()))
    signs_of: dict[str, list[ScreeningSignal]] = defaultdict(list)
    by_work = (*_find_fast_work(study, work), *_find_copied_answers(study, work), *_find_identical_ratings(study, work))
    for who, sign in (*by_work, *_find_broad_marks(study), *_find_arrival_signals(arrivals)):
        signs_of[who].append(sign)
    return {who: tuple(sorted(signs, key=lambda sign: sign.weak)) for who, signs in signs_of.items()}


# --- work --------------------------------------------------------------------------------------------------------


def _find_fast_work(study: Study, work: pl.DataFrame) -> AnnotatorSignals:
    """Find texts submitted faster than a person can read them. Without active time, elapsed time is used."""
    # The text, or its contexts when these are judged, as in pairs
    words = study.documents.select(
        document="id",
        words=pl.when(pl.col("text") != "")
        .then(pl.col("text"))
        .otherwise(pl.col("context").fill_null(""))
        .str.count_matches(r"\S+"),
    )
    seconds = pl.coalesce("active_seconds", "seconds")
    timed = work.join(words, on="document", how="left").with_columns(took=seconds).filter(pl.col("took").is_not_null())
    fast = (pl.col("took") < MIN_TEXT_SECONDS) | (
        60 * pl.col("words").fill_null(0) > MAX_WORDS_PER_MINUTE * pl.col("took")
    )
    for (who,), part in timed.partition_by("annotator", as_dict=True, maintain_order=True).items():
        quick = part.filter(fast).sort(pl.col("words") / pl.col("took"), descending=True, nulls_last=True)
        if not quick.is_empty():
            first = quick.row(0, named=True)
            say = f"{len(quick)} of {len(part)} texts were submitted faster than anyone can read"
            example = f"{first['document']} ({first['words'] or 0:,} words) in {first['took']:.0f} seconds"
            yield str(who), ScreeningSignal(sign="quick", say=f"{say}: {example}.")


def _iter_document_answers(
    study: Study, work: pl.DataFrame, has: Callable[[QuestionScale], bool]
) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the annotator, document, question and answer for each document question on a matching scale."""
    names = {
        id: frozenset(question.name for question in protocol.document_questions if has(question.scale_type))
        for id, protocol in study.protocols.items()
    }
    answered = work.filter(pl.col("answers").is_not_null()).select("annotator", "document", "protocol", "answers")
    for who, document, protocol, answers in answered.iter_rows():
        for name, answer in parse_json_object(answers).items():
            if name in names.get(protocol, ()):
                yield who, document, name, answer


def _find_copied_answers(study: Study, work: pl.DataFrame) -> AnnotatorSignals:
    """Find answers that an annotator repeated for several texts, or that another annotator also gave."""
    writers: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for who, document, _, answer in _iter_document_answers(study, work, lambda scale: scale.prose):
        key = split_normalised_words(answer) if isinstance(answer, str) else []
        if len(key) >= MIN_ANSWER_WORDS:
            writers[" ".join(key)][who].add(document)
    for words, documents_by in writers.items():
        for who, documents in documents_by.items():
            if len(documents) > 1:
                yield (
                    who,
                    ScreeningSignal(
                        sign="copied",
                        say=f"Gave the same answer about {len(documents)} texts: “{_shorten_words(words)}”",
                    ),
                )
            if others := sorted(set(documents_by) - {who}):
                yield (
                    who,
                    ScreeningSignal(
                        sign="shared",
                        say=f"Gave the same answer as {_abbreviate_name_list(others)}: “{_shorten_words(words)}”",
                    ),
                )


def _find_identical_ratings(study: Study, work: pl.DataFrame) -> AnnotatorSignals:
    """Find annotators who gave every text the same rating."""
    ratings: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for who, _, name, answer in _iter_document_answers(study, work, lambda scale: scale.rates):
        ratings[who, name].append(answer)
    for (who, name), answers in ratings.items():
        if len(answers) >= MIN_IDENTICAL_RATINGS and all(answer == answers[0] for answer in answers):
            say = f"Answered {name} with {answers[0]} all {len(answers)} times."
            yield who, ScreeningSignal(sign="alike", say=say)


def _find_broad_marks(study: Study) -> AnnotatorSignals:
    """Find marks that cover most of a qualification text."""
    tested = study.annotations.filter(pl.col("phase") == "qualification").select(annotation="id")
    marks = study.marks.join(tested, on="annotation", how="semi").select("annotator", "document", "spans")
    lengths = {
        id: len(text.text) for protocol in study.protocols.values() for id, text in protocol.practice_documents.items()
    }
    broad: dict[str, int] = defaultdict(int)
    for who, document, spans in marks.iter_rows():
        covered = sum(span["end"] - span["start"] for span in spans if span["part"] == "text")
        broad[who] += covered >= MIN_BROAD_MARK_SHARE * lengths.get(document, math.inf)
    for who, count in broad.items():
        if count > 1:
            say = f"{count} marks in the qualification cover most of a text, so they overlap any error in it."
            yield who, ScreeningSignal(sign="broad", say=say)


# --- arrivals ----------------------------------------------------------------------------------------------------


def _find_arrival_signals(arrivals: Sequence[Arrival]) -> AnnotatorSignals:
    visits_of = defaultdict(list)
    for arrival in arrivals:
        visits_of[arrival.annotator].append(arrival)
    yield from _find_shared_browser_or_address(visits_of, "device")
    yield from _find_shared_browser_or_address(visits_of, "address")
    for who, visits in visits_of.items():
        browsers = len({visit.source.device for visit in visits} - {""})
        if len(visits) > MAX_SIGN_INS or browsers > MAX_BROWSERS:
            say = f"Signed in {len(visits)} times from {browsers} browser{'' if browsers == 1 else 's'}."
            yield who, ScreeningSignal(sign="often", say=say, weak=True)
        sessions = {visit.source.session for visit in visits if visit.source.worker} - {""}
        if len(sessions) > 1:
            title = PLATFORM_TITLES.get(visits[-1].source.platform, "the platform")
            say = f"Started the study {len(sessions)} times on {title}; only the last session can be submitted there."
            yield who, ScreeningSignal(sign="again", say=say, weak=True)


def _find_shared_browser_or_address(visits_of: Mapping[str, Sequence[Arrival]], trace: str) -> AnnotatorSignals:
    """Find annotators who share a browser or an address."""
    people_of: dict[str, list[str]] = defaultdict(list)
    for who, visits in visits_of.items():
        for value in {getattr(arrival.source, trace) for arrival in visits} - {""}:
            people_of[value].append(who)
    shared: dict[str, set[str]] = defaultdict(set)
    for people in people_of.values():
        for who in people:
            shared[who].update(arrival for arrival in people if arrival != who)
    for who, others in shared.items():
        if not others:
            continue
        if trace == "device":
            yield (
                who,
                ScreeningSignal(
                    sign="browser",
                    say=f"The same browser was used to sign in as {_abbreviate_name_list(sorted(others))}.",
                ),
            )
        else:
            weak = "People in one household, school or company often do, so this alone means little."
            say = f"Shares an IP address with {_abbreviate_name_list(sorted(others))}. {weak}"
            yield who, ScreeningSignal(sign="address", say=say, weak=True)


def _abbreviate_name_list(names: Iterable[str]) -> str:
    """Join up to three names, and add the number of further names."""
    every = list(names)
    more = f" and {len(every) - 3} more" if len(every) > 3 else ""
    return ", ".join(every[:3]) + more


def _shorten_words(words: str) -> str:
    return words if len(words) <= 80 else f"{words[:79]}…"
