"""The batch that is shown: the last one made, and nothing before there is one."""

from __future__ import annotations

from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.models import Batch
from crowdveil.broker.studies.definition import read_definition
from crowdveil.broker.studies.models import Study


def newest(study: Study) -> Batch:
    batch = find_latest_batch(study.id)
    if batch is None:
        minimum = minimum_submissions(study) if study.definition else 0
        raise Refusal(
            "below-minimum", f"estimates are shown from {minimum} submissions on; wait for more", minimum_n=minimum
        )
    return batch


def find_latest_batch(study: str) -> Batch | None:
    return Batch.objects.filter(study=study).order_by("-number").first()


def minimum_submissions(study: Study) -> int:
    return int(read_definition(study.definition, study.sha256).document["minimum_n"])
