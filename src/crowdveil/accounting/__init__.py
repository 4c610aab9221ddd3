"""What was released, what it costs, and the ledger that refuses to overspend."""

from crowdveil.accounting.conversion import DEFAULT_DELTA, delta_from_rho, epsilon_from_rho, rho_max
from crowdveil.accounting.gaussian import gaussian_delta, gaussian_epsilon

__all__ = ["DEFAULT_DELTA", "delta_from_rho", "epsilon_from_rho", "gaussian_delta", "gaussian_epsilon", "rho_max"]
