"""Speed and memory on this machine, measured beside the peers that are installed."""
