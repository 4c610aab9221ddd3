"""The papers' real datasets in the papers' own terms, read from the user's disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.domain import Choices, Scale
from crowdveil.files.datasets import load_dataset
from crowdveil.papers.core.reproduction import Settings

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Answers and, in the order of their questions, the truth (NaN where none is known)."""

    answers: Answers
    truth: Floats

    @property
    def sparsity(self) -> Floats:
        """For each worker the share of questions not answered."""
        counts = np.bincount(self.answers.worker, minlength=len(self.answers.workers))
        return np.asarray(1 - counts / len(self.answers.questions))

    def with_questions(self, kept: NDArray[np.int64]) -> Dataset:
        """A part of the questions; workers stay, also those left without an answer."""
        new_code = np.full(len(self.answers.questions), -1, dtype=np.int32)
        new_code[kept] = np.arange(len(kept), dtype=np.int32)
        rows = new_code[self.answers.question] >= 0
        answers = replace(
            self.answers,
            worker=self.answers.worker[rows],
            question=new_code[self.answers.question[rows]],
            answer=self.answers.answer[rows],
            questions=self.answers.questions[kept],
        )
        return Dataset(answers, self.truth[kept])


def numeric(name: str, settings: Settings, *, highest: int | None = None) -> Dataset:
    """adult, or wsd counted from 0; on the levels 0..`highest`, or on those that the data has."""
    answers, truths = load_dataset(name, folder=settings.data)
    seen = answers.domain.numbers
    top = int(seen.max() - seen.min()) if highest is None else highest
    codes = (seen - seen.min()).astype(np.int32)[answers.answer]
    truth = np.array([float(truths.get(str(question), "nan")) for question in answers.questions]) - seen.min()
    return Dataset(replace(answers, answer=codes, domain=Scale(0, top)), truth)


def categorical(name: str, settings: Settings) -> Dataset:
    """Options with their codes as truths."""
    answers, truths = load_dataset(name, folder=settings.data)
    assert isinstance(answers.domain, Choices)
    spelled = [truths.get(str(question)) for question in answers.questions]
    codes = [float("nan") if truth is None else float(answers.domain.code(truth)) for truth in spelled]
    return Dataset(answers, np.array(codes))


def constant_error(truth: NDArray[Any]) -> float:
    """The error rate of always giving the commonest truth, over the known ones."""
    known_truths = truth[~np.isnan(truth)].astype(np.int64)
    return 1 - float(np.bincount(known_truths).max()) / len(known_truths)
