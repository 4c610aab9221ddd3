"""The nightly question: does every sum agree with the rows it sums?"""

from __future__ import annotations

from crowdveil.broker.db.transactions import rows

_BUDGETS = """
SELECT b.account FROM ledger_budget b
LEFT JOIN (SELECT account, SUM(epsilon) AS epsilon, SUM(rho) AS rho, SUM(CASE WHEN epsilon IS NULL THEN 1 ELSE 0 END)
    AS unprotected FROM ledger_spend GROUP BY account) s ON s.account = b.account
LEFT JOIN (SELECT account, SUM(epsilon) AS epsilon, SUM(rho) AS rho FROM ledger_reservation GROUP BY account) r
    ON r.account = b.account
WHERE b.epsilon_spent <> COALESCE(s.epsilon, 0) OR b.rho_spent <> COALESCE(s.rho, 0)
    OR b.unprotected <> COALESCE(s.unprotected, 0)
    OR b.epsilon_held <> COALESCE(r.epsilon, 0) OR b.rho_held <> COALESCE(r.rho, 0)
"""
# A submission settles the hold: one that stands beside its spend counts ε, the place and the money twice.
# In a pool a worker sends many batches; there every hold belongs to an active lease.
_UNSETTLED = """
SELECT r.account, r.study FROM ledger_reservation r
JOIN ledger_spend s ON s.account = r.account AND s.study = r.study
WHERE r.study NOT IN (SELECT study FROM pools_pool)
"""
_UNLEASED = """
SELECT r.study FROM (SELECT study, COUNT(*) AS n FROM ledger_reservation GROUP BY study) r
JOIN pools_pool p ON p.study = r.study
LEFT JOIN (SELECT study, COUNT(*) AS n FROM pools_lease WHERE active GROUP BY study) l ON l.study = r.study
WHERE r.n > COALESCE(l.n, 0)
"""
_PURSES = """
SELECT p.study FROM payments_purse p
LEFT JOIN (SELECT study, SUM(cost) AS cost, COUNT(*) AS places FROM ledger_reservation GROUP BY study) r
    ON r.study = p.study
LEFT JOIN (SELECT study, COUNT(*) AS n FROM (
    SELECT study FROM intake_submission UNION ALL SELECT study FROM pools_batch) AS stored GROUP BY study) i
    ON i.study = p.study
LEFT JOIN (SELECT study, COUNT(*) AS n FROM intake_withdrawal GROUP BY study) w ON w.study = p.study
WHERE p.held <> COALESCE(r.cost, 0) OR p.places_held <> COALESCE(r.places, 0)
    OR p.places_taken <> COALESCE(i.n, 0) + COALESCE(w.n, 0)
    OR p.paid + p.commission > p.budget OR p.places_taken > p.quota
"""
_MONEY = """
SELECT (SELECT COALESCE(SUM(paid), 0) FROM payments_purse), (SELECT COALESCE(SUM(cents), 0) FROM payments_earning)
"""
_PAYOUTS = """
SELECT (SELECT COALESCE(SUM(paid_out), 0) FROM payments_earning), (SELECT COALESCE(SUM(cents), 0) FROM payments_payout)
"""


def problems() -> list[str]:
    """One sentence per disagreement; none when the books are right."""
    found = [f"the budget of account {account} differs from its spends and holds" for (account,) in rows(_BUDGETS)]
    found += [
        f"account {account} has submitted to study {study} and its hold was not settled"
        for account, study in rows(_UNSETTLED)
    ]
    found += [f"the pool {study} has more holds than leases" for (study,) in rows(_UNLEASED)]
    found += [f"the purse of study {study} differs from its holds and submissions" for (study,) in rows(_PURSES)]
    for sentence, statement in (
        ("studies paid {} cents but payees earned {}", _MONEY),
        ("earnings say {} cents were paid out but payouts say {}", _PAYOUTS),
    ):
        [(left, right)] = rows(statement)
        if left != right:
            found.append(sentence.format(left, right))
    return found
