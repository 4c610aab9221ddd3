"""The Python SDK: a worker whose answers are randomised on this machine (except at level "none"), and a requester."""

from crowdveil.client.http import Broker, ProblemError
from crowdveil.client.requester import Requester
from crowdveil.client.study import Study, StudyError
from crowdveil.client.submission import MirrorError, Sent
from crowdveil.client.worker import Worker

__all__ = ["Broker", "MirrorError", "ProblemError", "Requester", "Sent", "Study", "StudyError", "Worker"]
