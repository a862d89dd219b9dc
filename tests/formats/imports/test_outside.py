"""Files of other programs, with the counts that a correct reader gets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study

COUNTS: dict[str, tuple[int, int, int, int]] = {
    "ragtruth/response.jsonl": (4, 1, 4, 5),
    "lettucedetect/ragtruth_data.json": (4, 1, 4, 5),
    "lettucedetect/v2_samples.jsonl": (2, 1, 2, 2),
    "langextract/langextract.jsonl": (3, 1, 2, 4),
    "faithbench/batch_1.json": (50, 2, 56, 69),
    "faithbench/batch_5.json": (50, 3, 96, 183),
    "faithbench/batch_12.json": (50, 2, 50, 91),
    "faithbench/batch_1_annotation.json": (50, 2, 56, 69),
    "booookscore/annotations-gpt4-4096-inc.first15.json": (15, 2, 28, 374),
    "booookscore/summary-gpt4-4096-inc.first30.json": (30, 1, 30, 240),
    "booookscore/gpt4-4096-inc.json": (820, 1, 820, 820),
    "booookscore/v2-gpt4-2048-hier-cleaned.first20.json": (557, 1, 557, 49),
    "lfqa_haluquestqa/HaluQuestQA.first70.csv": (140, 2, 140, 224),
    "argilla/records.json": (3, 4, 6, 6),
    "argilla/records_flat.json": (3, 4, 6, 6),
    "potato": (3, 2, 5, 4),
    "factgenie/campaigns/finecomb-human": (6, 4, 12, 9),
    "factgenie/campaigns/finecomb-llm": (6, 1, 6, 3),
    "pearmut/annotations/finecomb-esa.jsonl": (6, 2, 10, 7),
    "prodigy/spans_manual.jsonl": (2, 3, 5, 5),
    "doccano/anna.jsonl": (3, 1, 3, 2),
    "doccano/ben.jsonl": (3, 1, 3, 2),
    "doccano/collaborative_all.jsonl": (3, 1, 3, 4),
    "doccano/export_confirmed_only.zip": (2, 2, 3, 3),
    "hf_parquet/data": (4, 1, 4, 3),
    "json_list/rows.json": (4, 0, 0, 0),
    "json_list/nested_rows.json": (4, 0, 0, 0),
    "json_list/rows_bom_utf16.json": (4, 0, 0, 0),
    "uima_cas/cassis_written/cas.xmi": (1, 1, 1, 3),
    "uima_cas/cassis_written/cas.json": (1, 1, 1, 3),
    "uima_cas/cassis_emoji/debug.xmi": (1, 1, 1, 9),
    "uima_cas/cassis_emoji/data.json": (1, 1, 1, 9),
    "inspect_ai/summaries.eval": (8, 3, 24, 2),
    "inspect_ai/summaries.json": (8, 3, 24, 2),
    "inspect_ai/repo_tests/popularity_2025-02-11.eval": (10, 0, 0, 0),
    "inspect_ai/repo_tests/security-guide_2025-05-12.json": (3, 1, 3, 0),
    "inspect_ai/repo_tests/log_images.json": (1, 1, 1, 0),
    "inspect_ai/repo_tests/log_formats.json": (1, 1, 1, 0),
    "inspect_ai/repo_tests/log_formats.eval": (1, 1, 1, 0),
    "inspect_ai/repo_tests/log_message_deduplication.eval": (1, 1, 1, 0),
    "promptfoo/results.json": (20, 1, 20, 0),
    "promptfoo/results.jsonl": (20, 1, 20, 0),
    "openai_batch/batch_output.jsonl": (4, 0, 0, 0),
    "openai_chat/chat_messages.jsonl": (4, 0, 0, 0),
    "langfuse/traces.json": (2, 3, 3, 0),
    "langfuse/traces.jsonl": (2, 3, 3, 0),
    "phoenix/spans.jsonl": (1, 2, 2, 0),
    "mlflow/traces.json": (2, 2, 4, 0),
    "wandb/predictions.table.json": (3, 1, 3, 1),
    "lm_eval/samples_mini_sum_2026-11-17T13-12-57.139015.jsonl": (5, 0, 0, 0),
    "lm_eval/samples_mini_mc_2026-11-17T13-12-57.139015.jsonl": (3, 0, 0, 0),
    "no_licence_stated/mushroom/mushroom.sv-tst.v1.unlabeled.first40.jsonl": (40, 0, 0, 0),
}
"""Documents, annotators, annotations and marks. Annotators include machine suggestions and the hard labels."""


def outside(data: Path, name: str) -> Path:
    path = data / "outside" / name
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return path


def import_study(path: Path, **options: Any) -> Study:
    return fc.import_table(path, **options).study


def quotes(study: Study, document: str, annotator: str = "") -> list[tuple[int, int, str]]:
    marks = study.marks.filter(pl.col("document") == document)
    if annotator:
        marks = marks.filter(pl.col("annotator") == annotator)
    return [
        (span["start"], span["end"], quote)
        for row in marks.iter_rows(named=True)
        for span, quote in zip(row["spans"], row["quotes"], strict=True)
    ]


@pytest.mark.parametrize("name", COUNTS)
def test_a_file_gives_the_counts_of_a_correct_reader(name: str, data: Path) -> None:
    study = import_study(outside(data, name))
    tables = (study.documents, study.annotators, study.annotations, study.marks)
    assert tuple(map(len, tables)) == COUNTS[name]


MUSHROOM = {
    "en-val.v2.extra": (50, 95, 540, 1258, 131),
    "es-val.v2.extra": (50, 6, 300, 846, 111),
    "ar-val.v2.extra": (50, 3, 150, 319, 94),
    "hi-val.v2.extra": (50, 3, 150, 268, 86),
}


@pytest.mark.parametrize("name", MUSHROOM)
def test_mushroom_has_individual_spans_and_hard_labels(name: str, data: Path) -> None:
    study = import_study(outside(data, f"no_licence_stated/mushroom/mushroom.{name}.jsonl"))
    documents, people, annotations, marks, hard = MUSHROOM[name]
    golden = study.annotators.filter(pl.col("kind") == "gold")["id"].to_list()
    human = pl.col("annotator").is_in(golden).not_()
    assert (len(study.documents), len(study.annotators) - 1) == (documents, people)
    assert len(study.annotations.filter(human)) == annotations
    assert len(study.marks.filter(human)) == marks
    assert len(study.marks.filter(~human)) == hard


def test_offsets_of_other_programs_become_code_points(data: Path) -> None:
    ragtruth = import_study(outside(data, "ragtruth/response.jsonl"))
    assert (219, 229, "Gaza Strip") in quotes(ragtruth, "1472")
    pearmut = import_study(outside(data, "pearmut/annotations/finecomb-esa.jsonl"))
    assert quotes(pearmut, "doc1/modelA", "anna") == [(17, 24, "do kina")]
    factgenie = import_study(outside(data, "factgenie/campaigns/finecomb-human"))
    repeated = quotes(factgenie, "mini-weather/test/model-a/1", "alice")
    assert {(5, 14, "stays dry"), (21, 30, "stays dry")} <= set(repeated)
    lettuce = import_study(outside(data, "lettucedetect/v2_samples.jsonl"))
    assert quotes(lettuce, "x-1") == [(10, 14, "50 €"), (21, 28, "ist rot")]
    cas = import_study(outside(data, "uima_cas/cassis_written/cas.xmi"))
    assert (42, 46, "were") in quotes(cas, "cas")
    inspect = import_study(outside(data, "inspect_ai/summaries.eval"))
    assert quotes(inspect, "museum/1") == [(31, 35, "2031")]
    assert quotes(inspect, "2/2") == [(24, 28, "2031")]
    potato = import_study(outside(data, "potato"))
    assert quotes(potato, "t1", "ben@example.org") == [(31, 41, "2031. 😀 It")]


def test_scores_of_inspect_are_numbers_with_explanations(data: Path) -> None:
    study = import_study(outside(data, "inspect_ai/summaries.eval"))
    answers = study.answers
    includes = answers.filter((pl.col("annotator") == "includes") & (pl.col("question") == "score"))["number"]
    assert Counter(includes) == {1.0: 6, 0.0: 2}
    spans = answers.filter((pl.col("annotator") == "spans") & (pl.col("question") == "score"))["number"]
    assert Counter(spans) == {1.0: 6, 0.0: 2}
    assert len(answers.filter(pl.col("question") == "explanation")) == 23


def test_a_run_without_outputs_is_refused_with_the_reason(data: Path) -> None:
    with pytest.raises(FinecombError, match="no row was imported: 2 the sample failed"):
        fc.import_table(outside(data, "inspect_ai/errored.eval"))


def test_labels_of_ragtruth_faithbench_and_haluquestqa_are_counted(data: Path) -> None:
    ragtruth = import_study(outside(data, "ragtruth/response.jsonl"))
    assert Counter(ragtruth.marks["label"]) == {
        "evident-baseless-info": 2,
        "evident-conflict": 2,
        "subtle-baseless-info": 1,
    }
    faithbench = import_study(outside(data, "faithbench/batch_1.json"))
    assert Counter(faithbench.marks["label"]) == {"unwanted": 55, "benign": 11, "questionable": 3}
    assert faithbench.marks["antecedents"].is_not_null().sum() == 8
    answers = import_study(outside(data, "lfqa_haluquestqa/HaluQuestQA.first70.csv"))
    assert Counter(answers.marks["label"]) == {
        "factuality": 40,
        "irrelevance": 51,
        "incomplete-ans": 46,
        "ques-misconception": 27,
        "reference-example": 60,
    }


def test_esa_ends_are_inclusive_and_omissions_have_no_position(data: Path) -> None:
    path = outside(data, "esa_wmt/240315rc5ESA.engdeu6901-engdeu6902.scores.csv")
    result = fc.import_table(path, use_map="esa-wmt")
    study = result.study
    assert (result.find(what="rows")["count"], len(study.annotators), len(study.marks)) == (200, 2, 140)
    assert (study.marks["unlocated"] != "").sum() == 21
    severities = study.answers.filter(pl.col("question") == "severity")["text"]
    assert Counter(severities) == {"minor": 99, "major": 41}
    scores = study.answers.filter(pl.col("question") == "score")["number"]
    assert scores.mean() == pytest.approx(78.955)
    document = "elitr_minuting-14#GPT4-5shot#bad4/97"
    assert (67, 89, "Demo-Papier-Submission") in quotes(study, document, "engdeu6902")


def test_mqm_of_appraise_has_no_texts(data: Path) -> None:
    path = outside(data, "esa_wmt/240315rc5MQM.engdeu6a01-engdeu6a02.scores.csv")
    study = import_study(path, use_map="appraise-mqm")
    assert len(study.marks) == 96
    pairs = study.answers.filter(pl.col("question") == "labels").group_by("id", maintain_order=True).agg("text")
    assert Counter(map(tuple, pairs["text"]))["Accuracy", "Mistranslation"] == 46


def test_prodigy_answers_decide_the_status(data: Path) -> None:
    study = import_study(outside(data, "prodigy/spans_manual.jsonl"))
    assert Counter(study.annotations["status"]) == {"submitted": 3, "excluded": 2}
    accepted = study.annotations.filter(pl.col("status") == "submitted")["id"]
    assert study.marks["annotation"].is_in(accepted.implode()).sum() == 4


def test_drafts_of_argilla_are_kept_by_the_flat_form(data: Path) -> None:
    study = import_study(outside(data, "argilla/records_flat.json"))
    assert Counter(study.annotations["status"])["draft"] == 1


def test_webanno_chains_are_marks(data: Path) -> None:
    study = fc.read(outside(data, "webanno_tsv/inception_tsv3_suite/testMultiTokenChain/reference.tsv"))
    assert [row["quotes"][0] for row in study.marks.iter_rows(named=True)] == ["This is", "a test"]


def test_every_shipped_map_is_valid_and_titled() -> None:
    from finecomb.formats.imports.import_map import IMPORT_MAPS

    for name in IMPORT_MAPS:
        assert IMPORT_MAPS[name].name == name
        assert IMPORT_MAPS[name].title
