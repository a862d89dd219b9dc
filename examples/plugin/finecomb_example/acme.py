"""The provider `acme`: models such as `acme:small`, at a server with an API of its own."""

from collections.abc import Mapping
from typing import Any

from finecomb.annotators.llm.chat import ChatReply, ChatRequest, Structure
from finecomb.annotators.llm.providers import HttpProvider
from finecomb.core.records import ModelSettings


class Acme(HttpProvider):
    """Models of ACME."""

    name = "acme"
    base_url = "https://models.acme.example"

    def headers(self, key: str, settings: ModelSettings) -> dict[str, str]:
        """Return the headers of every request."""
        return {"X-Acme-Key": key} if key else {}

    def build_request(self, request: ChatRequest, structure: Structure) -> tuple[str, dict[str, Any]]:
        """Return the path and the JSON body of a request."""
        body = {
            "model": self.model_name(request.model),
            "dialogue": [[message.role, message.content] for message in request.messages],
            "limit": request.max_tokens,
        }
        return "/generate", body

    def parse_reply(self, answer: Mapping[str, Any]) -> ChatReply:
        """Read a reply; an error of lookup or type means that it is not a reply."""
        return ChatReply(text=answer["output"], finish="length" if answer["cut"] else "stop")


ACME = Acme()
