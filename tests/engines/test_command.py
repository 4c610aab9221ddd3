"""`crowdveil infer --engine spark` elsewhere: through Spark Connect, on a server, and without Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from cli.run import crowdveil
from engines.crowds import OLD_SPARK, QUICK, assert_same, mixed, values_here, values_of

from crowdveil import Choices
from crowdveil.files import read_reports, write_reports
from crowdveil.inference import method

pytestmark = [*OLD_SPARK, pytest.mark.slow]
ABC = Choices(("a", "b", "c"))


def test_without_java_the_fix_is_named(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("worker,question,answer\nw,q,a\n")
    environment = {"PATH": str(tmp_path), "PYTHONPATH": os.environ["PYTHONPATH"]}
    flags = ["answers.csv", "-o", "out.parquet", "--method", "majority", "--engine", "spark"]
    command = [sys.executable, "-m", "crowdveil", "infer", *flags]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Spark needs Java and none was found; install a Java 17 runtime or use the engine local" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(
    int(pyspark.__version__.partition(".")[0]) < 4, reason="the package of Spark 3.5 brings no Connect server along"
)
def test_it_runs_through_spark_connect(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    write_reports(path, mixed(ABC))
    # A server of this process on a free port of the loopback address.
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in QUICK.items()))
    environment = os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path)}
    settings = ["--method", "one-coin", "--param", "max_iter=2", "--param", "tol=0"]
    flags = [str(path), "-o", str(tmp_path / "out.parquet"), *settings, "--engine", "spark", "--remote", "local[2]"]
    command = [sys.executable, "-m", "crowdveil", "infer", *flags]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = method("one-coin", max_iter=2, tol=0.0).fit(read_reports(path))
    assert_same(values_of(tmp_path / "out.parquet"), values_here(here))


def test_a_server_elsewhere_needs_a_folder_it_can_reach(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("worker,question,answer\nw,q,a\n")
    flags = ["--method", "majority", "--engine", "spark", "--remote", "sc://cluster.example:15002"]
    done = crowdveil("infer", tmp_path / "answers.csv", "-o", tmp_path / "out.parquet", *flags)
    assert done.returncode == 2
    assert "give --work" in done.stderr
