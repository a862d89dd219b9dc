"""Texts made ready for a study: prompts from articles, lengths, copies and balance. All that is dropped is counted.

The steps are always taken in this order: detokenise, split into prompt and continuation, sections, length, copies of
priming texts, duplicates, balance. Each is left out unless it is asked for, but for duplicates.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.records import Document
from finecomb.core.results import Table
from finecomb.core.sentences import sentences
from finecomb.core.study import Study
from finecomb.core.text_hash import text_hash
from finecomb.corpora.detokenisation import detokenise
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import HEADLINE, MAX_OVERLAP, PROMPT, Priming
from finecomb.corpora.generation.section_markers import TitleMode, add_section_markers, parse_section_markers

PromptKind = Literal["first-sentence", "headline", "headline+first-sentence", "start"]
HUMAN = "human"
"""What the model of a text by people is called."""
DUPLICATE = "the same text as another"
_START_EXAMPLE = "'Once upon a time'"
NOT_DRAWN = "not drawn: its cell has enough texts"


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is to be done with texts."""

    detokenise: bool = False
    prompt: PromptKind | None = None
    """What of an article becomes the prompt; the rest is the continuation that people wrote."""
    start: str = ""
    """Words that texts begin with, and that become the prompt of all: for `start`."""
    sections: TitleMode | Literal["read"] | None = None
    """Mark sections, with titles or without, or read them back."""
    rule: LengthRule | None = None
    priming: Priming = field(default_factory=Priming)
    most_overlap: float = MAX_OVERLAP
    balance: tuple[str, ...] = ()
    """Meta fields whose combinations get equally many texts."""
    per_cell: int | None = None
    """Texts for each combination; those of the smallest when None."""
    seed: int = 0
    duplicates: bool = False
    """Whether texts may occur twice."""


