"""Tests of models on tiny random ones: they learn, ignore later sentences, and survive storage."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from finecomb.annotators.detectors.coherence.narrative import MarkedSpan, Narrative, build_narrative
from finecomb.annotators.detectors.coherence.sequences import (
    SequenceModel,
    SequenceSettings,
    fit_sequence_model,
    model_input_text,
    model_target_text,
    parse_model_output,
)
from finecomb.annotators.detectors.coherence.surprisal import SurprisalScorer, sentence_surprisals, surprisal_features
from finecomb.annotators.detectors.coherence.tagger import (
    SentenceTagger,
    TaggerSettings,
    fit_tagger,
)
from finecomb.annotators.detectors.coherence.text_windows import SpecialTokens, build_token_windows
from finecomb.annotators.model_loading import load_pretrained, locate_model
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, Segment
from tests.annotators.detectors import tiny_models

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def text(words: str = "Nora waits. Emil opens the letter. She leaves the garden. Rain.") -> Narrative:
    plain = build_narrative(
        Document(id="t", text=words, segments=(Segment(start=0, end=11), Segment(start=12, end=len(words))))
    )
    rows = list(plain.sentences)
    rows[1] = dataclasses.replace(rows[1], spans=(MarkedSpan(12, 16, "char"), MarkedSpan(12, 34, "scene")))
    return dataclasses.replace(plain, sentences=tuple(rows))


# --- the paper's format ------------------------------------------------------------------------------------------


def test_a_context_and_a_sentence_are_written_as_in_the_paper() -> None:
    assert model_input_text(text(), 1) == "Nora waits. [SEP] Emil opens the letter."
    assert model_input_text(text(), 0) == "[SEP] Nora waits."
    assert model_target_text(text(), 0, ("char", "scene")) == "Yes"
    assert model_target_text(text(), 1, ("char", "scene")) == "No CharE Emil [sep] SceneE"
    assert model_target_text(text(), 1, ()) == "No"


def test_a_verdict_is_read_as_it_was_written() -> None:
    labels = ("char", "scene", "ref")
    assert parse_model_output(model_target_text(text(), 1, labels), labels) == [("char", "Emil"), ("scene", "")]
    assert parse_model_output("Yes", labels) == []
    assert parse_model_output("no refe the letter [sep] nonsense", labels) == [("ref", "the letter")]


# --- windows -----------------------------------------------------------------------------------------------------


def test_every_sentence_is_scored_once_after_what_fits_before_it() -> None:
    story = text()
    offsets = np.array([(at, at + 1) for at in range(len(story.text)) if story.text[at] != " "])
    encoded = [(np.arange(len(offsets)), offsets)]
    cut = build_token_windows([story], encoded, SpecialTokens(900, 901), 30, 12)
    assert [at for window in cut for at in range(*window.scored)] == [0, 1, 2, 3]
    assert all(len(window.ids) <= 30 and window.ids[0] == 900 for window in cut)
    boundary = [window for window in cut if 901 in window.ids.tolist()]
    assert boundary
    mask = cut[-1].attention_mask()
    later = cut[-1].sentences[None, :] > cut[-1].sentences[:, None]
    assert not mask[later].any()


# --- models ------------------------------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Path) -> TaggerSettings:
    return TaggerSettings(
        tiny_models.save_encoder(tmp_path / "encoder"), epochs=25, rate=1e-2, length=64, context=32, frozen=0
    )


@pytest.mark.long
def test_a_tagger_learns_sees_nothing_that_follows_and_comes_back(settings: TaggerSettings) -> None:
    tagger = fit_tagger([text()] * 4, ("char", "scene"), settings)
    (scores,) = tagger([text()])
    assert scores.sentences.shape == (4, 3)
    assert scores.sentences[1].min() > 0.6 > scores.sentences[[0, 2, 3]].max()
    emil = int(np.flatnonzero(scores.offsets[:, 0] == 12)[0])
    assert scores.tokens[emil, 0] > scores.tokens[emil + 1, 0]
    short = dataclasses.replace(text(), sentences=text().sentences[:2])
    assert tagger([short])[0].sentences == pytest.approx(scores.sentences[:2], abs=1e-5)
    again = SentenceTagger.from_state(settings, ("char", "scene"), tagger.state())
    assert again([text()])[0].sentences == pytest.approx(scores.sentences, abs=1e-6)
    assert tagger([Narrative("e", "", ())])[0].sentences.shape == (0, 3)


@pytest.mark.long
def test_surprisals_are_negative_log_probabilities(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = SurprisalScorer.from_pretrained(tiny_models.save_causal_model(tmp_path / "causal"))
    (nats,) = model([text()])
    codes = model.tokenizer(text().text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logits = model.model(torch.tensor([[2, *codes]])).logits[0]
    slow = [-math.log(float(torch.softmax(logits[at], dim=0)[id])) for at, id in enumerate(codes)]
    assert nats.nats == pytest.approx(slow, abs=1e-4)
    sums, means = sentence_surprisals(text(), nats, whole=True), sentence_surprisals(text(), nats)
    assert sums.sum() == pytest.approx(sum(slow), abs=1e-3)
    assert means[0] == pytest.approx(np.mean(slow[:3]), abs=1e-4)
    assert surprisal_features(text(), nats)[0]["surprisal.mean"] == pytest.approx(means[0])
    assert len(model([Narrative("e", "", ())])[0].nats) == 0


@pytest.mark.long
@pytest.mark.parametrize("labels", [("char", "scene"), ()])
def test_an_encoder_by_name_learns_verdicts_and_comes_back(tmp_path: Path, labels: tuple[str, ...]) -> None:
    settings = SequenceSettings(
        tiny_models.save_encoder(tmp_path / "encoder"), "encoder", labels, epochs=10, rate=1e-2, length=128
    )
    model = fit_sequence_model([text()] * 4, settings)
    (scores,) = model([text()])
    assert scores.sentences[1, -1] > scores.sentences[[0, 2, 3], -1].max()
    again = SequenceModel.from_state(settings, model.state())
    assert again([text()])[0].sentences == pytest.approx(scores.sentences, abs=1e-6)


@pytest.mark.long
def test_a_sequence_to_sequence_model_writes_verdicts(tmp_path: Path) -> None:
    settings = SequenceSettings(
        tiny_models.save_seq2seq(tmp_path / "t5"),
        "seq2seq",
        ("char", "scene"),
        epochs=15,
        rate=2e-2,
        length=128,
        output=8,
    )
    model = fit_sequence_model([text()] * 4, settings)
    (scores,) = model([text()])
    assert scores.sentences.shape == (4, 3)
    assert scores.sentences[1, -1] > scores.sentences[[0, 2, 3], -1].mean()
    assert model([Narrative("e", "", ())])[0].sentences.shape == (0, 3)


@pytest.mark.long
def test_a_model_that_is_not_there_is_named_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FinecombError, match=r"^coherence: cannot load the model .*nowhere"):
        load_pretrained("AutoModel", str(tmp_path / "nowhere"), "coherence")
    assert locate_model("some/other") == "some/other"
