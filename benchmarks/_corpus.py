"""Corpus of the size of Scarecrow: 1,300 paragraphs with 10 annotators each and about 41,000 marks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from finecomb.annotators.simulated import SimulatedAnnotator, make_crowd, plant_errors, simulate_annotations
from finecomb.core.records import Annotator, Document, Settings
from finecomb.core.study import StudyItem
from finecomb.formats import save_records
from finecomb.protocols import load_shipped

SYLLABLES = "ba do ri mu ten la so pik ver an el ost un gra fi zu".split()


def make_documents(count: int, words: int, seed: int = 0) -> list[Document]:
    rng = np.random.default_rng(seed)
    texts = []
    for number in range(count):
        parts = ["".join(rng.choice(SYLLABLES, 2)) for _ in range(words)]
        sentences = [" ".join(parts[at : at + 14]).capitalize() + "." for at in range(0, words, 14)]
        meta = {"model": f"m{number % 5}"}
        texts.append(Document(id=f"d{number:05}", text=" ".join(sentences), context={"prompt": "A prompt."}, meta=meta))
    return texts


def simulate_corpus(
    count: int = 1300, annotators: int = 10, words: int = 104, rate: float = 3.45, seed: int = 0
) -> Iterator[StudyItem]:
    protocol = load_shipped("scarecrow")
    texts = make_documents(count, words, seed)
    truth = {each.document: each for each in plant_errors(texts, protocol, rate, seed)}
    people = make_crowd(annotators, SimulatedAnnotator("reader", recall=0.65, precision=0.8, jitter=1.0), 0.1, seed)
    yield Settings(title="Benchmark", protocols=(protocol.id,))
    yield protocol
    yield from texts
    yield Annotator(id="truth", kind="gold")
    yield from (person.to_annotator() for person in people)
    yield from simulate_annotations(texts, truth, people, protocol, seed)


def write_corpus(folder: Path, **size: int) -> Path:
    save_records(simulate_corpus(**size), folder)
    return folder
