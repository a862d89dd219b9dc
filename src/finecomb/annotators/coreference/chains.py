"""Coreference chains: file formats, labelled example passages, and the MUC and B-cubed scores."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from finecomb.core.errors import FormatError, shorten
from finecomb.core.guarded_json import load_json

Mention = tuple[int, int]
"""Half-open range `[start, end)` of a text, in code points.

It covers a pronoun, a name or the head noun of a description.
"""
Chains = list[list[Mention]]
"""Coreference chains: the mentions of each person in text order. A person mentioned only once has no chain."""
Resolver = Callable[[str], Chains]
"""Function that takes a text and returns its chains."""


class ChainScore(NamedTuple):
    """Recall and precision of predicted chains against gold chains.

    By convention 0/0 counts as 0, so neither is ever NaN.
    """

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision, 0 when both are 0."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """A text with the coreference chains that people annotated."""

    id: str
    text: str
    chains: Chains


def muc(pairs: Sequence[tuple[Chains, Chains]]) -> ChainScore:
    """Compute the MUC score (Vilain et al. 1995), the share of links recovered, pooled over (gold, predicted) pairs.

    >>> muc([([[(0, 1), (2, 3), (4, 5)]], [[(0, 1), (2, 3)], [(4, 5), (6, 7)]])]).f1
    0.5
    """
    return ChainScore(_muc_recall(pairs), _muc_recall([(predicted, gold) for gold, predicted in pairs]))


def _muc_recall(pairs: Sequence[tuple[Chains, Chains]]) -> float:
    links = total = 0
    for keys, others in pairs:
        home = {mention: index for index, chain in enumerate(others) for mention in chain}
        for chain in keys:
            parts = {home.get(mention, mention) for mention in chain}
            # If the other side splits a chain, each additional part costs one link.
            links += len(chain) - len(parts)
            total += len(chain) - 1
    return links / total if total else 0.0


def b_cubed(pairs: Sequence[tuple[Chains, Chains]]) -> ChainScore:
    """Compute B-cubed (Bagga and Baldwin 1998): the overlap of each mention's gold and predicted chains, averaged.

    A mention found on only one side scores 0 for that side.

    >>> b_cubed([([[(0, 1), (2, 3)]], [[(0, 1), (2, 3), (4, 5)]])])
    ChainScore(recall=1.0, precision=0.4444444444444444)
    """
    return ChainScore(_b_cubed_recall(pairs), _b_cubed_recall([(predicted, gold) for gold, predicted in pairs]))


def _b_cubed_recall(pairs: Sequence[tuple[Chains, Chains]]) -> float:
    shared = total = 0.0
    for keys, others in pairs:
        home = {mention: set(chain) for chain in others for mention in chain}
        for chain in keys:
            shared += sum(len(home.get(mention, set()) & set(chain)) / len(chain) for mention in chain)
            total += len(chain)
    return shared / total if total else 0.0


def load_passages() -> list[LabelledPassage]:
    """Load the passages that ship with Finecomb: 10 used to develop the rules and 22 held out."""
    text = resources.files(__package__).joinpath("coreference_passages.txt").read_text(encoding="utf-8")
    bodies = re.split(r"^== (.+)\n", text, flags=re.MULTILINE)[1:]
    return [parse_passage(name, body.strip()) for name, body in zip(bodies[::2], bodies[1::2], strict=True)]


def parse_passage(name: str, marked: str) -> LabelledPassage:
    """Parse a passage whose mentions are written as `[she|0]`, where 0 identifies the person.

    >>> parse_passage("a", "[Ann|0] met [Bo|1]. [She|0] left.")
    LabelledPassage(id='a', text='Ann met Bo. She left.', chains=[[(0, 3), (12, 15)]])
    """
    text, mentions = "", dict[str, list[Mention]]()
    offset = 0
    for match in re.finditer(r"\[([^|\]]+)\|(\w+)\]", marked):
        text += marked[offset : match.start()]
        mentions.setdefault(match[2], []).append((len(text), len(text) + len(match[1])))
        text, offset = text + match[1], match.end()
    return LabelledPassage(name, text + marked[offset:], build_chains(mentions.values()))


def build_chains(groups: Iterable[Iterable[Mention]]) -> Chains:
    """Build chains from groups of mentions, in text order. Groups with fewer than two mentions are dropped."""
    listed = [sorted(set(group)) for group in groups]
    return sorted(group for group in listed if len(group) > 1)


# --- files -------------------------------------------------------------------------------------------------------

_ChainsJson = TypeAdapter(dict[str, list[list[tuple[int, int]]]])
_BEGIN_DOCUMENT_PATTERN = re.compile(r"#begin document \(?(.+?)\)?(?:; *part *(\d+))?$")


@dataclass(frozen=True, slots=True)
class TokenChains:
    """Chains over the words of a CoNLL file, before alignment with a text."""

    words: tuple[str, ...]
    chains: tuple[tuple[tuple[int, int], ...], ...]
    """Indices of the first and last word of each mention, by chain."""

    def align_to_text(self, text: str, where: str) -> Chains:
        """Convert the word indices to offsets in `text`, which must contain exactly these words in this order."""
        spans, offset = [], 0
        for word in self.words:
            start = text.find(word, offset)
            if start < 0 or text[offset:start].strip():
                raise FormatError(
                    f"{where}: expected word {word!r} in the document, found {shorten(text[offset : offset + 40])!r}; "
                    "the file must contain exactly the words of the document"
                )
            spans.append((start, offset := start + len(word)))
        return build_chains([(spans[first][0], spans[last][1]) for first, last in chain] for chain in self.chains)


def read_chains(path: Path) -> dict[str, Chains | TokenChains]:
    """Read chains by document ID from JSON, `{id: [[[start, end], ...], ...]}`, or from a CoNLL-2012 file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot read the coreference chains: {error}") from None
    if not text.lstrip().startswith("{"):
        return dict(_parse_conll(text, str(path)))
    try:
        chains_by_id = _ChainsJson.validate_python(load_json(text))
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}: invalid JSON at line {error.lineno}: {error.msg}") from None
    except ValidationError as error:
        key = ".".join(map(str, error.errors()[0]["loc"]))
        raise FormatError(f"{path}: {key}: expected {{ID: [[[start, end], ...], ...]}}") from None
    return {id: build_chains(chains) for id, chains in chains_by_id.items()}


