"""What may be answered: a list of options, or an evenly spaced scale of levels held as exact decimals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import DomainError
from crowdveil.exact import decimal_text

EMPTY = -1
"""The answer code of ∅: the question was not answered."""

Label: TypeAlias = str | int | float | bool
"""An option as it was given: texts, numbers and truth values keep their type."""

# Beyond, decimals of 28 digits no longer hold both ends of a scale and its step.
_MOST_DIGITS = 13


@dataclass(frozen=True, slots=True, repr=False)
class Choices:
    """Two or more options without order.

    `options` are their spellings, which the wire form writes and by which domains are compared; `labels` are the
    options as they were given, numbers and truth values included.

    >>> Choices(("no", "yes")).encode(["yes", "no", None])
    array([ 1,  0, -1], dtype=int32)
    >>> Choices((0, 1)).options, Choices((0, 1)).labels
    (('0', '1'), (0, 1))
    """

    options: tuple[str, ...]
    labels: tuple[Label, ...] = field(init=False, compare=False)
    _index: dict[str, int] = field(init=False, compare=False)

    def __init__(self, options: Iterable[Label]) -> None:
        if isinstance(options, str | bytes):
            listed = [part.strip() for part in options.split(",")] if isinstance(options, str) else [options]
            problem, fix = f"options must be a list; got the text {options!r}", f"write Choices({listed!r})"
            raise DomainError(problem, fix=fix)
        labels = tuple(plain_label(option) for option in options)
        texts = tuple(spell_label(label) for label in labels)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "options", texts)
        object.__setattr__(self, "_index", {option: code for code, option in enumerate(texts)})
        if not texts:
            raise DomainError("a question needs at least one option; got none", fix="name the options")
        if len(self._index) != len(texts):
            repeated = next(option for option in texts if texts.count(option) > 1)
            raise DomainError(f"options must differ; got {repeated!r} twice", fix="remove one of them")
        if any(not option.strip() for option in texts):
            raise DomainError("an option must not be blank; got an empty one", fix="name every option")

    def __repr__(self) -> str:
        return f"Choices([{list_options(self.labels)}])"

    @property
    def symbols(self) -> tuple[str, ...]:
        """The spelling of every answer, in code order: what the wire form writes."""
        return self.options

    @property
    def size(self) -> int:
        return len(self.options)

    def code(self, value: object) -> int:
        """The code of one answer; ∅ (None, NaN) is -1."""
        if is_missing(value):
            return EMPTY
        code = self._index.get(spell_label(value))
        if code is None:
            raise DomainError(
                f"answer must be one of {list_options(self.options)}; got {str(value)!r}",
                fix="correct it or add it to the options",
            )
        return code

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
                f"this method needs numbers; got the options {list_options(self.options)}",
                fix="use a method for choices, such as majority, or name the scale LOW:HIGH",
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
        """The code of one level; ∅ (None, NaN) is -1."""
        if is_missing(value):
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
            fix="for example 1:5 or 0:1:0.1",
        )
    return number


def plain_label(value: Any) -> Label:
    """An option as a plain Python value: scalars of NumPy become Python's, whatever else is there becomes text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | bool | int | float) else str(value)


def spell_label(value: object) -> str:
    """The spelling of an option, the same whether it comes from Python, NumPy, Arrow or JSON.

    >>> [spell_label(value) for value in ("yes", 1, 1.0, np.int64(1), 0.5, True)]
    ['yes', '1', '1', '1', '0.5', 'true']
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        return decimal_text(Decimal(repr(value)))
    return str(value)


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas writes for them (NA, NaT): the question was not answered."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def list_options(options: Sequence[Label], limit: int = 8) -> str:
    """The options on one line; of many the first few and how many there are."""
    shown = ", ".join(repr(option) for option in options[:limit])
    return shown + (f", … ({len(options)} in all)" if len(options) > limit else "")
