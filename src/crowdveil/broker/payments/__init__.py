"""Exact money: what a study may spend, what a payee has earned, what was paid out."""
