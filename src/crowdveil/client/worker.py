"""A worker who checks the study, charges their own ledger, draws once and sends exactly that.

Answers stay here at every level but "none", at which they are sent as they are.

Unlike a web page, which its own server could replace, this client is code that you installed.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.accounting import Budget, Ledger, SqliteStorage
from crowdveil.accounting.nano import from_nano
from crowdveil.client.account import Account
from crowdveil.client.device_state import Memory
from crowdveil.client.http import Broker, ProblemError
from crowdveil.client.labelling import PoolTask, Sitting, ceiling_fact
from crowdveil.client.public_log import follow
from crowdveil.client.study import Level, Study, StudyError, check_signature
from crowdveil.client.submission import MirrorError, Sent, cells_at_stake, encode_answers, study_spends
from crowdveil.entropy import Entropy, SystemEntropy
from crowdveil.errors import InputError
from crowdveil.sampler import draw

_ME = "me"
_USUAL_CAP = 4.0
# Refusals for which the broker looked whether it has this very submission, and has not.
_LOOKED = ("over-budget", "no-money", "already-submitted", "idempotency-conflict", "withdrawn")


class Worker:
    """One device of one worker; everything it must remember is in the directory `home`.

    The cap is the worker's own: the ledger here refuses what passes it, whatever the broker says. It is remembered from
    the sign-up on (ε 4 unless said otherwise): an `epsilon_cap` given later can only lower it, and what `raise_cap` has
    set counts from then on.
    """

    def __init__(
        self, broker: Broker, home: str | Path, *, epsilon_cap: float | None = None, entropy: Entropy | None = None
    ) -> None:
        self._home = Path(home).expanduser()
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._broker = broker
        self._memory = Memory(self._home / "device.sqlite3")
        _make_private(self._home / "ledger.sqlite3")
        self._storage = SqliteStorage(self._home / "ledger.sqlite3")
        self.ledger = Ledger(Budget(self._cap(epsilon_cap)), self._storage)
        self._entropy = SystemEntropy() if entropy is None else entropy
        self._account = Account(broker, self._memory)

    def _cap(self, given: float | None) -> float:
        if (chosen := self._memory.fact("epsilon-cap")) is not None:
            return float(chosen)
        if (first := self._memory.fact("first-cap")) is None:
            return _USUAL_CAP if given is None else given
        return float(first) if given is None else min(float(first), given)

    def close(self) -> None:
        self._broker.close()
        self._memory.close()
        self._storage.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sign_up(self, *, default_level: str = "medium") -> str:
        """An account without a name; the token stays in `home`. A second call returns the same account.

        One that the broker no longer knows is told, never replaced unasked: `begin_anew` does that.
        """
        if (known := self._account.id) is not None:
            self._account.check()
            return known
        budget = self.ledger.budget
        made = self._account.sign_up({"default_level": default_level, "epsilon_cap_nano": budget.cap.epsilon})
        self._memory.remember("first-cap", repr(budget.epsilon))
        self._broker_key()
        return made

    def begin_anew(self, *, default_level: str = "medium") -> str:
        """A new account in place of one that the broker no longer knows; the ledger, and every draw, stays."""
        if not self._account.is_lost():
            raise InputError("this device has an account; a new one would lose what it earned", fix="erase it first")
        self._account.forget()
        return self.sign_up(default_level=default_level)

    def catch_up(self) -> None:
        """A device that forgot (it is new, or was set back) starts no lower than what the broker says was spent.

        It believes the broker: a false number uses up the budget for good, so `answer` asks for this call first. And
        the broker's guard learns the cap where it has another.
        """
        mirrored = self._mirrored()
        if self._is_ahead(mirrored):
            epsilon, rho = from_nano(mirrored["epsilon_spent_nano"]), from_nano(mirrored["rho_spent_nano"])
            key = f"mirror {mirrored['epsilon_spent_nano']} {mirrored['rho_spent_nano']}"
            self.ledger.carry_over(_ME, epsilon=epsilon, rho=rho, key=key)
        self._agree_on_cap(mirrored["epsilon_cap_nano"])

    def mirror(self) -> tuple[float, float]:
        """The ε that was spent: as the broker says, and as this device knows."""
        return from_nano(self._mirrored()["epsilon_spent_nano"]), from_nano(self._storage.spent(_ME).epsilon)

    def dismiss_mirror(self) -> None:
        """The broker's number is wrong: go on with this device's own until the broker claims still more."""
        mirrored, spent = self._mirrored(), self._storage.spent(_ME)
        self._memory.remember("dismissed-epsilon", str(mirrored["epsilon_spent_nano"] - spent.epsilon))
        self._memory.remember("dismissed-rho", str(mirrored["rho_spent_nano"] - spent.rho))

    def _mirrored(self) -> dict[str, int]:
        budget: dict[str, int] = self._account.call("GET", "/workers/me")["budget"]
        return budget

    def _is_ahead(self, mirrored: dict[str, int], *, epsilon: int = 0, rho: int = 0) -> bool:
        """Whether the broker's sums exceed this device's by more than these amounts."""
        spent = self._storage.spent(_ME)
        ahead = mirrored["epsilon_spent_nano"] - spent.epsilon > epsilon
        return ahead or mirrored["rho_spent_nano"] - spent.rho > rho

    def _check_mirror(self) -> None:
        """One reply could use up the budget for good: a larger sum than this device's is not counted unasked."""
        mirrored = self._mirrored()
        epsilon, rho = (int(self._memory.fact(f"dismissed-{name}") or 0) for name in ("epsilon", "rho"))
        if self._is_ahead(mirrored, epsilon=epsilon, rho=rho):
            raise MirrorError(from_nano(mirrored["epsilon_spent_nano"]), from_nano(self._storage.spent(_ME).epsilon))
        self._agree_on_cap(mirrored["epsilon_cap_nano"])

    def _agree_on_cap(self, mirrored: int) -> None:
        """What this device remembers counts; one that remembers no cap takes no higher one than the broker was told."""
        known = self._memory.fact("epsilon-cap") or self._memory.fact("first-cap")
        if known is None and 0 < mirrored < self.ledger.budget.cap.epsilon:
            self._memory.remember("first-cap", repr(from_nano(mirrored)))
            self.ledger = Ledger(Budget(from_nano(mirrored)), self._storage)
        if (cap := self.ledger.budget.cap.epsilon) != mirrored:
            self._account.call("PATCH", "/workers/me", {"epsilon_cap_nano": cap})

    def _keep_cap(self, budget: Budget) -> None:
        self.ledger = Ledger(budget, self._storage)
        self._memory.remember("epsilon-cap", repr(budget.epsilon))

    def studies(self) -> list[dict[str, Any]]:
        """What this worker may answer."""
        return list(self._account.call("GET", "/workers/me/studies")["items"])

    def study(self, key: str) -> Study:
        """A study, checked: hash, signature, the whole public log, every channel, every charge.

        And the same as ever: what was agreed to must not become another study by the time it is answered.
        """
        signed = self._broker.call("GET", f"/studies/{key}")
        if signed["definition"].get("id") != key:
            raise StudyError("the broker sent another study than the one asked for")
        follow(self._broker, self._memory)
        if self._memory.log_entry(signed["log"]["index"]) != signed["log"]["entry"]:
            raise StudyError("the public log does not have this definition; somebody may be served a special one")
        study = Study.checked(signed, signed["log"], self._broker_key())
        if (seen := self._memory.fact(_key(study)) or study.sha256) != study.sha256:
            raise StudyError("this is not the study that this device read before: it was changed after it was shown")
        self._memory.remember(_key(study), seen)
        return study

    def _broker_key(self) -> str:
        """The broker's public key: the one this device saw first. Another one later is not believed."""
        if (known := self._memory.fact("public-key")) is None:
            known = str(self._broker.call("GET", "/")["public_key"])
            self._memory.remember("public-key", known)
        return known

    def answer(self, key: str, answers: dict[str, Any], *, level: str | None = None) -> Sent:
        """Answer a study: question id → answer. What is left out, or None, counts as skipped.

        Charged and drawn at most once: asking again sends the very same reports, whatever `answers` says then.
        """
        study = self.study(key)
        if study.pool is not None:
            raise InputError("this study is a pool of tasks", fix="label its tasks in batches")
        chosen = _level(study, level or self._memory.fact("default_level") or "medium")
        if (parcel := self._storage.kept(_ME, _key(study))) is None:
            parcel = self._made(study, chosen, encode_answers(study, answers))
        elif self._memory.receipt(study.id) is None and self._memory.fact(_left(study)) is None:
            self._check_unanswered(study)
        return self._send(study, json.loads(parcel))

    def _check_unanswered(self, study: Study) -> None:
        """Before a draw leaves that has waited here: another device may have drawn meanwhile; only one was charged."""
        if any(card["id"] == study.id and card["status"] == "submitted" for card in self.studies()):
            raise StudyError("another device of yours has answered this study; what was drawn here stays here")

    def _made(self, study: Study, level: Level, codes: dict[str, int]) -> str:
        """Reserve, charge, draw and keep, in this order; a budget that is too small is noticed before anything else."""
        spends, at_stake = study_spends(study, level, codes), cells_at_stake(study, level)
        self._check_mirror()
        if self.ledger.affords(_ME, *spends, at_stake=at_stake):
            reserve = {"level": level.name, "study_sha256": study.sha256}
            self._account.call("PUT", f"/studies/{study.id}/reservation", reserve)
        return self.ledger.release(
            _ME, *spends, key=_key(study), draw=lambda: self._drawn(study, level, codes), at_stake=at_stake
        )

    def _drawn(self, study: Study, level: Level, codes: dict[str, int]) -> str:
        reports = [
            {
                "question": question,
                "channel": level.channels[question].sha256,
                "report": self._draw(level, question, code),
            }
            for question, code in codes.items()
        ]
        withdrawal_key = secrets.token_hex(32)
        body = {
            "study_sha256": study.sha256,
            "level": level.name,
            "consent_version": study.definition["consent"]["version"],
            "withdrawal_sha256": hashlib.sha256(bytes.fromhex(withdrawal_key)).hexdigest(),
            "reports": reports,
        }
        return json.dumps({"body": body, "withdrawal_key": withdrawal_key, "idempotency_key": secrets.token_hex(16)})

    def _draw(self, level: Level, question: str, code: int) -> int:
        return int(draw(level.channels[question], np.array([code]), self._entropy)[0])

    def _send(self, study: Study, parcel: dict[str, Any]) -> Sent:
        path, body = f"/studies/{study.id}/submissions", parcel["body"]
        try:
            receipt = self._account.call("POST", path, body, Idempotency_Key=parcel["idempotency_key"])
        except ProblemError as refused:
            unsure = refused.repeated or self._memory.fact(_left(study)) is not None
            if refused.left:
                self._memory.remember(_left(study), "yes")
            if unsure and refused.status and refused.code not in _LOOKED:
                raise _unknown(study, refused) from None
            raise
        signed = {name: value for name, value in receipt.items() if name != "signature"}
        check_signature(signed, receipt["signature"], self._broker_key())
        self._memory.keep_receipt(study.id, study.definition["title"], json.dumps(receipt))
        return Sent(tuple(body["reports"]), receipt, body["level"], study.levels[body["level"]].protected)

    def label(
        self,
        key: str,
        answer: Callable[[PoolTask], Any],
        *,
        level: str | None = None,
        batches: int = 1,
        one_by_one: bool = False,
        worker_code: str | None = None,
    ) -> list[Sent]:
        """Label up to `batches` batches of a pool: `answer` gives the label of a task, or None to skip it.

        Every batch is charged, drawn once, stored and sent as a study is. With `one_by_one` its answers are protected
        one by one, outside the cap and within the ceiling that `set_ceiling` has set for this pool.
        """
        study = self.study(key)
        if study.pool is None:
            raise InputError("this study is a survey", fix="answer it whole")
        chosen = _level(study, level or self._memory.fact("default_level") or "medium")
        self._check_mirror()
        sitting = Sitting(
            study, chosen, self._account, self._memory, self._storage, self.ledger, self._entropy, self._broker_key()
        )
        accounting = "one-by-one" if one_by_one else "summed"
        return [
            Sent(tuple(body["reports"]), receipt, chosen.name, chosen.protected)
            for body, receipt in sitting.label(answer, batches=batches, accounting=accounting, worker_code=worker_code)
        ]

    def pools(self) -> list[dict[str, Any]]:
        """The pools of tasks in which this worker may label."""
        return list(self._account.call("GET", "/workers/me/studies?kind=tasks")["items"])

    def set_ceiling(self, key: str, epsilon: float) -> None:
        """How much Σε the answers to one pool may add up to where they are protected one by one; 0 unless it is set."""
        if not 0 <= epsilon < math.inf:
            raise InputError(f"a ceiling must be a number, 0 or more; got {epsilon}")
        self._memory.remember(ceiling_fact(key), repr(epsilon))

    def withdraw(self, key: str) -> None:
        """Have the reports to a study erased, by the key that only this device has. Pay stays earned."""
        names = [f"study {key}", *(receipt.key for receipt in self._storage.receipts(_ME))]
        mine = [name for name in names if name == f"study {key}" or name.startswith(f"batch {key} ")]
        parcels = [parcel for name in dict.fromkeys(mine) if (parcel := self._storage.kept(_ME, name)) is not None]
        if not parcels:
            raise InputError(f"this device has not answered study {key}")
        for parcel in parcels:
            self._broker.call(
                "POST", f"/studies/{key}/withdrawals", {"withdrawal_key": json.loads(parcel)["withdrawal_key"]}
            )

    def receipts(self) -> list[dict[str, Any]]:
        return [json.loads(receipt) for receipt in self._memory.receipts()]

    def payments(self) -> dict[str, Any]:
        found: dict[str, Any] = self._account.call("GET", "/workers/me/payments")
        return found

    def raise_cap(self, epsilon_cap: float) -> None:
        """Only the worker can, and only here; the broker's guard follows, later where it cannot be reached now.

        A lower cap counts in any case; a higher one that the broker refuses (it takes none above ε 100) does not.
        """
        budget = Budget(epsilon_cap)
        if budget.cap.epsilon <= self.ledger.budget.cap.epsilon:
            self._keep_cap(budget)
        try:
            self._account.call("PATCH", "/workers/me", {"epsilon_cap_nano": budget.cap.epsilon})
        except ProblemError as refused:
            if refused.status:
                raise
        self._keep_cap(budget)

    def erase(self) -> None:
        """Withdraw every submission, then erase the account.

        Also what has no receipt, because the reply may have been lost; what never arrived cannot be withdrawn.
        """
        keys = [receipt.key for receipt in self._storage.receipts(_ME)]
        for study in dict.fromkeys(key.split()[1] for key in keys if self._storage.kept(_ME, key) is not None):
            if study:
                try:
                    self.withdraw(study)
                except ProblemError as refused:
                    if refused.code != "not-found":
                        raise
        self._account.call("DELETE", "/workers/me")
        self._account.forget()


def _make_private(path: Path) -> None:
    """Ledgers of earlier versions could be read by others on the same machine."""
    with suppress(FileNotFoundError, PermissionError):  # another owner's file is another owner's matter
        path.chmod(0o600)


def _key(study: Study) -> str:
    return f"study {study.id}"


def _left(study: Study) -> str:
    """The name of the fact that a draw may have left this device: then the same bytes may leave it again."""
    return f"left {study.id}"


def _unknown(study: Study, refused: ProblemError) -> ProblemError:
    """A study that is closed no longer looks whether it has a submission: the reply to it may have been lost."""
    detail = (
        f"{refused}; an earlier try got no reply, so it is unknown whether the broker took these reports: if it did, "
        f"they are paid, and you can withdraw them in either case (crowdveil answer withdraw {study.id})"
    )
    return ProblemError(refused.status, {"type": refused.code, "detail": detail, "fields": refused.fields})


def _level(study: Study, name: str) -> Level:
    if name not in study.levels:
        raise InputError(f"this study has the levels {', '.join(study.levels)}; got {name}", fix="choose one of them")
    return study.levels[name]
