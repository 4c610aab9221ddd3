"""Files at the door: answers, reports, truths and datasets, CSV or Parquet."""

from crowdveil.files.answers import read_answers, write_answers
from crowdveil.files.datasets import data_folder, load_dataset
from crowdveil.files.reports import channels_from_json, channels_json, read_reports, sidecar, write_reports
from crowdveil.files.truth import read_ids, read_truth

__all__ = [
    "channels_from_json",
    "channels_json",
    "data_folder",
    "load_dataset",
    "read_answers",
    "read_ids",
    "read_reports",
    "read_truth",
    "sidecar",
    "write_answers",
    "write_reports",
]
