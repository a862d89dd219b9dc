"""Who is mentioned where: chains of mentions of one person, how they are read, and how two sets of them compare."""

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

Mention = tuple[int, int]
"""`[start, end)` of the text, in code points: a pronoun, a name, or the head of a description."""
Chains = list[list[Mention]]
"""The mentions of each person, in text order; a person mentioned once is no chain."""
Resolver = Callable[[str], Chains]
"""Takes a text, returns its chains."""


class ChainScore(NamedTuple):
    """How far predicted chains agree with gold ones; NaN is never needed, as 0/0 counts as 0 by convention."""

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """Harmonic mean; 0 when both are 0."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """A text with the chains that people gave it."""

    id: str
    text: str
    chains: Chains


def muc(pairs: Sequence[tuple[Chains, Chains]]) -> ChainScore:
    """Vilain et al. (1995): links kept, over all (gold, predicted) pairs together.

    >>> muc([([[(0, 1), (2, 3), (4, 5)]], [[(0, 1), (2, 3)], [(4, 5), (6, 7)]])]).f1
    0.5
    """
    return ChainScore(_link_recall(pairs), _link_recall([(predicted, gold) for gold, predicted in pairs]))


def _link_recall(pairs: Sequence[tuple[Chains, Chains]]) -> float:
    links = total = 0
    for keys, others in pairs:
        home = {mention: at for at, chain in enumerate(others) for mention in chain}
        for chain in keys:
            parts = {home.get(mention, mention) for mention in chain}
            links += len(chain) - len(parts)
            total += len(chain) - 1
    return links / total if total else 0.0


def b_cubed(pairs: Sequence[tuple[Chains, Chains]]) -> ChainScore:
    """Bagga and Baldwin (1998): overlap of each mention's chains, over all mentions of all pairs together.

    A mention that only one side has counts 0 for that side.

    >>> b_cubed([([[(0, 1), (2, 3)]], [[(0, 1), (2, 3), (4, 5)]])])
    ChainScore(recall=1.0, precision=0.4444444444444444)
    """
    return ChainScore(_overlap_recall(pairs), _overlap_recall([(predicted, gold) for gold, predicted in pairs]))


def _overlap_recall(pairs: Sequence[tuple[Chains, Chains]]) -> float:
    shared = total = 0.0
    for keys, others in pairs:
        home = {mention: set(chain) for chain in others for mention in chain}
        for chain in keys:
            shared += sum(len(home.get(mention, set()) & set(chain)) / len(chain) for mention in chain)
            total += len(chain)
    return shared / total if total else 0.0


def load_passages() -> list[LabelledPassage]:
    """The passages that ship with Finecomb: ten used while its rules were written, and 22 held out."""
    text = resources.files(__package__).joinpath("coreference_passages.txt").read_text(encoding="utf-8")
    bodies = re.split(r"^== (.+)\n", text, flags=re.MULTILINE)[1:]
    return [parse_passage(name, body.strip()) for name, body in zip(bodies[::2], bodies[1::2], strict=True)]


def parse_passage(name: str, marked: str) -> LabelledPassage:
    """From text with mentions written as `[she|0]`.

    >>> parse_passage("a", "[Ann|0] met [Bo|1]. [She|0] left.")
    LabelledPassage(id='a', text='Ann met Bo. She left.', chains=[[(0, 3), (12, 15)]])
    """
    text, mentions = "", dict[str, list[Mention]]()
    at = 0
    for match in re.finditer(r"\[([^|\]]+)\|(\w+)\]", marked):
        text += marked[at : match.start()]
        mentions.setdefault(match[2], []).append((len(text), len(text) + len(match[1])))
        text, at = text + match[1], match.end()
    return LabelledPassage(name, text + marked[at:], build_chains(mentions.values()))


def build_chains(groups: Iterable[Iterable[Mention]]) -> Chains:
    """Groups of at least two mentions, each in text order, the earliest first."""
    listed = [sorted(set(group)) for group in groups]
    return sorted(group for group in listed if len(group) > 1)


# --- files -------------------------------------------------------------------------------------------------------

_ChainsJson = TypeAdapter(dict[str, list[list[tuple[int, int]]]])
_BEGIN_DOCUMENT = re.compile(r"#begin document \(?(.+?)\)?(?:; *part *(\d+))?$")


@dataclass(frozen=True, slots=True)
class TokenChains:
    """Chains over the words of a CoNLL file, to be laid over a text."""

    words: tuple[str, ...]
    chains: tuple[tuple[tuple[int, int], ...], ...]
    """First and last word of each mention."""

    def align_to_text(self, text: str, where: str) -> Chains:
        """The same in offsets of `text`, in which all words must occur in this order."""
        spans, at = [], 0
        for word in self.words:
            start = text.find(word, at)
            if start < 0 or text[at:start].strip():
                raise FormatError(f"{where}: word {word!r} is not at {shorten(text[at : at + 40])!r} of the document")
            spans.append((start, at := start + len(word)))
        return build_chains([(spans[first][0], spans[last][1]) for first, last in chain] for chain in self.chains)


def read_chains(path: Path) -> dict[str, Chains | TokenChains]:
    """Chains by document id, from JSON `{id: [[[start, end], ...], ...]}` or from a CoNLL-2012 file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: chains cannot be read: {error}") from None
    if text.lstrip().startswith("{"):
        return dict(_parse_json(text, str(path)))
    return dict(_parse_conll(text, str(path)))


