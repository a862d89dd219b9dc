"""The table of commands, and the app that imports a command's module when the command is called.

To add a command, write a function under `@app.command()` in a module of this package and add a row to `COMMANDS`.
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

from finecomb.version import signature_version


class Panel(StrEnum):
    """Groups of commands by task, in the order in which `finecomb --help` shows them."""

    COMMON = "Most used"
    CREATE = "Create and import"
    PEOPLE = "Collect from people"
    MODELS = "Collect from models"
    ANALYSE = "Analyse"
    JUDGES = "Validate judges"
    REPORT = "Report"
    MAINTAIN = "Maintain"


class CommandRow(NamedTuple):
    """A command as listed by `finecomb --help`, and the module to import when the command is called."""

    name: str
    """Name on the command line."""
    module: str
    """Module of `finecomb.cli` that registers the command with `app` when it is imported."""
    panel: Panel
    """Group in `finecomb --help`."""
    help: str
    """First line of the function's docstring, verbatim; a test compares the two."""


COMMANDS = (
    CommandRow(
        "demo",
        "studies",
        Panel.COMMON,
        "Take a tour of the demo study: a text with its marks, counts, coverage and agreement.",
    ),
    CommandRow(
        "new", "studies", Panel.COMMON, "Create a study: a folder with a protocol and texts, ready for annotators."
    ),
    CommandRow(
        "convert",
        "studies",
        Panel.CREATE,
        "Convert a study to another format; the study is checked, and notes list what the new format cannot store.",
    ),
    CommandRow(
        "import",
        "imports",
        Panel.COMMON,
        "Import texts, marks, answers or scores from a table, JSON file or log, and report what was read and left out.",
    ),
    CommandRow(
        "serve",
        "serve",
        Panel.COMMON,
        "Collect annotations from people: serve a study with a link for researchers and one for annotators.",
    ),
    CommandRow(
        "annotate",
        "annotate",
        Panel.COMMON,
        "Annotate a study's texts with a language model; replies are stored, and no call is paid for twice.",
    ),
    CommandRow(
        "measure",
        "statistics",
        Panel.COMMON,
        "Measure coverage, counts, rates and scores by label and by system, with confidence intervals.",
    ),
    CommandRow("agree", "agreement", Panel.COMMON, "Inter-annotator agreement by label, with confidence intervals."),
    CommandRow(
        "report",
        "report",
        Panel.COMMON,
        "Write a report on a study: a folder of HTML pages with figures, which you can open offline.",
    ),
    CommandRow("next", "studies", Panel.CREATE, "Suggest the next commands for a study, each with its reason."),
    CommandRow(
        "merge",
        "studies",
        Panel.CREATE,
        "Add annotations to a study from a colleague's file, a language model's replies or another tool's export.",
    ),
    CommandRow(
        "edit",
        "studies",
        Panel.CREATE,
        "Change the texts, protocol or settings of a study; annotations stay with the version they were made on.",
    ),
    CommandRow(
        "select",
        "studies",
        Panel.CREATE,
        "Create a new study from the texts, annotators, annotations and marks that match the conditions.",
    ),
    CommandRow(
        "check",
        "studies",
        Panel.CREATE,
        "List all problems in a study, each with its file, line and fix.",
    ),
    CommandRow("show", "studies", Panel.CREATE, "Show a text with the marks of all annotators below its words."),
    CommandRow(
        "stats",
        "studies",
        Panel.CREATE,
        "Count the documents, annotations and annotators of a study, and its marks by label, annotator and model.",
    ),
    CommandRow("formats", "studies", Panel.CREATE, "List every format that can be read or written."),
    CommandRow(
        "protocols", "protocols", Panel.CREATE, "List the shipped protocols, which define what annotators are asked."
    ),
    CommandRow(
        "preview",
        "serve",
        Panel.CREATE,
        "Show the pages of a protocol as annotators see them, from instructions to example texts; nothing is stored.",
    ),
    CommandRow(
        "prepare",
        "prepare",
        Panel.CREATE,
        "Prepare texts for a study: derive prompts, cut to length, drop copies and duplicates, and balance groups.",
    ),
    CommandRow(
        "generate",
        "generate",
        Panel.CREATE,
        "Generate texts from prompts with a model, for each combination of decoding parameters; runs can be resumed.",
    ),
    CommandRow(
        "simulate",
        "studies",
        Panel.CREATE,
        "Simulate annotators with known recall, precision, jitter and confusion on texts with known errors.",
    ),
    CommandRow(
        "links",
        "serve",
        Panel.PEOPLE,
        "Create personal links for annotators; each link is shown once, and only its hash is stored.",
    ),
    CommandRow(
        "rehearse",
        "rehearse",
        Panel.PEOPLE,
        "Run simulated participants through the real server to check a study's design, cost and statistical power.",
    ),
    CommandRow(
        "exercise",
        "exercises",
        Panel.PEOPLE,
        "Create a protocol with exercises or a qualification test from adjudicated texts.",
    ),
    CommandRow(
        "screen",
        "recruitment",
        Panel.PEOPLE,
        "List annotations and annotators that you may want to exclude; nothing is changed.",
    ),
    CommandRow(
        "audit",
        "audit",
        Panel.PEOPLE,
        "Estimate the share of legitimate marks from an audited sample, and correct the error counts.",
    ),
    CommandRow(
        "pay",
        "recruitment",
        Panel.PEOPLE,
        "Compute the pay of each annotator, with the platform's worker IDs.",
    ),
    CommandRow(
        "forget",
        "recruitment",
        Panel.PEOPLE,
        "Remove worker IDs, browser and network traces, sessions, personal links and names; annotations are kept.",
    ),
    CommandRow(
        "prompts",
        "annotate",
        Panel.MODELS,
        "Show, export or attack the prompt that language models receive for a protocol.",
    ),
    CommandRow(
        "runs",
        "annotate",
        Panel.MODELS,
        "List every machine run of a study: settings, cost, replies and which is in force.",
    ),
    CommandRow(
        "models", "models", Panel.MODELS, "List the models of a provider, or test one of them with a few cheap calls."
    ),
    CommandRow(
        "prices",
        "models",
        Panel.MODELS,
        "List the prices of models in a price file, which you edit; no prices are shipped.",
    ),
    CommandRow("detectors", "detect", Panel.MODELS, "List detectors and checkers, with their labels and requirements."),
    CommandRow(
        "detect",
        "detect",
        Panel.MODELS,
        "Mark errors in all texts of a study with a detector or checker; each mark has an explanation.",
    ),
    CommandRow(
        "train",
        "detect",
        Panel.MODELS,
        "Fit a detector to a study with gold annotations, and evaluate it on held-out texts.",
    ),
    CommandRow(
        "test",
        "agreement",
        Panel.ANALYSE,
        "Compare systems, or human with machine text, by permutation and classical tests with corrected p-values.",
    ),
    CommandRow(
        "power",
        "statistics",
        Panel.ANALYSE,
        "Plan the number of documents and annotators from a pilot's variance components, by simulation.",
    ),
    CommandRow(
        "rounds",
        "rounds",
        Panel.ANALYSE,
        "Compare the first and the last pass over the same texts: changes to marks, and agreement before and after.",
    ),
    CommandRow(
        "criticize",
        "criticize",
        Panel.ANALYSE,
        "Compare the structure of generated texts with that of real texts: sections, coreference and topics.",
    ),
    CommandRow(
        "stress",
        "stress",
        Panel.ANALYSE,
        "Corrupt texts in known ways and measure how much the score of each metric falls.",
    ),
    CommandRow(
        "gold",
        "gold",
        Panel.JUDGES,
        "Merge annotations into a gold standard: errors with enough votes, each with its majority label.",
    ),
    CommandRow(
        "score",
        "gold",
        Panel.JUDGES,
        "Precision, recall and F1 of annotators, models and detectors against gold, with confidence intervals.",
    ),
    CommandRow(
        "calibrate",
        "judges",
        Panel.JUDGES,
        "Decide whether a judge can replace people: agreement, alternative annotator test, bias, misses and probes.",
    ),
    CommandRow(
        "validate",
        "judges",
        Panel.JUDGES,
        "Counterfactual validation: rerun a judge on gold-corrected texts, and count the marks that disappear.",
    ),
    CommandRow(
        "estimate",
        "judges",
        Panel.JUDGES,
        "Estimate means by prediction-powered inference: judges annotate all texts, people only some of them.",
    ),
    CommandRow(
        "reproduce",
        "report",
        Panel.REPORT,
        "Reproduce the tables and figures of a paper from a study, in the layout of the paper.",
    ),
    CommandRow(
        "backup",
        "serve",
        Panel.MAINTAIN,
        "Write a consistent snapshot of a study's database to one SQLite file, even while the study is being served.",
    ),
    CommandRow("restore", "serve", Panel.MAINTAIN, "Replace a study's database with a backup; stop the server first."),
    CommandRow(
        "plugins",
        "plugins",
        Panel.MAINTAIN,
        "List all extensions with the package that adds them: formats, protocols, statistics, detectors and others.",
    ),
    CommandRow(
        "repair",
        "serve",
        Panel.MAINTAIN,
        "Repair stored records that cannot be read, or set them aside in a file; a backup is made first.",
    ),
)


