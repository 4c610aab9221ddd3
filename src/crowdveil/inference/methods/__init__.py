"""One public method per file."""
