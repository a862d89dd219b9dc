"""Tiny models with random weights, saved in the format of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

WORDS = "nora emil waits opens leaves the a letter garden she he rain yes no chare scenee refe incone . , [sep]".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def save_tokenizer(folder: Path) -> None:
    """Save a tokenizer of whole words."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    vocabulary = {word: at for at, word in enumerate([*SPECIAL, *WORDS])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", bos_token="[CLS]", eos_token="[SEP]", model_max_length=512,
    ).save_pretrained(folder)  # fmt: skip


def save_model(folder: Path, model: Any) -> str:
    """Save a model and its tokenizer to a folder."""
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return str(folder)


def _import_transformers() -> Any:
    """Import transformers with one torch thread and a fixed seed, so that tests are reproducible."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return transformers


def save_encoder(folder: Path) -> str:
    """Save a BERT encoder with two layers."""
    transformers = _import_transformers()
    config = transformers.BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=512,
    )  # fmt: skip
    return save_model(folder, transformers.BertModel(config))


def save_seq2seq(folder: Path) -> str:
    """Save a T5 model with one encoder and one decoder layer."""
    transformers = _import_transformers()
    config = transformers.T5Config(
        vocab_size=len(SPECIAL) + len(WORDS), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=3,
    )  # fmt: skip
    return save_model(folder, transformers.T5ForConditionalGeneration(config))


def save_causal_model(folder: Path) -> str:
    """Save a GPT-2 model with one layer."""
    transformers = _import_transformers()
    config = transformers.GPT2Config(
        vocab_size=len(SPECIAL) + len(WORDS), n_positions=2048, n_embd=16, n_layer=1, n_head=2, bos_token_id=2,
        eos_token_id=3,
    )  # fmt: skip
    return save_model(folder, transformers.GPT2LMHeadModel(config))