@dataclass(frozen=True, slots=True)
class PreparedTexts:
    """Texts ready for a study, and what became of the others."""

    documents: tuple[Document, ...]
    dropped: Counter[str]
    """Texts that were left out, by reason."""
    reasons: dict[str, str]
    """The same by document."""
    cells: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Texts of each combination of the balanced fields."""
    notes: tuple[str, ...] = ()


class PreparationResult(Table):
    """How many texts were read, dropped for each reason, and kept: the result of `finecomb.prepare`."""

    def __init__(self, prepared: PreparedTexts, read_count: int, fields: Sequence[str] = ()) -> None:
        rows: list[dict[str, object]] = [{"what": "texts read", "texts": read_count}]
        rows += [{"what": f"dropped: {reason}", "texts": texts} for reason, texts in prepared.dropped.most_common()]
        rows.append({"what": "texts kept", "texts": len(prepared.documents)})
        cells = [
            f"{', '.join(f'{name} {value}' for name, value in zip(fields, cell, strict=True))}: {texts}"
            for cell, texts in prepared.cells.items()
        ]
        super().__init__(rows, title="What became of the texts", notes=[*prepared.notes, *cells])
        self.documents = prepared.documents
        """The texts that were kept."""
        self.dropped = dict(prepared.reasons)
        """Reasons by the IDs of the texts that were dropped."""

    @property
    def study(self) -> Study:
        """A study of the texts that were kept."""
        return Study.from_items(self.documents)


class DroppedTextError(Exception):
    """A text is left out, for the reason given."""


PreparationStep = Callable[[Document], Document]


def prepare(documents: Iterable[Document], preparation: Preparation) -> PreparedTexts:
    """The texts that are left when every step is taken, in the order given."""
    _check_preparation(preparation)
    documents = list(documents)
    _check_ids(documents)
    texts: list[Document] = []
    reasons: dict[str, str] = {}
    steps = _steps(preparation)
    hashes: set[str] = set()
    for document in documents:
        try:
            text = _apply_steps(document, steps)
            texts.append(text if preparation.duplicates else _drop_duplicate(text, hashes))
        except DroppedTextError as drop:
            reasons[document.id] = str(drop)
    notes: list[str] = []
    cells: dict[tuple[str, ...], int] = {}
    if preparation.balance and texts:
        drawn = draw_balanced(texts, preparation.balance, preparation.per_cell, preparation.seed)
        reasons |= {document.id: NOT_DRAWN for document in texts if document.id not in drawn.ids}
        texts = [document for document in texts if document.id in drawn.ids]
        cells, notes = drawn.cells, [*drawn.notes]
    return PreparedTexts(tuple(texts), Counter(reasons.values()), reasons, cells, tuple(notes))


def _check_preparation(preparation: Preparation) -> None:
    if preparation.prompt == "start" and not preparation.start.strip():
        raise ParameterError(
            f"{param('prompt', 'start')}: say with which words the texts begin: {param('start', _START_EXAMPLE)}",
            parameter="start",
        )
    if preparation.start and preparation.prompt != "start":
        raise ParameterError(
            f"{param('start')} means nothing without {param('prompt', 'start')}; leave it out", parameter="start"
        )
    if preparation.per_cell is not None and not preparation.balance:
        raise ParameterError(
            f"{param('per_cell')} means nothing without {param('balance')}; say over which fields, "
            f"e.g. {param('balance', 'topic,model')}",
            parameter="per_cell",
        )
    if preparation.sections in ("with-titles", "without-titles") and (preparation.prompt or preparation.rule):
        raise ParameterError(
            f"{param('sections')} marks whole texts; leave out {param('prompt')} and {param('words')}",
            parameter="sections",
        )


def _check_ids(documents: Sequence[Document]) -> None:
    """An error where two texts have one id: what was dropped could not be told."""
    if not documents:
        raise FinecombError("there are no texts to prepare")
    id, count = Counter(document.id for document in documents).most_common(1)[0]
    if count > 1:
        raise FinecombError(f"{count} texts are called {id!r}; give each an id of its own")


def _steps(preparation: Preparation) -> list[PreparationStep]:
    """The steps that are asked for, in their order."""
    steps: list[PreparationStep] = []
    if preparation.detokenise:
        steps.append(_detokenise_document)
    if preparation.prompt:
        steps.append(lambda document: split_prompt(document, preparation.prompt or "headline", preparation.start))
    match preparation.sections:
        case "read":
            steps.append(parse_section_markers)
        case "with-titles" | "without-titles" as titles:
            steps.append(lambda document: _mark_document_sections(document, titles))
    steps.append(_drop_empty)
    if preparation.rule:
        rule = preparation.rule
        steps.append(lambda document: _cut_to_length(document, rule))
    if preparation.priming.documents:
        steps.append(lambda document: _drop_copy(document, preparation.priming, preparation.most_overlap))
    return steps


def _apply_steps(document: Document, steps: Sequence[PreparationStep]) -> Document:
    for step in steps:
        document = step(document)
    return document


def _drop_duplicate(document: Document, hashes: set[str]) -> Document:
    """The document, where neither its text nor its prompt with it came before."""
    hash = text_hash(document.text)
    if hash in hashes:
        raise DroppedTextError(DUPLICATE)
    hashes.add(hash)
    return document


# --- steps -------------------------------------------------------------------------------------------------------


def _detokenise_document(document: Document) -> Document:
    """The document with text, context and references detokenised; its sections stay where they are in the text."""
    text, segments, last = "", [], 0
    for segment in document.segments:
        text += document.text[last : segment.start]
        body = detokenise(document.text[segment.start : segment.end])
        segments.append(segment.model_copy(update={"start": len(text), "end": len(text) + len(body)}))
        text, last = text + body, segment.end
    rest = document.text[last:]
    return document.model_copy(
        update={
            "text": text + (rest if segments else detokenise(rest)),
            "segments": tuple(segments),
            "context": {name: detokenise(part) for name, part in document.context.items()},
            "references": tuple(map(detokenise, document.references)),
        }
    )


def split_prompt(document: Document, kind: PromptKind, start: str = "") -> Document:
    """An article as prompt and human continuation; the continuation is a text by `human` unless it has a model."""
    headline, text = document.context.get(HEADLINE, ""), document.text.strip()
    if "headline" in kind and not headline.strip():
        raise DroppedTextError("has no headline")
    if kind == "start":
        if not text.lower().startswith(start.strip().lower()):
            raise DroppedTextError(f"does not begin with {start.strip()!r}")
        end = len(start.strip())
    elif kind == "headline":
        end = 0
    else:
        offsets = sentences(text)
        end = int(offsets[0, 1]) if len(offsets) else 0
    prompt, rest = text[:end].strip(), text[end:].strip()
    if kind == "headline":
        prompt = headline.strip()
    if not rest:
        raise DroppedTextError("nothing comes after its prompt")
    context = {name: value for name, value in document.context.items() if name != HEADLINE or kind != "headline"}
    return document.model_copy(
        update={
            "text": rest,
            "segments": (),
            "context": {**context, PROMPT: prompt},
            "meta": {"model": HUMAN, "prompt_id": document.id, **document.meta},
        }
    )


def _mark_document_sections(document: Document, titles: TitleMode) -> Document:
    try:
        text = add_section_markers(document, titles)
    except FinecombError:
        raise DroppedTextError("has no sections") from None
    return document.model_copy(update={"text": text, "segments": ()})


def _drop_empty(document: Document) -> Document:
    if not document.text.strip():
        raise DroppedTextError("empty")
    return document


def _cut_to_length(document: Document, rule: LengthRule) -> Document:
    cut = rule.cut(document.text, is_whole=True)
    if cut.why:
        raise DroppedTextError(cut.why)
    segments = tuple(
        segment.model_copy(update={"end": min(segment.end, len(cut.text))})
        for segment in document.segments
        if segment.start < len(cut.text)
    )
    if segments and not document.text.startswith(cut.text):
        segments = ()
    return document.model_copy(update={"text": cut.text, "segments": segments})


def _drop_copy(document: Document, priming: Priming, max_overlap: float) -> Document:
    if document.id in {shot.id for shot in priming.documents}:
        raise DroppedTextError("is a priming text itself")
    if priming.is_copy(document.text, max_overlap):
        raise DroppedTextError(f"shares more than {max_overlap:.0%} of its words with a priming text")
    return document


# --- balance -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BalancedDraw:
    """Documents drawn so that every combination of fields has equally many."""

    ids: frozenset[str]
    cells: dict[tuple[str, ...], int]
    """Documents drawn of each combination."""
    notes: tuple[str, ...] = ()


def draw_balanced(
    documents: Sequence[Document], fields: Sequence[str], per_cell: int | None = None, seed: int = 0
) -> BalancedDraw:
    """Equally many documents of each combination of meta fields, drawn by the seed; a note for cells with too few."""
    names = dict.fromkeys(name for document in documents for name in document.meta)
    for name in fields:
        if name not in names:
            raise ParameterError(
                f"{param('balance', name)}: no text has it in its meta{did_you_mean(name, names)}", parameter="balance"
            )
    by_cell: dict[tuple[str, ...], list[str]] = {}
    for document in documents:
        by_cell.setdefault(tuple(str(document.meta.get(name)) for name in fields), []).append(document.id)
    size = per_cell or min(map(len, by_cell.values()))
    drawn = {cell: sorted(ids, key=lambda id: _random_rank(seed, id))[:size] for cell, ids in sorted(by_cell.items())}
    short = {cell: len(ids) for cell, ids in drawn.items() if len(ids) < size}
    notes = [f"{' '.join(cell)}: {count} of {size} texts; it has no more" for cell, count in short.items()]
    return BalancedDraw(
        ids=frozenset(id for ids in drawn.values() for id in ids),
        cells={cell: len(ids) for cell, ids in drawn.items()},
        notes=tuple(notes),
    )


def _random_rank(seed: int, id: str) -> bytes:
    return hashlib.sha256(f"{seed}/{id}".encode()).digest()
