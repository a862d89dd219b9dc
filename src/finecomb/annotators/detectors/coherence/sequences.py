"""Fine-tuning of any Hugging Face model on the paper's inputs (context, [SEP], sentence) and outputs (verdict).

An encoder gets one binary output per label. A sequence-to-sequence model generates the verdict: `Yes` for a coherent
sentence, otherwise `No` followed by each error type and its words (section 5.1, Figure 6). The optimiser, learning
rate, batch size and lengths follow Table 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.narrative import WHOLE_SENTENCE_LABEL, Narrative
from finecomb.annotators.detectors.coherence.sentence_scores import TextScores, build_sentence_only_scores
from finecomb.annotators.model_loading import import_library, load_pretrained
from finecomb.core.tokens import word_offsets

NAME = "transformer"
ModelForm = Literal["encoder", "seq2seq"]
SEPARATOR, ERROR_SEPARATOR = "[SEP]", "[sep]"
COHERENT, INCOHERENT = "Yes", "No"


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """The model's name and the hyperparameters of Table 9."""

    model: str
    form: ModelForm = "encoder"
    labels: tuple[str, ...] = ()
    """Labels to predict, empty for the paper's model without spans, which only gives a verdict."""
    epochs: int = 5
    rate: float = 1e-4
    batch: int = 8
    length: int = 1024
    output: int = 80
    seed: int = 0


def paper_error_name(label: str) -> str:
    """Return a label as written in the paper: `char` becomes `CharE`."""
    return f"{label.capitalize()}E"


def model_input_text(text: Narrative, index: int) -> str:
    """Build the model input for a sentence, with the complete preceding text as context."""
    context = text.text[: text.sentences[index].start].strip()
    return f"{' '.join(context.split())} {SEPARATOR} {' '.join(text.sentence_text(index).split())}".strip()


def model_target_text(text: Narrative, index: int, labels: Sequence[str]) -> str:
    """Build the target output of a sequence-to-sequence model for a sentence.

    A scene error has no words, because it concerns the whole sentence.
    """
    sentence = text.sentences[index]
    spans = [span for span in sentence.spans if not labels or span.label in labels]
    if not spans:
        return COHERENT
    errors = [
        paper_error_name(span.label)
        if span.label == WHOLE_SENTENCE_LABEL
        else f"{paper_error_name(span.label)} {text.text[span.start : span.end]}"
        for span in spans
    ]
    return f"{INCOHERENT} {f' {ERROR_SEPARATOR} '.join(dict.fromkeys(errors))}" if labels else INCOHERENT


def parse_model_output(output: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    """Parse the output of a model into pairs of a label and the marked words. Unknown labels are ignored."""
    verdict, _, errors = output.strip().partition(" ")
    if verdict.lower() != INCOHERENT.lower():
        return []
    known = {paper_error_name(label).lower(): label for label in labels}
    pairs = [part.strip().partition(" ") for part in re.split(re.escape(ERROR_SEPARATOR), errors, flags=re.IGNORECASE)]
    return [(known[name.lower()], words.strip()) for name, _, words in pairs if name.lower() in known]


@dataclass(frozen=True)
class SequenceModel:
    """A model fine-tuned on contexts and sentences."""

    settings: SequenceSettings
    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text.

        A sequence-to-sequence model also returns the positions of the words it copied.
        """
        score = _generated_scores if self.settings.form == "seq2seq" else _classifier_scores
        self.network.eval()
        return [
            score(self, text)
            if text.sentences
            else build_sentence_only_scores(np.zeros((0, len(self.settings.labels) + 1)))
            for text in texts
        ]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the weights by name. A tensor with several names (tied weights) is stored once per name."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.network.state_dict().items()}

    @classmethod
    def from_state(cls, settings: SequenceSettings, state: Mapping[str, NDArray[Any]]) -> SequenceModel:
        """Rebuild the model from stored weights, using the architecture and vocabulary of the named model."""
        torch = import_library("torch", NAME)
        tokenizer, network = _load_network(settings)
        network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
        return cls(settings, network, tokenizer)


def _load_network(settings: SequenceSettings) -> tuple[Any, Any]:
    if settings.form == "seq2seq":
        return load_pretrained("AutoModelForSeq2SeqLM", settings.model, NAME)
    heads = {"num_labels": len(settings.labels) + 1, "problem_type": "multi_label_classification"}
    return load_pretrained("AutoModelForSequenceClassification", settings.model, NAME, **heads)


def fit_sequence_model(texts: Sequence[Narrative], settings: SequenceSettings) -> SequenceModel:
    """Fine-tune a model on all sentences of the texts, with Adam and linear decay as in Table 9."""
    torch = import_library("torch", NAME)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(settings.seed)
        tokenizer, network = _load_network(settings)
        model = SequenceModel(settings, network, tokenizer)
        places = [(text, index) for text in texts for index in range(len(text.sentences))]
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
            _batch_loss(torch, model, batch).backward()
            optimiser.step()
            decay.step()
            optimiser.zero_grad()
    network.eval()
    return model


def _batch_loss(torch: Any, model: SequenceModel, batch: Sequence[tuple[Narrative, int]]) -> Any:
    labels = model.settings.labels
    codes = _encode_inputs(model, [model_input_text(text, index) for text, index in batch])
    if model.settings.form == "encoder":
        truth = np.stack([text.target_matrix(labels)[index] for text, index in batch]).astype(np.float32)
        return model.network(**codes, labels=torch.from_numpy(truth)).loss
    targets = model.tokenizer(
        [model_target_text(text, index, labels) for text, index in batch], truncation=True,
        max_length=model.settings.output, padding=True, return_tensors="pt",
    )  # fmt: skip
    right = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, -100)
    return model.network(**codes, labels=right).loss


def _encode_inputs(model: SequenceModel, sources: Sequence[str]) -> Any:
    """Tokenise inputs, truncating long ones at the start so that the sentence is kept."""
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
            codes = _encode_inputs(model, [model_input_text(text, index) for index in places])
            rows.append(torch.sigmoid(model.network(**codes).logits.double()).numpy())
    return build_sentence_only_scores(np.concatenate(rows))


def _generated_scores(model: SequenceModel, text: Narrative) -> TextScores:
    torch = import_library("torch", NAME)
    no = model.tokenizer(INCOHERENT, add_special_tokens=False)["input_ids"][0]
    yes = model.tokenizer(COHERENT, add_special_tokens=False)["input_ids"][0]
    labels = model.settings.labels
    chances = np.zeros((len(text.sentences), len(labels) + 1))
    offsets = word_offsets(text.text)
    tokens = np.zeros((len(offsets), len(labels)))
    with torch.inference_mode():
        for index in range(len(text.sentences)):
            output = model.network.generate(
                **_encode_inputs(model, [model_input_text(text, index)]), max_new_tokens=model.settings.output,
                do_sample=False,
                output_scores=True, return_dict_in_generate=True,
            )  # fmt: skip
            first = torch.log_softmax(output.scores[0][0].double(), dim=-1)
            chance = float(torch.sigmoid(first[no] - first[yes]))
            chances[index, -1] = chance
            errors = parse_model_output(model.tokenizer.decode(output.sequences[0], skip_special_tokens=True), labels)
            for label, words in errors:
                column = labels.index(label)
                chances[index, column] = chance
                # The model may output words that do not occur in the sentence.
                offset = text.sentence_text(index).find(words) if words else -1
                if offset >= 0:
                    start = text.sentences[index].start + offset
                    tokens[(offsets[:, 0] < start + len(words)) & (offsets[:, 1] > start), column] = 1.0
    return TextScores(chances, tokens, offsets)
