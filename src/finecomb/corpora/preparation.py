"""Preparation of texts for a study: prompts from articles, length limits, removal of copies, and balancing.

The steps always run in this order: detokenise, split into prompt and continuation, sections, length, copies of priming
texts, duplicates, balance. Only the removal of duplicates runs by default.
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
from finecomb.core.sentences import sentence_offsets
from finecomb.core.study import Study
from finecomb.core.text_hash import hash_text
from finecomb.corpora.detokenisation import detokenise
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import HEADLINE, MAX_OVERLAP, PROMPT, Priming
from finecomb.corpora.generation.section_markers import TitleMode, add_section_markers, parse_section_markers

PromptKind = Literal["first-sentence", "headline", "headline+first-sentence", "start"]
HUMAN_MODEL = "human"
"""Model name of texts written by people."""
DUPLICATE_REASON = "duplicate of another text"
_START_EXAMPLE = "'Once upon a time'"
NOT_DRAWN_REASON = "not drawn: its cell has enough texts"


@dataclass(frozen=True, slots=True)
class Preparation:
    """Settings for preparing texts."""

    detokenise: bool = False
    prompt: PromptKind | None = None
    """Part of an article that becomes the prompt; the remainder is the human-written continuation."""
    start: str = ""
    """Words that every text begins with, used as the prompt if `prompt` is `start`."""
    sections: TitleMode | Literal["read"] | None = None
    """Add section markers with or without titles, or parse them (`read`)."""
    rule: LengthRule | None = None
    priming: Priming = field(default_factory=Priming)
    most_overlap: float = MAX_OVERLAP
    balance: tuple[str, ...] = ()
    """Meta fields whose combinations (cells) get the same number of texts."""
    per_cell: int | None = None
    """Texts per cell; the size of the smallest cell if None."""
    seed: int = 0
    duplicates: bool = False
    """True to keep duplicate texts."""


@dataclass(frozen=True, slots=True)
class PreparedTexts:
    """Prepared texts, and the reasons why other texts were dropped."""

    documents: tuple[Document, ...]
    dropped: Counter[str]
    """Number of dropped texts by reason."""
    reasons: dict[str, str]
    """Reasons why documents were dropped, by document ID."""
    cells: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Number of texts by cell, a combination of the balanced fields."""
    notes: tuple[str, ...] = ()


class PreparationResult(Table):
    """Numbers of texts read, dropped (by reason) and kept, as returned by `finecomb.prepare`."""

    def __init__(self, prepared: PreparedTexts, read_count: int, fields: Sequence[str] = ()) -> None:
        rows: list[dict[str, object]] = [{"what": "texts read", "texts": read_count}]
        rows += [{"what": f"dropped: {reason}", "texts": texts} for reason, texts in prepared.dropped.most_common()]
        rows.append({"what": "texts kept", "texts": len(prepared.documents)})
        cells = [
            f"{', '.join(f'{name} {value}' for name, value in zip(fields, cell, strict=True))}: {texts}"
            for cell, texts in prepared.cells.items()
        ]
        super().__init__(rows, title="Prepared texts", notes=[*prepared.notes, *cells])
        self.documents = prepared.documents
        """Texts that were kept."""
        self.dropped = dict(prepared.reasons)
        """Reasons why texts were dropped, by text ID."""

    @property
    def study(self) -> Study:
        """Study of the kept texts."""
        return Study.from_items(self.documents)


class DroppedTextError(Exception):
    """Exception by which a preparation step drops a text, with the reason."""


PreparationStep = Callable[[Document], Document]


def prepare(documents: Iterable[Document], preparation: Preparation) -> PreparedTexts:
    """Apply all requested steps and return the remaining texts in their original order."""
    _check_preparation(preparation)
    documents = list(documents)
    # Raise an error for an empty corpus or a repeated ID, because dropped texts are reported by ID
    if not documents:
        raise FinecombError("no texts to prepare; the input is empty")
    id, count = Counter(document.id for document in documents).most_common(1)[0]
    if count > 1:
        raise FinecombError(f"{count} texts have the ID {id!r}; give each text a unique ID")
    texts: list[Document] = []
    reasons: dict[str, str] = {}
    steps = _requested_steps(preparation)
    hashes: set[str] = set()
    for document in documents:
        try:
            text = document
            for step in steps:
                text = step(text)
            if (hash := hash_text(text.text)) in hashes and not preparation.duplicates:
                raise DroppedTextError(DUPLICATE_REASON)
            hashes.add(hash)
            texts.append(text)
        except DroppedTextError as drop:
            reasons[document.id] = str(drop)
    notes: list[str] = []
    cells: dict[tuple[str, ...], int] = {}
    if preparation.balance and texts:
        draw = draw_balanced(texts, preparation.balance, preparation.per_cell, preparation.seed)
        reasons |= {document.id: NOT_DRAWN_REASON for document in texts if document.id not in draw.ids}
        texts = [document for document in texts if document.id in draw.ids]
        cells, notes = draw.cells, [*draw.notes]
    return PreparedTexts(tuple(texts), Counter(reasons.values()), reasons, cells, tuple(notes))


