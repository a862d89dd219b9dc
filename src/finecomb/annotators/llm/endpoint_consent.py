"""Consent to the addresses and key variables that a study names, so that a shared study cannot obtain a secret.

Whoever wrote a `study.yaml` chooses the address of its models and the environment variable that is sent there as a
key. Both are used only after the user confirmed them once for this study. Confirmations are stored as hashes outside
the study, in `$XDG_STATE_HOME/finecomb/` (by default `~/.local/state/finecomb/`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from finecomb.annotators.llm.providers import PROVIDERS, find_provider
from finecomb.core.errors import FinecombError, ParameterError, param, shorten
from finecomb.core.guarded_json import load_json
from finecomb.core.records import ModelSettings

KEY_NAMES = frozenset(
    """
    ANTHROPIC_API_KEY AZURE_OPENAI_API_KEY CEREBRAS_API_KEY COHERE_API_KEY DEEPINFRA_API_KEY DEEPSEEK_API_KEY
    FIREWORKS_API_KEY GEMINI_API_KEY GOOGLE_API_KEY GROQ_API_KEY MISTRAL_API_KEY NEBIUS_API_KEY OLLAMA_API_KEY
    OPENAI_API_KEY OPENROUTER_API_KEY SAMBANOVA_API_KEY TOGETHER_API_KEY VLLM_API_KEY XAI_API_KEY
    """.split()
)
"""Variables that hold keys of language models. A study may name these and those of installed providers, no others."""


class UnconfirmedEndpointError(ParameterError):
    """Error for an address or key variable that comes from a study and that the user has not confirmed."""


def require_confirmed_endpoints(
    models: Iterable[tuple[ModelSettings, Collection[str]]], study: str | Path, trust: bool = False
) -> None:
    """Raise an error unless the address and key variable of each model were given by the user, or were confirmed.

    Each model comes with the names of the options that the user passed; the rest was read from the study. With
    `trust`, what the study names is confirmed and remembered. A variable that is not known to hold a model's key is
    refused in any case.
    """
    from_study = [
        settings
        for settings, given in models
        if any(getattr(settings, name) and name not in given for name in ("base_url", "key_env"))
        and _is_key_allowed(settings, given)
    ]
    if trust and not from_study:
        raise ParameterError(
            f"{param('trust_endpoint')} does not apply; the study names no address or key of the model",
            parameter="trust_endpoint",
        )
    for settings in from_study:
        if trust:
            confirm_endpoint(settings, study)
        elif not is_endpoint_confirmed(settings, study):
            raise UnconfirmedEndpointError(
                f"the study wants to send its texts {describe_endpoint(settings)}; if you trust this address, pass "
                f"{param('trust_endpoint')} once, or set {param('base_url')} and {param('key_env')} yourself",
                parameter="trust_endpoint",
            )


def _is_key_allowed(settings: ModelSettings, given: Collection[str]) -> bool:
    """Return True, or raise an error if the study names a variable that is not known to hold a model's key."""
    known = KEY_NAMES | {provider.key_env for provider in PROVIDERS.values()}
    if settings.key_env and "key_env" not in given and settings.key_env not in known:
        raise ParameterError(
            f"the study wants to send the environment variable {shorten(settings.key_env, 60)} as the key of model "
            f"{shorten(settings.model, 60)!r}, which is not a key of a language model; pass {param('key_env')} "
            "yourself if you agree",
            parameter="key_env",
        )
    return True


def describe_endpoint(settings: ModelSettings) -> str:
    """Return the address and the key variable of a model in words, for the user to judge."""
    provider = find_provider(settings.model)
    key_env = settings.key_env or provider.key_env
    key = f" with the key in {shorten(key_env, 60)}" if key_env else " without a key"
    return f"to {shorten(settings.base_url or provider.base_url, 120)}{key}"


def is_endpoint_confirmed(settings: ModelSettings, study: str | Path) -> bool:
    """Return whether the user has confirmed the model's address and key variable for this study."""
    return _endpoint_digest(settings, study) in _read_digests()


def confirm_endpoint(settings: ModelSettings, study: str | Path) -> None:
    """Remember that the user trusts the model's address and key variable for this study."""
    digests = _read_digests() | {_endpoint_digest(settings, study)}
    file = _consent_file()
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(sorted(digests), indent=0), encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise FinecombError(
            f"{file}: the confirmed address cannot be remembered ({error.strerror}); set XDG_STATE_HOME to a folder "
            "that you can write to"
        ) from None


def _consent_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state else Path.home() / ".local" / "state") / "finecomb" / "confirmed-endpoints.json"


def _read_digests() -> set[str]:
    try:
        digests = load_json(_consent_file().read_bytes())
    except (OSError, ValueError):
        return set()
    return set(map(str, digests)) if isinstance(digests, list) else set()


def _endpoint_digest(settings: ModelSettings, study: str | Path) -> str:
    """Return the hash of study, address and key variable. A study on disk is identified by its absolute path."""
    place = str(study) if "://" in str(study) else str(Path(study).resolve())
    provider = find_provider(settings.model)
    parts = [place, settings.base_url or provider.base_url, settings.key_env or provider.key_env]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
