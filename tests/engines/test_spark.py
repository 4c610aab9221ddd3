"""Spark gives what the local engine gives, for every method, and refuses what it refuses, in the same words."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest
from cli.run import crowdveil, crowdveil_json
from engines.crowds import OLD_SPARK, QUICK, assert_same, crowd, mixed, skills_here, values_here, values_of
from pyspark.sql import SparkSession

from crowdveil import Choices, Estimate, FileError, InputError, Reports, Scale, entropy_from
from crowdveil.engines.spark import (
    fit_on_spark,
    fit_packed,
    methods_on_spark,
    open_spark,
    pack_on_spark,
    read_spark,
    read_spark_start,
)
from crowdveil.engines.spark import job as job_module
from crowdveil.engines.spark import passes as session
from crowdveil.engines.spark.checkpoints import notes_in
from crowdveil.engines.spark.job import Job, check_complete
from crowdveil.engines.spark.read import median_per_worker
from crowdveil.files import read_reports, write_answers, write_reports
from crowdveil.inference import METHODS, Method, method
from crowdveil.inference.methods import auto
from crowdveil.mechanisms import Laplace, RandomizedResponse

pytestmark = [*OLD_SPARK, pytest.mark.slow]
ABC = Choices(("a", "b", "c"))
ONLY_HERE = {"confusion", "classes", "low", "high"}
"""What estimates in memory say besides what the run found."""
TABLES: dict[str, Callable[[], Reports]] = {
    "options": lambda: mixed(ABC, hidden=True),
    "two options": lambda: mixed(Choices(("a", "b"))),
    "scale": lambda: mixed(Scale(1, 5), hidden=True),
    "clear": lambda: Reports.unprotected(crowd(ABC, 8)),
    "numbers": lambda: Laplace(epsilon=2).randomize(crowd(Scale(1, 5), 3), entropy_from(4)),
    "noise": lambda: RandomizedResponse(epsilon=0.001).randomize(crowd(ABC, 5), entropy_from(1)),
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = open_spark("local[2]", **QUICK)
    yield session
    session.stop()


@dataclass(frozen=True)
class Table:
    """The same reports for both engines."""

    path: Path
    here: Reports
    there: Job

    def fitted(self, chosen: Method, folder: Path) -> tuple[Estimate, Estimate]:
        """The estimates of both engines, after their rows were found to be the same."""
        here, there = chosen.fit(self.here), fit_packed(chosen, self.there, folder / "estimates")
        assert_same(values_of(folder / "estimates"), values_here(here))
        return here, there


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Table]:
    """A table by its name, packed when it is first asked for: three blocks."""
    made: dict[str, Table] = {}

    def get(name: str) -> Table:
        if name not in made:
            folder = tmp_path_factory.mktemp("table")
            path = folder / "reports.parquet"
            write_reports(path, TABLES[name]())
            made[name] = Table(
                path, read_reports(path), pack_on_spark(read_spark(spark, path), folder / "work", n_blocks=3)
            )
        return made[name]

    return get


def configured(name: str, **settings: object) -> Method:
    """Double precision and a fixed number of iterations."""
    known = {field.name for field in fields(METHODS[name])}
    wanted: dict[str, object] = {"precision": "float64", "max_iter": 3, "tol": 0.0}
    return method(name, **{key: value for key, value in wanted.items() if key in known} | settings)


def test_every_method_runs_on_spark() -> None:
    assert methods_on_spark() == list(METHODS)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "auto"])
def test_spark_equals_the_local_engine(table: Callable[[str], Table], tmp_path: Path, name: str) -> None:
    two = "two options" if name == "private-dawid-skene" else "options"
    chosen, reports = configured(name), table("scale" if METHODS[name].numeric else two)
    here = chosen.fit(reports.here)
    workers = tmp_path / "workers" if here.skills else None
    there = fit_packed(chosen, reports.there, tmp_path / "estimates", workers_out=workers)
    assert_same(values_of(tmp_path / "estimates"), values_here(here))
    if workers:
        assert_same(values_of(workers), skills_here(here))
    assert there.provenance["engine"] == "spark"
    assert (there.provenance["n_questions"], there.objective) == (200, here.objective)
    assert (there.warnings, there.converged) == (here.warnings, here.converged)
    assert there.iterations == here.iterations
    model = chosen.model(reports.there.context)
    assert set(there.parameters) <= {*model.by_worker, *model.shared, *model.kept}
    assert set(there.parameters) == set(here.parameters) - ONLY_HERE
    assert (there.floor is None) == (here.floor is None)
    if there.floor and here.floor:
        assert there.floor.sentence == here.floor.sentence
        assert there.floor.smallest_error == pytest.approx(here.floor.smallest_error, abs=1e-9)


def test_known_truths_and_earlier_work_count_the_same(table: Callable[[str], Table], tmp_path: Path) -> None:
    history = {f"w{number}": 20 * np.eye(3) for number in range(0, 90, 3)}
    chosen = configured("dawid-skene", gold={f"q{number}": "b" for number in range(0, 300, 7)}, history=history)
    here, _ = table("options").fitted(chosen, tmp_path)
    plain = configured("dawid-skene").fit(table("options").here)
    assert np.abs(here.posterior - plain.posterior).max() > 0.1


def test_auto_chooses_the_same_and_says_why(
    table: Callable[[str], Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "MAX_OPTIONS", 2)
    here, there = table("options").fitted(method("auto"), tmp_path)
    assert (there.method, there.warnings) == (here.method, here.warnings)
    assert there.warnings[0] == "auto chose majority: more than 2 options"
    clear = table("clear")
    answers = np.bincount(clear.here.worker)
    assert median_per_worker(clear.there.reports) == np.median(answers[answers > 0])


def test_reports_that_are_numbers_with_noise_keep_their_digits(table: Callable[[str], Table], tmp_path: Path) -> None:
    here, there = table("numbers").fitted(configured("weighted-mean"), tmp_path)
    assert there.floor is not None
    assert there.floor.sentence == here.floor.sentence


def test_the_prior_stands_where_reports_cannot_tell_more(table: Callable[[str], Table], tmp_path: Path) -> None:
    here, there = table("noise").fitted(configured("channel-bp"), tmp_path)
    assert here.floor is not None
    assert not here.floor.informative
    assert there.warnings == here.warnings


def test_large_statistics_are_added_in_tasks(
    table: Callable[[str], Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "DIRECT_BYTES", 0)
    table("options").fitted(configured("one-coin"), tmp_path)


def test_a_warm_start_matches_workers_by_their_ids(
    spark: SparkSession, table: Callable[[str], Table], tmp_path: Path
) -> None:
    clear = table("clear")
    write_reports(tmp_path / "old.parquet", clear.here.rows(np.flatnonzero(clear.here.worker > 20)))
    chosen = method("dawid-skene", precision="float64", tol=1e-5)
    old = read_spark(spark, tmp_path / "old.parquet")
    fit_on_spark(chosen, old, tmp_path / "a", start_out=tmp_path / "start")
    cold = fit_packed(chosen, clear.there, tmp_path / "b")
    start = read_spark_start(spark, tmp_path / "start")
    warm = fit_packed(chosen, clear.there, tmp_path / "c", start=start)
    assert warm.iterations < cold.iterations
    one, other = values_of(tmp_path / "b"), values_of(tmp_path / "c")
    assert all(one[question][0] == other[question][0] for question in one)
    with pytest.raises(InputError, match="the start must be of one-coin"):
        fit_packed(method("one-coin"), clear.there, tmp_path / "d", start=start)


def test_a_finished_job_is_found_again_but_not_by_another_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reports.parquet"
    write_reports(path, mixed(ABC))
    reports, work = read_spark(spark, path), f"file://{tmp_path}/work"
    chosen, job = configured("weighted-vote"), pack_on_spark(reports, work)
    first = fit_packed(chosen, job, tmp_path / "a")
    before = values_of(tmp_path / "a")
    found = pack_on_spark(reports, work, resume=True)
    assert (found.sizes, found.packing) == (job.sizes, job.packing)
    again = fit_packed(chosen, found, tmp_path / "b")
    assert (len(first.trace), len(again.trace)) == (3, 1)
    assert again.iterations == first.iterations
    assert_same(values_of(tmp_path / "b"), before)
    for other, said in ((configured("one-coin"), "method"), (configured("weighted-vote", max_iter=4), "settings")):
        with pytest.raises(InputError, match=f"another {said}"):
            fit_packed(other, found, tmp_path / "c")
    with pytest.raises(InputError, match="another source"):
        pack_on_spark(replace(reports, source="elsewhere"), work, resume=True)
    with monkeypatch.context() as later:
        later.setattr(job_module, "FORM", -1)
        with pytest.raises(InputError, match=r"another version of crowdveil .*form -1"):
            pack_on_spark(reports, work, resume=True)
    with pytest.raises(InputError, match="name that folder"):
        fit_on_spark(chosen, reports, tmp_path / "c", resume=True)
    # A driver that died after it had packed anew: the checkpoint of the packing before is none of its business.
    anew = fit_packed(chosen, replace(found, packing="a later one"), tmp_path / "d")
    assert len(anew.trace) == 3


class WholeTable(Method):
    """A method without a model, as somebody might register."""

    name = "whole-table"
    summary = ""

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        raise NotImplementedError


def test_a_method_without_a_model_names_those_that_can_run(table: Callable[[str], Table], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"whole-table looks at the whole table at once.*use majority, mean, median"):
        fit_packed(WholeTable(), table("options").there, tmp_path / "out")
    with pytest.raises(InputError, match="method majority learns no skills; do not ask for them"):
        fit_packed(method("majority"), table("options").there, tmp_path / "out", workers_out=tmp_path / "workers")


BAD = {
    "null worker": "w,q,a,0\n,q,a,0",
    "null question": "w,q,a,0\nw,,a,0",
    "channel out of range": "w,q,a,0\nw,r,a,7",
    "channel of words": "w,q,a,0\nw,r,a,first",
    "unknown report": "w,q,a,0\nw,r,zebra,0",
    "duplicate": "w,q,a,0\nw,r,a,0\nw,q,b,0",
    "empty": "",
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_in_the_same_words(spark: SparkSession, tmp_path: Path, case: str) -> None:
    path = tmp_path / "reports.csv"
    write_reports(path, Reports.from_rows([("w", "q", 0, 0)], [RandomizedResponse(epsilon=1).channel(ABC)], ABC))
    path.write_text(f"worker,question,report,channel\n{BAD[case]}\n")
    with pytest.raises(FileError) as here:
        read_reports(path)
    with pytest.raises(FileError) as there:
        fit_on_spark(method("majority"), read_spark(spark, path), tmp_path / "out")
    assert (there.value.problem, there.value.fix) == (here.value.problem, here.value.fix)
    assert there.value.field == here.value.field
    assert not (tmp_path / "out").exists()


def test_the_command_line_runs_on_spark_and_scores(spark: SparkSession, tmp_path: Path) -> None:
    answers = crowd(ABC, 8)
    path = tmp_path / "answers.csv"
    write_answers(path, answers)
    (tmp_path / "truth.csv").write_text("question,truth\n" + "".join(f"q{n},a\n" for n in range(20)))
    flags = ["--method", "one-coin", "--param", "max_iter=2", "--truth", tmp_path / "truth.csv"]
    on_spark = ["--engine", "spark", "--master", "local[2]"]
    result = crowdveil_json("infer", path, "-o", tmp_path / "out.parquet", *flags, *on_spark)
    local = crowdveil_json("infer", path, "-o", tmp_path / "local.parquet", *flags)
    assert result["metrics"] == pytest.approx(local["metrics"])
    assert result["n_reports"] == local["n_reports"] == len(answers)
    assert result["floor"] == local["floor"] is not None
    again = crowdveil("infer", path, "-o", tmp_path / "out.parquet", *flags, *on_spark)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_notes_that_only_spark_can_reach_alternate(spark: SparkSession, tmp_path: Path) -> None:
    notes = notes_in(f"file://{tmp_path}/notes", spark)
    assert notes.read("note") is None
    notes.write("note", b"one")
    notes.write("note", b"two")
    # What a writer leaves that died before its files were moved into place: the older note still stands.
    newest = tmp_path / "notes" / "note-0"
    shutil.rmtree(newest)
    (newest / "_temporary" / "0").mkdir(parents=True)
    assert notes.read("note") == b"one"
    again = notes_in(f"file://{tmp_path}/notes", spark)
    again.write("note", b"three")
    assert again.read("note") == b"three"


def test_blocks_that_the_driver_cannot_see_are_not_left_out() -> None:
    check_complete(10, 10, "work")
    with pytest.raises(InputError, match="7 of 10 packed reports can be seen in the work folder 'work'; let it be"):
        check_complete(7, 10, "work")
