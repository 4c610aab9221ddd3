"""Personal levels of privacy: each worker's answers pass through that worker's own mechanism.

Which mechanism a worker uses is not hidden: every report names its channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from crowdveil.answers import Answers
from crowdveil.entropy import Entropy
from crowdveil.errors import InputError
from crowdveil.mechanisms.base import Mechanism
from crowdveil.reports import Reports


def randomize_by_worker(answers: Answers, mechanisms: Mapping[Any, Mechanism], entropy: Entropy) -> Reports:
    """The reports of all workers, each through the mechanism that `mechanisms` has for the worker's id.

    Where a mechanism protects participation, its workers report on every question of the table.

    >>> from crowdveil import Choices, NoPrivacy, RandomizedResponse, entropy_from
    >>> answers = Answers.from_rows([("ada", "q1", "yes"), ("bob", "q1", "no")], Choices(("no", "yes")))
    >>> personal = {"ada": RandomizedResponse(epsilon=1.0), "bob": NoPrivacy()}
    >>> randomize_by_worker(answers, personal, entropy_from(1))
    Reports: 2 of 2 workers on 1 questions, Choices(['no', 'yes']), ε ≤ 1 per value; not protected
    """
    workers = answers.workers.tolist()
    for worker in workers:
        if worker not in mechanisms:
            raise InputError(f"worker {worker!r} has no mechanism", fix="name one for every worker")
    if not workers:
        raise InputError("there are no workers", fix="give at least one")
    members: dict[Mechanism, list[int]] = {}
    for code, worker in enumerate(workers):
        members.setdefault(mechanisms[worker], []).append(code)
    return Reports.concat(
        each.randomize(_answers_by(answers, np.array(codes)), entropy) for each, codes in members.items()
    )


def _answers_by(answers: Answers, codes: np.ndarray) -> Answers:
    """The table of these workers alone, with all questions."""
    new_code = np.full(len(answers.workers), -1, dtype=np.int32)
    new_code[codes] = np.arange(len(codes), dtype=np.int32)
    rows = np.flatnonzero(new_code[answers.worker] >= 0)
    return replace(
        answers,
        worker=new_code[answers.worker[rows]],
        question=answers.question[rows],
        answer=answers.answer[rows],
        workers=answers.workers[codes],
    )
