"""The documentation is true: what it shows is run, its tables are made from the code, and it leaves nothing out.

- A ```` ```console ```` block is run: a line after `$ ` is a command, the lines below it are what it prints. `...` on a
  line of its own stands for any lines. ```` ```console no-run ```` is not run.
- Blocks with `>>>` are doctests. The blocks of a page run in order, in one folder.
- A block with `title="texts.csv"` is written to that file before anything runs.
- `<!-- table: NAME -->` and `<!-- end of table -->` enclose a table of `docs_tables`.

`python -m tests.test_docs` writes what commands print and what tables say into the pages.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import finecomb as fc
from finecomb import formats, protocols
from finecomb.core import frames
from finecomb.version import __version__
from tests.docs_tables import MARKER, TABLES, commands_by_name

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("**/*.md")), ROOT / "README.md"]
FIRST_PAGES = {"README.md", "index.md", "start.md", "three-systems.md", "model.md", "errors.md"}
"""The pages that a newcomer reads first are run by every test run, the others by the long one."""
MAY_RUN = ("finecomb", "cat", "head", "ls")

_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')


# --- reading a page ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    info: str
    body: str
    line: int
    """Of its first line in the page, counted from 1."""

    @property
    def title(self) -> str:
        found = _TITLE.search(self.info)
        return found[1] if found else ""

    @property
    def runs(self) -> bool:
        return self.info.split()[:1] == ["console"] and "no-run" not in self.info.split()

    @property
    def is_doctest(self) -> bool:
        return self.body.lstrip().startswith(">>> ")


@dataclass(frozen=True)
class Command:
    """A command of a console block with what the page says it prints."""

    words: str
    expected: tuple[str, ...]
    line: int


def blocks(page: str) -> Iterator[Block]:
    for match in _FENCE.finditer(page):
        yield Block(match["info"].strip(), match["body"], page.count("\n", 0, match.start("body")) + 1)


def commands_of(block: Block) -> Iterator[Command]:
    lines = block.body.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"line {block.line}: a console block begins with a command after '$ '"
    for start, end in itertools.pairwise([*starts, len(lines)]):
        yield Command(lines[start][2:], _neat(lines[start + 1 : end]), block.line + start)


def _neat(lines: list[str]) -> tuple[str, ...]:
    """Lines without white space at their ends and without empty lines at the end."""
    stripped = [line.rstrip() for line in lines]
    while stripped and not stripped[-1]:
        stripped.pop()
    return tuple(stripped)


def agrees(expected: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Whether `printed` is what was expected, `...` standing for any number of lines."""
    chunks = [list(chunk) for dots, chunk in itertools.groupby(expected, lambda line: line == "...") if not dots]
    open_start, open_end = expected[:1] == ("...",), expected[-1:] == ("...",)
    if "..." not in expected:
        return expected == printed
    at = 0
    for number, chunk in enumerate(chunks):
        last = number == len(chunks) - 1
        places = [
            place for place in range(at, len(printed) - len(chunk) + 1) if list(printed[place:][: len(chunk)]) == chunk
        ]
        if number == 0 and not open_start:
            places = [place for place in places if place == 0]
        if last and not open_end:
            places = [place for place in places if place + len(chunk) == len(printed)]
        if not places:
            return False
        at = places[0] + len(chunk)
    return True


# --- running it --------------------------------------------------------------------------------------------------


def printed_by(command: Command, folder: Path) -> tuple[str, ...]:
    """What a command prints, standard output and standard error as they come."""
    program, *arguments = shlex.split(command.words)
    assert program in MAY_RUN, f"{program!r} is not among {MAY_RUN}; mark the block `console no-run`"
    if program == "finecomb":
        program = str(Path(sys.executable).with_name("finecomb"))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "PYTHONPATH") if name in os.environ}
    look = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    run = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=kept | look | {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert "Traceback (most recent call last)" not in run.stdout, f"$ {command.words}\n{run.stdout}"
    # A signature of a development install ends with its commit; pages show that of a release.
    return _neat(re.sub(rf"(?<={re.escape(__version__)})\+g[0-9a-f]{{7}}(?:\.\w+)?", "", run.stdout).splitlines())


def write_files(page: str, folder: Path) -> None:
    titled = [block for block in blocks(page) if block.title]
    names = [block.title for block in titled]
    assert len(set(names)) == len(names), f"two blocks have the same title: {names}"
    for block in titled:
        target = folder / block.title
        assert target.resolve().is_relative_to(folder.resolve()), f"{block.title} lies outside the page's folder"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.body, encoding="utf-8")


