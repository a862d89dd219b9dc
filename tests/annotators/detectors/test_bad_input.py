"""Tests of detectors with invalid or extreme input, which must give a clear error or a sensible result."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.annotators.detectors import find_detector_factory
from finecomb.annotators.detectors.coherence import embedded_detector, sentence_verdicts, training_recipes
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, ParsedToken
from finecomb.annotators.detectors.coherence.narrative import Narrative
from finecomb.annotators.detectors.coherence.options import (
    CoherenceOptions,
    EntityGridOptions,
    SentenceDetectorOptions,
    SplitOptions,
    SyntheticOptions,
)
from finecomb.annotators.detectors.coherence.training import collect_training_texts, group_by_document
from finecomb.annotators.detectors.rules import RULES_BY_NAME, RuleDetector, RulesOptions, package_rules
from finecomb.annotators.detectors.spans.options import SpanTrainingOptions
from finecomb.annotators.detectors.spans.training import collect_span_texts
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.study import Study, StudyItem
from finecomb.protocols import load_shipped
from tests.annotators.detectors import tiny_models
from tests.annotators.detectors.coherence.test_training import NAMES, fitted, toy_parse, toy_study, written
from tests.test_cli import refused, run

FEATURES_ALONE = CoherenceOptions(encoder="none", test_folds=0)


@pytest.fixture
def without_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (embedded_detector, training_recipes, sentence_verdicts):
        monkeypatch.setattr(module, "parse_narratives", toy_parse)


def relabelled(study: Study, label: str, marks: int) -> list[Annotation]:
    """Return a study's gold annotations, with another label on the first marks."""
    remaining = marks
    annotations = []
    for annotation in study.iter_annotations():
        changed: list[Mark] = []
        for mark in annotation.marks:
            changed.append(mark.model_copy(update={"label": label}) if remaining > 0 else mark)
            remaining -= 1
        annotations.append(annotation.model_copy(update={"marks": tuple(changed), "protocol": load_shipped("snac").id}))
    return annotations


# --- labels ------------------------------------------------------------------------------------------------------


def test_labels_that_a_detector_does_not_know_are_left_out_with_a_line() -> None:
    study = toy_study()
    _, labels, notes = collect_training_texts(study, relabelled(study, "gram", 3), SplitOptions())
    assert labels == ("char",)
    assert "marks with other labels are omitted: gram (3)" in notes


def test_labels_that_the_protocol_does_not_have_are_left_out_with_a_line() -> None:
    study = toy_study()
    texts, labels, notes = collect_span_texts(study, relabelled(study, "nonsense", 7), "")
    assert (len(texts), labels) == (24, ("char",))
    assert notes == ["label 'nonsense' is not in the protocol of the gold annotations; its 7 marks are omitted"]


@pytest.mark.usefixtures("without_parser")
def test_a_class_with_one_example_is_not_learnt_and_the_others_are() -> None:
    study = toy_study()
    training = find_detector_factory("coherence").training
    assert training is not None
    result = training.fit(study, relabelled(study, "ref", 1), "", FEATURES_ALONE)
    assert "label 'ref' is omitted because it is in only 1 sentence" in result.notes
    assert json.loads(result.files["settings.json"])["labels"] == ["char"]
    lonely = [row.model_copy(update={"marks": row.marks[:1] * (row.id == "g1")}) for row in study.iter_annotations()]
    with pytest.raises(FinecombError, match="none of the labels char, scene, ref, incon has the 5 gold sentences"):
        training.fit(study, lonely, "", FEATURES_ALONE)


@pytest.mark.usefixtures("without_parser")
def test_a_class_that_only_one_text_has_is_fitted_where_it_can_be() -> None:
    study = toy_study()
    training = find_detector_factory("coherence").training
    assert training is not None
    result = training.fit(study, relabelled(study, "scene", 5), "", CoherenceOptions(encoder="none", test_folds=2))
    rows = {str(row["label"]): row for row in result.rows}
    assert rows["scene"]["sentences"] == 5
    assert float(str(rows["char"]["f1"]).split()[0]) > 0.5


# --- models that are not there -----------------------------------------------------------------------------------


def test_weights_that_are_not_there_are_one_line(tmp_path: Path) -> None:
    fc.write(toy_study(4), tmp_path / "study")
    for detector in ("coherence", "spans"):
        message = refused("detect", tmp_path / "study", "--detector", detector, "--weights", tmp_path / "nowhere")
        expected = (
            f"nowhere: card.json is missing; expected a folder written by `finecomb train --detector {detector} -o`"
        )
        assert expected in " ".join(message.split())


def test_a_rule_whose_package_is_missing_ends_the_run_before_the_first_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fc.write(toy_study(4), tmp_path / "study")
    monkeypatch.setattr(package_rules, "has_library", lambda *_: False)
    package_rules.load_harper_linter.cache_clear()
    message = " ".join(refused("detect", tmp_path / "study", "--detector", "rules", "--rules", "grammar").split())
    assert "rule 'grammar' requires the package harper-py; run `pip install harper-py`" in message
    assert "failed at every text" not in message


