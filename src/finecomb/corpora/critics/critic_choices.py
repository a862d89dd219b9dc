"""Critics that are asked for by name: shipped, saved, or of the user's own; resolved, checked and fitted."""

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
    import_attribute,
    load,
    option_names,
    required_user_code,
    save,
)

UnfittedCritic = tuple[str, dict[str, str]]
"""A critic to be fitted, by name, with what the name itself says of its options."""


def resolve_critic(name: str, prior: str, code: Sequence[str]) -> UnfittedCritic | Critic:
    """Return a critic to be fitted, or one that is fitted already."""
    if name not in CRITICS and (Path(name) / "critic.json").exists():
        return load(Path(name), code)
    if ":" in name and not isinstance(import_attribute(name, name), type):
        return "own", {"function": name, "kind": prior}
    return name, {}


def check_critics(
    wanted: Sequence[UnfittedCritic | Critic], options: Mapping[str, str], code: Sequence[str], splits: int
) -> None:
    """Refuse code, options and splits that no critic can use, before a critic is fitted."""
    needed = [name for choice in wanted if isinstance(choice, Critic) for name in required_user_code(choice)]
    for name in code:
        if name not in needed:
            raise ParameterError(
                f"{param('code', name)}: no saved critic among those named with {param('critic')} needs it",
                parameter="code",
            )
    names = [option for choice in wanted if isinstance(choice, tuple) for option in _fit_options(choice)]
    for option in options:
        if option not in names:
            raise ParameterError(
                f"{param('set_', option)}: no critic that is to be fitted has it{did_you_mean(option, names)}",
                parameter="set_",
            )
    if splits > 1 and any(isinstance(choice, Critic) for choice in wanted):
        raise ParameterError(
            f"{param('splits', splits)}: a critic that came fitted cannot be fitted to other documents",
            parameter="splits",
        )


def _fit_options(wanted: UnfittedCritic) -> list[str]:
    return option_names(critic_class(wanted[0]).fit)


def fit_critics(
    wanted: Sequence[UnfittedCritic | Critic], corpora: CriticCorpora, options: Mapping[str, str]
) -> Iterator[Critic]:
    """Yield every critic, fitted with those of the options that it has."""
    documents: list[Document] = []
    if any(isinstance(choice, tuple) for choice in wanted):
        documents = corpora.fitting_documents()
    for choice in wanted:
        if isinstance(choice, Critic):
            yield choice
        else:
            name, extra = choice
            known = _fit_options(choice)
            own = {option: value for option, value in options.items() if option in known}
            yield fit_critic(name, documents, corpora.seed, own | extra)


def save_critics(critics: Sequence[Critic], folder: Path) -> list[Path]:
    """Save a fitted critic in a folder, or each of several in a subfolder of its name; return the folders."""
    folders = [folder if len(critics) == 1 else folder / critic.name for critic in critics]
    for critic, place in zip(critics, folders, strict=True):
        save(critic, place)
    return folders
