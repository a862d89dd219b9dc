"""Any Hugging Face model by name, in the paper's own format: a context, [SEP] and a sentence in, a verdict out.

An encoder gets a head that says yes or no to each label. A sequence-to-sequence model writes the verdict: `Yes` where
the sentence is coherent, else `No` and each error type, with its words after it (section 5.1, Figure 6). Optimiser,
rate, batch and lengths are those of Table 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.narrative import WHOLE_SENTENCE, Narrative
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, TextScores, sentence_only_scores
from finecomb.annotators.model_loading import import_library, load_pretrained
from finecomb.core.tokens import words as tokenised

NAME = "transformer"
Form = Literal["encoder", "seq2seq"]
SEPARATOR, ERROR_SEPARATOR = "[SEP]", "[sep]"
COHERENT, INCOHERENT = "Yes", "No"


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """Which model, and Table 9."""

    model: str
    form: Form = "encoder"
    labels: tuple[str, ...] = ()
    """Empty for a verdict alone: the paper's model without spans."""
    epochs: int = 5
    rate: float = 1e-4
    batch: int = 8
    length: int = 1024
    output: int = 80
    seed: int = 0


def error_name(label: str) -> str:
    """A label as the paper writes it: `char` is `CharE`."""
    return f"{label.capitalize()}E"


def source_text(text: Narrative, at: int) -> str:
    """What a model reads for one sentence; the context's beginning is what is cut where it is too long."""
    context = text.text[: text.sentences[at].start].strip()
    return f"{' '.join(context.split())} {SEPARATOR} {' '.join(text.sentence_text(at).split())}".strip()


def target_text(text: Narrative, at: int, labels: Sequence[str]) -> str:
    """What a sequence-to-sequence model writes for one sentence.

    A scene error has no words after it, since it is about the whole sentence.
    """
    sentence = text.sentences[at]
    spans = [span for span in sentence.spans if not labels or span.label in labels]
    if not spans:
        return COHERENT
    errors = [
        error_name(span.label)
        if span.label == WHOLE_SENTENCE
        else f"{error_name(span.label)} {text.text[span.start : span.end]}"
        for span in spans
    ]
    return f"{INCOHERENT} {f' {ERROR_SEPARATOR} '.join(dict.fromkeys(errors))}" if labels else INCOHERENT


def read_target(output: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    """The errors in a verdict: pairs of a label and its words; what is no label is ignored."""
    verdict, _, rest = output.strip().partition(" ")
    if verdict.lower() != INCOHERENT.lower():
        return []
    known = {error_name(label).lower(): label for label in labels}
    pairs = [part.strip().partition(" ") for part in re.split(re.escape(ERROR_SEPARATOR), rest, flags=re.IGNORECASE)]
    return [(known[name.lower()], words.strip()) for name, _, words in pairs if name.lower() in known]


@dataclass(frozen=True)
class SequenceModel:
    """A model that was fine-tuned on contexts and sentences."""

    settings: SequenceSettings
    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Scores of every text; a sequence-to-sequence model also gives the words that it copies."""
        score = _generated_scores if self.settings.form == "seq2seq" else _classifier_scores
        self.network.eval()
        return [score(self, text) if text.sentences else _empty_scores(self.settings) for text in texts]

    def state(self) -> dict[str, NDArray[Any]]:
        """Its weights by name; tensors that a model shares are stored once for each name."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.network.state_dict().items()}

    @classmethod
    def from_state(cls, settings: SequenceSettings, state: Mapping[str, NDArray[Any]]) -> SequenceModel:
        """A model with stored weights; its shape and vocabulary come from the model of that name."""
        torch = import_library("torch", NAME)
        tokenizer, network = _load_network(settings)
        network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
        return cls(settings, network, tokenizer)


def _empty_scores(settings: SequenceSettings) -> TextScores:
    return sentence_only_scores(np.zeros((0, len(settings.labels) + 1)))


def _load_network(settings: SequenceSettings) -> tuple[Any, Any]:
    if settings.form == "seq2seq":
        return load_pretrained("AutoModelForSeq2SeqLM", settings.model, NAME)
    heads = {"num_labels": len(settings.labels) + 1, "problem_type": "multi_label_classification"}
    return load_pretrained("AutoModelForSequenceClassification", settings.model, NAME, **heads)


def fit_sequences(texts: Sequence[Narrative], settings: SequenceSettings) -> SequenceModel:
    """Fine-tune on every sentence of the texts, as Table 9 says: Adam, linear decay, batches of 8."""
    torch = import_library("torch", NAME)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(settings.seed)
        tokenizer, network = _load_network(settings)
        model = SequenceModel(settings, network, tokenizer)
        places = [(text, at) for text in texts for at in range(len(text.sentences))]
        rng = np.random.default_rng(settings.seed)
        batches = [
            [places[place] for place in order[begin : begin + settings.batch]]
            for order in (rng.permutation(len(places)) for _ in range(settings.epochs))
            for begin in range(0, len(places), settings.batch)
        ]
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.rate, betas=(0.9, 0.999), eps=1e-8)
        decay = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / max(len(batches), 1)))
        network.train()
        for batch in batches:
            _loss(torch, model, batch).backward()
            optimiser.step()
            decay.step()
            optimiser.zero_grad()
    network.eval()
    return model


