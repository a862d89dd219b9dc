"""Texts to judge: written by models from prompts with every setting of decoding, and prepared for a study.

What needs a language model is in `finecomb.generate.generation`, which the extra `llm` is for.
"""

from finecomb.generate.decoding import Decoding, decoding_grid
from finecomb.generate.lengths import LengthRule
from finecomb.generate.preparation import Preparation, PreparedTexts, prepare
from finecomb.generate.priming import Priming

__all__ = ["Decoding", "LengthRule", "Preparation", "PreparedTexts", "Priming", "decoding_grid", "prepare"]
