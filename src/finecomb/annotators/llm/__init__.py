"""Language models as annotators, with prompts from protocols, verified quotes and cached replies."""

from finecomb.annotators.llm.endpoint import Endpoint
from finecomb.annotators.llm.prompt import PromptTemplate, system_prompt_text
from finecomb.annotators.llm.runs import ModelRun, annotate

__all__ = [
    "Endpoint",
    "ModelRun",
    "PromptTemplate",
    "annotate",
    "system_prompt_text",
]
