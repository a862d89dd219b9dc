"""Texts to judge: written by models from prompts with every setting of decoding, and prepared for a study.

What needs a language model is in `finecomb.corpora.generation.generation`, which the extra `llm` is for.
"""

from finecomb.corpora.generation.decoding import Decoding, decoding_grid
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import Priming
from finecomb.corpora.preparation import Preparation, PreparedTexts, prepare

__all__ = ["Decoding", "LengthRule", "Preparation", "PreparedTexts", "Priming", "decoding_grid", "prepare"]
