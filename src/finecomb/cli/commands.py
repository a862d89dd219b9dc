"""The table of commands, and the app that imports a command's module only when the command is called.

A new command is a function under `@app.command()` in a module of this package and one row of `COMMANDS`.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import MutableMapping
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from finecomb.version import __version__


class Panel(StrEnum):
    """The parts of a study's life, in the order in which `finecomb --help` shows them."""

    START = "Start a study"
    COLLECT = "Collect annotations from people"
    JUDGE = "Judge by machine"
    COUNT = "Count errors and compare systems"
    TRUST = "Know whom to trust"
    SHOW = "Show and look after a study"


class CommandRow(NamedTuple):
    """A command as `finecomb --help` lists it, and the module to import when it is called."""

    name: str
    """What people type."""
    module: str
    """The module of `finecomb.cli` whose import registers it with `app`."""
    panel: Panel
    """Where in the help it stands."""
    help: str
    """The first line of the function's docstring, word for word."""


COMMANDS = (
    CommandRow(
        "new", "studies", Panel.START, "Start a study: a folder with a protocol and texts, ready for annotators."
    ),
    CommandRow(
        "demo",
        "studies",
        Panel.START,
        "The whole tour on our own small study: texts with marks, counts, coverage and agreement.",
    ),
    CommandRow(
        "protocols",
        "protocols",
        Panel.START,
        "What annotators can be asked; `protocols show NAME` tells all about one.",
    ),
    CommandRow(
        "preview",
        "serve",
        Panel.START,
        "See what annotators will see: a protocol's whole way, then its own example texts. Nothing is kept.",
    ),
    CommandRow(
        "generate",
        "generate",
        Panel.START,
        "Let a model write texts from prompts, with every setting of decoding; stopped runs go on where they were.",
    ),
    CommandRow(
        "prepare",
        "prepare",
        Panel.START,
        "Prepare texts for a study: prompts, lengths, copies, duplicates and balance.",
    ),
    CommandRow("formats", "studies", Panel.START, "Every format that can be read or written."),
    CommandRow(
        "convert",
        "studies",
        Panel.START,
        "From any format to any other, checked on the way; what the target cannot hold is said.",
    ),
    CommandRow(
        "merge",
        "studies",
        Panel.START,
        "A study with the marks of others: a colleague's file, a language model's replies, another tool's export.",
    ),
    CommandRow(
        "select",
        "studies",
        Panel.START,
        "A part of a study as a study of its own: the texts, annotators, annotations and marks that fit.",
    ),
    CommandRow(
        "check",
        "studies",
        Panel.START,
        "Every problem with file, line and a way out; exit code 1 when there are errors.",
    ),
    CommandRow(
        "simulate",
        "studies",
        Panel.START,
        "Annotators with known recall, precision, jitter and confusion over known true errors.",
    ),
    CommandRow(
        "rehearse",
        "rehearse",
        Panel.START,
        "A dress rehearsal by pretended people on the real server: does the design fill, what does it cost and find?",
    ),
    CommandRow(
        "power",
        "statistics",
        Panel.START,
        "How many documents and annotators: from a pilot's variance components, by simulation.",
    ),
    CommandRow(
        "serve",
        "serve",
        Panel.COLLECT,
        "Collect annotations from people: prints the researcher's link and the annotators'.",
    ),
    CommandRow(
        "links", "serve", Panel.COLLECT, "Personal links for annotators. Each is shown once; only a hash of it is kept."
    ),
    CommandRow(
        "screen",
        "recruitment",
        Panel.COLLECT,
        "Work and people that one might not want to count, after Clark et al. (2021). Nothing is changed.",
    ),
    CommandRow(
        "exercise",
        "exercises",
        Panel.START,
        "Exercises or a test from texts of your own whose errors are known: writes the protocol with them.",
    ),
    CommandRow(
        "audit",
        "audit",
        Panel.COLLECT,
        "How many of the marks are right: draw some to be judged, and afterwards correct the counts by what was found.",
    ),
    CommandRow(
        "pay",
        "recruitment",
        Panel.COLLECT,
        "Who is to be paid what, with the platform's worker ids: keep the file to yourself.",
    ),
    CommandRow(
        "forget",
        "recruitment",
        Panel.COLLECT,
        "Remove worker ids, traces of browsers and addresses, sessions, personal links and names. The work stays.",
    ),
    CommandRow(
        "annotate",
        "annotate",
        Panel.JUDGE,
        "Let a language model annotate a study's texts; nothing it says is lost, and nothing is paid twice.",
    ),
    CommandRow(
        "prompts",
        "annotate",
        Panel.JUDGE,
        "What language models are asked: the prompt written from a protocol, and the template behind it.",
    ),
    CommandRow(
        "detectors", "detect", Panel.JUDGE, "Every detector and checker, what it needs and whose labels it uses."
    ),
    CommandRow(
        "detect",
        "detect",
        Panel.JUDGE,
        "Let a detector or checker mark every text of a study; each mark explains itself.",
    ),
    CommandRow(
        "train",
        "detect",
        Panel.JUDGE,
        "Fit a detector to a study that people have checked, and say how well it does on texts it has not seen.",
    ),
    CommandRow(
        "stress",
        "stress",
        Panel.TRUST,
        "Damage texts in known ways and measure how far each metric falls.",
    ),
    CommandRow(
        "criticize",
        "criticize",
        Panel.JUDGE,
        "Compare the structure of generated texts with that of real ones: sections, references, topics.",
    ),
    CommandRow(
        "measure",
        "statistics",
        Panel.COUNT,
        "How often and how much: coverage, counts, rates, scores, by label and by system, each with its interval.",
    ),
    CommandRow(
        "test",
        "agreement",
        Panel.COUNT,
        "Are two systems different? Can people tell human from machine? Permutation and classical tests, corrected.",
    ),
    CommandRow(
        "agree",
        "agreement",
        Panel.TRUST,
        "How far annotators agree, by label: alpha, two-agree, kappas, pairwise F1, gamma, each under its own name.",
    ),
    CommandRow(
        "gold",
        "gold",
        Panel.TRUST,
        "Merge annotators into a gold standard: errors with enough votes, the majority's label, "
        "and all that led to it.",
    ),
    CommandRow(
        "score",
        "gold",
        Panel.TRUST,
        "Recall and precision of any person, model, detector or metric against gold, with intervals.",
    ),
    CommandRow(
        "calibrate",
        "judges",
        Panel.TRUST,
        "May a judge stand in for people? Agreement, the alternative annotator test, bias, misses, probes, "
        "and an answer.",
    ),
    CommandRow(
        "validate",
        "judges",
        Panel.TRUST,
        "Does a judge's mark vanish when the error is corrected? Gold corrections written in, the judge run again.",
    ),
    CommandRow(
        "estimate",
        "judges",
        Panel.TRUST,
        "What many cheap judges and a few people say together, with intervals that hold, "
        "and what the judges were worth.",
    ),
    CommandRow(
        "rounds",
        "rounds",
        Panel.TRUST,
        "What a second pass changed: marks kept, changed, withdrawn and added, and agreement before and after.",
    ),
    CommandRow(
        "report",
        "report",
        Panel.SHOW,
        "Write a report of a study: a folder of pages with figures that also opens offline.",
    ),
    CommandRow(
        "reproduce",
        "report",
        Panel.SHOW,
        "Reproduce the tables and figures of a paper from a study, in the layout of the paper.",
    ),
    CommandRow("show", "studies", Panel.SHOW, "A text in the terminal with everybody's marks below the words."),
    CommandRow(
        "stats",
        "studies",
        Panel.SHOW,
        "What a study holds: documents, annotations, annotators, and marks by label, annotator and model.",
    ),
    CommandRow(
        "backup",
        "serve",
        Panel.SHOW,
        "A consistent copy of a study's database as one SQLite file, also while the study is served.",
    ),
    CommandRow(
        "repair",
        "serve",
        Panel.SHOW,
        "Mend stored records that cannot be read, or set them aside in a file. A backup is made first.",
    ),
    CommandRow(
        "restore", "serve", Panel.SHOW, "Put a backup in the place of a study's database. Stop the server first."
    ),
)


