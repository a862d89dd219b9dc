"""Notes on the work of a language model: parsing of its reply and location of its quotes."""

from __future__ import annotations

from typing import Literal

from finecomb.core.records import Annotation, Mark, Record

META_KEY = "llm"
"""Key of the notes in `meta`."""
RUN_KEY, COPY_OF_KEY, REPLACED_KEY, REPLACED_BY_KEY = "run", "copy_of", "replaced", "replaced_by"
"""Keys in the `meta` of a model annotator: the ID of its run, the annotator whose replies it shares, and for a run that
was replaced, the annotator's former ID and the new run.
"""
LIMIT_SETTINGS = frozenset(
    {"price", "budget", "concurrency", "requests_per_minute", "tokens_per_minute", "timeout", "attempts", "key_env"}
    | {"base_url", "rates"}
)
"""Model settings that do not change the replies and may therefore differ between sessions of a run."""


class MarkNote(Record):
    """Note on how a language model's mark was located; stored as `meta.llm` of the mark."""

    placed: str = ""
    """`exact`, `spelling`, `elided` or `near`; empty if the quote was not located."""
    flags: tuple[str, ...] = ()
    """Doubts about the location."""
    quoted: str = ""
    """The model's quote, if it differs from the text."""
    label: str = ""
    """The model's label, if the protocol does not have it."""
    refused_answers: tuple[str, ...] = ()
    """Invalid answers, with the reason."""
    decision: Literal["", "accepted", "refused"] = ""
    """A researcher's verdict on the location."""

    @classmethod
    def from_mark(cls, mark: Mark) -> MarkNote:
        """Return the note of a mark; an empty note if none is stored."""
        return cls.model_validate(mark.meta.get(META_KEY, {}))


class ReplyNote(Record):
    """Note on how a language model produced an annotation; stored as `meta.llm` of the annotation."""

    state: str
    """`marked`, `no errors`, `answered`, `unreadable`, `refused`, `truncated` or `empty`."""
    calls: tuple[str, ...]
    """Hashes of the requests, which are keys of the run's journal."""
    flags: tuple[str, ...] = ()
    """Repairs needed to parse the reply."""
    duplicates: int = 0
    """Marks of the reply that were merged with an earlier mark with the same spans and label."""
    malformed: int = 0
    """Entries in the list of marks that are not marks."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    """The model that answered, as reported by the endpoint."""
    run: str = ""
    """ID of the run, which is the name of its folder; empty in studies of earlier versions."""
    reply: str = ""
    """The raw reply, if it could not be parsed; the journal has every reply."""


def token_cost(price: tuple[float, float], sent: int, received: int) -> float:
    """Return the cost of tokens sent and received, given prices per million tokens."""
    return (price[0] * sent + price[1] * received) / 1_000_000


def read_reply_note(annotation: Annotation) -> ReplyNote:
    """Return the note on how a language model produced an annotation."""
    return ReplyNote.model_validate(annotation.meta[META_KEY])
