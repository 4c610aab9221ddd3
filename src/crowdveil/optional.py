"""Packages that are accepted and not required: loaded when they are asked for, and missed in one sentence."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crowdveil.errors import InputError


def load_package(name: str) -> Any:
    """The package of that name, or a sentence that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        fix = f"install it with: pip install {name}"
        raise InputError(f"this needs the package {name!r}, which is missing", fix=fix) from None
