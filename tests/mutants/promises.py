"""Mistakes in the numbers that are promised: ε and ρ of a table, what is charged, what an audit finds."""

from __future__ import annotations

from mutants.mutant import Mutant

CHANNELS = "tests/laws/test_channels.py"
LEDGER = "tests/accounting/test_ledger.py"
COMPOSITION = "tests/accounting/test_composition.py"
AUDIT = "tests/audit/test_audit.py"

MUTANTS = (
    # privacy computed
    Mutant(
        "ε rounded down",
        "exact.py",
        "return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)",
        "return nearest if Decimal(nearest) <= value else math.nextafter(nearest, -math.inf)",
        "tests/test_exact.py",
    ),
    Mutant(
        "ε against the middle row instead of the lowest",
        "channel/divergence.py",
        "weights.min(axis=0)\n",
        "np.sort(weights, axis=0)[len(weights) // 2]\n",
        CHANNELS,
        "never_understated and laplace",
    ),
    Mutant(
        "ρ at order one only",
        "channel/divergence.py",
        "attained * (1 + _RHO_PRECISION), epsilon",
        "attained * 1e9, epsilon",
        "tests/test_divergence.py",
    ),
    Mutant(
        "chord divided by too much",
        "channel/divergence.py",
        "(slope * u - below) / (u * (1 + u))",
        "(slope * u - below) / (u * (2 + u))",
        "tests/test_divergence.py",
    ),
    Mutant(
        "a changed channel is accepted",
        "channel/table.py",
        'is None or found != data.get("sha256")',
        "is None",
        CHANNELS,
        "tampered and randomized",
    ),
    Mutant(
        "rows that sum to less are accepted",
        "channel/table.py",
        "        if sum(row) != 2**channel.bits:",
        "        if sum(row) > 2**channel.bits:",
        "tests/test_channel.py",
    ),
    # accounting
    Mutant(
        "count ignored in a charge",
        "accounting/ledger.py",
        "total + unit_cost * taken",
        "total + unit_cost",
        LEDGER,
    ),
    Mutant(
        "count ignored in composition",
        "accounting/composition.py",
        "as_independent(spend.count, unit)",
        "as_independent(1, unit)",
        "tests/accounting/test_composition.py",
    ),
    Mutant(
        "charged before it is checked",
        "accounting/storage.py",
        "            if cap is not None and not total.within(cap):\n                return None\n"
        "            self._spent[receipt.worker] = total\n",
        "            self._spent[receipt.worker] = total\n            if cap is not None and not total.within(cap):\n"
        "                return None\n",
        LEDGER,
    ),
    Mutant(
        "both sums needed, or none",
        "accounting/storage.py",
        "self.epsilon <= cap.epsilon or self.rho <= cap.rho",
        "self.epsilon <= 2 * cap.epsilon or self.rho <= 2 * cap.rho",
        LEDGER,
    ),
    Mutant(
        "charges rounded down",
        "accounting/nano.py",
        "min(math.ceil(Fraction(amount) * NANO), SATURATED)",
        "min(math.floor(Fraction(amount) * NANO), SATURATED)",
        f"{LEDGER} src/crowdveil/accounting/nano.py",
    ),
    Mutant(
        "drawn before it is charged",
        "accounting/ledger.py",
        "        self.charge(worker, *spends, key=key, at_stake=at_stake)\n        return self._draw_once",
        "        draw()\n        self.charge(worker, *spends, key=key, at_stake=at_stake)\n"
        "        return self._draw_once",
        LEDGER,
        "killed",
    ),
    Mutant(
        "of the reports at stake the cheapest are charged",
        "accounting/ledger.py",
        "sorted(amounts, reverse=True)",
        "sorted(amounts)",
        LEDGER,
        "at_stake",
    ),
    Mutant(
        "what was spent elsewhere is not carried over",
        "accounting/ledger.py",
        "Charge(max(0, nano_up(epsilon) - spent.epsilon), max(0, nano_up(rho) - spent.rho))",
        "Charge(max(0, nano_up(epsilon) - spent.epsilon), 0)",
        LEDGER,
        "elsewhere",
    ),
    Mutant(
        "a second draw leaves the device",
        "accounting/ledger.py",
        "return self._storage.keep(worker, key, draw()) if stored is None else stored",
        "return draw()",
        LEDGER,
        "first_draw",
    ),
    Mutant(
        "the file's rule needs both sums",
        "accounting/sqlite.py",
        "<= :cap_epsilon OR rho",
        "<= :cap_epsilon AND rho",
        LEDGER,
        "twenty_three",
    ),
    Mutant(
        "a conversion that is too generous",
        "accounting/conversion.py",
        "divergence + math.log1p(-1 / alpha) -",
        "divergence + 2 * math.log1p(-1 / alpha) -",
        "tests/accounting/test_conversion.py",
    ),
    Mutant(
        "losses rounded down to the grid",
        "accounting/pld.py",
        "share = np.clip(share, 0.0, 1.0)",
        "share = 0 * share",
        COMPOSITION,
        "enumeration",
    ),
    Mutant(
        "answers that share a release treated as one",
        "accounting/events.py",
        'times = count if unit == "vector" else 1',
        "times = 1",
        COMPOSITION,
    ),
    Mutant(
        "visible participation counted as protected",
        "accounting/composition.py",
        'if unit == "cell" and not all',
        'if unit == "vector" and not all',
        COMPOSITION,
        "cell_totals",
    ),
    # audit
    Mutant(
        "measured on the samples that chose the event",
        "audit/black_box.py",
        "_counts(views[best], fresh)",
        "_counts(views[best], seen)",
        AUDIT,
        "honest",
    ),
    Mutant(
        "all of alpha spent on one side",
        "audit/lower_bound.py",
        "alpha / 2)\n    high",
        "alpha)\n    high",
        AUDIT,
        "half_of_alpha",
    ),
    Mutant(
        "∅ forgotten among the neighbours",
        "audit/targets.py",
        "levels + [EMPTY] * participation",
        "levels",
        AUDIT,
        "silent",
    ),
    Mutant(
        "an exact claim checked at twice the ratio",
        "audit/exact.py",
        "ratio > exp_up(claimed)",
        "ratio > 2 * exp_up(claimed)",
        AUDIT,
        "hair",
    ),
    Mutant(
        "a short read taken for everybody's noise",
        "entropy.py",
        "if len(drawn) != size:",
        "if False:",
        "tests/test_entropy.py",
        "too_little",
    ),
    Mutant(
        "a ledger's sum believed without its receipts",
        "accounting/sqlite.py",
        ".fetchone() is not None:",
        ".fetchone() is False:",
        LEDGER,
        "sums_are_not",
    ),
    Mutant(
        "a joint release rounded to nearest",
        "accounting/events.py",
        "PureLaw(times_up(times, self.epsilon), self.unit",
        "PureLaw(times * self.epsilon, self.unit",
        COMPOSITION,
        "bare_epsilon",
    ),
    Mutant(
        "a secret for each number of options",
        "accounting/per_question.py",
        "(law.low, law.high) == (other.low, other.high)",
        "law == other",
        "tests/cli/test_account.py",
        "other_options",
    ),
    Mutant(
        "a table that proves other code",
        "audit/registry.py",
        "type(subject).randomize is not ChannelMechanism.randomize",
        "False",
        "tests/audit/test_faulty.py",
        "proves_nothing",
    ),
    Mutant(
        "reports told apart as numbers only",
        "audit/black_box.py",
        "np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)",
        "(np.ascontiguousarray(numbers, dtype=np.float64) + 0.0).view(np.int64)",
        "tests/audit/test_faulty.py",
        "minus_zero",
    ),
)
