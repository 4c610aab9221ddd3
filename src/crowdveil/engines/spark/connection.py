"""A Spark session: local, a cluster's master, or a Spark Connect server."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from crowdveil.errors import InputError

_SETTINGS = {
    "spark.sql.parquet.compression.codec": "none",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
# What only whoever starts Spark can say.
_OWN = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def open_spark(master: str | None = None, *, remote: str | None = None, **settings: str) -> SparkSession:
    """A session on this machine, on `master` (spark://…, local[4]) or through Spark Connect at `remote` (sc://…)."""
    if master and remote:
        raise InputError("give either a master or a remote; got both")
    if remote is None and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise InputError("Spark needs Java and none was found", fix="install a Java 17 runtime or use the engine local")
    # Executors must run this interpreter, or compiled packages would not match.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("crowdveil")
    builder = builder.remote(remote) if remote else builder.master(master or "local[*]")
    own = {} if remote else _OWN | (_LOOPBACK if _local(master) else {})
    for name, value in (own | _SETTINGS | settings).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def one_task_per_file(spark: SparkSession) -> Iterator[None]:
    """While blocks are read, a file of them is one task.

    Spark would otherwise merge small files and leave processors idle, and give large ones several tasks of which all
    but one find nothing. Tables of rows are better off with Spark's own rule. A managed service may refuse the setting;
    the work is then less evenly spread, and nothing else.
    """
    names = ("spark.sql.files.openCostInBytes", "spark.sql.files.maxPartitionBytes")
    before = {name: spark.conf.get(name) for name in names}
    with suppress(PySparkException):
        for name in names:
            spark.conf.set(name, str(1 << 30))
    try:
        yield
    finally:
        with suppress(PySparkException):
            for name, value in before.items():
                spark.conf.set(name, str(value))


def _local(master: str | None) -> bool:
    return master is None or master.startswith("local") or "127.0.0.1" in master
