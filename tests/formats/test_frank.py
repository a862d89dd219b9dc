from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FormatError
from finecomb.core.records import Annotation, Annotator, Document, Note, Settings
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from finecomb.formats import detect_format, frank
from finecomb.formats.base import Options
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject

HUMAN: list[dict[str, Any]] = [
    {
        "hash": "a1",
        "model_name": "copy",
        "dataset": "news",
        "Factuality": 0.5,
        "RelE": 1,
        "Flip_RelE": 0.7,
        "split": "test",
    },
    {"hash": "a1", "model_name": "plan", "dataset": "news", "Factuality": 1.0, "RelE": None, "split": "valid"},
]
METRICS: list[dict[str, Any]] = [
    {"hash": "a1", "model_name": "copy", "Rouge 1": 0.25, "QAGS": None},
    {"hash": "a1", "model_name": "plan", "Rouge 1": 0.75, "QAGS": 0.9},
    {"hash": "zz", "model_name": "plan", "Rouge 1": 0.5},
]


def files(folder: Path, human: Any = HUMAN, metrics: Any = METRICS) -> Path:
    (folder / "human_annotations.json").write_text(json.dumps(human, indent=4))
    (folder / "baseline_factuality_metrics_outputs.json").write_text(json.dumps(metrics))
    return folder / "human_annotations.json"


def test_judgements_and_metrics_become_annotations_of_empty_documents(tmp_path: Path) -> None:
    path = files(tmp_path)
    assert detect_format(path).name == "frank"
    settings, protocol, *items = frank.read(path, Options())
    assert settings == Settings(protocols=("frank@1",))
    assert [question.name for question in protocol.document_questions] == ["factuality", "rel_e"]  # type: ignore[union-attr]
    copy, plan = "a1/copy", "a1/plan"
    assert items == [
        Annotator(id="pooled", kind="pooled"),
        Annotator(id="rouge-1", kind="detector", meta={"name": "Rouge 1"}),
        Annotator(id="qags", kind="detector", meta={"name": "QAGS"}),
        Document(id=copy, text="", meta={"dataset": "news", "split": "test", "model": "copy", "hash": "a1"}),
        _annotation(copy, "pooled", {"factuality": 0.5, "rel_e": 1}, {"Flip_RelE": 0.7}),
        Document(id=plan, text="", meta={"dataset": "news", "split": "valid", "model": "plan", "hash": "a1"}),
        _annotation(plan, "pooled", {"factuality": 1.0}),
        _annotation(copy, "rouge-1", {"score": 0.25}),
        _annotation(plan, "rouge-1", {"score": 0.75}),
        _annotation(plan, "qags", {"score": 0.9}),
        Note(
            text="1 records of baseline_factuality_metrics_outputs.json are omitted, because their summaries have "
            "no judgement"
        ),
    ]


def _annotation(
    document: str, annotator: str, answers: dict[str, Any], meta: dict[str, Any] | None = None
) -> Annotation:
    return Annotation(
        id=f"{document}/{annotator}",
        document=document,
        annotator=annotator,
        protocol="frank@1",
        answers=answers,
        meta=meta or {},
    )


def test_judgements_alone_will_do(tmp_path: Path) -> None:
    path = files(tmp_path)
    (tmp_path / "baseline_factuality_metrics_outputs.json").unlink()
    assert len(list(frank.read(path, Options()))) == 7


@pytest.mark.parametrize(
    ("human", "metrics", "message"),
    [
        ([{"hash": "a", "Factuality": 1}], [], "human_annotations.json:2: 'model_name' is missing"),
        ([{"hash": 7, "model_name": "b", "Factuality": 1}], [], "human_annotations.json:2: 'hash': expected text"),
        ([], [], "no record has a number in the field 'Factuality'"),
        ({"a": HUMAN[0]}, [], "human_annotations.json:2: expected a list of records"),
        ([7], [], "human_annotations.json:2: expected an object, found an integer"),
        (HUMAN, [{"hash": "a", "Bleu": 1}], "outputs.json:1: 'model_name' is missing"),
    ],
)
def test_a_slip_is_named_with_its_line(human: Any, metrics: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        list(frank.read(files(tmp_path, human, metrics), Options()))


def test_the_metrics_file_says_how_it_is_read(tmp_path: Path) -> None:
    files(tmp_path)
    path = tmp_path / "baseline_factuality_metrics_outputs.json"
    with pytest.raises(FormatError, match="the metrics file must be given with the judgements, as data=baseline"):
        list(frank.read(path, Options()))


@settings(max_examples=40)
@given(file_damages)
def test_a_damaged_file_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = files(Path(folder))
        damage_file(path, place)
        frank.sniff(path)
        read_or_reject(frank.FORMAT, path)
        path = files(Path(folder))
        damage_file(path.with_name(frank.METRICS_FILE), place)
        read_or_reject(frank.FORMAT, path)


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.lists(st.integers(), max_size=1)
)
names = st.one_of(
    st.sampled_from(["hash", "model_name", "Factuality", "split", "Flip_X", "pooled"]), st.text(max_size=3)
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(names, values, max_size=4), max_size=2))
def test_any_fields_are_read_or_refused(more: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        changed = [first | second for first, second in zip(HUMAN, more, strict=False)]
        read_or_reject(frank.FORMAT, files(Path(folder), HUMAN + changed, METRICS + more))


def test_the_release_has_the_recomputed_counts_and_means(data: Path) -> None:
    study = Study.from_items(frank.read(data / "frank" / "human_annotations.json", Options()))
    assert check_study(study) == []
    assert len(study.documents) == 2246
    assert Counter(str(document.meta["split"]) for document in study.iter_documents()) == {"valid": 671, "test": 1575}
    counts = Counter(study.annotations["annotator"])
    assert len(counts) == 16
    assert {counts["pooled"], counts["rouge-1"], counts["qags"]} == {2246}
    assert (counts["feqa"], counts["dep-entail"]) == (2242, 2163)
    judged = study.answers.filter(pl.col("question") == "factuality")
    model = pl.col("document").str.split("/").list.last().alias("model")
    means = judged.group_by(model).agg(pl.col("number").mean().round(4))
    assert dict(means.iter_rows()) == {
        "bart": 0.9328,
        "pgn": 0.8991,
        "bert_sum": 0.8954,
        "bus": 0.7077,
        "s2s": 0.4857,
        "BERTS2S": 0.1406,
        "TConvS2S": 0.0663,
        "TranS2S": 0.0602,
        "PtGen": 0.0542,
    }
