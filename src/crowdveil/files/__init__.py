"""At the door: answers, reports, truths and datasets from files, and frames of other libraries.

Names are loaded when they are first used: where a file's channels stand is known without loading Arrow.
"""

from typing import TYPE_CHECKING

from crowdveil._lazy import lazy_names

if TYPE_CHECKING:
    from crowdveil.files.answers import read_answers, write_answers
    from crowdveil.files.datasets import data_folder, load_dataset
    from crowdveil.files.estimates import write_estimates, write_workers
    from crowdveil.files.frames import answers_from, reports_from
    from crowdveil.files.paths import sidecar
    from crowdveil.files.reports import channels_from_json, channels_json, read_reports, write_reports
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
    "write_estimates",
    "write_reports",
    "write_workers",
]

_MODULES = {
    "answers": ("read_answers", "write_answers"),
    "datasets": ("data_folder", "load_dataset"),
    "estimates": ("write_estimates", "write_workers"),
    "frames": ("answers_from", "reports_from"),
    "paths": ("sidecar",),
    "reports": ("channels_from_json", "channels_json", "read_reports", "write_reports"),
    "tasks": ("read_assignments", "read_tasks"),
    "truth": ("read_ids", "read_truth"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, globals(), _MODULES)
