"""Mistakes in what is spent and on whom: ledgers that give back, plans, selections, shares of mixed crowds."""

from __future__ import annotations

from mutants.mutant import Mutant

LEDGER = "tests/accounting/test_ledger.py"
SELECTION = "tests/selection/test_selection.py"
FORESIGHT = "tests/selection/test_foresight.py"
BUDGETED = "tests/selection/test_budgeted_greedy.py"
PRICING = "tests/pricing/test_pricing.py"

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
        "return _add_votes(rows, channels, np.ones(len(channels)), n_questions, n_options)",
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
        "error += self._everybody - 2 * (self._own_sum + self._own)",
        "error += self._everybody - 1 * (self._own_sum + self._own)",
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
    Mutant(
        "a group chosen for weights that its estimate does not have",
        "selection/group_error.py",
        "weight = 1 / np.maximum(opinions.stranger + noise, _MIN_VARIANCE)",
        "weight = 1 / np.maximum(noise, 0.1)",
        BUDGETED,
        "near_the_optimum_with_lokis",
    ),
    Mutant(
        "money that is spent twice in an exchange",
        "selection/budgeted_greedy.py",
        "money = self.money - float(self.pay[rows].sum()) + CENT_DUST",
        "money = self.money - float(self.pay[rows[1:]].sum()) + CENT_DUST",
        BUDGETED,
        "cost_no_more_privacy or cost_nothing",
    ),
    Mutant(
        "winners paid their own bid",
        "pricing/ghosh_roth.py",
        "payment = min(budget / k, order[k].cost / left_out)",
        "payment = order[k - 1].cost / left_out",
        PRICING,
        "no_bid_is_better",
    ),
    Mutant(
        "the next bid paid beyond the budget",
        "pricing/ghosh_roth.py",
        "payment = min(budget / k, order[k].cost / left_out)",
        "payment = max(budget / k, order[k].cost / left_out)",
        PRICING,
        "stays_in_its_budget",
    ),
    Mutant(
        "the dearest winner's bid paid instead of the lowest losing one",
        "pricing/ghosh_roth.py",
        "left_out, order[n_winners].cost / left_out)",
        "left_out, order[n_winners - 1].cost / left_out)",
        PRICING,
        "no_bid_is_better",
    ),
    Mutant(
        "a share of the budget that counts only earlier winners",
        "pricing/single_minded.py",
        "if bids[row].cost * total > budget * _value(bids[row]):",
        "if bids[row].cost * (total - _value(bids[row])) > budget * _value(bids[row]):",
        PRICING,
        "single_minded",
    ),
    Mutant(
        "a critical bid one cent too high",
        "pricing/single_minded.py",
        "return low * CENT",
        "return (low + 1) * CENT",
        PRICING,
        "single_minded",
    ),
)