def _parse_json(text: str, where: str) -> dict[str, Chains]:
    try:
        chains_by_id = _ChainsJson.validate_python(json.loads(text))
    except json.JSONDecodeError as error:
        raise FormatError(f"{where}: line {error.lineno}: {error.msg}") from None
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise FormatError(f"{where}: {place}: chains are lists of [start, end], by document id") from None
    return {id: build_chains(chains) for id, chains in chains_by_id.items()}


def _parse_conll(text: str, where: str) -> Iterator[tuple[str, TokenChains]]:
    name, rows = "", list[tuple[int, list[str]]]()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _BEGIN_DOCUMENT.match(line):
            name, rows = match[1] + (f"/{int(match[2])}" if match[2] and int(match[2]) else ""), []
        elif line.startswith("#end document"):
            yield name, _token_chains(rows, where)
            name = ""
        elif line.strip() and not name:
            raise FormatError(f"{where}:{number}: a word outside `#begin document (ID)` ... `#end document`")
        elif line.strip():
            rows.append((number, line.split()))
    if name:
        raise FormatError(f"{where}: document {name!r} has no `#end document`")


def _token_chains(rows: Sequence[tuple[int, list[str]]], where: str) -> TokenChains:
    """The word is the fourth column, the last column opens and closes mentions: `(3`, `3)`, `(3)`, joined by `|`."""
    opened: dict[str, list[int]] = {}
    chains: dict[str, list[tuple[int, int]]] = {}
    for at, (number, columns) in enumerate(rows):
        if len(columns) < 5:
            raise FormatError(f"{where}:{number}: {len(columns)} columns, where a CoNLL-2012 line has at least 5")
        for part in columns[-1].split("|"):
            entity = part.strip("()")
            if part.startswith("("):
                opened.setdefault(entity, []).append(at)
            if part.endswith(")"):
                if not opened.get(entity):
                    raise FormatError(f"{where}:{number}: mention {entity!r} is closed but was never opened")
                chains.setdefault(entity, []).append((opened[entity].pop(), at))
    left = [entity for entity, starts in opened.items() if starts]
    if left:
        raise FormatError(f"{where}: mention {left[0]!r} is opened but never closed")
    return TokenChains(tuple(columns[3] for _, columns in rows), tuple(map(tuple, chains.values())))
