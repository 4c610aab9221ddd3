"""Reproductions of Sun et al. 2018 (sparse truth inference) and its slides."""
