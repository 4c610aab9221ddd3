"""What keeps a broker running: health, metrics, logs, limits, backups."""
