"""The local engine under its own name; it lives beside the driver, which uses it when nobody names another."""

from __future__ import annotations

from crowdveil.inference.threads import LocalEngine, LocalSession

__all__ = ["LocalEngine", "LocalSession"]
