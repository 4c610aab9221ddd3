"""The console's forms and their errors."""
