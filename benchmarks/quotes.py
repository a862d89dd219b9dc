"""Placing quotes drawn from real spans, beside the usual ways: 300 cases a row, by a seed.

Needs the folder that FINECOMB_DATA names. A case is a span of an annotated text whose words were changed in one way;
the right place is the whole span. For altered and foreign quotes the right answer is none, or one that is flagged.
"""

from __future__ import annotations

import difflib
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import fuzz

from finecomb import formats
from finecomb.core.quotes import Placement, Quote, place_quotes
from finecomb.core.text_folding import Range, occurrences

FILES = (
    "accuracy_shared_task/gsml.csv",
    "thresh_samples/scarecrow.json",
    "snac/SNaC_data.json",
    "wmt_mqm_ted_ende/mqm_ted_ende.tsv",
)
CASE_COUNT, SEED = 300, 0
SourceSpan = tuple[str, Range]


@dataclass(frozen=True)
class Case:
    text: str
    quote: Quote
    answer: Range | None


def read_source_spans(folder: Path) -> list[SourceSpan]:
    """Every located span with its text; blanks at its edges are left off."""
    spans: list[SourceSpan] = []
    for name in FILES:
        study = formats.read(folder / name, "")
        texts = dict(study.documents.select("id", "text").iter_rows())
        rows = study.spans.select("document", "start", "end", "part").iter_rows()
        spans += [(texts[id], _trim_range(texts[id], a, b)) for id, a, b, part in rows if part == "text"]
    return list(dict.fromkeys((text, (a, b)) for text, (a, b) in spans if b > a))


def _trim_range(text: str, start: int, end: int) -> Range:
    words = text[start:end]
    return start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())


def make_quote(text: str, span: Range, words: str | None = None, context: int = 5) -> Quote:
    """The words of a span, or others in their place, with `context` words before and after."""
    before, after = text[: span[0]].split()[-context:], text[span[1] :].split()[:context]
    if not context:
        before, after = [], []
    return Quote(text[slice(*span)] if words is None else words, " ".join(before), " ".join(after))


def unique_quote(text: str, span: Range, rng: random.Random) -> Quote | None:
    quote = make_quote(text, span, context=0)
    return quote if len(occurrences(quote.text, text)) == 1 else None


def repeated_quote(text: str, span: Range, rng: random.Random) -> Quote | None:
    quote = make_quote(text, span)
    return quote if len(occurrences(quote.text, text)) > 1 else None


def drop_word(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)].split()
    if len(words) < 4:
        return None
    out = rng.randrange(1, len(words) - 1)
    return make_quote(text, span, " ".join(words[:out] + words[out + 1 :]))


def elide_words(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)].split()
    if len(words) < 6:
        return None
    first, last = rng.randrange(2, len(words) // 2), rng.randrange(2, len(words) // 2)
    dots = rng.choice(["...", "…", "[...]"])
    return make_quote(text, span, " ".join([*words[:first], dots, *words[-last:]]))


def change_quotation_marks(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)]
    straight = words.translate(str.maketrans("‘’“”", "''\"\""))
    changed = straight.replace("'", "’") if words == straight else straight
    changed = re.sub(r'"(\S)', r"“\1", changed).replace('"', "”") if words == straight else changed
    return make_quote(text, span, changed) if changed != words else None


def swap_letters(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)]
    places = [at for at in range(1, len(words) - 2) if words[at : at + 2].islower() and words[at : at + 2].isalpha()]
    places = [at for at in places if words[at] != words[at + 1]]
    if len(words.split()) < 3 or not places:
        return None
    at = rng.choice(places)
    return make_quote(text, span, words[:at] + words[at + 1] + words[at] + words[at + 2 :])


def alter_digit(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)]
    places = [at for at, character in enumerate(words) if character.isdigit() and character.isascii()]
    if not places:
        return None
    at = rng.choice(places)
    return make_quote(text, span, words[:at] + str((int(words[at]) + rng.randrange(1, 10)) % 10) + words[at + 1 :])


def foreign_quote(text: str, span: Range, rng: random.Random) -> Quote | None:
    return None  # drawn from another text: see `cases`


