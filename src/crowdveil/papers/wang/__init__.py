"""Reproductions of Wang and Xu (private Dawid-Skene)."""
