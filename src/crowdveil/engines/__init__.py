"""Where the blocks of an iterative method live: this machine, or a Spark cluster."""
