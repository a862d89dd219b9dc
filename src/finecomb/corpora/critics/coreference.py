"""Coreference critic: the mentions of people and their order, compared with real text.

Deng et al. (2022), section 5 and Appendix G. z is the sequence of mentions of people, each a pronoun or a gender with
the number of its entity. Coreference chains come from a resolver or from a file.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from finecomb.annotators.coreference.chains import Chains, Mention, Resolver, TokenChains, read_chains
from finecomb.annotators.coreference.pronouns import FEMALE, FIRST_SECOND_PERSON, MALE, PLURAL
from finecomb.annotators.coreference.resolver import load_person_lexicon, resolve_coreference
from finecomb.core.errors import FinecombError
from finecomb.core.moved_modules import current_location
from finecomb.core.records import Document
from finecomb.core.sentences import sentence_offsets
from finecomb.corpora.critics.base import CriticScores, DroppedDocument, PriorCritic
from finecomb.corpora.critics.coreference_model import SENTENCE_START, MentionNgramModel, ModelKind
from finecomb.corpora.critics.coreference_tables import (
    ngram_contributions,
    ngrams_by_probability_shift,
    unlikely_ngrams,
)
from finecomb.corpora.critics.posteriors import PointPosterior, Posterior
from finecomb.corpora.critics.priors import ProjectionError, SavedState
from finecomb.corpora.critics.progress import track_progress
from finecomb.engine.user_code import import_user_code

RESOLVERS: dict[str, Resolver] = {"sieve": resolve_coreference}
"""Built-in resolvers by name. Others are named `module:function`, take a text and return chains of (start, end)."""

_GENDER_BY_PRONOUN = {**dict.fromkeys(MALE, "M"), **dict.fromkeys(FEMALE, "F"), **dict.fromkeys(PLURAL, "P")}
_PAPER_GENDER_BY_PRONOUN = {
    **_GENDER_BY_PRONOUN,
    "you": "P",
}  # the authors' program counts `you`, but not `your`, as plural
_GENDER_TABLES: dict[ModelKind, dict[str, str]] = {"kneser-ney": _GENDER_BY_PRONOUN, "paper": _PAPER_GENDER_BY_PRONOUN}
_PRONOUNS = _GENDER_BY_PRONOUN.keys() | set(FIRST_SECOND_PERSON)
_NO_CHAINS_REASON = "mentions no person twice, so it has no coreference chains"
_AFTER_HEAD_PATTERN = re.compile(r"\s(?:of|in|at|from|with|on|for|by|who|whom|whose|that|which)\s|,")


@dataclass(frozen=True)
class Coreference(PriorCritic):
    """Critic with an n-gram model of mentions, and the source of its coreference chains."""

    name = "coreference"
    table_names = ("contributions", "unlikely", "more", "less")
    damages = ("he and she exchanged", "sentences shuffled")

    prior: MentionNgramModel
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
        """Fit an n-gram model to the chains that `resolver` finds, or to those in the file `chains` for all documents.

        Documents that mention no person twice are not used. `rng` is not used, because fitting is deterministic.
        """
        zs: list[tuple[str, ...]] = []
        unused: list[DroppedDocument] = []
        for document in track_progress(real, "resolving coreference", len(real)):
            try:
                sequence = _make_state_finder(resolver, chains, model)(document)
            except ProjectionError as error:
                raise FinecombError(f"document {document.id!r} {error}") from None
            if sequence and sequence[0]:
                zs.append(sequence[0])
            else:
                unused.append(DroppedDocument(document.id, _NO_CHAINS_REASON))
        if not zs:
            raise FinecombError(
                f"none of the {len(real)} fitting documents mentions a person twice, so there are no coreference "
                "chains to fit; use documents about people"
            )
        return cls(MentionNgramModel.fit(zs, model, order), resolver, chains, tuple(unused))

    def project(self, document: Document) -> Posterior:
        """Return the states of a document as a point posterior, since resolvers report no certainty."""
        sequence = _make_state_finder(self.resolver, self.chains, self.prior.kind)(document)
        if sequence is None:
            raise ProjectionError(_NO_CHAINS_REASON)
        return PointPosterior(*sequence)

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """Return `contributions` (Table 6), `unlikely` (Table 15), `more` and `less` (Tables 16 and 17) per system."""
        makers: dict[str, Callable[[CriticScores], pl.DataFrame]] = {
            "contributions": lambda generated: ngram_contributions(self.prior, real.points, generated.points),
            "unlikely": lambda generated: unlikely_ngrams(self.prior, generated.points),
            "more": lambda generated: ngrams_by_probability_shift(
                self.prior, real.points, generated.points, is_rising=True
            ),
            "less": lambda generated: ngrams_by_probability_shift(
                self.prior, real.points, generated.points, is_rising=False
            ),
        }
        if not real.points:
            return {}
        tables: dict[str, pl.DataFrame] = {}
        for name, table in makers.items():
            parts = [
                table(scores).select(pl.lit(system).alias("system"), pl.all())
                for system, scores in systems.items()
                if scores.points
            ]
            tables[name] = pl.concat(parts) if parts else pl.DataFrame({"system": []})
        return tables

    def state(self) -> SavedState:
        """Return the state for saving; a chains file is stored by its path."""
        return {"prior": self.prior.state(), "resolver": self.resolver, "chains": self.chains and str(self.chains)}

    @classmethod
    def user_code_in_state(cls, state: SavedState) -> Sequence[str]:
        """Return the name of the resolver, unless it is built in."""
        return () if state["resolver"] in RESOLVERS else (str(state["resolver"]),)

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """Rebuild the critic from its saved state."""
        chains = Path(state["chains"]) if state["chains"] else None
        return cls(MentionNgramModel.from_state(state["prior"]), state["resolver"], chains)


StateSequence = tuple[tuple[str, ...], tuple[Mention, ...]]
"""States of a document with the text span of each."""


@functools.cache
def _make_state_finder(
    resolver: str, chains: Path | None, kind: ModelKind
) -> Callable[[Document], StateSequence | None]:
    """Return a function that maps a document to its states, or to None if the document has no chains."""
    if chains is None:
        return functools.partial(_resolve_states, resolver, _load_resolver(resolver), kind)
    stored = read_chains(chains)

    def read_stored_states(document: Document) -> StateSequence | None:
        stored_chains = stored.get(document.id)
        if stored_chains is None:
            raise ProjectionError(f"has no entry in {chains}; add its coreference chains")
        aligned_chains = (
            stored_chains.align_to_text(document.text, f"{chains}: {document.id}")
            if isinstance(stored_chains, TokenChains)
            else stored_chains
        )
        _check_mention_bounds(aligned_chains, len(document.text), f"{chains}: {document.id}")
        return mention_states(document.text, aligned_chains, kind)

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
            raise FinecombError(f"{where}: mention [{start}, {end}] is outside the text of {length} characters")


def _load_resolver(name: str) -> Resolver:
    if name in RESOLVERS:
        return RESOLVERS[name]
    module, _, function = name.partition(":")
    module, function = current_location(module, function)
    if not function:
        raise FinecombError(
            f"unknown resolver={name}; use {', '.join(RESOLVERS)}, or module:function that takes a text and returns "
            "chains of (start, end)"
        )
    resolver: Resolver = import_user_code(module, function, "set_", f"resolver={name}")
    return resolver


def mention_states(text: str, chains: Chains, kind: ModelKind = "kneser-ney") -> StateSequence | None:
    """Return the states of z with their text spans: `.` at the start of a sentence, and each mention of a person.

    >>> mention_states("Ann left. She ran.", [[(0, 3), (10, 13)]])
    (('.', 'F:0', '.', 'She:0'), ((0, 0), (0, 3), (10, 10), (10, 13)))
    """
    people = [chain for chain in chains if _is_person_chain(text, chain)]
    starts = [(start, (start, start), SENTENCE_START) for start, _ in sentence_offsets(text).tolist()]
    mentions: list[tuple[int, Mention, str]] = []
    for number, chain in enumerate(people):
        gender = chain_gender(text, chain, kind)
        for mention in chain:
            words = text[slice(*mention)]
            pronoun = words if words == "I" or words.islower() else words.capitalize()
            symbol = pronoun if words.lower() in _PRONOUNS else gender
            mentions.append((head_start(text, mention), mention, f"{symbol}:{number}"))
    if not mentions:
        return None
    placed = sorted([*starts, *mentions], key=lambda row: (row[0], row[2] != SENTENCE_START, row[1]))
    return tuple(state for _, _, state in placed), tuple(span for _, span, _ in placed)


def head_start(text: str, mention: Mention) -> int:
    """Return the start of a mention's head, the last word before any phrase: `mother` in `the mother of Ann`."""
    start, end = mention
    core = _AFTER_HEAD_PATTERN.split(text[start:end])[0].rstrip()
    return start + core.rfind(" ") + 1


def chain_gender(text: str, chain: Sequence[Mention], kind: ModelKind = "kneser-ney") -> str:
    """Return the most frequent of M, F and P among a chain's pronouns (in a tie, the first), or N if none has a gender.

    With `paper`, `you` counts as plural.
    """
    table = _GENDER_TABLES[kind]
    genders = [table[word] for start, end in chain if (word := text[start:end].lower()) in table]
    return Counter(genders).most_common(1)[0][0] if genders else "N"


def _is_person_chain(text: str, chain: Sequence[Mention]) -> bool:
    """Check whether a chain has a personal pronoun or a word for a person, since resolvers also mark things."""
    word_lists = load_person_lexicon()
    for start, end in chain:
        if text[start:end].lower() in _PRONOUNS:
            return True
        words = re.findall(r"\w+", text[start:end].lower())
        if any(word in word_lists.names or word in word_lists.nouns or word in word_lists.titles for word in words):
            return True
    return False
