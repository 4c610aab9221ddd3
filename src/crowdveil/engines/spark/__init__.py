"""The same inference on Apache Spark: packed blocks in a DataFrame, the same driver, models and kernels.

Only the DataFrame API is used, so Spark Connect and managed Spark work too. Questions are packed into blocks that
never split one; workers get dense codes by distinct → sort → offset; parameters travel with the tasks, or as files on a
disk that all share; large statistics are added chunk by chunk in tasks; results go straight to Parquet. The driver
holds parameters, never reports.
"""

from crowdveil.engines.spark.connection import one_task_per_file, open_spark
from crowdveil.engines.spark.fit import fit_on_spark, fit_packed, methods_on_spark
from crowdveil.engines.spark.job import pack_on_spark
from crowdveil.engines.spark.read import SparkReports, read_spark, unprotected_reports
from crowdveil.engines.spark.warm_start import SparkStart, read_spark_start

__all__ = [
    "SparkReports",
    "SparkStart",
    "fit_on_spark",
    "fit_packed",
    "methods_on_spark",
    "one_task_per_file",
    "open_spark",
    "pack_on_spark",
    "read_spark",
    "read_spark_start",
    "unprotected_reports",
]
