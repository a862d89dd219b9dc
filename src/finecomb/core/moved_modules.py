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


RENAMED = {
    "finecomb.annotators.coreference.resolver:sieve": "resolve_coreference",
    "finecomb.corpora.critics.synthetic:Exact": "ExactCritic",
}
"""Functions and classes with a new name, under the new path of their module."""


def current_location(module: str, name: str) -> tuple[str, str]:
    """Return the module path and the name under which stored code is imported today.

    >>> current_location("finecomb.critics.synthetic", "Exact")
    ('finecomb.corpora.critics.synthetic', 'ExactCritic')
    >>> current_location("my_package.critics", "Exact")
    ('my_package.critics', 'Exact')
    """
    for old, new in MOVED_MODULES.items():
        if module == old or module.startswith(f"{old}."):
            module = new + module[len(old) :]
            break
    return module, RENAMED.get(f"{module}:{name}", name)
