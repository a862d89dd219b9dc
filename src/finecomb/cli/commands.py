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
        "Take a tour of the demo study: a text with its marks, counts, coverage and agreement.",
    ),
    CommandRow(
        "protocols",
        "protocols",
        Panel.START,
        "List the shipped protocols, which define what annotators are asked.",
    ),
    CommandRow(
        "preview",
        "serve",
        Panel.START,
        "Show what annotators will see of a protocol, from its instructions to its example texts; nothing is kept.",
    ),
    CommandRow(
        "generate",
        "generate",
        Panel.START,
        "Generate texts from prompts with a model, for each setting of the decoding parameters; stopped runs resume.",
    ),
    CommandRow(
        "prepare",
        "prepare",
        Panel.START,
        "Prepare texts for a study: prompts, lengths, copies, duplicates and balance.",
    ),
    CommandRow("formats", "studies", Panel.START, "List every format that can be read or written."),
    CommandRow(
        "convert",
        "studies",
        Panel.START,
        "Convert a study from any format to any other, checked on the way; notes list what the target cannot hold.",
    ),
    CommandRow(
        "merge",
        "studies",
        Panel.START,
        "Add annotations to a study: a colleague's file, a language model's replies, another tool's export.",
    ),
    CommandRow(
        "select",
        "studies",
        Panel.START,
        "Select a part of a study as a study of its own: the texts, annotators, annotations and marks that fit.",
    ),
    CommandRow(
        "check",
        "studies",
        Panel.START,
        "List every problem of a study with file, line and how to fix it.",
    ),
    CommandRow(
        "simulate",
        "studies",
        Panel.START,
        "Simulate annotators with known recall, precision, jitter and confusion over known true errors.",
    ),
    CommandRow(
        "rehearse",
        "rehearse",
        Panel.START,
        "Run simulated participants through the real server to check the design, the cost and the power of its tests.",
    ),
    CommandRow(
        "power",
        "statistics",
        Panel.START,
        "Plan the number of documents and annotators from a pilot's variance components, by simulation.",
    ),
    CommandRow(
        "serve",
        "serve",
        Panel.COLLECT,
        "Collect annotations from people: serve a study with a link for researchers and one for annotators.",
    ),
    CommandRow(
        "links",
        "serve",
        Panel.COLLECT,
        "Create personal links for annotators; each is shown once, and only its hash is stored.",
    ),
    CommandRow(
        "screen",
        "recruitment",
        Panel.COLLECT,
        "Find annotations and annotators that may have to be excluded; nothing is changed.",
    ),
    CommandRow(
        "exercise",
        "exercises",
        Panel.START,
        "Create exercises or a qualification test from adjudicated texts, as a protocol that contains them.",
    ),
    CommandRow(
        "audit",
        "audit",
        Panel.COLLECT,
        "Estimate the share of legitimate marks from a judged sample, and correct the counts of errors by it.",
    ),
    CommandRow(
        "pay",
        "recruitment",
        Panel.COLLECT,
        "Compute what each annotator is to be paid, with the worker IDs of the platform.",
    ),
    CommandRow(
        "forget",
        "recruitment",
        Panel.COLLECT,
        "Remove worker IDs, browser and network traces, sessions, personal links and names; annotations stay.",
    ),
    CommandRow(
        "annotate",
        "annotate",
        Panel.JUDGE,
        "Annotate a study's texts with a language model; replies are kept, and no call is paid twice.",
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
        "Mark every text of a study with a detector or checker; each mark explains itself.",
    ),
    CommandRow(
        "train",
        "detect",
        Panel.JUDGE,
        "Fit a detector to a study that people have checked, and measure it on texts left out of fitting.",
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
        "Measure coverage, counts, rates and scores by label and by system, with confidence intervals.",
    ),
    CommandRow(
        "test",
        "agreement",
        Panel.COUNT,
        "Compare systems, or human with machine text, by permutation and classical tests with corrected p values.",
    ),
    CommandRow(
        "agree",
        "agreement",
        Panel.TRUST,
        "Inter-annotator agreement by label, with confidence intervals.",
    ),
    CommandRow(
        "gold",
        "gold",
        Panel.TRUST,
        "Merge annotators into a gold standard: errors with enough votes, each with the label of the majority.",
    ),
    CommandRow(
        "score",
        "gold",
        Panel.TRUST,
        "Precision, recall and F1 of annotators, models and detectors against gold, with confidence intervals.",
    ),
    CommandRow(
        "calibrate",
        "judges",
        Panel.TRUST,
        "Decide whether a judge can replace people: agreement, alternative annotator test, bias, misses and probes.",
    ),
    CommandRow(
        "validate",
        "judges",
        Panel.TRUST,
        "Counterfactual validation: run a judge again on texts with gold corrections, and count the marks that vanish.",
    ),
    CommandRow(
        "estimate",
        "judges",
        Panel.TRUST,
        "Estimate means from judges on all texts and people on some, by prediction-powered inference.",
    ),
    CommandRow(
        "rounds",
        "rounds",
        Panel.TRUST,
        "Compare the first and the last pass over the same texts: changes to marks, and agreement before and after.",
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
    CommandRow("show", "studies", Panel.SHOW, "Show a text with the marks of all annotators below the words."),
    CommandRow(
        "stats",
        "studies",
        Panel.SHOW,
        "Count what a study holds: documents, annotations, annotators, and marks by label, annotator and model.",
    ),
    CommandRow(
        "backup",
        "serve",
        Panel.SHOW,
        "Write a consistent snapshot of a study's database as one SQLite file, also while the study is served.",
    ),
    CommandRow(
        "repair",
        "serve",
        Panel.SHOW,
        "Repair stored records that cannot be read, or set them aside in a file; a backup is made first.",
    ),
    CommandRow("restore", "serve", Panel.SHOW, "Replace a study's database by a backup; stop the server first."),
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
