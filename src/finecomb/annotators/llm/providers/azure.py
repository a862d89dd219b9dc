"""Azure OpenAI, with and without a dated version of the API."""

from __future__ import annotations

from finecomb.annotators.llm.endpoint import parse_host
from finecomb.annotators.llm.providers.openai import OpenAIProvider
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import ModelSettings


class AzureProvider(OpenAIProvider):
    """Deployments in an Azure resource. With `api_version`, the dated API is used, otherwise version 1."""

    name = "azure"
    base_url = ""
    key_env = "AZURE_OPENAI_API_KEY"
    version_names = ("2024-10-21",)

    def host(self, settings: ModelSettings) -> str:
        """Return the host of the resource."""
        if not settings.base_url:
            raise ParameterError(
                f"{param('base_url', 'URL')} is required for model {settings.model!r}; use your resource's address,"
                " such as https://NAME.openai.azure.com",
                parameter="base_url",
            )
        return super().host(settings)

    def uses_usual_key(self, settings: ModelSettings) -> bool:
        """Return whether the address is one of Azure."""
        return parse_host(settings.base_url).endswith(".azure.com")

    def address(self, settings: ModelSettings) -> str:
        """Return the address of the deployment, or of version 1 of the API."""
        parse_host(settings.base_url)
        root = settings.base_url.partition("/openai")[0].rstrip("/")
        if settings.api_version:
            return f"{root}/openai/deployments/{self.model_name(settings.model)}"
        return f"{root}/openai/v1"

    def query(self, settings: ModelSettings) -> str:
        """Return the version of the dated API."""
        return f"api-version={settings.api_version}" if settings.api_version else ""

    def headers(self, key: str, settings: ModelSettings) -> dict[str, str]:
        """Return the key in the header of the dated API, or as a bearer token."""
        return {"api-key": key} if settings.api_version else super().headers(key, settings)
