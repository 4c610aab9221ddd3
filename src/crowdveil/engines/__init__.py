"""Where the blocks of an iterative method live: a Spark cluster; on this machine, `inference/threads.py` has them."""
