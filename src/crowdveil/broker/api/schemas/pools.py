"""What requesters and workers of a task pool send and get."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from crowdveil.broker.api.schemas.common import Budget, Charge, Given, Hex32, Hex64, Taken
from crowdveil.broker.pools.rules import MAX_BATCH_SIZE, MAX_TASKS
from crowdveil.broker.studies.draft import LevelName
from crowdveil.broker.studies.questions import Option

TaskId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$")]
TaskText = Annotated[str, StringConstraints(max_length=5000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
TaskNumber = Annotated[int, Field(ge=0, lt=MAX_TASKS)]
Accounting = Literal["summed", "one-by-one"]


class NewTask(Taken):
    """One row of a task list; `gold` is its known truth and never public before the pool is published."""

    id: TaskId
    text: TaskText
    text_b: TaskText | None = None
    alt: TaskText | None = None
    gold: Option | None = None


class NewAssignment(Taken):
    """This worker code is to label this task."""

    worker: TaskId
    task: TaskId


class TaskPart(Taken):
    """Tasks from number `first` on, and pairs of a listed assignment."""

    first: Annotated[int, Field(ge=0, le=MAX_TASKS)]
    tasks: Annotated[list[NewTask], Field(max_length=2000)] = []
    assignments: Annotated[list[NewAssignment], Field(max_length=5000)] = []


class Upload(Given):
    upload: Hex32


class CommitUpload(Taken):
    n_tasks: Annotated[int, Field(ge=1, le=MAX_TASKS)]


class TaskList(Given):
    """The list of a draft: its size and the Merkle root that the definition will carry."""

    n_tasks: int
    tasks_root: Hex64


class LeaseRequest(Taken):
    level: LevelName
    study_sha256: Hex64
    accounting: Accounting = "summed"
    worker_code: TaskId | None = None


class LeasedTask(Given):
    """A task with the proof that it stands at `number` of the list."""

    number: int
    id: str
    text: str
    text_b: str | None
    alt: str | None
    image: str | None
    audio: str | None
    proof: list[Hex64]


class LeaseView(Given):
    """An open batch. Who was leased what, and for how long, is visible to the broker until the pool closes."""

    batch: Hex32
    study: Hex32
    level: LevelName
    pay_cents: int
    charge: Charge | None
    expires: str
    tasks: list[LeasedTask]
    budget: Budget


class TaskReport(Taken):
    task: TaskNumber
    report: Annotated[int, Field(ge=0, le=65535)]


class SubmitBatch(Taken):
    """The reports of one batch, all drawn through the channel of the form at this level."""

    study_sha256: Hex64
    level: LevelName
    accounting: Accounting = "summed"
    consent_version: Annotated[int, Field(ge=0, le=10**6)]
    withdrawal_sha256: Hex64
    channel: Hex64
    reports: Annotated[list[TaskReport], Field(max_length=MAX_BATCH_SIZE)]


class BatchReceipt(Given):
    """`n_dropped` reports came to tasks that had reached their bound; the pay is that of the whole batch."""

    receipt: Hex32
    study: Hex32
    study_sha256: Hex64
    batch: Hex32
    level: LevelName
    n_reports: int
    n_dropped: int
    pay_cents: int
    accounting: Accounting
    charge: Charge | None
    day: str
    signature: str


class LabelLine(Given):
    task: str
    label: str | None
    probability: float | None
    low: float | None
    high: float | None
    n_reports: int


class Labels(Given):
    """A page of the newest labels, and how far the pool is."""

    update: int
    day: str
    final: bool
    method: str
    warnings: list[str]
    converged: bool
    iterations: int
    privacy: str
    n_workers: int
    n_reports: int
    n_tasks: int
    n_certain: int
    certain_at: float
    n_gold: int
    n_gold_right: int
    items: list[LabelLine]
    next: int | None


class PublishedLabels(Labels):
    """With the known truths of these tasks; all of them and the salt have the hash that the definition commits to."""

    gold: dict[str, str]
    gold_salt: str | None
