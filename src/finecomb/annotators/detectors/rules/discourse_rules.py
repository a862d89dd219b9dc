"""Rules across sentences: people who were not introduced, contradicting facts, and topic drift."""

from __future__ import annotations

import re
from collections.abc import Iterator

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document
from finecomb.core.sentences import sentence_offsets

_PERSON_NOUNS = (
    "man|woman|boy|girl|stranger|officer|doctor|nurse|soldier|captain|detective|killer|murderer|thief|driver|priest|"
    "lawyer|king|queen|prince|princess|teacher|maid|servant|guard|couple|brothers|sisters|twins|child|baby|old man"
)
_DEFINITE_PERSON = re.compile(
    rf"\b[Tt]he (?P<who>{_PERSON_NOUNS})\b(?!\s+(?:who|whom|whose|that|of|in|with|from|at)\b)"
)
_FOLLOWING_VERB = re.compile(
    r"^\s+(?:is|was|has|had|tells?|told|says?|said|asks?|asked|goes|went|comes?|came|takes?|took|finds?|found|decides?|"
    r"decided|tries|tried|wants?|wanted|runs?|ran|sees?|saw|gives?|gave|leaves?|left|kills?|killed|returns?|returned)\b"
)
_INTRODUCING_WORD = re.compile(
    r"(?:\b(?:named|called|Mr|Mrs|Ms|Dr|Miss|Sir|Lady|Lord|Captain|Aunt|Uncle|King|Queen|Prince|Princess|Detective|"
    r"Inspector|Officer|Father|Professor|brother|sister|friend|wife|husband|son|daughter|father|mother|boss|partner|"
    r"agent|cousin|uncle|aunt|girlfriend|boyfriend|lawyer|doctor|teacher|and)\.?,?\s+)$"
)
_FACT_PATTERN = re.compile(
    r"\b(?P<name>[A-Z]\w+(?:\s[A-Z]\w+)?)\s(?P<fact>was born (?:in|on)|died (?:in|on)|was founded in|was built in|"
    r"was established in|opened in|has a population of|had a population of|married in|was elected in)\s"
    r"(?P<value>(?:[A-Z][a-z]+\s\d{1,2},\s)?\d[\d,]*)"
)
_WORD_PATTERN = re.compile(r"[^\W\d_]{4,}")
_STOP_WORDS = frozenset(
    "about after again against also another because been before being between both came come could does down each even "
    "every first from have having here into just know like made make many more most much must never only other over "
    "said same should since some still such take than that their them then there these they thing things think this "
    "those through time under until very want well were what when where which while will with would year "
    "years your".split()
)
MIN_DRIFT_SENTENCES = 5
"""Minimum number of final sentences that share no word with the prompt to count as topic drift."""


def find_unintroduced_people(document: Document) -> Iterator[RuleFinding]:
    """Find people who act at their first mention without having been introduced."""
    text, known_words = document.text, set(re.findall(r"[A-Z]\w+", " ".join(document.context.values())))
    first_end = next((end for _, end in sentence_offsets(text).tolist()), 0)
    for match in re.finditer(r"\b(?P<name>[A-Z][a-z]+)(?:\s[A-Z][a-z]+)*", text):
        words = match[0].split()
        known, known_words = known_words & set(words), known_words | set(words)
        before = text[max(0, match.start() - 40) : match.start()]
        opens = not before.strip() or before.rstrip()[-1] in '.!?”"'
        if (
            known
            or match.start() < first_end
            or not opens
            or words[0] in _SENTENCE_OPENERS
            or _INTRODUCING_WORD.search(before)
        ):
            continue
        if _FOLLOWING_VERB.match(text[match.end() : match.end() + 12]):
            yield RuleFinding(*match.span(), "incoherent", f"{match[0]} has not been introduced.")


_SENTENCE_OPENERS = frozenset(
    "The This That These Those There They Then When While After Before He She It We You In On At As But And So If His "
    "Her Their Its One Two What Who How Why Now Later Meanwhile However Once Everyone Someone Nobody Nothing "
    "Everything Another Some Many Most All Each Both God".split()
)


def find_unintroduced_definites(document: Document) -> Iterator[RuleFinding]:
    """Find definite descriptions such as `the stranger` for people who were not mentioned before."""
    earlier = " ".join(document.context.values())
    first: dict[str, int] = {}
    for match in _DEFINITE_PERSON.finditer(document.text):
        who = match["who"].casefold().removesuffix("s")
        if who not in first:
            mention = re.compile(rf"\b{re.escape(who)}", re.IGNORECASE)
            in_text = mention.search(document.text)
            first[who] = -1 if mention.search(earlier) or in_text is None else in_text.start()
        if match.start("who") == first[who]:
            yield RuleFinding(*match.span(), "incoherent", f"No {match['who']} has been mentioned before.")


def find_contradicting_facts(document: Document) -> Iterator[RuleFinding]:
    """Find facts stated with two different numbers or dates, such as `was born in 1934` and `was born in 1936`."""
    first: dict[tuple[str, str], re.Match[str]] = {}
    for match in _FACT_PATTERN.finditer(document.text):
        before = first.setdefault((match["name"], match["fact"]), match)
        if before["value"] != match["value"]:
            reason = f"Earlier in the text, {match['name']} {match['fact']} {before['value']}."
            yield RuleFinding(*match.span("value"), "self-contradiction", reason, before.span("value"))


def find_topic_drift(document: Document) -> Iterator[RuleFinding]:
    """Find the first of the final sentences that share no word with the prompt, if there are at least five of them."""
    wanted = _content_stems(document.context.get("prompt", ""))
    parts = [(start, end) for start, end in sentence_offsets(document.text).tolist()]
    about = [number for number, (start, end) in enumerate(parts) if wanted & _content_stems(document.text[start:end])]
    first = about[-1] + 1 if about else 0
    if wanted and len(parts) - first >= MIN_DRIFT_SENTENCES:
        reason = f"No word of the prompt occurs in the last {len(parts) - first} sentences."
        yield RuleFinding(*parts[first], "off-prompt", reason)


def _content_stems(text: str) -> set[str]:
    """Return the first five letters of each content word, so that `lions` matches `lion`."""
    return {word[:5] for word in _WORD_PATTERN.findall(text.casefold()) if word not in _STOP_WORDS}
