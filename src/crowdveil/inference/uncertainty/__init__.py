"""Intervals, calibration and information bounds."""
