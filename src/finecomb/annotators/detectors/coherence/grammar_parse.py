"""Parsed texts: lemmas, parts of speech, dependencies and entities, independent of the parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finecomb.annotators.detectors.coherence.narrative import Narrative
from finecomb.annotators.model_loading import DEFAULT_PARSER, load_spacy_pipeline


@dataclass(frozen=True, slots=True)
class ParsedToken:
    """A token with its grammatical analysis."""

    start: int
    end: int
    text: str
    lemma: str
    """Lower-case lemma."""
    pos: str
    """Universal part of speech."""
    tag: str
    """Penn Treebank tag."""
    dep: str
    """Dependency relation in the scheme of spaCy's English models."""
    head: int
    """Index of the head in the sentence. A root is its own head."""
    entity: str
    """Type of the named entity that contains the token, or an empty string."""


ParsedSentence = tuple[ParsedToken, ...]


def parse_narratives(
    texts: Sequence[Narrative], user: str, name: str = DEFAULT_PARSER
) -> Iterator[list[ParsedSentence]]:
    """Yield the parsed sentences of each text. Sentence boundaries come from the narrative, not from the parser."""
    pipeline = load_spacy_pipeline(name, user)
    for text in texts:
        documents = [pipeline.make_doc(text.sentence_text(index)) for index in range(len(text.sentences))]
        for document in documents:
            for token in document[1:]:
                token.is_sent_start = False  # so that the parser cannot split the sentence
        sentences = []
        for document, sentence in zip(pipeline.pipe(documents), text.sentences, strict=True):
            tokens = []
            for token in document:
                begin = sentence.start + token.idx
                tokens.append(ParsedToken(
                    begin, begin + len(token.text), token.text, token.lemma_.lower(), token.pos_, token.tag_,
                    token.dep_, token.head.i, token.ent_type_,
                ))  # fmt: skip
            sentences.append(tuple(tokens))
        yield sentences