@pytest.mark.usefixtures("without_parser")
def test_an_encoder_that_is_not_there_is_said_before_the_long_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(kind: str, name: str, user: str) -> None:
        raise FinecombError(f"{user}: the model {name} cannot be loaded")

    def too_early(*_: object) -> None:
        raise AssertionError("grammar came before the model")

    monkeypatch.setattr(training_recipes, "load_pretrained", missing)
    monkeypatch.setattr(training_recipes, "prepare_texts", too_early)
    with pytest.raises(FinecombError, match="coherence: the model nowhere cannot be loaded"):
        fitted("coherence", CoherenceOptions(encoder="nowhere"))


# --- the same texts in fitting and test --------------------------------------------------------------------------


def copied(study: Study, copies: int) -> tuple[Study, list[Annotation]]:
    """Build a study in which the first texts occur twice, with other IDs and spaces, and its gold annotations."""
    items: list[StudyItem] = [*study.protocols.values(), *study.iter_annotators(), *study.iter_documents()]
    items += study.iter_annotations()
    documents, gold = list(study.iter_documents()), {row.document: row for row in study.iter_annotations()}
    for document in documents[:copies]:
        id = f"copy of {document.id}"
        items.append(document.model_copy(update={"id": id, "text": f"{document.text}\n"}))
        items.append(gold[document.id].model_copy(update={"id": id, "document": id, "marks": ()}))
    whole = Study.from_items(items)
    return whole, list(whole.iter_annotations())


def test_copies_of_a_text_are_never_both_fitted_on_and_tested() -> None:
    study, gold = copied(toy_study(), 5)
    texts, _, notes = collect_training_texts(study, gold, SplitOptions())
    groups = {text.id: text.group for text in texts}
    assert all(groups[f"copy of d{number}"] == groups[f"d{number}"] for number in range(5))
    assert len(set(groups.values())) == 24
    assert notes[0] == (
        "5 texts are identical to another one (for example 'copy of d0' and 'd0'); identical texts stay on the same "
        "side of each split"
    )
    assert collect_span_texts(study, gold, "")[2][0] == notes[0]


def test_groups_that_share_a_text_become_one() -> None:
    documents = [
        Document(id=str(number), text=text, meta={"book": book})
        for number, (text, book) in enumerate(
            [("One.", "a"), ("Two.", "a"), ("Two.", "b"), ("Three.", "b"), ("X.", "c")]
        )
    ]
    groups, notes = group_by_document(documents, "book")
    assert groups == {"0": "a", "1": "a", "2": "a", "3": "a", "4": "c"}
    assert len(notes) == 1
    assert group_by_document([], "book") == ({}, [])


def test_a_study_of_copies_of_one_text_is_too_small() -> None:
    study = toy_study(1)
    for _ in range(4):
        study, gold = copied(study, 100)
    with pytest.raises(FinecombError, match=r"found 16 \(1 if groups and identical texts count once\)"):
        collect_training_texts(study, gold, SplitOptions())


@pytest.mark.usefixtures("without_parser")
def test_scoring_on_the_texts_of_fitting_says_so(tmp_path: Path) -> None:
    fc.write(toy_study(), tmp_path / "study")
    run(
        "train",
        tmp_path / "study",
        "--detector",
        "coherence",
        "--encoder",
        "none",
        "--test-folds",
        "0",
        "-o",
        tmp_path / "m",
    )
    run("detect", tmp_path / "study", "--detector", "coherence", "--weights", tmp_path / "m", "-o", tmp_path / "marked")
    output = run("score", tmp_path / "study", tmp_path / "marked", "--gold", "gold")
    line = "warning: coherence was trained on 24 of the 24 texts it is scored on"
    assert line in " ".join((output.stdout + output.stderr).split())


# --- sizes -------------------------------------------------------------------------------------------------------

WORDS = 100_000