def _parse_conll(text: str, where: str) -> Iterator[tuple[str, TokenChains]]:
    name, rows = "", list[tuple[int, list[str]]]()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _BEGIN_DOCUMENT_PATTERN.match(line):
            name, rows = match[1] + (f"/{int(match[2])}" if match[2] and int(match[2]) else ""), []
        elif line.startswith("#end document"):
            yield name, _parse_conll_rows(rows, where)
            name = ""
        elif line.strip() and not name:
            raise FormatError(f"{where}:{number}: the line is outside a document; add `#begin document (ID)` before it")
        elif line.strip():
            rows.append((number, line.split()))
    if name:
        raise FormatError(f"{where}: document {name!r} has no `#end document`; add the line after its last word")


def _parse_conll_rows(rows: Sequence[tuple[int, list[str]]], where: str) -> TokenChains:
    """Parse the lines of one document.

    The word is in the fourth column. The last column opens and closes mentions: `(3`, `3)` or `(3)`, joined by `|`.
    """
    opened: dict[str, list[int]] = {}
    chains: dict[str, list[tuple[int, int]]] = {}
    for index, (number, columns) in enumerate(rows):
        if len(columns) < 5:
            raise FormatError(f"{where}:{number}: the line has {len(columns)} columns; CoNLL-2012 requires at least 5")
        for part in columns[-1].split("|"):
            entity = part.strip("()")
            if part.startswith("("):
                opened.setdefault(entity, []).append(index)
            if part.endswith(")"):
                if not opened.get(entity):
                    raise FormatError(
                        f"{where}:{number}: a mention of entity {entity!r} ends but does not begin; "
                        f"add '({entity}' to its first word"
                    )
                chains.setdefault(entity, []).append((opened[entity].pop(), index))
    left = [entity for entity, starts in opened.items() if starts]
    if left:
        raise FormatError(
            f"{where}: a mention of entity {left[0]!r} begins but does not end; add '{left[0]})' to its last word"
        )
    return TokenChains(tuple(columns[3] for _, columns in rows), tuple(map(tuple, chains.values())))
