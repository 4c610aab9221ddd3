"""Reproductions of Li et al. 2018 (two-layer perturbation)."""
