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

from finecomb.annotators.coreference.chains import Chains, Mention, Resolver, TokenChains, read_chains
from finecomb.annotators.coreference.pronouns import FEMALE, FIRST_SECOND_PERSON, MALE, PLURAL
from finecomb.annotators.coreference.resolver import load_lexicon, resolve_coreference
from finecomb.core.errors import FinecombError
from finecomb.core.moved_modules import current_location
from finecomb.core.records import Document
from finecomb.core.sentences import sentences
from finecomb.corpora.critics.base import CriticScores, DroppedDocument, PriorCritic
from finecomb.corpora.critics.coreference_model import SENTENCE, ChainModel, ModelKind
from finecomb.corpora.critics.coreference_tables import ngram_contributions, shifted_ngrams, unlikely_ngrams
from finecomb.corpora.critics.posteriors import PointPosterior, Posterior
from finecomb.corpora.critics.priors import ProjectionError, SavedState
from finecomb.corpora.critics.progress import track

RESOLVERS: dict[str, Resolver] = {"sieve": resolve_coreference}
"""By name; any other is named `module:function`, takes a text and returns chains of (start, end)."""

_GENDER_BY_PRONOUN = {**dict.fromkeys(MALE, "M"), **dict.fromkeys(FEMALE, "F"), **dict.fromkeys(PLURAL, "P")}
_PAPER_GENDER_BY_PRONOUN = {
    **_GENDER_BY_PRONOUN,
    "you": "P",
}  # the authors' program counts `you`, not `your`, as plural
_GENDER_TABLES: dict[ModelKind, dict[str, str]] = {"kneser-ney": _GENDER_BY_PRONOUN, "paper": _PAPER_GENDER_BY_PRONOUN}
_PRONOUNS = _GENDER_BY_PRONOUN.keys() | set(FIRST_SECOND_PERSON)
_NO_CHAINS = "mentions no person twice, so it has no chains"
_AFTER_HEAD = re.compile(r"\s(?:of|in|at|from|with|on|for|by|who|whom|whose|that|which)\s|,")


@dataclass(frozen=True)
class Coreference(PriorCritic):
    """An n-gram model of mentions, and how mentions are found."""

    name = "coreference"
    table_names = ("contributions", "unlikely", "more", "less")
    damages = ("he and she exchanged", "sentences shuffled")

    prior: ChainModel
    resolver: str = "sieve"
    chains: Path | None = None
    unused: tuple[DroppedDocument, ...] = ()

    @classmethod
    def fit(
        cls,
        real: Sequence[Document],
        rng: np.random.Generator,
        model: ModelKind = "kneser-ney",
        order: int = 5,
        resolver: str = "sieve",
        chains: Path | None = None,
    ) -> Self:
        """`model` and `order` of the n-grams; chains by `resolver`, or from the file `chains`, which has all documents.

        Documents that mention no person twice have nothing to fit. Nothing is drawn, so `rng` is not used.
        """
        sequences = [
            _states_for_fitting(document, resolver, chains, model)
            for document in track(real, "resolving coreference", len(real))
        ]
        zs = [z for z in sequences if z]
        if not zs:
            raise FinecombError(f"none of {len(real)} documents mentions a person twice, so there are no chains to fit")
        unused = tuple(
            DroppedDocument(document.id, _NO_CHAINS) for document, z in zip(real, sequences, strict=True) if not z
        )
        return cls(ChainModel.fit(zs, model, order), resolver, chains, unused)

    def project(self, document: Document) -> Posterior:
        """The states of a document, a point: resolvers do not say how sure they are."""
        sequence = _make_state_finder(self.resolver, self.chains, self.prior.kind)(document)
        if sequence is None:
            raise ProjectionError(_NO_CHAINS)
        return PointPosterior(*sequence)

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """`contributions` (Table 6), `unlikely` (Table 15), and `more` and `less` in each system (Tables 16 and 17)."""
        makers = {
            "contributions": lambda generated: ngram_contributions(self.prior, real.points, generated.points),
            "unlikely": lambda generated: unlikely_ngrams(self.prior, generated.points),
            "more": lambda generated: shifted_ngrams(self.prior, real.points, generated.points, is_rising=True),
            "less": lambda generated: shifted_ngrams(self.prior, real.points, generated.points, is_rising=False),
        }
        return {name: _concat_system_tables(table, systems) for name, table in makers.items()} if real.points else {}

    def state(self) -> SavedState:
        """For storage; a file of chains is remembered by its path."""
        return {"prior": self.prior.state(), "resolver": self.resolver, "chains": self.chains and str(self.chains)}

    @classmethod
    def user_code_in_state(cls, state: SavedState) -> Sequence[str]:
        """The resolver, where it is not one of ours."""
        return () if state["resolver"] in RESOLVERS else (str(state["resolver"]),)

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """From storage."""
        chains = Path(state["chains"]) if state["chains"] else None
        return cls(ChainModel.from_state(state["prior"]), state["resolver"], chains)


StateSequence = tuple[tuple[str, ...], tuple[Mention, ...]]
"""The states of a document and the text of each."""


