"""OpenAI: chat completions, responses, and batches of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from finecomb.annotators.llm.chat import ChatReply, ChatRequest, Structure
from finecomb.annotators.llm.endpoint import CallError
from finecomb.annotators.llm.providers.base import Capability, HttpProvider, chat_usage

if TYPE_CHECKING:
    from finecomb.annotators.llm.batches import BatchService
    from finecomb.annotators.llm.http_endpoint import HttpEndpoint


class OpenAIProvider(HttpProvider):
    """Chat completions of OpenAI."""

    name = "openai"
    base_url = "https://api.openai.com/v1"
    key_env = "OPENAI_API_KEY"
    capabilities: frozenset[Capability] = HttpProvider.capabilities | {"logprobs", "batches"}

    def open_batches(self, endpoint: HttpEndpoint) -> BatchService | None:
        """Return the service for files of requests."""
        from finecomb.annotators.llm.batches import FileBatches

        return FileBatches(endpoint)


class ResponsesProvider(OpenAIProvider):
    """The responses API of OpenAI."""

    name = "openai-responses"
    capabilities: frozenset[Capability] = frozenset({"chat", "json_schema", "batches", "effort"})
    structures = ("json_schema", "json_object", "none")
    structure_fields = ("text",)

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path and body. There are no seeds and penalties in this API, and nothing is stored."""
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        turns = [message.model_dump() for message in request.messages if message.role != "system"]
        body: dict[str, Any] = {
            "model": self.model_name(request.model),
            "input": turns,
            "max_output_tokens": request.max_tokens,
            "store": False,
        }
        if system:
            body["instructions"] = system
        for name in ("temperature", "top_p"):
            if (value := getattr(request, name)) is not None:
                body[name] = value
        if request.json_schema is not None and structure == "json_schema":
            schema = {"name": "annotation", "strict": True, "schema": request.json_schema}
            body["text"] = {"format": {"type": "json_schema", **schema}}
        elif request.json_schema is not None and structure == "json_object":
            body["text"] = {"format": {"type": "json_object"}}
        if request.effort:
            body["reasoning"] = {"effort": request.effort}
        return "/responses", body

    def parse_reply(self, answer: Mapping[str, Any]) -> ChatReply:
        """Read the messages of a response. Reasoning is kept apart from the text."""
        status = str(answer["status"])
        error = answer.get("error") if isinstance(answer.get("error"), dict) else {}
        if status == "failed":
            reason = str((error or {}).get("message") or "no reason given")
            raise CallError(f"the model failed while it replied: {reason}", again=True, maybe_paid=True)
        texts, refusals, thinking = [], [], []
        for item in answer["output"]:
            if item.get("type") == "message":
                texts += [part["text"] for part in item["content"] if part.get("type") == "output_text"]
                refusals += [part["refusal"] for part in item["content"] if part.get("type") == "refusal"]
            elif item.get("type") == "reasoning":
                thinking += [part["text"] for part in item.get("summary") or () if "text" in part]
        details = answer.get("incomplete_details")
        reason = str(details.get("reason") or "") if isinstance(details, dict) else ""
        finish = {"max_output_tokens": "length"}.get(reason, reason) if status == "incomplete" else "stop"
        return ChatReply(
            text="".join(texts),
            finish=finish,
            refusal="".join(refusals),
            thinking="\n".join(thinking),
            model=str(answer.get("model") or ""),
            **chat_usage(answer.get("usage")),
        )
