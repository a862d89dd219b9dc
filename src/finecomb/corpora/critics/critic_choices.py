"""Selection of critics by name (built-in, saved or user-defined), with checks and fitting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.records import Document
from finecomb.corpora.critics.base import Critic
from finecomb.corpora.critics.critic_corpora import CriticCorpora
from finecomb.corpora.critics.criticism import fit_critic
from finecomb.corpora.critics.storage import (
    CRITICS,
    critic_class,
    fit_option_names,
    import_attribute,
    load,
    required_user_code,
    save,
)

UnfittedCritic = tuple[str, dict[str, str]]
"""Critic to fit: its name, and the options that the name implies."""


def resolve_critic(name: str, prior: str, code: Sequence[str]) -> UnfittedCritic | Critic:
    """Return the name and options of a critic to fit, or a saved critic that is already fitted."""
    if name not in CRITICS and (Path(name) / "critic.json").exists():
        return load(Path(name), code)
    if ":" in name and not isinstance(import_attribute(name, name), type):
        return "own", {"function": name, "kind": prior}
    return name, {}


def check_critics(
    wanted: Sequence[UnfittedCritic | Critic], options: Mapping[str, str], code: Sequence[str], splits: int
) -> None:
    """Before fitting, reject code, options and splits that no requested critic can use."""
    needed = [name for choice in wanted if isinstance(choice, Critic) for name in required_user_code(choice)]
    for name in code:
        if name not in needed:
            raise ParameterError(
                f"{param('code', name)} is not used by any saved critic in {param('critic')}; omit it",
                parameter="code",
            )
    names = [option for choice in wanted if isinstance(choice, tuple) for option in _fit_option_names(choice)]
    for option in options:
        if option not in names:
            raise ParameterError(
                f"{param('set_', option)}: none of the selected critics has this option{did_you_mean(option, names)}",
                parameter="set_",
            )
    if splits > 1 and any(isinstance(choice, Critic) for choice in wanted):
        raise ParameterError(
            f"{param('splits', splits)} cannot be used with a saved critic, which is already fitted",
            parameter="splits",
        )


def _fit_option_names(wanted: UnfittedCritic) -> list[str]:
    return fit_option_names(critic_class(wanted[0]).fit)


def fit_critics(
    wanted: Sequence[UnfittedCritic | Critic], corpora: CriticCorpora, options: Mapping[str, str]
) -> Iterator[Critic]:
    """Yield each critic, fitted with the options that apply to it."""
    documents: list[Document] = []
    if any(isinstance(choice, tuple) for choice in wanted):
        documents = corpora.fitting_documents()
    for choice in wanted:
        if isinstance(choice, Critic):
            yield choice
        else:
            name, extra = choice
            known = _fit_option_names(choice)
            applicable = {option: value for option, value in options.items() if option in known}
            yield fit_critic(name, documents, corpora.seed, applicable | extra)


def save_critics(critics: Sequence[Critic], folder: Path) -> list[Path]:
    """Save one critic in `folder`, or several in subfolders with their names, and return the folders."""
    folders = [folder if len(critics) == 1 else folder / critic.name for critic in critics]
    for critic, critic_folder in zip(critics, folders, strict=True):
        save(critic, critic_folder)
    return folders
