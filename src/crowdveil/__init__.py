"""crowdveil: ask a crowd, learn the truth, never see anybody's answer.

The names are there at once, what they stand for is loaded when the first of them is used: the command line begins
while nothing heavy is loaded yet, and understands Ctrl-C from then on.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; loading typing takes a while

if TYPE_CHECKING:
    from crowdveil.answers import Answers
    from crowdveil.channel import Channel, identity
    from crowdveil.domain import EMPTY, Choices, Scale
    from crowdveil.entropy import SystemEntropy, entropy_from
    from crowdveil.errors import (
        BudgetError,
        ChannelError,
        CheckError,
        CrowdveilError,
        DomainError,
        FileError,
        InputError,
    )
    from crowdveil.estimate import Estimate
    from crowdveil.guarantee import Guarantee
    from crowdveil.reports import Reports

__version__ = "0.1.0"

__all__ = [
    "EMPTY",
    "Answers",
    "BudgetError",
    "Channel",
    "ChannelError",
    "CheckError",
    "Choices",
    "CrowdveilError",
    "DomainError",
    "Estimate",
    "FileError",
    "Guarantee",
    "InputError",
    "Reports",
    "Scale",
    "SystemEntropy",
    "entropy_from",
    "identity",
]

_HOMES = ("errors", "domain", "entropy", "guarantee", "channel", "answers", "reports", "estimate")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A noun, or the module of one, when it is first asked for."""
        if name in _HOMES:
            return import_module(f"{__name__}.{name}")
        if name in __all__:
            homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
            return globals().setdefault(name, next(getattr(home, name) for home in homes if hasattr(home, name)))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_HOMES})
