"""What may be answered: a list of options, or an evenly spaced scale of levels held as exact decimals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import DomainError
from crowdveil.exact import decimal_text

EMPTY = -1
"""The answer code of ∅: the question was not answered."""

# Beyond, decimals of 28 digits no longer hold both ends of a scale and its step.
_MOST_DIGITS = 13


@dataclass(frozen=True, slots=True)
class Choices:
    """Two or more options without order.

    >>> Choices(("no", "yes")).encode(["yes", "no", None])
    array([ 1,  0, -1], dtype=int32)
    """

    options: tuple[str, ...]
    _index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        options = tuple(str(option) for option in self.options)
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "_index", {option: code for code, option in enumerate(options)})
        if not options:
            raise DomainError("a question needs at least one option; got none", fix="give --options a,b")
        if len(self._index) != len(options):
            repeated = next(option for option in options if options.count(option) > 1)
            raise DomainError(f"options must differ; got {repeated!r} twice", fix="remove one of them")
        if any(not option.strip() for option in options):
            raise DomainError("an option must not be blank; got an empty one", fix="name every option")

    @property
    def symbols(self) -> tuple[str, ...]:
        """The spelling of every answer, in code order: what the wire form writes."""
        return self.options

    @property
    def size(self) -> int:
        return len(self.options)

    def code(self, value: object) -> int:
        """The code of one answer; ∅ (None) is -1."""
        if value is None:
            return EMPTY
        found = self._index.get(str(value))
        if found is None:
            raise DomainError(
                f"answer must be one of {_listed(self.options)}; got {str(value)!r}",
                fix="correct it or add it to the options",
            )
        return found

    def encode(self, values: Iterable[object]) -> NDArray[np.int32]:
        return np.fromiter((self.code(value) for value in values), dtype=np.int32)

    def decode(self, codes: Iterable[int]) -> list[str | None]:
        return [None if code == EMPTY else self.options[code] for code in codes]

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The options as numbers, for methods about numbers; refused when one of them is not a number."""
        try:
            numbers = np.array([float(option) for option in self.options])
        except ValueError:
            numbers = np.array([math.nan])
        if not np.isfinite(numbers).all():
            raise DomainError(
                f"this method needs numbers; got the options {_listed(self.options)}",
                fix="use a method for choices, such as majority, or give --scale LOW:HIGH",
            )
        return numbers


@dataclass(frozen=True, slots=True)
class Scale:
    """The levels low, low + step, …, high.

    >>> Scale(0, 1, "0.25").symbols
    ('0', '0.25', '0.5', '0.75', '1')
    """

    low: Decimal
    high: Decimal
    step: Decimal
    _index: dict[Decimal, int] = field(init=False, repr=False, compare=False, hash=False)

    MAX_LEVELS = 100_001

    def __init__(
        self, low: int | float | str | Decimal, high: int | float | str | Decimal, step: int | float | str | Decimal = 1
    ) -> None:
        for name, value in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, name, _exact(name, value))
        self._check()
        levels = {self.low + code * self.step: code for code in range(self.size)}
        object.__setattr__(self, "_index", levels)

    def _check(self) -> None:
        if self.step <= 0:
            raise DomainError(
                f"the step of a scale must be positive; got {self.step}", fix="write the scale as LOW:HIGH:STEP"
            )
        if self.high <= self.low:
            raise DomainError(
                f"a scale must rise; got low {self.low} and high {self.high}", fix="write the scale as LOW:HIGH:STEP"
            )
        if (self.high - self.low) % self.step != 0:
            raise DomainError(
                f"the step of a scale must divide its range; got {self.low}:{self.high}:{self.step}",
                fix="choose a step that ends exactly on the highest level",
            )
        if self.size > self.MAX_LEVELS:
            raise DomainError(
                f"a scale may have at most {self.MAX_LEVELS} levels; got {self.size}", fix="choose a larger step"
            )

    @property
    def size(self) -> int:
        return int((self.high - self.low) / self.step) + 1

    @property
    def symbols(self) -> tuple[str, ...]:
        """The spelling of every level, in code order: what the wire form writes."""
        return tuple(decimal_text(level) for level in self._index)

    def code(self, value: object) -> int:
        """The code of one level; ∅ (None) is -1."""
        if value is None:
            return EMPTY
        try:
            found = self._index.get(Decimal(str(value).strip()))
        except (InvalidOperation, TypeError):  # a signalling NaN cannot be looked up
            found = None
        if found is None:
            raise DomainError(
                f"answer must be a level of {self.low}:{self.high}:{self.step}; got {str(value)!r}",
                fix="correct it or widen the scale",
            )
        return found

    def encode(self, values: Iterable[object]) -> NDArray[np.int32]:
        return np.fromiter((self.code(value) for value in values), dtype=np.int32)

    def decode(self, codes: Iterable[int]) -> list[str | None]:
        symbols = self.symbols
        return [None if code == EMPTY else symbols[code] for code in codes]

    @property
    def numbers(self) -> NDArray[np.float64]:
        return np.array([float(level) for level in self._index])

    @property
    def range(self) -> float:
        return float(self.high - self.low)


Domain: TypeAlias = Choices | Scale


def parse_scale(text: str) -> Scale:
    """`LOW:HIGH[:STEP]`, as on the command line."""
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise DomainError(f"a scale must be LOW:HIGH or LOW:HIGH:STEP; got {text!r}", fix="for example 1:5 or 0:1:0.1")
    return Scale(*parts)


def parse_options(text: str) -> Choices:
    """Options separated by commas, as on the command line."""
    return Choices(tuple(part.strip() for part in text.split(",")))


def _exact(name: str, value: int | float | str | Decimal) -> Decimal:
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise DomainError(
            f"the {name} of a scale must be a number of ordinary size; got {str(value)!r}",
            fix="for example --scale 1:5 or --scale 0:1:0.1",
        )
    return number


def _listed(options: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(repr(option) for option in options[:limit])
    return shown + (f", … ({len(options)} in all)" if len(options) > limit else "")
