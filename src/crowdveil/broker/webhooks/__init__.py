"""Signed notices to requesters' own servers, never with a report in them."""
