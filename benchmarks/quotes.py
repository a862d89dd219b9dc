"""Accuracy of locating quotes, compared with common methods: 300 cases per row, from a seed.

Two tables: quotes from our own texts, faithful or with a changed claim, and quotes from spans of published data sets
(requires FINECOMB_DATA). The correct position of a faithful quote is the whole span. For a quote with a changed claim,
the correct answer is no position, or one that is flagged.
"""

from __future__ import annotations

import difflib
import os
import random
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import fuzz

import finecomb as fc
from benchmarks._docs import markdown_table, write_table
from finecomb import formats
from finecomb.core.quotes import Placement, Quote, place_quotes
from finecomb.core.text_folding import Range, find_occurrences

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
    """Return all located spans with their texts, without spaces at the edges."""
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
    """Return the words of a span, or replacements, with `context` words before and after."""
    before, after = text[: span[0]].split()[-context:], text[span[1] :].split()[:context]
    if not context:
        before, after = [], []
    return Quote(text[slice(*span)] if words is None else words, " ".join(before), " ".join(after))


def unique_quote(text: str, span: Range, rng: random.Random) -> Quote | None:
    quote = make_quote(text, span, context=0)
    return quote if len(find_occurrences(quote.text, text)) == 1 else None


def repeated_quote(text: str, span: Range, rng: random.Random) -> Quote | None:
    quote = make_quote(text, span)
    return quote if len(find_occurrences(quote.text, text)) > 1 else None


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
    return None  # drawn from another text, see `draw_cases`


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
    """Draw the cases of one row from shuffled spans, omitting those to which the change does not apply."""
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


# --- methods -----------------------------------------------------------------------------------------------------


def place_with_finecomb(case: Case) -> Placement:
    return place_quotes([case.quote], case.text)[0]


def place_at_first_occurrence(case: Case) -> Placement:
    at = case.text.find(case.quote.text)
    return Placement((at, at + len(case.quote.text)) if at >= 0 else None)


def place_with_factgenie(case: Case) -> Placement:
    """Return the first occurrence in lower case between word borders, as factgenie does for spans of words."""
    words = case.quote.text.lower().strip()
    first, last = (r"\b" if words[edge].isalnum() else "" for edge in (0, -1))
    found = re.search(first + re.escape(words) + last, case.text.lower())
    return Placement((found.start(), found.start() + len(words)) if found else None)


def place_with_difflib(case: Case) -> Placement:
    matcher = difflib.SequenceMatcher(None, case.text, case.quote.text, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size > 2]
    return Placement((blocks[0].a, blocks[-1].a + blocks[-1].size) if blocks else None)


def place_with_rapidfuzz(case: Case) -> Placement:
    found = fuzz.partial_ratio_alignment(case.quote.text, case.text, score_cutoff=80)
    return Placement((found.dest_start, found.dest_end) if found else None)


def place_with_langextract(case: Case) -> Placement:
    """Locate a quote in the order of langextract's aligner: exact tokens, a beginning, then LCS.

    Tokens are letters, digits or symbols in lower case. A contiguous match of all tokens is exact. The longest match of
    the first tokens counts as `MATCH_LESSER`. Otherwise the longest common subsequence with 75% of the tokens and a
    third of the range counts as `MATCH_FUZZY`. Both states are taken as flags.
    """
    tokens = [(match.group().lower(), match.span()) for match in _LANGEXTRACT_TOKEN.finditer(case.text)]
    words = [match.group().lower() for match in _LANGEXTRACT_TOKEN.finditer(case.quote.text)]
    source = [token for token, _ in tokens]
    if not words:
        return Placement(None)
    for at in range(len(source) - len(words) + 1):
        if source[at : at + len(words)] == words:
            return Placement((tokens[at][1][0], tokens[at + len(words) - 1][1][1]))
    blocks = difflib.SequenceMatcher(None, source, words, autojunk=False).get_matching_blocks()
    for at, first, size in blocks:
        if size and not first:
            return Placement((tokens[at][1][0], tokens[at + size - 1][1][1]), flags=("MATCH_LESSER",))
    first, last, matched = _longest_common_subsequence(
        [_stem(word) for word in source], [_stem(word) for word in words]
    )
    if matched >= 0.75 * len(words) and matched * 3 >= last - first + 1:
        return Placement((tokens[first][1][0], tokens[last][1][1]), flags=("MATCH_FUZZY",))
    return Placement(None)


