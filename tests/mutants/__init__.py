"""The planted mistakes, gathered from the files of this folder."""

from mutants import broker, device, intervals, mechanisms, numbers, options, planning, promises, shuffling, workers
from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *mechanisms.MUTANTS,
    *promises.MUTANTS,
    *broker.MUTANTS,
    *device.MUTANTS,
    *planning.MUTANTS,
    *options.MUTANTS,
    *workers.MUTANTS,
    *numbers.MUTANTS,
    *intervals.MUTANTS,
    *shuffling.MUTANTS,
)
