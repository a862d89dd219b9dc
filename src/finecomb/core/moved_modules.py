"""Module paths that saved critics of earlier versions may name, and where those modules are now."""

from __future__ import annotations

MOVED_MODULES = {
    "finecomb.critics.certainty": "finecomb.corpora.critics.critic_certainty",
    "finecomb.critics.chains": "finecomb.annotators.coreference.chains",
    "finecomb.critics.coreference_sieve": "finecomb.annotators.coreference.resolver",
    "finecomb.critics.custom": "finecomb.corpora.critics.custom_critic",
    "finecomb.critics.power": "finecomb.corpora.critics.critic_power",
    "finecomb.critics.surprises": "finecomb.corpora.critics.surprising_spans",
    "finecomb.critics.titles": "finecomb.corpora.critics.section_titles",
    "finecomb.critics": "finecomb.corpora.critics",
    "finecomb.detect.libraries": "finecomb.annotators.model_loading",
    "finecomb.detect.snac": "finecomb.annotators.detectors.coherence",
    "finecomb.detect": "finecomb.annotators.detectors",
}
"""Old to new, the longer path before the package that it was in."""


def current_path(module: str) -> str:
    """Return the path at which a stored module path is imported today.

    >>> current_path("finecomb.critics.synthetic")
    'finecomb.corpora.critics.synthetic'
    >>> current_path("my_package.critics")
    'my_package.critics'
    """
    for old, new in MOVED_MODULES.items():
        if module == old or module.startswith(f"{old}."):
            return new + module[len(old) :]
    return module
