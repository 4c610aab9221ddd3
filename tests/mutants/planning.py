"""Mistakes in what is spent and on whom: ledgers that give back, plans, selections, shares of mixed crowds."""

from __future__ import annotations

from mutants.mutant import Mutant

LEDGER = "tests/accounting/test_ledger.py"
SELECTION = "tests/selection/test_selection.py"
FORESIGHT = "tests/selection/test_foresight.py"

MUTANTS = (
    Mutant(
        "a release that gives privacy back",
        "accounting/events.py",
        "lambda loss: 0 <= loss <= _LARGEST or",
        "lambda loss: not loss > _LARGEST or",
        LEDGER,
        "pays_privacy_back",
    ),
    Mutant(
        "nothing at stake costs nothing",
        "accounting/ledger.py",
        "at_stake is not None and at_stake < 1",
        "at_stake is not None and at_stake < -9",
        LEDGER,
        "said_to_be_at_stake",
    ),
    Mutant(
        "a receipt that can be replaced",
        "accounting/sqlite.py",
        "AND (key = new.key OR number = new.number)",
        "AND key = new.key || 'other'",
        LEDGER,
        "append_only",
    ),
    Mutant(
        "votes weighed, but not their number",
        "inference/observations/debiasing.py",
        "return _added(rows, channels, np.ones(len(channels)), n_questions, n_options)",
        "return votes_of(rows, channels, n_questions, n_options)",
        "tests/statistical/test_channel_methods.py",
        "mixed_crowd",
    ),
    Mutant(
        "a knowing reader's luck counted twice",
        "plan/monte_carlo.py",
        "study.error - slope * study.oracle",
        "study.error",
        "tests/plan/test_monte_carlo.py",
        "counting_mistakes",
    ),
    Mutant(
        "a calculation that is never contradicted",
        "plan/expected_error.py",
        "calculated.standard_error), apart)",
        "calculated.standard_error), 0.0)",
        "tests/plan/test_monte_carlo.py",
        "outweighs_no_simulation",
    ),
    Mutant(
        "a secret counted question by question",
        "accounting/per_question.py",
        "total = sum(spend.count for spend in everything if _share(spend.law, law))",
        "total = changed",
        "tests/cli/test_account.py",
        "answers_share",
    ),
    Mutant(
        "t answers at stake instead of 2t",
        "accounting/spend.py",
        "min(n_questions, 2 * at_most)",
        "min(n_questions, at_most)",
        "tests/plan/test_planner.py",
        "charge_of_a_study",
    ),
    Mutant(
        "the group's own part in the crowd's average dropped",
        "selection/group_error.py",
        "error += self._everybody - 2 *",
        "error += self._everybody - 1 *",
        SELECTION,
        "identical_to_its_definition",
    ),
    Mutant(
        "what cancelled by chance taken for camps",
        "selection/shared_factors.py",
        "values**2 > _largest_by_chance(a, b)",
        "values**2 > 0.5 * _largest_by_chance(a, b)",
        FORESIGHT,
        "camps",
    ),
    Mutant(
        "steady workers not told from erratic ones",
        "selection/deviation_model.py",
        "typical + share * (own_variance - typical)",
        "typical + 0 * share * (own_variance - typical)",
        FORESIGHT,
        "steady",
    ),
    Mutant(
        "paid although the next worker harms",
        "selection/greedy.py",
        "if self.paper_mode else _least([first, *errors])",
        "if True else _least([first, *errors])",
        SELECTION,
        "before_harm",
    ),
)
