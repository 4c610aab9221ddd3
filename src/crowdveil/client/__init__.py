"""The Python SDK: a worker whose answers never leave the machine, and a requester."""

from crowdveil.client.http import Broker, ProblemError
from crowdveil.client.requester import Requester
from crowdveil.client.study import Study, StudyError
from crowdveil.client.worker import Sent, Worker

__all__ = ["Broker", "ProblemError", "Requester", "Sent", "Study", "StudyError", "Worker"]
