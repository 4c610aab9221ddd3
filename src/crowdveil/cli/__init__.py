"""The command line: one file per command in this package, found by its name and loaded only when it is used."""

from __future__ import annotations

import ast
import errno
import pkgutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from crowdveil import __version__
from crowdveil._signals import STOPPED, stopping_at_once, stopping_in_time
from crowdveil.cli._controls import escape_controls
from crowdveil.errors import CheckError, CrowdveilError

# What is not installed with crowdveil itself, and the extra that brings it.
EXTRAS = {
    "broker": ("django", "ninja", "pydantic", "psycopg", "waitress", "prometheus_client", "segno"),
    "plot": ("matplotlib",),
    "spark": ("pyspark", "pandas"),
}

# The root of what the command line itself refuses; its module has moved between versions of typer.
_UsageError: Any = typer.BadParameter.__mro__[1]
_CURES = {
    errno.ENOENT: "check the name",
    errno.EACCES: "change its permissions",
    errno.EISDIR: "name a file in it",
    errno.EFBIG: "make room",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EROFS: "choose another place",
}
_CLOSED_PIPE, _TERMINATED = 141, 143


class _Commands(TyperGroup):
    """Commands are the modules of this package: `verify_client.py` is `crowdveil verify-client`."""

    only_listed = False

    def list_commands(self, ctx: Any) -> list[str]:
        return command_names()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with self._listing():
            super().format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _listing(self) -> Iterator[None]:
        """Here a command is its name and its help: loading all of them takes a second, reading their files does not."""
        self.only_listed = True
        try:
            yield
        finally:
            self.only_listed = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in command_names():
            return None
        if self.only_listed:
            return TyperCommand(cmd_name, help=read_help(cmd_name))
        with stopping_at_once():
            module = import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        if hasattr(module, "app"):
            return typer.main.get_command(module.app)
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command(name=cmd_name)(module.command)
        return typer.main.get_command(app)


def command_names() -> list[str]:
    """Every command there is."""
    modules = pkgutil.iter_modules(__path__)
    return sorted(module.name.replace("_", "-") for module in modules if not module.name.startswith("_"))


def read_help(name: str) -> str:
    """The help of a command, read in its file without loading it: the docstring of `command`, or the help of `app`."""
    tree = ast.parse((Path(__file__).parent / f"{name.replace('-', '_')}.py").read_bytes())
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "command":
            return ast.get_docstring(statement) or ""
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            for keyword in statement.value.keywords:
                if keyword.arg == "help" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value)
    return ""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"crowdveil {__version__}")
        raise typer.Exit


app = typer.Typer(cls=_Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(epilog="Start with: crowdveil demo")
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Ask a crowd. Learn the truth. Never see anybody's answer."""


class _Termination(BaseException):
    """SIGTERM came."""


def _terminate(*_: object) -> None:
    raise _Termination


@contextmanager
def _tidying_when_terminated() -> Iterator[None]:
    """Let SIGTERM pass through all that tidies up, as Ctrl-C does, instead of ending the process where it stands."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except _Termination:
        _complain("stopped", _TERMINATED)
    finally:
        signal.signal(signal.SIGTERM, before)


@_tidying_when_terminated()
def main() -> None:
    """Run the command line: bad input is one sentence and exit code 2, a failed check exit code 1.

    Being stopped is neither: Ctrl-C, or a question that was not answered with yes, is 130, a reader of our output that
    went away 141, SIGTERM 143, as shells count them.
    """
    try:
        with stopping_in_time():
            _leave(app(standalone_mode=False, prog_name="crowdveil"))
    except SystemExit as leaving:
        raise SystemExit(_CLOSED_PIPE) if isinstance(leaving.__context__, BrokenPipeError) else leaving from None
    except (typer.Abort, KeyboardInterrupt):
        _complain("stopped", STOPPED)
    except _UsageError as error:
        _misused(error)
    except CheckError as error:
        _complain(error, 1)
    except CrowdveilError as error:
        _complain(error, 2)
    except OSError as error:
        _complain(_unusable(error), 2)
    except OverflowError as error:
        _complain(f"a number is too large to be computed with ({error}); choose a smaller one", 2)
    except MemoryError:
        _complain("this does not fit into the memory of this machine; choose smaller numbers", 2)
    except ImportError as error:
        _complain(_missing(error.name or str(error)), 2)


def _leave(code: int | None) -> None:
    """End with the command's exit code; Ctrl-C has become one by now, without a word."""
    if code == STOPPED:
        _complain("stopped", STOPPED)
    sys.exit(code)


def _misused(error: Any) -> None:
    """Words that the command does not take: what is wrong with them, and where the help is."""
    if error.format_message() == (error.ctx.get_help() if error.ctx else ""):
        # Nothing was asked for: the help is the answer, and not one sentence.
        error.show()
        sys.exit(2)
    place = error.ctx.command_path if error.ctx else "crowdveil"
    names = [name for name in (error.param.opts if getattr(error, "param", None) else ()) if name in sys.argv[:-1]]
    got = (
        f"; got {sys.argv[sys.argv.index(names[0]) + 1]!r}"
        if names and "nvalid value" in error.format_message()
        else ""
    )
    _complain(f"{error.format_message().rstrip('.')}{got}; see {place} --help", 2)


def _unusable(error: OSError) -> str:
    cure = _CURES.get(error.errno or 0, "choose another one")
    if error.filename:
        return f"{error.filename} cannot be used: {error.strerror}; {cure}"
    # Not one of our files: what is written unasked are temporary files and compiled kernels.
    return f"the system failed: {error.strerror or error}; {cure}, or set TMPDIR and NUMBA_CACHE_DIR to another place"


def _missing(module: str) -> str:
    package = module.partition(".")[0]
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    if extra is None:
        # Never the name of a package that is not ours to recommend: anybody may have taken it.
        return f"this needs the module {package!r}, which is missing here; reinstall crowdveil, or use another system"
    return f"this needs the package {package!r}, which is missing; install it with: pip install 'crowdveil[{extra}]'"


def _complain(error: object, code: int) -> None:
    sentence = escape_controls(" ".join(str(error).split()))
    sys.stderr.write(f"crowdveil: {sentence}\n")
    sys.exit(code)
