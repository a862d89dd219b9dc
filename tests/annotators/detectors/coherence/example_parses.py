"""Hand-written parses in the format `word/POS/dep/head[/ENTITY]`, with heads counted from 0."""

from __future__ import annotations

from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, ParsedToken
from finecomb.annotators.detectors.coherence.narrative import Narrative, build_narrative
from finecomb.core.records import Document

LEMMAS = {"waits": "wait", "leaves": "leave", "opens": "open", "died": "die", "is": "be", "gardens": "garden"}


def make_parsed_sentence(line: str, start: int = 0) -> ParsedSentence:
    """Build a sentence of tokens separated by spaces."""
    tokens = []
    for entry in line.split():
        word, pos, dep, head, *entity = entry.split("/")
        lemma = LEMMAS.get(word, word.lower())
        tag = "VBD" if word.endswith("ed") else "NN"
        end = start + len(word)
        tokens.append(ParsedToken(start, end, word, lemma, pos, tag, dep, int(head), entity[0] if entity else ""))
        start = end + 1
    return tuple(tokens)


def make_parsed_story(*lines: str) -> tuple[Narrative, list[ParsedSentence]]:
    """Build a text of such sentences, with their parses."""
    sentences, start = [], 0
    for line in lines:
        sentences.append(make_parsed_sentence(line, start))
        start = sentences[-1][-1].end + 1
    text = " ".join(token.text for tokens in sentences for token in tokens).replace(" .", ".")
    rows = build_narrative(Document(id="s", text=text))
    assert len(rows.sentences) == len(sentences), text
    return rows, sentences


NORA = "Nora/PROPN/nsubj/1/PERSON waits/VERB/ROOT/1 ./PUNCT/punct/1"
SISTER = "Nora/PROPN/nsubj/4/PERSON ,/PUNCT/punct/0 a/DET/det/3 nurse/NOUN/appos/0 waits/VERB/ROOT/4 ./PUNCT/punct/4"
EMIL = "Emil/PROPN/nsubj/1/PERSON opens/VERB/ROOT/1 the/DET/det/3 letter/NOUN/dobj/1 ./PUNCT/punct/1"
DIED = "Nora/PROPN/nsubj/1/PERSON died/VERB/ROOT/1 ./PUNCT/punct/1"
GARDEN = "Nora/PROPN/nsubj/1/PERSON leaves/VERB/ROOT/1 a/DET/det/3 garden/NOUN/dobj/1 ./PUNCT/punct/1"
