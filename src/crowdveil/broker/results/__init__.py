"""From stored reports to estimates and files, above the minimum only."""