def _requested_steps(preparation: Preparation) -> list[PreparationStep]:
    """Return the requested steps in their fixed order."""
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


def _check_preparation(preparation: Preparation) -> None:
    if preparation.prompt == "start" and not preparation.start.strip():
        raise ParameterError(
            f"{param('prompt', 'start')} requires {param('start')}; add the words that texts begin with, e.g. "
            f"{param('start', _START_EXAMPLE)}",
            parameter="start",
        )
    if preparation.start and preparation.prompt != "start":
        raise ParameterError(
            f"{param('start')} requires {param('prompt', 'start')}; add it or omit {param('start')}", parameter="start"
        )
    if preparation.per_cell is not None and not preparation.balance:
        raise ParameterError(
            f"{param('per_cell')} requires {param('balance')}; name the fields to balance, "
            f"e.g. {param('balance', 'topic,model')}",
            parameter="per_cell",
        )
    if preparation.sections in ("with-titles", "without-titles") and (preparation.prompt or preparation.rule):
        raise ParameterError(
            f"{param('sections', preparation.sections)} cannot be used with {param('prompt')} or {param('words')}; "
            "it marks the sections of whole texts",
            parameter="sections",
        )


# --- steps -------------------------------------------------------------------------------------------------------


def _detokenise_document(document: Document) -> Document:
    """Detokenise the text, context and references of a document and shift its segments accordingly."""
    text, segments, last = "", [], 0
    for segment in document.segments:
        text += document.text[last : segment.start]
        body = detokenise(document.text[segment.start : segment.end])
        segments.append(segment.model_copy(update={"start": len(text), "end": len(text) + len(body)}))
        text, last = text + body, segment.end
    remainder = document.text[last:]
    return document.model_copy(
        update={
            "text": text + (remainder if segments else detokenise(remainder)),
            "segments": tuple(segments),
            "context": {name: detokenise(part) for name, part in document.context.items()},
            "references": tuple(map(detokenise, document.references)),
        }
    )


def split_prompt(document: Document, kind: PromptKind, start: str = "") -> Document:
    """Split an article into prompt and continuation. The model of the continuation is `human` by default."""
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
        offsets = sentence_offsets(text)
        end = int(offsets[0, 1]) if len(offsets) else 0
    prompt, continuation = text[:end].strip(), text[end:].strip()
    if kind == "headline":
        prompt = headline.strip()
    if not continuation:
        raise DroppedTextError("has no text after its prompt")
    context = {name: value for name, value in document.context.items() if name != HEADLINE or kind != "headline"}
    return document.model_copy(
        update={
            "text": continuation,
            "segments": (),
            "context": {**context, PROMPT: prompt},
            "meta": {"model": HUMAN_MODEL, "prompt_id": document.id, **document.meta},
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
    cut = rule.cut_to_length(document.text, is_whole=True)
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
    """Documents drawn so that each cell (a combination of meta fields) has the same number of them."""

    ids: frozenset[str]
    cells: dict[tuple[str, ...], int]
    """Number of drawn documents by cell."""
    notes: tuple[str, ...] = ()


def draw_balanced(
    documents: Sequence[Document], fields: Sequence[str], per_cell: int | None = None, seed: int = 0
) -> BalancedDraw:
    """Draw the same number of documents from each combination of meta fields; notes list cells that have too few."""
    names = dict.fromkeys(name for document in documents for name in document.meta)
    for name in fields:
        if name not in names:
            raise ParameterError(
                f"{param('balance', name)}: no text has this meta field{did_you_mean(name, names)}", parameter="balance"
            )
    by_cell: dict[tuple[str, ...], list[str]] = {}
    for document in documents:
        by_cell.setdefault(tuple(str(document.meta.get(name)) for name in fields), []).append(document.id)
    size = per_cell or min(map(len, by_cell.values()))
    drawn = {
        cell: sorted(ids, key=lambda id: hashlib.sha256(f"{seed}/{id}".encode()).digest())[:size]
        for cell, ids in sorted(by_cell.items())
    }
    short = {cell: len(ids) for cell, ids in drawn.items() if len(ids) < size}
    notes = [f"{' '.join(cell)}: {count} of {size} texts; the cell has no more" for cell, count in short.items()]
    return BalancedDraw(
        ids=frozenset(id for ids in drawn.values() for id in ids),
        cells={cell: len(ids) for cell, ids in drawn.items()},
        notes=tuple(notes),
    )
