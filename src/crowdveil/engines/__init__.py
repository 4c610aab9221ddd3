"""Where the blocks of an iterative method live: a Spark cluster; `inference/engine/local.py` has the local threads."""
