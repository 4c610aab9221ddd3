"""The database: its settings, the roles of the separated stores, and transactions."""
