"""Text generation: texts sampled from models over a grid of decoding parameters, and prepared for a study.

Code that needs a language model is in `finecomb.corpora.generation.generation`, which requires the extra `llm`.
"""

from finecomb.corpora.generation.decoding import Decoding, decoding_grid
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import Priming
from finecomb.corpora.preparation import Preparation, PreparedTexts, prepare

__all__ = ["Decoding", "LengthRule", "Preparation", "PreparedTexts", "Priming", "decoding_grid", "prepare"]
