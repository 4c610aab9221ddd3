"""Estimates files: question, value, confidence, low, high, and one column p:<option> per option for choices.

What a warm start needs stands in a second file beside, ESTIMATES.start.npz, together with the workers' ids.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.errors import FileError
from crowdveil.estimate import Estimate, Skills
from crowdveil.files.paths import start_beside as start_beside
from crowdveil.files.reports import domain_from_json, domain_json
from crowdveil.files.write import id_texts, label_column, write_table

FORMAT = "crowdveil-start/1"
_KEPT = "parameter:"


def write_estimates(path: str | Path, estimate: Estimate) -> None:
    """One row per question; a question without an estimate has empty cells."""
    answered = estimate.answered
    columns: dict[str, Any] = {
        "question": pa.array(id_texts(estimate.questions), pa.string()),
        "value": _values(path, estimate),
        "confidence": pa.array(estimate.confidence.astype(np.float64), mask=~answered),
        "low": pa.array(estimate.low.astype(np.float64), mask=~answered),
        "high": pa.array(estimate.high.astype(np.float64), mask=~answered),
    }
    if estimate.posterior is not None and estimate.categorical:
        for code, option in enumerate(estimate.domain.symbols):
            columns[f"p:{option}"] = pa.array(estimate.posterior[:, code], mask=~answered)
    write_table(path, columns, {b"crowdveil-provenance": estimate.provenance_json().encode()})


def write_workers(path: str | Path, skills: Skills) -> None:
    """The workers' skills with their intervals."""
    write_table(
        path,
        {
            "worker": pa.array(id_texts(skills.workers), pa.string()),
            "skill": pa.array(skills.skill.astype(np.float64)),
            "low": pa.array(skills.low.astype(np.float64)),
            "high": pa.array(skills.high.astype(np.float64)),
        },
    )


def write_start(path: str | Path, estimate: Estimate) -> None:
    """What a later fit can start from; arrays and texts only, so that reading it back runs nobody's code."""
    workers = np.array(id_texts(estimate.skills.workers) if estimate.skills else [], dtype=str)
    head = {"format": FORMAT, "method": estimate.method, "domain": domain_json(estimate.domain)}
    arrays: dict[str, Any] = {_KEPT + name: np.asarray(value) for name, value in estimate.parameters.items()}
    with Path(path).open("wb") as stream:
        np.savez(stream, head=np.array(json.dumps(head)), workers=workers, **arrays)


def read_start(path: str | Path) -> Estimate:
    """The earlier estimate of an estimates file, as far as a warm start needs it: parameters, no values."""
    beside = start_beside(path)
    if not beside.is_file():
        raise FileError(f"there is no {beside.name} to start from", fix="infer without a start")
    try:
        with np.load(beside, allow_pickle=False) as stored:
            head = json.loads(str(stored["head"]))
            workers = stored["workers"].astype(object)
            parameters = {name[len(_KEPT) :]: stored[name] for name in stored.files if name.startswith(_KEPT)}
        if head["format"] != FORMAT:
            raise ValueError(head["format"])
        domain = domain_from_json(head["domain"])
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile):
        fix = "infer without a start"
        raise FileError("this is not the start of an estimate", fix=fix, source=beside.name) from None
    none: NDArray[Any] = np.empty(0)
    unknown = np.zeros(len(workers))
    skills = Skills(workers, unknown, unknown, unknown, "")
    return Estimate(head["method"], domain, none, none, none, none, none, skills=skills, parameters=parameters)


def _values(path: str | Path, estimate: Estimate) -> Any:
    if not estimate.categorical:
        return pa.array(estimate.value.astype(np.float64), mask=~estimate.answered)
    return label_column(path, estimate.value, estimate.domain)
