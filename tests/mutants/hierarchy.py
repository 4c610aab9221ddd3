"""Mistakes in hierarchical-dawid-skene: a bound that is not the one the steps raise, and workers taken for others."""

from __future__ import annotations

from mutants.mutant import Mutant

METHOD = "inference/methods/hierarchical_dawid_skene.py"
LAW = "inference/priors/dirichlet_multinomial.py"
TESTS = "tests/inference/test_hierarchical_dawid_skene.py"

MUTANTS = (
    Mutant(
        "hierarchy: the bound forgets the law of the strengths",
        METHOD,
        "bound += log_logistic(crowd.strength, TYPICAL_STRENGTH) + log_logistic(crowd.habit_strength, n_options)",
        "bound += -2 * np.log1p(crowd.strength) - 2 * np.log1p(crowd.habit_strength)",
        TESTS,
        "rises_from",
    ),
    Mutant(
        "hierarchy: who attends is taken for who does not",
        METHOD,
        "weight = expit(logs - others)",
        "weight = expit(others - logs)",
        TESTS,
        "do_not_attend",
    ),
    Mutant(
        "hierarchy: one channel's total stands for all channels",
        LAW,
        "totals: Array = np.add.reduceat(self.counts, self.starts, axis=1)",
        "totals: Array = np.repeat(self.counts.sum(axis=1, keepdims=True), len(self.starts), axis=1)",
        TESTS,
        "channels_mix",
    ),
    Mutant(
        "hierarchy: Minka's step without the strength of reports",
        LAW,
        "slope = (digamma(self.totals() + own) - digamma(own)) * own",
        "slope = digamma(self.totals() + own) - digamma(own)",
        TESTS,
        "minkas",
    ),
    Mutant(
        "hierarchy: a warm start forgets the workers",
        METHOD,
        'return {"counts": carried} | {name: known[name] for name in HierarchicalModel.shared}',
        "return {}",
        TESTS,
        "warm_start",
    ),
)