def run_doctest(block: Block, name: str, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.body, names, name, name, block.line - 1)
    test.globs = names  # shared by the blocks of a page
    told: list[str] = []
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append, clear_globs=False).failed
    assert not failed, "".join(told)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.name, marks=() if path.name in FIRST_PAGES else pytest.mark.long) for path in PAGES],
)
def test_what_a_page_shows_is_what_happens(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = path.read_text(encoding="utf-8")
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLARS_TABLE_WIDTH", "100")
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.is_doctest:
            run_doctest(block, path.name, names)
        elif block.runs:
            for command in commands_of(block):
                printed = printed_by(command, tmp_path)
                if not agrees(command.expected, printed):
                    shown = "\n".join(command.expected), "\n".join(printed)
                    assert shown[0] == shown[1], f"{path.name}:{command.line}: $ {command.words}"


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a b", "a b", True),
        ("a b", "a b c", False),
        ("", "", True),
        ("", "a", False),
        ("...", "", True),
        ("... b", "a b", True),
        ("... b", "a b c", False),
        ("a ...", "a b c", True),
        ("a ... c", "a b b c", True),
        ("a ... c ... e", "a c e", True),
        ("a ... c ... e", "a e", False),
        ("a ... a", "a", False),
        ("... c", "c b c", True),
    ],
)
def test_dots_stand_for_any_lines(expected: str, printed: str, same: bool) -> None:
    assert agrees(tuple(expected.split()), tuple(printed.split())) == same


def test_no_block_is_hidden_by_its_indentation() -> None:
    indented = re.compile(r"^[ \t]+```", re.MULTILINE)
    assert [path.name for path in PAGES if indented.search(path.read_text(encoding="utf-8"))] == []


# --- tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_tables_made_from_the_code_are_fresh(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    found = list(MARKER.finditer(page))
    assert len(found) == page.count("<!-- table:"), "a marker stands wrong; see the top of this file"
    for match in found:
        assert match["table"].strip() == TABLES[match["name"]](), f"{match['name']}: run `python -m tests.test_docs`"


def test_every_frame_has_its_table_in_the_model_page() -> None:
    tables = {match["name"] for match in MARKER.finditer(_page("model.md"))}
    assert tables >= {f"frame {name}" for name in frames.COLUMNS_BY_FRAME}


# --- nothing is left out -----------------------------------------------------------------------------------------


def _page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _headings(name: str) -> set[str]:
    return set(re.findall(r"^##+ `([^`]+)`", _page(name), re.MULTILINE))


def test_every_command_is_described() -> None:
    assert _headings("commands.md") == {f"finecomb {name}" for name in commands_by_name()}
    tables = {match["name"] for match in MARKER.finditer(_page("commands.md"))}
    assert tables == {f"options {name}" for name, command in commands_by_name().items() if command.params}


def test_every_protocol_is_described() -> None:
    assert _headings("protocols.md") == set(protocols.names())


def test_every_format_is_described() -> None:
    assert _headings("formats.md") == set(formats.FORMATS)


def test_every_public_name_is_in_the_api_reference() -> None:
    described = re.findall(r"^\.\. auto(?:function|class):: (\w+)$", _page("api.md"), re.MULTILINE)
    assert len(described) == len(set(described))
    assert set(described) == set(dir(fc)) - {"__version__"}


def test_every_dependency_is_justified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = itertools.chain.from_iterable(project["project"]["optional-dependencies"].values())
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras]
    names = {re.split(r"[\[<>=!~; ]", each)[0].lower() for each in asked} - {"finecomb"}
    assert set(re.findall(r"^\| `([^`]+)` \|", _page("dependencies.md"), re.MULTILINE)) == names


def navigation() -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(_page("navigation.yml"))
    return config


