"""Generates the API reference: one page per public package, one entry per name of its `__all__`, from the docstrings.

The names are read from the source, so a new public name needs no second edit. A name that `crowdveil` itself only
re-exports is described where it is defined; the page of `crowdveil` links to it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

SOURCE = Path(__file__).resolve().parents[1] / "src"
# Public packages in the order of the reference, each with those of its modules that are public as a whole.
PACKAGES: dict[str, tuple[str, ...]] = {
    "crowdveil": (),
    "crowdveil.channel": (),
    "crowdveil.mechanisms": (),
    "crowdveil.inference": ("metrics", "crosstab", "agreement", "poisoning"),
    "crowdveil.accounting": (),
    "crowdveil.files": (),
    "crowdveil.client": (),
    "crowdveil.plan": (),
    "crowdveil.selection": (),
    "crowdveil.pricing": (),
    "crowdveil.simulate": (),
    "crowdveil.audit": (),
    "crowdveil.bounds": ("sun", "li", "wang", "information"),
    "crowdveil.plot": (),
    "crowdveil.papers": (),
}


def on_files(files: Any, config: Any) -> Any:
    """MkDocs calls this with the files it found; the generated pages join them."""
    for package in PACKAGES:
        uri = f"reference/python/{package.rpartition('.')[2]}.md"
        files.append(File.generated(config, uri, content=render_page(package)))
    return files


def render_page(package: str) -> str:
    """The Markdown of one page: what the package is for, its names, and its public modules."""
    names = exported_names(package)
    elsewhere = _packages_by_name() if package == "crowdveil" else {}
    rows = [f"| [`{name}`][{elsewhere[name]}.{name}] | `{elsewhere[name]}` |" for name in names if name in elsewhere]
    parts = [f"# {package}", ast.get_docstring(parse_package(package)) or ""]
    parts += [_entry(f"{package}.{name}", level=2) for name in names if name not in elsewhere]
    if rows:
        parts += ["## Names of other packages", "\n".join(["| name | described in |", "|---|---|", *rows])]
    parts += [_entry(f"{package}.{module}", level=2, members=True) for module in PACKAGES[package]]
    return "\n\n".join(parts) + "\n"


def exported_names(package: str) -> list[str]:
    """The names in the `__all__` of a package, read without importing it."""
    for node in parse_package(package).body:
        if isinstance(node, ast.Assign) and any(isinstance(n, ast.Name) and n.id == "__all__" for n in node.targets):
            return list(ast.literal_eval(node.value))
    raise LookupError(f"{package} must have a list __all__")


def parse_package(package: str) -> ast.Module:
    """The syntax tree of a package's `__init__.py`."""
    return ast.parse((SOURCE / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))


def _packages_by_name() -> dict[str, str]:
    """The package, below `crowdveil`, that exports each name; `score` is the one name of a module."""
    packages = [package for package in PACKAGES if package != "crowdveil"]
    return {"score": "crowdveil.inference.metrics"} | {name: p for p in packages for name in exported_names(p)}


def _entry(path: str, *, level: int, members: bool = False) -> str:
    options = [f"      heading_level: {level}"]
    if members:
        # A module without __all__: what it defines itself, in the order of the file.
        options += ["      show_root_members_full_path: false", "      show_root_toc_entry: true"]
    return "\n".join([f"::: {path}", "    options:", *options])