@pytest.mark.parametrize("rule", ["people", "definite"])
def test_rules_on_request_read_an_empty_text_and_a_long_one(rule: str) -> None:
    assert list(RULES_BY_NAME[rule](Document(id="e", text=""))) == []
    long = " ".join(f"The officer number {number} smiles at Name{number % 50}." for number in range(WORDS // 7 + 1))
    hints = list(RULES_BY_NAME[rule](Document(id="d", text=long)))
    assert [long[hint.start : hint.end] for hint in hints] == (["The officer"] if rule == "definite" else [])


def test_meaning_holds_one_row_of_a_long_text_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    def directions(texts: Sequence[str]) -> np.ndarray:
        angles = np.array([float(text.split()[0]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    monkeypatch.setattr(package_rules, "sentence_vectors", directions)
    text = "0.0 is one way to go. 1.5 is one way to go. 1.6 is one way to go. 3.1 is one way to go."
    (hint,) = RULES_BY_NAME["meaning"](Document(id="d", text=text))
    assert text[hint.start :].startswith("1.6")
    assert hint.antecedent is not None
    assert text[hint.antecedent[0] :].startswith("1.5")
    assert list(RULES_BY_NAME["meaning"](Document(id="e", text=""))) == []


@pytest.mark.usefixtures("without_parser")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("coherence", FEATURES_ALONE),
        ("entity-grid", EntityGridOptions(test_folds=0)),
        ("synthetic", SyntheticOptions(test_folds=0)),
    ],
)
def test_fitted_detectors_read_texts_without_words(tmp_path: Path, name: str, options: SplitOptions) -> None:
    detector = find_detector_factory(name).make(
        load_shipped("snac"), SentenceDetectorOptions(written(fitted(name, options), tmp_path / "m"))
    )
    for text in ("", " \n\t "):
        annotation = detector(Document(id="e", text=text))
        assert (annotation.marks, annotation.units) == ((), ())


def wordy_parse(texts: Sequence[Narrative], user: str, name: str = "") -> list[list[ParsedSentence]]:
    """Parse sentences of any length into a subject, a verb and nouns."""
    return [[_wordy(text.sentence_text(at), row.start) for at, row in enumerate(text.sentences)] for text in texts]


def _wordy(words: str, start: int) -> ParsedSentence:
    roles = [("PROPN", "NNP", "nsubj", "PERSON"), ("VERB", "VBZ", "ROOT", "")]
    return tuple(
        ParsedToken(start + match.start(), start + match.end(), match[0], match[0].lower(), pos, tag, dep, 1, entity)
        for match, (pos, tag, dep, entity) in zip(
            re.finditer(r"\w+", words),
            itertools.chain(roles, itertools.repeat(("NOUN", "NN", "dobj", ""))),
            strict=False,
        )
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "options"), [("coherence", FEATURES_ALONE), ("entity-grid", EntityGridOptions(test_folds=0))]
)
def test_fitted_detectors_read_100_000_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: SplitOptions
) -> None:
    for module in (embedded_detector, training_recipes, sentence_verdicts):
        monkeypatch.setattr(module, "parse_narratives", wordy_parse)
    folder = written(fitted(name, options), tmp_path / "m")
    detector = find_detector_factory(name).make(load_shipped("snac"), SentenceDetectorOptions(folder, 0.0))
    sentences = [f"{NAMES[number % 10]}{number % 400} sees {'boats ' * 18}{number}." for number in range(WORDS // 20)]
    annotation = detector(Document(id="d", text=" ".join(sentences)))
    assert len(annotation.units) == len(sentences)
    assert annotation.units[-1].end == len(" ".join(sentences))
    assert len(annotation.marks) >= len(sentences)


@pytest.mark.long
def test_the_span_classifier_reads_an_empty_text_and_100_000_words(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.annotators.detectors.spans.test_detector import study

    training = find_detector_factory("spans").training
    assert training is not None
    options = SpanTrainingOptions(encoder=tiny_models.save_encoder(tmp_path / "encoder"), epochs=1, test_folds=0)
    result = training.fit(study(), list(study().iter_annotations()), "", options)
    folder = written(result, tmp_path / "m")
    detector = find_detector_factory("spans").make(load_shipped("snac"), SentenceDetectorOptions(folder, 0.0))
    assert detector(Document(id="e", text="")).marks == ()
    (mark,) = detector(Document(id="d", text="letter garden " * (WORDS // 2))).marks
    assert (mark.spans[0].start, mark.spans[0].end) == (0, 14 * (WORDS // 2) - 1)


# --- results so far ----------------------------------------------------------------------------------------------


def test_one_text_that_fails_leaves_the_marks_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = "He saw the the boat."
    items: list[StudyItem] = [load_shipped("scarecrow"), *(Document(id=f"d{number}", text=good) for number in range(3))]
    fc.write(Study.from_items([*items, Document(id="bad", text="poison " + good)]), tmp_path / "study")
    rule = RULES_BY_NAME["doubled-words"]

    def fails(document: Document) -> object:
        if document.text.startswith("poison"):
            raise RecursionError("too deep")
        return rule(document)

    monkeypatch.setitem(RULES_BY_NAME, "doubled-words", fails)
    words: list[str | Path] = [
        "--detector",
        "rules",
        "--rules",
        "doubled-words",
        "--workers",
        "1",
        "-o",
        tmp_path / "marked",
    ]
    output = run("detect", tmp_path / "study", *words)
    assert "1 text (bad): set aside: RecursionError: too deep" in " ".join(output.stderr.split())
    annotations = {row.document: row for row in fc.read(tmp_path / "marked").iter_annotations()}
    assert [len(annotations[f"d{number}"].marks) for number in range(3)] == [1, 1, 1]
    assert annotations["bad"].excluded is not None


def test_rules_load_nothing_that_is_not_asked_for() -> None:
    code = (
        "import sys; from finecomb.annotators.detectors import rules; "
        "print([name for name in ('torch', 'onnxruntime', 'transformers') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"
    assert RuleDetector(load_shipped("scarecrow"), RulesOptions()).rules.keys().isdisjoint({"grammar", "meaning"})
