"""Operating a broker: backup, health, metrics."""
