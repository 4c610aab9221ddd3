"""The Python SDK: a requester, and a worker whose answers leave the machine randomised (except at level "none")."""

from crowdveil.client.http import Broker, ProblemError
from crowdveil.client.requester import Requester
from crowdveil.client.study import Study, StudyError
from crowdveil.client.worker import Sent, Worker

__all__ = ["Broker", "ProblemError", "Requester", "Sent", "Study", "StudyError", "Worker"]
