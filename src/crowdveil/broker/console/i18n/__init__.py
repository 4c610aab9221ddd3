"""Translation of messages and formatting of numbers."""
