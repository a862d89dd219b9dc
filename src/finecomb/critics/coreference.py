"""The critic of coreference: are people mentioned, named and referred to again as in real text?

Deng et al. (2022), section 5 and Appendix G. z is the row of mentions of persons, each a pronoun or a gender with the
number of its person; chains come from a resolver or from a file.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.core.sentences import sentences
from finecomb.critics.base import CriticScores, Dropped, PriorCritic
from finecomb.critics.chains import Chains, Mention, Resolver, TokenChains, read_chains
from finecomb.critics.coreference_model import FEMALE, MALE, OTHERS, PLURAL, SENTENCE, ChainModel, Kind
from finecomb.critics.coreference_sieve import lexicon, sieve
from finecomb.critics.coreference_tables import contributions, shifted, unlikely
from finecomb.critics.posteriors import Point, Posterior
from finecomb.critics.priors import ProjectionError, State
from finecomb.critics.progress import track

RESOLVERS: dict[str, Resolver] = {"sieve": sieve}
"""By name; any other is named `module:function`, takes a text and returns chains of (start, end)."""

_GENDER = {**dict.fromkeys(MALE, "M"), **dict.fromkeys(FEMALE, "F"), **dict.fromkeys(PLURAL, "P")}
_PRONOUNS = _GENDER.keys() | set(OTHERS)
_NO_CHAINS = "mentions no person twice, so it has no chains"
_AFTER_HEAD = re.compile(r"\s(?:of|in|at|from|with|on|for|by|who|whom|whose|that|which)\s|,")


@dataclass(frozen=True)
class Coreference(PriorCritic):
    """An n-gram model of mentions, and how mentions are found."""

    name = "coreference"

    prior: ChainModel
    resolver: str = "sieve"
    chains: Path | None = None
    unused: tuple[Dropped, ...] = ()

    @classmethod
    def fit(
        cls,
        real: Sequence[Document],
        rng: np.random.Generator,
        model: Kind = "kneser-ney",
        order: int = 5,
        resolver: str = "sieve",
        chains: Path | None = None,
    ) -> Self:
        """`model` and `order` of the n-grams; chains by `resolver`, or from the file `chains`, which has all documents.

        Documents that mention no person twice have nothing to fit. Nothing is drawn, so `rng` is not used.
        """
        found = [_fitted_on(each, resolver, chains) for each in track(real, "resolving coreference", len(real))]
        zs = [z for z in found if z]
        if not zs:
            raise FinecombError(f"none of {len(real)} documents mentions a person twice, so there are no chains to fit")
        unused = tuple(Dropped(each.id, _NO_CHAINS) for each, z in zip(real, found, strict=True) if not z)
        return cls(ChainModel.fit(zs, model, order), resolver, chains, unused)

    def project(self, document: Document) -> Posterior:
        """The states of a document, a point: resolvers do not say how sure they are."""
        found = _finder(self.resolver, self.chains)(document)
        if found is None:
            raise ProjectionError(_NO_CHAINS)
        return Point(*found)

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """`contributions` (Table 6), `unlikely` (Table 15), and `more` and `less` in each system (Tables 16 and 17)."""
        made = {
            "contributions": lambda found: contributions(self.prior, real.points, found.points),
            "unlikely": lambda found: unlikely(self.prior, found.points),
            "more": lambda found: shifted(self.prior, real.points, found.points, most=True),
            "less": lambda found: shifted(self.prior, real.points, found.points, most=False),
        }
        return {name: _by_system(table, systems) for name, table in made.items()} if real.points else {}

    def state(self) -> State:
        """For storage; a file of chains is remembered by its path."""
        return {"prior": self.prior.state(), "resolver": self.resolver, "chains": self.chains and str(self.chains)}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """From storage."""
        chains = Path(state["chains"]) if state["chains"] else None
        return cls(ChainModel.from_state(state["prior"]), state["resolver"], chains)


Found = tuple[tuple[str, ...], tuple[Mention, ...]]
"""The states of a document and the text of each."""


def _fitted_on(document: Document, resolver: str, chains: Path | None) -> tuple[str, ...] | None:
    try:
        found = _finder(resolver, chains)(document)
    except ProjectionError as error:
        raise FinecombError(f"document {document.id!r} {error}") from None
    return found[0] if found else None


def _by_system(table: Callable[[CriticScores], pl.DataFrame], systems: Mapping[str, CriticScores]) -> pl.DataFrame:
    known = {name: found for name, found in systems.items() if found.points}
    tables = [table(found).select(pl.lit(name).alias("system"), pl.all()) for name, found in known.items()]
    return pl.concat(tables) if tables else pl.DataFrame({"system": []})


@functools.cache
def _finder(resolver: str, chains: Path | None) -> Callable[[Document], Found | None]:
    """How a document becomes states; None where it has no chains."""
    if chains is None:
        return functools.partial(_resolved, resolver, _resolver(resolver))
    stored = read_chains(chains)

    def look_up(document: Document) -> Found | None:
        found = stored.get(document.id)
        if found is None:
            raise ProjectionError(f"has no chains in {chains}")
        laid = found.over(document.text, f"{chains}: {document.id}") if isinstance(found, TokenChains) else found
        _check_within(laid, len(document.text), f"{chains}: {document.id}")
        return states(document.text, laid)

    return look_up


def _resolved(name: str, resolve: Resolver, document: Document) -> Found | None:
    try:
        found = resolve(document.text)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise FinecombError(f"document {document.id!r}: resolver {name} failed: {why}") from error
    _check_within(found, len(document.text), f"resolver {name}: {document.id}")
    return states(document.text, found)


def _check_within(chains: Chains, length: int, where: str) -> None:
    for start, end in (mention for chain in chains for mention in chain):
        if not 0 <= start < end <= length:
            raise FinecombError(f"{where}: mention [{start}, {end}] is not within its {length} characters")


def _resolver(name: str) -> Resolver:
    if name in RESOLVERS:
        return RESOLVERS[name]
    module, _, function = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Resolver = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise FinecombError(
            f"resolver={name}: {error}; give one of {', '.join(RESOLVERS)}, or module:function, which takes a text and "
            "returns chains of (start, end)"
        ) from None
    return found


def states(text: str, chains: Chains) -> Found | None:
    """The states of z and the text of each: `.` where a sentence starts, and every mention of a person.

    >>> states("Ann left. She ran.", [[(0, 3), (10, 13)]])
    (('.', 'F:0', '.', 'She:0'), ((0, 0), (0, 3), (10, 10), (10, 13)))
    """
    people = [chain for chain in chains if _is_person(text, chain)]
    starts = [(start, (start, start), SENTENCE) for start, _ in sentences(text).tolist()]
    mentions = [
        (head(text, mention), mention, f"{_symbol(text[slice(*mention)], gender)}:{number}")
        for number, chain in enumerate(people)
        for gender in [gender_of(text, chain)]
        for mention in chain
    ]
    if not mentions:
        return None
    placed = sorted([*starts, *mentions], key=lambda each: (each[0], each[2] != SENTENCE, each[1]))
    return tuple(state for _, _, state in placed), tuple(span for _, span, _ in placed)


def head(text: str, mention: Mention) -> int:
    """Where the head of a mention starts: its last word before any phrase that follows, as in `the mother of Ann`."""
    start, end = mention
    core = _AFTER_HEAD.split(text[start:end])[0].rstrip()
    return start + core.rfind(" ") + 1


def gender_of(text: str, chain: Sequence[Mention]) -> str:
    """M, F or P by the majority of the chain's pronouns, the first of several; N where there is none."""
    found = [_GENDER[word] for start, end in chain if (word := text[start:end].lower()) in _GENDER]
    return Counter(found).most_common(1)[0][0] if found else "N"


def _symbol(mention: str, gender: str) -> str:
    if mention.lower() not in _PRONOUNS:
        return gender
    return mention if mention == "I" or mention.islower() else mention.capitalize()


def _is_person(text: str, chain: Sequence[Mention]) -> bool:
    """Whether a chain has a personal pronoun or a word that the rules know as a person's: resolvers mark things too."""
    known = lexicon()
    for start, end in chain:
        if text[start:end].lower() in _PRONOUNS:
            return True
        words = re.findall(r"\w+", text[start:end].lower())
        if any(word in known.names or word in known.nouns or word in known.titles for word in words):
            return True
    return False
