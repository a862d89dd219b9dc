from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Segment
from finecomb.core.sentences import sentence_offsets
from finecomb.core.study import Study, StudyItem
from finecomb.core.text_parts import part_offsets, text_parts
from finecomb.server.annotators.task_view import build_task_text
from finecomb.statistics.measures.unit_grid import build_unit_grid


@given(st.lists(st.sampled_from(["One here.", "Two there!", "Is it three?"]), max_size=9), st.integers(1, 5))
def test_parts_are_so_many_sentences_each(texts: list[str], size: int) -> None:
    document = Document(id="d", text=" ".join(texts))
    edges = sentence_offsets(document.text).tolist()
    groups = [edges[at : at + size] for at in range(0, len(edges), size)]
    expected = [(group[0][0], group[-1][1]) for group in groups]
    assert [(part.start, part.end) for part in text_parts(document, size)] == expected
    assert part_offsets(document, size).tolist() == [list(edge) for edge in expected]
    assert part_offsets(document, size).shape == (len(expected), 2)


def test_segments_are_the_parts_where_there_are_some() -> None:
    segments = (Segment(start=0, end=4, title="Lead"), Segment(start=5, end=9, role="user"))
    assert text_parts(Document(id="d", text="One. Two.", segments=segments), 3) == segments


def test_pages_and_statistics_cut_a_text_alike() -> None:
    work = {"unit": "segment", "sentences": 2}
    protocol = Protocol.model_validate({"name": "p", "version": "1", "title": "P", "summary": "", "work": work})
    document = Document(id="d", text="One. Two. Three. Four. Five.")
    people: list[StudyItem] = [
        Annotator(id="a", kind="human"),
        Annotation(id="1", document="d", annotator="a", protocol="p@1"),
    ]
    grid = build_unit_grid(Study.from_items([protocol, document, *people]), "segment")
    parts = build_task_text(document, protocol).parts
    assert list(zip(grid.starts.tolist(), grid.ends.tolist(), strict=True)) == [(p.start, p.end) for p in parts]
    assert len(parts) == 3
