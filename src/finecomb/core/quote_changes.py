"""Differences between a quote and the text that change its claim: numbers, signs, units, names, negations, opposites.

Each function returns the first difference that rules out the location, or an empty string, and flags for differences
that leave doubt. A word that replaces another word is always at least flagged; only a typing error of the same word is
accepted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rapidfuzz.distance import OSA, Levenshtein

from finecomb.core.text_folding import FoldedText, Range, fold_text
from finecomb.core.word_alignment import Alignment, WordList

Changes = tuple[str, tuple[str, ...]]
"""The first difference that rules out a location, and flags for the others."""

_SIGNS = "-−–‐‑±<>≤≥~≈"  # a plus sign does not change a number
_CURRENCIES = "$€£¥₹₽₩"
_UNIT_SYMBOLS = f"%‰°′″{_CURRENCIES}"
_SIGN_BEFORE_NUMBER = re.compile(
    rf"(?:(?:^|[^\w)\]])([{re.escape(_SIGNS)}])|\b(minus|negative)\s+)[{re.escape(_CURRENCIES)}]?$", re.IGNORECASE
)
_NUMBER_START = re.compile(rf"[{re.escape(_CURRENCIES)}]?[.,]?\d")
_NUMBER = re.compile(r"\d+(?:(?:,\d{3})+(?!\d)|[.:]\d+)*(?:\.\d+)?")
_LETTERS_BEFORE = re.compile(r"(?:\b[^\W\d_]+[-‐‑])?[^\W\d_]*$")
_LETTERS_AFTER = re.compile(r"[^\W\d_]*(?:['’]t\b)?")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_UNSPACED_SCRIPTS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3000-\u9fff\uac00-\ud7ff\uf900-\ufaff]"
)

_NEGATIONS = frozenset(
    "no not never none nor neither nobody nothing nowhere without cannot n't hardly barely scarcely seldom rarely"
    " nicht kein keine keinen keiner keines keinem nie niemals niemand nichts ohne non pas ne jamais aucun aucune rien"
    " sans sin nunca ningún ninguna nada nadie mai senza não nem niet geen nooit не нет ни nie".split()
)
_NUMBER_WORDS = frozenset(
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty"
    " ninety hundred thousand million billion trillion half third quarter first second once twice double triple"
    " dozen minus".split()
)
_UNIT_WORDS = frozenset(
    "percent percentage metre meter metres meters kilometre kilometer kilometres kilometers centimetre centimeter"
    " centimetres centimeters millimetre millimeter millimetres millimeters mile miles foot feet inch inches yard yards"
    " gram grams kilogram kilograms milligram milligrams tonne tonnes ton tons ounce ounces pound pounds litre liter"
    " litres liters gallon gallons degree degrees celsius fahrenheit kelvin second seconds minute minutes hour hours"
    " day days week weeks month months year years decade decades century centuries dollar dollars euro euros cent cents"
    " yen watt watts kilowatt kilowatts megawatt megawatts volt volts acre acres hectare hectares knot knots".split()
)
_SCOPE_WORDS = frozenset(
    "only almost nearly about some few many most all every each both any more less fewer least may might could would"
    " should must can if unless except until allegedly reportedly possibly probably perhaps maybe likely unlikely"
    " former partly mostly usually sometimes often always before after".split()
)
"""Words that limit a claim; a quote that omits one is flagged."""
_FUNCTION_WORDS = frozenset(
    "a an the that which who whom this these those there here so and or but as of to in on at by for from with into"
    " over is are was were be been being am has have had do does did will it its he him his she her they them their we"
    " us our you your i me my then than also very just too".split()
)
_INTERCHANGEABLE = (frozenset(("a", "an", "the")), frozenset(("%", "percent")), frozenset(("&", "and")))
_ABBREVIATED_TITLES = frozenset("mr mrs ms dr prof st rev gen col capt lt sgt sen rep gov jr".split())

_NEGATIVE_PREFIXES = "un in im il ir dis non anti de mis counter ab a".split()
_NEGATIVE_SUFFIXES = ("n't", "'t", "not", "less")
_OPPOSITE_AFFIXES = (
    ("in", "de"), ("in", "ex"), ("im", "ex"), ("en", "dis"), ("pro", "anti"), ("over", "under"), ("pre", "post"),
    ("inter", "intra"), ("hyper", "hypo"), ("macro", "micro"), ("maxi", "mini"), ("up", "down"), ("out", "in"),
    ("homo", "hetero"), ("mono", "poly"), ("sub", "super"), ("a", "de"), ("as", "des"), ("pro", "re"),
)  # fmt: skip
_OPPOSITES = frozenset(
    frozenset(pair.split("/"))
    for pair in (
        "more/less more/fewer most/least many/few much/little high/low higher/lower highest/lowest rise/fall rose/fell"
        " risen/fallen rising/falling rises/falls gain/loss win/lose won/lost wins/loses winner/loser victory/defeat"
        " before/after early/late earlier/later first/last always/never all/none some/none up/down above/below"
        " over/under in/out inside/outside with/without start/end begin/end began/ended open/close opened/closed"
        " open/closed old/new old/young older/younger hot/cold warm/cool large/small big/small larger/smaller"
        " bigger/smaller long/short longer/shorter fast/slow faster/slower strong/weak stronger/weaker rich/poor"
        " good/bad better/worse best/worst right/wrong true/false right/left north/south east/west northern/southern"
        " eastern/western male/female man/woman men/women he/she his/her him/her boy/girl mother/father son/daughter"
        " brother/sister husband/wife alive/dead live/die lived/died buy/sell bought/sold push/pull pass/fail"
        " passed/failed accept/reject accepted/rejected allow/forbid allowed/forbidden succeed/fail success/failure"
        " love/hate friend/enemy day/night light/dark heavy/light full/empty easy/hard wet/dry safe/dangerous"
        " guilty/innocent majority/minority maximum/minimum positive/negative public/private"
    ).split()
)
_KNOWN_WORDS = (
    _NEGATIONS | _NUMBER_WORDS | _UNIT_WORDS | _SCOPE_WORDS | _FUNCTION_WORDS | frozenset().union(*_OPPOSITES)
)
_SWAPPED_WORDS = frozenset(
    frozenset(pair.split("/"))
    for pair in (
        "angel/angle blot/bolt board/broad calm/clam carve/crave casual/causal cloud/could complaint/compliant"
        " crate/carte dairy/diary discreet/discrete does/dose field/filed files/flies fired/fried form/from goal/gaol"
        " lost/lots marital/martial nuclear/unclear quiet/quite sacred/scared sign/sing silver/sliver split/spilt"
        " tired/tried trail/trial united/untied unite/untie unites/unties wired/weird pares/parse barn/bran snug/sung"
        " warp/wrap"
    ).split()
)
"""Pairs of English words that differ by two swapped letters."""


def describe_cut_edges(text: str, span: Range, before: str = "", after: str = "") -> Changes:
    """Describe words and numbers of the text that a location cuts, such as `5.22` in `-5.22` or `able` in `unable`.

    `before` and `after` are the quote's context. A quote whose context contains the missing part was cut on purpose.

    >>> describe_cut_edges("a loss of -5.22 points", (11, 15))[0]
    "the quote omits the sign '-' of a number"
    >>> describe_cut_edges("it was unable", (9, 13))[0]
    "the quote cuts the word 'unable'"
    """
    start, end = span
    head, words, tail = text[max(0, start - 40) : start], text[start:end], text[end : end + 40]
    before, after = fold_text(before), fold_text(after)
    sign = _SIGN_BEFORE_NUMBER.search(head)
    if sign and _NUMBER_START.match(words) and not before.endswith(fold_text(sign[1] or sign[2])):
        return f"the quote omits the sign {sign[1] or sign[2]!r} of a number", ()
    first, last = len(head), len(head) + len(words)
    for number in _NUMBER.finditer(head + words + tail):
        if number.start() < first < number.end() or number.start() < last < number.end():
            return f"the quote cuts the number {number[0]!r}", ()
    flags: list[str] = []
    if words[:1].isalnum() and not _UNSPACED_SCRIPTS.match(words):
        prefix = "".join(_LETTERS_BEFORE.findall(head))
        is_negative = prefix.lower().strip("-‐‑") in _NEGATIVE_PREFIXES
        is_cut = prefix[-1:].isalpha() or is_negative
        if is_cut and not before.endswith(fold_text(prefix)):
            whole = prefix + "".join(re.findall(r"^\w+", words))
            if is_negative:
                return f"the quote cuts the word {whole!r}", ()
            flags.append(f"the quote is part of the word {whole!r}")
    if words[-1:].isalnum() and not _UNSPACED_SCRIPTS.match(words[-1]):
        suffix = "".join(_LETTERS_AFTER.findall(tail)[:1])
        if suffix and not after.startswith(fold_text(suffix)):
            whole = "".join(re.findall(r"\w+$", words)) + suffix
            if suffix.lower().replace("’", "'") in _NEGATIVE_SUFFIXES:
                return f"the quote cuts the word {whole!r}", ()
            flags.append(f"the quote is part of the word {whole!r}")
    return "", tuple(dict.fromkeys(flags))


def describe_respelling(quote: str, words: str) -> Changes:
    """Describe what differs between a quote and words of the text that are equal in folded form.

    >>> describe_respelling("notable", "not able")
    ('', ("the quote has 'notable' where the text has 'not able'",))
    >>> describe_respelling("105 of them", "10⁵ of them")[0]
    "the quote has '105' where the text has '10⁵', a different number"
    """
    mine, theirs = FoldedText.from_text(quote), FoldedText.from_text(words)
    shift = mine.text.find(theirs.text)  # quotation marks around the quote are ignored
    if shift < 0:
        return "", ()
    flags: list[str] = []
    case_changes: set[bool] = set()  # whether each change of case is in a unit
    for at in range(1, len(theirs.text)):
        places = (quote, mine.origins, at + shift), (words, theirs.origins, at)
        gaps = [origins[index] - origins[index - 1] > 1 for _, origins, index in places]
        here = [string[origins[index]] for string, origins, index in places]
        last = [string[origins[index - 1]] for string, origins, index in places]
        differs = f"the quote has {_word_at(*places[0])!r} where the text has {_word_at(*places[1])!r}"
        if all(map(str.isdigit, here + last)) and (
            gaps[0] != gaps[1]
            or here[0].isdecimal() != here[1].isdecimal()
            or last[0].isdecimal() != last[1].isdecimal()
        ):
            return f"{differs}, a different number", ()
        if gaps[0] != gaps[1] and all(sign in _SIGNS for sign in last) and all(map(str.isdigit, here)):
            return f"{differs}, a different number", ()
        if all(map(str.isalpha, here + last)) and gaps[0] != gaps[1] and not _UNSPACED_SCRIPTS.match(here[1]):
            flags.append(differs)
        if here[0] != here[1] and here[0].lower() == here[1].lower():
            unit = re.match(r"[^\W\d_]{1,3}\b", words[theirs.origins[at] :])
            case_changes.add(bool(unit) and re.search(r"\d\s?$", words[: theirs.origins[at]]) is not None)
    if case_changes == {True}:
        flags.append("the quote changes the case of a unit")
    return "", tuple(dict.fromkeys(flags))


def _word_at(string: str, origins: Sequence[int], index: int) -> str:
    """Return the one or two words that contain a character and the visible character before it."""
    start, end = origins[index - 1], origins[index]
    start -= len("".join(re.findall(r"\S*$", string[:start])))
    return string[start : end + len("".join(re.findall(r"^\S*", string[end:])))]


def describe_elision(pieces: Sequence[str], text: str, span: Range) -> Changes:
    """Describe what a quote with "..." cuts or hides: numbers and words at the gaps, and negations in them.

    >>> describe_elision(["he did", "wave"], "he did not wave", (0, 15))
    ('', ("the elided words include 'not'",))
    """
    flags: list[str] = []
    place = span[0]
    for number, piece in enumerate(pieces):
        found = FoldedText.from_text(text[place : span[1]]).find_ranges(piece)
        if not found:
            return "", tuple(flags)
        start, end = place + found[0][0], place + found[0][1]
        gap = text[place:start]
        if number and not _SENTENCE_END.search(gap):
            words = WordList.from_text(gap)
            hidden = [words.written[at] for at in range(len(words.plain)) if _word_type(words, at) == "negation"]
            flags += [f"the elided words include {word!r}" for word in hidden]
        changed, cut = describe_cut_edges(text, (start, end))
        if changed:
            return changed, ()
        flags += cut
        place = end
    return "", tuple(dict.fromkeys(flags))


# --- aligned words -----------------------------------------------------------------------------------------------


def describe_aligned_changes(alignment: Alignment, quote: WordList, text: WordList) -> Changes:
    """Describe the words that an approximate quote changed, added or omitted."""
    flags: list[str] = []
    aligned = [mine for mine, theirs in alignment.pairs if mine is not None and theirs is not None]
    for mine, theirs in alignment.pairs:
        if mine is None:
            if theirs is None or not alignment.first <= theirs <= alignment.last:
                continue
            kind = _word_type(text, theirs)
            if kind == "sign":
                return f"the quote omits the sign {text.written[theirs]!r} of a number", ()
            if kind or text.plain[theirs] in _SCOPE_WORDS:
                flags.append(f"the quote omits {text.written[theirs]!r}")
        elif theirs is None:
            if kind := _word_type(quote, mine):
                return f"the quote has the {kind} {quote.written[mine]!r}, which is not in the text", ()
            # At an edge, a function word may replace any word of the text.
            is_edge = not aligned[0] < mine < aligned[-1]
            if quote.written[mine][:1].isalnum() and (is_edge or quote.plain[mine] not in _FUNCTION_WORDS):
                flags.append(f"the quote adds {quote.written[mine]!r}")
        elif quote.written[mine] in _SIGNS and _word_type(quote, mine) != _word_type(text, theirs):
            return f"the quote has {quote.written[mine]!r} where the text has a different sign or dash", ()
        elif quote.plain[mine] != text.plain[theirs]:
            kind = _changed_word_type(quote, mine, text, theirs)
            change = f"the quote has {quote.written[mine]!r} where the text has {text.written[theirs]!r}"
            word, other = quote.plain[mine], text.plain[theirs]
            if kind == "name" and OSA.normalized_similarity(word, other) >= 0.75:
                flags.append(change)
            elif kind:
                return f"{change}, a different {kind}", ()
            elif are_opposites(word, other):
                return f"{change}, an opposite", ()
            elif (word[:1].isalnum() or other[:1].isalnum()) and not _is_same_word(word, other, text):
                flags.append(change)
    return "", tuple(dict.fromkeys(flags))


def _changed_word_type(quote: WordList, mine: int, text: WordList, theirs: int) -> str:
    """Return the type of a replaced word if the change rules out the location, otherwise an empty string."""
    kinds = _word_type(quote, mine), _word_type(text, theirs)
    word, other = quote.plain[mine], text.plain[theirs]
    if any({word, other} <= group for group in _INTERCHANGEABLE):
        return ""
    kind = next((kind for kind in ("number", "sign", "negation", "unit") if kind in kinds), "")
    if kind == "unit" and _is_same_word(word, other, text):
        return ""
    # At the start of a sentence, ordinary words are capitalised in both.
    both_capitalised = quote.written[mine][:1].isupper() and text.written[theirs][:1].isupper()
    if not kind and ("name" in kinds or both_capitalised) and not {word, other} & _FUNCTION_WORDS:
        return "name"
    return kind


def _word_type(tokens: WordList, at: int) -> str:
    """Return `number`, `sign`, `unit`, `negation` or `name` if a word is one of these, otherwise an empty string."""
    word, written = tokens.plain[at], tokens.written[at]
    if any(character.isdigit() for character in word) or word in _NUMBER_WORDS:
        return "number"
    if word in _NEGATIONS or word.endswith("n't"):
        return "negation"
    previous = tokens.written[at - 1] if at else ""
    following = tokens.written[at + 1] if at + 1 < len(tokens.written) else ""
    touches_previous = bool(at) and tokens.offsets[at - 1][1] == tokens.offsets[at][0]
    touches_following = bool(following) and tokens.offsets[at][1] == tokens.offsets[at + 1][0]
    if written in _SIGNS and touches_following and following[:1].isdigit() | (following in _CURRENCIES):
        return "" if touches_previous and (previous[-1:].isalnum() or previous in ")]") else "sign"
    if written in ".,:" and touches_previous and touches_following and previous[-1:].isdigit():
        return "number" if following[:1].isdigit() else ""
    if written in _UNIT_SYMBOLS:
        return "unit" if previous[-1:].isdigit() or following[:1].isdigit() else ""
    follows_number = previous[-1:].isdigit() or previous in ("°", "º")
    if previous == "/" and at > 1:
        follows_number = _word_type(tokens, at - 2) == "unit"
    if follows_number and (word in _UNIT_WORDS or (len(word) <= 3 and word.isalpha() and word not in _FUNCTION_WORDS)):
        return "unit"
    if written == "/":
        return "unit" if touches_previous and touches_following and _word_type(tokens, at - 1) == "unit" else ""
    two_back = tokens.written[at - 2] if at > 1 else ""
    is_abbreviation = two_back.lower() in _ABBREVIATED_TITLES or (len(two_back) == 1 and two_back.isupper())
    may_begin_sentence = not at or previous in "!?:\"“'‘" or (previous == "." and not is_abbreviation)
    return "name" if written[:1].isupper() and written != "I" and not may_begin_sentence else ""


def are_opposites(word: str, other: str) -> bool:
    """Return whether two words are opposites by a short list, a negative prefix or a pair of opposite affixes.

    >>> are_opposites("legal", "illegal"), are_opposites("increase", "decrease"), are_opposites("careful", "careless")
    (True, True, True)
    >>> are_opposites("table", "stable")
    False
    """
    if frozenset((word, other)) in _OPPOSITES:
        return True
    short, long = sorted((word, other), key=len)
    if len(short) > 3 and long.endswith(short) and long.removesuffix(short) in _NEGATIVE_PREFIXES:
        return True
    pairs = [(short, long), (long, short)]
    if any(one.endswith("ful") and two == f"{one[:-3]}less" for one, two in pairs):
        return True
    return any(
        one.startswith(left)
        and two.startswith(right)
        and one[len(left) :] == two[len(right) :]
        and len(one) > len(left) + 2
        for one, two in pairs
        for left, right in _OPPOSITE_AFFIXES
    )


def _is_same_word(word: str, other: str, text: WordList) -> bool:
    """Return whether a word of the quote is the text's word with other accents or one typing error.

    Two letters swapped, one letter too few or too many, or one wrong letter in a long word count as a typing error,
    unless the result is another word of the text or a known word.
    """
    if any({word, other} <= group for group in _INTERCHANGEABLE):
        return True
    if _strip_accents(word) == _strip_accents(other) or word.replace("z", "s") == other.replace("z", "s"):
        return True
    if OSA.distance(word, other) != 1 or word in text.plain or word in _KNOWN_WORDS:
        return False
    if Levenshtein.distance(word, other) == 2:  # two letters swapped
        return (len(other) >= 4 or other in _FUNCTION_WORDS) and frozenset((word, other)) not in _SWAPPED_WORDS
    if len(other) < 5 or (word[:1], word[-1:]) != (other[:1], other[-1:]):
        return False
    letters = next((a + b for a, b in zip(word, other, strict=False) if a != b), "")
    return len(word) != len(other) or (len(other) >= 7 and not set(letters) <= set("aeiouy"))  # adopt, adapt


def _strip_accents(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter))
