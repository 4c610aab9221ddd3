"""Reports under per-study pseudonyms: the only place where reports are stored."""
