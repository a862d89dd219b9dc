"""Sensitivity of the coreference critic to damage in SNaC's summaries; prints a table of docs/critics/coreference.md.

    python -m benchmarks coreference_damage

The critic is fitted on 90 of the 150 texts; the other 60 are compared with damaged copies of themselves.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

from finecomb import formats
from finecomb.core.records import Document
from finecomb.corpora.critics import compare
from finecomb.corpora.critics.criticism import criticize

PRONOUN_SWAPS = {
    "he": "she",
    "she": "he",
    "him": "her",
    "her": "him",
    "his": "her",
    "himself": "herself",
    "herself": "himself",
}


def shuffle_sentences(text: str, rng: random.Random) -> str:
    sentences = re.split(r"(?<=[.!?])\s+", text)
    return " ".join(rng.sample(sentences, len(sentences)))


def swap_pronouns(text: str, rng: random.Random) -> str:
    def swap_word(match: re.Match[str]) -> str:
        word = match[0]
        if rng.random() >= 0.3:
            return word
        swapped = PRONOUN_SWAPS[word.lower()]
        return swapped.capitalize() if word[0].isupper() else swapped

    return re.sub(rf"\b(?:{'|'.join(PRONOUN_SWAPS)})\b", swap_word, text, flags=re.IGNORECASE)


def replace_initial_pronouns(text: str, rng: random.Random) -> str:
    text = re.sub(r"(?:(?<=[.!?]\s)|^)He\b", "The man", text)
    return re.sub(r"(?:(?<=[.!?]\s)|^)She\b", "The woman", text)


DAMAGES: dict[str, Callable[[str, random.Random], str]] = {
    "sentences in random order": shuffle_sentences,
    "30% of he and she exchanged": swap_pronouns,
    "sentence-initial He or She made `The man` or `The woman`": replace_initial_pronouns,
}


def main() -> None:
    """Print Latent PPL of original and damaged texts by both models."""
    if "FINECOMB_DATA" not in os.environ:
        print("skipped: set FINECOMB_DATA")
        return
    folder = Path(os.environ["FINECOMB_DATA"]) / "snac"
    path = next(path for path in sorted(folder.iterdir()) if path.suffix in (".json", ".jsonl", ".csv"))
    texts = [item for item in formats.stream_records(path, "") if isinstance(item, Document)]
    texts = random.Random(0).sample(texts, len(texts))
    fit, held_out = texts[:90], texts[90:]
    for model in ("kneser-ney", "paper"):
        damaged = {
            name: [Document(id=page.id, text=damage(page.text, random.Random(page.id))) for page in held_out]
            for name, damage in DAMAGES.items()
        }
        result = criticize("coreference", held_out, damaged, fit=fit, model=model)
        for row in compare(result.real, result.systems):
            if row.statistic == "ppl":
                low, high = row.real + row.difference.low, row.real + row.difference.high
                ppl = f"{row.generated:.1f} [{low:.1f}, {high:.1f}]"
                print(f"{model:11} {row.system:60} real {row.real:.1f}  {ppl} p {row.p:.3f}")


if __name__ == "__main__":
    main()
