"""At the door: answers, reports, truths and datasets from CSV or Parquet, and frames of other libraries."""

from crowdveil.files.answers import read_answers, write_answers
from crowdveil.files.datasets import data_folder, load_dataset
from crowdveil.files.frames import answers_from, reports_from
from crowdveil.files.reports import channels_from_json, channels_json, read_reports, sidecar, write_reports
from crowdveil.files.tasks import read_assignments, read_tasks
from crowdveil.files.truth import read_ids, read_truth

__all__ = [
    "answers_from",
    "channels_from_json",
    "channels_json",
    "data_folder",
    "load_dataset",
    "read_answers",
    "read_assignments",
    "read_ids",
    "read_reports",
    "read_tasks",
    "read_truth",
    "reports_from",
    "sidecar",
    "write_answers",
    "write_reports",
]
