"""The mirror of every worker's privacy ledger, and the holds of accepted studies."""
