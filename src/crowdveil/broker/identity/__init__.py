"""The identity store: who has an account, what they consented to, how they sign in."""
