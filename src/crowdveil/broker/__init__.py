"""The broker: runs private studies, never overspends and never sees an answer."""
