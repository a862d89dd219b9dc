from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.selection.subset import filter_study_by_condition

PROTOCOL = Protocol.model_validate(
    {
        "name": "small",
        "title": "Small",
        "summary": "For tests.",
        "version": "1",
        "labels": [{"name": "red"}, {"name": "blue"}],
        "questions": [
            {"name": "severity", "ask": "How bad?", "scale": "ordinal", "options": [1, 2, 3], "required": False}
        ],
        "document_questions": [{"name": "rating", "ask": "How good?", "scale": "ordinal", "options": [1, 2, 3, 4]}],
    }
)
METAS: dict[str, dict[str, object]] = {
    "human": {"model": "human"},
    "high": {"model": "gpt3", "top_p": 0.96, "temperature": 1, "topics": ["sea", "sky"]},
    "low": {"model": "gpt3", "top_p": 0.4, "temperature": 1},
    "text": {"model": "gpt2", "top_p": "0.96", "long": True},
}
READERS = {"ann": ("human", "a"), "ben": ("human", "b"), "bot": ("llm", "")}


def mark(id: str, label: str, severity: int | None) -> Mark:
    answers = {} if severity is None else {"severity": severity}
    return Mark(id=id, spans=(Span(0, 2),), quotes=("So",), label=label, answers=answers)


def study() -> Study:
    documents = [Document(id=id, text="So it is.", meta=meta) for id, meta in METAS.items()]
    annotators = [Annotator(id=id, kind=kind, condition=arm) for id, (kind, arm) in READERS.items()]
    annotations = [
        Annotation(
            id=f"{text.id}-{reader.id}",
            document=text.id,
            annotator=reader.id,
            protocol="small@1",
            answers={"rating": 1 + (number + place) % 4},
            marks=(
                mark(f"{text.id}-{reader.id}-1", "red", 1 + number % 3),
                mark(f"{text.id}-{reader.id}-2", "blue", None),
            ),
        )
        for place, text in enumerate(documents)
        for number, reader in enumerate(annotators)
    ]
    return Study.from_items([PROTOCOL, *documents, *annotators, *annotations])


STUDY = study()


def texts(where: str) -> set[str]:
    return set(filter_study_by_condition(STUDY, where).annotations["document"])


def readers(where: str) -> set[str]:
    return set(filter_study_by_condition(STUDY, where).annotations["annotator"])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ('model == "human" or (top_p == 0.96 and temperature == 1)', {"human", "high"}),
        ("model=gpt3", {"high", "low"}),
        ("top_p == .96", {"high", "text"}),
        ("top_p == missing", {"human"}),
        ("top_p != 0.4", {"human", "high", "text"}),
        ("not top_p == 0.4", {"human", "high", "text"}),
        ("top_p < 1", {"high", "low", "text"}),
        ("top_p >= 0.96 and top_p != missing", {"high", "text"}),
        ('model in ("human", "gpt2")', {"human", "text"}),
        ('model not in ("human", "gpt2")', {"high", "low"}),
        ('"sea" in topics', {"high"}),
        ('model contains "gpt"', {"high", "low", "text"}),
        ("long == true", {"text"}),
        ('document.id == "low"', {"low"}),
        ('document == "low"', {"low"}),
    ],
)
def test_documents_are_selected(where: str, expected: set[str]) -> None:
    assert texts(where) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("kind == 'llm'", {"bot"}),
        ("condition == missing", {"bot"}),
        ("annotator.condition != 'a'", {"ben", "bot"}),
        ("annotator=ann", {"ann"}),
        ("kind=human and model=human", {"ann", "ben"}),
    ],
)
def test_annotators_are_selected(where: str, expected: set[str]) -> None:
    assert readers(where) == expected


def test_annotations_are_selected_by_their_answers() -> None:
    kept = filter_study_by_condition(STUDY, "rating >= 3")
    expected = {a.id for a in STUDY.iter_annotations() if float(a.answers["rating"]) >= 3}  # type: ignore[arg-type]
    assert set(kept.annotations["id"]) == expected


def test_marks_are_left_out_and_their_annotations_stay() -> None:
    kept = filter_study_by_condition(STUDY, 'label == "red" and severity >= 2')
    assert len(kept.annotations) == len(STUDY.annotations)
    assert set(kept.marks["label"]) == {"red"}
    assert len(kept.marks) == 2 * len(METAS)
    both = (
        filter_study_by_condition(STUDY, "model=gpt2"),
        filter_study_by_condition(STUDY, 'model == "gpt2" and severity == missing'),
    )
    assert [len(part.annotations) for part in both] == [3, 3]
    assert set(both[1].marks["label"]) == {"blue"}


def test_a_mixed_alternative_is_decided_mark_by_mark() -> None:
    kept = filter_study_by_condition(STUDY, 'model == "human" or label == "red"')
    assert len(kept.annotations) == len(STUDY.annotations)
    assert all(m["document"] == "human" or m["label"] == "red" for m in kept.marks.iter_rows(named=True))


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("modle == 'human'", "unknown field 'modle'; did you mean 'model'"),
        ("model == 'humna'", "no row has model 'humna'; did you mean 'human'"),
        ("model=gpt9", "no row has model 'gpt9'"),
        ("top_p == 0.95", "no row has top_p '0.95'"),
        ("mark.model == 'human'", "unknown field 'mark.model'"),
    ],
)
def test_a_slip_never_selects_nothing_in_silence(where: str, problem: str) -> None:
    with pytest.raises(FinecombError, match=problem):
        filter_study_by_condition(STUDY, where)


TESTS: dict[str, Callable[[dict[str, object]], bool]] = {
    'model == "gpt3"': lambda meta: meta["model"] == "gpt3",
    "top_p == 0.96": lambda meta: float(str(meta.get("top_p", "nan"))) == 0.96,
    "top_p < 0.9": lambda meta: float(str(meta.get("top_p", "nan"))) < 0.9,
    "temperature == missing": lambda meta: "temperature" not in meta,
    '"sky" in topics': lambda meta: "sky" in meta.get("topics", []),  # type: ignore[operator]
}
leaves = st.sampled_from(list(TESTS.items()))
trees = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(inner, inner, st.sampled_from(["and", "or"])).map(
            lambda t: (
                f"({t[0][0]} {t[2]} {t[1][0]})",
                lambda m: (t[0][1](m) and t[1][1](m)) if t[2] == "and" else (t[0][1](m) or t[1][1](m)),
            )
        )
        | inner.map(lambda t: (f"not ({t[0]})", lambda m: not t[1](m)))
    ),
    max_leaves=5,
)


@given(trees)
def test_a_condition_holds_where_its_definition_does(tree: tuple[str, Callable[[dict[str, object]], bool]]) -> None:
    where, holds = tree
    chosen = texts(where)
    assert chosen == {id for id, meta in METAS.items() if holds(meta)}
