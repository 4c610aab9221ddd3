"""Likelihood models that EM and message passing iterate."""
