"""Audit shuffled tables from outside: a certified lower bound of ε beside the bound that is printed.

python tools/shuffled_audit.py [--runs 1000000] [--people 10] [--delta 0.01] [--seed N]

For each local ε, number of options and answers of the others, tables are drawn report by report through the shipped
sampler. Exits with 1 when a lower bound exceeds the printed one, or when half of the printed one would go unnoticed
for two options.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from crowdveil import Channel, Choices
from crowdveil.accounting import amplify_by_shuffling
from crowdveil.audit.black_box import black_box
from crowdveil.entropy import Entropy, entropy_from
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.sampler import draw

_SLICE = 1 << 15


def shuffled_tables(
    channel: Channel, others: int, people: int, entropy: Entropy, answer: int, n: int
) -> NDArray[np.int64]:
    """Each table as one number: how often each option was reported, in base people + 1."""
    digits = (people + 1) ** np.arange(len(channel.inputs))
    tables = np.empty(n, dtype=np.int64)
    for start in range(0, n, _SLICE):
        size = min(_SLICE, n - start)
        answers = np.full((size, people), others)
        answers[:, 0] = answer
        reports = draw(channel, answers.ravel(), entropy).reshape(size, people)
        tables[start : start + size] = digits[reports].sum(axis=1)
    return tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--delta", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=26)
    settings = parser.parse_args()
    entropy, failed = entropy_from(settings.seed), False
    sys.stdout.write("options  local ε  others  lower bound  printed bound\n")
    for k in (2, 3):
        for local_epsilon in (0.5, 1.0):
            channel = RandomizedResponse(epsilon=local_epsilon).channel(Choices(tuple("abc"[:k])))
            bound = amplify_by_shuffling([channel], settings.people, delta=settings.delta)
            for others in range(k):

                def source(answer: int, n: int, channel: Channel = channel, others: int = others) -> NDArray[np.int64]:
                    return shuffled_tables(channel, others, settings.people, entropy, answer, n)

                lower = black_box(source, 2, samples=settings.runs, delta=settings.delta)
                sys.stdout.write(
                    f"{k:7}  {local_epsilon:7}  {others:6}  {lower.epsilon:11.4f}  {bound.epsilon:13.4f}\n"
                )
                failed |= lower.epsilon > bound.epsilon or (k == 2 and lower.epsilon <= bound.epsilon / 2)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
