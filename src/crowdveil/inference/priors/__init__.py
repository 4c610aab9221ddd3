"""Priors of workers and truths."""
