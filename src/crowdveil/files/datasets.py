"""Crowd datasets on the user's disk: a folder per dataset with answers.csv and truth.csv, never shipped with us."""

from __future__ import annotations

import os
from pathlib import Path

from crowdveil.answers import Answers
from crowdveil.domain import Domain
from crowdveil.errors import FileError
from crowdveil.files.answers import read_answers
from crowdveil.files.truth import read_truth

VARIABLE = "CROWDVEIL_DATA"


def data_folder(folder: str | Path | None = None) -> Path:
    """The directory of datasets: `folder`, else the one that the environment variable `CROWDVEIL_DATA` names."""
    chosen = folder or os.environ.get(VARIABLE)
    if not chosen or not Path(chosen).is_dir():
        raise FileError(
            f"there is no folder {str(chosen)!r} of datasets"
            if chosen
            else "the folder with the datasets is not named",
            fix=f"name it, or set {VARIABLE} to a folder that holds e.g. rte/answers.csv and rte/truth.csv",
        )
    return Path(chosen)


def load_dataset(
    name: str, domain: Domain | None = None, *, folder: str | Path | None = None
) -> tuple[Answers, dict[str, str]]:
    """Read the dataset `name`: the files `answers.csv` and `truth.csv` of the folder with that name.

    The folder is looked up in `folder`, else in the directory that the environment variable `CROWDVEIL_DATA` names.
    Without `domain`, answers are choices among the values seen. Returns the answers and the truths by question.
    """
    home = data_folder(folder) / name
    return read_answers(home / "answers.csv", domain), read_truth(home / "truth.csv")