def titles_by_file(entries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the file and the title of every page below some entries of the navigation."""
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, str):
            yield target, title
        elif isinstance(target, list):
            yield from titles_by_file(target)
        else:
            ((file, below),) = target.items()
            yield file, title
            yield from titles_by_file(below)


def test_every_page_is_in_the_navigation_once_under_a_section() -> None:
    entries = navigation()["nav"]
    assert [next(iter(entry)) for entry in entries] == [
        "Get started",
        "Tutorials",
        "How-to",
        "Explanation",
        "Reference",
    ]
    listed = [file for file, _ in titles_by_file(entries)]
    pages = [path.relative_to(DOCS).as_posix() for path in PAGES if path.is_relative_to(DOCS)]
    assert sorted([*listed, "index.md"]) == sorted(pages)


def test_the_title_of_a_page_is_its_first_heading() -> None:
    for file, title in titles_by_file(navigation()["nav"]):
        page = _page(file)
        assert page.startswith(f"# {title}\n"), file
        assert len(re.findall(r"^# ", _FENCE.sub("", page), re.MULTILINE)) == 1, file


def test_the_citation_names_this_version_and_five_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert len([each for each in citation["references"] if each["type"] == "conference-paper"]) == 5


SEARCHES = {
    "inter-annotator agreement": "statistics/alpha.md",
    "kappa": "statistics/kappa.md",
    "encoding": "formats.md",
    "LaTeX": "papers.md",
    "LLM judge": "judges/calibrate.md",
    "Prolific": "recruiting.md",
    "resume": "language-models.md",
    "offsets": "model.md",
    "bootstrap": "measures.md",
    "Label Studio": "tutorials/import.md",
}
"""Phrases that readers type, and the page that search must list first."""


def test_the_site_is_self_contained_and_its_search_finds_the_right_pages(tmp_path: Path) -> None:
    """One test, since building the site takes most of its time."""
    site = tmp_path / "site"
    build = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "docs", str(site)]
    run = subprocess.run(build, cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=180)
    assert run.returncode == 0, run.stdout + run.stderr
    fetched = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    for page in site.glob("**/*.html"):
        assert fetched.findall(page.read_text(encoding="utf-8")) == [], page.name
    if node := shutil.which("node"):
        expected = navigation()["search"] | SEARCHES
        search = [node, str(ROOT / "tests" / "site_search.js"), str(site), *expected]
        found = subprocess.run(search, capture_output=True, encoding="utf-8", check=True, timeout=60).stdout
        assert dict(zip(expected, (f"{name}.md" for name in json.loads(found)), strict=True)) == expected


# --- commands that are not run -----------------------------------------------------------------------------------

_SPAN = re.compile(r"`(finecomb [^`]+)`")
_NAMES = re.compile(r"^[A-Z0-9_]+$")
COMMANDS = commands_by_name()


def unrun_commands(page: str) -> Iterator[str]:
    """Lines after `$ finecomb` of blocks that are not run, with what follows a backslash, and commands in the prose."""
    for match in _FENCE.finditer(page):
        block = Block(match["info"].strip(), match["body"], 0)
        if block.info.startswith("console") and not block.runs:
            body = re.sub(r"\\\n\s*", "", block.body)
            yield from re.findall(r"^\$ (?:\S*/)?(finecomb .*)$", body, re.MULTILINE)
    yield from (words.replace("\n", " ") for words in _SPAN.findall(_FENCE.sub("", page)))


def wrong_options(words: str) -> list[str]:
    """Options of a `finecomb` line that its command does not have."""
    parts = shlex.split(words.split(" | ")[0].split(" && ")[0], comments=True)[1:]
    name = next((" ".join(parts[:size]) for size in (2, 1) if " ".join(parts[:size]) in COMMANDS), "")
    if not name:
        groups = {known.partition(" ")[0] for known in COMMANDS}
        is_known = not parts or parts[0] in groups or parts[0].startswith("-") or _NAMES.match(parts[0])
        return [] if is_known else [parts[0]]
    known = {option for flag in COMMANDS[name].params for option in (*flag.opts, *flag.secondary_opts)}
    used = [part.partition("=")[0] for part in parts if re.match(r"--?[a-zA-Z]", part)]
    return [option for option in used if option not in {*known, "--help", "-h"}]


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.stem)
def test_commands_that_are_not_run_have_the_options_that_they_show(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert [(words, wrong) for words in unrun_commands(page) if (wrong := wrong_options(words))] == []


# --- options and functions named in prose ------------------------------------------------------------------------

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_FUNCTION = re.compile(r"\bfc\.(?!NAME\b)(\w+)(\.?)")
_DOTTED_NAME = re.compile(r"^(finecomb(?:\.\w+)+)(?:\(\))?$")
OTHER_PROGRAMS = (
    "pip ",
    "mypy",
    "python -m",
    "uvicorn",
    "docker",
    "podman",
    "ray ",
    "apt-get",
    "mandoc",
    "make ",
    "npm ",
)


def wrong_prose_options(page: str) -> list[str]:
    """Return the options between backticks that no command has. Lines of other programs do not count."""
    known = {
        option
        for command in COMMANDS.values()
        for flag in command.params
        for option in (*flag.opts, *flag.secondary_opts)
    }
    spans = (span for span in _CODE.findall(_FENCE.sub("", page)) if not span.startswith(OTHER_PROGRAMS))
    return [
        option for span in spans for option in _OPTION.findall(span) if option not in {*known, "--help", "--version"}
    ]


def wrong_names(page: str) -> list[str]:
    """Return names after `fc.` and dotted names that do not exist, and modules named as if they were functions."""
    wrong = []
    for name, dot in _FUNCTION.findall(page):
        found = getattr(fc, name, None)
        wrong += [f"fc.{name}"] if found is None or (isinstance(found, ModuleType) and not dot) else []
    dotted = (match[1] for span in _CODE.findall(_FENCE.sub("", page)) if (match := _DOTTED_NAME.match(span)))
    return wrong + [name for name in dotted if not _exists(name)]


def _exists(dotted: str) -> bool:
    module, _, last = dotted.rpartition(".")
    try:
        importlib.import_module(dotted)
    except ImportError:
        return bool(module) and _exists(module) and hasattr(importlib.import_module(module), last)
    return True


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.stem)
def test_options_and_functions_named_in_prose_exist(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert wrong_prose_options(page) == []
    assert wrong_names(page) == []


def test_an_option_or_a_function_in_prose_that_does_not_exist_is_noticed() -> None:
    assert wrong_prose_options("Pass `--map score=COLUMN --nonsuch 3`, or `pip install --pre finecomb`.") == [
        "--nonsuch"
    ]
    assert wrong_names("Call `fc.nonsuch(study)` or `fc.agree(study)`; see `finecomb.nonsuch`.") == [
        "fc.nonsuch",
        "finecomb.nonsuch",
    ]
    assert wrong_names("`fc.version` is a module; `fc.version.__version__` is a text.") == ["fc.version"]


@pytest.mark.parametrize("option", ["--where", "--drop"])
def test_the_page_about_choosing_names_every_command_that_chooses(option: str) -> None:
    (item,) = re.findall(rf"^- `{option}` is .*?\.$", _page("selection.md"), re.MULTILINE | re.DOTALL)
    having = {name for name, command in COMMANDS.items() if any(option in flag.opts for flag in command.params)}
    assert set(re.findall(r"`(\w+)`", item)) == having


def test_an_option_that_a_command_does_not_have_is_noticed() -> None:
    assert wrong_options("finecomb stats study --by model --nonsuch") == ["--nonsuch"]
    assert wrong_options("finecomb nonsuch study") == ["nonsuch"]


def test_every_example_in_a_help_text_has_the_options_that_it_shows() -> None:
    examples = [words for command in COMMANDS.values() for words in _SPAN.findall(command.help or "")]
    assert len(examples) >= len(COMMANDS) - 5
    assert [(words, wrong) for words in examples if (wrong := wrong_options(words))] == []


# --- writing it again --------------------------------------------------------------------------------------------


def refreshed(path: Path) -> str:
    """The page with fresh tables and with what its commands print now; what `...` stands for is left alone."""
    page = path.read_text(encoding="utf-8")
    page = MARKER.sub(
        lambda match: f"<!-- table: {match['name']} -->\n\n{TABLES[match['name']]()}\n\n<!-- end of table -->", page
    )
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files(page, Path(folder))
        return _FENCE.sub(lambda match: _rerun(match, Path(folder), path.name, names), page)


def _rerun(match: re.Match[str], folder: Path, name: str, names: dict[str, Any]) -> str:
    block = Block(match["info"].strip(), match["body"], 0)
    if block.is_doctest:  # commands below it may read what it writes
        with contextlib.suppress(AssertionError):
            run_doctest(block, name, names)
    if not block.runs:
        return match[0]
    lines: list[str] = []
    for command in commands_of(block):
        printed = printed_by(command, folder)
        same = agrees(command.expected, printed)
        if not same and "..." in command.expected:
            print(f"{name}: edit by hand: $ {command.words}")
        lines += [f"$ {command.words}", *(command.expected if same or "..." in command.expected else printed)]
    return f"{match['ticks']}{match['info']}\n" + "\n".join(lines) + f"\n{match['ticks']}"


if __name__ == "__main__":
    chosen = [path for path in PAGES if not sys.argv[1:] or any(path.match(name) for name in sys.argv[1:])]
    for each in chosen:
        before = each.read_text(encoding="utf-8")
        if (after := refreshed(each)) != before:
            each.write_text(after, encoding="utf-8")
            print(f"{each.name}: written")