_LANGEXTRACT_TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]+")


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _longest_common_subsequence(source: Sequence[str], words: Sequence[str]) -> tuple[int, int, int]:
    """Return the first and last index in `source` and the length of the longest and narrowest common subsequence."""
    best = (0, 0, 0)
    row = [(0, -1)] * (len(words) + 1)  # length and latest start of a common subsequence with the first words
    for at, token in enumerate(source):
        above = row.copy()
        for column, word in enumerate(words, 1):
            if token == word:
                length, start = above[column - 1]
                row[column] = max(row[column], (length + 1, at if not length else start))
            row[column] = max(row[column], row[column - 1])
        length, start = row[-1]
        if (length, start - at) > (best[2], best[0] - best[1]):
            best = (start, at, length)
    return best


PLACEMENT_METHODS: dict[str, Callable[[Case], Placement]] = {
    "Finecomb": place_with_finecomb,
    "factgenie": place_with_factgenie,
    "langextract": place_with_langextract,
    "first occurrence": place_at_first_occurrence,
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
    """Yield the row name, the number of cases, the accuracy by method, and our milliseconds per quote."""
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


# --- quotes from our own texts -----------------------------------------------------------------------------------
# A case is a stretch of a text of the demo study. For claims that the texts do not contain, such as negative numbers, a
# sentence with values drawn by seed is inserted. None of the opposites is in the list of
# `core/quote_changes.py`; common units and negations are in its lists.

_UNITS = "m/s km/h mph kg lb mg µg mm cm km °C °F % ‰ kWh MW hPa kN litres gallons metres yards hours days".split()
_SIGNED_CLAIMS = (
    "The gauge at the old quay read {} in the morning",
    "The account closed the spring at {} thousand",
    "Her rating changed by {} points over the season",
    "The sensor reported {} before the storm and nothing later",
    "A shift of {} was entered in the harbour book",
)
_UNIT_CLAIMS = (
    "The wind reached {} at the lighthouse that night",
    "Each crate was listed with {} on the label",
    "The report gave {} as the final figure",
    "Nobody expected more than {} from the new pump",
)
_NAME_CLAIMS = (
    "The letter was signed by {} and two witnesses",
    "According to {} the bridge was closed in winter",
    "The prize went to {} for a second time",
    "Reviewers such as {} praised the short chapters",
)
_SURNAMES = (
    "Moreno Okafor Lindqvist Tanaka Petrov Abara Castellan Dufour Hallam Ibsen Jarvis Kowalski Marchetti Novak Osei"
    " Pemberton Quist Rahman Sandoval Thorne Ueda Varga Whitlock Yilmaz Zeller"
).split()
_NEGATABLE = (
    ("The ferry {}sailed on the evening of the fair", "never "),
    ("The council had {}agreed to repair the sea wall", "not "),
    ("There was {}reason to doubt the old captain", "no "),
    ("The keeper {} answer the telephone on Sunday", ("didn't", "did")),
    ("The two sisters left {} their father's boat", ("without", "with")),
    ("The rescued crew were {} hurt in the landing", ("hardly", "badly")),
)
_ANTONYMS = (
    ("The {} of the mountain path took four hours", ("ascent", "descent")),
    ("The mayor {} the plan in front of the board", ("praised", "condemned")),
    ("Visitors found the cellar {} and full of barrels", ("spacious", "cramped")),
    ("The harvest was {} in the northern valley", ("abundant", "meagre")),
    ("The witness described the driver as {}", ("sober", "drunk")),
    ("Fishing was {} on the eastern shore", ("permitted", "banned")),
    ("The committee thought her answer was {}", ("relevant", "irrelevant")),
    ("The old clock proved to be {}", ("reliable", "unreliable")),
    ("Exports {} after the harbour was dredged", ("expanded", "shrank")),
    ("The water in the bay was {} that summer", ("shallow", "deep")),
    ("Most of the villagers {} the new school", ("supported", "opposed")),
    ("The twins were {} at the end of the voyage", ("exhausted", "rested")),
    ("A {} crowd waited in front of the theatre", ("noisy", "silent")),
    ("The bank {} its rates in the spring", ("lowered", "raised")),
    ("The road to the mill is {} than before", ("narrower", "wider")),
)


def change_claim(kind: str, rng: random.Random) -> tuple[str, str, str]:
    """Return a sentence, the words of it that carry a claim, and the words of a quote with another claim."""
    number = f"{rng.randrange(1, 90)}.{rng.randrange(10, 100)}" if rng.random() < 0.6 else str(rng.randrange(2, 900))
    if kind == "sign":
        claim, sign = rng.choice(_SIGNED_CLAIMS), rng.choice("-−")
        mine, theirs = (f"{sign}{number}", number) if rng.random() < 0.7 else (number, f"{sign}{number}")
    elif kind == "unit":
        claim, (one, other) = rng.choice(_UNIT_CLAIMS), rng.sample(_UNITS, 2)
        mine, theirs = (f"{number}{'' if unit in '%‰' else ' '}{unit}" for unit in (one, other))
    elif kind == "initial":
        claim, (one, other) = rng.choice(_NAME_CLAIMS), rng.sample(_SURNAMES, 2)
        initial = rng.choice("ABCDEFGHJKLMNPRSTW")
        mine, theirs = f"{initial}. {one}", f"{initial}. {other}"
    elif kind == "antonym":
        claim, pair = rng.choice(_ANTONYMS)
        mine, theirs = rng.sample(pair, 2)
    elif kind == "digit":
        claim, at = rng.choice(_SIGNED_CLAIMS), rng.choice([at for at, digit in enumerate(number) if digit != "."])
        digit = rng.choice([digit for digit in "123456789" if digit != number[at]])
        mine, theirs = number, number[:at] + digit + number[at + 1 :]
    else:
        claim, pair_ = rng.choice(_NEGATABLE)
        mine, theirs = rng.sample((pair_, "") if isinstance(pair_, str) else pair_, 2)
    return claim, mine, theirs


CLAIM_KINDS = {
    "sign": "a sign",
    "initial": "the name after an initial",
    "unit": "a unit",
    "negation": "a negation",
    "antonym": "a word to its opposite",
    "digit": "a digit",
}
FAITHFUL_KINDS = ("exact", "other quotation marks", "other case", "other Unicode forms", "a word dropped", "elided")


def draw_changed_claims(kind: str, texts: Sequence[str], count: int = CASE_COUNT, seed: int = SEED) -> list[Case]:
    """Insert a claim into one of our texts, and quote it with another claim and up to five words on each side."""
    rng = random.Random(f"{seed}/claims/{kind}")
    cases: list[Case] = []
    while len(cases) < count:
        claim, mine, theirs = change_claim(kind, rng)
        head, tail = claim.split("{}")
        text = rng.choice(texts)
        borders = [match.end() for match in re.finditer(r"[.!?] (?=[A-Z])", text)] or [0]
        at = rng.choice(borders)
        whole = f"{text[:at]}{head}{mine}{tail}. {text[at:]}"
        before, after = head.split(), tail.split()
        left, right = rng.randrange(min(5, len(before)) + 1), rng.randrange(min(5, len(after)) + 1)
        if kind == "negation" and not theirs:
            left, right = max(left, 1), max(right, 1)  # without words on both sides, nothing was omitted
        words = " ".join([*before[len(before) - left :], *theirs.split(), *after[:right]])
        if words in text:
            continue
        context = (" ".join(before[: len(before) - left][-5:]), " ".join(after[right:][:5]))
        cases.append(Case(whole, Quote(words, *(context if rng.random() < 0.5 else ("", ""))), None))
    return cases


def draw_faithful_quotes(kind: str, texts: Sequence[str], count: int = CASE_COUNT, seed: int = SEED) -> list[Case]:
    """Quote six to sixteen words of our texts, changed in a way that keeps the claim."""
    rng = random.Random(f"{seed}/faithful/{kind}")
    cases: list[Case] = []
    while len(cases) < count:
        text = rng.choice(texts)
        words = list(re.finditer(r"\S+", text))
        size = rng.randrange(6, 17)
        if len(words) < size + 2:
            continue
        first = rng.randrange(len(words) - size)
        span = words[first].start(), words[first + size - 1].end()
        quote: Quote | None = make_quote(text, span)
        if kind == "other quotation marks":
            quote = change_quotation_marks(text, span, rng)
        elif kind == "other case":
            quote = make_quote(text, span, rng.choice([str.upper, str.lower, str.title])(text[slice(*span)]))
        elif kind == "other Unicode forms":
            form = rng.choice(["NFD", "wide", "spaces", "hyphens"])
            changed = text[slice(*span)]
            if form == "NFD":
                changed = unicodedata.normalize("NFD", changed)
            elif form == "wide":
                changed = changed.translate({code: code + 0xFEE0 for code in range(ord("0"), ord("z") + 1)})
            elif form == "spaces":
                changed = changed.replace(" ", rng.choice("\u00a0\u202f\u2009"))
            else:
                changed = changed.replace("-", "‑").replace(" ", " \u00ad")
            quote = make_quote(text, span, changed)
        elif kind == "a word dropped":
            quote = drop_word(text, span, rng)
        elif kind == "elided":
            quote = elide_words(text, span, rng)
        if quote is not None:
            cases.append(Case(text, quote, span))
    return cases


def own_texts() -> list[str]:
    return [document.text for document in fc.demo().iter_documents()]


def own_text_rows(count: int = CASE_COUNT) -> Iterator[tuple[str, list[Case]]]:
    """Yield the name and the cases of each row of the table of our own texts."""
    texts = own_texts()
    for kind in FAITHFUL_KINDS:
        yield f"{kind}: located", draw_faithful_quotes(kind, texts, count)
    for kind, title in CLAIM_KINDS.items():
        yield f"changed {title}: refused or flagged", draw_changed_claims(kind, texts, count)


def main() -> None:
    rows = []
    for name, cases in own_text_rows():
        counts = [sum(is_correct(case, locate(case)) for case in cases) for locate in PLACEMENT_METHODS.values()]
        flagged = sum(
            place_with_finecomb(case).span is not None and not place_with_finecomb(case).is_certain for case in cases
        )
        rows.append([name, *counts, flagged])
    heads = [f"{CASE_COUNT} quotes each", *PLACEMENT_METHODS, "flagged by Finecomb"]
    write_table("language-models.md", "quote-changes", markdown_table(heads, rows))
    folder = os.environ.get("FINECOMB_DATA", "")
    if not folder:
        print("skipped quotes from published data: set FINECOMB_DATA")
        return
    spans = read_source_spans(Path(folder))
    rows = [
        [name, count, *(f"{share:.3f}" for share in shares.values()), f"{took:.2f}"]
        for name, count, shares, took in measure_rows(spans)
    ]
    write_table(
        "language-models.md",
        "quotes",
        markdown_table(["quotes", "cases", *PLACEMENT_METHODS, "ms per quote"], rows),
    )
