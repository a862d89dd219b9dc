from collections import Counter, defaultdict
from itertools import combinations

import pytest

from finecomb.annotators.simulated.demo_study import DemoText, build_demo_study, load_demo_texts
from finecomb.core.records import Annotation, Mark
from finecomb.core.sentences import sentence_offsets
from finecomb.core.span import TEXT_PART, Offsets, Span, token_range
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from finecomb.core.tokens import word_offsets
from finecomb.protocols import load_shipped

SYSTEMS = ["human", "comb-small", "comb-medium", "comb-large"]
ERRORS = {"human": (0, 1), "comb-small": (6, 8), "comb-medium": (4, 5), "comb-large": (2, 3)}


def snap_to_tokens(span: Span, offsets: Offsets) -> Span:
    """Extend a span to whole tokens."""
    first, last = token_range(span, offsets)
    return span if first == last else Span(int(offsets[first, 0]), int(offsets[last - 1, 1]), span.part)


each_text = pytest.mark.parametrize("text", load_demo_texts(), ids=lambda text: text.id)


def truth() -> list[Annotation]:
    return [item for item in build_demo_study() if isinstance(item, Annotation) and item.annotator == "truth"]


def marks_by_text() -> dict[str, tuple[Mark, ...]]:
    return {annotation.document: annotation.marks for annotation in truth()}


def test_every_label_of_the_protocol_is_used() -> None:
    used = {error.label for text in load_demo_texts() for error in text.errors}
    assert used == {label.name for label in load_shipped("scarecrow").labels}


def test_there_are_four_systems_with_four_texts_each() -> None:
    assert Counter(text.model for text in load_demo_texts()) == dict.fromkeys(SYSTEMS, 4)


def test_each_of_the_four_topics_has_one_prompt_that_all_systems_share() -> None:
    topics: dict[str, list[DemoText]] = defaultdict(list)
    for text in load_demo_texts():
        topics[text.topic].append(text)
    assert len(topics) == 4
    for texts in topics.values():
        assert len({text.prompt for text in texts}) == 1
        assert sorted(text.model for text in texts) == sorted(SYSTEMS)
        assert len(sentence_offsets(texts[0].prompt)) == 1


def test_ids_are_unique() -> None:
    ids = [text.id for text in load_demo_texts()]
    assert len(set(ids)) == len(ids) == 16


@each_text
def test_a_text_is_one_short_paragraph(text: DemoText) -> None:
    assert 60 <= len(text.text.split()) <= 160
    assert "\n" not in text.text


@each_text
def test_a_text_has_as_many_errors_as_its_system_should_make(text: DemoText) -> None:
    low, high = ERRORS[text.model]
    assert low <= len(text.errors) <= high


@each_text
def test_marks_begin_and_end_on_word_boundaries(text: DemoText) -> None:
    for mark in marks_by_text()[text.id]:
        for span, quote in zip(mark.spans, mark.quotes, strict=True):
            assert span.part == TEXT_PART
            assert snap_to_tokens(span, word_offsets(text.text)) == span, quote


@each_text
def test_antecedents_stand_on_word_boundaries_before_the_mark_or_in_the_prompt(text: DemoText) -> None:
    for mark in marks_by_text()[text.id]:
        for span in mark.antecedents.spans if mark.antecedents else ():
            whole = text.text if span.part == TEXT_PART else text.prompt
            assert snap_to_tokens(span, word_offsets(whole)) == span
            assert span.part != TEXT_PART or span.end <= mark.spans[0].start


@each_text
def test_every_error_has_a_severity_and_a_reason(text: DemoText) -> None:
    for error in text.errors:
        assert error.answers["severity"] in (1, 2, 3)
        assert error.why


def test_some_marks_lie_inside_others() -> None:
    pairs = [pair for marks in marks_by_text().values() for pair in combinations(marks, 2)]
    assert sum(one.spans[0].overlap_length(other.spans[0]) > 0 for one, other in pairs) == 3


def test_an_emoji_and_curly_quotes_occur() -> None:
    texts = [text.text for text in load_demo_texts()]
    assert sum(any(ord(character) > 0xFFFF for character in text) for text in texts) == 1
    assert sum("“" in text and "”" in text for text in texts) == 1


def test_the_study_has_no_problems() -> None:
    assert check_study(Study.from_items(build_demo_study())) == []


def test_the_same_seed_gives_equal_studies() -> None:
    assert Study.from_items(build_demo_study(seed=3)) == Study.from_items(build_demo_study(seed=3))


def test_another_seed_gives_another_study() -> None:
    assert Study.from_items(build_demo_study(seed=3)) != Study.from_items(build_demo_study(seed=4))
