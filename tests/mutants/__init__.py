"""The planted mistakes, gathered from the files of this folder."""

from mutants import (
    broker,
    device,
    hierarchy,
    intervals,
    mechanisms,
    numbers,
    options,
    planning,
    pools,
    promises,
    shuffling,
    workers,
)
from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *mechanisms.MUTANTS,
    *promises.MUTANTS,
    *broker.MUTANTS,
    *pools.MUTANTS,
    *device.MUTANTS,
    *planning.MUTANTS,
    *options.MUTANTS,
    *workers.MUTANTS,
    *numbers.MUTANTS,
    *intervals.MUTANTS,
    *hierarchy.MUTANTS,
    *shuffling.MUTANTS,
)
