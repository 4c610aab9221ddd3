"""What the documents show is true: examples print what stands there, commands are accepted and, where cheap, run."""

from __future__ import annotations

import ast
import doctest
import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from cli.commands import COMMANDS, accept, flags_of
from cli.run import crowdveil

from crowdveil.cli import command_names
from crowdveil.inference import METHODS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MANUAL = ROOT / "docs" / "reference" / "commands"
OUTPUT = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# These need a broker, a cluster, the papers' data or half a minute; other tests run them.
NOT_HERE = ("study", "answer", "serve", "backup", "restore", "verify-client", "bench", "reproduce", "demo")
NOT_SO = ("--engine spark", "--all", "matrix-factorization", "suspect:", "ill.csv")


@dataclass(frozen=True)
class Block:
    """A piece of code on a page, and the line of text that introduces it."""

    before: str
    language: str
    text: str


@dataclass(frozen=True)
class Shown:
    """A command as a reader would type it, and what the page says it prints (empty: the page does not say)."""

    words: list[str]
    output: str
    into: str

    @property
    def runs(self) -> bool:
        line = " ".join(self.words)
        return self.words[0] not in NOT_HERE and not any(words in line for words in NOT_SO)


def blocks_of(page: Path) -> list[Block]:
    found = re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [Block(introduction(page, each.start()), each[2], dedented(each[3], each[1])) for each in found]


def introduction(page: Path, end: int) -> str:
    return page.read_text()[:end].strip().rpartition("\n\n")[2]


def dedented(text: str, margin: str) -> str:
    return "".join(line.removeprefix(margin) for line in text.splitlines(keepends=True))


def is_synopsis(page: Path, block: Block) -> bool:
    return page.parent == MANUAL and block == blocks_of(page)[0]


def commands_of(page: Path) -> list[Shown]:
    code = [block for block in blocks_of(page) if not block.language and not is_synopsis(page, block)]
    return [shown for block in code for shown in commands_in(block.text)]


def commands_in(text: str) -> list[Shown]:
    """Each line that starts with the command's name; after a prompt, the lines that follow are what it prints."""
    lines = re.split(r"\n(?=\$ |\S*crowdveil |[a-z_]+=)", text.replace("\\\n", " "))
    return [shown_in(line) for line in lines if re.match(r"(\$ )?crowdveil ", line) and "…" not in line.split("\n")[0]]


def shown_in(text: str) -> Shown:
    line, _, output = text.partition("\n")
    words, _, into = line.removeprefix("$ ").partition(" > ")
    return Shown(shlex.split(words, comments=True)[1:], output, into.strip())


def files_of(page: Path) -> dict[str, str]:
    """The files a page tells its reader to have: Python with its name on the first line, tables named just before."""
    named = {}
    for block in blocks_of(page):
        python = re.match(r"# (\w+\.py)\n", block.text)
        table = re.search(r"`(\w+\.csv)`:$", block.before)
        if python and block.language == "python":
            named[python[1]] = block.text
        elif table:
            named[table[1]] = block.text
    return named


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if ">>>" in page.read_text()], ids=lambda page: page.stem)
def test_examples_print_what_the_page_says(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, optionflags=OUTPUT)
    assert result.attempted > 0
    assert result.failed == 0


def test_python_on_a_page_imports_only_what_exists() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language == "python"]
    plain = [ast.parse(block.text) for block in blocks if ">>>" not in block.text]
    found = [node for tree in plain for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(found) > 5
    for statement in found:
        exec(ast.unparse(statement), {})


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.stem)
def test_commands_are_accepted_and_the_cheap_ones_run_as_printed(page: Path, tmp_path: Path) -> None:
    for name, text in {name: text for each in PAGES for name, text in files_of(each).items()}.items():
        (tmp_path / name).write_text(text)
    for shown in commands_of(page):
        accept(shown.words)
        if shown.runs:
            run(shown, tmp_path)


def run(shown: Shown, folder: Path) -> None:
    done = crowdveil(*shown.words, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    assert (done.returncode == 1) == ("crowdveil: " in shown.output)
    if shown.into:
        (folder / shown.into).write_text(done.stdout)
    if shown.output:
        assert doctest.OutputChecker().check_output(shown.output, done.stdout + done.stderr, OUTPUT), done


@pytest.mark.parametrize("section", ["tutorial", "how-to", "explain", "decisions"])
def test_a_section_opens_with_a_list_of_its_pages(section: str) -> None:
    folder = ROOT / "docs" / section
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (folder / "index.md").read_text())
    assert sorted(listed) == sorted(page.name for page in folder.glob("*.md") if page.stem != "index")


@pytest.mark.parametrize("name", METHODS)
def test_the_page_of_a_method_names_all_its_settings(name: str) -> None:
    page = (ROOT / "docs/reference/methods" / f"{name}.md").read_text()
    settings = {each.name for each in fields(METHODS[name])} - {"engine"}
    assert {each for each in settings if f"`{each}" not in page} == set()


@pytest.mark.parametrize("name", command_names())
def test_the_manual_lists_exactly_the_flags_there_are(name: str) -> None:
    synopsis = blocks_of(MANUAL / f"{name}.md")[0].text
    parts = {part for words in COMMANDS if words[0] == name for part in words[1:]}
    if parts:
        assert {part for part in parts if not re.search(rf"\b{part}\b", synopsis)} == set()
    else:
        assert set(re.findall(r"--[a-z-]+", synopsis)) == {flag for flag in flags_of(name) if flag != "--output"}


@pytest.mark.parametrize("name", command_names())
def test_the_manual_shows_every_command_at_work(name: str) -> None:
    assert any(shown.words[0] == name for shown in commands_of(MANUAL / f"{name}.md"))
