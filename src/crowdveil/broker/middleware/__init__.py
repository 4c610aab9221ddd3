"""What every request passes: log, headers, limits."""
