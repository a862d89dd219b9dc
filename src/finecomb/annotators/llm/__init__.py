"""Language models as annotators: any endpoint, prompts from protocols, quotes that cannot lie, nothing paid twice."""

from finecomb.annotators.llm.endpoint import Endpoint
from finecomb.annotators.llm.prompt import PromptTemplate, prompt_text
from finecomb.annotators.llm.runs import LanguageModelJudge, ModelRun, annotate, make_judge

__all__ = [
    "Endpoint",
    "LanguageModelJudge",
    "ModelRun",
    "PromptTemplate",
    "annotate",
    "make_judge",
    "prompt_text",
]