def _states_for_fitting(
    document: Document, resolver: str, chains: Path | None, kind: ModelKind
) -> tuple[str, ...] | None:
    try:
        sequence = _make_state_finder(resolver, chains, kind)(document)
    except ProjectionError as error:
        raise FinecombError(f"document {document.id!r} {error}") from None
    return sequence[0] if sequence else None


def _concat_system_tables(
    table: Callable[[CriticScores], pl.DataFrame], systems: Mapping[str, CriticScores]
) -> pl.DataFrame:
    usable = {name: scores for name, scores in systems.items() if scores.points}
    tables = [table(scores).select(pl.lit(name).alias("system"), pl.all()) for name, scores in usable.items()]
    return pl.concat(tables) if tables else pl.DataFrame({"system": []})


@functools.cache
def _make_state_finder(
    resolver: str, chains: Path | None, kind: ModelKind
) -> Callable[[Document], StateSequence | None]:
    """How a document becomes states; None where it has no chains."""
    if chains is None:
        return functools.partial(_resolve_states, resolver, _load_resolver(resolver), kind)
    stored = read_chains(chains)

    def read_stored_states(document: Document) -> StateSequence | None:
        stored_chains = stored.get(document.id)
        if stored_chains is None:
            raise ProjectionError(f"has no chains in {chains}")
        laid = (
            stored_chains.align_to_text(document.text, f"{chains}: {document.id}")
            if isinstance(stored_chains, TokenChains)
            else stored_chains
        )
        _check_mention_bounds(laid, len(document.text), f"{chains}: {document.id}")
        return mention_states(document.text, laid, kind)

    return read_stored_states


def _resolve_states(name: str, resolve: Resolver, kind: ModelKind, document: Document) -> StateSequence | None:
    try:
        mentions = resolve(document.text)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise FinecombError(f"document {document.id!r}: resolver {name} failed: {why}") from error
    _check_mention_bounds(mentions, len(document.text), f"resolver {name}: {document.id}")
    return mention_states(document.text, mentions, kind)


def _check_mention_bounds(chains: Chains, length: int, where: str) -> None:
    for start, end in (mention for chain in chains for mention in chain):
        if not 0 <= start < end <= length:
            raise FinecombError(f"{where}: mention [{start}, {end}] is not within its {length} characters")


def _load_resolver(name: str) -> Resolver:
    if name in RESOLVERS:
        return RESOLVERS[name]
    module, _, function = name.partition(":")
    module, function = current_location(module, function)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        resolver: Resolver = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise FinecombError(
            f"resolver={name}: {error}; give one of {', '.join(RESOLVERS)}, or module:function, which takes a text and "
            "returns chains of (start, end)"
        ) from None
    return resolver


def mention_states(text: str, chains: Chains, kind: ModelKind = "kneser-ney") -> StateSequence | None:
    """The states of z and the text of each: `.` where a sentence starts, and every mention of a person.

    >>> mention_states("Ann left. She ran.", [[(0, 3), (10, 13)]])
    (('.', 'F:0', '.', 'She:0'), ((0, 0), (0, 3), (10, 10), (10, 13)))
    """
    people = [chain for chain in chains if _is_person(text, chain)]
    starts = [(start, (start, start), SENTENCE) for start, _ in sentences(text).tolist()]
    mentions = [
        (head_start(text, mention), mention, f"{_symbol(text[slice(*mention)], gender)}:{number}")
        for number, chain in enumerate(people)
        for gender in [chain_gender(text, chain, kind)]
        for mention in chain
    ]
    if not mentions:
        return None
    placed = sorted([*starts, *mentions], key=lambda row: (row[0], row[2] != SENTENCE, row[1]))
    return tuple(state for _, _, state in placed), tuple(span for _, span, _ in placed)


def head_start(text: str, mention: Mention) -> int:
    """Where the head of a mention starts: its last word before any phrase that follows, as in `the mother of Ann`."""
    start, end = mention
    core = _AFTER_HEAD.split(text[start:end])[0].rstrip()
    return start + core.rfind(" ") + 1


def chain_gender(text: str, chain: Sequence[Mention], kind: ModelKind = "kneser-ney") -> str:
    """M, F or P by the majority of the chain's pronouns, the first of several; N where there is none.

    With `paper` also `you` is plural.
    """
    table = _GENDER_TABLES[kind]
    genders = [table[word] for start, end in chain if (word := text[start:end].lower()) in table]
    return Counter(genders).most_common(1)[0][0] if genders else "N"


def _symbol(mention: str, gender: str) -> str:
    if mention.lower() not in _PRONOUNS:
        return gender
    return mention if mention == "I" or mention.islower() else mention.capitalize()


def _is_person(text: str, chain: Sequence[Mention]) -> bool:
    """Whether a chain has a personal pronoun or a word that the rules know as a person's: resolvers mark things too."""
    word_lists = load_lexicon()
    for start, end in chain:
        if text[start:end].lower() in _PRONOUNS:
            return True
        words = re.findall(r"\w+", text[start:end].lower())
        if any(word in word_lists.names or word in word_lists.nouns or word in word_lists.titles for word in words):
            return True
    return False
