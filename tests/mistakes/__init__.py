"""The planted mistakes, gathered from the files of this folder."""

from mistakes import broker, device, mechanisms, planning, promises
from mistakes.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *mechanisms.MUTANTS,
    *promises.MUTANTS,
    *broker.MUTANTS,
    *device.MUTANTS,
    *planning.MUTANTS,
)
