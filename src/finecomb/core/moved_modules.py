"""Current locations of modules, functions and classes that critics saved by earlier versions refer to."""

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
"""New module paths by old path, most specific path first."""


RENAMED_OBJECTS = {
    "finecomb.annotators.coreference.resolver:sieve": "resolve_coreference",
    "finecomb.corpora.critics.synthetic:Exact": "ExactCritic",
}
"""New names of functions and classes, by the new path of their module and their old name."""


def current_location(module: str, name: str) -> tuple[str, str]:
    """Return the current module path and name of a function or class that a saved critic refers to.

    >>> current_location("finecomb.critics.synthetic", "Exact")
    ('finecomb.corpora.critics.synthetic', 'ExactCritic')
    >>> current_location("my_package.critics", "Exact")
    ('my_package.critics', 'Exact')
    """
    for old, new in MOVED_MODULES.items():
        if module == old or module.startswith(f"{old}."):
            module = new + module[len(old) :]
            break
    return module, RENAMED_OBJECTS.get(f"{module}:{name}", name)
