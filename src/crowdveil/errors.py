"""Everything crowdveil refuses, in one tree, so that callers can catch exactly what they mean.

CrowdveilError
├── InputError            something the caller gave is wrong (exit code 2)
│   ├── DomainError       a value outside the domain, or a domain that makes no sense
│   ├── ChannelError      a channel that is tampered with, not normalised or not understood
│   ├── FileError         a file that cannot be read as what it should be
│   └── UnservableError   a mechanism cannot serve these parameters; names an alternative
├── BudgetError           a ledger refused a release; carries the numbers
└── CheckError            a check ran and failed (exit code 1)
"""

from __future__ import annotations


class CrowdveilError(Exception):
    """Root of every error raised on purpose."""


class InputError(CrowdveilError, ValueError):
    """What was wrong, where it stands (row and field, if it came from a table) and what to do."""

    def __init__(
        self, problem: str, *, fix: str = "", row: int | None = None, field: str = "", source: str = ""
    ) -> None:
        self.problem, self.fix, self.row, self.field, self.source = problem, fix, row, field, source
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        location = ", ".join(
            part
            for part in (
                self.source,
                f"row {self.row}" if self.row is not None else "",
                f"column '{self.field}'" if self.field else "",
            )
            if part
        )
        return (f"{location}: " if location else "") + self.problem + (f"; {self.fix}" if self.fix else "")

    def at(self, *, row: int | None = None, field: str = "", source: str = "") -> InputError:
        """The same error with its place filled in by whoever knows it."""
        return type(self)(
            self.problem,
            fix=self.fix,
            row=self.row if row is None else row,
            field=field or self.field,
            source=source or self.source,
        )


class DomainError(InputError):
    """A value outside the domain, or a domain that makes no sense."""


class ChannelError(InputError):
    """A channel that is tampered with, not normalised or not understood."""


class FileError(InputError):
    """A file that cannot be read as what it should be."""


class UnservableError(InputError):
    """A mechanism cannot serve these parameters; the sentence names an alternative."""


class BudgetError(CrowdveilError):
    """A ledger refused a release whole; nothing was charged. Costs and what is left are in ε and in ρ."""

    def __init__(
        self, problem: str, *, worker: str, cost: float, left: float, cost_rho: float, left_rho: float, fix: str = ""
    ) -> None:
        self.problem, self.worker, self.fix = problem, worker, fix
        self.cost, self.left, self.cost_rho, self.left_rho = cost, left, cost_rho, left_rho
        super().__init__(problem + (f"; {fix}" if fix else ""))


class CheckError(CrowdveilError):
    """A check ran and failed, such as an audit that refutes a claim."""
