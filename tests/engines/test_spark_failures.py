"""A cluster on loopback whose processes die in mid-job: the result is the right one all the same."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark
import pytest
from engines.crowds import OLD_SPARK, QUICK, QUICK_JAVA, assert_same, mixed, values_here, values_of
from waiting import until

from crowdveil import Choices, Estimate
from crowdveil.engines.spark.passes import CHECKPOINT, Reached
from crowdveil.files import read_reports, write_reports
from crowdveil.inference import method

pytestmark = [*OLD_SPARK, pytest.mark.slow]
METHOD = "channel-bp"
"""It remembers messages from pass to pass, so it has the most to lose."""
N_PASSES = 5
"""One for each death, and two that only the second driver makes."""
DRIVER = """
import json, sys
from crowdveil.engines.spark import fit_on_spark, open_spark, read_spark
from crowdveil.inference import method
master, name, folder, resume = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "resume"
spark = open_spark(master, **json.loads(sys.argv[6]))
chosen = method(name, precision="float64", max_iter=int(sys.argv[5]), tol=0.0)
estimate = fit_on_spark(chosen, read_spark(spark, f"{folder}/reports.parquet"), f"{folder}/estimates",
    work=f"{folder}/work", n_blocks=2, resume=resume)
print(json.dumps({"iterations": estimate.iterations, "made_here": len(estimate.trace)}))
spark.stop()
"""


@dataclass(frozen=True)
class Cluster:
    """A standalone master and two workers that this test started."""

    master: str
    workers: list[psutil.Process]
    folder: Path
    here: Estimate
    """What the local engine says: made while the cluster starts, so that tasks find the kernels compiled."""

    def drive(self, *, resume: bool = False) -> subprocess.Popen[str]:
        arguments = [self.master, METHOD, str(self.folder), "resume" if resume else "anew", str(N_PASSES)]
        command = [sys.executable, "-c", DRIVER, *arguments, json.dumps(QUICK)]
        # What Spark says goes to a file: a pipe that nobody reads would stop it.
        with self.log.open("w") as log:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def passes(self) -> int:
        note = self.folder / "work" / CHECKPOINT
        return Reached.from_bytes(note.read_bytes()).passes if note.is_file() else 0

    def wait_for(self, passes: int, driver: subprocess.Popen[str]) -> None:
        until(lambda: self.passes() >= passes or driver.poll() is not None, 600)
        assert driver.poll() is None, f"the job was over before the kill: {self.log.read_text()[-3000:]}"

    def children(self, spelled: str) -> list[psutil.Process]:
        """The processes below our own workers whose command line has that word."""
        below = [child for worker in self.workers for child in worker.children(recursive=True)]
        return [child for child in below if spelled in _command(child)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder, port = tmp_path_factory.mktemp("cluster"), _free_port()
    write_reports(folder / "reports.parquet", mixed(Choices(("a", "b", "c")), hidden=True))
    started: list[subprocess.Popen[bytes]] = []
    extra = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "128m", "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}

    def start(kind: str, *arguments: object) -> None:
        home = Path(str(pyspark.__file__)).parent
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
        with (folder / f"log-{len(started)}").open("wb") as log:
            full = [*map(str, command), *map(str, arguments)]
            started.append(subprocess.Popen(full, stdout=log, stderr=log, env=os.environ | extra))

    try:
        start("master.Master", "--port", port, "--webui-port", 0)
        chosen = method(METHOD, precision="float64", max_iter=N_PASSES, tol=0.0)
        here = chosen.fit(read_reports(folder / "reports.parquet"))
        until(lambda: _listening(port), 600)
        address = f"spark://127.0.0.1:{port}"
        for _ in range(2):
            limits = ["--cores", 1, "--memory", "600m", "--webui-port", 0, "--work-dir", folder / "workers"]
            start("worker.Worker", *limits, address)
        yield Cluster(address, [psutil.Process(process.pid) for process in started[1:]], folder, here)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=60)


def finished(cluster: Cluster, driver: subprocess.Popen[str]) -> dict[str, int]:
    out, _ = driver.communicate(timeout=600)
    assert driver.returncode == 0, cluster.log.read_text()[-3000:]
    result: dict[str, int] = json.loads(out.splitlines()[-1])
    return result


def test_an_executor_a_python_worker_and_the_driver_die_in_mid_job(cluster: Cluster) -> None:
    """One job, three deaths: two that Spark mends, and one after which a new driver goes on from the checkpoint."""
    driver = cluster.drive()
    for passes, spelled in ((1, "CoarseGrainedExecutorBackend"), (2, "pyspark.daemon")):
        cluster.wait_for(passes, driver)
        # The last one is the deepest: for Python that is a worker, not the daemon it was forked from.
        until(lambda spelled=spelled: cluster.children(spelled), 600)[-1].kill()
    # The job goes on after both.
    cluster.wait_for(3, driver)
    for process in (psutil.Process(driver.pid), *psutil.Process(driver.pid).children(recursive=True)):
        process.kill()
    driver.communicate()
    died_at = cluster.passes()
    assert died_at < N_PASSES
    done = finished(cluster, cluster.drive(resume=True))
    assert done["iterations"] == N_PASSES
    # The pass that was under way is made again; those before it are not.
    assert done["made_here"] == N_PASSES - died_at
    assert_same(values_of(cluster.folder / "estimates"), values_here(cluster.here))
