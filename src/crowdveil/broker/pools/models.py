"""Tasks, who was leased which of them, the reports of each batch, and the newest labels.

Workers are known here by their pseudonym in the pool only. Which tasks were leased to a pseudonym, and how long a lease
lasted, is visible to the broker until the pool closes; the offer says so.
"""

from __future__ import annotations

from django.db import models

from crowdveil.broker.clock import today
from crowdveil.broker.ids import ID_LENGTH, random_id

TASK_NAME_LENGTH = 64
CODE_LENGTH = 64


class Pool(models.Model):
    """The task list of one study; `upload` is the import that was committed last, empty before the first."""

    study = models.CharField(max_length=ID_LENGTH, primary_key=True)
    upload = models.CharField(max_length=ID_LENGTH, blank=True)
    n_tasks = models.IntegerField(default=0)
    root = models.CharField(max_length=64, blank=True)


class Task(models.Model):
    """One row of the list. `load` is its reports and open leases together; `shuffle` breaks ties at random.

    `content` is the canonical JSON that the Merkle leaf is the hash of, `proof` the concatenated siblings.
    """

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    upload = models.CharField(max_length=ID_LENGTH)
    number = models.IntegerField()
    name = models.CharField(max_length=TASK_NAME_LENGTH)
    content = models.TextField()
    proof = models.BinaryField(default=b"")
    gold = models.CharField(max_length=200, null=True)
    open = models.BooleanField(default=True)
    n_reports = models.IntegerField(default=0)
    load = models.IntegerField(default=0)
    shuffle = models.IntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["upload", "number"], name="one_task_per_number"),
            models.CheckConstraint(
                condition=models.Q(n_reports__gte=0, load__gte=models.F("n_reports")), name="task_load_covers_reports"
            ),
        ]
        indexes = [
            models.Index(fields=["study", "open", "load", "shuffle"], name="task_fewest_first"),
            models.Index(fields=["study", "number"], name="task_by_number"),
            models.Index(fields=["upload", "name"], name="task_by_name"),
        ]


class WorkerCode(models.Model):
    """A worker of a listed assignment; the pseudonym is that of whoever came with the code first."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    code = models.CharField(max_length=CODE_LENGTH)
    pseudonym = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "code"], name="one_row_per_worker_code")]


class Assignment(models.Model):
    """One pair of a listed assignment: this worker code is to label this task."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    upload = models.CharField(max_length=ID_LENGTH)
    code = models.CharField(max_length=CODE_LENGTH)
    name = models.CharField(max_length=TASK_NAME_LENGTH)
    task = models.IntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upload", "code", "name"], name="one_assignment_per_pair")]
        indexes = [models.Index(fields=["study", "code", "task"], name="assignment_of_code")]


class Lease(models.Model):
    """The open batch of one worker; an expired one is not active, and comes back when the worker does."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    pseudonym = models.CharField(max_length=64)
    level = models.SmallIntegerField()
    expires = models.DateTimeField()
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "pseudonym"], name="one_lease_per_worker")]
        indexes = [models.Index(fields=["active", "expires"], name="lease_expires")]


class LeasedTask(models.Model):
    """A task that was leased to a worker, reported or not: it is never leased to the same worker again."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    pseudonym = models.CharField(max_length=64)
    task = models.IntegerField()
    lease = models.CharField(max_length=ID_LENGTH)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "pseudonym", "task"], name="never_leased_twice")]
        indexes = [models.Index(fields=["lease"], name="task_of_lease")]


class Batch(models.Model):
    """The reports of one batch in one row: task numbers as little-endian 32-bit, codes as 16-bit integers.

    `counted` is the update of the labels that took it in first, 0 before. `lease`, `digest`, `receipt` and
    `idempotency` let a retry be recognised; they are emptied when the pool closes.
    """

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    pseudonym = models.CharField(max_length=64)
    level = models.SmallIntegerField()
    tasks = models.BinaryField()
    codes = models.BinaryField()
    # Unique over all studies, as of submissions: one key used twice would link two pseudonyms.
    withdrawal_sha256 = models.CharField(max_length=64, unique=True)
    lease = models.CharField(max_length=ID_LENGTH, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    receipt = models.CharField(max_length=ID_LENGTH, blank=True)
    idempotency = models.CharField(max_length=64, blank=True)
    counted = models.IntegerField(default=0)
    day = models.DateField(default=today)

    class Meta:
        indexes = [
            models.Index(fields=["study", "id"], name="batch_shuffled"),
            models.Index(fields=["study", "counted", "pseudonym"], name="batch_counted"),
            models.Index(fields=["lease"], name="batch_of_lease"),
        ]


class Update(models.Model):
    """One estimation of all labels of a pool, from the batches of `n_workers` workers."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    number = models.IntegerField()
    n_workers = models.IntegerField()
    n_reports = models.IntegerField()
    day = models.DateField(default=today)
    final = models.BooleanField(default=False)
    # False until all labels of this update are stored.
    complete = models.BooleanField(default=False)
    summary = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="one_update_per_number")]


class Label(models.Model):
    """The estimate of one task in one update."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    number = models.IntegerField()
    task = models.IntegerField()
    name = models.CharField(max_length=TASK_NAME_LENGTH)
    value = models.CharField(max_length=200, null=True)
    probability = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    n_reports = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "number", "task"], name="one_label_per_task")]
        indexes = [models.Index(fields=["study", "number", "probability", "task"], name="label_least_certain")]
