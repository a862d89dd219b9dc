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
CASES, SEED = 300, 0
Source = tuple[str, Range]


@dataclass(frozen=True)
class Case:
    text: str
    quote: Quote
    answer: Range | None


def sources(folder: Path) -> list[Source]:
    """Every located span with its text; blanks at its edges are left off."""
    spans: list[Source] = []
    for name in FILES:
        study = formats.read(folder / name, "")
        texts = dict(study.documents.select("id", "text").iter_rows())
        rows = study.spans.select("document", "start", "end", "part").iter_rows()
        spans += [(texts[id], _visible(texts[id], a, b)) for id, a, b, part in rows if part == "text"]
    return list(dict.fromkeys((text, (a, b)) for text, (a, b) in spans if b > a))


def _visible(text: str, start: int, end: int) -> Range:
    words = text[start:end]
    return start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())


def quoted(text: str, span: Range, words: str | None = None, context: int = 5) -> Quote:
    """The words of a span, or others in their place, with `context` words before and after."""
    before, after = text[: span[0]].split()[-context:], text[span[1] :].split()[:context]
    if not context:
        before, after = [], []
    return Quote(text[slice(*span)] if words is None else words, " ".join(before), " ".join(after))


def unique(text: str, span: Range, rng: random.Random) -> Quote | None:
    quote = quoted(text, span, context=0)
    return quote if len(occurrences(quote.text, text)) == 1 else None


def repeated(text: str, span: Range, rng: random.Random) -> Quote | None:
    quote = quoted(text, span)
    return quote if len(occurrences(quote.text, text)) > 1 else None


def dropped(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)].split()
    if len(words) < 4:
        return None
    out = rng.randrange(1, len(words) - 1)
    return quoted(text, span, " ".join(words[:out] + words[out + 1 :]))


def elided(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)].split()
    if len(words) < 6:
        return None
    first, last = rng.randrange(2, len(words) // 2), rng.randrange(2, len(words) // 2)
    dots = rng.choice(["...", "…", "[...]"])
    return quoted(text, span, " ".join([*words[:first], dots, *words[-last:]]))


def curly(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)]
    straight = words.translate(str.maketrans("‘’“”", "''\"\""))
    changed = straight.replace("'", "’") if words == straight else straight
    changed = re.sub(r'"(\S)', r"“\1", changed).replace('"', "”") if words == straight else changed
    return quoted(text, span, changed) if changed != words else None


def slipped(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)]
    places = [at for at in range(1, len(words) - 2) if words[at : at + 2].islower() and words[at : at + 2].isalpha()]
    places = [at for at in places if words[at] != words[at + 1]]
    if len(words.split()) < 3 or not places:
        return None
    at = rng.choice(places)
    return quoted(text, span, words[:at] + words[at + 1] + words[at] + words[at + 2 :])


def other_digit(text: str, span: Range, rng: random.Random) -> Quote | None:
    words = text[slice(*span)]
    places = [at for at, character in enumerate(words) if character.isdigit() and character.isascii()]
    if not places:
        return None
    at = rng.choice(places)
    return quoted(text, span, words[:at] + str((int(words[at]) + rng.randrange(1, 10)) % 10) + words[at + 1 :])


def foreign(text: str, span: Range, rng: random.Random) -> Quote | None:
    return None  # drawn from another text: see `cases`


Change = Callable[[str, Range, random.Random], Quote | None]
ROWS: dict[str, tuple[Change, float | None]] = {
    "unique, no context": (unique, 0.99),
    "repeated, with context": (repeated, 0.95),
    "a word dropped": (dropped, 0.95),
    "elided with ...": (elided, 0.95),
    "other quotation marks": (curly, 0.95),
    "two letters swapped": (slipped, None),
    "a digit altered": (other_digit, None),
    "from another text": (foreign, None),
}
NONE_RIGHT = {"a digit altered", "from another text"}


def cases(name: str, spans: list[Source], count: int = CASES, seed: int = SEED) -> list[Case]:
    """Cases of one row: spans in an order drawn by the seed, those that cannot be changed so left out."""
    rng = random.Random(f"{seed}/{name}")
    order = rng.sample(spans, len(spans))
    drawn: list[Case] = []
    for number, (text, span) in enumerate(order):
        if name == "from another text":
            other, there = order[number - 1]
            strange = quoted(other, there)
            fits = other != text and len(strange.text.split()) > 2 and strange.text not in text
            quote = strange if fits else None
        else:
            quote = ROWS[name][0](text, span, rng)
        if quote is not None:
            drawn.append(Case(text, quote, None if name in NONE_RIGHT else span))
        if len(drawn) == count:
            break
    return drawn


# --- the ways ------------------------------------------------------------------------------------------------------


def ours(case: Case) -> Placement:
    return place_quotes([case.quote], case.text)[0]


def first_occurrence(case: Case) -> Placement:
    at = case.text.find(case.quote.text)
    return Placement((at, at + len(case.quote.text)) if at >= 0 else None)


def first_lower(case: Case) -> Placement:
    at = case.text.lower().find(case.quote.text.lower())
    return Placement((at, at + len(case.quote.text)) if at >= 0 else None)


def by_difflib(case: Case) -> Placement:
    matcher = difflib.SequenceMatcher(None, case.text, case.quote.text, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size > 2]
    return Placement((blocks[0].a, blocks[-1].a + blocks[-1].size) if blocks else None)


def by_rapidfuzz(case: Case) -> Placement:
    found = fuzz.partial_ratio_alignment(case.quote.text, case.text, score_cutoff=80)
    return Placement((found.dest_start, found.dest_end) if found else None)


WAYS: dict[str, Callable[[Case], Placement]] = {
    "Finecomb": ours,
    "first occurrence": first_occurrence,
    "the same, lower case": first_lower,
    "difflib": by_difflib,
    "rapidfuzz": by_rapidfuzz,
}


def right(case: Case, placement: Placement) -> bool:
    if case.answer is None:
        return not placement.is_certain
    return placement.span == case.answer


def table(spans: list[Source], count: int = CASES) -> Iterator[tuple[str, int, dict[str, float], float]]:
    """Row, number of cases, share right by way, and our milliseconds a quote."""
    for name in ROWS:
        drawn = cases(name, spans, count)
        shares = {way: sum(right(case, run(case)) for case in drawn) / len(drawn) for way, run in WAYS.items()}
        before = time.process_time()
        for case in drawn:
            ours(case)
        yield name, len(drawn), shares, 1000 * (time.process_time() - before) / len(drawn)


def main() -> None:
    folder = os.environ.get("FINECOMB_DATA", "")
    if not folder:
        print("FINECOMB_DATA names no folder; nothing to measure")
        return
    spans = sources(Path(folder))
    print(f"{len(spans):,} spans; share placed right, seed {SEED}")
    print("| quotes | cases | " + " | ".join(WAYS) + " | ms a quote |")
    print("|---|---|" + "---|" * len(WAYS) + "---|")
    for name, count, shares, took in table(spans):
        print(f"| {name} | {count} | " + " | ".join(f"{share:.3f}" for share in shares.values()) + f" | {took:.2f} |")
        sys.stdout.flush()
