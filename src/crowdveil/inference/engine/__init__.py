"""Blocks of reports, the iteration, and the local engine."""
