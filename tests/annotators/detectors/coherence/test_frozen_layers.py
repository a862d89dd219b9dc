"""Lower layers of an encoder are frozen where it is built like BERT."""

from __future__ import annotations

from types import SimpleNamespace

from finecomb.annotators.detectors.coherence.tagger import _freeze_lower_layers


class Part:
    """A part of a network that records whether it is trained."""

    is_trained = True

    def requires_grad_(self, is_trained: bool) -> None:
        self.is_trained = is_trained


def test_the_lowest_layers_are_frozen() -> None:
    """The layers were looked up under another name, so none was frozen."""
    layers = [Part() for _ in range(4)]
    encoder = SimpleNamespace(embeddings=Part(), encoder=SimpleNamespace(layer=layers))
    _freeze_lower_layers(encoder, 3)
    assert [layer.is_trained for layer in layers] == [False, False, False, True]
    assert not encoder.embeddings.is_trained


def test_an_encoder_of_another_shape_is_trained_as_a_whole() -> None:
    encoder = SimpleNamespace(embeddings=Part(), blocks=[Part()])
    _freeze_lower_layers(encoder, 3)
    assert encoder.embeddings.is_trained
