"""Long texts in overlapping chunks at sentence borders, and marks joined over the borders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from finecomb.core.errors import ParameterError, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import ChunkSize, Mark, Segment
from finecomb.core.sentences import sentence_offsets
from finecomb.core.span import Span
from finecomb.core.tokens import word_offsets


def parse_chunk(chunk: str) -> dict[str, int]:
    """Return the values of an option such as `words=800,overlap=100`.

    >>> parse_chunk("words=800,overlap=100"), parse_chunk("words=500")
    ({'words': 800, 'overlap': 100}, {'words': 500})
    """
    pairs = [part.partition("=") for part in chunk.replace(" ", "").split(",")]
    values = {name: int(value) for name, _, value in pairs if value.isdecimal()}
    if len(values) != len(pairs) or "words" not in values or not set(values) <= {"words", "overlap"}:
        raise ParameterError(
            f"{param('chunk', chunk)}: expected words=N or words=N,overlap=N, for example words=800,overlap=100",
            parameter="chunk",
        )
    return values


def check_chunked_protocol(protocol: Protocol) -> None:
    """Raise an error if a protocol cannot be applied to chunks of a text."""
    why = ""
    required = [question.name for question in protocol.document_questions if question.required]
    if protocol.work.unit != "document":
        why = f"works by {protocol.work.unit}"
    elif required:
        why = f"asks about the whole text ({', '.join(required)}), which a chunk does not show"
    elif not protocol.labels and not protocol.unlabelled:
        why = "has no marks"
    if why:
        raise ParameterError(f"{param('chunk')} cannot be used: protocol {protocol.id} {why}", parameter="chunk")


def split_into_chunks(text: str, size: ChunkSize) -> tuple[Segment, ...]:
    """Split a text at sentence borders into chunks of at most `size.words` words.

    Each chunk begins with the last sentences of the previous one, up to `size.overlap` words. A sentence longer than a
    chunk is split between words.

    >>> text = "One two. Three four. Five six. Seven."
    >>> [text[chunk.start : chunk.end] for chunk in split_into_chunks(text, ChunkSize(words=4, overlap=2))]
    ['One two. Three four.', 'Three four. Five six.', 'Five six. Seven.']
    """
    pieces: list[tuple[int, int, int]] = []  # start, end, number of words
    for start, end in sentence_offsets(text).tolist():
        words = [(a, b) for a, b in (word_offsets(text[start:end]) + start).tolist() if text[a].isalnum()]
        groups = [words[at : at + size.words] for at in range(0, len(words), size.words)] or [[]]
        borders = [start, *(group[0][0] for group in groups[1:]), end]
        pieces += [(a, b, len(group)) for (a, b), group in zip(itertools.pairwise(borders), groups, strict=True)]
    chunks: list[Segment] = []
    first = 0
    while first < len(pieces):
        last, count = first, pieces[first][2]
        while last + 1 < len(pieces) and count + pieces[last + 1][2] <= size.words:
            last += 1
            count += pieces[last][2]
        chunks.append(Segment(start=pieces[first][0], end=len(text[: pieces[last][1]].rstrip())))
        if last + 1 == len(pieces):
            break
        following = pieces[last + 1][2]
        shared = 0
        start_ = last + 1
        while start_ - 1 > first:
            more = shared + pieces[start_ - 1][2]
            if more > size.overlap or more + following > size.words:
                break
            start_, shared = start_ - 1, more
        first = start_
    return tuple(chunks)


def join_chunk_marks(marks_by_chunk: Sequence[Sequence[Mark]], chunks: Sequence[Segment], text: str) -> list[Mark]:
    """Return the marks of all chunks, each error once.

    Marks of two neighbouring chunks are the same error if they overlap, or if they have the same label and meet at the
    border. With the same label they are joined; otherwise the mark that is further from the edges of its chunk is kept.
    """
    joined: list[tuple[Mark, int]] = []  # marks with the number of their chunk
    for number, marks in enumerate(marks_by_chunk):
        earlier = [index for index, (_, chunk) in enumerate(joined) if number and chunk == number - 1]
        free = set(earlier)
        remaining: list[Mark] = []
        for mark in marks:
            same = next((i for i in earlier if i in free and _is_continued(joined[i][0], mark, text)), None)
            if same is None:
                remaining.append(mark)
            else:
                free.discard(same)
                joined[same] = (_join_marks(joined[same][0], mark, text), number)
        for mark in remaining:
            rival = next((i for i in sorted(free) if _overlap(joined[i][0], mark)), None)
            if rival is None:
                joined.append((mark, number))
            else:
                free.discard(rival)
                if _edge_distance(mark, chunks[number]) > _edge_distance(joined[rival][0], chunks[number - 1]):
                    joined[rival] = (mark, number)
    kept = [mark for mark, _ in joined]
    return sorted(kept, key=lambda mark: (not mark.spans, mark.spans[:1]))


def _is_continued(mark: Mark, other: Mark, text: str) -> bool:
    """Return whether a mark of the next chunk is the same error as a mark, or its continuation."""
    if mark.label != other.label:
        return False
    if not mark.spans or not other.spans:
        return mark.spans == other.spans and mark.quotes == other.quotes
    gap = text[mark.spans[-1].end : other.spans[0].start]
    return _overlap(mark, other) or (mark.spans[-1].end <= other.spans[0].start and not gap.strip())


def _overlap(mark: Mark, other: Mark) -> bool:
    return any(one.start < two.end and two.start < one.end for one in mark.spans for two in other.spans)


def _join_marks(mark: Mark, other: Mark, text: str) -> Mark:
    """Return a mark over the words of both marks, with the answers of the longer one."""
    if not mark.spans:
        return mark
    base = max(mark, other, key=lambda one: one.spans[-1].end - one.spans[0].start)
    span = Span(min(mark.spans[0].start, other.spans[0].start), max(mark.spans[-1].end, other.spans[-1].end))
    return base.model_copy(update={"id": mark.id, "spans": (span,), "quotes": (span.extract(text),)})


def _edge_distance(mark: Mark, chunk: Segment) -> int:
    return min(mark.spans[0].start - chunk.start, chunk.end - mark.spans[-1].end) if mark.spans else 0