class LazyCommandGroup(TyperGroup):
    """A group that knows its commands by their rows and imports the module of the one that is called."""

    def __init__(self, *, commands: MutableMapping[str, Any] | None = None, **attributes: Any) -> None:
        plain = attributes | {"rich_markup_mode": "rich"}  # drawn quicker than Markdown
        super().__init__(commands=_ordered_commands(commands or {}), **plain)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name, the command itself and its arguments: called when a command is to be run or completed."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, _load_command(command), rest


class UnloadedCommand(TyperCommand):
    """A command of which only the row has been read."""

    def __init__(self, row: CommandRow) -> None:
        words = row.help.replace("`", "").replace("[", "\\[")
        super().__init__(name=row.name, callback=None, help=words, rich_help_panel=row.panel)
        self.row = row


def _ordered_commands(loaded: MutableMapping[str, Any]) -> dict[str, Any]:
    """Commands by name in the order of panels and rows, those not loaded yet as their rows."""
    rows = sorted(COMMANDS, key=lambda row: list(Panel).index(row.panel))
    commands = {row.name: loaded.get(row.name) or UnloadedCommand(row) for row in rows}
    for row in rows:
        commands[row.name].rich_help_panel = row.panel
    return commands | {name: command for name, command in loaded.items() if name not in commands}


def _load_command(command: Any) -> Any:
    if not isinstance(command, UnloadedCommand):
        return _add_output_flags(command)
    importlib.import_module(f"finecomb.cli.{command.row.module}")
    if not gc.isenabled():  # turned off by `main`: modules stay, so nobody has to look for garbage among them
        gc.freeze()
        gc.enable()
    return _add_output_flags(typer.main.get_group(app).commands[command.row.name])


def _add_output_flags(command: Any) -> Any:
    from finecomb.cli.output import with_output_flags

    for inner in getattr(command, "commands", {}).values():
        with_output_flags(inner)
    return with_output_flags(command)


def load_commands() -> None:
    """Import the module of every command, as documentation and tests need it."""
    for module in dict.fromkeys(row.module for row in COMMANDS):
        importlib.import_module(f"finecomb.cli.{module}")


app = typer.Typer(
    name="finecomb",
    cls=LazyCommandGroup,
    help="Go through generated text with a fine-tooth comb: mark errors as spans, count them, and know whom to trust.",
    epilog="Start with:  finecomb demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"finecomb {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
