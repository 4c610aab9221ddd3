"""Compiled loops over laid-out reports, each with its NumPy reference."""
