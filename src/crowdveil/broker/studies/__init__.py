"""Studies: drafts, the frozen and signed definition, the public log, who may answer."""
