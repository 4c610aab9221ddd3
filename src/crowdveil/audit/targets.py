"""What can be audited from outside, as a source of reports: a mechanism of ours, or anybody's callable.

A callable is called with one answer (a number of a scale, the text of an option, None for ∅) and returns its report;
or, if it takes a second argument without a default, with an answer and a number n, and returns n reports.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.audit.black_box import Source
from crowdveil.domain import EMPTY, Domain, Scale
from crowdveil.entropy import Entropy
from crowdveil.errors import InputError
from crowdveil.mechanisms import Mechanism

# Stands for a report that was never sent; no mechanism releases it.
_SILENCE = -1
_SECONDS, _TRIAL, _FEWEST = 20.0, 100, 2000


@dataclass(frozen=True, slots=True)
class Subject:
    """A source, how many inputs it has, and which of them are neighbours (all, if None)."""

    source: Source
    n_inputs: int
    pairs: tuple[tuple[int, int], ...] | None = None


def mechanism_subject(mechanism: Mechanism, domain: Domain, *, participation: bool, entropy: Entropy) -> Subject:
    """Many workers with the same answers are many samples. Neighbours differ in one cell, ∅ included if asked."""
    vectors, pairs = _neighbours(mechanism, domain, participation)
    n_questions = len(vectors[0])

    def source(index: int, n: int) -> NDArray[Any]:
        reports = _release(mechanism, domain, vectors[index], n, entropy)
        return reports[:, 0] if n_questions == 1 else reports

    return Subject(source, len(vectors), pairs)


def _neighbours(
    mechanism: Mechanism, domain: Domain, participation: bool
) -> tuple[list[NDArray[np.int32]], tuple[tuple[int, int], ...] | None]:
    """Answer vectors and which of them are neighbours. d factors are weakest where just d questions were answered."""
    last, n_factors = domain.size - 1, int(getattr(mechanism, "factors", 0))
    if n_factors == 0:
        levels = sorted({0, last // 2, last})
        return [np.array([code], dtype=np.int32) for code in levels + [EMPTY] * participation], None
    endings = (0, last, EMPTY) if participation else (0, last)
    vectors = [np.array([last] * n_factors + [ending], dtype=np.int32) for ending in endings]
    return vectors, ((0, 1), (0, 2), (1, 2))[: 3 if participation else 1]


def _release(mechanism: Mechanism, domain: Domain, vector: NDArray[np.int32], n: int, entropy: Entropy) -> NDArray[Any]:
    """What `n` workers with this answer vector send: one row each."""
    answered = np.flatnonzero(vector != EMPTY)
    worker = np.repeat(np.arange(n, dtype=np.int32), len(answered))
    question = np.tile(answered.astype(np.int32), n)
    answer = np.tile(vector[answered], n)
    answers = Answers(worker, question, answer, np.arange(n), np.arange(len(vector)), domain)
    with warnings.catch_warnings():
        # A mechanism may warn about workers at its weakest point; that is where an audit looks.
        warnings.simplefilter("ignore")
        reports = mechanism.randomize(answers, entropy)
    column: NDArray[Any] = reports.report if reports.number is None else reports.number
    sent = np.full((n, len(vector)), _SILENCE, dtype=column.dtype)
    sent[reports.worker, reports.question] = column
    return sent


def callable_subject(name: str, domain: Domain, *, participation: bool) -> Subject:
    """Anybody's code, named `module:callable`; the module may lie in the working directory."""
    called = load_callable(name)
    inputs: list[Any] = [*_python_values(domain), *([None] if participation else [])]
    draw = _many if _takes_a_number(called) else _one_by_one

    def source(index: int, n: int) -> NDArray[Any]:
        try:
            return draw(called, inputs[index], n)
        except (Exception, SystemExit) as error:
            sentence = f"{name} failed on the answer {inputs[index]!r}: {type(error).__name__}: {error}"
            raise InputError(sentence, fix="it is called with one answer and returns one report") from error

    return Subject(source, len(inputs))


def affordable_samples(subject: Subject, most: int) -> int:
    """As many samples per input as some twenty seconds allow; code that is called one by one may be slow."""
    start = time.perf_counter()
    subject.source(0, _TRIAL)
    seconds = (time.perf_counter() - start) / _TRIAL
    return max(_FEWEST, min(most, int(_SECONDS / (seconds * subject.n_inputs + 1e-12))))


def load_callable(name: str) -> Callable[..., Any]:
    """Import what `module:callable` names."""
    module_name, _, path = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        target: Any = importlib.import_module(module_name)
        for part in path.split("."):
            target = getattr(target, part)
    except (Exception, SystemExit) as error:
        # Importing runs the module, which is anybody's code and may fail in any way.
        fix = "write it as module:callable, and see that the module can be imported"
        raise InputError(f"{name!r} cannot be imported: {type(error).__name__}: {error}", fix=fix) from error
    if not callable(target):
        raise InputError(f"{name!r} must be callable; got {type(target).__name__}")
    return target  # type: ignore[no-any-return]


def _python_values(domain: Domain) -> Sequence[Any]:
    if not isinstance(domain, Scale):
        return domain.symbols
    return [int(number) if number == int(number) else float(number) for number in domain.numbers]


def _takes_a_number(called: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return len(positional) >= 2 and positional[1].default is inspect.Parameter.empty


def _many(called: Callable[..., Any], answer: Any, n: int) -> NDArray[Any]:
    reports = _as_array(called(answer, n))
    if len(reports) != n:
        raise InputError(f"it must return {n} reports; got {len(reports)}")
    return reports


def _one_by_one(called: Callable[..., Any], answer: Any, n: int) -> NDArray[Any]:
    return _as_array([called(answer) for _ in range(n)])


def _as_array(reports: Any) -> NDArray[Any]:
    """Arrays of numbers as they are; of anything else the reports themselves, to be read all alike by `reader`."""
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iubf" and reports.ndim > 0:
        return reports if reports.ndim < 3 else reports.reshape(len(reports), -1)
    listed = list(reports)
    raw = np.empty(len(listed), dtype=object)
    for index, report in enumerate(listed):
        raw[index] = report
    return raw
