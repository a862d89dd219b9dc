"""What is kept beside the work of a language model: how its reply was read, how each of its quotes was placed."""

from __future__ import annotations

from typing import Literal

from finecomb.core.records import Annotation, Mark, Record

META_KEY = "llm"
"""Where the notes stand in `meta`."""


class MarkNote(Record):
    """How a mark of a language model was placed; stored as `meta.llm` of the mark."""

    placed: str = ""
    """`exact`, `spelling`, `elided` or `near`; empty when it has no place."""
    flags: tuple[str, ...] = ()
    """What is doubtful about the place."""
    quoted: str = ""
    """What the model wrote, where the text has it differently."""
    label: str = ""
    """What the model called it, where the protocol has no such label."""
    refused_answers: tuple[str, ...] = ()
    """Answers that the protocol does not allow, and why."""
    decision: Literal["", "accepted", "refused"] = ""
    """What a researcher said about the place."""

    @classmethod
    def from_mark(cls, mark: Mark) -> MarkNote:
        """The note of a mark; an empty one where nothing is kept."""
        return cls.model_validate(mark.meta.get(META_KEY, {}))


class ReplyNote(Record):
    """How an annotation of a language model came about; stored as `meta.llm` of the annotation."""

    state: str
    """`marked`, `no errors`, `answered`, `unreadable`, `refused`, `truncated` or `empty`."""
    calls: tuple[str, ...]
    """Hashes of the requests, by which the run's journal has them."""
    flags: tuple[str, ...] = ()
    """What had to be done to read the reply."""
    malformed: int = 0
    """Things in the list of marks that are no marks."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    """The model that answered, by the endpoint's own word."""
    reply: str = ""
    """The raw reply, where it could not be read; the journal has every reply."""


def token_cost(price: tuple[float, float], sent: int, received: int) -> float:
    """What tokens cost at a price for a million of them, sent and received."""
    return (price[0] * sent + price[1] * received) / 1_000_000


def read_reply_note(annotation: Annotation) -> ReplyNote:
    """How an annotation of a language model came about."""
    return ReplyNote.model_validate(annotation.meta[META_KEY])
