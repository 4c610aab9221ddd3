"""Reproductions of Kandappu et al. 2015 (Loki)."""
