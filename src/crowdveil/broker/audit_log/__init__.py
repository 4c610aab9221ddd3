"""The append-only, hash-chained log of what requesters and operators did."""