def _loss(torch: Any, model: SequenceModel, batch: Sequence[tuple[Narrative, int]]) -> Any:
    labels = model.settings.labels
    codes = _encode_sources(model, [source_text(text, at) for text, at in batch])
    if model.settings.form == "encoder":
        truth = np.stack([text.targets(labels)[at] for text, at in batch]).astype(np.float32)
        return model.network(**codes, labels=torch.from_numpy(truth)).loss
    targets = model.tokenizer(
        [target_text(text, at, labels) for text, at in batch], truncation=True, max_length=model.settings.output,
        padding=True, return_tensors="pt",
    )  # fmt: skip
    right = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, -100)
    return model.network(**codes, labels=right).loss


def _encode_sources(model: SequenceModel, sources: Sequence[str]) -> Any:
    """Token ids; a source that is too long loses its beginning, never its sentence."""
    model.tokenizer.truncation_side = "left"
    most = min(model.settings.length, model.tokenizer.model_max_length)
    codes = model.tokenizer(list(sources), truncation=True, max_length=most, padding=True, return_tensors="pt")
    return {name: codes[name] for name in ("input_ids", "attention_mask")}


def _classifier_scores(model: SequenceModel, text: Narrative) -> TextScores:
    torch = import_library("torch", NAME)
    rows = []
    with torch.inference_mode():
        for begin in range(0, len(text.sentences), model.settings.batch):
            places = range(begin, min(begin + model.settings.batch, len(text.sentences)))
            codes = _encode_sources(model, [source_text(text, at) for at in places])
            rows.append(torch.sigmoid(model.network(**codes).logits.double()).numpy())
    return sentence_only_scores(np.concatenate(rows))


def _generated_scores(model: SequenceModel, text: Narrative) -> TextScores:
    torch = import_library("torch", NAME)
    no = model.tokenizer(INCOHERENT, add_special_tokens=False)["input_ids"][0]
    yes = model.tokenizer(COHERENT, add_special_tokens=False)["input_ids"][0]
    labels = model.settings.labels
    chances = np.zeros((len(text.sentences), len(labels) + 1))
    tokens: list[tuple[int, int, int]] = []
    with torch.inference_mode():
        for at in range(len(text.sentences)):
            made = model.network.generate(
                **_encode_sources(model, [source_text(text, at)]), max_new_tokens=model.settings.output,
                do_sample=False,
                output_scores=True, return_dict_in_generate=True,
            )  # fmt: skip
            first = torch.log_softmax(made.scores[0][0].double(), dim=-1)
            chance = float(torch.sigmoid(first[no] - first[yes]))
            chances[at, -1] = chance
            errors = read_target(model.tokenizer.decode(made.sequences[0], skip_special_tokens=True), labels)
            for label, words in errors:
                chances[at, labels.index(label)] = chance
                tokens += _locate_words(text, at, words, labels.index(label))
    return _scores_with_tokens(text, chances, tokens, len(labels))


def _locate_words(text: Narrative, at: int, words: str, column: int) -> list[tuple[int, int, int]]:
    """Where the words that a model copied stand in the sentence; nothing where it made them up."""
    sentence = text.sentences[at]
    place = text.sentence_text(at).find(words) if words else -1
    return [(sentence.start + place, sentence.start + place + len(words), column)] if place >= 0 else []


def _scores_with_tokens(
    text: Narrative, chances: Floats, spans: Sequence[tuple[int, int, int]], labels: int
) -> TextScores:
    offsets = tokenised(text.text)
    tokens = np.zeros((len(offsets), labels))
    for start, end, column in spans:
        tokens[(offsets[:, 0] < end) & (offsets[:, 1] > start), column] = 1.0
    return TextScores(chances, tokens, offsets)
