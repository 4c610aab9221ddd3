"""Every command and subcommand there is, and whether one accepts its words, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from crowdveil.cli import app, command_names

_ROOT: Any = typer.main.get_command(app)


def command_of(words: list[str]) -> Any:
    """The command that these words begin with, and how many of them name it."""
    command = _ROOT.get_command(None, words[0])
    if command is not None and len(words) > 1 and hasattr(command, "commands"):
        return command.commands.get(words[1], command)
    return command


def _all() -> Iterator[tuple[str, ...]]:
    for name in command_names():
        yield (name,)
        yield from ((name, part) for part in getattr(command_of([name]), "commands", {}))


COMMANDS = tuple(_all())


def accept(words: list[str]) -> None:
    """Raise what the command line would complain about, if it does not take these words."""
    command = command_of(words)
    n_names = 2 if tuple(words[:2]) in COMMANDS else 1
    command.make_context(" ".join(words[:n_names]), list(words[n_names:]))


def flags_of(name: str) -> set[str]:
    """The long flags of a command."""
    found = {flag for parameter in command_of([name]).params for flag in parameter.opts if flag.startswith("--")}
    return found - {"--help"}
