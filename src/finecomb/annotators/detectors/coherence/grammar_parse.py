"""Texts with their grammar: what a parser says about each token, kept apart from the parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from finecomb.annotators.detectors.coherence.narrative import Narrative
from finecomb.annotators.model_loading import DEFAULT_PARSER, spacy_pipeline


@dataclass(frozen=True, slots=True)
class ParsedToken:
    """A token with its grammar."""

    start: int
    end: int
    text: str
    lemma: str
    """In lower case."""
    pos: str
    """Universal part of speech."""
    tag: str
    """Penn Treebank tag."""
    dep: str
    """Its relation to its head, as spaCy's English models call it."""
    head: int
    """Place of the head in the sentence; its own place for a root."""
    entity: str
    """Type of the named entity that it belongs to, or an empty string."""


ParsedSentence = tuple[ParsedToken, ...]


def parse_narratives(
    texts: Sequence[Narrative], user: str, name: str = DEFAULT_PARSER
) -> Iterator[list[ParsedSentence]]:
    """The sentences of each text as tokens with grammar; sentence ends are ours and not the parser's."""
    pipeline = spacy_pipeline(name, user)
    for text in texts:
        documents = [_make_single_sentence(pipeline, text.sentence_text(at)) for at in range(len(text.sentences))]
        starts = [sentence.start for sentence in text.sentences]
        sentences = zip(pipeline.pipe(documents), starts, strict=True)
        yield [tuple(_tokens(document, start)) for document, start in sentences]


def _make_single_sentence(pipeline: Any, words: str) -> Any:
    """A document of spaCy that the parser may not cut into several sentences."""
    document = pipeline.make_doc(words)
    for token in document[1:]:
        token.is_sent_start = False
    return document


def _tokens(document: Iterable[Any], start: int) -> Iterator[ParsedToken]:
    for token in document:
        begin = start + token.idx
        yield ParsedToken(
            begin, begin + len(token.text), token.text, token.lemma_.lower(), token.pos_, token.tag_, token.dep_,
            token.head.i, token.ent_type_,
        )  # fmt: skip