class LazyCommandGroup(TyperGroup):
    """A group that lists commands from `COMMANDS` and imports only the module of the command that is called."""

    def __init__(self, *, commands: MutableMapping[str, Any] | None = None, **attributes: Any) -> None:
        # Commands in the order of panels and rows, with placeholders for those not loaded yet
        loaded = commands or {}
        rows = sorted(COMMANDS, key=lambda row: list(Panel).index(row.panel))
        ordered: dict[str, Any] = {row.name: loaded.get(row.name) or UnloadedCommand(row) for row in rows}
        for row in rows:
            ordered[row.name].rich_help_panel = row.panel
        ordered |= {name: command for name, command in loaded.items() if name not in ordered}
        plain = attributes | {"rich_markup_mode": "rich"}  # faster to render than Markdown
        super().__init__(commands=ordered, **plain)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load a command to run or complete; return its name, the command and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, UnloadedCommand):
            importlib.import_module(f"finecomb.cli.{command.row.module}")
            # `main` disables collection while modules load; frozen modules are never scanned for garbage
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            command = typer.main.get_group(app).commands[command.row.name]
        return name, _add_output_flags(command), rest


class UnloadedCommand(TyperCommand):
    """A command whose module has not been imported yet."""

    def __init__(self, row: CommandRow) -> None:
        words = row.help.replace("`", "").replace("[", "\\[")
        super().__init__(name=row.name, callback=None, help=words, rich_help_panel=row.panel)
        self.row = row


def _add_output_flags(command: Any) -> Any:
    from finecomb.cli.help import fold_rare_flags
    from finecomb.cli.output import with_output_flags

    for inner in getattr(command, "commands", {}).values():
        with_output_flags(inner)
    return fold_rare_flags(with_output_flags(command))


def load_commands() -> None:
    """Import the module of every command, for documentation and tests."""
    for module in dict.fromkeys(row.module for row in COMMANDS):
        importlib.import_module(f"finecomb.cli.{module}")


app = typer.Typer(
    name="finecomb",
    cls=LazyCommandGroup,
    help="Mark errors in generated text as spans, measure them, and validate the judges that mark them.",
    epilog="Start with:  finecomb demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"finecomb {signature_version()}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