QuoteChange = Callable[[str, Range, random.Random], Quote | None]
QUOTE_CHANGES: dict[str, tuple[QuoteChange, float | None]] = {
    "unique, no context": (unique_quote, 0.99),
    "repeated, with context": (repeated_quote, 0.95),
    "a word dropped": (drop_word, 0.95),
    "elided with ...": (elide_words, 0.95),
    "other quotation marks": (change_quotation_marks, 0.95),
    "two letters swapped": (swap_letters, None),
    "a digit altered": (alter_digit, None),
    "from another text": (foreign_quote, None),
}
UNPLACEABLE_ROWS = {"a digit altered", "from another text"}


def draw_cases(name: str, spans: list[SourceSpan], count: int = CASE_COUNT, seed: int = SEED) -> list[Case]:
    """Cases of one row: spans in an order drawn by the seed, those that cannot be changed so left out."""
    rng = random.Random(f"{seed}/{name}")
    order = rng.sample(spans, len(spans))
    drawn: list[Case] = []
    for number, (text, span) in enumerate(order):
        if name == "from another text":
            other, there = order[number - 1]
            strange = make_quote(other, there)
            fits = other != text and len(strange.text.split()) > 2 and strange.text not in text
            quote = strange if fits else None
        else:
            quote = QUOTE_CHANGES[name][0](text, span, rng)
        if quote is not None:
            drawn.append(Case(text, quote, None if name in UNPLACEABLE_ROWS else span))
        if len(drawn) == count:
            break
    return drawn


# --- the ways ------------------------------------------------------------------------------------------------------


def place_with_finecomb(case: Case) -> Placement:
    return place_quotes([case.quote], case.text)[0]


def place_at_first_occurrence(case: Case) -> Placement:
    at = case.text.find(case.quote.text)
    return Placement((at, at + len(case.quote.text)) if at >= 0 else None)


def place_ignoring_case(case: Case) -> Placement:
    at = case.text.lower().find(case.quote.text.lower())
    return Placement((at, at + len(case.quote.text)) if at >= 0 else None)


def place_with_difflib(case: Case) -> Placement:
    matcher = difflib.SequenceMatcher(None, case.text, case.quote.text, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size > 2]
    return Placement((blocks[0].a, blocks[-1].a + blocks[-1].size) if blocks else None)


def place_with_rapidfuzz(case: Case) -> Placement:
    found = fuzz.partial_ratio_alignment(case.quote.text, case.text, score_cutoff=80)
    return Placement((found.dest_start, found.dest_end) if found else None)


PLACEMENT_METHODS: dict[str, Callable[[Case], Placement]] = {
    "Finecomb": place_with_finecomb,
    "first occurrence": place_at_first_occurrence,
    "the same, lower case": place_ignoring_case,
    "difflib": place_with_difflib,
    "rapidfuzz": place_with_rapidfuzz,
}


def is_correct(case: Case, placement: Placement) -> bool:
    if case.answer is None:
        return not placement.is_certain
    return placement.span == case.answer


def measure_rows(
    spans: list[SourceSpan], count: int = CASE_COUNT
) -> Iterator[tuple[str, int, dict[str, float], float]]:
    """Row, number of cases, share right by way, and our milliseconds a quote."""
    for name in QUOTE_CHANGES:
        drawn = draw_cases(name, spans, count)
        shares = {
            way: sum(is_correct(case, run(case)) for case in drawn) / len(drawn)
            for way, run in PLACEMENT_METHODS.items()
        }
        before = time.process_time()
        for case in drawn:
            place_with_finecomb(case)
        yield name, len(drawn), shares, 1000 * (time.process_time() - before) / len(drawn)


def main() -> None:
    folder = os.environ.get("FINECOMB_DATA", "")
    if not folder:
        print("FINECOMB_DATA names no folder; nothing to measure")
        return
    spans = read_source_spans(Path(folder))
    print(f"{len(spans):,} spans; share placed right, seed {SEED}")
    print("| quotes | cases | " + " | ".join(PLACEMENT_METHODS) + " | ms a quote |")
    print("|---|---|" + "---|" * len(PLACEMENT_METHODS) + "---|")
    for name, count, shares, took in measure_rows(spans):
        print(f"| {name} | {count} | " + " | ".join(f"{share:.3f}" for share in shares.values()) + f" | {took:.2f} |")
        sys.stdout.flush()
